/*
 * row.c: operations as functions. Each row of the table is a callable that knows its
 * parameters, so a call needs no code of Python.
 */
#include "python.h"

typedef struct row_param {
	const char *name;
	char kind; /* T V operands; i f b d s l attributes: tools/ops_python.c */
	int required;
} row_param;

typedef struct row_entry {
	const char *name;
	const row_param *params;
	int n_params, n_results; /* -1: depends on attributes */
	const char *doc;
} row_entry;

#include "tenon_rows.h"

enum { N_ROWS = sizeof row_entries / sizeof *row_entries };
enum { MAX_ARGS = 64, MAX_OUT = 256, MAX_INTS = 1024, OWN_RESULTS = 16 };

typedef struct row {
	PyObject_HEAD
	const row_entry *e; /* NULL: defined by the user */
	PyObject *name, *text; /* text: of the user's; NULL */
} row;

static PyTypeObject *row_type;

/* A call in the making. */
struct call {
	context *c;
	const char *op;
	place at;
	int like; /* dtype that plain numbers take */
	int32_t n_in, n_attrs;
	tensor *in[MAX_OUT];
	tn_attr attr[MAX_ARGS];
	PyObject *text[MAX_ARGS]; /* what strings of attributes live in */
	int n_text, n_ints;
	int64_t ints[MAX_INTS];
};

static void let_go(struct call *k)
{
	for (int32_t i = 0; i < k->n_in; i++)
		Py_DECREF((PyObject *)k->in[i]);
	for (int i = 0; i < k->n_text; i++)
		Py_DECREF(k->text[i]);
}

/* ---- arguments ---- */

static bool operand(struct call *k, PyObject *o)
{
	tensor *t;

	if (k->n_in == MAX_OUT) {
		error_say("python.operands", "more than %d operands", MAX_OUT);
		return false;
	}
	t = convert_at(k->c, o, k->like, k->at);
	if (t == NULL)
		return false;
	k->in[k->n_in++] = t;
	return true;
}

static bool operands(struct call *k, PyObject *o)
{
	Py_ssize_t n = PySequence_Check(o) && !tensor_is(o) ? PySequence_Size(o) : -1;

	if (n < 0) {
		PyErr_Clear();
		PyErr_Format(PyExc_TypeError, "%s takes a list of tensors", k->op);
		return false;
	}
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *e = PySequence_GetItem(o, i);
		bool good = e != NULL && operand(k, e);

		Py_XDECREF(e);
		if (!good)
			return false;
	}
	return true;
}

static bool text_attr(struct call *k, tn_attr *a, PyObject *o)
{
	PyObject *bytes = PyUnicode_Check(o) ? PyUnicode_AsUTF8String(o) : NULL;

	if (bytes == NULL) {
		if (!PyErr_Occurred())
			PyErr_Format(PyExc_TypeError, "%s: %s is a text", k->op, a->name);
		return false;
	}
	k->text[k->n_text++] = bytes;
	a->kind = TN_ATTR_STRING;
	a->string = PyBytes_AsString(bytes);
	return true;
}

static bool attr(struct call *k, const char *name, char kind, PyObject *o)
{
	tn_attr *a = &k->attr[k->n_attrs];
	int n;

	*a = (tn_attr){.name = name};
	switch (kind) {
	case 'l':
		n = ints_of(o, k->ints + k->n_ints, MAX_INTS - k->n_ints, name);
		if (n < 0)
			return false;
		a->kind = TN_ATTR_INTS;
		a->ints = k->ints + k->n_ints;
		a->n_ints = n;
		k->n_ints += n;
		break;
	case 'f':
		a->kind = TN_ATTR_REAL;
		a->f = PyFloat_AsDouble(o);
		break;
	case 'b':
		a->kind = TN_ATTR_INT;
		a->i = PyObject_IsTrue(o);
		break;
	case 'd':
		a->kind = TN_ATTR_DTYPE;
		if (!dtype_of(o, &a->dtype))
			return false;
		break;
	case 's':
		if (!text_attr(k, a, o))
			return false;
		break;
	default:
		a->kind = TN_ATTR_INT;
		if (ints_of(o, &a->i, 1, name) < 0)
			return false;
	}
	k->n_attrs++;
	return !PyErr_Occurred();
}

