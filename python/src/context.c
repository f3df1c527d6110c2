/*
 * context.c: contexts, one for each thread unless `with` says otherwise, and who
 * may use one. A context is used by one thread at a time; other threads wait. What they
 * let go of meanwhile is ended by the thread that leaves.
 */
#include "python.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

PyTypeObject *context_type;

static unsigned n_forks; /* of this process, from its first ancestor on */

static void forked(void)
{
	n_forks++;
}

/* ---- what has to wait ---- */

struct later {
	struct later *next;
	void (*call)(void *arg);
	void *arg;
};
static _Atomic(struct later *) laters;

bool context_later(void (*call)(void *arg), void *arg)
{
	struct later *l = malloc(sizeof *l);

	if (l == NULL)
		return false;
	*l = (struct later){atomic_load(&laters), call, arg};
	while (!atomic_compare_exchange_weak(&laters, &l->next, l))
		;
	return true;
}

static void do_laters(void)
{
	struct later *l = atomic_exchange(&laters, NULL);

	while (l != NULL) {
		struct later *next = l->next;

		l->call(l->arg);
		free(l);
		l = next;
	}
}

/* What was made in the body of a function has ended with it. */
static void drop(tn_tensor *x)
{
	if (tn_is_valid(x))
		tn_drop(x);
}

static void do_drops(context *c)
{
	while (c->n_drop > 0)
		drop(c->drop[--c->n_drop]);
}

/* ---- entering ---- */

/* In a forked child nobody else is at work: locks of other threads are void. */
static bool after_fork(context *c)
{
	if (c->owner != 0 && c->owner != PyThread_get_thread_ident()) {
		error_say("context.fork",
			"another thread was at work in this context when the "
			"process was forked: make a new one");
		return false;
	}
	c->lock = PyThread_allocate_lock();
	if (c->lock == NULL) {
		PyErr_NoMemory();
		return false;
	}
	c->forks = n_forks;
	if (c->owner != 0)
		PyThread_acquire_lock(c->lock, WAIT_LOCK);
	return true;
}

bool context_enter(context *c)
{
	unsigned long me = PyThread_get_thread_ident();

	if (c->forks != n_forks && !after_fork(c))
		return false;
	if (c->owner == me) {
		c->depth++;
		return true;
	}
	if (!PyThread_acquire_lock(c->lock, NOWAIT_LOCK)) {
		Py_BEGIN_ALLOW_THREADS
		PyThread_acquire_lock(c->lock, WAIT_LOCK);
		Py_END_ALLOW_THREADS
	}
	c->owner = me;
	c->depth = 1;
	return true;
}

void context_leave(context *c)
{
	if (--c->depth > 0)
		return;
	do_drops(c);
	c->owner = 0;
	PyThread_release_lock(c->lock);
	if (atomic_load(&laters) != NULL)
		do_laters();
}

/* A handle that finds no room ends with its context. */
static void drop_later(context *c, tn_tensor *x)
{
	if (c->n_drop == c->room) {
		Py_ssize_t room = c->room * 2 + 16;
		tn_tensor **p = realloc(
			c->drop, (size_t)room * sizeof *c->drop);

		if (p == NULL)
			return;
		c->drop = p;
		c->room = room;
	}
	c->drop[c->n_drop++] = x;
}

void context_drop(context *c, tn_tensor *x)
{
	bool ours = c->forks == n_forks;

	if (ours && c->owner == PyThread_get_thread_ident()) {
		drop(x);
	} else if (ours && PyThread_acquire_lock(c->lock, NOWAIT_LOCK)) {
		drop(x);
		PyThread_release_lock(c->lock);
	} else {
		drop_later(c, x);
	}
}

/* ---- the context of a thread ---- */

static PyObject *key; /* in the dictionary that Python keeps for each thread */

static bool put_here(context *c)
{
	PyObject *d = PyThreadState_GetDict();

	if (d == NULL) {
		PyErr_SetString(PyExc_RuntimeError, "this thread is not Python's");
		return false;
	}
	return c == NULL ? PyDict_DelItem(d, key) == 0
			 : PyDict_SetItem(d, key, (PyObject *)c) == 0;
}

static context *found_here(void)
{
	PyObject *d = PyThreadState_GetDict();

	return d == NULL ? NULL
			 : (context *)PyDict_GetItemWithError(d, key);
}

