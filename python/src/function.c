/*
 * function.c: _Function, a compiled function of a fixed number of tensors, and
 * gradients of calls. tenon/_compile.py makes tenon.compile of it.
 */
#include "python.h"

enum { MAX = TN_MAX_FUNCTION_ARGS };

typedef struct function {
	PyObject_HEAD
	context *c;
	tn_function *f;
	callback body;
} function;

static PyTypeObject *function_type;

/* _Function(call, n_in, n_out, name) */
static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	context *c = context_here();
	const char *name;
	PyObject *call;
	int n_in, n_out;
	function *f;
	tn_status s;

	(void)kwargs;
	if (c == NULL || !PyArg_ParseTuple(args, "Oiiz:_Function", &call, &n_in,
				 &n_out, &name))
		return NULL;
	f = (function *)alloc(type, 0);
	if (f == NULL)
		return NULL;
	f->c = (context *)Py_NewRef((PyObject *)c);
	f->body = (callback){c, Py_NewRef(call), n_in, n_out, -1, NULL};
	if (!context_enter(c)) {
		Py_DECREF(f);
		return NULL;
	}
	s = tn_compile(&f->f, c->c, callback_body, &f->body, n_in, n_out, name);
	if (s < 0)
		error_raise(c);
	context_leave(c);
	if (s < 0)
		Py_CLEAR(f);
	return (PyObject *)f;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
	function *f = (function *)self;

	Py_VISIT(Py_TYPE(self));
	Py_VISIT(f->body.call);
	Py_VISIT(f->body.held);
	return 0;
}

static int clear(PyObject *self)
{
	function *f = (function *)self;

	Py_CLEAR(f->body.call);
	Py_CLEAR(f->body.held);
	return 0;
}

static void dealloc(PyObject *self)
{
	function *f = (function *)self;
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	PyObject_GC_UnTrack(self);
	if (f->c != NULL && f->f != NULL && context_enter(f->c)) {
		tn_function_free(f->f);
		context_leave(f->c);
	}
	clear(self);
	Py_XDECREF((PyObject *)f->c);
	release(self);
	Py_DECREF(type);
}

/* call(tensors, donated=None): a tuple, or the number of results that it has */
static PyObject *call(PyObject *self, PyObject *args)
{
	function *f = (function *)self;
	callback *one[] = {&f->body};
	tn_tensor *in[MAX], *out[MAX] = {NULL};
	PyObject *list, *flags = Py_None, *o;
	place p = place_here();
	bool donated[MAX];
	tn_status s;
	int n;

	if (!PyArg_ParseTuple(args, "O!|O:call", &PyList_Type, &list, &flags) ||
		!callback_operands(list, in, MAX, &n))
		return NULL;
	if (n != f->body.n_in) {
		PyErr_Format(PyExc_TypeError, "%d tensors are expected, not %d",
			f->body.n_in, n);
		return NULL;
	}
	for (int i = 0; flags != Py_None && i < n; i++) {
		PyObject *e = PySequence_GetItem(flags, i);

		if (e == NULL)
			return NULL;
		donated[i] = PyObject_IsTrue(e) == 1;
		Py_DECREF(e);
	}
	if (!context_enter(f->c))
		return NULL;
	s = flags == Py_None ? tn_at_function_call(p.file, p.line, f->f, in, out)
			     : tn_at_function_donate(p.file, p.line, f->f, in, donated, out);
	o = callback_results(f->c, s, one, 1, out, f->body.n_out);
	context_leave(f->c);
	return o;
}

static PyObject *said(context *c, tn_status s, char *text)
{
	PyObject *o = s < 0 ? error_raise(c)
			    : PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");

	tn_text_free(s < 0 ? NULL : text);
	return o;
}

/* text(level): "function", "dot" or "program" */
static PyObject *text(PyObject *self, PyObject *arg)
{
	function *f = (function *)self;
	bool dot = PyUnicode_CompareWithASCIIString(arg, "dot") == 0;
	char *t = NULL;
	PyObject *o;
	tn_status s;

	if (!context_enter(f->c))
		return NULL;
	s = PyUnicode_CompareWithASCIIString(arg, "program") == 0
		    ? tn_function_program_text(&t, f->f)
		    : tn_function_text(&t, f->f, dot);
	o = said(f->c, s, t);
	context_leave(f->c);
	return o;
}

static PyObject *n_recorded(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromLongLong(tn_function_n_recorded(((function *)self)->f));
}

static PyMethodDef methods[] = {{"call", call, METH_VARARGS, NULL},
	{"text", text, METH_O, NULL}, {0}};
static PyGetSetDef getset[] = {
	{"n_recorded", n_recorded, NULL, NULL, NULL}, {0}};
