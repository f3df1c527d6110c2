/*
 * cli.h: shared by the commands of `tenon`, which use the library only through
 * tenon.h.
 *
 * Exit codes: 0 success; 1 failure (the diagnosis is on standard error); 2 wrong
 * command line.
 */
#ifndef CLI_H
#define CLI_H

#include <tenon.h>

#include <stdio.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

typedef struct cli_command {
	const char *name;
	const char *summary; /* one line for `tenon --help` */
	const char *help;    /* what `tenon NAME --help` prints */
	int (*run)(const struct cli_command *self, int argc, char **argv);
} cli_command;

extern const cli_command cli_run, cli_explain, cli_check, cli_info, cli_ops,
	cli_bench, cli_completion, cli_version, cli_train, cli_train_onnx, cli_export, cli_generate, cli_plan_shards,
	cli_gradcheck, cli_tune;

/*
 * completion.c: prints a completion script for these commands; `all` ends with
 * NULL
 */
int cli_complete(const cli_command *self, const cli_command *const *all,
	int argc, char **argv);

/* ---- near.c: suggestions for unknown words ---- */

typedef struct cli_nearest {
	const char *wanted; /* the unknown word */
	const char *found;  /* the nearest so far, or NULL */
	int distance;
} cli_nearest;

/* Offers a known word as a candidate. */
void cli_near(cli_nearest *n, const char *word);

/* ---- args.c: --flag, --name=value, --name value, positional ---- */

typedef struct cli_option {
	const char *name;   /* without the dashes */
	bool *flag;	    /* set to true if it is given; or */
	const char **value; /* the last given value; or */
	struct cli_list *list; /* all given values */
} cli_option;

typedef struct cli_list {
	const char **at; /* as many entries as there are arguments */
	int n;
} cli_list;

/*
 * Sorts argv into options (a table that ends with a NULL name) and at most
 * n_max positional arguments. Returns -1 to continue, else an exit code: after
 * --help, or after an error message.
 */
int cli_args(const cli_command *self, int argc, char **argv,
	const cli_option *options, const char **positional, int n_max);

