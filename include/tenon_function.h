/*
 * tenon_function.h: functions that are recorded once and compiled, conditions
 * and loops inside of them; part of tenon.h, which includes it.
 */
#ifndef TENON_FUNCTION_H
#define TENON_FUNCTION_H

/* ---- compiled functions ------------------------------------------------ */

/** Most arguments, and most outputs, of a compiled function. */
#define TN_MAX_FUNCTION_ARGS 256

/** A function on tensors that is recorded once and is one call from then on. */
typedef struct tn_function tn_function;

/**
 * The function that is compiled: it records calls on in[] and sets out[]. It may
 * write to its arguments and to tensors from outside, take gradients, and update
 * parameters.
 * It must not look at elements [compile.read]. Numbers of C in it are
 * constants; keys of random numbers are new at each call.
 */
typedef tn_status tn_body(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out);

/**
 * A compiled function in *out. Nothing is recorded before the first call.
 *
 * It is recorded once for each kind of arguments: shapes, dtypes, which of them
 * have a gradient, and which overlap while one of them is written. Tensors from
 * outside that the body uses are looked up at each call.
 * name    for messages and reports; may be NULL
 * errors  [compile.body] no body   [compile.count] more than
 *         TN_MAX_FUNCTION_ARGS
 * owner   *out is the caller's: tn_function_free, before its context
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_compile(tn_function **out, tn_context *c,
	tn_body *body, void *user, int32_t n_in, int32_t n_out,
	const char *name);
TN_API void tn_function_free(tn_function *f);

/**
 * Records one call, like a call of a row. It writes what the body writes, and has
 * gradients, exactly as the calls of the body would.
 *
 * errors  [compile.read] [compile.output] an output is not a tensor, or depends
 *         on nothing   [compile.rank] an argument has another rank than in the
 *         first call   [compile.scope]   [compile.recursion] the body calls f
 *         again   [compile.depth] more than 64 bodies inside each other
 */
