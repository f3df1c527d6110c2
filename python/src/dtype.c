/*
 * dtype.c: element types by the names that Tenon, NumPy and Python have for them.
 */
#include "python.h"

/* NumPy's names, and letters of the buffer protocol. */
static const struct {
	const char *name, *format;
	tn_dtype t;
} known[] = {{"float32", "f", TN_F32}, {"float64", "d", TN_F64},
	{"float16", "e", TN_F16}, {"bfloat16", NULL, TN_BF16},
	{"int8", "b", TN_I8}, {"int16", "h", TN_I16}, {"int32", "i", TN_I32},
	{"int64", "q", TN_I64}, {"uint8", "B", TN_U8}, {"uint16", "H", TN_U16},
	{"uint32", "I", TN_U32}, {"uint64", "Q", TN_U64}, {"bool", "?", TN_BOOL}};
enum { N_KNOWN = sizeof known / sizeof *known };

static PyObject *objects[TN_N_DTYPES];

static bool by_name(const char *name, tn_dtype *out)
{
	for (int t = 0; t < TN_N_DTYPES; t++)
		if (strcmp(tn_dtype_name((tn_dtype)t), name) == 0) {
			*out = (tn_dtype)t;
			return true;
		}
	for (int i = 0; i < N_KNOWN; i++)
		if (strcmp(known[i].name, name) == 0) {
			*out = known[i].t;
			return true;
		}
	return false;
}

/* The name in a class such as numpy.float32 or torch.float32's text. */
static bool by_text(PyObject *x, tn_dtype *out)
{
	PyObject *name = PyObject_GetAttrString(x, "__name__"), *bytes;
	const char *dot;
	bool found = false;

	if (name == NULL) {
		PyErr_Clear();
		name = PyObject_Str(x);
	}
	bytes = name != NULL ? PyUnicode_AsUTF8String(name) : NULL;
	Py_XDECREF(name);
	if (bytes != NULL) {
		dot = strrchr(PyBytes_AsString(bytes), '.');
		found = by_name(dot != NULL ? dot + 1 : PyBytes_AsString(bytes), out);
		Py_DECREF(bytes);
	}
	PyErr_Clear();
	return found;
}

bool dtype_of(PyObject *x, tn_dtype *out)
{
	for (int t = 0; t < TN_N_DTYPES; t++)
		if (x == objects[t]) {
			*out = (tn_dtype)t;
			return true;
		}
	if (x == (PyObject *)&PyFloat_Type || x == (PyObject *)&PyLong_Type ||
		x == (PyObject *)&PyBool_Type) {
		*out = x == (PyObject *)&PyFloat_Type  ? TN_F32
		       : x == (PyObject *)&PyLong_Type ? TN_I64
						       : TN_BOOL;
		return true;
	}
	if (by_text(x, out))
		return true;
	error_say("python.dtype",
		"%.80s object is no dtype: accepted are names such as \"f32\" and "
		"\"float32\", float, int, bool, and dtypes of NumPy",
		PyUnicode_Check(x) ? "this text" : "this");
	return false;
}

PyObject *dtype_object(tn_dtype t)
{
	return Py_NewRef(objects[t]);
}

const char *dtype_format(tn_dtype t)
{
	for (int i = 0; i < N_KNOWN; i++)
		if (known[i].t == t)
			return known[i].format;
	return NULL;
}

bool dtype_of_format(const char *format, Py_ssize_t n_bytes, tn_dtype *out)
{
	char c;

	if (format == NULL)
		format = "B";
	if (strchr("@=<", *format) != NULL && *format != '\0')
		format++;
	c = *format;
	/* long is int or long long */
	if (c == 'l' || c == 'n')
		c = n_bytes == 8 ? 'q' : 'i';
	if (c == 'L' || c == 'N')
		c = n_bytes == 8 ? 'Q' : 'I';
	for (int i = 0; i < N_KNOWN; i++)
		if (known[i].format != NULL && known[i].format[0] == c &&
			c != '\0' && format[1] == '\0' &&
			tn_dtype_bytes(known[i].t) == (size_t)n_bytes) {
			*out = known[i].t;
			return true;
		}
	return false;
}

static int kind(tn_dtype t)
{
	return tn_dtype_is_float(t) ? 2 : t == TN_BOOL ? 0 : 1;
}

static bool is_unsigned(tn_dtype t)
{
	return tn_dtype_name(t)[0] == 'u';
}

tn_dtype dtype_common(tn_dtype x, tn_dtype y)
{
	static const tn_dtype signed_of[] = {TN_I8, TN_I16, TN_I32, TN_I64};
	size_t nx = tn_dtype_bytes(x), ny = tn_dtype_bytes(y), n = nx;

	if (x == y)
		return x;
	if (kind(x) != kind(y))
		return kind(x) > kind(y) ? x : y;
	if (kind(x) == 2)
		return nx != ny ? (nx > ny ? x : y) : TN_F32;
	if (is_unsigned(x) == is_unsigned(y))
		return nx >= ny ? x : y;
	/* signed, and wide enough for the unsigned one */
	n = is_unsigned(x) ? (ny > nx ? ny : nx * 2) : (nx > ny ? nx : ny * 2);
	for (int i = 0; i < 4; i++)
		if (n <= tn_dtype_bytes(signed_of[i]))
			return signed_of[i];
	return TN_I64;
}

int dtype_init(PyObject *module)
{
	for (int t = 0; t < TN_N_DTYPES; t++) {
		const char *name = tn_dtype_name((tn_dtype)t);

		objects[t] = PyUnicode_InternFromString(name);
		/* bool stays Python's */
		if (objects[t] == NULL || (t != TN_BOOL &&
			PyModule_AddObjectRef(module, name, objects[t]) < 0))
			return -1;
	}
	for (int i = 0; i < N_KNOWN; i++)
		if (known[i].t != TN_BOOL &&
			PyModule_AddObjectRef(module, known[i].name,
				objects[known[i].t]) < 0)
			return -1;
	return 0;
}
