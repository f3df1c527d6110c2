/*
 * index.c: x[...] and x[...] = v. Integers, slices, None and ... give views; one
 * array of integers takes elements of an axis; a mask can only be written.
 */
#include "python.h"

/* The view so far, and where it stands in the key. */
struct walk {
	context *c;
	tensor *x;
	int64_t axis;
	tensor *ids;   /* an array of integers, not applied yet; NULL: none */
	int64_t ids_axis;
};

static bool put(struct walk *w, PyObject *x)
{
	Py_DECREF((PyObject *)w->x);
	w->x = (tensor *)x;
	return x != NULL;
}

static bool unary(struct walk *w, const char *row, int32_t n, const tn_attr *attrs)
{
	return put(w, row_call(w->c, row, 1, &w->x, n, attrs));
}

static int64_t extent(const struct walk *w)
{
	return tn_tensor_shape(w->x->x)[w->axis];
}

static bool has_axis(const struct walk *w)
{
	if (w->axis < tn_tensor_rank(w->x->x))
		return true;
	PyErr_Format(PyExc_IndexError, "too many indices: the tensor has %d axes",
		(int)tn_tensor_rank(w->x->x));
	return false;
}

static bool integer(struct walk *w, PyObject *o)
{
	PyObject *n = PyNumber_Index(o);
	tn_attr a[2] = {{.name = "axis", .kind = TN_ATTR_INT, .i = w->axis},
		{.name = "index", .kind = TN_ATTR_INT}};
	int64_t i;

	if (n == NULL || !has_axis(w)) {
		Py_XDECREF(n);
		return false;
	}
	i = PyLong_AsLongLong(n);
	Py_DECREF(n);
	if (i == -1 && PyErr_Occurred())
		return false;
	if (i < -extent(w) || i >= extent(w)) {
		PyErr_Format(PyExc_IndexError,
			"index %lld is outside of axis %lld, which has %lld elements",
			(long long)i, (long long)w->axis, (long long)extent(w));
		return false;
	}
	a[1].i = i < 0 ? i + extent(w) : i;
	return unary(w, "select", 2, a);
}

static bool slice(struct walk *w, PyObject *o)
{
	Py_ssize_t start, stop, step, n;
	int64_t axis = w->axis, from, count, by;
	tn_attr a[4] = {{.name = "axes", .kind = TN_ATTR_INTS, .ints = &axis, .n_ints = 1},
		{.name = "start", .kind = TN_ATTR_INTS, .ints = &from, .n_ints = 1},
		{.name = "count", .kind = TN_ATTR_INTS, .ints = &count, .n_ints = 1},
		{.name = "step", .kind = TN_ATTR_INTS, .ints = &by, .n_ints = 1}};

	if (!has_axis(w) || PySlice_Unpack(o, &start, &stop, &step) < 0)
		return false;
	n = PySlice_AdjustIndices((Py_ssize_t)extent(w), &start, &stop, step);
	w->axis++;
	if (start == 0 && step == 1 && n == tn_tensor_shape(w->x->x)[axis])
		return true;
	from = n > 0 ? start : 0; /* of nothing: anywhere */
	count = n;
	by = n > 0 ? step : 1;
	return unary(w, "slice", 4, a);
}

static bool new_axis(struct walk *w)
{
	tn_attr a = {.name = "axis", .kind = TN_ATTR_INT, .i = w->axis};

	w->axis++;
	return unary(w, "unsqueeze", 1, &a);
}

/* An array of integers: kept, to be taken or written at the end. */
static bool array(struct walk *w, PyObject *o)
{
	if (!has_axis(w))
		return false;
	if (w->ids != NULL) {
		error_say("python.index",
			"a second array of indices: use gather_nd, which takes indices of several axes");
		return false;
	}
	w->ids = convert(w->c, o, LIKE_NOTHING);
	if (w->ids == NULL)
		return false;
	if (!tn_is_valid(w->ids->x) || !tn_dtype_is_int(tn_tensor_dtype(w->ids->x))) {
		error_say("python.index",
			"an index is an integer, a slice, None, ... or an array of integers; "
			"which elements a mask takes is not known before it is computed: "
			"use where, or nonzero and gather_nd");
		return false;
	}
	w->ids_axis = w->axis++;
	return true;
}

static Py_ssize_t n_axes(PyObject *key)
{
	Py_ssize_t n = 0;

	for (Py_ssize_t i = 0; i < PyTuple_Size(key); i++) {
		PyObject *o = PyTuple_GetItem(key, i);

		n += o != Py_None && o != Py_Ellipsis;
	}
	return n;
}

static bool step(struct walk *w, PyObject *o, int64_t rest)
{
	if (o == Py_Ellipsis) {
		w->axis += rest > 0 ? rest : 0;
		return true;
	}
	if (o == Py_None)
		return new_axis(w);
	if (PySlice_Check(o))
		return slice(w, o);
	if (tensor_is(o) || PyList_Check(o) ||
		(PyObject_CheckBuffer(o) && !PyLong_Check(o)))
		return tensor_is(o) && tn_is_valid(((tensor *)o)->x) &&
					tn_tensor_rank(((tensor *)o)->x) == 0 &&
					tn_dtype_is_int(tn_tensor_dtype(((tensor *)o)->x))
			       ? integer(w, o)
			       : array(w, o);
	if (PyBool_Check(o)) {
		error_say("python.index", "True and False are no indices");
		return false;
	}
	return integer(w, o);
}

