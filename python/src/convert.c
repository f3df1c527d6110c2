/*
 * convert.c: tensors from numbers, nested lists and buffers of Python, and back.
 */
#include "python.h"

#include <stdlib.h>

/* ---- numbers ---- */

bool number_dtype(PyObject *o, int like, tn_dtype *out)
{
	bool integer = like >= 0 && tn_dtype_is_int((tn_dtype)like);
	bool real = like >= 0 && tn_dtype_is_float((tn_dtype)like);

	if (PyBool_Check(o)) {
		*out = like >= 0 ? (tn_dtype)like : TN_BOOL;
		return true;
	}
	if (PyLong_Check(o)) {
		*out = integer || real ? (tn_dtype)like : TN_I64;
		return true;
	}
	if (PyFloat_Check(o)) {
		*out = real ? (tn_dtype)like : TN_F32;
		return true;
	}
	return false;
}

/* One number at element i of an array of this type. */
static bool put(tn_dtype t, void *data, int64_t i, PyObject *o)
{
	if (tn_dtype_is_float(t)) {
		double v = PyFloat_AsDouble(o);

		if (v == -1 && PyErr_Occurred())
			return false;
		tn_set_f64(t, data, i, v);
	} else if (t == TN_BOOL) {
		int v = PyObject_IsTrue(o);

		if (v < 0)
			return false;
		tn_set_i64(t, data, i, v);
	} else {
		PyObject *n = PyNumber_Index(o);
		int64_t v;

		if (n == NULL)
			return false;
		v = t == TN_U64 ? (int64_t)PyLong_AsUnsignedLongLong(n)
				: PyLong_AsLongLong(n);
		Py_DECREF(n);
		if (v == -1 && PyErr_Occurred())
			return false;
		tn_set_i64(t, data, i, v);
		if (t != TN_U64 && tn_get_i64(t, data, i) != v) {
			error_say("python.number", "%lld is no %s", (long long)v,
				tn_dtype_name(t));
			return false;
		}
	}
	return true;
}

/* ---- nested lists ---- */

struct nest {
	int32_t rank;
	int64_t shape[TN_MAX_RANK], n_elems;
	int kind; /* of the numbers: 0 bool, 1 int, 2 float; -1: none yet */
	tn_dtype t;
	void *data;
	int64_t at;
};

static bool is_list(PyObject *o)
{
	return PyList_Check(o) || PyTuple_Check(o);
}

static bool measure(struct nest *n, PyObject *o)
{
	n->n_elems = 1;
	while (is_list(o)) {
		Py_ssize_t len = PySequence_Size(o);

		if (n->rank == TN_MAX_RANK) {
			error_say("python.list", "lists are nested more than %d deep",
				TN_MAX_RANK);
			return false;
		}
		n->shape[n->rank++] = len;
		if (__builtin_mul_overflow(n->n_elems, (int64_t)len, &n->n_elems) ||
			n->n_elems > PY_SSIZE_T_MAX / 16) {
			PyErr_NoMemory();
			return false;
		}
		if (len == 0)
			break;
		o = PyList_Check(o) ? PyList_GetItem(o, 0) : PyTuple_GetItem(o, 0);
	}
	return true;
}

/* Calls visit with every number, in order; refuses lists that are not even. */
static bool walk(struct nest *n, PyObject *o, int32_t axis,
	bool (*visit)(struct nest *n, PyObject *o))
{
	Py_ssize_t len;

	if (axis == n->rank && !is_list(o))
		return visit(n, o);
	len = is_list(o) ? PySequence_Size(o) : -1;
	if (axis == n->rank || len != n->shape[axis]) {
		error_say("python.list",
			"lists of one axis have different lengths, or numbers stand beside lists (axis %d)",
			(int)axis);
		return false;
	}
	for (Py_ssize_t i = 0; i < len; i++) {
		/* its own reference: __index__ of a number may change the list */
		PyObject *e = PySequence_GetItem(o, i);
		bool good = e != NULL && walk(n, e, axis + 1, visit);

		Py_XDECREF(e);
		if (!good)
			return false;
	}
	return true;
}

static bool see(struct nest *n, PyObject *o)
{
	int kind = PyBool_Check(o) ? 0 : PyLong_Check(o) ? 1 : 2;

	if (tensor_is(o))
		kind = tn_dtype_is_int(tn_tensor_dtype(((tensor *)o)->x)) ? 1 : 2;
	n->kind = kind > n->kind ? kind : n->kind;
	return true;
}

