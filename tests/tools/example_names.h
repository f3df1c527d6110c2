/*
 * example_names.h: what examples in documents and headers may use without
 * declaring it (tools/examples.py). An example may declare these names anew.
 */
#include <tenon.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything belongs to one context, and to a net that is trained. */
extern tn_context *c;
extern tn_tensor *x, *y, *h, *t, *w, *w1, *w2, *b, *b1, *b2; /* a net */
extern tn_tensor *labels, *loss, *norm, *limit;
extern tn_params *p, *params;
extern tn_layer *layer, *attention;
extern tn_optimizer *opt, *adamw;
extern tn_program *program;
extern tn_function *f;
extern tn_tensor *in[8], *out[8];
extern tn_body shrink, same; /* bodies of functions */
extern void *user;
extern void *data;
extern size_t n_bytes;
extern int32_t n;
