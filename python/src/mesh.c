/*
 * mesh.c: tenon.Mesh, and tensors that lie on several processes. Placements and the
 * methods of Tensor are in tenon/_mesh.py.
 */
#include "program.h"

#include <stdlib.h>

enum { ROOM = 16 }; /* more than a mesh can have axes: the library says so */

typedef struct mesh {
	PyObject_HEAD
	context *c;
	tn_mesh *m;
} mesh;

static PyTypeObject *mesh_type;

/* ---- meshes ---- */

/* The names of n axes, which live as long as the list *held; false: raised. */
static bool names_of(PyObject *o, int n, const char **out, PyObject **held)
{
	PyObject *list;
	char *text;

	*held = PyList_New(0);
	list = PyUnicode_Check(o) ? PyTuple_Pack(1, o) : PySequence_Tuple(o);
	if (*held != NULL && list != NULL && PyTuple_Size(list) != n)
		error_say("shard.mesh", "%zd names are given for %d axes of a mesh",
			PyTuple_Size(list), n);
	for (int i = 0; !PyErr_Occurred() && i < n; i++) {
		PyObject *name = PyTuple_GetItem(list, i), *bytes;

		if (!PyUnicode_Check(name)) {
			PyErr_SetString(PyExc_TypeError, "names of axes are strings");
			break;
		}
		bytes = PyUnicode_AsUTF8String(name);
		if (bytes == NULL || PyList_Append(*held, bytes) < 0 ||
			PyBytes_AsStringAndSize(bytes, &text, NULL) < 0) {
			Py_XDECREF(bytes);
			break;
		}
		out[i] = text;
		Py_DECREF(bytes);
	}
	Py_XDECREF(list);
	return !PyErr_Occurred();
}

static PyObject *mesh_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *keys[] = {"shape", "names", NULL};
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	PyObject *shape, *given = Py_None, *held = NULL;
	const char *names[ROOM] = {NULL};
	context *c = context_here();
	int64_t extents[ROOM];
	place p = place_here();
	tn_mesh *m = NULL;
	mesh *o = NULL;
	int n;

	if (c == NULL || !PyArg_ParseTupleAndKeywords(
				 args, kwargs, "O|O:Mesh", keys, &shape, &given))
		return NULL;
	n = ints_of(shape, extents, ROOM, "the shape of a mesh");
	if (n >= 0 && (given == Py_None || names_of(given, n, names, &held)) &&
		context_enter(c)) {
		HEAVY(m, tn_at_mesh_new(p.file, p.line, c->c, n, names, extents));
		if (error_check(c, m != NULL ? TN_OK : TN_EINVAL))
			o = (mesh *)alloc(type, 0);
		context_leave(c);
	}
	Py_XDECREF(held);
	if (o == NULL)
		return NULL;
	o->c = (context *)Py_NewRef((PyObject *)c);
	o->m = m;
	return (PyObject *)o;
}

static void dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	Py_XDECREF((PyObject *)((mesh *)self)->c);
	release(self);
	Py_DECREF(type);
}

static int32_t extents_of(const mesh *m, int64_t *out)
{
	int32_t n = 0;

	while (n < ROOM && tn_mesh_axis(m->m, n, &out[n]) != NULL)
		n++;
	return n;
}

static PyObject *get_shape(PyObject *self, void *unused)
{
	int64_t extent[ROOM];
	int32_t n = extents_of((mesh *)self, extent);

	(void)unused;
	return shape_object(n, extent);
}

static PyObject *get_names(PyObject *self, void *unused)
{
	int64_t extent[ROOM];
	int32_t n = extents_of((mesh *)self, extent);
	PyObject *o = PyTuple_New(n);

	(void)unused;
	for (int32_t i = 0; o != NULL && i < n; i++) {
		PyObject *name = PyUnicode_FromString(
			tn_mesh_axis(((mesh *)self)->m, i, extent));

		if (name == NULL)
			Py_CLEAR(o);
		else
			PyTuple_SetItem(o, i, name);
	}
	return o;
}

