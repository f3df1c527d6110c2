/*
 * write_prop.c: random programs of views, writes and reads on params, against
 * a model that keeps every param as an array and every view as a list of
 * positions.
 *
 *     write_prop [--seed S] [--first I] [--count N] [--compile EVERY]
 *
 * Each program runs through the interpreter, every EVERY-th also compiled,
 * twice in a row: the second run starts from what the first one wrote. Compiled
 * code runs its equations in a random topological order, with tensors of its
 * own in one memory wherever that is allowed, and with dead ones overwritten.
 */
#include "api/api.h"
#include "tenon.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ELEMS = 96,
	VALUES = 64,
	PARAMS = 3,
	OWN = 3, /* values of the program that are written, too */
	TEXT = 16384
};

static uint64_t state;

static int64_t below(int64_t n)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (int64_t)((z ^ z >> 31) % (uint64_t)n);
}

/* A value: positions in the model's storage `root` (version = its number of
 * writes so far), or numbers of its own. */
struct value {
	char name[16];
	int32_t rank, n;
	int64_t shape[TN_MAX_RANK];
	int32_t root, version; /* -1: no view of a param */
	int32_t at[ELEMS];
	int64_t data[ELEMS]; /* what it reads, when it was made */
	bool repeats;
};

static struct model {
	struct value v[VALUES];
	int32_t n, n_params, n_own;
	int64_t param[PARAMS + OWN][ELEMS];
	int32_t version[PARAMS + OWN];
	int32_t newest[PARAMS + OWN]; /* value that is the whole newest version */
	char text[TEXT];
	size_t used;
	int32_t out[VALUES], n_out;
} m;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#include <stdarg.h>
static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	m.used += (size_t)vsnprintf(
		m.text + m.used, TEXT - m.used, fmt, ap);
	va_end(ap);
}

static void say_list(const char *name, const int64_t *v, int32_t n)
{
	say("%s=[", name);
	for (int32_t i = 0; i < n; i++)
		say("%s%" PRId64, i ? "," : "", v[i]);
	say("]");
}

static int32_t numel(const struct value *v)
{
	int64_t n = 1;

	for (int32_t i = 0; i < v->rank; i++)
		n *= v->shape[i];
	return (int32_t)n;
}

static struct value *fresh(const char *prefix)
{
	struct value *v = &m.v[m.n];

	memset(v, 0, sizeof *v);
	snprintf(v->name, sizeof v->name, "%s%d", prefix, m.n++);
	v->root = -1;
	return v;
}

/* Element k of the view is element from[k] of x. */
static void move(struct value *v, const struct value *x, const int32_t *from)
{
	v->n = numel(v);
	v->root = x->root;
	v->version = x->version;
	v->repeats = x->repeats;
	for (int32_t k = 0; k < v->n; k++) {
		v->at[k] = x->at[from[k]];
		v->data[k] = x->data[from[k]];
	}
	for (int32_t k = 0; k < v->n && !v->repeats; k++)
		for (int32_t j = 0; j < k && !v->repeats; j++)
			v->repeats = from[k] == from[j];
}

/* from[] by walking the view's shape: strides and a start in x's elements. */
static void walk(const struct value *v, const int64_t *stride, int64_t start,
	int32_t *from)
{
	int64_t i[TN_MAX_RANK] = {0};

	for (int32_t k = 0; k < numel(v); k++) {
		int64_t at = start;

		for (int32_t d = 0; d < v->rank; d++)
			at += i[d] * stride[d];
		from[k] = (int32_t)at;
		for (int32_t d = v->rank - 1; d >= 0; d--) {
			if (++i[d] < v->shape[d])
				break;
			i[d] = 0;
		}
	}
}

static void strides(const struct value *v, int64_t *s)
{
	int64_t n = 1;

	for (int32_t d = v->rank - 1; d >= 0; d--) {
		s[d] = n;
		n *= v->shape[d];
	}
}