/* ---- the call ---- */

static PyObject *results(context *c, tn_tensor **out, int n, bool many)
{
	PyObject *tuple;
	int given = 0;

	if (!many)
		return tensor_wrap(c, out[0]);
	while (given < n && out[given] != NULL)
		given++;
	tuple = PyTuple_New(given);
	for (int i = 0; i < given; i++) {
		PyObject *x = tuple != NULL ? tensor_wrap(c, out[i]) : NULL;

		if (x == NULL)
			Py_CLEAR(tuple);
		else
			PyTuple_SetItem(tuple, i, x);
	}
	return tuple;
}

/* n_results: of the row; 0: a row of the user's, which has as many as it gives */
static PyObject *make(struct call *k, int n_results)
{
	int n = n_results > 0    ? n_results
		: n_results == 0 ? OWN_RESULTS
				 : MAX_OUT;
	tn_tensor *in[MAX_OUT], *out[MAX_OUT];
	tn_status s;

	for (int32_t i = 0; i < k->n_in; i++)
		in[i] = k->in[i]->x;
	for (int i = 0; i < n; i++)
		out[i] = NULL;
	s = tn_at_call(k->at.file, k->at.line, k->c->c, k->op, k->n_in, in, k->n_attrs,
		k->attr, n, out);
	if (s < 0)
		return error_raise(k->c);
	return results(k->c, out, n,
		n_results < 0 || n_results > 1 || (n_results == 0 && out[1] != NULL));
}

static const row_entry *find(const char *name)
{
	for (int i = 0; i < N_ROWS; i++)
		if (strcmp(row_entries[i].name, name) == 0)
			return &row_entries[i];
	return NULL;
}

PyObject *row_call(context *c, const char *op, int32_t n_in, tensor **in,
	int32_t n_attrs, const tn_attr *attrs)
{
	return row_call_at(c, op, n_in, in, n_attrs, attrs, place_here());
}

PyObject *row_call_at(context *c, const char *op, int32_t n_in, tensor **in,
	int32_t n_attrs, const tn_attr *attrs, place p)
{
	tn_tensor *x[4], *out = NULL;

	for (int32_t i = 0; i < n_in && i < 4; i++)
		x[i] = in[i]->x;
	if (tn_at_call(p.file, p.line, c->c, op, n_in, x, n_attrs, attrs, 1, &out) < 0)
		return error_raise(c);
	return tensor_wrap(c, out);
}

/* The tensor in this place; of a list, its first. */
static const tensor *tensor_in(PyObject *o)
{
	if (o != NULL && PyList_Check(o) && PyList_Size(o) > 0)
		o = PyList_GetItem(o, 0);
	else if (o != NULL && PyTuple_Check(o) && PyTuple_Size(o) > 0)
		o = PyTuple_GetItem(o, 0);
	return o != NULL && tensor_is(o) ? (const tensor *)o : NULL;
}

/* 0 for bool, 1 for whole numbers, 2 for others. */
static int kind_of(int t)
{
	return tn_dtype_is_float((tn_dtype)t) ? 2 : tn_dtype_is_int((tn_dtype)t);
}

/* The first tensor among what was given says the context. Plain numbers take the
 * dtype of the first float, else of the first whole number, else of the first bool:
 * in where(c, x, 0.0) that of x. e NULL: all that was given are operands. */
