/*
 * rows.h: cases for rows of the op table, as text.
 *
 *     {"softmax(a, axis=1)", {"f32[1,2] 0 0"}, {"f32[1,2] 0.5 0.5"}}
 *
 * Operands are a, b, c, ... A tensor is its type and its values; "~7" in their
 * place draws them with seed 7: eighths from -2 to 2, so that products and
 * small sums are exact; "~7 0 4" draws integers from 0 to 3; a lone "*3" is 3
 * everywhere. T in a type stands for each dtype of `types` in turn.
 * What is expected is values, or is computed by `want`, or is an error:
 * {"!take.n", "the text must contain this"}.
 */
#ifndef ROWS_H
#define ROWS_H

#include "unit.h"

#include "notation/notation.h"

/* what a case does not say is absent */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum { ROW_IN = 9, ROW_OUT = 5 };

/* Values as doubles: exact for all that the cases use but large i64. */
typedef struct ten {
	tn_dtype dtype;
	int32_t rank;
	int64_t shape[TN_MAX_RANK], n;
	void *data;
	double *at; /* the data as doubles; references read and write this */
} ten;

typedef void row_want(const ten *in, ten *out);

typedef struct row_case {
	const char *call, *in[ROW_IN], *out[ROW_OUT];
	row_want *want;
	const char *types; /* for T: "f32 f64"; NULL: f32 */
	double tolerance;  /* relative; 0: what the dtype allows */
} row_case;

typedef struct row_cases {
	const char *topic;
	const row_case *at;
	size_t n;
} row_cases;

#define ROW_CASES(name, cases)                                                 \
	const row_cases name = {#name, cases, sizeof cases / sizeof cases[0]}

extern const row_cases rows_scalar, rows_elementwise, rows_reduce, rows_make,
	rows_move, rows_gather, rows_contract, rows_conv, rows_scan, rows_norm,
	rows_loss, rows_attention, rows_random, rows_opaque, rows_builder, rows_train;

void row_case_run(const row_case *c, bool compiled);
/* all cases of all topics; the exit status of a test */
int rows_main(bool compiled);

#endif
