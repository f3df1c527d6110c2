/*
 * tenon_train.h: parameters by name, optimisers, and what a run took; part of
 * tenon.h, which includes it.
 *
 *     tn_optimizer_add_all(opt, p);
 *     tn_backward(loss, NULL);        tn_optimizer_step(opt);
 */
#ifndef TENON_TRAIN_H
#define TENON_TRAIN_H

/* ---- parameters by name ------------------------------------------------ */

/**
 * The tensors of a model by name, in the order in which they were added: what
 * is trained, and statistics, which are only kept. Names are paths whose parts
 * have dots between them: "block0.attention.query.weight".
 */
typedef struct tn_params tn_params;

/** owner   *out is the caller's: tn_params_free, before its context */
TN_API TN_MUST_USE tn_status tn_params_new(tn_params **out, tn_context *c);
/** Ends the layers and the tensors that were made in it. NULL is fine. */
TN_API void tn_params_free(tn_params *p);
TN_API tn_context *tn_params_context(const tn_params *p);

/**
 * Until the leave that belongs to it, what is made has a name that begins with
 * this one and a dot. Nests. The name is for printf: "block%d", i.
 * errors  [params.name] empty, or too long
 */
#define tn_params_enter(...) tn_at_params_enter(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_params_enter(const char *file, int32_t line,
	tn_params *p, const char *format, ...) TN_PRINTF(4, 5);
/** [params.name] when nothing was entered. */
TN_API tn_status tn_params_leave(tn_params *p);

/**
 * A new parameter of zeros under this name; trained: with a gradient, and for
 * tn_optimizer_add_all.
 *
 * errors  [params.name] empty, longer than 255 bytes, there already, not UTF-8,
 *         or __metadata__, which files use
 *         [params.dtype] trained, but no float   [tensor.shape]
 * owner   the set's; NULL when it failed
 */
#define tn_params_make(...) tn_at_params_make(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_params_make(const char *file, int32_t line,
	tn_params *p, const char *name, tn_dtype dtype, int32_t rank,
	const int64_t *shape, bool trained);

/**
 * Adds a tensor of the caller's, which must live as long as the set. The same
 * one may have several names: it is saved under each and trained once.
 * errors  [params.name]   [params.dtype]
 */
#define tn_params_add(...) tn_at_params_add(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_params_add(const char *file, int32_t line, tn_params *p,
	const char *name, tn_tensor *x, bool trained);

TN_API int32_t tn_params_n(const tn_params *p);
/** NULL when i is not a number of one. */
TN_API const char *tn_params_name(const tn_params *p, int32_t i);
TN_API tn_tensor *tn_params_at(const tn_params *p, int32_t i);
TN_API bool tn_params_is_trained(const tn_params *p, int32_t i);
/** By its whole name; NULL when there is none. */
TN_API tn_tensor *tn_params_get(const tn_params *p, const char *name);

/** Computes all of them: the end of a training step. */
#define tn_params_eval(...) tn_at_params_eval(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_params_eval(
	const char *file, int32_t line, tn_params *p);

/** What layers do that train in another way than they infer; true at first. */
TN_API void tn_params_set_training(tn_params *p, bool training);
TN_API bool tn_params_training(const tn_params *p);

/** Zeroed memory that lives as long as p: for layers. NULL: out of memory. */
TN_API void *tn_params_alloc(tn_params *p, size_t n_bytes);

/** A word about a file; UTF-8. */
typedef struct tn_pair {
	const char *key, *value;
} tn_pair;

/**
 * All of them, computed, as a .safetensors file with n words of metadata. The
 * file appears whole or not at all, and is the same for the same values. Of
 * several processes all call it, and the first one writes. The value of a
 * word "tenon.sha256" is computed, whatever it is here: the SHA-256 of the file
 * with zeros for its digits. tn_params_load then refuses a damaged file.
 *
 * errors  [safetensors.write]; on the other processes then [shard.first]
 *          [safetensors.name] no UTF-8, or twice the same
 * since   0.1
 */
#define tn_params_save(...) tn_at_params_save(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_params_save(const char *file, int32_t line,
	tn_params *p, const char *path, const tn_pair *metadata, int32_t n);

/**
 * Values from a .safetensors file, written where the tensors stand, without a
 * gradient. Nothing is written unless all of it fits. strict false: tensors
 * that only one side has are fine.
 *
 * errors  [params.missing] [params.unexpected] with the names
 *         [params.type] with both shapes and dtypes   [safetensors.*]
 *         [safetensors.checksum] it has "tenon.sha256", and is damaged
 * since   0.1
 */