static PyObject *get_size(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromLong(tn_n_processes(((mesh *)self)->c->c));
}

static PyObject *get_rank(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromLong(tn_process(((mesh *)self)->c->c));
}

static PyObject *get_coordinate(PyObject *self, void *unused)
{
	int64_t at[ROOM], rest = tn_process(((mesh *)self)->c->c);
	int32_t n = extents_of((mesh *)self, at);

	(void)unused;
	for (int32_t i = n; i-- > 0;) {
		int64_t extent = at[i];

		at[i] = rest % extent;
		rest /= extent;
	}
	return shape_object(n, at);
}

static PyObject *get_context(PyObject *self, void *unused)
{
	(void)unused;
	return Py_NewRef((PyObject *)((mesh *)self)->c);
}

static PyObject *repr(PyObject *self)
{
	PyObject *shape = get_shape(self, NULL), *names = get_names(self, NULL), *o = NULL;

	if (shape != NULL && names != NULL)
		o = PyUnicode_FromFormat("Mesh(%R, %R)", shape, names);
	Py_XDECREF(shape);
	Py_XDECREF(names);
	return o;
}

/* A mesh that is made again is the same one of the library. */
static PyObject *compare(PyObject *a, PyObject *b, int op)
{
	bool same;

	if (!PyObject_TypeCheck(b, mesh_type) || (op != Py_EQ && op != Py_NE))
		Py_RETURN_NOTIMPLEMENTED;
	same = ((mesh *)a)->m == ((mesh *)b)->m;
	return PyBool_FromLong(same == (op == Py_EQ));
}

static Py_hash_t hash(PyObject *self)
{
	return (Py_hash_t)((uintptr_t)((mesh *)self)->m >> 4);
}

static PyObject *no_pickle(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	PyErr_SetString(PyExc_TypeError,
		"a mesh is of its processes: it cannot be copied or pickled");
	return NULL;
}

static PyGetSetDef getset[] = {
	{"shape", get_shape, NULL, "Processes along each axis, a tuple.", NULL},
	{"names", get_names, NULL, "Names of the axes, a tuple.", NULL},
	{"size", get_size, NULL, "Number of processes.", NULL},
	{"rank", get_rank, NULL, "Number of this process.", NULL},
	{"coordinate", get_coordinate, NULL, "Number of this process on each axis, a tuple.", NULL},
	{"context", get_context, NULL, "The context that this mesh is of.", NULL},
	{0}};

/* Mesh.broadcast(buffer) */
static PyObject *broadcast(PyObject *self, PyObject *buffer)
{
	context *c = ((mesh *)self)->c;
	char none = 0; /* an empty buffer need not lie anywhere */
	bool good = false;
	Py_buffer b;
	tn_status s;

	if (PyObject_GetBuffer(buffer, &b, PyBUF_WRITABLE) < 0)
		return NULL;
	if (context_enter(c)) {
		HEAVY(s, tn_broadcast(
			c->c, b.buf != NULL ? b.buf : &none, (size_t)b.len));
		good = error_check(c, s);
		context_leave(c);
	}
	PyBuffer_Release(&b);
	if (!good)
		return NULL;
	Py_RETURN_NONE;
}

static PyMethodDef mesh_methods[] = {
	{"__reduce__", no_pickle, METH_NOARGS, NULL},
	{"broadcast", broadcast, METH_O,
		"broadcast(buffer)\n--\n\n"
		"Replaces what is in a writable buffer, such as a bytearray or a NumPy array, by what\n"
		"process 0 has in its own. All processes make the same call, with as many bytes."},
	{0}};

static PyType_Slot slots[] = {{Py_tp_new, mesh_new}, {Py_tp_dealloc, dealloc},
	{Py_tp_repr, repr}, {Py_tp_getset, getset}, {Py_tp_methods, mesh_methods},
	{Py_tp_richcompare, compare}, {Py_tp_hash, hash},
	{Py_tp_doc,
		"Mesh(shape, names=None)\n--\n\n"
		"The processes that mpirun started, as a grid; without mpirun, this process alone.\n\n"
		"shape: processes along each axis, whose product is the number of all processes;\n"
		"one extent may be -1: as many as are left. names: of the axes, different ones.\n"
		"Every process makes the same mesh, in the context of its thread."},
	{0}};
