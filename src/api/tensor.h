/* tensor.h: called by the functions of rows, which tools/ops_api.c generates. */
#ifndef API_TENSOR_H
#define API_TENSOR_H

#include "notation/notation.h"

/*
 * A call of row `number` of the table. c NULL: the context of the operands.
 * Any invalid operand gives an invalid result; the first failure stays in the
 * context.
 */
tn_tensor *api_row(const char *file, int32_t line, tn_context *c,
	int32_t number, tn_tensor *const *in, int32_t n, const ir_attr *attr,
	int32_t n_attrs);
/* The same for any number of results, into out. */
tn_status api_row_many(const char *file, int32_t line, tn_context *c,
	int32_t number, tn_tensor *const *in, int32_t n, const ir_attr *attr,
	int32_t n_attrs, tn_tensor **out);
/* The same; the result is written to operand 0. */
tn_status api_row_in_place(const char *file, int32_t line, tn_context *c,
	int32_t number, tn_tensor *const *in, int32_t n, const ir_attr *attr,
	int32_t n_attrs);

#endif
