/*
 * tensor.c: tenon.Tensor, a handle of the library and the context it is of.
 * Operators are in operator.c, x[...] in index.c, buffers in exchange.c; what can be
 * said in Python is in tenon/_methods.py.
 */
#include "python.h"

PyTypeObject *tensor_type;

PyObject *tensor_wrap(context *c, tn_tensor *x)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(tensor_type, Py_tp_alloc);
	tensor *t;

	if (!tn_is_valid(x))
		return error_raise(c);
	t = (tensor *)alloc(tensor_type, 0);
	if (t == NULL) {
		tn_drop(x);
		return NULL;
	}
	t->c = (context *)Py_NewRef((PyObject *)c);
	t->x = x;
	return (PyObject *)t;
}

static void dealloc(PyObject *self)
{
	tensor *t = (tensor *)self;
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	if (t->c != NULL) {
		if (!t->borrowed)
			context_drop(t->c, t->x);
		Py_DECREF(t->c);
	}
	release(self);
	Py_DECREF(type);
}

PyObject *shape_object(int32_t rank, const int64_t *shape)
{
	PyObject *o = PyTuple_New(rank);

	for (int32_t i = 0; o != NULL && i < rank; i++) {
		PyObject *n = PyLong_FromLongLong(shape[i]);

		if (n == NULL)
			Py_CLEAR(o);
		else
			PyTuple_SetItem(o, i, n);
	}
	return o;
}

/* tenon.tensor(x, dtype=None): always a copy of memory of its own. */
static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"x", "dtype", NULL};
	PyObject *x, *dtype = Py_None, *o;
	context *c = context_here();
	tn_dtype t;

	(void)type;
	if (c == NULL || !PyArg_ParseTupleAndKeywords(
				 args, kwargs, "O|O:Tensor", names, &x, &dtype))
		return NULL;
	if (dtype != Py_None && !dtype_of(dtype, &t))
		return NULL;
	if (!context_enter(c))
		return NULL;
	o = dtype != Py_None ? (PyObject *)convert_to(c, x, t)
			     : (PyObject *)convert(c, x, LIKE_NOTHING);
	if (o == x) { /* a tensor: its elements in a tensor of their own */
		tensor *from = (tensor *)o;
		place p = place_here();

		o = tensor_wrap(from->c, tn_at_copy(p.file, p.line, from->x));
		Py_DECREF(x);
	}
	context_leave(c);
	return o;
}

bool tensor_is_alive(const tensor *t)
{
	if (tn_is_valid(t->x))
		return true;
	error_say("tensor.handle",
		"this tensor has ended: it was made inside a function that was "
		"recorded, or was given away");
	return false;
}

static PyObject *get_shape(PyObject *self, void *unused)
{
	tensor *t = (tensor *)self;

	(void)unused;
	return tensor_is_alive(t) ? shape_object(tn_tensor_rank(t->x), tn_tensor_shape(t->x))
			   : NULL;
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
	tensor *t = (tensor *)self;

	(void)unused;
	return tensor_is_alive(t) ? dtype_object(tn_tensor_dtype(t->x)) : NULL;
}

static PyObject *get_ndim(PyObject *self, void *unused)
{
	tensor *t = (tensor *)self;

	(void)unused;
	return tensor_is_alive(t) ? PyLong_FromLong(tn_tensor_rank(t->x)) : NULL;
}

static PyObject *get_size(PyObject *self, void *unused)
{
	tensor *t = (tensor *)self;

	(void)unused;
	return tensor_is_alive(t) ? PyLong_FromLongLong(tn_tensor_n_elems(t->x)) : NULL;
}

static PyObject *get_device(PyObject *self, void *unused)
{
	tensor *t = (tensor *)self;

	(void)unused;
	return tensor_is_alive(t) ? PyUnicode_FromString(tn_device_of(t->x)) : NULL;
}

static PyObject *get_context(PyObject *self, void *unused)
{
	(void)unused;
	return Py_NewRef((PyObject *)((tensor *)self)->c);
}

