/*
 * copies.c: what copy and pickle make of tensors. A copy has the elements in memory of
 * its own, also of a view. A pickle has them as bytes of the host, wherever they are;
 * it is read into the context of the thread that reads it. Of a tensor that lies on several
 * processes a copy lies as it does; a pickle has the whole on each, so all make it together.
 */
#include "python.h"

#include <stdlib.h>

/* Gradients are collected for x from now on; its context has been entered. */
static bool leaf(tensor *x, place p)
{
	if (tn_at_requires_grad(p.file, p.line, x->x) < 0) {
		error_raise(x->c);
		return false;
	}
	x->role = ROLE_LEAF;
	return true;
}

/* ---- copies in the same context ---- */

/* The context has been entered. */
static PyObject *copy_of(tensor *t, place p)
{
	PyObject *o = tensor_wrap(t->c, tn_at_copy(p.file, p.line, t->x)), *plain;

	if (o == NULL || t->role == ROLE_PLAIN)
		return o;
	/* a copy of what is trained is trained by itself */
	plain = tensor_wrap(t->c, tn_at_detach(p.file, p.line, ((tensor *)o)->x));
	Py_DECREF(o);
	if (plain != NULL && !leaf((tensor *)plain, p))
		Py_CLEAR(plain);
	return plain;
}

PyObject *copies_copy(PyObject *self, PyObject *unused)
{
	tensor *t = (tensor *)self;
	place p = place_here();
	PyObject *o;

	(void)unused;
	if (t->role == ROLE_PARAMETER)
		return train_parameter(self, tn_tensor_name(t->x));
	if (!context_enter(t->c))
		return NULL;
	o = copy_of(t, p);
	context_leave(t->c);
	return o;
}

/* copy.deepcopy keeps what it has copied by itself; memo is not needed. */
PyObject *copies_deepcopy(PyObject *self, PyObject *memo)
{
	(void)memo;
	return copies_copy(self, NULL);
}

/* ---- pickles ---- */

/* The elements, dense and row-major. */
static PyObject *bytes_of(tensor *t)
{
	size_t n = (size_t)tn_tensor_n_elems(t->x) * tn_dtype_bytes(tn_tensor_dtype(t->x));
	PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n);
	place p = place_here();
	tn_status s;
	bool good;

	if (bytes == NULL)
		return NULL;
	if (!context_enter(t->c)) {
		Py_DECREF(bytes);
		return NULL;
	}
	HEAVY(s, tn_at_read(p.file, p.line, t->x, PyBytes_AsString(bytes), n));
	good = error_check(t->c, s);
	context_leave(t->c);
	if (!good)
		Py_CLEAR(bytes);
	return bytes;
}

PyObject *copies_reduce(PyObject *self, PyObject *unused)
{
	tensor *t = (tensor *)self;
	PyObject *module, *make, *bytes;
	const int64_t *shape = tn_tensor_shape(t->x);

	(void)unused;
	if (!tensor_is_alive(t))
		return NULL;
	bytes = bytes_of(t);
	if (bytes == NULL)
		return NULL;
	module = PyImport_ImportModule("tenon._tenon");
	make = module != NULL ? PyObject_GetAttrString(module, "_unpickled") : NULL;
	Py_XDECREF(module);
	if (make == NULL) {
		Py_DECREF(bytes);
		return NULL;
	}
	return Py_BuildValue("N(NNNiz)", make, dtype_object(tn_tensor_dtype(t->x)),
		shape_object(tn_tensor_rank(t->x), shape), bytes, (int)t->role,
		tn_tensor_name(t->x));
}

/* Is this the number of bytes that the shape has? False: raised. */
static bool is_whole(tn_dtype t, const int64_t *shape, int rank, Py_ssize_t n_bytes)
{
	int64_t n = (int64_t)tn_dtype_bytes(t);
	bool good = true;

	for (int i = 0; good && i < rank; i++)
		good = shape[i] >= 0 && !__builtin_mul_overflow(n, shape[i], &n);
	if (good && n == n_bytes)
		return true;
	error_say("python.pickle",
		"%zd bytes are not the elements of the shape that this pickle says",
		n_bytes);
	return false;
}

/* _unpickled(dtype, shape, bytes, role, name) */
static PyObject *unpickled(PyObject *module, PyObject *args)
{
	PyObject *type, *extents, *bytes, *o;
	context *c = context_here();
	int64_t shape[TN_MAX_RANK];
	place p = place_here();
	const char *name;
	int role, rank;
	tn_dtype t;

	(void)module;
	if (c == NULL || !PyArg_ParseTuple(args, "OO!Siz:_unpickled", &type,
				 &PyTuple_Type, &extents, &bytes, &role, &name) ||
		!dtype_of(type, &t))
		return NULL;
	rank = ints_of(extents, shape, TN_MAX_RANK, "shape");
	if (rank < 0 || !is_whole(t, shape, rank, PyBytes_Size(bytes)) ||
		!context_enter(c))
		return NULL;
	if (role == ROLE_PARAMETER)
		o = tensor_wrap(c, tn_at_parameter(p.file, p.line, c->c, name, t, rank,
			shape, PyBytes_AsString(bytes)));
	else
		o = tensor_wrap(c, tn_at_tensor_new(p.file, p.line, c->c, t, rank,
			shape, PyBytes_AsString(bytes)));
	if (o != NULL && role == ROLE_LEAF && !leaf((tensor *)o, p))
		Py_CLEAR(o);
	context_leave(c);
	if (o != NULL && role == ROLE_PARAMETER)
		((tensor *)o)->role = ROLE_PARAMETER;
	return o;
}

static PyMethodDef methods[] = {{"_unpickled", unpickled, METH_VARARGS, NULL}, {0}};

int copies_init(PyObject *module)
{
	return PyModule_AddFunctions(module, methods);
}