static void make_slice(const struct value *x)
{
	struct value *v = fresh("s");
	int64_t s[TN_MAX_RANK], st[TN_MAX_RANK], step[TN_MAX_RANK];
	int64_t start = 0, stride[TN_MAX_RANK];
	int32_t from[ELEMS];

	strides(x, s);
	v->rank = x->rank;
	for (int32_t d = 0; d < x->rank; d++) {
		int64_t a = below(x->shape[d]), c;

		step[d] = 1 + below(3);
		if (below(4) == 0)
			step[d] = -1;
		c = step[d] > 0 ? (x->shape[d] - 1 - a) / step[d] + 1 : a + 1;
		v->shape[d] = 1 + below(c);
		st[d] = a;
		start += a * s[d];
		stride[d] = s[d] * step[d];
	}
	walk(v, stride, start, from);
	move(v, x, from);
	say("  %s = slice(%s, ", v->name, x->name);
	say_list("start", st, x->rank);
	say(", ");
	say_list("count", v->shape, x->rank);
	say(", ");
	say_list("step", step, x->rank);
	say(")\n");
}

static void make_transpose(const struct value *x)
{
	struct value *v = fresh("t");
	int64_t s[TN_MAX_RANK], stride[TN_MAX_RANK], perm[TN_MAX_RANK];
	int32_t from[ELEMS];

	strides(x, s);
	v->rank = x->rank;
	for (int32_t d = 0; d < x->rank; d++)
		perm[d] = d;
	for (int32_t d = x->rank - 1; d > 0; d--) {
		int64_t j = below(d + 1), o = perm[d];

		perm[d] = perm[j];
		perm[j] = o;
	}
	for (int32_t d = 0; d < x->rank; d++) {
		v->shape[d] = x->shape[perm[d]];
		stride[d] = s[perm[d]];
	}
	walk(v, stride, 0, from);
	move(v, x, from);
	say("  %s = transpose(%s, ", v->name, x->name);
	say_list("perm", perm, x->rank);
	say(")\n");
}

static void make_reshape(const struct value *x)
{
	struct value *v = fresh("r");
	int64_t left = x->n;
	int32_t from[ELEMS];

	while (v->rank < 4 && (left > 1 || below(3) == 0)) {
		int64_t e = 1 + below(left);

		while (left % e != 0)
			e--;
		if (v->rank == 3)
			e = left;
		v->shape[v->rank++] = e;
		left /= e;
	}
	if (left > 1)
		v->shape[v->rank - 1] *= left;
	for (int32_t k = 0; k < x->n; k++)
		from[k] = k;
	move(v, x, from);
	say("  %s = reshape(%s, ", v->name, x->name);
	say_list("shape", v->shape, v->rank);
	say(")\n");
}

static void make_diagonal(const struct value *x)
{
	struct value *v;
	int64_t s[TN_MAX_RANK], stride[TN_MAX_RANK];
	int32_t from[ELEMS];
	int64_t n, w;

	if (x->rank < 2)
		return;
	v = fresh("d");
	strides(x, s);
	n = x->shape[x->rank - 2];
	w = x->shape[x->rank - 1];
	v->rank = x->rank - 1;
	memcpy(v->shape, x->shape, sizeof v->shape);
	memcpy(stride, s, sizeof s);
	v->shape[v->rank - 1] = n < w ? n : w;
	stride[v->rank - 1] = s[x->rank - 2] + s[x->rank - 1];
	walk(v, stride, 0, from);
	move(v, x, from);
	say("  %s = diagonal(%s)\n", v->name, x->name);
}