#define tn_params_load(...) tn_at_params_load(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_params_load(const char *file, int32_t line,
	tn_params *p, const char *path, bool strict);

/**
 * The word of a .safetensors file's metadata for a key; *out NULL: it has none.
 * For the key "tenon.sha256" the whole file is read and compared with it.
 * errors  [safetensors.checksum] the file is damaged   [safetensors.*]
 * owner   *out is the caller's: tn_text_free
 */
TN_API TN_MUST_USE tn_status tn_safetensors_metadata(
	char **out, tn_context *c, const char *path, const char *key);

/* ---- optimisers -------------------------------------------------------- */

/** Updates parameters by their gradients, with the state it needs for it. */
typedef struct tn_optimizer tn_optimizer;

/** Choices; start from TN_OPTIMIZER_OPTIONS_INIT. A row takes what it knows. */
typedef struct tn_optimizer_options {
	size_t n_bytes; /* sizeof(tn_optimizer_options) of the caller */
	double lr;
	double beta1, beta2, eps; /* adam, adamw, lamb; eps also the others */
	double momentum;	  /* sgd_momentum */
	double alpha;		  /* rmsprop */
	double decay;		  /* of weights */
	double clip_norm; /* limit of the norm of all gradients; 0: none */
	bool nesterov;	  /* sgd_momentum */
} tn_optimizer_options;

#define TN_OPTIMIZER_OPTIONS_INIT                                              \
	{                                                                      \
		sizeof(tn_optimizer_options), 1e-3, 0.9, 0.999, 1e-8, 0.9,     \
			0.99, 0, 0, false                                      \
	}

/**
 * name    a row: sgd, sgd_momentum, adam, adamw, adagrad, rmsprop, lamb
 * errors  [optimizer.name] another name   [optimizer.options] options of
 *         another version
 * owner   *out is the caller's: tn_optimizer_free, before its context
 */
TN_API TN_MUST_USE tn_status tn_optimizer_new(tn_optimizer **out,
	tn_context *c, const char *name, const tn_optimizer_options *options);
TN_API void tn_optimizer_free(tn_optimizer *o);
/**
 * The optimiser updates p from now on; its state begins at zero. For a parameter
 * in f16 or bf16, states are in f32, and the last state is a copy of the
 * parameter in f32: a step updates the copy and rounds it to p. If p was written
 * by another call, the copy is first taken from p again.
 *
 * errors  [optimizer.dtype] p is not of a float dtype
 */
TN_API tn_status tn_optimizer_add(tn_optimizer *o, tn_tensor *p);
/** The same for all of a set that is trained and not there yet. */
TN_API tn_status tn_optimizer_add_all(tn_optimizer *o, const tn_params *p);
/**
 * Records one update of everything that has a gradient, and forgets those.
 *
 * errors  [tensor.handle] a parameter or a state was dropped: nothing is recorded
 */
TN_API tn_status tn_optimizer_step(tn_optimizer *o);
TN_API void tn_optimizer_set_lr(tn_optimizer *o, double lr);
/** The learning rate, f64 of rank 0: what a step reads. [api.null] */
TN_API tn_tensor *tn_optimizer_rate(const tn_optimizer *o);
/**
 * How many steps it has made. Those that were recorded are evaluated: one that
 * fails does not count, is undone, and leaves its error in the context.
 */
TN_API int64_t tn_optimizer_steps(const tn_optimizer *o);
/** The next step is number n + 1: of training that goes on. */
TN_API void tn_optimizer_set_steps(tn_optimizer *o, int64_t n);
/** State k of the i-th parameter. NULL: there is none. */
TN_API tn_tensor *tn_optimizer_state(
	const tn_optimizer *o, int32_t i, int32_t k);
/**
 * Adds all states to a set, to save and load them: state k of parameter NAME
 * as NAME.state0 ..., of the i-th parameter without a name as i.state0.
 * errors  [params.name]
 */
TN_API tn_status tn_optimizer_add_states(const tn_optimizer *o, tn_params *p);
/** Rises linearly to lr within warmup steps, then falls as a cosine to least. */
TN_API double tn_lr_cosine(int64_t step, int64_t warmup, int64_t total,
	double lr, double least);

/* ---- profiles ---------------------------------------------------------- */