static PyObject *get_name(PyObject *self, void *unused)
{
	const char *name = tn_tensor_name(((tensor *)self)->x);

	(void)unused;
	if (name == NULL)
		Py_RETURN_NONE;
	return PyUnicode_FromString(name);
}

static PyObject *get_grad(PyObject *self, void *unused)
{
	tensor *t = (tensor *)self;
	tn_tensor *g;
	PyObject *o;

	(void)unused;
	if (!tensor_is_alive(t) || !context_enter(t->c))
		return NULL;
	g = tn_gradient(t->x);
	if (g != NULL)
		o = tensor_wrap(t->c, g);
	else if (tn_context_status(t->c->c) < 0)
		o = error_raise(t->c);
	else
		o = Py_NewRef(Py_None);
	context_leave(t->c);
	return o;
}

static int set_grad(PyObject *self, PyObject *value, void *unused)
{
	tensor *t = (tensor *)self;

	(void)unused;
	if (value != NULL && value != Py_None) {
		error_say("python.grad", "only None can be assigned to grad: "
					 "backward() adds to it");
		return -1;
	}
	if (!context_enter(t->c))
		return -1;
	tn_zero_grad(t->x);
	context_leave(t->c);
	return 0;
}

static PyGetSetDef getset[] = {
	{"shape", get_shape, NULL, "Extents of the axes, a tuple.", NULL},
	{"dtype", get_dtype, NULL, "Type of the elements, such as \"f32\".", NULL},
	{"ndim", get_ndim, NULL, "Number of axes.", NULL},
	{"size", get_size, NULL, "Number of elements.", NULL},
	{"device", get_device, NULL, "What has the elements: \"cpu\", \"cuda:0\".", NULL},
	{"context", get_context, NULL, "The context that this tensor is of.", NULL},
	{"name", get_name, NULL, "The name of a parameter, or None.", NULL},
	{"grad", get_grad, set_grad,
		"What backward() has collected for this tensor; None: nothing. Assigning None forgets it.", NULL},
	{0}};

/* ---- methods that compute ---- */

static PyObject *item(PyObject *self, PyObject *unused)
{
	tensor *t = (tensor *)self;

	(void)unused;
	if (!tensor_is_alive(t))
		return NULL;
	if (tn_tensor_n_elems(t->x) != 1)
		return error_say("python.item",
			"this tensor has %lld elements, and only that of one is a number",
			(long long)tn_tensor_n_elems(t->x));
	return convert_list(t);
}

static PyObject *tolist(PyObject *self, PyObject *unused)
{
	(void)unused;
	return tensor_is_alive((tensor *)self) ? convert_list((tensor *)self) : NULL;
}

static PyObject *repr(PyObject *self)
{
	tensor *t = (tensor *)self;
	place p = place_here();
	char *text = NULL;
	tn_status s;
	PyObject *o = NULL;

	if (!tn_is_valid(t->x))
		return PyUnicode_FromString("<tenon.Tensor that has ended>");
	if (!context_enter(t->c))
		return NULL;
	HEAVY(s, tn_at_text(p.file, p.line, t->x, &text));
	if (error_check(t->c, s))
		o = PyUnicode_FromFormat("tensor(%s)", text);
	tn_text_free(text);
	context_leave(t->c);
	return o;
}

static PyObject *eval(PyObject *self, PyObject *unused)
{
	tensor *t = (tensor *)self;
	place p = place_here();
	tn_status s;
	bool good;

	(void)unused;
	if (!tensor_is_alive(t) || !context_enter(t->c))
		return NULL;
	HEAVY(s, tn_at_eval(p.file, p.line, &t->x, 1));
	good = error_check(t->c, s);
	context_leave(t->c);
	return good ? Py_NewRef(self) : NULL;
}