context *context_here(void)
{
	context *c = found_here();

	if (c != NULL || PyErr_Occurred())
		return c;
	c = (context *)PyObject_CallNoArgs((PyObject *)context_type);
	if (c == NULL)
		return NULL;
	if (!put_here(c)) {
		Py_DECREF(c);
		return NULL;
	}
	Py_DECREF(c); /* the dictionary's now */
	return c;
}

static bool make(context *c, const tn_options *o)
{
	if (tn_context_new(&c->c, o) >= 0)
		return true;
	error_raise(NULL);
	return false;
}

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"threads", "interp", "fusion", "verify",
		"cache_dir", "device", "target", "memory_limit", NULL};
	tn_options o = TN_OPTIONS_INIT;
	int interp = 0, fusion = 1, verify = o.verify;
	long long limit = o.memory_limit;
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	context *c;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$ipppzzzL:Context",
		    names, &o.threads, &interp, &fusion, &verify, &o.cache_dir,
		    &o.device, &o.target, &limit))
		return NULL;
	o.interp = interp;
	o.no_fusion = !fusion;
	o.verify = verify;
	o.memory_limit = limit;
	c = (context *)alloc(type, 0);
	if (c == NULL)
		return NULL;
	c->forks = n_forks;
	c->lock = PyThread_allocate_lock();
	if (c->lock == NULL || !make(c, &o)) {
		if (c->lock == NULL)
			PyErr_NoMemory();
		Py_DECREF(c);
		return NULL;
	}
	return (PyObject *)c;
}

static void context_dealloc(PyObject *self)
{
	context *c = (context *)self;
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	if (c->c != NULL && (c->forks == n_forks || c->owner == 0)) {
		do_drops(c);
		tn_context_free(c->c);
		do_laters();
	}
	if (c->lock != NULL && c->forks == n_forks)
		PyThread_free_lock(c->lock);
	free(c->drop);
	for (int i = 0; i < 3; i++)
		Py_XDECREF(c->raised[i]);
	Py_XDECREF(c->outer);
	Py_XDECREF(c->own);
	Py_XDECREF((PyObject *)c->alone);
	release(self);
	Py_DECREF(type);
}

static PyObject *context_with(PyObject *self, PyObject *unused)
{
	context *c = (context *)self, *outer = found_here();

	(void)unused;
	if (c->outer != NULL)
		return error_say("context.with",
			"this context is in use by `with` already");
	if (outer == NULL && PyErr_Occurred())
		return NULL;
	c->outer = Py_NewRef(outer != NULL ? (PyObject *)outer : Py_None);
	if (!put_here(c))
		return NULL;
	return Py_NewRef(self);
}

static PyObject *context_end(PyObject *self, PyObject *args)
{
	context *c = (context *)self;
	PyObject *outer = c->outer;

	(void)args;
	if (outer == NULL)
		return error_say("context.with", "this context is not in use by `with`");
	c->outer = NULL;
	if (!put_here(outer == Py_None ? NULL : (context *)outer)) {
		Py_DECREF(outer);
		return NULL;
	}
	Py_DECREF(outer);
	Py_RETURN_NONE;
}

static PyObject *context_stats(PyObject *self, PyObject *unused)
{
	context *c = (context *)self;
	tn_stats s;

	(void)unused;
	if (!context_enter(c))
		return NULL;
	tn_context_stats(c->c, &s);
	context_leave(c);
	return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:d,s:d}",
		"programs", (long long)s.n_programs,
		"compiled", (long long)s.n_compiled,
		"calls", (long long)s.n_calls,
		"runs", (long long)s.n_flushes,
		"copied_bytes", (long long)s.copied_bytes,
		"bytes_live", (long long)s.bytes_live,
		"bytes_peak", (long long)s.bytes_peak,
		"bytes_plans", (long long)s.bytes_plans,
		"tensors", (long long)s.n_tensors,
		"compile_ms", s.compile_ms, "run_ms", s.run_ms);
}

static PyObject *context_seed(PyObject *self, PyObject *arg)
{
	context *c = (context *)self;
	unsigned long long seed = PyLong_AsUnsignedLongLongMask(arg);

	if (seed == (unsigned long long)-1 && PyErr_Occurred())
		return NULL;
	if (!context_enter(c))
		return NULL;
	tn_set_seed(c->c, seed);
	context_leave(c);
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{"__enter__", context_with, METH_NOARGS, NULL},
	{"__exit__", context_end, METH_VARARGS, NULL},
	{"stats", context_stats, METH_NOARGS,
		"stats()\n--\n\nWhat this context has done so far, as a dictionary: counts, bytes and milliseconds."},
	{"seed", context_seed, METH_O,
		"seed(n)\n--\n\nRandom keys follow from this number, and from how many were drawn since."},
	{0}};

