/*
 * exchange.c: memory that is shared with others, without copies: the buffer
 * protocol and DLPack, both ways.
 *
 * Whoever lets go of memory may do it in any thread, and from inside of the library.
 * What Python has to do for it waits for a better time (context_later).
 */
#include "python.h"

#include <stdlib.h>

enum { CPU = 1, GPU = 2 }; /* of DLPack */

/* ---- out: a tensor's memory for others ---- */

struct lent {
	tn_dl_managed m;      /* what DLPack's receiver gets */
	tn_dl_managed *inner; /* the library's */
	context *c;
	Py_ssize_t shape[TN_MAX_RANK], strides[TN_MAX_RANK]; /* in bytes */
};

static void end_lent(void *arg)
{
	struct lent *l = arg;
	PyObject *c = (PyObject *)l->c;

	if (context_enter(l->c)) {
		l->inner->deleter(l->inner);
		context_leave(l->c);
	} else {
		PyErr_Clear();
	}
	free(l);
	Py_DECREF(c);
}

static void delete_lent(tn_dl_managed *m)
{
	PyGILState_STATE g;

	if (!Py_IsInitialized())
		return;
	g = PyGILState_Ensure();
	end_lent(m->manager);
	PyGILState_Release(g);
}

/* The context has been entered. */
static struct lent *lend(tensor *t)
{
	struct lent *l = calloc(1, sizeof *l);
	place p = place_here();
	tn_status s;

	if (l == NULL) {
		PyErr_NoMemory();
		return NULL;
	}
	HEAVY(s, tn_at_dlpack_export(p.file, p.line, t->x, &l->inner));
	if (!error_check(t->c, s)) {
		if (s >= 0)
			l->inner->deleter(l->inner);
		free(l);
		return NULL;
	}
	l->c = (context *)Py_NewRef((PyObject *)t->c);
	l->m = (tn_dl_managed){l->inner->tensor, l, delete_lent};
	return l;
}

static void fill_view(Py_buffer *view, struct lent *l, PyObject *self,
	const char *format, size_t each, int flags)
{
	const tn_dl_tensor *x = &l->inner->tensor;
	Py_ssize_t n = (Py_ssize_t)each;

	for (int32_t i = x->n_axes; i-- > 0;) {
		l->shape[i] = (Py_ssize_t)x->shape[i];
		l->strides[i] = n;
		n *= l->shape[i];
	}
	*view = (Py_buffer){.buf = (char *)x->data + x->byte_offset,
		.obj = Py_NewRef(self), .len = n, .itemsize = (Py_ssize_t)each,
		.ndim = (int)x->n_axes, .internal = l};
	if ((flags & PyBUF_FORMAT) != 0)
		view->format = (char *)(uintptr_t)format;
	if ((flags & PyBUF_ND) == PyBUF_ND)
		view->shape = l->shape;
	if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES)
		view->strides = l->strides;
}

int exchange_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
	tensor *t = (tensor *)self;
	struct lent *l = NULL;
	const char *format;
	tn_dtype type;

	view->obj = NULL;
	if (!tn_is_valid(t->x)) {
		PyErr_SetString(PyExc_BufferError, "this tensor has ended");
		return -1;
	}
	type = tn_tensor_dtype(t->x);
	format = dtype_format(type);
	if (format == NULL) {
		PyErr_Format(PyExc_BufferError,
			"the buffer protocol has no format for %s: cast it, or use DLPack",
			tn_dtype_name(type));
		return -1;
	}
	if (!context_enter(t->c))
		return -1;
	l = lend(t);
	context_leave(t->c);
	if (l == NULL)
		return -1;
	if (l->inner->tensor.device.type != CPU) {
		end_lent(l);
		PyErr_SetString(PyExc_BufferError,
			"the elements are on a device: use tolist() or DLPack");
		return -1;
	}
	if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS &&
		l->inner->tensor.n_axes > 1) {
		end_lent(l);
		PyErr_SetString(PyExc_BufferError, "the elements are row-major");
		return -1;
	}
	fill_view(view, l, self, format, tn_dtype_bytes(type), flags);
	return 0;
}

