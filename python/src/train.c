/*
 * train.c: optimisers, and files of tensors (.safetensors).
 */
#include "python.h"

#include <stdlib.h>

typedef struct optimizer {
	PyObject_HEAD
	context *c;
	tn_optimizer *o;
	PyObject *params; /* list: they live as long as it does */
} optimizer;

static PyTypeObject *optimizer_type;

static bool add_all(optimizer *o, PyObject *params)
{
	Py_ssize_t n = PyList_Size(params);

	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *p = PyList_GetItem(params, i);

		if (!tensor_is(p)) {
			PyErr_SetString(PyExc_TypeError, "parameters are tensors");
			return false;
		}
		if (tn_optimizer_add(o->o, ((tensor *)p)->x) < 0) {
			error_raise(o->c);
			return false;
		}
	}
	return true;
}

static PyObject *optimizer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"name", "params", "lr", "beta1", "beta2", "eps",
		"momentum", "alpha", "decay", "clip_norm", "nesterov", NULL};
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	tn_optimizer_options k = TN_OPTIMIZER_OPTIONS_INIT;
	PyObject *params, *list;
	const char *name;
	int nesterov = 0;
	optimizer *o;
	bool good;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO|$ddddddddp:Optimizer",
		    names, &name, &params, &k.lr, &k.beta1, &k.beta2, &k.eps,
		    &k.momentum, &k.alpha, &k.decay, &k.clip_norm, &nesterov))
		return NULL;
	k.nesterov = nesterov;
	list = PySequence_List(params);
	if (list == NULL)
		return NULL;
	o = (optimizer *)alloc(type, 0);
	if (o == NULL) {
		Py_DECREF(list);
		return NULL;
	}
	o->params = list;
	o->c = PyList_Size(list) > 0 && tensor_is(PyList_GetItem(list, 0))
		       ? ((tensor *)PyList_GetItem(list, 0))->c
		       : context_here();
	Py_XINCREF((PyObject *)o->c);
	if (o->c == NULL || !context_enter(o->c)) {
		Py_DECREF(o);
		return NULL;
	}
	good = tn_optimizer_new(&o->o, o->c->c, name, &k) >= 0;
	if (!good)
		error_raise(o->c);
	good = good && add_all(o, list);
	context_leave(o->c);
	if (!good)
		Py_CLEAR(o);
	return (PyObject *)o;
}

static void dealloc(PyObject *self)
{
	optimizer *o = (optimizer *)self;
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	if (o->o != NULL && context_enter(o->c)) {
		tn_optimizer_free(o->o);
		context_leave(o->c);
	}
	Py_XDECREF(o->params);
	Py_XDECREF((PyObject *)o->c);
	release(self);
	Py_DECREF(type);
}