static bool begin(struct call *k, const row_entry *e, PyObject *const *given, int n)
{
	const tensor *first = NULL;
	bool is_tensor = true; /* each operand */

	for (int i = 0; i < n; i++) {
		const tensor *t = tensor_in(given[i]);

		first = first != NULL ? first : t;
		if (given[i] != NULL && t == NULL &&
			(e == NULL || e->params[i].kind == 'T' || e->params[i].kind == 'V'))
			is_tensor = false;
	}
	k->like = LIKE_NOTHING;
	for (int i = 0; i < n && !is_tensor; i++) {
		const tensor *t = tensor_in(given[i]);
		int dtype;

		if (t == NULL || !tn_is_valid(t->x))
			continue;
		dtype = (int)tn_tensor_dtype(t->x);
		if (k->like == LIKE_NOTHING || kind_of(dtype) > kind_of(k->like))
			k->like = dtype;
	}
	k->c = first != NULL ? first->c : context_here();
	return k->c != NULL && context_enter(k->c);
}

/* Arguments by place and name into the order of the row's parameters. */
static bool place_args(const row_entry *e, PyObject *args, PyObject *kwargs,
	PyObject **given)
{
	Py_ssize_t n = PyTuple_Size(args), at = 0;
	PyObject *name, *value;

	if (n > e->n_params) {
		PyErr_Format(PyExc_TypeError, "%s takes %d arguments, not %zd",
			e->name, e->n_params, n);
		return false;
	}
	for (Py_ssize_t i = 0; i < n; i++)
		given[i] = PyTuple_GetItem(args, i);
	while (kwargs != NULL && PyDict_Next(kwargs, &at, &name, &value)) {
		int i = 0;

		while (i < e->n_params && PyUnicode_CompareWithASCIIString(
						 name, e->params[i].name) != 0)
			i++;
		if (i == e->n_params || given[i] != NULL) {
			PyErr_Format(PyExc_TypeError,
				i == e->n_params ? "%s has no parameter %U"
						 : "%s: %U is given twice",
				e->name, name);
			return false;
		}
		given[i] = value;
	}
	for (int i = 0; i < e->n_params; i++) {
		if (given[i] == Py_None)
			given[i] = NULL;
		if (given[i] == NULL && e->params[i].required) {
			PyErr_Format(PyExc_TypeError, "%s: %s is missing", e->name,
				e->params[i].name);
			return false;
		}
	}
	return true;
}

static bool fill(struct call *k, const row_entry *e, PyObject **given)
{
	for (int i = 0; i < e->n_params; i++) {
		const row_param *p = &e->params[i];

		if (given[i] == NULL)
			continue;
		if (p->kind == 'T' ? !operand(k, given[i])
			: p->kind == 'V' ? !operands(k, given[i])
					 : !attr(k, p->name, p->kind, given[i]))
			return false;
	}
	return true;
}

/* A row of the user's: all by place are operands, all by name attributes. */
static bool fill_own(struct call *k, PyObject *args, PyObject *kwargs)
{
	PyObject *name, *value;
	Py_ssize_t at = 0;

	for (Py_ssize_t i = 0; i < PyTuple_Size(args); i++)
		if (!operand(k, PyTuple_GetItem(args, i)))
			return false;
	while (kwargs != NULL && PyDict_Next(kwargs, &at, &name, &value)) {
		PyObject *bytes = PyUnicode_AsUTF8String(name);
		char kind = PyLong_Check(value)	    ? 'i'
			    : PyFloat_Check(value)   ? 'f'
			    : PyUnicode_Check(value) ? 's'
						     : 'l';
		tn_dtype t;

		if (bytes == NULL || k->n_attrs == MAX_ARGS / 2)
			return false;
		k->text[k->n_text++] = bytes;
		if (kind == 's' && dtype_of(value, &t))
			kind = 'd';
		PyErr_Clear();
		if (!attr(k, PyBytes_AsString(bytes), kind, value))
			return false;
	}
	return true;
}