void exchange_release_buffer(PyObject *self, Py_buffer *view)
{
	(void)self;
	end_lent(view->internal);
}

static void end_capsule(PyObject *capsule)
{
	tn_dl_managed *m;

	if (!PyCapsule_IsValid(capsule, "dltensor"))
		return; /* somebody has taken it */
	m = PyCapsule_GetPointer(capsule, "dltensor");
	m->deleter(m);
}

PyObject *exchange_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
	PyObject *stream = Py_None, *version = Py_None, *device = Py_None;
	PyObject *copy = Py_None, *capsule = NULL;
	tensor *t = (tensor *)self;
	struct lent *l;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names,
		    &stream, &version, &device, &copy))
		return NULL;
	if (copy == Py_True) {
		PyObject *own = PyObject_CallFunctionObjArgs(
			(PyObject *)tensor_type, self, NULL);

		if (own == NULL)
			return NULL;
		capsule = exchange_dlpack(own, NULL, NULL);
		Py_DECREF(own);
		return capsule;
	}
	if (!context_enter(t->c))
		return NULL;
	l = lend(t);
	context_leave(t->c);
	if (l == NULL)
		return NULL;
	capsule = PyCapsule_New(&l->m, "dltensor", end_capsule);
	if (capsule == NULL)
		end_lent(l);
	return capsule;
}

PyObject *exchange_dlpack_device(PyObject *self, PyObject *unused)
{
	const char *device = tn_device_of(((tensor *)self)->x);
	const char *number = device != NULL ? strchr(device, ':') : NULL;

	(void)unused;
	if (device == NULL)
		return error_say("tensor.handle", "this tensor has ended");
	if (strncmp(device, "cuda", 4) == 0)
		return Py_BuildValue("ii", GPU, number != NULL ? atoi(number + 1) : 0);
	return Py_BuildValue("ii", CPU, 0);
}

/* ---- in: memory of others as a tensor ---- */

struct taken {
	tn_dl_managed m;
	tn_dl_managed *other; /* of DLPack; NULL: b is what is held */
	Py_buffer b;
	int64_t shape[TN_MAX_RANK], strides[TN_MAX_RANK];
};

static void end_taken(void *arg)
{
	struct taken *t = arg;

	if (t->other != NULL && t->other->deleter != NULL)
		t->other->deleter(t->other);
	else if (t->other == NULL)
		PyBuffer_Release(&t->b);
	free(t);
}

static void delete_taken(tn_dl_managed *m)
{
	/* without room for the note it is never let go of */
	(void)context_later(end_taken, m->manager);
}

static PyObject *take(context *c, struct taken *t)
{
	place p = place_here();
	tn_tensor *x = tn_at_dlpack_import(p.file, p.line, c->c, &t->m);

	return tensor_wrap(c, x);
}

