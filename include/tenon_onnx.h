/*
 * tenon_onnx.h: ONNX models, read, checked, bound and written; part of tenon.h,
 * which includes it.
 */
#ifndef TENON_ONNX_H
#define TENON_ONNX_H

/* ---- ONNX models ------------------------------------------------------- */

/** A model that has been read; a program is built from it. */
typedef struct tn_onnx tn_onnx;

/** An input or output of a model: borrowed from it. */
typedef struct tn_onnx_port {
	const char *name;
	const char *type; /* as text, such as "tensor(float)[N,3]" */
	bool is_tensor;	  /* else a sequence or an optional */
	tn_dtype dtype;	  /* of a tensor, when Tenon has its element type */
	int32_t rank;	  /* -1: the model does not say */
	int64_t shape[TN_MAX_RANK]; /* -1: not said, or a name */
} tn_onnx_port;

/**
 * Read a model: nothing is executed.
 *
 * errors  [onnx.open] [onnx.wire] truncated or damaged   [onnx.*] docs/onnx.md
 * owner   *out is the caller's: tn_onnx_free, after programs built from it
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_onnx_open(
	tn_onnx **out, tn_context *c, const char *path);
TN_API void tn_onnx_free(tn_onnx *m);
/** Number of inputs, without initialisers. */
TN_API int32_t tn_onnx_n_inputs(const tn_onnx *m);
TN_API int32_t tn_onnx_n_outputs(const tn_onnx *m);
/** The version of a domain ("", "ai.onnx.ml") that it is written for; 0: none. */
TN_API int64_t tn_onnx_opset(const tn_onnx *m, const char *domain);
/** NULL if i is not the number of an input (output). */
TN_API const tn_onnx_port *tn_onnx_input(const tn_onnx *m, int32_t i);
TN_API const tn_onnx_port *tn_onnx_output(const tn_onnx *m, int32_t i);
/**
 * The size of a dimension that has a name; or, as "x[0]", of an axis of input
 * x, whatever the model says of it. What has none when a program is built is
 * refused: the error names all of them.
 *
 * errors  [onnx.dim] no input has it: the message lists the names that there
 *         are; or the size is negative
 */
TN_API TN_MUST_USE tn_status tn_onnx_bind_dim(
	tn_onnx *m, const char *name, int64_t size);
/**
 * A .pb file with a value of input or output i: one array; for a sequence any
 * number, for an optional one or none. Borrowed from m. [onnx.value]
 */
TN_API TN_MUST_USE tn_status tn_onnx_read(tn_onnx *m, bool is_output,
	int32_t i, const char *path, int32_t *n, const tn_array **arrays);
/**
 * The number of a string: a tensor of strings is an array of i32 with the numbers
 * of its strings in this model; equal ones have equal numbers. text is UTF-8, of
 * any bytes, 0 included.
 *
 * errors  [onnx.string] it is not UTF-8   [onnx.size] more than 1 GB in all
 */
TN_API TN_MUST_USE tn_status tn_onnx_string(
	int32_t *out, tn_onnx *m, const char *text, size_t n_bytes);
/** The string of a number, with a byte 0 behind it; borrowed. NULL: none has it. */
TN_API const char *tn_onnx_text(
	const tn_onnx *m, int32_t number, int64_t *n_bytes);
/**
 * The value of input i, as n arrays. Where it decides a shape, the program is
 * right for this value only, and refuses others [onnx.pinned]; else only its
 * shape counts. The data must live until programs built from m are freed.
 */
TN_API TN_MUST_USE tn_status tn_onnx_give(
	tn_onnx *m, int32_t i, int32_t n, const tn_array *arrays);
/**
 * Floating-point values of the model that depend on no input and have at least
 * n_elems elements are computed when the program is built, and become parameters
 * of it, like initialisers; 0, the default: none. So weights are parameters, also
 * if the model computes them. Values that would take more than 2^26 operations or
 * 1 GB in all stay in the program (filling with a constant does not count).
 */
TN_API void tn_onnx_fold(tn_onnx *m, int64_t n_elems);
/**
 * What is built from m from now on is for training: batch normalisation goes by
 * the statistics of the batch, and dropout drops. The program has a further
 * output for each running statistic that is a parameter, under its name: its
 * next value; and, if anything is dropped, one more input, the last: a key of
 * random numbers, i64 without axes. logits: a Softmax that makes an output of
 * the model is left out, as tn_cross_entropy needs it (without training, too).
 */
