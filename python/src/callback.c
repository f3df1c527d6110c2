/*
 * callback.c: functions of Python as bodies that the library calls: conditions and
 * loops here, compiled functions in function.c.
 *
 * The number of results of a body has to be said before it is called. A body that
 * gives another number fails, the number is returned, and the caller (in Python)
 * asks again: what fails leaves everything as it was.
 */
#include "python.h"

enum { MAX = TN_MAX_FUNCTION_ARGS };

static tn_status fail(callback *k, tn_status s)
{
	context *c = k->c;

	if (PyErr_Occurred() && c->raised[0] == NULL)
		PyErr_Fetch(&c->raised[0], &c->raised[1], &c->raised[2]);
	PyErr_Clear();
	tn_context_clear(c->c);
	return tn_fail(c->c, s, "python.body", "a function of Python failed");
}

static PyObject *arguments(callback *k, tn_tensor *const *in)
{
	PyObject *args = PyTuple_New(k->n_in);

	for (int i = 0; args != NULL && i < k->n_in; i++) {
		PyObject *t = tensor_wrap(k->c, in[i]);

		if (t == NULL) {
			Py_CLEAR(args);
		} else {
			((tensor *)t)->borrowed = true;
			PyTuple_SetItem(args, i, t);
		}
	}
	return args;
}

static tn_status call(callback *k, tn_tensor *const *in, tn_tensor **out)
{
	PyObject *args = arguments(k, in), *got;

	got = args != NULL ? PyObject_CallObject(k->call, args) : NULL;
	Py_XDECREF(args);
	if (got == NULL)
		return fail(k, TN_EINVAL);
	Py_XDECREF(k->held);
	k->held = got;
	if (!PyTuple_Check(got) || PyTuple_Size(got) != k->n_out) {
		k->n_found = PyTuple_Check(got) ? (int)PyTuple_Size(got) : 0;
		return fail(k, TN_EINVAL);
	}
	for (int i = 0; i < k->n_out; i++) {
		PyObject *o = PyTuple_GetItem(got, i);

		if (!tensor_is(o)) {
			error_say("compile.output", "output %d is not a tensor", i);
			return fail(k, TN_EINVAL);
		}
		out[i] = ((tensor *)o)->x;
	}
	return TN_OK;
}

tn_status callback_body(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	PyGILState_STATE g = PyGILState_Ensure();
	tn_status s = call(user, in, out);

	(void)c;
	PyGILState_Release(g);
	return s;
}

/* The first body that had another number of results than was said. */
static callback *mistaken(callback *const *all, int n_all)
{
	for (int i = 0; i < n_all; i++)
		if (all[i]->n_found >= 0)
			return all[i];
	return NULL;
}

static PyObject *failed(context *c, callback *const *all, int n_all)
{
	callback *k = mistaken(all, n_all);

	if (c->raised[0] != NULL) {
		tn_context_clear(c->c);
		PyErr_Restore(c->raised[0], c->raised[1], c->raised[2]);
		c->raised[0] = c->raised[1] = c->raised[2] = NULL;
		return NULL;
	}
	if (k == NULL)
		return error_raise(c);
	tn_context_clear(c->c);
	return PyLong_FromLong(k->n_found);
}

PyObject *callback_results(context *c, tn_status s, callback *const *all,
	int n_all, tn_tensor **out, int n)
{
	PyObject *o = s < 0 ? failed(c, all, n_all) : PyTuple_New(n);

	for (int i = 0; s >= 0 && o != NULL && i < n; i++) {
		PyObject *t = tensor_wrap(c, out[i]);

		if (t == NULL)
			Py_CLEAR(o);
		else
			PyTuple_SetItem(o, i, t);
	}
	for (int i = 0; i < n_all; i++) {
		Py_CLEAR(all[i]->held);
		all[i]->n_found = -1;
	}
	return o;
}

bool callback_operands(PyObject *list, tn_tensor **in, int room, int *n)
{
	Py_ssize_t len = PySequence_Size(list);

	if (len < 0)
		return false;
	if (len > room) {
		error_say("compile.count", "%zd tensors; up to %d are accepted", len, room);
		return false;
	}
	for (Py_ssize_t i = 0; i < len; i++) {
		PyObject *o = PySequence_GetItem(list, i);

		if (o == NULL)
			return false;
		if (!tensor_is(o)) {
			Py_DECREF(o);
			PyErr_SetString(PyExc_TypeError, "only tensors are expected here");
			return false;
		}
		in[i] = ((tensor *)o)->x;
		Py_DECREF(o); /* the list has it */
	}
	*n = (int)len;
	return true;
}

