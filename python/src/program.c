/*
 * program.c: tenon.Program, from text in the .tn language or from an ONNX model.
 */
#include "program.h"

#include <stdlib.h>

enum { MAX = TN_MAX_FUNCTION_ARGS };

static PyTypeObject *program_type;

static void drop_params(program *p)
{
	for (int32_t i = 0; i < p->n_params; i++)
		tn_drop(p->param[i]);
	free(p->param);
	p->param = NULL;
	p->n_params = 0;
}

static void dealloc(PyObject *self)
{
	program *p = (program *)self;
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	if (p->c != NULL && context_enter(p->c)) {
		drop_params(p);
		tn_program_free(p->p);
		tn_onnx_free(p->model);
		context_leave(p->c);
	}
	free(p->param);
	Py_XDECREF((PyObject *)p->c);
	release(self);
	Py_DECREF(type);
}

static program *empty(context *c)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(program_type, Py_tp_alloc);
	program *p = (program *)alloc(program_type, 0);

	if (p != NULL)
		p->c = (context *)Py_NewRef((PyObject *)c);
	return p;
}

static PyObject *done(program *p, tn_status s)
{
	if (s < 0)
		error_raise(p->c);
	context_leave(p->c);
	if (s < 0)
		Py_CLEAR(p);
	return (PyObject *)p;
}

/* _parse(text, file) */
static PyObject *parse(PyObject *module, PyObject *args)
{
	context *c = context_here();
	const char *text, *file;
	Py_ssize_t n;
	program *p;

	(void)module;
	if (c == NULL || !PyArg_ParseTuple(args, "s#z:parse", &text, &n, &file))
		return NULL;
	p = empty(c);
	if (p == NULL || !context_enter(c)) {
		Py_XDECREF((PyObject *)p);
		return NULL;
	}
	return done(p, tn_program_parse(&p->p, c->c, text, (size_t)n, file));
}

static tn_status set_dims(tn_onnx *m, PyObject *dims)
{
	PyObject *name, *value;
	Py_ssize_t at = 0;
	tn_status s = TN_OK;

	while (s >= 0 && dims != Py_None && PyDict_Next(dims, &at, &name, &value)) {
		PyObject *bytes = PyUnicode_AsUTF8String(name);
		long long n = PyLong_AsLongLong(value);

		s = bytes == NULL || PyErr_Occurred()
			    ? TN_EINVAL
			    : tn_onnx_bind_dim(m, PyBytes_AsString(bytes), n);
		Py_XDECREF(bytes);
	}
	return s;
}

/* _onnx(path, dims or None): a program whose shapes are known, or a staged one */
static PyObject *onnx(PyObject *module, PyObject *args)
{
	PyObject *path, *dims;
	context *c = context_here();
	program *p;
	tn_status s;

	(void)module;
	if (c == NULL || !PyArg_ParseTuple(args, "O&O:load", PyUnicode_FSConverter,
				 &path, &dims))
		return NULL;
	p = empty(c);
	if (p == NULL || !context_enter(c)) {
		Py_DECREF(path);
		Py_XDECREF((PyObject *)p);
		return NULL;
	}
	HEAVY(s, tn_onnx_open(&p->model, c->c, PyBytes_AsString(path)));
	Py_DECREF(path);
	if (s >= 0)
		s = set_dims(p->model, dims);
	if (s >= 0) {
		tn_onnx_fold(p->model, 2);
		HEAVY(s, tn_onnx_build(&p->p, p->model));
		if (s < 0 && dims == Py_None) { /* shapes follow from data */
			tn_context_clear(c->c);
			HEAVY(s, tn_onnx_stage(&p->p, p->model));
		}
	}
	return done(p, s);
}

/* ---- what it takes and gives ---- */

static PyObject *value_object(const tn_value *v)
{
	PyObject *shape = shape_object(v->rank, v->shape), *dtype, *o;

	if (shape == NULL)
		return NULL;
	dtype = dtype_object(v->dtype);
	o = Py_BuildValue("(sNN)", v->name, dtype, shape);
	return o;
}

static PyObject *values(program *p, int32_t n,
	const tn_value *(*at)(const tn_program *p, int32_t i))
{
	PyObject *list = PyList_New(n);

	for (int32_t i = 0; list != NULL && i < n; i++) {
		PyObject *o = value_object(at(p->p, i));

		if (o == NULL)
			Py_CLEAR(list);
		else
			PyList_SetItem(list, i, o);
	}
	return list;
}

static PyObject *inputs(PyObject *self, void *unused)
{
	program *p = (program *)self;

	(void)unused;
	return values(p, tn_program_n_inputs(p->p), tn_program_input);
}

static PyObject *outputs(PyObject *self, void *unused)
{
	program *p = (program *)self;

	(void)unused;
	return values(p, tn_program_n_outputs(p->p), tn_program_output);
}

static PyObject *params(PyObject *self, void *unused)
{
	program *p = (program *)self;

	(void)unused;
	return values(p, tn_program_n_params(p->p), tn_program_param);
}