static PyType_Spec spec = {.name = "tenon.Mesh", .basicsize = sizeof(mesh),
	.flags = Py_TPFLAGS_DEFAULT, .slots = slots};

/* ---- tensors on meshes ---- */

/* (kind, axis, block, op) of each axis of the mesh; false: raised. */
static bool placements_of(PyObject *list, const mesh *m, tn_placement *out)
{
	int64_t extent[ROOM];
	int32_t n = extents_of(m, extent);

	if (PyList_Size(list) != n) {
		PyErr_Format(PyExc_TypeError, "%d placements are expected", (int)n);
		return false;
	}
	for (int32_t i = 0; i < n; i++) {
		int kind, axis;
		long long block;
		const char *op;

		if (!PyArg_ParseTuple(PyList_GetItem(list, i), "iiLz", &kind, &axis,
			    &block, &op))
			return false;
		out[i] = (tn_placement){(tn_placement_kind)kind, axis, block, op};
	}
	return true;
}

/* _shard(x, mesh, placements) */
static PyObject *shard(PyObject *module, PyObject *args)
{
	tn_placement placement[ROOM];
	PyObject *x, *m, *list;
	place p = place_here();
	tn_status s;
	bool good;

	(void)module;
	if (!PyArg_ParseTuple(args, "O!O!O!:shard_", tensor_type, &x, mesh_type, &m,
		    &PyList_Type, &list) ||
		!placements_of(list, (mesh *)m, placement) ||
		!tensor_is_alive((tensor *)x) || !context_enter(((tensor *)x)->c))
		return NULL;
	HEAVY(s, tn_at_shard(p.file, p.line, ((tensor *)x)->x, ((mesh *)m)->m, placement));
	good = error_check(((tensor *)x)->c, s);
	context_leave(((tensor *)x)->c);
	return good ? Py_NewRef(x) : NULL;
}

/* _reshard(x, mesh, placements) */
static PyObject *reshard(PyObject *module, PyObject *args)
{
	tn_placement placement[ROOM];
	PyObject *x, *m, *list, *o;
	place p = place_here();
	tensor *t;

	(void)module;
	if (!PyArg_ParseTuple(args, "O!O!O!:reshard", tensor_type, &x, mesh_type, &m,
		    &PyList_Type, &list) ||
		!placements_of(list, (mesh *)m, placement))
		return NULL;
	t = (tensor *)x;
	if (!tensor_is_alive(t) || !context_enter(t->c))
		return NULL;
	o = tensor_wrap(t->c,
		tn_at_reshard(p.file, p.line, t->x, ((mesh *)m)->m, placement));
	context_leave(t->c);
	return o;
}

/* _measure(mesh, rows, columns, from, to, repeat) */
static PyObject *measure(PyObject *module, PyObject *args)
{
	tn_placement from[ROOM], to[ROOM];
	PyObject *o, *before, *after, *result = NULL;
	long long rows, columns;
	place p = place_here();
	tn_move_time t = {0};
	int repeat;
	tn_status s;
	mesh *m;

	(void)module;
	if (!PyArg_ParseTuple(args, "O!LLO!O!i:measure", mesh_type, &o, &rows,
		    &columns, &PyList_Type, &before, &PyList_Type, &after, &repeat))
		return NULL;
	m = (mesh *)o;
	if (!placements_of(before, m, from) || !placements_of(after, m, to) ||
		!context_enter(m->c))
		return NULL;
	HEAVY(s, tn_at_mesh_measure(
		p.file, p.line, m->m, rows, columns, from, to, repeat, &t));
	if (error_check(m->c, s))
		result = Py_BuildValue("sddLL", t.name, t.seconds, t.mpi_seconds,
			(long long)t.bytes_sent, (long long)t.bytes_least);
	context_leave(m->c);
	return result;
}