/* Prints "tenon run: " and the message on standard error; returns CLI_USAGE. */
int cli_usage(const cli_command *self, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Reads --seed, if text is not NULL. False: it is not a number; prints why. */
bool cli_seed(const cli_command *self, const char *text, uint64_t *out);

/* ---- say.c: diagnoses, notes, JSON ---- */

/* Prints file:line:column: error[rule]: text, then the line with a caret. */
void cli_diag(const tn_diag *d);
/* Prints an error that the command itself found. Returns CLI_FAILED. */
int cli_error(const char *file, const char *rule, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Prints a remark on standard error. */
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints why a context could not be made; returns CLI_FAILED. */
int cli_no_context(void);

/* ---- context.c ---- */

/*
 * The file of --schedule, or NULL, for all contexts that are made from here on.
 * -1; or an exit status, after a message: it cannot be read.
 */
int cli_pin(const cli_command *self, const char *schedule);
/* tn_context_new, with that file. */
tn_status cli_context_new(tn_context **out, const tn_options *o);
void cli_context_free(tn_context *c);
/*
 * Prints the context's note if there is one, and frees the context; c may be
 * NULL.
 */
void cli_close(tn_context *c);
/* code; or, if it is CLI_OK and no program had the kernels of the file, an
 * error, after a message. Comes after all contexts are freed. */
int cli_pin_end(int code);
/*
 * Prints progress on standard error, over the previous line; only on a
 * terminal.
 */
void cli_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints text as a JSON string, with quotes. */
void cli_json_text(FILE *f, const char *text);
/*
 * Prints a number; null if it is not finite, because JSON has no such numbers.
 */
void cli_json_number(FILE *f, double v);
/*
 * Flushes standard output; false, after a message: not everything was written.
 */
bool cli_flush(void);
/* Like calloc; NULL, after a message: out of memory. */
void *cli_alloc(size_t n, size_t size);
/*
 * Can the file be written? false: no, after a message. Does not create it.
 * Called before long work.
 */
bool cli_can_write(const char *path, const char *rule);
/* Reads an integer from lo to 2^30, if text is not NULL. */
bool cli_whole(const char *text, int64_t lo, int64_t *out);
/* Seconds of a monotonic clock. */
double cli_now(void);

/* ---- report.c: pages for a browser ---- */

/* Prints the member "about": date, machine and command line. */
void cli_report_about(FILE *f);
/*
 * json: {"about": .., "title" or "train": .., "profile": of tn_profile_text};
 * false: failed, after a message
 */
bool cli_report_write(const char *path, const char *json);

/* ---- plan_shards.c ---- */

/*
 * The loss of a GPT as .tn text; config is a train_config. NULL: out of memory,
 * after a message.
 */
char *cli_gpt_text(const void *config);

/* ---- print.c: arrays as NumPy prints them ---- */

/* Writes a type such as "f32[2,3]" to out, of n bytes. */
void cli_type_text(char *out, size_t n, tn_dtype t, int32_t rank,
	const int64_t *shape);
/*
 * Prints an array; of more than a thousand elements, long axes have "..." in
 * the middle.
 */
void cli_print_array(FILE *f, tn_dtype t, int32_t rank, const int64_t *shape,
	const void *data);
/* Prints the elements as a flat JSON array. */
void cli_json_array(FILE *f, tn_dtype t, const void *data, int64_t n_elems);

/* ---- model.c: programs from .tn text or from ONNX models ---- */

/* A given array for an input of the program. */
typedef struct cli_given {
	char *name;
	const tn_array *array;
} cli_given;

typedef struct cli_model {
	tn_program *program;
	tn_onnx *onnx; /* NULL: the program is .tn text */
	tn_array **array; /* arrays that were read for it */
	int n_arrays;
	cli_given *given;
	int n_given;
} cli_model;

/*
 * FILE.onnx or .tn text ("-": standard input); dims: NAME=SIZE, inputs:
 * NAME=FILE, whose shapes an ONNX model takes; both may be NULL. If their
 * values determine shapes, the program is one of tn_onnx_stage, or valid only
 * for these values. false: failed, after a message.
 */
bool cli_model_open(cli_model *m, tn_context *c, const char *file,
	const cli_list *dims, const cli_list *inputs, bool stage);
void cli_model_close(cli_model *m);
/* Sets a dimension by "N=4"; false: failed, after a message. */
bool cli_onnx_dim(tn_onnx *m, tn_context *c, const char *text);
/* Applies each --apart A,B; false: failed, after a message. */
bool cli_set_apart(tn_context *c, tn_program *p, const cli_list *pairs);
/*
 * Copies a name without control characters, which a terminal would interpret.
 */
void cli_clean_name(char *out, size_t n, const char *name);
/*
 * Makes a file name: letters, digits, _ - and . (not first) do not change, any
 * other byte becomes %XX; so different names give different files. false: the
 * name is too long.
 */
bool cli_file_name(char *out, size_t n, const char *name);

/*
 * split.c: the program as a compiled function, with gradients for all floats
 * but those named. Returns an exit code.
 */
typedef enum cli_split_as {
	CLI_SPLIT_TEXT,	   /* slots, calls, kept values */
	CLI_SPLIT_DOT,	   /* the same as a Graphviz graph */
	CLI_SPLIT_PROGRAM, /* forward and backward as one program */
} cli_split_as;
int cli_split(const cli_command *self, tn_context *c, tn_program *p,
	const cli_list *no_grad, cli_split_as as, bool json);

/* ---- export_c.c: programs as C ---- */

/* The options of `tenon export --c`; words may be NULL. */
typedef struct cli_export_c {
	const char *dir, *name, *weights, *threads, *test, *seed, *lanes, *dialect,
		*int_size, *isa;
	bool no_fma, small;
	cli_list input;
	tn_export_options o; /* set by cli_export_c_read */
	const char *target;  /* the machine of the lanes, or NULL */
	const char *limit_text;
	int64_t memory_limit; /* of a step of training; -1: none */
	bool is_measured; /* nothing is written: o.size is set */
	uint64_t first;	     /* seed of inputs that are not given */
} cli_export_c;

/* Reads the words; file: the program, which gives the default name. -1, or an
 * exit code after a message. */
int cli_export_c_read(const cli_command *self, cli_export_c *e, const char *file);
/* The context for an export: as C, or with e NULL as another file. */
tn_status cli_export_c_context(const cli_export_c *e, tn_context **out);
bool cli_export_c_write(
	const cli_export_c *e, tn_context *c, const cli_model *m);

/* export_train.c: a step of training as C; in, names: its arguments. false: failed,
 * after a message */
bool cli_export_c_step(const cli_export_c *e, tn_context *c, tn_function *step,
	tn_optimizer *opt, tn_tensor *const *in, const char *const *names);
/*
 * Calls `once` to export a step: first for the sizes that it has with other limits of
 * memory, which NAME.json tells, then to write it. once returns an exit code.
 */
int cli_export_c_curve(const cli_export_c *e,
	int (*once)(void *arg, const cli_export_c *e), void *arg);
/* A step of an ONNX model; returns an exit code. */
struct train_net;
int cli_export_train(
	struct train_net *n, const cli_export_c *e, const cli_list *dims);

/* export_gpt.c: exports a checkpoint of tenon train, as C if to_c is not NULL, and
 * as a step of training if learn is not; returns an exit code */
int cli_export_gpt(const char *file, const char *out, const cli_list *dims,
	const cli_export_c *to_c, const struct train_net *learn);

/* ---- inputs.c: arrays for the inputs and outputs of a program ---- */

typedef struct cli_arrays {
	int32_t n_in, n_out;
	tn_value *value; /* (outputs) names, types and shapes */
	/* (outputs) set by a run that determined their shapes, or NULL */
	tn_array **made;
	const void **in; /* (inputs) arguments of tn_program_run */
	void **out;
	tn_array **file; /* (inputs) arrays from files, else NULL */
	void **own;	 /* (inputs) memory allocated here, else NULL */
	/* (inputs) arrays given to an ONNX model, else NULL */
	const tn_array **given;
	tn_value *type; /* (inputs) */
} cli_arrays;

/*
 * Reads inputs from NAME=FILE.npy (those of ONNX models are taken from the
 * model), fills the others with random numbers from the seed, and allocates
 * outputs. If `say`, prints on standard error which inputs are random. NULL:
 * failed, after a message.
 */
cli_arrays *cli_arrays_new(tn_context *c, const cli_model *m,
	const cli_list *named, uint64_t seed, bool say);
void cli_arrays_free(cli_arrays *a);
/* Runs the program with the arrays; false: failed, after a message. */
bool cli_arrays_run(cli_arrays *a, tn_context *c, const cli_model *m);

bool cli_ends_with(const char *s, const char *end); /* model.c */

#endif