/* ---- conditions and loops ---- */

/* The library hands one user to both bodies of a region. */
static tn_status first(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	callback *const *both = user;

	return callback_body(c, both[0], in, out);
}

static tn_status second(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	callback *const *both = user;

	return callback_body(c, both[1], in, out);
}

/* _cond(test, then, otherwise, tensors, n_out) */
static PyObject *cond(PyObject *module, PyObject *args)
{
	callback a = {.n_found = -1}, b = {.n_found = -1}, *both[] = {&a, &b};
	tn_tensor *in[MAX], *out[MAX] = {NULL};
	place p = place_here();
	PyObject *list, *o;
	tensor *test;
	int n, n_out;
	tn_status s;

	(void)module;
	if (!PyArg_ParseTuple(args, "O!OOO!i:_cond", tensor_type, &test, &a.call,
		    &b.call, &PyList_Type, &list, &n_out) ||
		n_out > MAX || !callback_operands(list, in, MAX, &n) ||
		!context_enter(test->c))
		return NULL;
	a.c = b.c = test->c;
	a.n_in = b.n_in = n;
	a.n_out = b.n_out = n_out;
	s = tn_at_cond(tn_here(test->c->c, p.file, p.line), test->x, first, second,
		both, n, in, n_out, out);
	o = callback_results(test->c, s, both, 2, out, n_out);
	context_leave(test->c);
	return o;
}

static context *context_of(PyObject *list)
{
	PyObject *o = PyList_Size(list) > 0 ? PyList_GetItem(list, 0) : NULL;

	return o != NULL && tensor_is(o) ? ((tensor *)o)->c : context_here();
}

/* _while(test, body, tensors, rounds) */
static PyObject *loop_while(PyObject *module, PyObject *args)
{
	callback a = {.n_found = -1, .n_out = 1}, b = {.n_found = -1};
	callback *both[] = {&a, &b};
	tn_tensor *in[MAX], *out[MAX] = {NULL};
	place p = place_here();
	PyObject *list, *o;
	long long rounds;
	context *c;
	tn_status s;
	int n;

	(void)module;
	if (!PyArg_ParseTuple(args, "OOO!L:_while", &a.call, &b.call, &PyList_Type,
		    &list, &rounds) ||
		!callback_operands(list, in, MAX, &n))
		return NULL;
	c = context_of(list);
	if (c == NULL || !context_enter(c))
		return NULL;
	a.c = b.c = c;
	a.n_in = b.n_in = b.n_out = n;
	s = tn_at_while(tn_here(c->c, p.file, p.line), first, second, both, rounds,
		n, in, out);
	o = callback_results(c, s, both, 2, out, n);
	context_leave(c);
	return o;
}

/* _scan(body, tensors, rounds, n_carried, n_out): n_out without the carried */
static PyObject *loop_scan(PyObject *module, PyObject *args)
{
	callback a = {.n_found = -1}, *one[] = {&a};
	tn_tensor *in[MAX], *out[MAX] = {NULL};
	place p = place_here();
	PyObject *list, *o;
	long long rounds;
	int n, n_carried, n_out;
	context *c;
	tn_status s;

	(void)module;
	if (!PyArg_ParseTuple(args, "OO!Lii:_scan", &a.call, &PyList_Type, &list,
		    &rounds, &n_carried, &n_out) ||
		!callback_operands(list, in, MAX, &n))
		return NULL;
	c = context_of(list);
	if (n_carried > n || n_carried + n_out > MAX) {
		PyErr_SetString(PyExc_ValueError, "too many results");
		return NULL;
	}
	if (c == NULL || !context_enter(c))
		return NULL;
	a.c = c;
	a.n_in = n;
	a.n_out = n_carried + n_out;
	s = tn_at_scan(tn_here(c->c, p.file, p.line), callback_body, &a, rounds,
		n_carried, n - n_carried, in, n_out, out);
	o = callback_results(c, s, one, 1, out, n_carried + n_out);
	context_leave(c);
	return o;
}

static PyMethodDef methods[] = {{"_cond", cond, METH_VARARGS, NULL},
	{"_while", loop_while, METH_VARARGS, NULL},
	{"_scan", loop_scan, METH_VARARGS, NULL}, {0}};

int callback_init(PyObject *module)
{
	return PyModule_AddFunctions(module, methods);
}