/* ---- calls ---- */

static bool fill_params(program *p, int32_t n)
{
	for (; p->n_params < n; p->n_params++) {
		const tn_value *v = tn_program_param(p->p, p->n_params);
		tn_tensor *x = tn_at_parameter(NULL, 0, p->c->c, NULL, v->dtype, v->rank,
			v->shape, tn_program_param_data(p->p, p->n_params));

		p->param[p->n_params] = x;
		if (!tn_is_valid(x))
			return false;
	}
	return true;
}

/*
 * Initialisers of a model as tensors, made once, outside of all steps. Nobody writes
 * to them: kernels keep copies of parameters from call to call.
 */
static bool make_params(program *p)
{
	int32_t n = tn_program_n_params(p->p);
	tn_status s;
	bool good;

	if (p->param != NULL || n == 0)
		return true;
	p->param = calloc((size_t)n, sizeof *p->param);
	if (p->param == NULL) {
		PyErr_NoMemory();
		return false;
	}
	s = tn_no_grad_enter(p->c->c);
	good = s >= 0 && fill_params(p, n);
	if (!good)
		error_raise(p->c);
	if (s >= 0)
		s = tn_no_grad_leave(p->c->c);
	if (!good || !error_check(p->c, s))
		drop_params(p);
	return p->param != NULL;
}

static PyObject *apply(program *p, tn_tensor **in, int n)
{
	int32_t n_out = tn_program_n_outputs(p->p), n_all;
	place at = place_here();
	tn_tensor **all, **out;
	PyObject *o = NULL;
	tn_status s;

	if (!make_params(p))
		return NULL;
	n_all = n + p->n_params;
	all = calloc((size_t)(n_all + n_out) + 1, sizeof *all);
	if (all == NULL)
		return PyErr_NoMemory();
	out = all + n_all;
	for (int i = 0; i < n; i++)
		all[i] = in[i];
	for (int i = 0; i < p->n_params; i++)
		all[n + i] = p->param[i];
	s = tn_at_apply(at.file, at.line, p->p, n_all, all, n_out, out);
	o = callback_results(p->c, s, NULL, 0, out, n_out);
	free(all);
	return o;
}

/* Its shapes follow from data: it runs now, on arrays. */
static PyObject *run(program *p, tn_tensor **in, int n)
{
	int32_t n_out = tn_program_n_outputs(p->p);
	tn_array *array = calloc((size_t)n + 1, sizeof *array);
	tn_array **out = calloc((size_t)n_out + 1, sizeof *out);
	place at = place_here();
	tn_status s = array != NULL && out != NULL ? TN_OK : TN_ENOMEM;
	tn_tensor *x[MAX] = {NULL};
	PyObject *o = NULL;

	for (int i = 0; s >= 0 && i < n; i++) {
		tn_array *a = &array[i];

		*a = (tn_array){.dtype = tn_tensor_dtype(in[i]),
			.rank = tn_tensor_rank(in[i]), .n_elems = tn_tensor_n_elems(in[i])};
		memcpy(a->shape, tn_tensor_shape(in[i]), (size_t)a->rank * sizeof *a->shape);
		a->n_bytes = (size_t)a->n_elems * tn_dtype_bytes(a->dtype);
		a->data = aligned_alloc(64, (a->n_bytes + 64) / 64 * 64);
		if (a->data == NULL)
			s = TN_ENOMEM;
		else
			HEAVY(s, tn_at_read(at.file, at.line, in[i], a->data, a->n_bytes));
	}
	if (s >= 0 && n_out <= MAX)
		HEAVY(s, tn_program_run_arrays(p->p, array, out));
	for (int i = 0; s >= 0 && i < n_out && i < MAX; i++)
		x[i] = tn_at_tensor_new(at.file, at.line, p->c->c, out[i]->dtype,
			out[i]->rank, out[i]->shape, out[i]->data);
	if (array == NULL || out == NULL)
		PyErr_NoMemory();
	else if (error_check(p->c, s))
		o = callback_results(p->c, s, NULL, 0, x, n_out < MAX ? n_out : MAX);
	for (int i = 0; array != NULL && i < n; i++)
		free(array[i].data);
	for (int i = 0; out != NULL && i < n_out; i++)
		tn_array_free(out[i]);
	free(array);
	free(out);
	return o;
}