static PyObject *step(PyObject *self, PyObject *unused)
{
	optimizer *o = (optimizer *)self;
	tn_status s;

	(void)unused;
	if (!context_enter(o->c))
		return NULL;
	s = tn_optimizer_step(o->o);
	if (s < 0)
		error_raise(o->c);
	context_leave(o->c);
	if (s < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *set_lr(PyObject *self, PyObject *arg)
{
	optimizer *o = (optimizer *)self;
	double lr = PyFloat_AsDouble(arg);

	if ((lr == -1 && PyErr_Occurred()) || !context_enter(o->c))
		return NULL;
	tn_optimizer_set_lr(o->o, lr);
	context_leave(o->c);
	Py_RETURN_NONE;
}

static PyObject *steps(PyObject *self, void *unused)
{
	optimizer *o = (optimizer *)self;
	int64_t n;

	(void)unused;
	if (!context_enter(o->c))
		return NULL;
	HEAVY(n, tn_optimizer_steps(o->o));
	context_leave(o->c);
	return PyLong_FromLongLong(n);
}

static PyMethodDef methods[] = {
	{"step", step, METH_NOARGS,
		"step()\n--\n\nRecords one update of every parameter that has a gradient, and forgets the gradients."},
	{"set_lr", set_lr, METH_O, "set_lr(lr)\n--\n\nThe rate of the next steps."},
	{0}};
static PyGetSetDef getset[] = {
	{"steps", steps, NULL, "Number of steps that succeeded.", NULL}, {0}};
static PyType_Slot slots[] = {{Py_tp_new, optimizer_new},
	{Py_tp_dealloc, dealloc}, {Py_tp_methods, methods},
	{Py_tp_getset, getset},
	{Py_tp_doc,
		"Optimizer(name, params, *, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, momentum=0.9, alpha=0.99, decay=0, clip_norm=0, nesterov=False)\n--\n\n"
		"Updates parameters by their gradients.\n\n"
		"name: sgd, sgd_momentum, adam, adamw, adagrad, rmsprop or lamb. params: a list of\n"
		"tensors that require gradients. clip_norm: limit of the norm of all gradients; 0: none."},
	{0}};
static PyType_Spec spec = {.name = "tenon.Optimizer",
	.basicsize = sizeof(optimizer), .flags = Py_TPFLAGS_DEFAULT, .slots = slots};

/* ---- parameters and files ---- */

/* Its own memory, which stays where it is; it has a gradient. */
PyObject *train_parameter(PyObject *x, const char *name)
{
	place p = place_here();
	PyObject *o = NULL;
	tensor *from;
	void *data = NULL;
	tn_status s;
	size_t n;

	from = (tensor *)PyObject_CallFunctionObjArgs((PyObject *)tensor_type, x, NULL);
	if (from == NULL)
		return NULL;
	n = (size_t)tn_tensor_n_elems(from->x) * tn_dtype_bytes(tn_tensor_dtype(from->x));
	data = malloc(n + 1);
	if (data == NULL) {
		PyErr_NoMemory();
	} else if (context_enter(from->c)) {
		HEAVY(s, tn_at_read(p.file, p.line, from->x, data, n));
		if (error_check(from->c, s))
			o = tensor_wrap(from->c, tn_at_parameter(p.file, p.line,
				from->c->c, name, tn_tensor_dtype(from->x),
				tn_tensor_rank(from->x), tn_tensor_shape(from->x), data));
		context_leave(from->c);
	}
	if (o != NULL)
		((tensor *)o)->role = ROLE_PARAMETER;
	free(data);
	Py_DECREF((PyObject *)from);
	return o;
}

static PyObject *parameter(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"x", "name", NULL};
	const char *name = NULL;
	PyObject *x;

	(void)module;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|z:parameter", names, &x, &name))
		return NULL;
	return train_parameter(x, name);
}

/* A set of the tensors in a dictionary; NULL: raised. */
static tn_params *set_of(context *c, PyObject *dict)
{
	place p = place_here();
	PyObject *name, *value;
	tn_params *set = NULL;
	Py_ssize_t at = 0;
	tn_status s = tn_params_new(&set, c->c);

	while (s >= 0 && PyDict_Next(dict, &at, &name, &value)) {
		PyObject *bytes = PyUnicode_AsUTF8String(name);

		if (bytes == NULL || !tensor_is(value)) {
			Py_XDECREF(bytes);
			tn_params_free(set);
			if (!PyErr_Occurred())
				PyErr_SetString(PyExc_TypeError,
					"a dictionary of names and tensors is expected");
			return NULL;
		}
		s = tn_at_params_add(p.file, p.line, set, PyBytes_AsString(bytes),
			((tensor *)value)->x, false);
		Py_DECREF(bytes);
	}
	if (s >= 0)
		return set;
	tn_params_free(set);
	error_raise(c);
	return NULL;
}

static context *context_of(PyObject *dict)
{
	PyObject *name, *value;
	Py_ssize_t at = 0;

	return PyDict_Next(dict, &at, &name, &value) && tensor_is(value)
		       ? ((tensor *)value)->c
		       : context_here();
}

static PyObject *files(PyObject *args, PyObject *kwargs, bool save)
{
	static char *names[] = {"path", "tensors", "strict", NULL};
	static char *names_save[] = {"path", "tensors", NULL};
	place p = place_here();
	PyObject *path, *dict;
	tn_params *set;
	int strict = 1;
	tn_status s = TN_EINVAL;
	context *c;
	bool good = false;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, save ? "O&O!" : "O&O!|p",
		    save ? names_save : names, PyUnicode_FSConverter, &path, &PyDict_Type, &dict, &strict))
		return NULL;
	c = context_of(dict);
	if (c != NULL && context_enter(c)) {
		set = set_of(c, dict);
		if (set != NULL) {
			HEAVY(s, save ? tn_at_params_save(p.file, p.line, set,
						PyBytes_AsString(path), NULL, 0)
				      : tn_at_params_load(p.file, p.line, set,
						PyBytes_AsString(path), strict));
			good = error_check(c, s);
			tn_params_free(set);
		}
		context_leave(c);
	}
	Py_DECREF(path);
	if (!good)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *save(PyObject *module, PyObject *args, PyObject *kwargs)
{
	(void)module;
	return files(args, kwargs, true);
}

static PyObject *load(PyObject *module, PyObject *args, PyObject *kwargs)
{
	(void)module;
	return files(args, kwargs, false);
}

#define WITH_NAMES(f) (PyCFunction)(void (*)(void))(f), METH_VARARGS | METH_KEYWORDS
static PyMethodDef module_methods[] = {
	{"parameter", WITH_NAMES(parameter),
		"parameter(x, name=None)\n--\n\nA tensor that is trained: it has a gradient, and its memory stays in one place."},
	{"save_safetensors", WITH_NAMES(save),
		"save_safetensors(path, tensors)\n--\n\nWrites a dictionary of tensors to a .safetensors file, which appears whole or not at all."},
	{"load_safetensors", WITH_NAMES(load),
		"load_safetensors(path, tensors, strict=True)\n--\n\nReads a .safetensors file into the tensors of a dictionary, in place: all or none.\n\n"
		"strict=False: names that only one side has are fine."},
	{0}};

int train_init(PyObject *module)
{
	optimizer_type = (PyTypeObject *)PyType_FromSpec(&spec);
	if (optimizer_type == NULL || PyModule_AddFunctions(module, module_methods) < 0)
		return -1;
	return PyModule_AddObjectRef(module, "Optimizer", (PyObject *)optimizer_type);
}
