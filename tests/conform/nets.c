/*
 * nets.c: a whole net, compiled for batches of 1 and of 4, against plain loops.
 *
 *     nets FOLDER NAME        FOLDER/light_NAME.onnx, light_NAME_output_0.pb
 *     nets --drawn FOLDER NAME     FOLDER/light_NAME.onnx
 *
 * With the weights of the file (constants, so that every picture has the same
 * answer) the stored output must come out. With drawn weights
 *
 *     batch 1, picture 0 and 3    equal the reference (net_ref.h)
 *     batch 4, picture 0 and 3    equal the reference
 *     batch 4, picture 1 and 2    equal batch 1
 *
 * With --drawn a batch of 2, with drawn weights, is all.
 *
 * Exit status 77, and the reason, when the data is not there.
 */
#define _POSIX_C_SOURCE 200809L
#include "net_ref.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 4 };

struct test {
	const char *name;
	char model[512], expected[512];
	env *e;
	arena *a;
	onnx_model *m;
	net_ref *ref;
	int64_t n_in, n_out; /* of one picture */
	float *x;	     /* (BATCH, n_in) */
	float *one, *all;    /* (BATCH, n_out): by 1; of 4 */
	float *want;	     /* (2, n_out): pictures 0 and BATCH - 1 */
	bool only_drawn;
	bool bad;
};

static void check(struct test *t, bool holds, const char *what)
{
	if (!holds)
		fprintf(stderr, "%s: %s\n", t->name, what);
	t->bad = t->bad || !holds;
}

/* Within 1e-3 of the greatest, which sums of thousands of products reach. */
static void compare(
	struct test *t, const char *what, const float *got, const float *want)
{
	float most = 0, apart = 0;

	for (int64_t i = 0; i < t->n_out; i++) {
		float d = fabsf(got[i] - want[i]);

		most = fmaxf(most, fabsf(want[i]));
		apart = isnan(d) ? INFINITY : fmaxf(apart, d);
	}
	printf("%s: %s: at most %g apart, the greatest is %g\n", t->name, what,
		apart, most);
	check(t, most > 0 && isfinite(most), "the reference is no number");
	check(t, apart <= 1e-3F * most, what);
}

struct net {
	tn_context *c;
	tn_onnx *m;
	tn_program *p;
};

static bool open_net(struct test *t, struct net *n, int64_t batch, bool drawn)
{
	char dim[300];

	if (tn_context_new(&n->c, NULL) < 0 ||
		tn_onnx_open(&n->m, n->c, t->model) < 0)
		return false;
	tn_onnx_fold(n->m, 2);
	tn_onnx_train(n->m, false, drawn);
	snprintf(dim, sizeof dim, "%.250s[0]", tn_onnx_input(n->m, 0)->name);
	if (tn_onnx_bind_dim(n->m, dim, batch) < 0 ||
		tn_onnx_build(&n->p, n->m) < 0)
		return false;
	for (int32_t i = 0; drawn && i < tn_program_n_params(n->p); i++) {
		const tn_value *v = tn_program_param(n->p, i);
		const net_array *w = net_ref_const(t->ref, v->name);

		check(t, w != NULL && w->n == v->n_elems, v->name);
		if (w != NULL && tn_program_set_param(n->p, i, w->data) < 0)
			return false;
	}
	return true;
}

static void close_net(struct test *t, struct net *n)
{
	if (n->c != NULL && tn_context_diag(n->c)->rule[0] != '\0')
		check(t, false, tn_context_diag(n->c)->text);
	tn_program_free(n->p);
	tn_onnx_free(n->m);
	tn_context_free(n->c);
}

/* All pictures, `batch` of them at a time. */
static void run_net(
	struct test *t, int64_t batch, bool drawn, int64_t n, float *y)
{
	struct net net = {0};

	if (open_net(t, &net, batch, drawn)) {
		check(t, tn_program_output(net.p, 0)->n_elems ==
				batch * t->n_out, "the size of the output");
		for (int64_t i = 0; !t->bad && i < n; i += batch) {
			const void *in = t->x + i * t->n_in;
			void *out = y + i * t->n_out;

			if (tn_program_run(net.p, &in, &out) < 0)
				break;
		}
	}
	close_net(t, &net);
}

static void want_pictures(struct test *t)
{
	for (int64_t i = 0; i < 2; i++) {
		const net_array *y = net_ref_run(
			t->ref, t->x + i * (BATCH - 1) * t->n_in);

		memcpy(t->want + i * t->n_out, y->data,
			(size_t)t->n_out * sizeof *t->want);
	}
}