/* Enters the context of a living tensor; NULL: raised. */
static tensor *entered(PyObject *x)
{
	tensor *t = (tensor *)x;

	if (!tensor_is(x)) {
		PyErr_SetString(PyExc_TypeError, "a tensor is expected");
		return NULL;
	}
	return tensor_is_alive(t) && context_enter(t->c) ? t : NULL;
}

static PyObject *full(PyObject *module, PyObject *x)
{
	place p = place_here();
	tensor *t = entered(x);
	PyObject *o;

	(void)module;
	if (t == NULL)
		return NULL;
	o = tensor_wrap(t->c, tn_at_full(p.file, p.line, t->x));
	context_leave(t->c);
	return o;
}

static PyObject *placement(PyObject *module, PyObject *x)
{
	place p = place_here();
	tensor *t = entered(x);
	PyObject *o = NULL;
	char *text = NULL;
	tn_status s;

	(void)module;
	if (t == NULL)
		return NULL;
	HEAVY(s, tn_at_placement_text(p.file, p.line, t->x, &text));
	if (error_check(t->c, s))
		o = PyUnicode_FromString(text);
	tn_text_free(text);
	context_leave(t->c);
	return o;
}

/* ---- the part of this process ---- */

/*
 * The context of local parts: it knows no other process. A tensor of one shape here and
 * of another elsewhere cannot meet those of the mesh, of which all make the same calls.
 */
static context *alone_of(context *c)
{
	PyObject *args, *kwargs;

	if (c->alone != NULL)
		return c->alone;
	args = PyTuple_New(0);
	kwargs = Py_BuildValue("{s:s}", "device", "cpu");
	if (args != NULL && kwargs != NULL)
		c->alone = (context *)PyObject_Call((PyObject *)context_type, args, kwargs);
	Py_XDECREF(args);
	Py_XDECREF(kwargs);
	return c->alone;
}

/* The part in memory of the host; the context has been entered. False: raised. */
static bool part_of(tensor *t, place p, tn_window *w)
{
	tn_status s;

	if (strncmp(tn_device_of(t->x), "cuda", 4) == 0) {
		error_say("python.local",
			"the part of this process is on %s, and only that of the "
			"host can be taken: use full()", tn_device_of(t->x));
		return false;
	}
	HEAVY(s, tn_at_local(p.file, p.line, t->x, w));
	if (!error_check(t->c, s))
		return false;
	if (!w->is_box) { /* elements in the order of the whole */
		w->rank = 1;
		w->shape[0] = w->n_elems;
	}
	return true;
}

static PyObject *local(PyObject *module, PyObject *x)
{
	place p = place_here();
	tensor *t = entered(x);
	PyObject *o = NULL;
	context *alone;
	tn_window w;

	(void)module;
	if (t == NULL)
		return NULL;
	alone = alone_of(t->c);
	if (alone != NULL && part_of(t, p, &w) && context_enter(alone)) {
		o = tensor_wrap(alone, tn_at_tensor_new(p.file, p.line, alone->c,
			tn_tensor_dtype(t->x), w.rank, w.shape, w.data));
		context_leave(alone);
	}
	context_leave(t->c);
	return o;
}

/* The elements of v, a tensor of the context of local parts, become those of w. */
static bool put(tensor *v, place p, const tn_window *w)
{
	const int64_t *shape = tn_tensor_shape(v->x);
	bool same = tn_tensor_rank(v->x) == w->rank;
	tn_status s;

	for (int32_t i = 0; same && i < w->rank; i++)
		same = shape[i] == w->shape[i];
	if (!same) {
		error_say("python.local", "the part of this process has another shape: "
			"%lld elements, rank %d, not %lld, rank %d",
			(long long)w->n_elems, (int)w->rank,
			(long long)tn_tensor_n_elems(v->x), (int)tn_tensor_rank(v->x));
		return false;
	}
	HEAVY(s, tn_at_read(p.file, p.line, v->x, w->data, w->n_bytes));
	return error_check(v->c, s);
}

