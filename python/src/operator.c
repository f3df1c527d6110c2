/*
 * operator.c: + - * / and the rest on tensors. Operands of different dtypes meet in
 * the dtype that holds both (dtype_common); plain numbers take the tensor's, if they
 * are of its kind.
 */
#include "python.h"

/* Which row an operator is, by the kind of the dtype that both meet in. */
typedef struct op {
	const char *real, *integer, *truth; /* NULL: refused */
	const char *sign;
} op;

static bool is_operand(PyObject *o)
{
	return tensor_is(o) || PyLong_Check(o) || PyFloat_Check(o) ||
	       PyList_Check(o) || PyTuple_Check(o) || PyObject_CheckBuffer(o) ||
	       (!PyUnicode_Check(o) && PyNumber_Check(o));
}

static tensor *cast(context *c, tensor *x, tn_dtype t)
{
	tn_attr to = {.name = "to", .kind = TN_ATTR_DTYPE, .dtype = t};

	return tn_tensor_dtype(x->x) == t
		       ? (tensor *)Py_NewRef((PyObject *)x)
		       : (tensor *)row_call(c, "cast", 1, &x, 1, &to);
}

/* Both in one dtype: a plain number in the tensor's. New references in pair. */
static bool meet(context *c, PyObject *x, PyObject *y, bool real, tensor **pair, place p)
{
	tensor *t = (tensor *)(tensor_is(x) ? x : y), *given[2];
	tn_dtype like, common;
	bool good = false;

	if (!tn_is_valid(t->x)) {
		error_say("tensor.handle", "this tensor has ended");
		return false;
	}
	like = tn_tensor_dtype(t->x);
	given[0] = convert_at(c, x, (int)like, p);
	given[1] = given[0] != NULL ? convert_at(c, y, (int)like, p) : NULL;
	if (given[1] != NULL && tn_is_valid(given[0]->x) && tn_is_valid(given[1]->x)) {
		common = dtype_common(tn_tensor_dtype(given[0]->x),
			tn_tensor_dtype(given[1]->x));
		if (real && !tn_dtype_is_float(common))
			common = TN_F32;
		pair[0] = cast(c, given[0], common);
		pair[1] = pair[0] != NULL ? cast(c, given[1], common) : NULL;
		good = pair[1] != NULL;
		if (!good)
			Py_XDECREF((PyObject *)pair[0]);
	} else if (!PyErr_Occurred()) {
		error_say("tensor.handle", "an operand has ended");
	}
	Py_XDECREF((PyObject *)given[0]);
	Py_XDECREF((PyObject *)given[1]);
	return good;
}

static const char *row_of(const op *p, tn_dtype t)
{
	return tn_dtype_is_float(t) ? p->real : t == TN_BOOL ? p->truth : p->integer;
}

static PyObject *unsupported(const op *p, tn_dtype t)
{
	PyErr_Format(PyExc_TypeError, "%s of %s tensors is not defined", p->sign,
		tn_dtype_name(t));
	return NULL;
}

static PyObject *binary(PyObject *x, PyObject *y, const op *p, bool real)
{
	tensor *t = (tensor *)(tensor_is(x) ? x : y), *pair[2];
	const char *row;
	PyObject *o;
	place here;

	if (!is_operand(x) || !is_operand(y)) {
		Py_RETURN_NOTIMPLEMENTED;
	}
	if (!context_enter(t->c))
		return NULL;
	here = place_here();
	if (!meet(t->c, x, y, real, pair, here)) {
		context_leave(t->c);
		return NULL;
	}
	row = row_of(p, tn_tensor_dtype(pair[0]->x));
	o = row != NULL ? row_call_at(t->c, row, 2, pair, 0, NULL, here)
			: unsupported(p, tn_tensor_dtype(pair[0]->x));
	Py_DECREF((PyObject *)pair[0]);
	Py_DECREF((PyObject *)pair[1]);
	context_leave(t->c);
	return o;
}

/* x op= y: x's elements, seen by every view, in x's dtype. */
static PyObject *in_place(PyObject *self, PyObject *y, const op *p, bool real)
{
	PyObject *v = binary(self, y, p, real), *o;
	tensor *t = (tensor *)self;

	if (v == NULL || v == Py_NotImplemented)
		return v;
	if (tn_dtype_is_float(tn_tensor_dtype(((tensor *)v)->x)) &&
		!tn_dtype_is_float(tn_tensor_dtype(t->x))) {
		Py_DECREF(v);
		PyErr_Format(PyExc_TypeError, "%s=: the result has floats, and %s elements cannot hold them",
			p->sign, tn_dtype_name(tn_tensor_dtype(t->x)));
		return NULL;
	}
	o = PyObject_CallMethod(self, "copy_", "O", v);
	Py_DECREF(v);
	return o;
}

static PyObject *unary(PyObject *self, const op *p)
{
	tensor *t = (tensor *)self;
	const char *row;
	PyObject *o;

	if (!tn_is_valid(t->x))
		return error_say("tensor.handle", "this tensor has ended");
	row = row_of(p, tn_tensor_dtype(t->x));
	if (row == NULL)
		return unsupported(p, tn_tensor_dtype(t->x));
	if (!context_enter(t->c))
		return NULL;
	o = row_call(t->c, row, 1, &t, 0, NULL);
	context_leave(t->c);
	return o;
}