static PyType_Slot slots[] = {{Py_tp_new, context_new},
	{Py_tp_dealloc, context_dealloc}, {Py_tp_methods, methods},
	{Py_tp_doc,
		"Context(*, threads=0, interp=False, fusion=True, verify=True, cache_dir=None, device=None, target=None, memory_limit=-1)\n--\n\n"
		"Everything that tensors need: compiler, cache, threads, device.\n\n"
		"Each thread has one, made when it is first needed. `with Context(...):` uses\n"
		"another one. Tensors of different contexts do not meet in one operation.\n"
		"threads: 0 is one for each CPU. interp: the slow interpreter, which needs no C\n"
		"compiler. device: \"cpu\", \"simt\" or \"cuda:0\". memory_limit: bytes that may be\n"
		"kept for gradients, -1 is as fast as possible."},
	{0}};
static PyType_Spec spec = {.name = "tenon.Context", .basicsize = sizeof(context),
	.flags = Py_TPFLAGS_DEFAULT, .slots = slots};

int context_init(PyObject *module)
{
	key = PyUnicode_InternFromString("tenon.context");
	context_type = (PyTypeObject *)PyType_FromSpec(&spec);
	if (key == NULL || context_type == NULL ||
		pthread_atfork(NULL, NULL, forked) != 0)
		return -1;
	return PyModule_AddObjectRef(module, "Context", (PyObject *)context_type);
}

/* ---- where Python is ---- */

static PyObject *files; /* name of a file: its bytes, which live on */
static PyObject *last_code; /* the code object that was looked at last */
static place last_place;
static const char *own_folder; /* files of the package begin with this */

/* The file of a code object; NULL with no exception: one of this package. */
static const char *file_of(PyObject *code)
{
	PyObject *name, *bytes;
	const char *file = NULL;

	if (code == last_code)
		return last_place.file;
	name = PyObject_GetAttrString(code, "co_filename");
	if (name == NULL)
		return NULL;
	bytes = PyDict_GetItemWithError(files, name);
	if (bytes == NULL && !PyErr_Occurred()) {
		bytes = PyUnicode_EncodeFSDefault(name);
		if (bytes != NULL) {
			PyDict_SetItem(files, name, bytes);
			Py_DECREF(bytes);
		}
	}
	Py_DECREF(name);
	if (bytes != NULL && !PyErr_Occurred())
		file = PyBytes_AsString(bytes);
	if (file != NULL && own_folder != NULL &&
		strncmp(file, own_folder, strlen(own_folder)) == 0)
		return NULL;
	if (file != NULL) {
		Py_XDECREF(last_code);
		last_code = Py_NewRef(code);
		last_place.file = file;
	}
	return file;
}

place place_here(void)
{
	place p = {NULL, 0};
	PyObject *frame;

	if (PyErr_Occurred()) /* not ours to clear */
		return p;
	frame = Py_XNewRef((PyObject *)PyEval_GetFrame());
	while (frame != NULL && frame != Py_None) {
		PyObject *code =
			(PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
		PyObject *back;

		p.file = file_of(code);
		Py_DECREF(code);
		if (p.file != NULL) {
			p.line = PyFrame_GetLineNumber((PyFrameObject *)frame);
			break;
		}
		back = PyObject_GetAttrString(frame, "f_back");
		Py_DECREF(frame);
		frame = back;
	}
	Py_XDECREF(frame);
	PyErr_Clear();
	return p;
}

static PyObject *set_folder(PyObject *self, PyObject *arg)
{
	PyObject *bytes = PyUnicode_EncodeFSDefault(arg);

	(void)self;
	if (bytes == NULL)
		return NULL;
	own_folder = PyBytes_AsString(bytes); /* kept: for as long as the module */
	Py_RETURN_NONE;
}

static PyMethodDef place_methods[] = {
	{"_set_folder", set_folder, METH_O, NULL}, {0}};

int place_init(PyObject *module)
{
	files = PyDict_New();
	return files == NULL ? -1 : PyModule_AddFunctions(module, place_methods);
}