static PyType_Slot slots[] = {{Py_tp_new, function_new},
	{Py_tp_dealloc, dealloc}, {Py_tp_traverse, traverse},
	{Py_tp_clear, clear}, {Py_tp_methods, methods},
	{Py_tp_getset, getset}, {0}};
static PyType_Spec spec = {.name = "tenon._Function",
	.basicsize = sizeof(function),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, .slots = slots};

/* ---- gradients of tensors, and without ---- */

/* _grad(outputs, seeds or None, inputs) */
static PyObject *grad(PyObject *module, PyObject *args)
{
	tn_tensor *out[MAX], *seeds[MAX], *in[MAX], *grads[MAX] = {NULL};
	PyObject *outs, *given, *ins, *o = NULL;
	place p = place_here();
	int n_out, n_seeds, n_in;
	tn_status s;
	context *c;

	(void)module;
	if (!PyArg_ParseTuple(args, "OOO:_grad", &outs, &given, &ins) ||
		!callback_operands(outs, out, MAX, &n_out) ||
		!callback_operands(ins, in, MAX, &n_in) ||
		(given != Py_None && !callback_operands(given, seeds, MAX, &n_seeds)))
		return NULL;
	if (n_out == 0 || (given != Py_None && n_seeds != n_out))
		return error_say("grad.seed", "%d outputs have %d seeds", n_out,
			given != Py_None ? n_seeds : 0);
	o = PySequence_GetItem(outs, 0);
	c = ((tensor *)o)->c;
	Py_DECREF(o);
	if (!context_enter(c))
		return NULL;
	s = tn_at_grad(p.file, p.line, n_out, out, given != Py_None ? seeds : NULL,
		n_in, in, grads);
	o = callback_results(c, s, NULL, 0, grads, n_in);
	context_leave(c);
	return o;
}

/* Leaves a step in which something has failed: nothing of it is left. */
static tn_status leave_failed(tn_context *c)
{
	tn_status s;

	(void)tn_fail(c, TN_EINVAL, "step.scope", "an exception left the step");
	s = tn_step_leave(c);
	if (s >= 0)
		tn_context_clear(c);
	return s;
}

/* _in(context, what): enters or leaves a part of a program */
static PyObject *part(PyObject *module, PyObject *args)
{
	const char *what;
	context *c;
	tn_status s;

	(void)module;
	if (!PyArg_ParseTuple(args, "O!s:_in", context_type, &c, &what) ||
		!context_enter(c))
		return NULL;
	if (strcmp(what, "no_grad") == 0)
		s = tn_no_grad_enter(c->c);
	else if (strcmp(what, "no_grad end") == 0)
		s = tn_no_grad_leave(c->c);
	else if (strcmp(what, "step") == 0)
		s = tn_step_enter(c->c);
	else if (strcmp(what, "step fails") == 0)
		s = leave_failed(c->c);
	else
		s = tn_step_leave(c->c);
	if (s < 0)
		error_raise(c);
	context_leave(c);
	if (s < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *here(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return Py_XNewRef((PyObject *)context_here());
}

static PyObject *random_key(PyObject *module, PyObject *unused)
{
	context *c = context_here();
	place p = place_here();
	PyObject *o;

	(void)module;
	(void)unused;
	if (c == NULL || !context_enter(c))
		return NULL;
	o = tensor_wrap(c, tn_at_random_key(p.file, p.line, c->c));
	context_leave(c);
	return o;
}

/* _eval(tensors): all in one go */
static PyObject *eval(PyObject *module, PyObject *list)
{
	tn_tensor *x[MAX];
	place p = place_here();
	PyObject *first;
	context *c;
	tn_status s;
	bool good;
	int n;

	(void)module;
	if (!callback_operands(list, x, MAX, &n))
		return NULL;
	if (n == 0)
		Py_RETURN_NONE;
	first = PySequence_GetItem(list, 0);
	c = ((tensor *)first)->c;
	if (!context_enter(c)) {
		Py_DECREF(first);
		return NULL;
	}
	HEAVY(s, tn_at_eval(p.file, p.line, x, n));
	good = error_check(c, s);
	context_leave(c);
	Py_DECREF(first);
	if (!good)
		return NULL;
	Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {{"_grad", grad, METH_VARARGS, NULL},
	{"_in", part, METH_VARARGS, NULL}, {"_eval", eval, METH_O, NULL},
	{"current_context", here, METH_NOARGS,
		"current_context()\n--\n\nThe context of this thread; made if there is none."},
	{"random_key", random_key, METH_NOARGS,
		"random_key()\n--\n\nThe next key, for uniform, normal, dropout and the like."},
	{0}};

int function_init(PyObject *module)
{
	function_type = (PyTypeObject *)PyType_FromSpec(&spec);
	if (function_type == NULL ||
		PyModule_AddFunctions(module, module_methods) < 0)
		return -1;
	return PyModule_AddObjectRef(module, "_Function", (PyObject *)function_type);
}