static bool go(struct walk *w, PyObject *key)
{
	PyObject *list = PyTuple_Check(key) ? Py_NewRef(key) : PyTuple_Pack(1, key);
	int dots = 0;
	bool good = list != NULL;
	int64_t rest;

	if (!good)
		return false;
	rest = tn_tensor_rank(w->x->x) - n_axes(list);
	for (Py_ssize_t i = 0; good && i < PyTuple_Size(list); i++) {
		PyObject *o = PyTuple_GetItem(list, i);

		if (o == Py_Ellipsis && ++dots > 1) {
			PyErr_SetString(PyExc_IndexError, "more than one ...");
			good = false;
		} else {
			good = step(w, o, rest);
		}
	}
	Py_DECREF(list);
	return good;
}

static bool begin(struct walk *w, PyObject *self)
{
	tensor *t = (tensor *)self;

	*w = (struct walk){t->c, (tensor *)Py_NewRef(self), 0, NULL, 0};
	if (!tn_is_valid(t->x))
		error_say("tensor.handle", "this tensor has ended");
	return tn_is_valid(t->x) && context_enter(t->c);
}

static void end(struct walk *w)
{
	Py_XDECREF((PyObject *)w->x);
	Py_XDECREF((PyObject *)w->ids);
}

PyObject *index_get(PyObject *self, PyObject *key)
{
	struct walk w;
	PyObject *o = NULL;

	if (begin(&w, self)) {
		if (go(&w, key) && w.ids != NULL) {
			tensor *in[2] = {w.x, w.ids};
			tn_attr a = {.name = "axis", .kind = TN_ATTR_INT, .i = w.ids_axis};

			o = row_call(w.c, "take", 2, in, 1, &a);
		} else if (w.x != NULL && !PyErr_Occurred()) {
			o = Py_NewRef((PyObject *)w.x);
		}
		if (o == self) /* x[...]: a view of all of it */
			o = (Py_DECREF(o), row_call(w.c, "identity", 1, &w.x, 0, NULL));
		context_leave(w.c);
	}
	end(&w);
	return o;
}

/* value in x's dtype and in this shape. */
static tensor *fitted(struct walk *w, PyObject *value, int32_t rank, const int64_t *shape)
{
	tensor *v = convert_to(w->c, value, tn_tensor_dtype(w->x->x)), *all;
	tn_attr a = {.name = "shape", .kind = TN_ATTR_INTS, .ints = shape, .n_ints = rank};

	if (v == NULL || (tn_tensor_rank(v->x) == rank && (rank == 0 ||
		memcmp(tn_tensor_shape(v->x), shape, (size_t)rank * sizeof *shape) == 0)))
		return v;
	all = (tensor *)row_call(w->c, "broadcast_to", 1, &v, 1, &a);
	Py_DECREF((PyObject *)v);
	return all;
}

static int write_view(struct walk *w, tensor *v)
{
	place p = place_here();
	tn_status s = v != NULL ? tn_at_copy_(p.file, p.line, w->x->x, v->x) : TN_EINVAL;

	if (v != NULL && s < 0)
		error_raise(w->c);
	Py_XDECREF((PyObject *)v);
	return s < 0 ? -1 : 0;
}

/* Elements ids of an axis are replaced. */
static int write_ids(struct walk *w, PyObject *value)
{
	int64_t shape[TN_MAX_RANK];
	int32_t rank = tn_tensor_rank(w->x->x);
	tn_attr a = {.name = "axis", .kind = TN_ATTR_INT, .i = w->ids_axis};
	tensor *in[3] = {w->x, w->ids, NULL}, *next;

	if (tn_tensor_rank(w->ids->x) != 1) {
		error_say("python.index", "indices of elements that are written have one axis");
		return -1;
	}
	for (int32_t i = 0; i < rank; i++)
		shape[i] = i == w->ids_axis ? tn_tensor_shape(w->ids->x)[0]
					    : tn_tensor_shape(w->x->x)[i];
	in[2] = fitted(w, value, rank, shape);
	if (in[2] == NULL)
		return -1;
	next = (tensor *)row_call(w->c, "index_set", 3, in, 1, &a);
	Py_DECREF((PyObject *)in[2]);
	return next != NULL ? write_view(w, next) : -1;
}

static int write_mask(struct walk *w, PyObject *mask, PyObject *value)
{
	tensor *v = convert_to(w->c, value, tn_tensor_dtype(w->x->x));
	tensor *in[3] = {(tensor *)mask, v, w->x}, *next;
	int code;

	if (v == NULL)
		return -1;
	next = (tensor *)row_call(w->c, "where", 3, in, 0, NULL);
	Py_DECREF((PyObject *)v);
	code = next != NULL ? write_view(w, next) : -1;
	return code;
}

int index_set(PyObject *self, PyObject *key, PyObject *value)
{
	struct walk w;
	int code = -1;
	bool mask = tensor_is(key) && tn_is_valid(((tensor *)key)->x) &&
		    tn_tensor_dtype(((tensor *)key)->x) == TN_BOOL;

	if (value == NULL) {
		PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted");
		return -1;
	}
	if (begin(&w, self)) {
		if (mask)
			code = write_mask(&w, key, value);
		else if (go(&w, key))
			code = w.ids != NULL
				       ? write_ids(&w, value)
				       : write_view(&w, fitted(&w, value,
						 tn_tensor_rank(w.x->x),
						 tn_tensor_shape(w.x->x)));
		context_leave(w.c);
	}
	end(&w);
	return code;
}
