/*
 * module.c: the extension tenon._tenon. What users see is in tenon/__init__.py.
 */
#include "python.h"

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "tenon._tenon",
	.m_doc = "The extension behind the package tenon.", .m_size = -1};

static PyObject *version(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyUnicode_FromString(tn_version());
}

static PyObject *devices(PyObject *module, PyObject *unused)
{
	context *c = context_here();
	char *text = NULL;
	PyObject *o = NULL;
	tn_status s;

	(void)module;
	(void)unused;
	if (c == NULL || !context_enter(c))
		return NULL;
	HEAVY(s, tn_devices_text(&text, c->c, false));
	if (error_check(c, s))
		o = PyUnicode_FromString(text);
	tn_text_free(s < 0 ? NULL : text);
	context_leave(c);
	return o;
}

static PyMethodDef methods[] = {
	{"version", version, METH_NOARGS, "version()\n--\n\nVersion of the library."},
	{"devices", devices, METH_NOARGS,
		"devices()\n--\n\nThe devices of this machine as text, and what is missing for others."},
	{0}};

PyMODINIT_FUNC PyInit__tenon(void);

PyMODINIT_FUNC PyInit__tenon(void)
{
	static int (*const parts[])(PyObject *module) = {error_init, dtype_init,
		context_init, place_init, tensor_init, exchange_init, copies_init,
		row_init, callback_init, function_init, program_init, arrays_init,
		train_init, mesh_init};
	PyObject *module = PyModule_Create(&definition);

	if (module == NULL || PyModule_AddFunctions(module, methods) < 0) {
		Py_XDECREF(module);
		return NULL;
	}
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (parts[i](module) < 0) {
			Py_DECREF(module);
			return NULL;
		}
	return module;
}
