/*
 * local.h: what a layer is; private to nn/, which stands on tenon.h alone.
 *
 * A kind of layer is a struct that begins with tn_layer, a constructor that
 * makes its parameters under the layer's name, and its run.
 */
#ifndef NN_LOCAL_H
#define NN_LOCAL_H

#include <tenon.h>

/* Where in the user's text a call stands. */
typedef struct nn_site {
	const char *file;
	int32_t line;
} nn_site;

struct tn_layer {
	tn_params *p;
	tn_tensor *(*run)(
		const nn_site *at, const tn_layer *layer, tn_tensor *x);
};

/* A constructor in progress: what fails makes the layer NULL. */
typedef struct nn_making {
	nn_site at;
	tn_params *p;
	tn_context *c;
	bool failed;
	tn_layer *layer;
} nn_making;

/*
 * Begins: checks the caller's options (the size they have of themselves, and
 * the right one), enters the name, takes n_bytes for the layer.
 */
nn_making nn_begin(nn_site at, tn_params *p, const char *name,
	size_t said_bytes, size_t options_bytes, size_t n_bytes);
/* Ends it: the layer, or NULL. */
tn_layer *nn_end(nn_making *m);

/* Fails unless it holds. */
void nn_want(nn_making *m, bool holds, const char *rule, const char *text);
/* Fails unless the extent is positive. */
void nn_want_extent(nn_making *m, const char *what, int64_t extent);

/* A parameter; NULL once something has failed. */
tn_tensor *nn_param(nn_making *m, const char *name, tn_dtype dtype,
	int32_t rank, const int64_t *shape, bool trained);
/* A trained vector of one value. */
tn_tensor *nn_vector(nn_making *m, const char *name, tn_dtype dtype,
	int64_t n, double value);
/* A weight that keeps the deviation, times gain. */
tn_tensor *nn_weight(nn_making *m, const char *name, tn_dtype dtype,
	int32_t rank, const int64_t *shape, double gain);

#define NN_LINEAR(at, x, w, b)                                                 \
	((b) != NULL ? tn_at_linear((at)->file, (at)->line, x, w, b)           \
		     : tn_at_linear_nobias((at)->file, (at)->line, x, w))

#endif
