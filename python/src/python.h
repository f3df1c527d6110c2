/*
 * python.h: what the files of the extension share. Everything here is used with
 * Python's lock held, unless it says otherwise.
 */
#ifndef TENON_PYTHON_H
#define TENON_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <tenon.h>

#include <stdio.h>
#include <string.h>

/* ---- contexts (context.c) ---- */

typedef struct context {
	PyObject_HEAD
	tn_context *c;
	PyThread_type_lock lock; /* held by the thread that works with c */
	unsigned long owner;	 /* that thread; 0: none */
	int depth;		 /* how often it has entered */
	unsigned forks;		 /* of this process when it was made */
	tn_tensor **drop;	 /* handles that other threads let go of */
	Py_ssize_t n_drop, room;
	PyObject *raised[3]; /* by a body: type, value, trace */
	PyObject *outer;	 /* the context before `with`; NULL */
	struct context *alone;	 /* of local parts (mesh.c); NULL: none yet */
	PyObject *own;		 /* rows of the user's: name to text; NULL: none */
} context;

extern PyTypeObject *context_type;
int context_init(PyObject *module);
/* The context of this thread, borrowed; made if there is none. NULL: raised. */
context *context_here(void);
/* For this thread alone, until leave. False: raised. May be nested. */
bool context_enter(context *c);
void context_leave(context *c);
/* Lets go of a handle, from any thread, at any time. */
void context_drop(context *c, tn_tensor *x);
/* To be called later with Python's lock, from where it is not held or nothing
 * of Python may be called; arg is passed on. False: no memory. */
bool context_later(void (*call)(void *arg), void *arg);

/* Where Python is: the line outside of this package that calls it. */
typedef struct place {
	const char *file; /* lives as long as the process */
	int32_t line;
} place;
place place_here(void);
int place_init(PyObject *module);

/* ---- errors (error.c) ---- */

int error_init(PyObject *module);
/* Raises what c's last call that failed had to say, and clears it; c NULL: a
 * call that knew no context. Returns NULL. */
PyObject *error_raise(context *c);
/* The same by hand. */
PyObject *error_say(const char *rule, const char *format, ...)
	TN_PRINTF(2, 3);
/* Has a heavy call ended well? Else, or with a pending Ctrl-C, raises. */
bool error_check(context *c, tn_status s);

/* A call that computes: Python's lock is let go. */
#define HEAVY(status, call)                                                    \
	do {                                                                   \
		PyThreadState *save_ = PyEval_SaveThread();                    \
		(status) = (call);                                             \
		PyEval_RestoreThread(save_);                                   \
	} while (0)

/* ---- dtypes (dtype.c) ---- */

/* From "f32", "float32", float, int, bool, numpy.dtype ..; false: raised. */
bool dtype_of(PyObject *x, tn_dtype *out);
PyObject *dtype_object(tn_dtype t); /* "f32" */
const char *dtype_format(tn_dtype t); /* as the buffer protocol says; or NULL */
bool dtype_of_format(const char *format, Py_ssize_t n_bytes, tn_dtype *out);
/* The dtype of an operator's result: bool < integers < floats, then bytes. */
tn_dtype dtype_common(tn_dtype x, tn_dtype y);
int dtype_init(PyObject *module);

/* ---- tensors (tensor.c) ---- */

typedef struct tensor {
	PyObject_HEAD
	context *c;
	tn_tensor *x;
	bool borrowed; /* an argument of a body: it is ended by its caller */
	enum role { ROLE_PLAIN, ROLE_LEAF, ROLE_PARAMETER } role; /* for copies */
} tensor;

extern PyTypeObject *tensor_type;
int tensor_init(PyObject *module);
/* Owns the handle from now on, also if it raises. NULL and what is not valid:
 * raises c's diagnosis. */
PyObject *tensor_wrap(context *c, tn_tensor *x);
static inline bool tensor_is(PyObject *o)
{
	return PyObject_TypeCheck(o, tensor_type);
}
/* False: raised; it has ended. */
bool tensor_is_alive(const tensor *t);
/* (2, 3) */
PyObject *shape_object(int32_t rank, const int64_t *shape);

/* ---- values from and to Python (convert.c) ---- */

enum { LIKE_NOTHING = -1 };

/* A tensor from a tensor, number, nested list or buffer. like: the dtype that
 * plain numbers take if they fit its kind, or LIKE_NOTHING. New reference. */
tensor *convert(context *c, PyObject *o, int like);
/* The same at a place that is known: finding the user's line takes a while. */
tensor *convert_at(context *c, PyObject *o, int like, place p);
/* The same in this dtype. */
tensor *convert_to(context *c, PyObject *o, tn_dtype t);
/* The dtype that a plain number asks for; false: it is not one. */
bool number_dtype(PyObject *o, int like, tn_dtype *out);
/* Elements as nested lists, or as one number. */
PyObject *convert_list(tensor *x);
/* Integers: one or a sequence. -1: raised. */
int ints_of(PyObject *o, int64_t *out, int room, const char *what);

/* ---- memory of others (exchange.c) ---- */

int exchange_init(PyObject *module);
int exchange_get_buffer(PyObject *self, Py_buffer *view, int flags);
void exchange_release_buffer(PyObject *self, Py_buffer *view);
PyObject *exchange_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *exchange_dlpack_device(PyObject *self, PyObject *unused);

/* ---- copy and pickle (copies.c) ---- */

int copies_init(PyObject *module);
PyObject *copies_copy(PyObject *self, PyObject *unused);
PyObject *copies_deepcopy(PyObject *self, PyObject *memo);
PyObject *copies_reduce(PyObject *self, PyObject *unused);

/* ---- operations (row.c, operator.c, index.c) ---- */

int row_init(PyObject *module);
/* A call with tensors; one result, or a tuple (many). */
PyObject *row_call(context *c, const char *op, int32_t n_in, tensor **in,
	int32_t n_attrs, const tn_attr *attrs);
PyObject *row_call_at(context *c, const char *op, int32_t n_in, tensor **in,
	int32_t n_attrs, const tn_attr *attrs, place p);
int operator_init(PyObject *module);
extern PyType_Slot operator_slots[];
PyObject *index_get(PyObject *self, PyObject *key);
int index_set(PyObject *self, PyObject *key, PyObject *value);

/* ---- functions, programs, training ---- */

int callback_init(PyObject *module);
int function_init(PyObject *module);
int program_init(PyObject *module);
int arrays_init(PyObject *module);
int train_init(PyObject *module);
int mesh_init(PyObject *module);
/* A parameter with the elements of x; name may be NULL. */
PyObject *train_parameter(PyObject *x, const char *name);
/* A body that calls back: user of the library's tn_body. */
typedef struct callback {
	context *c;
	PyObject *call; /* takes n_in tensors, returns a tuple of n_out */
	int n_in, n_out;
	int n_found;	/* results of a call that had another number; else -1 */
	PyObject *held; /* results, until the library has taken them */
} callback;
tn_status callback_body(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out);
/*
 * After a call of the library whose bodies are callbacks: n tensors of out as a
 * tuple; the number of results, if a body had another one than was said; or NULL,
 * and what a body or the library has raised.
 */
PyObject *callback_results(context *c, tn_status s, callback *const *all,
	int n_all, tn_tensor **out, int n);
/* Tensors of a list in in[]; false: raised. */
bool callback_operands(PyObject *list, tn_tensor **in, int room, int *n);

#endif
