/* export.h: private to api/: what export.c and export_function.c share. */
#ifndef API_EXPORT_H
#define API_EXPORT_H

#include "api/api.h"

/* A program to be exported. */
typedef struct api_export {
	tn_context *c;
	const char *dir;
	const tn_export_options *options;
	tn_export_options o; /* set by api_export_check */
	arena *a;	     /* the caller frees it; NULL if it failed early */
	ir_program *ir;
	const machine *machine; /* NULL: that of the context */
	tn_program *p; /* NULL: of a function */
	/* by input: its elements if they are constant, or what a state begins
	 * with; NULL: the caller of the C passes it */
	const void *const *data;
	const bool *state, *pinned; /* by input; NULL: none */
	const void *const *test; /* by input: of a test; NULL: there is none */
} api_export;

/* Throws [export.options], [export.device]. */
void api_export_check(api_export *k);
/* Compiles it and writes the files. */
void api_export_write(api_export *k);

#endif