static PyObject *backward(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"seed", "keep", NULL};
	tensor *t = (tensor *)self, *seed = NULL;
	PyObject *given = Py_None;
	place p = place_here();
	int keep = 0;
	tn_status s;

	if (!PyArg_ParseTupleAndKeywords(
		    args, kwargs, "|Op:backward", names, &given, &keep))
		return NULL;
	if (!context_enter(t->c))
		return NULL;
	if (given != Py_None)
		seed = convert_to(t->c, given, tn_tensor_dtype(t->x));
	if (given == Py_None || seed != NULL) {
		s = tn_at_backward(p.file, p.line, t->x,
			seed != NULL ? seed->x : NULL, keep);
		if (s < 0)
			error_raise(t->c);
	}
	Py_XDECREF((PyObject *)seed);
	context_leave(t->c);
	if (PyErr_Occurred())
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *requires_grad(PyObject *self, PyObject *unused)
{
	tensor *t = (tensor *)self;
	place p = place_here();
	tn_status s;

	(void)unused;
	if (!context_enter(t->c))
		return NULL;
	s = tn_at_requires_grad(p.file, p.line, t->x);
	if (s < 0)
		error_raise(t->c);
	else if (t->role == ROLE_PLAIN)
		t->role = ROLE_LEAF;
	context_leave(t->c);
	return s < 0 ? NULL : Py_NewRef(self);
}

static PyObject *detach(PyObject *self, PyObject *unused)
{
	tensor *t = (tensor *)self;
	place p = place_here();
	PyObject *o;

	(void)unused;
	if (!context_enter(t->c))
		return NULL;
	o = tensor_wrap(t->c, tn_at_detach(p.file, p.line, t->x));
	context_leave(t->c);
	return o;
}

static PyObject *copy_(PyObject *self, PyObject *value)
{
	tensor *t = (tensor *)self, *v;
	place p = place_here();
	tn_status s = TN_EINVAL;

	if (!tensor_is_alive(t) || !context_enter(t->c))
		return NULL;
	v = convert_to(t->c, value, tn_tensor_dtype(t->x));
	if (v != NULL) {
		s = tn_at_copy_(p.file, p.line, t->x, v->x);
		if (s < 0)
			error_raise(t->c);
		Py_DECREF((PyObject *)v);
	}
	context_leave(t->c);
	return s < 0 ? NULL : Py_NewRef(self);
}

static PyObject *fill_(PyObject *self, PyObject *value)
{
	tensor *t = (tensor *)self;
	double v = PyFloat_AsDouble(value);
	place p = place_here();
	tn_status s;

	if (v == -1 && PyErr_Occurred())
		return NULL;
	if (!context_enter(t->c))
		return NULL;
	s = tn_at_fill_(p.file, p.line, t->x, v);
	if (s < 0)
		error_raise(t->c);
	context_leave(t->c);
	return s < 0 ? NULL : Py_NewRef(self);
}

static PyObject *truth_of(tensor *t)
{
	if (tn_is_valid(t->x) && tn_tensor_n_elems(t->x) != 1)
		return error_say("python.truth",
			"a tensor of %lld elements is neither true nor false: use "
			"reduce_any or reduce_all",
			(long long)tn_tensor_n_elems(t->x));
	return item((PyObject *)t, NULL);
}

static int is_true(PyObject *self)
{
	PyObject *v = truth_of((tensor *)self);
	int b = v != NULL ? PyObject_IsTrue(v) : -1;

	Py_XDECREF(v);
	return b;
}

static PyObject *as_float(PyObject *self)
{
	PyObject *v = item(self, NULL), *o = v != NULL ? PyNumber_Float(v) : NULL;

	Py_XDECREF(v);
	return o;
}

static PyObject *as_int(PyObject *self)
{
	PyObject *v = item(self, NULL), *o = v != NULL ? PyNumber_Long(v) : NULL;

	Py_XDECREF(v);
	return o;
}

static PyObject *as_index(PyObject *self)
{
	tensor *t = (tensor *)self;

	if (!tensor_is_alive(t))
		return NULL;
	if (!tn_dtype_is_int(tn_tensor_dtype(t->x))) {
		PyErr_SetString(PyExc_TypeError, "only a tensor of integers is an index");
		return NULL;
	}
	return as_int(self);
}

