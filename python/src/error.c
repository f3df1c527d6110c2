/*
 * error.c: what the library has to say, as exceptions. Each is a tenon.Error, and
 * also the exception of Python that one would expect.
 */
#include "python.h"

#include <stdarg.h>

static PyObject *classes[1 - TN_EPEER]; /* by -status */

static int add_class(PyObject *module, const char *name, tn_status s,
	PyObject *base, PyObject *also)
{
	char full[64];
	PyObject *bases = also != NULL ? PyTuple_Pack(2, base, also)
				       : Py_NewRef(base), *c;

	snprintf(full, sizeof full, "tenon.%s", name);
	c = bases != NULL ? PyErr_NewException(full, bases, NULL) : NULL;
	Py_XDECREF(bases);
	if (c == NULL)
		return -1;
	classes[-s] = c;
	return PyModule_AddObjectRef(module, name, c);
}

int error_init(PyObject *module)
{
	PyObject *base;

	if (add_class(module, "Error", TN_OK, PyExc_Exception, NULL) < 0)
		return -1;
	base = classes[0];
	return add_class(module, "InvalidError", TN_EINVAL, base,
		       PyExc_ValueError) < 0 ||
			add_class(module, "OutOfMemoryError", TN_ENOMEM, base,
				PyExc_MemoryError) < 0 ||
			add_class(module, "FileError", TN_EIO, base,
				PyExc_OSError) < 0 ||
			add_class(module, "CompilerError", TN_ECOMPILE, base,
				PyExc_RuntimeError) < 0 ||
			add_class(module, "RangeError", TN_ERANGE, base,
				PyExc_IndexError) < 0 ||
			add_class(module, "InternalError", TN_EINTERNAL, base,
				PyExc_RuntimeError) < 0 ||
			add_class(module, "PeerError", TN_EPEER, base,
				PyExc_ConnectionError) < 0
		       ? -1
		       : 0;
}

static bool set_text(PyObject *e, const char *name, const char *text)
{
	PyObject *o = PyUnicode_DecodeUTF8(
		text, (Py_ssize_t)strlen(text), "replace");
	int code = o != NULL ? PyObject_SetAttrString(e, name, o) : -1;

	Py_XDECREF(o);
	return code == 0;
}

static bool set_number(PyObject *e, const char *name, int32_t n)
{
	PyObject *o = PyLong_FromLong(n);
	int code = o != NULL ? PyObject_SetAttrString(e, name, o) : -1;

	Py_XDECREF(o);
	return code == 0;
}

static void raise(const tn_diag *d)
{
	char text[sizeof d->file + sizeof d->rule + sizeof d->text +
		sizeof d->extra + 64];
	PyObject *class = d->status < 0 && d->status >= TN_EPEER
				  ? classes[-d->status]
				  : classes[0], *message, *e = NULL;
	int n = 0;

	if (d->file[0] != '\0')
		n = snprintf(text, sizeof text, "%s:%d: ", d->file, (int)d->line);
	n += snprintf(text + n, sizeof text - (size_t)n, "[%s] %s", d->rule, d->text);
	if (d->extra[0] != '\0')
		snprintf(text + n, sizeof text - (size_t)n, "\n%s", d->extra);
	message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
	if (message != NULL)
		e = PyObject_CallFunctionObjArgs(class, message, NULL);
	Py_XDECREF(message);
	if (e != NULL && set_text(e, "rule", d->rule) &&
		set_text(e, "text", d->text) && set_text(e, "extra", d->extra) &&
		set_text(e, "file", d->file) && set_number(e, "line", d->line))
		PyErr_SetObject(class, e);
	Py_XDECREF(e);
}

static void put_place(tn_diag *d)
{
	place p = place_here();

	if (p.file != NULL)
		snprintf(d->file, sizeof d->file, "%s", p.file);
	d->line = p.line;
}

PyObject *error_raise(context *c)
{
	tn_diag d = *tn_context_diag(c != NULL ? c->c : NULL);

	if (c != NULL)
		tn_context_clear(c->c);
	if (d.file[0] == '\0' && d.line == 0) /* of a call that takes no place */
		put_place(&d);
	if (!PyErr_Occurred())
		raise(&d);
	return NULL;
}

PyObject *error_say(const char *rule, const char *format, ...)
{
	tn_diag d = {.status = TN_EINVAL};
	va_list list;

	snprintf(d.rule, sizeof d.rule, "%s", rule);
	put_place(&d);
	va_start(list, format);
	vsnprintf(d.text, sizeof d.text, format, list);
	va_end(list);
	raise(&d);
	return NULL;
}

bool error_check(context *c, tn_status s)
{
	/* a Ctrl-C also ended the C compiler: it is what happened */
	if (PyErr_CheckSignals() < 0) {
		if (s < 0)
			tn_context_clear(c->c);
		return false;
	}
	if (s < 0)
		error_raise(c);
	return s >= 0;
}