/* Arguments as tensors of the inputs' dtypes, in list. */
static bool operands(program *p, PyObject *args, PyObject *list)
{
	int32_t n = tn_program_n_inputs(p->p);

	if (PyTuple_Size(args) != n) {
		PyErr_Format(PyExc_TypeError, "the program has %d inputs, not %zd",
			(int)n, PyTuple_Size(args));
		return false;
	}
	for (int32_t i = 0; i < n; i++) {
		PyObject *o = PyTuple_GetItem(args, i);
		tensor *t = tensor_is(o) ? (tensor *)Py_NewRef(o)
					 : convert_to(p->c, o, tn_program_input(p->p, i)->dtype);
		int code = t != NULL ? PyList_Append(list, (PyObject *)t) : -1;

		Py_XDECREF((PyObject *)t);
		if (code < 0)
			return false;
	}
	return true;
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *kwargs)
{
	program *p = (program *)self;
	PyObject *list, *o = NULL;
	tn_tensor *in[MAX];
	int n;

	if (kwargs != NULL && PyDict_Size(kwargs) > 0) {
		PyErr_SetString(PyExc_TypeError, "inputs are given by place");
		return NULL;
	}
	list = PyList_New(0);
	if (list == NULL || !context_enter(p->c)) {
		Py_XDECREF(list);
		return NULL;
	}
	if (operands(p, args, list) && callback_operands(list, in, MAX, &n))
		o = tn_program_is_staged(p->p) ? run(p, in, n) : apply(p, in, n);
	context_leave(p->c);
	Py_DECREF(list);
	return o;
}

static const char *const levels[] = {"program", "system", "groups", "loops",
	"schedule", "kern", "plan", "c"};

/* explain(level, json=False, decisions=False) */
static PyObject *explain(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"level", "json", "decisions", NULL};
	program *p = (program *)self;
	const char *level = "loops";
	int json = 0, decisions = 0;
	char *text = NULL;
	size_t i = 0;
	PyObject *o = NULL;
	tn_status s;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|s$pp:explain", names,
		    &level, &json, &decisions))
		return NULL;
	while (i < sizeof levels / sizeof *levels && strcmp(levels[i], level) != 0)
		i++;
	if (i == sizeof levels / sizeof *levels)
		return error_say("python.level",
			"\"%.40s\" is no level: program, system, groups, loops, schedule, kern, plan, c",
			level);
	if (!context_enter(p->c))
		return NULL;
	HEAVY(s, tn_program_explain(&text, p->p, (tn_level)i,
		(uint32_t)(json ? TN_EXPLAIN_JSON : 0) |
			(uint32_t)(decisions ? TN_EXPLAIN_DECISIONS : 0)));
	if (error_check(p->c, s))
		o = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
	tn_text_free(s < 0 ? NULL : text);
	context_leave(p->c);
	return o;
}

static PyMethodDef methods[] = {
	{"explain", (PyCFunction)(void (*)(void))explain, METH_VARARGS | METH_KEYWORDS,
		"explain(level=\"loops\", *, json=False, decisions=False)\n--\n\n"
		"One level of the program as text: program, system, groups, loops, schedule, kern, plan or c."},
	{"explain_shard", (PyCFunction)(void (*)(void))mesh_explain, METH_VARARGS | METH_KEYWORDS,
		"explain_shard(mesh, placements=(), *, json=False)\n--\n\n"
		"Where each tensor lies on a mesh and why, and each move, as text; without any processes.\n\n"
		"mesh: \"data=2,model=2\". placements: of inputs, such as \"x=shard(0)@data\" or \"x=data: axis 0 by 4\"."},
	{"plan_shards", (PyCFunction)(void (*)(void))mesh_plan, METH_VARARGS | METH_KEYWORDS,
		"plan_shards(mesh, memory, *, link=10e9, latency=5e-6, flops=100e9, train=False, json=False)\n--\n\n"
		"Where the inputs should lie, found by cost, as text: placements, moves, memory, time of a step.\n\n"
		"mesh: \"data=8,model=4\", of any size. memory: bytes of a process. link: bytes a second that a process\n"
		"receives. latency: seconds of a message. flops: of a process, a second. train: with a backward and AdamW."},
	{"_run", arrays_run, METH_VARARGS, NULL},
	{"_compile", arrays_compile, METH_NOARGS, NULL}, {0}};
static PyGetSetDef getset[] = {
	{"inputs", inputs, NULL, "(name, dtype, shape) of each input; an extent of -1 is not known.", NULL},
	{"outputs", outputs, NULL, "(name, dtype, shape) of each output.", NULL},
	{"params", params, NULL, "(name, dtype, shape) of each parameter of a model.", NULL},
	{0}};
static PyType_Slot slots[] = {{Py_tp_dealloc, dealloc}, {Py_tp_call, call},
	{Py_tp_methods, methods}, {Py_tp_getset, getset},
	{Py_tp_doc,
		"A program in the .tn language, or an ONNX model. Calling it with tensors records it like any operation; "
		"it returns a tuple of its outputs."},
	{0}};
static PyType_Spec spec = {.name = "tenon.Program", .basicsize = sizeof(program),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = slots};
static PyMethodDef module_methods[] = {{"_parse", parse, METH_VARARGS, NULL},
	{"_onnx", onnx, METH_VARARGS, NULL}, {0}};

int program_init(PyObject *module)
{
	program_type = (PyTypeObject *)PyType_FromSpec(&spec);
	if (program_type == NULL || PyModule_AddFunctions(module, module_methods) < 0)
		return -1;
	return PyModule_AddObjectRef(module, "Program", (PyObject *)program_type);
}