#define tn_function_call(...)                                                  \
	tn_at_function_call(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_function_call(const char *file, int32_t line,
	tn_function *f, tn_tensor *const *in, tn_tensor **out);

/**
 * One call that gives arguments away: those with donated[i] are dead
 * afterwards, and the call may use their memory as it likes. Outputs may be
 * what was donated.
 *
 * errors  [compile.donate] another argument, another tensor that is alive, or
 *         something that the function knows overlaps a donated argument
 *         [tensor.donated] its later use
 * since   0.1
 */
#define tn_function_donate(...)                                                \
	tn_at_function_donate(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_function_donate(const char *file, int32_t line,
	tn_function *f, tn_tensor *const *in, const bool *donated,
	tn_tensor **out);

/**
 * What it has become, for each kind of arguments so far: slots with their
 * versions, the calls of forward and backward, outputs, and where the
 * backward gets what it reads: docs/compile.md. dot: as a Graphviz picture.
 * owner   *out is the caller's: tn_text_free
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_function_text(
	char **out, tn_function *f, bool dot);

/**
 * Forward and backward of the kind of arguments that it was called with last,
 * as one program in the .tn language: inputs, the calls of forward, a cotangent
 * for each output, the calls of backward; it returns the outputs, then the
 * gradients. Comments say what is kept between the two and what is made again.
 * The text parses: it can be run, checked and explained.
 * errors  [compile.program] not called yet; or it has a condition, a loop or a
 *         function in C in it   [print.instance] a row that has no text
 * owner   *out is the caller's: tn_text_free
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_function_program_text(
	char **out, tn_function *f);

/** How often its body was recorded. */
TN_API int64_t tn_function_n_recorded(const tn_function *f);

/* ---- conditions, loops, functions in C --------------------------------- */

/*
 * Bodies are functions on tensors as tn_compile takes them: they are recorded
 * at each call, and run when a result is needed, in code that is compiled once.
 * Tensors that they know are read as they are at the call; what they write is
 * written. Gradients that they collect (tn_backward) must not leave them
 * [region.gradient]: tn_grad does not collect. They can stand in compiled
 * functions and in each other.
 */

/** c; the next call of this part of the interface stands there. */
TN_API tn_context *tn_here(tn_context *c, const char *file, int32_t line);

/**
 * One of two bodies, by a single truth value (bool or integer).
 *
 *     tn_cond(c, tn_gt(norm, limit), shrink, same, user, 1, &x, 1, &y);
 *
 * in      handed to both as they are   out: of the same shapes and dtypes
 * An output that is a tensor which both know, seen in the same way, is that
 * tensor. If it is one in one branch only, that branch returns a copy.
 * errors  [cond.test] more than one element, or floats   [cond.output] shapes
 *         that differ, with both   [compile.read] [compile.scope]
 * since   0.1
 */
#define tn_cond(c, ...) tn_at_cond(tn_here(c, __FILE__, __LINE__), __VA_ARGS__)
TN_API tn_status tn_at_cond(tn_context *c,
	tn_tensor *test, tn_body *then, tn_body *otherwise, void *user,
	int32_t n_in, tn_tensor *const *in, int32_t n_out, tn_tensor **out);

/**
 * While test gives true, body makes n new tensors of n tensors; out: the last.
 *
 * What is carried is a value: out[i] is a tensor of its own. But what the body
 * hands on as it is, is the caller's tensor itself: it may write to it, in
 * place, with no copy: a cache that grows. So to tensors that it knows.
 * rounds  at most, which bounds what is kept for a gradient; 0: as many as it
 *         takes, without a gradient [while.rounds]
 * errors  [loop.carried] another shape or dtype after a round; written, but
 *         not handed on   [while.test] not a single truth value; it writes
 * since   0.1
 */
#define tn_while(c, ...)                                                       \
	tn_at_while(tn_here(c, __FILE__, __LINE__), __VA_ARGS__)
TN_API tn_status tn_at_while(tn_context *c,
	tn_body *test, tn_body *body, void *user, int64_t rounds, int32_t n,
	tn_tensor *const *in, tn_tensor **out);

/**
 * A fixed number of rounds over rows. body(in: carried tensors, then one row
 * of each of n_rows; out: carried tensors, then n_out outputs).
 *
 * in      n_carried tensors as in tn_while, then n_rows with axis 0 = rounds
 * out     the carried ones in the end, then n_out with axis 0 = rounds
 * It has a gradient: the same number of rounds, backwards.
 * errors  [scan.rows] another number of rows; the body writes to one
 *         [loop.carried] as in tn_while
 * since   0.1
 */
#define tn_scan(c, ...) tn_at_scan(tn_here(c, __FILE__, __LINE__), __VA_ARGS__)
TN_API tn_status tn_at_scan(tn_context *c,
	tn_body *body, void *user, int64_t rounds, int32_t n_carried,
	int32_t n_rows, tn_tensor *const *in, int32_t n_out, tn_tensor **out);

/** A function in C on arrays: it sets the elements of out[]. */
typedef tn_status tn_host(void *user, int32_t n_in, const tn_array *in,
	int32_t n_out, const tn_array *out);

/**
 * A call of it, recorded like any other: it runs when a result is needed, once,
 * and never if no result is needed. Only its types are known.
 *
 * types   of the outputs: dtype, rank and shape
 * grad    NULL: it has no gradient; else from in[], out[] and the cotangents
 *         of out[] to those of in[], all of them floats
 * errors  [host.failed] it returned another status, which is passed on
 * since   0.1
 */
#define tn_host_call(c, ...)                                                   \
	tn_at_host_call(tn_here(c, __FILE__, __LINE__), __VA_ARGS__)
TN_API tn_status tn_at_host_call(tn_context *c,
	tn_host *fn, tn_host *grad, void *user, int32_t n_in,
	tn_tensor *const *in, int32_t n_out, const tn_array *types,
	tn_tensor **out);

/* ---- gradients against differences ------------------------------------- */

/** Choices for tn_gradcheck; start from TN_GRADCHECK_OPTIONS_INIT. */
typedef struct tn_gradcheck_options {
	size_t n_bytes; /* sizeof(tn_gradcheck_options) of the caller */
	int32_t order;	/* 1, which 0 means, too; 2: gradients of gradients, too */
	/* a difference is taken over eps * max(1, |element|) to both sides; 0:
	 * 1e-5 in f64, 1e-2 in f32, 0.125 in f16 and bf16 */
	double eps;
	/* accepted: atol + rtol * the larger of both, and what rounding may do to
	 * the difference. rtol 0: 1e-5 in f64, 1e-2 in f32, 0.1 in f16 and bf16;
	 * atol 0: a tenth of rtol */
	double rtol, atol;
	int64_t n_elems; /* of each input, drawn; 0: 64; -1: all */
	uint64_t seed;	 /* of the draw, and of the weights of outputs */
	const bool *skip; /* by input: not checked; NULL: all floats are */
} tn_gradcheck_options;

#define TN_GRADCHECK_OPTIONS_INIT                                              \
	{                                                                      \
		sizeof(tn_gradcheck_options), 1, 0, 0, 0, 0, 0, NULL           \
	}

/** What a check has found, good or not. */
typedef struct tn_gradcheck_result {
	int64_t n_checked; /* elements compared */
	int64_t n_skipped; /* where the slope jumps: neither side is right */
	tn_dtype dtype;	   /* of the inputs while it was done: f64 if possible */
	double eps;
	/* the element that is furthest off, by its tolerance */
	int32_t order, input;
	int64_t index; /* row-major */
	double gradient, difference;
} tn_gradcheck_result;

/**
 * Are the gradients of a function its slopes? Reverse mode is compared with
 * central differences, for each float of in[], element by element.
 *
 * body    called some 2 times for each element, with tensors of the shapes of
 *         in[], in f64 if it takes them, else in their own dtypes. It must give
 *         the same for the same; random keys are the same in each call. It may
 *         write to its inputs, and to nothing else
 * in      not changed   n_out: outputs of body; those that are not floats are
 *         passed over
 * result  NULL: not wanted
 * errors  [gradcheck.differs] it names the worst element and both values
 *         [gradcheck.none] no floats, or only kinks   [gradcheck.options]
 *         [gradcheck.count] [gradcheck.output]; and those of body and tn_grad.
 *         None of them stays in the context: it can be used on
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_gradcheck(tn_context *c, tn_body *body,
	void *user, int32_t n_in, tn_tensor *const *in, int32_t n_out,
	const tn_gradcheck_options *options, tn_gradcheck_result *result);

/**
 * The same for a program, on arrays as tn_program_run takes them. Its f32, f16
 * and bf16 are f64 in the check, dtypes that calls name among them, where its
 * rows and constants allow that.
 */
TN_API TN_MUST_USE tn_status tn_program_gradcheck(tn_program *p,
	const void *const *inputs, const tn_gradcheck_options *options,
	tn_gradcheck_result *result);

#endif