static float *floats(struct test *t, int64_t n)
{
	return arena_alloc(t->a, (size_t)n, sizeof(float));
}

/* Picture 0 is the one of the stored output: arange(n) / n. */
static void draw_pictures(struct test *t)
{
	for (int64_t i = 0; i < t->n_in; i++)
		t->x[i] = (float)i / (float)t->n_in;
	for (int64_t i = 1; i < BATCH; i++)
		tn_fill_random(TN_F32, t->x + i * t->n_in, t->n_in,
			(uint64_t)i, 0, 1);
}

static void make_outputs(struct test *t, int64_t n_out)
{
	t->n_out = n_out;
	t->one = floats(t, BATCH * n_out);
	t->all = floats(t, BATCH * n_out);
	t->want = floats(t, 2 * n_out);
}

static void check_stored(struct test *t)
{
	int32_t n;
	const onnx_array *y = onnx_read_value(
		t->a, t->m, t->expected, &onnx_output(t->m, 0)->type, &n);
	const float *want = y->data;

	check(t, n == 1 && y->type.dtype == TN_F32, t->expected);
	make_outputs(t, shape_numel(y->type.shape, y->type.rank));
	run_net(t, 1, false, 1, t->one);
	compare(t, "the stored output", t->one, want);
}

/* Two pictures at once. */
static void check_two(struct test *t)
{
	const onnx_type *y = &onnx_output(t->m, 0)->type;

	make_outputs(t, shape_numel(y->dim, y->rank));
	t->ref = net_ref_new(t->a, t->m, true);
	for (int64_t i = 0; i < 2; i++)
		memcpy(t->want + i * t->n_out,
			net_ref_run(t->ref, t->x + i * t->n_in)->data,
			(size_t)t->n_out * sizeof *t->want);
	run_net(t, 2, true, 2, t->all);
	compare(t, "picture 0", t->all, t->want);
	compare(t, "picture 1", t->all + t->n_out, t->want + t->n_out);
}

static void check_drawn(struct test *t)
{
	int64_t n = t->n_out;

	t->ref = net_ref_new(t->a, t->m, true);
	want_pictures(t);
	run_net(t, 1, true, BATCH, t->one);
	compare(t, "batch 1, picture 0", t->one, t->want);
	compare(t, "batch 1, picture 3", t->one + 3 * n, t->want + n);
	run_net(t, BATCH, true, BATCH, t->all);
	compare(t, "batch 4, picture 0", t->all, t->want);
	compare(t, "batch 4, picture 1", t->all + n, t->one + n);
	compare(t, "batch 4, picture 2", t->all + 2 * n, t->one + 2 * n);
	compare(t, "batch 4, picture 3", t->all + 3 * n, t->want + n);
	/* or the comparison of pictures would say nothing */
	check(t, memcmp(t->want, t->want + n, (size_t)n * sizeof *t->want) != 0,
		"all pictures have the same answer");
}

static void test(void *arg)
{
	struct test *t = arg;

	t->a = arena_new(t->e);
	t->m = onnx_open(t->a, t->model);
	t->n_in = shape_numel(onnx_input(t->m, 0)->type.dim,
		onnx_input(t->m, 0)->type.rank);
	t->x = floats(t, BATCH * t->n_in);
	draw_pictures(t);
	if (t->only_drawn) {
		check_two(t);
	} else {
		check_stored(t);
		check_drawn(t);
	}
}

int main(int argc, char **argv)
{
	bool only_drawn = argc > 1 && strcmp(argv[1], "--drawn") == 0;
	struct test t = {.only_drawn = only_drawn};

	argc -= only_drawn;
	argv += only_drawn;
	if (argc != 3) {
		fprintf(stderr, "usage: nets [--drawn] FOLDER NAME\n");
		return 2;
	}
	t.name = argv[2];
	snprintf(t.model, sizeof t.model, "%.200s/light_%.100s.onnx", argv[1],
		argv[2]);
	snprintf(t.expected, sizeof t.expected,
		"%.200s/light_%.100s_output_0.pb", argv[1], argv[2]);
	if (access(t.model, R_OK) != 0) {
		printf("skipped: %s is not there (TN_ONNX_NETS names the "
		       "folder)\n", t.model);
		return 77;
	}
	t.e = env_new();
	if (t.e == NULL || env_run(t.e, test, &t) < 0)
		check(&t, false, t.e != NULL ? env_diag(t.e)->text
					     : "no memory");
	arena_free(t.a);
	env_free(t.e);
	return t.bad ? 1 : 0;
}