static void make_expand(const struct value *x)
{
	struct value *v;
	int64_t stride[TN_MAX_RANK];
	int32_t from[ELEMS];

	if (x->rank > 3 || x->n > ELEMS / 3)
		return;
	v = fresh("e");
	v->rank = x->rank + 1;
	v->shape[0] = 1 + below(3);
	memcpy(v->shape + 1, x->shape, sizeof(int64_t) * (size_t)x->rank);
	strides(x, stride + 1);
	stride[0] = 0;
	walk(v, stride, 0, from);
	move(v, x, from);
	say("  %s = broadcast_to(%s, ", v->name, x->name);
	say_list("shape", v->shape, v->rank);
	say(")\n");
}

static bool same_shape(const struct value *x, const struct value *y)
{
	return x->rank == y->rank &&
		!memcmp(x->shape, y->shape,
			sizeof(int64_t) * (size_t)x->rank);
}

/* The whole newest version of a param is a value to make views of. */
static void whole(struct value *v, int32_t p, int32_t n)
{
	v->root = p;
	v->version = m.version[p];
	v->n = n;
	for (int32_t k = 0; k < n; k++) {
		v->at[k] = k;
		v->data[k] = m.param[p][k];
	}
	m.newest[p] = (int32_t)(v - m.v);
}

/* A value of x's shape: arithmetic on x and another of that shape. */
static struct value *make_value(const struct value *x)
{
	const struct value *y = x;
	struct value *v;

	for (int32_t k = 0; k < 20; k++) {
		const struct value *o = &m.v[below(m.n)];

		if (same_shape(o, x) && o->root >= -1)
			y = o;
	}
	v = fresh("v");
	v->rank = x->rank;
	memcpy(v->shape, x->shape, sizeof v->shape);
	v->n = x->n;
	for (int32_t k = 0; k < x->n; k++) {
		v->at[k] = k;
		v->data[k] = (int64_t)(3 * (uint64_t)x->data[k] +
				       (uint64_t)y->data[k]);
	}
	say("  %s_ = mul(%s, 3)\n  %s = add(%s_, %s)\n", v->name, x->name,
		v->name, v->name, y->name);
	if (m.n_own < OWN && below(2) == 0) { /* may be written from now on */
		int32_t p = m.n_params + m.n_own++;

		memcpy(m.param[p], v->data, sizeof v->data);
		whole(v, p, v->n);
	}
	return v;
}

static void make_write(const struct value *view)
{
	int32_t p = view->root;
	const struct value *v;
	struct value *next;
	bool flipped = below(5) == 0;

	if (flipped) { /* what is read overlaps what is written */
		v = &m.v[below(m.n)];
		if (!same_shape(v, view))
			v = make_value(view);
	} else {
		v = make_value(view);
	}
	for (int32_t k = 0; k < view->n; k++)
		m.param[p][view->at[k]] = v->data[k];
	next = fresh("p");
	say("  %s = write(%s, %s)\n", next->name, view->name, v->name);
	next->rank = m.v[m.newest[p]].rank;
	memcpy(next->shape, m.v[m.newest[p]].shape, sizeof next->shape);
	m.version[p]++;
	whole(next, p, m.v[m.newest[p]].n);
}

static void draw(void)
{
	int32_t steps = 4 + (int32_t)below(14);

	memset(&m, 0, sizeof m);
	m.n_params = 1 + (int32_t)below(PARAMS);
	say("program {\n");
	for (int32_t p = 0; p < m.n_params; p++) {
		struct value *v = fresh("w");

		v->rank = 1 + (int32_t)below(3);
		for (int32_t d = 0; d < v->rank; d++)
			v->shape[d] = 1 + below(4);
		for (int32_t k = 0; k < numel(v); k++)
			m.param[p][k] = 100 * (p + 1) + k;
		whole(v, p, numel(v));
		say("  param %s: i64[", v->name);
		for (int32_t d = 0; d < v->rank; d++)
			say("%s%" PRId64, d ? "," : "", v->shape[d]);
		say("]\n");
	}
	while (steps-- > 0 && m.n < VALUES - 4) {
		const struct value *x = &m.v[below(m.n)];

		switch (below(9)) {
		case 0:
			make_slice(x);
			break;
		case 1:
			make_transpose(x);
			break;
		case 2:
			make_reshape(x);
			break;
		case 3:
			make_diagonal(x);
			break;
		case 4:
			make_expand(x);
			break;
		case 5:
			m.out[m.n_out++] = (int32_t)(make_value(x) - m.v);
			break;
		default:
			if (x->root >= 0 && !x->repeats &&
				x->version == m.version[x->root])
				make_write(x);
			break;
		}
	}
	if (m.n_out == 0 || below(3) == 0)
		m.out[m.n_out++] = (int32_t)below(m.n);
	say("  return ");
	for (int32_t i = 0; i < m.n_out; i++)
		say("%s%s", i ? ", " : "", m.v[m.out[i]].name);
	say("\n}\n");
}