/* _set_local(x, value) */
static PyObject *set_local(PyObject *module, PyObject *args)
{
	place p = place_here();
	PyObject *x, *value;
	tensor *t, *v = NULL;
	context *alone;
	bool good = false;
	tn_window w;

	(void)module;
	if (!PyArg_ParseTuple(args, "OO:set_local", &x, &value))
		return NULL;
	t = entered(x);
	if (t == NULL)
		return NULL;
	alone = alone_of(t->c);
	if (alone != NULL && context_enter(alone)) {
		v = convert_to(alone, value, tn_tensor_dtype(t->x));
		good = v != NULL && part_of(t, p, &w) && put(v, p, &w);
		Py_XDECREF((PyObject *)v);
		context_leave(alone);
	}
	context_leave(t->c);
	return good ? Py_NewRef(x) : NULL;
}

static PyObject *offset(PyObject *module, PyObject *x)
{
	place p = place_here();
	tensor *t = entered(x);
	PyObject *o = NULL;
	tn_window w;

	(void)module;
	if (t == NULL)
		return NULL;
	if (part_of(t, p, &w))
		o = w.is_box ? shape_object(w.rank, w.from) : Py_NewRef(Py_None);
	context_leave(t->c);
	return o;
}

/* ---- programs on meshes that need not be there ---- */

/* The text of a call that ended with s. */
static PyObject *text_of(context *c, tn_status s, char *text)
{
	PyObject *o = NULL;

	if (error_check(c, s))
		o = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
	tn_text_free(s < 0 ? NULL : text);
	return o;
}

/* The texts of a list, which live as long as the list of bytes *held; NULL: raised. */
static const char **texts_of(PyObject *list, int32_t *n, PyObject **held)
{
	Py_ssize_t many = PyTuple_Size(list);
	const char **out = calloc((size_t)many + 1, sizeof *out);

	*n = (int32_t)many;
	*held = PyList_New(0);
	if (out == NULL)
		PyErr_NoMemory();
	for (Py_ssize_t i = 0; !PyErr_Occurred() && i < many; i++) {
		PyObject *o = PyTuple_GetItem(list, i), *bytes;
		char *text;

		if (!PyUnicode_Check(o)) {
			PyErr_SetString(PyExc_TypeError, "placements of inputs are strings");
			break;
		}
		bytes = PyUnicode_AsUTF8String(o);
		if (bytes != NULL && PyList_Append(*held, bytes) == 0 &&
			PyBytes_AsStringAndSize(bytes, &text, NULL) == 0)
			out[i] = text;
		Py_XDECREF(bytes);
	}
	if (!PyErr_Occurred())
		return out;
	free(out);
	return NULL;
}

PyObject *mesh_explain(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keys[] = {"mesh", "placements", "json", NULL};
	PyObject *given = NULL, *list, *held = NULL, *o = NULL;
	program *p = (program *)self;
	const char *name, **texts;
	char *text = NULL;
	int json = 0;
	tn_status s;
	int32_t n;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|O$p:explain_shard", keys,
		    &name, &given, &json))
		return NULL;
	list = given != NULL ? PySequence_Tuple(given) : PyTuple_New(0);
	if (list == NULL)
		return NULL;
	texts = texts_of(list, &n, &held);
	if (texts != NULL && context_enter(p->c)) {
		HEAVY(s, tn_program_explain_shard(&text, p->p, name, texts, n, json));
		o = text_of(p->c, s, text);
		context_leave(p->c);
	}
	free(texts);
	Py_XDECREF(held);
	Py_DECREF(list);
	return o;
}

PyObject *mesh_plan(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keys[] = {"mesh", "memory", "link", "latency", "flops", "train",
		"json", NULL};
	tn_shard_wishes w = {.link = 10e9, .latency = 5e-6, .flops = 100e9};
	program *p = (program *)self;
	int train = 0, json = 0;
	char *text = NULL;
	PyObject *o;
	tn_status s;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sd|$dddpp:plan_shards", keys,
		    &w.mesh, &w.memory, &w.link, &w.latency, &w.flops, &train, &json))
		return NULL;
	w.train = train;
	w.json = json;
	if (!context_enter(p->c))
		return NULL;
	HEAVY(s, tn_program_plan_shards(&text, NULL, p->p, &w));
	o = text_of(p->c, s, text);
	context_leave(p->c);
	return o;
}