static bool set(struct nest *n, PyObject *o)
{
	return put(n->t, n->data, n->at++, o);
}

/* t NULL: by the numbers, like this dtype if it is of their kind. */
static tensor *from_list(context *c, PyObject *o, const tn_dtype *t, int like)
{
	static const tn_dtype of_kind[] = {TN_BOOL, TN_I64, TN_F32};
	struct nest n = {.kind = -1};
	place p = place_here();
	tensor *x = NULL;

	if (!measure(&n, o) || !walk(&n, o, 0, see))
		return NULL;
	n.t = n.kind < 0 ? TN_F32 : of_kind[n.kind];
	if (like >= 0 && ((n.kind <= 1 && tn_dtype_is_int((tn_dtype)like)) ||
				 tn_dtype_is_float((tn_dtype)like)))
		n.t = (tn_dtype)like;
	if (t != NULL)
		n.t = *t;
	n.data = calloc((size_t)n.n_elems + 1, tn_dtype_bytes(n.t));
	if (n.data == NULL)
		return (tensor *)PyErr_NoMemory();
	if (walk(&n, o, 0, set))
		x = (tensor *)tensor_wrap(c, tn_at_tensor_new(p.file, p.line, c->c,
			n.t, n.rank, n.shape, n.data));
	free(n.data);
	return x;
}

/* ---- buffers ---- */

static tensor *from_buffer(context *c, PyObject *o)
{
	place p = place_here();
	int64_t shape[TN_MAX_RANK];
	tensor *x = NULL;
	void *dense = NULL;
	Py_buffer b;
	tn_dtype t;

	if (PyObject_GetBuffer(o, &b, PyBUF_STRIDES | PyBUF_FORMAT) < 0)
		return NULL;
	if (!dtype_of_format(b.format, b.itemsize, &t)) {
		error_say("python.format",
			"elements of format \"%.40s\" are no dtype of Tenon", b.format);
	} else if (b.ndim > TN_MAX_RANK) {
		error_say("tensor.shape", "%d axes; a tensor has up to %d", b.ndim,
			TN_MAX_RANK);
	} else {
		dense = PyBuffer_IsContiguous(&b, 'C') ? b.buf
						       : malloc((size_t)b.len + 1);
		for (int i = 0; i < b.ndim; i++)
			shape[i] = b.shape[i];
		if (dense == NULL)
			PyErr_NoMemory();
		else if (dense == b.buf || PyBuffer_ToContiguous(dense, &b, b.len, 'C') == 0)
			x = (tensor *)tensor_wrap(c, tn_at_tensor_new(p.file,
				p.line, c->c, t, b.ndim, shape, dense));
		if (dense != b.buf)
			free(dense);
	}
	PyBuffer_Release(&b);
	return x;
}

/* ---- all of them ---- */

static tensor *from_number(context *c, PyObject *o, tn_dtype t, place p)
{
	uint64_t cell = 0;

	return put(t, &cell, 0, o)
		       ? (tensor *)tensor_wrap(c, tn_at_tensor_new(p.file, p.line,
				 c->c, t, 0, NULL, &cell))
		       : NULL;
}

static tensor *refuse(PyObject *o)
{
	PyObject *name = PyType_GetName(Py_TYPE(o));
	PyObject *text = name != NULL ? PyUnicode_AsUTF8String(name) : NULL;

	if (text != NULL)
		PyErr_Format(PyExc_TypeError,
			"%s is no tensor: accepted are tensors, numbers, nested "
			"lists, and objects with the buffer protocol",
			PyBytes_AsString(text));
	Py_XDECREF(text);
	Py_XDECREF(name);
	return NULL;
}

/* An object that is a number by __float__ or __index__ alone. */
static tensor *from_other(context *c, PyObject *o, int like)
{
	PyObject *n = PyNumber_Index(o);
	tensor *x = NULL;
	tn_dtype t;

	if (n == NULL) {
		PyErr_Clear();
		n = PyNumber_Float(o);
	}
	if (n == NULL || PyUnicode_Check(o)) {
		PyErr_Clear();
		Py_XDECREF(n);
		return refuse(o);
	}
	if (number_dtype(n, like, &t))
		x = from_number(c, n, t, place_here());
	Py_DECREF(n);
	return x;
}