static bool equal(const char *how, const char *name, const int64_t *got,
	const int64_t *want, int32_t n)
{
	for (int32_t k = 0; k < n; k++)
		if (got[k] != want[k]) {
			printf("%s: element %d of %s is %" PRId64
			       ", the model has %" PRId64 "\n",
				how, k, name, got[k], want[k]);
			return false;
		}
	return true;
}

/* One run; the params start as the program's text was drawn. */
static bool run(tn_context *c, const char *how)
{
	static int64_t param[PARAMS][ELEMS], out[VALUES][ELEMS];
	const void *in[PARAMS];
	void *res[VALUES];
	tn_program *p;
	bool good = true;

	if (tn_program_parse(&p, c, m.text, m.used, "drawn.tn") < 0) {
		printf("%s: [%s] %s\n", how, tn_context_diag(c)->rule,
			tn_context_diag(c)->text);
		return false;
	}
	for (int32_t round = 0; round < 2 && good; round++) {
		for (int32_t i = 0; i < m.n_params; i++) {
			in[i] = param[i];
			for (int32_t k = 0; k < ELEMS; k++)
				param[i][k] = 100 * (i + 1) + k;
		}
		for (int32_t i = 0; i < m.n_out; i++)
			res[i] = out[i];
		if (tn_program_run(p, in, res) < 0) {
			printf("%s: [%s] %s\n", how, tn_context_diag(c)->rule,
				tn_context_diag(c)->text);
			good = false;
		}
		for (int32_t i = 0; good && i < m.n_params; i++)
			good = equal(how, m.v[i].name, param[i], m.param[i],
				m.v[i].n);
		for (int32_t i = 0; good && i < m.n_out; i++)
			good = equal(how, m.v[m.out[i]].name, out[i],
				m.v[m.out[i]].data, m.v[m.out[i]].n);
	}
	tn_program_free(p);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	long first = 0, count = 2000, every = 20, failed = 0;
	tn_options o = TN_OPTIONS_INIT;
	tn_context *slow, *fast;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--first") == 0)
			first = strtol(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--count") == 0)
			count = strtol(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--compile") == 0)
			every = strtol(argv[i + 1], NULL, 10);
	}
	if (tn_context_new(&fast, &o) < 0)
		return 1;
	o.interp = true;
	if (tn_context_new(&slow, &o) < 0)
		return 1;
	for (long k = first; k < first + count && failed < 5; k++) {
		bool good;

		state = (seed << 32) + (uint64_t)k;
		draw();
		fast->settle = (settle_options){
			.shuffle = k % 3 == 0 ? 0 : state | 1,
			.eager = k % 4 != 0};
		fast->poison = k % 5 != 0;
		good = run(slow, "interpreted") &&
			(k % every != 0 || run(fast, "compiled"));
		if (good)
			continue;
		printf("program %ld of seed %" PRIu64 "\n%s\n", k, seed,
			m.text);
		failed++;
	}
	tn_context_free(slow);
	tn_context_free(fast);
	printf("%ld programs, %ld failed\n", count, failed);
	return failed > 0;
}
