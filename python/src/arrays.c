/*
 * arrays.c: programs on memory by its address, for tenon.torch, which checks what
 * lies there; and gradients of rows as text.
 */
#include "python.h"
#include "program.h"

#include <stdlib.h>

/* Addresses of a tuple; false: raised. */
static bool addresses(PyObject *tuple, void **out, int32_t n, const char *what)
{
	if (PyTuple_Size(tuple) != n) {
		PyErr_Format(PyExc_TypeError, "the program has %d %s, not %zd",
			(int)n, what, PyTuple_Size(tuple));
		return false;
	}
	for (int32_t i = 0; i < n; i++) {
		out[i] = PyLong_AsVoidPtr(PyTuple_GetItem(tuple, i));
		if (out[i] == NULL && PyErr_Occurred())
			return false;
	}
	return true;
}

/* _run(inputs, outputs): tuples of addresses of dense row-major memory */
PyObject *arrays_run(PyObject *self, PyObject *args)
{
	program *p = (program *)self;
	int32_t n_in = tn_program_n_inputs(p->p), n_out = tn_program_n_outputs(p->p);
	PyObject *ins, *outs;
	void **at;
	tn_status s;
	bool good;

	if (!PyArg_ParseTuple(args, "O!O!:_run", &PyTuple_Type, &ins,
		    &PyTuple_Type, &outs))
		return NULL;
	at = malloc((size_t)(n_in + n_out + 1) * sizeof *at);
	if (at == NULL)
		return PyErr_NoMemory();
	good = addresses(ins, at, n_in, "inputs") &&
		addresses(outs, at + n_in, n_out, "outputs") && context_enter(p->c);
	if (good) {
		HEAVY(s, tn_program_run(p->p, (const void *const *)at, at + n_in));
		good = error_check(p->c, s);
		context_leave(p->c);
	}
	free(at);
	if (!good)
		return NULL;
	Py_RETURN_NONE;
}

/* _compile(): all that the first run would do */
PyObject *arrays_compile(PyObject *self, PyObject *unused)
{
	program *p = (program *)self;
	tn_status s;
	bool good;

	(void)unused;
	if (!context_enter(p->c))
		return NULL;
	HEAVY(s, tn_program_compile(p->p));
	good = error_check(p->c, s);
	context_leave(p->c);
	if (!good)
		return NULL;
	Py_RETURN_NONE;
}

/* _adjoint(call): JSON */
static PyObject *adjoint(PyObject *module, PyObject *args)
{
	context *c = context_here();
	const char *call;
	char *text = NULL;
	PyObject *o = NULL;
	tn_status s;

	(void)module;
	if (c == NULL || !PyArg_ParseTuple(args, "s:_adjoint", &call) ||
		!context_enter(c))
		return NULL;
	s = tn_ops_adjoint(&text, c->c, call, NULL, true);
	if (error_check(c, s))
		o = PyUnicode_FromString(text);
	tn_text_free(s < 0 ? NULL : text);
	context_leave(c);
	return o;
}

static PyMethodDef methods[] = {{"_adjoint", adjoint, METH_VARARGS, NULL}, {0}};

int arrays_init(PyObject *module)
{
	return PyModule_AddFunctions(module, methods);
}