static Py_ssize_t length(PyObject *self)
{
	tensor *t = (tensor *)self;

	if (!tensor_is_alive(t))
		return -1;
	if (tn_tensor_rank(t->x) == 0) {
		PyErr_SetString(PyExc_TypeError, "a tensor of rank 0 has no len()");
		return -1;
	}
	return (Py_ssize_t)tn_tensor_shape(t->x)[0];
}

static PyMethodDef methods[] = {
	{"item", item, METH_NOARGS,
		"item()\n--\n\nThe only element as a number of Python; computes it."},
	{"tolist", tolist, METH_NOARGS,
		"tolist()\n--\n\nAll elements as nested lists; computes them."},
	{"eval", eval, METH_NOARGS,
		"eval()\n--\n\nComputes the elements now; returns the tensor itself."},
	{"backward", (PyCFunction)(void (*)(void))backward, METH_VARARGS | METH_KEYWORDS,
		"backward(seed=None, keep=False)\n--\n\n"
		"Adds the gradient of this tensor to .grad of every tensor that requires one and that it was computed from.\n\n"
		"seed: the cotangent, of the same shape; None is 1, for a single number.\n"
		"keep: what was held for it stays, for another backward."},
	{"requires_grad_", requires_grad, METH_NOARGS,
		"requires_grad_()\n--\n\nGradients with respect to this tensor are collected from now on."},
	{"detach", detach, METH_NOARGS,
		"detach()\n--\n\nThe elements without their history."},
	{"copy_", copy_, METH_O,
		"copy_(value)\n--\n\nWrites the elements of value, of the same shape, in place: every view shows them."},
	{"fill_", fill_, METH_O,
		"fill_(value)\n--\n\nWrites one number to all elements, in place."},
	{"__copy__", copies_copy, METH_NOARGS, NULL},
	{"__deepcopy__", copies_deepcopy, METH_O, NULL},
	{"__reduce__", copies_reduce, METH_NOARGS, NULL},
	{"__dlpack__", (PyCFunction)(void (*)(void))exchange_dlpack,
		METH_VARARGS | METH_KEYWORDS, NULL},
	{"__dlpack_device__", exchange_dlpack_device, METH_NOARGS, NULL},
	{0}};

enum { N_OWN = 16 };
static PyType_Slot own[N_OWN] = {{Py_tp_new, tensor_new}, {Py_tp_dealloc, dealloc},
	{Py_tp_repr, repr}, {Py_tp_getset, getset}, {Py_tp_methods, methods},
	{Py_nb_bool, is_true}, {Py_nb_float, as_float}, {Py_nb_int, as_int},
	{Py_nb_index, as_index}, {Py_mp_length, length},
	{Py_mp_subscript, index_get}, {Py_mp_ass_subscript, index_set},
	{Py_bf_getbuffer, exchange_get_buffer},
	{Py_bf_releasebuffer, exchange_release_buffer},
	{Py_tp_doc,
		"Tensor(x, dtype=None)\n--\n\n"
		"Elements of one dtype in up to 8 axes: a storage seen through a view.\n\n"
		"x: a number, nested lists, a tensor, or anything with the buffer protocol, such\n"
		"as an array of NumPy; its elements are copied. Floats of Python become f32,\n"
		"ints i64. Operations record and return; elements are computed when somebody\n"
		"looks at them."}};

int tensor_init(PyObject *module)
{
	PyType_Slot slots[64];
	PyType_Spec spec = {.name = "tenon.Tensor", .basicsize = sizeof(tensor),
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, .slots = slots};
	int n = 0;

	for (int i = 0; i < N_OWN && own[i].slot != 0; i++)
		slots[n++] = own[i];
	for (const PyType_Slot *s = operator_slots; s->slot != 0; s++)
		slots[n++] = *s;
	slots[n] = (PyType_Slot){0};
	tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
	return tensor_type == NULL
		       ? -1
		       : PyModule_AddObjectRef(module, "Tensor", (PyObject *)tensor_type);
}