static PyObject *take_buffer(context *c, PyObject *o)
{
	struct taken *t = calloc(1, sizeof *t);
	PyObject *x = NULL;
	tn_dtype type;

	if (t == NULL)
		return PyErr_NoMemory();
	if (PyObject_GetBuffer(o, &t->b, PyBUF_WRITABLE | PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
		free(t);
		/* read-only, or it has no strides: a copy */
		PyErr_Clear();
		return (PyObject *)convert(c, o, LIKE_NOTHING);
	}
	if (!dtype_of_format(t->b.format, t->b.itemsize, &type) ||
		t->b.ndim > TN_MAX_RANK || type == TN_BOOL) {
		end_taken(t);
		return (PyObject *)convert(c, o, LIKE_NOTHING);
	}
	for (int i = 0; i < t->b.ndim; i++) {
		t->shape[i] = t->b.shape[i];
		t->strides[i] = t->b.strides[i] / t->b.itemsize;
		if (t->b.strides[i] % t->b.itemsize != 0) {
			end_taken(t);
			return (PyObject *)convert(c, o, LIKE_NOTHING);
		}
	}
	t->m = (tn_dl_managed){{t->b.buf, {CPU, 0}, t->b.ndim,
				       {(uint8_t)(tn_dtype_is_float(type) ? 2
						  : tn_dtype_name(type)[0] == 'u'
							  ? 1
							  : 0),
					       (uint8_t)(t->b.itemsize * 8), 1},
				       t->shape, t->strides, 0},
		t, delete_taken};
	x = take(c, t);
	if (x == NULL)
		end_taken(t);
	return x;
}

/* Are the elements of o on a GPU? -1: an error of Python. */
static int is_on_gpu(PyObject *o)
{
	PyObject *device;
	long type;

	if (!PyObject_HasAttrString(o, "__dlpack_device__"))
		return 0;
	device = PyObject_CallMethod(o, "__dlpack_device__", NULL);
	if (device == NULL)
		return -1;
	if (!PyTuple_Check(device) || PyTuple_Size(device) != 2) {
		Py_DECREF(device);
		return 0;
	}
	type = PyLong_AsLong(PyTuple_GetItem(device, 0));
	Py_DECREF(device);
	return type == -1 && PyErr_Occurred() ? -1 : type == GPU;
}

/* o.__dlpack__(): elements on a GPU are ready for what this context's stream does
 * from now on. */
static PyObject *ask_for_capsule(context *c, PyObject *o)
{
	PyObject *fn, *none, *stream, *capsule = NULL;
	int on_gpu = is_on_gpu(o);
	void *s = on_gpu == 1 ? tn_device_stream(c->c) : NULL;

	if (on_gpu < 0)
		return NULL;
	if (s == NULL)
		return PyObject_CallMethod(o, "__dlpack__", NULL);
	fn = PyObject_GetAttrString(o, "__dlpack__");
	none = PyTuple_New(0);
	stream = Py_BuildValue("{s:N}", "stream", PyLong_FromVoidPtr(s));
	if (fn != NULL && none != NULL && stream != NULL)
		capsule = PyObject_Call(fn, none, stream);
	Py_XDECREF(fn);
	Py_XDECREF(none);
	Py_XDECREF(stream);
	return capsule;
}

static PyObject *take_dlpack(context *c, PyObject *o)
{
	PyObject *capsule = ask_for_capsule(c, o), *x = NULL;
	struct taken *t;

	if (capsule == NULL)
		return NULL;
	if (!PyCapsule_IsValid(capsule, "dltensor")) {
		Py_DECREF(capsule);
		return error_say("dlpack.capsule",
			"__dlpack__() gave no capsule \"dltensor\", or one that somebody has taken");
	}
	t = calloc(1, sizeof *t);
	if (t != NULL) {
		t->other = PyCapsule_GetPointer(capsule, "dltensor");
		t->m = (tn_dl_managed){t->other->tensor, t, delete_taken};
		x = take(c, t);
		if (x != NULL)
			PyCapsule_SetName(capsule, "used_dltensor");
		else
			free(t);
	} else {
		PyErr_NoMemory();
	}
	Py_DECREF(capsule);
	return x;
}

static PyObject *from_dlpack(PyObject *module, PyObject *o)
{
	context *c = context_here();
	PyObject *x;

	(void)module;
	if (c == NULL || !context_enter(c))
		return NULL;
	x = take_dlpack(c, o);
	context_leave(c);
	return x;
}

static PyObject *asarray(PyObject *module, PyObject *o)
{
	context *c = context_here();
	PyObject *x;

	(void)module;
	if (c == NULL || !context_enter(c))
		return NULL;
	x = !tensor_is(o) && PyObject_CheckBuffer(o) && !PyBytes_Check(o)
		    ? take_buffer(c, o)
		    : (PyObject *)convert(c, o, LIKE_NOTHING);
	context_leave(c);
	return x;
}

static PyMethodDef methods[] = {
	{"from_dlpack", from_dlpack, METH_O,
		"from_dlpack(x)\n--\n\nA tensor on the memory of an object with __dlpack__, such as a tensor of PyTorch.\n\n"
		"Row-major memory is shared: writes to one are seen by the other. Other memory is copied."},
	{"asarray", asarray, METH_O,
		"asarray(x)\n--\n\nA tensor on the memory of an object with the buffer protocol, such as an array of NumPy.\n\n"
		"Memory that is row-major and can be written is shared. All else is copied, as by Tensor(x)."},
	{0}};

int exchange_init(PyObject *module)
{
	return PyModule_AddFunctions(module, methods);
}