TN_API void tn_onnx_train(tn_onnx *m, bool training, bool logits);
/**
 * Another number of classes, 2 and more: weights of the last layer (Gemm,
 * MatMul and Add, Conv) in front of the first output get n rows, drawn from the
 * seed, and what stands behind it other shapes. Also what tn_onnx_save writes.
 * To be called before anything is given or built. [onnx.head] there is none
 */
TN_API TN_MUST_USE tn_status tn_onnx_classes(
	tn_onnx *m, int64_t n, uint64_t seed);
/**
 * The model as a program. Its inputs are those of the model (the elements of a
 * sequence one by one), its parameters the initialisers.
 *
 * errors  [onnx.operator] one that is not supported   [onnx.dim] [onnx.value]
 *         something must be given first   [onnx.*] and those of rows
 * owner   *out is the caller's: tn_program_free
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_onnx_build(tn_program **out, tn_onnx *m);
/**
 * The model as a program whose shapes follow from data at each run, with
 * tn_program_run_arrays: what decides a shape (the second operand of Reshape,
 * how many elements NonZero finds, the k of TopK, the condition of If) is
 * computed first, and the rest is compiled for it. Programs are kept by these
 * values and the shapes of the inputs: the same ones again compile nothing.
 * What it takes and gives are tensors [onnx.type]; extents that are not known
 * are -1, as n_elems is then. It cannot be exported, applied or explained, and
 * lives no longer than the model.
 */
TN_API TN_MUST_USE tn_status tn_onnx_stage(tn_program **out, tn_onnx *m);
TN_API bool tn_program_is_staged(const tn_program *p);
/**
 * Open and build, with nothing given and values of at least 2 elements folded
 * (tn_onnx_fold); a model whose shapes are not known without data becomes one of
 * tn_onnx_stage.
 */
TN_API TN_MUST_USE tn_status tn_onnx_load(
	tn_program **out, tn_context *c, const char *path);
/**
 * Write the model again with other elements for n parameters: all else stays as
 * it was, names included. A parameter that a node makes (tn_onnx_fold) becomes
 * an initialiser, and its node goes. The file appears whole or not at all.
 *
 * errors  [onnx.undefined] no such parameter   [onnx.shape] another type
 *         [onnx.size] 2 GB and more   [onnx.write]
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_onnx_save(tn_onnx *m, const char *path,
	int32_t n, const char *const *names, const tn_array *arrays);
/**
 * Write a program as a model of opset 20. The file appears whole or not at all.
 *
 * errors  [export.row] ONNX has no operator for a row, or for a write
 *         [export.dtype] elements of f8, 4 bits or 2 bits
 *         [export.attr] [export.size]   [onnx.write]
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_onnx_export(tn_program *p, const char *path);
/**
 * Operators, sizes and all that cannot run, as text or JSON: operators, types,
 * attributes and inputs of nodes. Sizes that are not known count as 1 for this.
 */
TN_API TN_MUST_USE tn_status tn_onnx_info(char **out, tn_onnx *m, bool json);
/** The operators that are supported, as a table in Markdown. */
TN_API TN_MUST_USE tn_status tn_onnx_ops_text(char **out, tn_context *c);
/** Parameters of a program that came from a model, with their elements. */
TN_API int32_t tn_program_n_params(const tn_program *p);
TN_API const tn_value *tn_program_param(const tn_program *p, int32_t i);
TN_API const void *tn_program_param_data(const tn_program *p, int32_t i);
/**
 * Other elements for parameter i: dense, of its type, aligned to 64, borrowed
 * until the program ends or other ones are set. Nothing is compiled again.
 * [api.param]
 */
TN_API TN_MUST_USE tn_status tn_program_set_param(
	tn_program *p, int32_t i, const void *data);
/**
 * Inputs of a program from text become parameters: all from number n_free on,
 * the first by names[0], with the elements data[0], as tn_program_set_param
 * has them. Once, and before the program is compiled. [api.param]
 */
TN_API TN_MUST_USE tn_status tn_program_bind(tn_program *p, int32_t n_free,
	const char *const *names, const void *const *data);

#endif