/* name, real, integer, truth, sign, both meet in floats */
#define BINARY(name, r, i, b, sign, floats)                                    \
	static const op op_##name = {r, i, b, sign};                           \
	static PyObject *name(PyObject *x, PyObject *y)                        \
	{                                                                      \
		return binary(x, y, &op_##name, floats);                       \
	}                                                                      \
	static PyObject *name##_here(PyObject *x, PyObject *y)                 \
	{                                                                      \
		return in_place(x, y, &op_##name, floats);                     \
	}
BINARY(add, "add", "add", "or", "+", false)
BINARY(subtract, "sub", "sub", NULL, "-", false)
BINARY(multiply, "mul", "mul", "and", "*", false)
BINARY(divide, "div", "div", "div", "/", true)
BINARY(remainder_, "mod", "mod", NULL, "%", false)
BINARY(bit_and, NULL, "bit_and", "and", "&", false)
BINARY(bit_or, NULL, "bit_or", "or", "|", false)
BINARY(bit_xor, NULL, "bit_xor", "xor", "^", false)
BINARY(left, NULL, "shl", NULL, "<<", false)
BINARY(right, NULL, "shr", NULL, ">>", false)

static const op op_matmul = {"matmul", "matmul", NULL, "@"};
static PyObject *matmul(PyObject *x, PyObject *y)
{
	return binary(x, y, &op_matmul, false);
}

#define UNARY(name, r, i, b, sign)                                             \
	static const op op_##name = {r, i, b, sign};                           \
	static PyObject *name(PyObject *x)                                     \
	{                                                                      \
		return unary(x, &op_##name);                                   \
	}
UNARY(negative, "neg", "neg", NULL, "-")
UNARY(absolute, "abs", "abs", NULL, "abs")
UNARY(invert, NULL, "bit_not", "not", "~")

static PyObject *positive(PyObject *self)
{
	return Py_NewRef(self);
}

/* Rounded down, also where the row `div` of integers is not: x - x mod y. */
static PyObject *floor_divide(PyObject *x, PyObject *y)
{
	static const op floor_of = {"floor", NULL, NULL, "//"};
	tensor *t = (tensor *)(tensor_is(x) ? x : y);
	PyObject *m, *d, *o;

	if (!is_operand(x) || !is_operand(y)) {
		Py_RETURN_NOTIMPLEMENTED;
	}
	(void)t;
	m = remainder_(x, y);
	if (m == NULL || m == Py_NotImplemented)
		return m;
	if (tn_dtype_is_float(tn_tensor_dtype(((tensor *)m)->x))) {
		Py_DECREF(m);
		d = divide(x, y);
		o = d != NULL ? unary(d, &floor_of) : NULL;
		Py_XDECREF(d);
		return o;
	}
	d = subtract(x, m);
	Py_DECREF(m);
	o = d != NULL ? binary(d, y, &op_divide, false) : NULL;
	Py_XDECREF(d);
	return o;
}

static PyObject *power(PyObject *x, PyObject *y, PyObject *modulus)
{
	static const op pow_of = {"pow", "pow", NULL, "**"};
	static const op square_of = {"square", "square", NULL, "**"};

	if (modulus != Py_None) {
		PyErr_SetString(PyExc_TypeError, "pow() with a modulus is not defined");
		return NULL;
	}
	if (tensor_is(x) && PyLong_Check(y) && PyLong_AsLong(y) == 2)
		return unary(x, &square_of);
	PyErr_Clear();
	return binary(x, y, &pow_of, false);
}

static PyObject *compare(PyObject *x, PyObject *y, int how)
{
	static const char *const rows[] = {"lt", "le", "eq", "ne", "gt", "ge"};
	const char *row = rows[how];
	const op p = {row, row, row, row};

	return binary(x, y, &p, false);
}

static Py_hash_t hash(PyObject *self)
{
	return (Py_hash_t)((uintptr_t)self >> 4);
}

PyType_Slot operator_slots[] = {{Py_nb_add, add}, {Py_nb_subtract, subtract},
	{Py_nb_multiply, multiply}, {Py_nb_true_divide, divide},
	{Py_nb_floor_divide, floor_divide}, {Py_nb_remainder, remainder_},
	{Py_nb_power, power}, {Py_nb_matrix_multiply, matmul},
	{Py_nb_negative, negative}, {Py_nb_positive, positive},
	{Py_nb_absolute, absolute}, {Py_nb_invert, invert},
	{Py_nb_and, bit_and}, {Py_nb_or, bit_or}, {Py_nb_xor, bit_xor},
	{Py_nb_lshift, left}, {Py_nb_rshift, right},
	{Py_nb_inplace_add, add_here}, {Py_nb_inplace_subtract, subtract_here},
	{Py_nb_inplace_multiply, multiply_here},
	{Py_nb_inplace_true_divide, divide_here},
	{Py_nb_inplace_remainder, remainder__here},
	{Py_nb_inplace_and, bit_and_here}, {Py_nb_inplace_or, bit_or_here},
	{Py_nb_inplace_xor, bit_xor_here}, {Py_nb_inplace_lshift, left_here},
	{Py_nb_inplace_rshift, right_here}, {Py_tp_richcompare, compare},
	{Py_tp_hash, hash}, {0}};