/**
 * From here on, what is compiled is kept for tn_profile_text, and runs of it
 * are timed, kernel by kernel. Timed runs launch one kernel after another, also
 * kernels that would run at the same time: each has a time of its own.
 *
 * errors  TN_ENOMEM
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_profile_start(tn_context *c);

/**
 * What has run since tn_profile_start, one JSON object: for each program its
 * kernels with their source operations, loops (MapExpr), time, bytes and flops,
 * its functions as C, and the reason of every edge between kernels. An
 * equation is named by its operation and the number of its call: "linear_16.o".
 * The loops stand with the first kernel of each function; "seconds" are those
 * of all runs. With trace: the last run of each program and its compilation as
 * a Chrome trace.
 *
 * owner   *out is the caller's: tn_text_free
 * errors  TN_EINVAL [profile.start] it was not started
 */
TN_API TN_MUST_USE tn_status tn_profile_text(
	char **out, tn_context *c, bool trace);

/**
 * What tn_profile_text says of times, as a table: kernels by the time that they
 * take in a run, their bytes and flops a second; the forty slowest.
 *
 * owner   *out is the caller's: tn_text_free
 * errors  TN_EINVAL [profile.start] it was not started
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_profile_table(char **out, tn_context *c);

/** A kernel of a compiled program: strings are borrowed from the program. */
typedef struct tn_kernel {
	const char *name; /* of the calls in it: "fn_exp_0_softmax_1" */
	const char *code; /* in C, the same for equal kernels; NULL: a function
			   * of the library */
	int64_t runs;	  /* since tn_profile_start */
	double seconds;	  /* of all of them; 0: not timed */
	double predicted; /* of one, by the estimate that decides about fusion */
	const char *term; /* the largest part of that: "products in tiles" */
	int64_t bytes, flops; /* that it reads and writes; that it computes */
} tn_kernel;

/** In the order in which they run; 0 before tn_program_compile. */
TN_API int32_t tn_program_n_kernels(const tn_program *p);
/**
 * Kernel i of a compiled program, with its times so far. In a context of one
 * thread they are times in which this thread computed, else wall times.
 *
 * errors  [kernels.number] no such kernel, or it is not compiled
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_program_kernel(
	tn_kernel *out, tn_program *p, int32_t i);

/**
 * Two equations that one kernel computes, by the names of what they make: one
 * reads what the other makes, or overwrites what it reads, or both read a
 * tensor. tn_program_set_apart with these names gives a program without this.
 */
typedef struct tn_merge {
	const char *first, *then; /* borrowed from the program */
	int32_t kernel, at[2]; /* their numbers among its equations */
} tn_merge;

/** 0 before tn_program_compile. */
TN_API int32_t tn_program_n_merges(const tn_program *p);
/**
 * Merge i of a compiled program.
 *
 * errors  [merges.number] no such merge, or it is not compiled
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_program_merge(
	tn_merge *out, tn_program *p, int32_t i);

/**
 * A constant that fusion and schedules depend on, and the measurement it comes
 * from; of a size or a limit, the bench that shows what it is worth. Strings are
 * static.
 */
typedef struct tn_cost {
	const char *machine; /* that programs are compiled for: "c/avx512" */
	int32_t vector_bytes;
	const char *name, *unit, *from;
	double value;
} tn_cost;

TN_API int32_t tn_machine_n_costs(void);
/**
 * Constant i of the machine that programs of this context are compiled for.
 *
 * errors  [machine.cost] no such constant   those of the C compiler
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_machine_cost(
	tn_cost *out, tn_context *c, int32_t i);

/** The object of tn_profile_text for one program, with times if it was compiled since. */
TN_API TN_MUST_USE tn_status tn_program_profile(char **out, tn_program *p);

/* ---- schedules ---- */

/**
 * Pin schedules for one of the programs that the context compiles from now on,
 * such as a training step: each program that has all kernels of the text, by
 * number and name, is compiled with it; the others are compiled as usual, and
 * so is a program with a schedule of its own. tn_stats.n_pinned counts the
 * programs that were compiled with it. TENON_DUMP=schedule prints the text of
 * each program. A second call replaces the first text.
 *
 * errors  by the call that compiles a program: [schedule.machine] made for
 *         another machine   [schedule.*] the rule that is broken, with the line
 * owner   text is copied
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_context_set_schedule(
	tn_context *c, const char *text, size_t n_bytes, const char *file);
/** The same from a file; "-": standard input. errors also [file.read] */
TN_API TN_MUST_USE tn_status tn_context_load_schedule(
	tn_context *c, const char *path);

#endif