static PyObject *row_do(PyObject *self, PyObject *args, PyObject *kwargs)
{
	row *r = (row *)self;
	PyObject *given[MAX_ARGS], *o = NULL, *bytes = NULL;
	Py_ssize_t n = PyTuple_Size(args);
	int n_given = r->e != NULL ? r->e->n_params : MAX_ARGS;
	struct call k;

	for (int i = 0; i < n_given; i++)
		given[i] = NULL;
	k.n_in = k.n_attrs = 0;
	k.n_text = k.n_ints = 0;
	if (r->e != NULL && !place_args(r->e, args, kwargs, given))
		return NULL;
	if (r->e == NULL) {
		bytes = PyUnicode_AsUTF8String(r->name);
		for (Py_ssize_t i = 0; i < n && i < MAX_ARGS; i++)
			given[i] = PyTuple_GetItem(args, i);
	}
	if (r->e == NULL && bytes == NULL)
		return NULL;
	k.op = r->e != NULL ? r->e->name : PyBytes_AsString(bytes);
	k.at = place_here();
	if (begin(&k, r->e, given, n_given)) {
		if (r->e != NULL ? fill(&k, r->e, given) : fill_own(&k, args, kwargs))
			o = make(&k, r->e != NULL ? r->e->n_results : 0);
		let_go(&k);
		context_leave(k.c);
	}
	Py_XDECREF(bytes);
	return o;
}

/* ---- the type ---- */

static void row_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	Py_XDECREF(((row *)self)->name);
	Py_XDECREF(((row *)self)->text);
	release(self);
	Py_DECREF(type);
}

static PyObject *row_repr(PyObject *self)
{
	return PyUnicode_FromFormat("<operation %U>", ((row *)self)->name);
}

static PyObject *get_name(PyObject *self, void *unused)
{
	(void)unused;
	return Py_NewRef(((row *)self)->name);
}

/* The signature and the text are parts of one string, apart at "\n--\n\n". */
static PyObject *get_doc(PyObject *self, void *part)
{
	const row_entry *e = ((row *)self)->e;
	const char *end = e != NULL ? strstr(e->doc, "\n--\n\n") : NULL;

	if (end == NULL)
		Py_RETURN_NONE;
	if (part != NULL)
		return PyUnicode_FromStringAndSize(e->doc + strlen(e->name),
			end - e->doc - (Py_ssize_t)strlen(e->name));
	return PyUnicode_FromString(end + strlen("\n--\n\n"));
}

static char is_signature;
static PyGetSetDef getset[] = {{"__name__", get_name, NULL, NULL, NULL},
	{"__doc__", get_doc, NULL, NULL, NULL},
	{"__text_signature__", get_doc, NULL, NULL, &is_signature}, {0}};

/* As a method of Tensor it takes the tensor for its first operand. */
static PyObject *row_bind(PyObject *self, PyObject *object, PyObject *type)
{
	static PyObject *method_type;

	(void)type;
	if (object == NULL || object == Py_None)
		return Py_NewRef(self);
	if (method_type == NULL) {
		PyObject *types = PyImport_ImportModule("types");

		method_type = types != NULL
				      ? PyObject_GetAttrString(types, "MethodType")
				      : NULL;
		Py_XDECREF(types);
	}
	return method_type == NULL ? NULL
				   : PyObject_CallFunctionObjArgs(
					     method_type, self, object, NULL);
}

/* A row of the user's is defined where the pickle is read. */
static PyObject *row_reduce(PyObject *self, PyObject *unused)
{
	row *r = (row *)self;
	PyObject *module = PyImport_ImportModule("tenon._tenon"), *make;

	(void)unused;
	if (module == NULL)
		return NULL;
	make = PyObject_GetAttrString(module, r->e != NULL ? "_row" : "_define");
	Py_DECREF(module);
	if (make == NULL)
		return NULL;
	return r->e != NULL ? Py_BuildValue("N(O)", make, r->name)
			    : Py_BuildValue("N(OO)", make, r->text, r->name);
}

/* It is what it does: like a function of Python's, one is as good as two. */
static PyObject *row_copy(PyObject *self, PyObject *unused)
{
	(void)unused;
	return Py_NewRef(self);
}

