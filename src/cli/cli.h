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

/* completion.c: prints what completes these commands, NULL behind them */
int cli_complete(const cli_command *self, const cli_command *const *all,
	int argc, char **argv);

/* ---- near.c: what was meant ---- */

typedef struct cli_nearest {
	const char *wanted; /* no word that there is */
	const char *found;  /* the nearest so far, or NULL */
	int distance;
} cli_nearest;

/* Is this word what was meant? */
void cli_near(cli_nearest *n, const char *word);

/* ---- args.c: --flag, --name=value, --name value, positional ---- */

typedef struct cli_option {
	const char *name;   /* without the dashes */
	bool *flag;	    /* set when given; or */
	const char **value; /* the last value given; or */
	struct cli_list *list; /* all of them */
} cli_option;

typedef struct cli_list {
	const char **at; /* room for as many as there are arguments */
	int n;
} cli_list;

/*
 * Sorts argv into options (a table that ends with a NULL name) and at most
 * n_max positional arguments. Returns -1 to go on, else an exit code: --help
 * was asked for, or something is wrong and has been said.
 */
int cli_args(const cli_command *self, int argc, char **argv,
	const cli_option *options, const char **positional, int n_max);

/* "tenon run: " and the message on standard error; returns CLI_USAGE. */
int cli_usage(const cli_command *self, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Reads --seed, if text is not NULL. False: it is not a number; prints why. */
bool cli_seed(const cli_command *self, const char *text, uint64_t *out);

/* export_gpt.c: a checkpoint of tenon train as a model; an exit code */
int cli_export_gpt(const char *file, const char *out, const cli_list *dims);

/* ---- say.c: diagnoses, notes, JSON ---- */

/* file:line:column: error[rule]: text, then the line with a caret. */
void cli_diag(const tn_diag *d);
/* The same for what the command itself finds wrong. Returns CLI_FAILED. */
int cli_error(const char *file, const char *rule, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A remark on standard error. */
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Why there is no context: says so, and returns CLI_FAILED. */
int cli_no_context(void);
/* tn_context_free, and the context's note if there is one; NULL is fine. */
void cli_close(tn_context *c);
/* Progress on standard error, overwritten in place; nothing off a terminal. */
void cli_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* text as a JSON string with its quotes */
void cli_json_text(FILE *f, const char *text);
/* a number; null when it is not finite, which JSON cannot say */
void cli_json_number(FILE *f, double v);
/* Flushes standard output: false, and said so, when not all was written. */
bool cli_flush(void);
/* malloc that says so and returns NULL when there is none */
void *cli_alloc(size_t n, size_t size);
/* Can it be written, now, before much work? Else false, and it is said. What
 * is not there is not made. */
bool cli_can_write(const char *path, const char *rule);
/* seconds on a clock that only goes forward */
double cli_now(void);

/* ---- report.c: pages for a browser ---- */

/* "about": when, where, and by which command the report is made */
void cli_report_about(FILE *f);
/* json: {"about": .., "title" or "train": .., "profile": of tn_profile_text};
 * else false, and it has been said */
bool cli_report_write(const char *path, const char *json);

/* ---- plan_shards.c ---- */

/* the loss of a GPT as .tn text, config: a train_config; NULL: no memory, and
 * it has been said */
char *cli_gpt_text(const void *config);

/* ---- print.c: arrays as NumPy prints them ---- */

/* "f32[2,3]" into out of n bytes */
void cli_type_text(char *out, size_t n, tn_dtype t, int32_t rank,
	const int64_t *shape);
/* At most about a thousand elements, longer axes with "..." in the middle. */
void cli_print_array(FILE *f, tn_dtype t, int32_t rank, const int64_t *shape,
	const void *data);
/* The elements as a flat JSON array. */
void cli_json_array(FILE *f, tn_dtype t, const void *data, int64_t n_elems);

/* ---- model.c: programs from .tn text or from ONNX models ---- */

/* The array of an input of the program. */
typedef struct cli_given {
	char *name;
	const tn_array *array;
} cli_given;

typedef struct cli_model {
	tn_program *program;
	tn_onnx *onnx; /* NULL: it was .tn text */
	tn_array **array; /* read for it */
	int n_arrays;
	cli_given *given;
	int n_given;
} cli_model;

/*
 * FILE.onnx or .tn text ("-": standard input); dims: NAME=SIZE, inputs:
 * NAME=FILE, whose shapes an ONNX model takes; both may be NULL. Where their
 * values decide shapes, the program is one of tn_onnx_stage, or for these
 * values alone. False when something is wrong, which has been said then.
 */
bool cli_model_open(cli_model *m, tn_context *c, const char *file,
	const cli_list *dims, const cli_list *inputs, bool stage);
void cli_model_close(cli_model *m);
/* --apart A,B, each of them; false: it has been said why not. */
bool cli_set_apart(tn_context *c, tn_program *p, const cli_list *pairs);
/* A name without characters that a terminal would interpret. */
void cli_clean_name(char *out, size_t n, const char *name);
/*
 * A name for a file: letters, digits, _ - and . (not first) do not change, any
 * other byte becomes %XX; so different names give different files. False: it
 * is too long for a file name.
 */
bool cli_file_name(char *out, size_t n, const char *name);

/*
 * split.c: the program as a compiled function, with gradients for all floats
 * but those named. Returns an exit code.
 */
typedef enum cli_split_as {
	CLI_SPLIT_TEXT,	   /* slots, calls, what is kept */
	CLI_SPLIT_DOT,	   /* the same as a picture */
	CLI_SPLIT_PROGRAM, /* forward and backward as one program */
} cli_split_as;
int cli_split(const cli_command *self, tn_context *c, tn_program *p,
	const cli_list *no_grad, cli_split_as as, bool json);

/* ---- inputs.c: arrays for the inputs and outputs of a program ---- */

typedef struct cli_arrays {
	int32_t n_in, n_out;
	tn_value *value; /* (outputs) names, types and shapes */
	tn_array **made; /* (outputs) by a run that found their shapes, or NULL */
	const void **in; /* what tn_program_run wants */
	void **out;
	tn_array **file; /* of inputs read from a file, else NULL */
	void **own;	 /* of those made here, else NULL */
	const tn_array **given; /* of an ONNX model's, else NULL */
	tn_value *type; /* (inputs) */
} cli_arrays;

/*
 * Inputs from NAME=FILE.npy (those of ONNX models as the model was given them), the others random from the seed; outputs
 * allocated. Says on standard error which ones are random if `say`. NULL when
 * something is wrong, which has been said then.
 */
cli_arrays *cli_arrays_new(tn_context *c, const cli_model *m,
	const cli_list *named, uint64_t seed, bool say);
void cli_arrays_free(cli_arrays *a);
/* The program with them; false when something is wrong, which is said then. */
bool cli_arrays_run(cli_arrays *a, tn_context *c, const cli_model *m);

#endif