/* ---- of the context of this thread ---- */

static PyObject *stats(PyObject *module, PyObject *unused)
{
	context *c = context_here();
	tn_shard_stats s;

	(void)module;
	(void)unused;
	if (c == NULL || !context_enter(c))
		return NULL;
	tn_context_shard_stats(c->c, &s);
	context_leave(c);
	return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L}",
		"moves", (long long)s.n_moves, "bytes_sent", (long long)s.bytes_sent,
		"reads", (long long)s.n_reads, "read_bytes", (long long)s.read_bytes,
		"write_backs", (long long)s.n_write_backs,
		"write_back_bytes", (long long)s.write_back_bytes);
}

static PyObject *set(PyObject *arg, tn_status (*call)(tn_context *c, bool on))
{
	context *c = context_here();
	int on = PyObject_IsTrue(arg);
	bool good;

	if (on < 0 || c == NULL || !context_enter(c))
		return NULL;
	good = error_check(c, call(c->c, on != 0));
	context_leave(c);
	if (!good)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *strict(PyObject *module, PyObject *arg)
{
	(void)module;
	return set(arg, tn_shard_strict);
}

static PyObject *debug(PyObject *module, PyObject *arg)
{
	(void)module;
	return set(arg, tn_shard_debug);
}

static PyObject *patience(PyObject *module, PyObject *arg)
{
	context *c = context_here();
	double seconds = PyFloat_AsDouble(arg);
	bool good;

	(void)module;
	if ((seconds == -1 && PyErr_Occurred()) || c == NULL || !context_enter(c))
		return NULL;
	good = error_check(c, tn_shard_patience(c->c, seconds));
	context_leave(c);
	if (!good)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *agree(PyObject *module, PyObject *args)
{
	context *c = context_here();
	const char *what, *text;
	tn_status s;
	bool good;

	(void)module;
	if (c == NULL || !PyArg_ParseTuple(args, "ss:agree", &what, &text) ||
		!context_enter(c))
		return NULL;
	HEAVY(s, tn_agree(c->c, what, text));
	good = error_check(c, s);
	context_leave(c);
	if (!good)
		return NULL;
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{"_shard", shard, METH_VARARGS, NULL},
	{"_reshard", reshard, METH_VARARGS, NULL},
	{"_measure", measure, METH_VARARGS, NULL},
	{"_full", full, METH_O, NULL},
	{"_placement", placement, METH_O, NULL},
	{"_local", local, METH_O, NULL},
	{"_set_local", set_local, METH_VARARGS, NULL},
	{"_local_offset", offset, METH_O, NULL},
	{"shard_stats", stats, METH_NOARGS,
		"shard_stats()\n--\n\nMoves between processes and copies through reshard so far, as a dictionary: counts, and bytes that left this process."},
	{"shard_strict", strict, METH_O,
		"shard_strict(on)\n--\n\nWhile it is true, a read or write through reshard() that moves is an error."},
	{"shard_debug", debug, METH_O,
		"shard_debug(on)\n--\n\nWhile it is true, all processes compare each program before they run it."},
	{"shard_patience", patience, METH_O,
		"shard_patience(seconds)\n--\n\nHow long this process waits for others of which there is no sign of life. 0: 30 seconds, or TENON_PEER_SECONDS."},
	{"agree", agree, METH_VARARGS,
		"agree(what, text)\n--\n\nRaises on all processes if this text, such as that of a rate or a seed, is not the same on all. what: its name."},
	{0}};

int mesh_init(PyObject *module)
{
	mesh_type = (PyTypeObject *)PyType_FromSpec(&spec);
	if (mesh_type == NULL || PyModule_AddFunctions(module, methods) < 0)
		return -1;
	return PyModule_AddObjectRef(module, "Mesh", (PyObject *)mesh_type);
}