static PyMethodDef row_methods[] = {{"__reduce__", row_reduce, METH_NOARGS, NULL},
	{"__copy__", row_copy, METH_NOARGS, NULL},
	{"__deepcopy__", row_copy, METH_O, NULL}, {0}};

static PyType_Slot slots[] = {{Py_tp_call, row_do}, {Py_tp_dealloc, row_dealloc},
	{Py_tp_repr, row_repr}, {Py_tp_getset, getset}, {Py_tp_methods, row_methods},
	{Py_tp_descr_get, row_bind}, {0}};
static PyType_Spec spec = {.name = "tenon.Operation", .basicsize = sizeof(row),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = slots};

static PyObject *row_new(const row_entry *e, PyObject *name, PyObject *text)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(row_type, Py_tp_alloc);
	row *r = (row *)alloc(row_type, 0);

	if (r != NULL) {
		r->e = e;
		r->name = Py_NewRef(name);
		r->text = Py_XNewRef(text);
	}
	return (PyObject *)r;
}

/* Has c this row with this text? -1: an error of Python. */
static int is_defined(context *c, PyObject *name, PyObject *text)
{
	PyObject *known;

	if (c->own == NULL)
		c->own = PyDict_New();
	known = c->own != NULL ? PyDict_GetItemWithError(c->own, name) : NULL;
	if (known == NULL)
		return PyErr_Occurred() ? -1 : 0;
	return PyObject_RichCompareBool(known, text, Py_EQ);
}

/* _define(text, name); the same text again is the same row */
static PyObject *define(PyObject *module, PyObject *args)
{
	context *c = context_here();
	PyObject *name, *text, *bytes;
	place p = place_here();
	bool good = false;
	int known;
	char *s;

	(void)module;
	if (c == NULL || !PyArg_ParseTuple(args, "UU:op", &text, &name))
		return NULL;
	bytes = PyUnicode_AsUTF8String(text);
	if (bytes == NULL)
		return NULL;
	if (PyBytes_AsStringAndSize(bytes, &s, NULL) == 0 && context_enter(c)) {
		known = is_defined(c, name, text);
		good = known > 0;
		if (known == 0) {
			good = tn_at_op_define(p.file, p.line, c->c, s) >= 0;
			if (!good)
				error_raise(c);
			good = good && PyDict_SetItem(c->own, name, text) == 0;
		}
		context_leave(c);
	}
	Py_DECREF(bytes);
	return good ? row_new(NULL, name, text) : NULL;
}

static PyObject *row_text(PyObject *module, PyObject *arg)
{
	PyObject *bytes = PyUnicode_AsUTF8String(arg);
	const row_entry *e = bytes != NULL ? find(PyBytes_AsString(bytes)) : NULL;

	(void)module;
	Py_XDECREF(bytes);
	return e != NULL ? row_new(e, arg, NULL) : Py_NewRef(Py_None);
}

static PyObject *row_names(PyObject *module, PyObject *unused)
{
	PyObject *list = PyList_New(0);

	(void)module;
	(void)unused;
	for (int i = 0; list != NULL && i < N_ROWS; i++) {
		PyObject *name = PyUnicode_FromString(row_entries[i].name);

		if (name == NULL || PyList_Append(list, name) < 0)
			Py_CLEAR(list);
		Py_XDECREF(name);
	}
	return list;
}

static PyMethodDef methods[] = {{"_define", define, METH_VARARGS, NULL},
	{"_row", row_text, METH_O, NULL},
	{"_row_names", row_names, METH_NOARGS, NULL}, {0}};

int row_init(PyObject *module)
{
	row_type = (PyTypeObject *)PyType_FromSpec(&spec);
	if (row_type == NULL || PyModule_AddFunctions(module, methods) < 0)
		return -1;
	return PyModule_AddObjectRef(module, "Operation", (PyObject *)row_type);
}