tensor *convert_at(context *c, PyObject *o, int like, place p)
{
	tn_dtype t;

	if (tensor_is(o))
		return (tensor *)Py_NewRef(o);
	return number_dtype(o, like, &t) ? from_number(c, o, t, p) : convert(c, o, like);
}

tensor *convert(context *c, PyObject *o, int like)
{
	tn_dtype t;

	if (tensor_is(o))
		return (tensor *)Py_NewRef(o);
	if (number_dtype(o, like, &t))
		return from_number(c, o, t, place_here());
	if (is_list(o))
		return from_list(c, o, NULL, like);
	if (PyObject_CheckBuffer(o) && !PyBytes_Check(o))
		return from_buffer(c, o);
	return from_other(c, o, like);
}

tensor *convert_to(context *c, PyObject *o, tn_dtype t)
{
	tensor *x, *y;
	place p;

	if (is_list(o))
		return from_list(c, o, &t, LIKE_NOTHING);
	if (PyBool_Check(o) || PyLong_Check(o) || PyFloat_Check(o))
		return from_number(c, o, t, place_here());
	x = convert(c, o, (int)t);
	if (x == NULL || !tn_is_valid(x->x) || tn_tensor_dtype(x->x) == t)
		return x;
	p = place_here();
	y = (tensor *)tensor_wrap(x->c, tn_at_cast(p.file, p.line, x->x, t));
	Py_DECREF((PyObject *)x);
	return y;
}

/* ---- back ---- */

static PyObject *number_of(tn_dtype t, const void *data, int64_t i)
{
	if (tn_dtype_is_float(t))
		return PyFloat_FromDouble(tn_get_f64(t, data, i));
	if (t == TN_BOOL)
		return PyBool_FromLong(tn_get_i64(t, data, i) != 0);
	if (t == TN_U64)
		return PyLong_FromUnsignedLongLong((uint64_t)tn_get_i64(t, data, i));
	return PyLong_FromLongLong(tn_get_i64(t, data, i));
}

static PyObject *list_of(tn_dtype t, const void *data, int32_t rank,
	const int64_t *shape, int64_t *at)
{
	PyObject *list;

	if (rank == 0)
		return number_of(t, data, (*at)++);
	list = PyList_New((Py_ssize_t)shape[0]);
	for (int64_t i = 0; list != NULL && i < shape[0]; i++) {
		PyObject *o = list_of(t, data, rank - 1, shape + 1, at);

		if (o == NULL)
			Py_CLEAR(list);
		else
			PyList_SetItem(list, (Py_ssize_t)i, o);
	}
	return list;
}

PyObject *convert_list(tensor *x)
{
	tn_dtype t = tn_tensor_dtype(x->x);
	size_t n = (size_t)tn_tensor_n_elems(x->x) * tn_dtype_bytes(t);
	void *data = malloc(n + 1);
	place p = place_here();
	PyObject *o = NULL;
	int64_t at = 0;
	tn_status s;

	if (data == NULL)
		return PyErr_NoMemory();
	if (context_enter(x->c)) {
		HEAVY(s, tn_at_read(p.file, p.line, x->x, data, n));
		if (error_check(x->c, s))
			o = list_of(t, data, tn_tensor_rank(x->x),
				tn_tensor_shape(x->x), &at);
		context_leave(x->c);
	}
	free(data);
	return o;
}

int ints_of(PyObject *o, int64_t *out, int room, const char *what)
{
	Py_ssize_t n;

	if (PyLong_Check(o)) {
		out[0] = PyLong_AsLongLong(o);
		return out[0] == -1 && PyErr_Occurred() ? -1 : 1;
	}
	if (!PySequence_Check(o) || PyUnicode_Check(o) ||
		(n = PySequence_Size(o)) < 0) {
		PyErr_Format(PyExc_TypeError, "%s: an integer or a sequence of them", what);
		return -1;
	}
	if (n > room) {
		error_say("python.list", "%s has %zd elements; up to %d are accepted",
			what, n, room);
		return -1;
	}
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *e = PySequence_GetItem(o, i);
		PyObject *k = e != NULL ? PyNumber_Index(e) : NULL;

		Py_XDECREF(e);
		if (k == NULL)
			return -1;
		out[i] = PyLong_AsLongLong(k);
		Py_DECREF(k);
		if (out[i] == -1 && PyErr_Occurred())
			return -1;
	}
	return (int)n;
}
