/* export.h: private to api/: what export.c and export_function.c share. */
#ifndef API_EXPORT_H
#define API_EXPORT_H

#include "api/api.h"

enum { API_EXPORT_VARIANTS = 4 };

typedef struct api_export_variant {
	const struct export_isa *isa; /* NULL: there is one variant */
	const machine *machine;	      /* NULL: that of the context */
	bool fused;
} api_export_variant;

/* A program to be exported. */
typedef struct api_export {
	tn_context *c;
	const char *dir;
	const tn_export_options *options;
	tn_export_options o; /* set by api_export_check */
	arena *a;	     /* the caller frees it; NULL if it failed early */
	ir_program *ir;
	int32_t n_variants; /* kernels for different processors */
	api_export_variant variant[API_EXPORT_VARIANTS];
	tn_program *p; /* NULL: of a function */
	/* by input: its elements if they are constant, or what a state begins
	 * with; NULL: the caller of the C passes it */
	const void *const *data;
	const bool *state, *pinned; /* by input; NULL: none */
	const void *const *test; /* by input: of a test; NULL: there is none */
} api_export;

/* Throws [export.options], [export.device]. */
void api_export_check(api_export *k);
/* export_isa.c: reads options.isas. Throws [export.options]. */
void api_export_isas(api_export *k);
/* Compiles it and writes the files. */
void api_export_write(api_export *k);

#endif
