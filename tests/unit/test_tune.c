/*
 * Directives and the neighbours of a schedule: which there are, that what a
 * precondition refuses stays as it was, that each neighbour is a schedule that
 * the verifier takes or refuses by a rule, and that those which promise the same
 * bits give them. And the search: its text is one that programs can be run with.
 */
#include "unit.h"

#include "engine/engine.h"
#include "schedule/directive.h"
#include "interp/interp.h"

#include <tenon.h>

#include <stdlib.h>

static const char product[] = "program { x: f32[40,96]  y: f32[96,50]\n"
			      "  a = matmul(x, y)\n"
			      "  s = softmax(a, axis=1)\n"
			      "  return s }";
static const char row_sum[] = "program { x: f32[300,100]\n"
			      "  e = exp(x)\n"
			      "  s = reduce_sum(e, axes=[1])\n"
			      "  return s, e }";
static const char whole_sum[] = "program { x: f32[65536,4]\n"
				"  s = reduce_sum(x, axes=[0,1])\n"
				"  return s }";
static const char turned[] = "program { x: f32[128,192]\n"
			     "  y = transpose(x, perm=[1,0])\n"
			     "  z = add(y, 1.0)\n"
			     "  return z }";
static const char image[] = "program { x: f32[1,8,12,12]  w: f32[16,8,3,3]\n"
			    "  y = conv(x, w, lo=[1,1], hi=[1,1])\n"
			    "  z = relu(y)\n"
			    "  return z }";
static const char *const programs[] = {
	product, row_sum, whole_sum, turned, image};

struct seen {
	const char *program;
	const machine *m;
	int32_t n, n_good, n_kinds[DIRECT_N];
	/* every so many is kept, as a text */
	int32_t every;
	struct {
		char *text;
		bool keeps_bits;
	} kept[400];
	int32_t n_kept;
};

static const char *text_of(arena *a, loop_kernel *k)
{
	str s = str_new(a);

	str_printf(&s, "schedule %s\n", k->machine->name);
	k->n_bufs = 0;
	loop_text(&s, k, 0);
	return s.at;
}

static compilation *grouped(arena *a, const struct seen *q)
{
	compile_options o = compile_options_default(q->m);
	compilation *c = compile_new(a, ir_program_parse(a, q->program,
					     strlen(q->program), "t", interp_loop), &o);

	compile_to(c, TN_LEVEL_GROUPS);
	assert_int_equal(c->groups->kernel.n, 1);
	return c;
}

static loop_kernel *fresh(arena *a, compilation *c)
{
	return loop_build(a, c->system, c->groups->kernel.at[0], false);
}

struct reading {
	arena *a;
	const struct seen *q;
	const char *text;
};

/* Read back, verified, down to C. */
static void read_back(void *arg)
{
	struct reading *r = arg;
	compile_options o = compile_options_default(r->q->m);
	compilation *c;

	o.schedule = (compile_text){r->text, "t", strlen(r->text), NULL};
	c = compile_new(r->a, ir_program_parse(r->a, r->q->program,
				      strlen(r->q->program), "t", interp_loop), &o);
	compile_to(c, TN_LEVEL_C);
}

static void look(arena *a, struct seen *q, compilation *c,
	const loop_variant *v, bool keeps)
{
	loop_kernel *k = fresh(a, c);
	struct reading r = {a, q, NULL};
	const tn_diag *d;

	assert_true(loop_vary(k, q->m, v));
	r.text = text_of(a, k);
	q->n++;
	if (env_run(arena_env(a), read_back, &r) == TN_OK) {
		q->n_good++;
		if (q->n_good % q->every == 0 && q->n_kept < 400) {
			q->kept[q->n_kept].text = strdup(r.text);
			q->kept[q->n_kept++].keeps_bits = keeps;
		}
		return;
	}
	d = env_diag(arena_env(a));
	if (strncmp(d->rule, "schedule.", 9) != 0)
		fail_msg("%s: %s\n%s", d->rule, d->text, r.text);
}

static void all_of(arena *a, void *arg)
{
	struct seen *q = arg;
	compilation *c = grouped(a, q);
	loop_kernel *k = fresh(a, c);
	loop_variant v = {0}, own = {0};
	directives list = {0};

	assert_true(loop_vary(k, q->m, &own));
	loop_neighbours(a, k, &list);
	for (int32_t i = 0; i < list.n; i++) {
		q->n_kinds[list.at[i].kind]++;
		assert_true(loop_may_direct(k, &list.at[i]));
		v = own;
		v.edit[v.n_edits++] = list.at[i];
		look(a, q, c, &v, loop_keeps_bits(k, &list.at[i]));
	}
	for (int32_t i = 0; loop_variant_at(i, &v); i++)
		look(a, q, c, &v, v.keeps_bits);
}

static void neighbours(void **state)
{
	int32_t kinds[DIRECT_N] = {0};

	(void)state;
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		struct seen q = {.program = programs[i], .every = 1000,
			.m = machine_find("c/avx512")};
		tn_diag d = {0};

		if (unit_run(all_of, &q, 0, &d) != TN_OK)
			fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
		/* preconditions are worth their name: most are schedules */
		if (q.n < 10 || q.n_good * 4 < q.n * 3)
			fail_msg("%d of %d neighbours are good: %s", q.n_good,
				q.n, programs[i]);
		for (int j = 0; j < DIRECT_N; j++)
			kinds[j] += q.n_kinds[j];
	}
	for (int j = 0; j < DIRECT_N; j++)
		if (kinds[j] == 0 && j != DIRECT_SWAP && j != DIRECT_AHEAD &&
			j != DIRECT_STAGES)
			fail_msg("no neighbour is made by %s",
				directive_word((directive_kind)j));
}

/* What may not be done changes nothing. */
static void refused(arena *a, void *arg)
{
	static const directive no[] = {{DIRECT_TILE_ROWS, 0, 4},
		{DIRECT_TILE_ROWS, 1000, 4}, {DIRECT_BLOCK, 0, 0},
		{DIRECT_BLOCK, 0, 1000000}, {DIRECT_LANES, 0, 3},
		{DIRECT_LANES, -1, 4}, {DIRECT_UNROLL, 0, 64},
		{DIRECT_TILE_VECTORS, 0, 100}, {DIRECT_SWAP, 0, 0},
		{DIRECT_AHEAD, 0, 7}, {DIRECT_STREAM, 9, 1},
		{DIRECT_STREAM, 0, 2}, {DIRECT_STREAM, 0, 0}};
	struct seen *q = arg;
	loop_kernel *k = fresh(a, grouped(a, q));
	loop_variant own = {0};
	const char *before;

	assert_true(loop_vary(k, q->m, &own));
	before = text_of(a, k);
	for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
		assert_false(loop_direct(k, &no[i]));
		assert_string_equal(text_of(a, k), before);
	}
	/* more rows than there are registers */
	for (int32_t n = 0; n < 60; n++)
		assert_false(loop_direct(k, &(directive){
			DIRECT_TILE_ROWS, n, 40}));
	assert_string_equal(text_of(a, k), before);
	own.edit[own.n_edits++] = no[1];
	assert_false(loop_vary(fresh(a, grouped(a, q)), q->m, &own));
}

static void preconditions(void **state)
{
	struct seen q = {.program = product, .m = machine_find("c/avx512")};
	tn_diag d = {0};

	(void)state;
	if (unit_run(refused, &q, 0, &d) != TN_OK)
		fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
}

/* ---- results ---- */

static void *run(tn_context *c, const char *program, const char *schedule,
	float *out)
{
	static float x[262144], w[262144];
	const void *in[] = {x, w};
	static float second[262144];
	void *outs[] = {out, second};
	tn_program *p;

	for (int i = 0; i < 262144; i++) {
		x[i] = (float)(i % 251) / 251 - 0.5f;
		w[i] = (float)(i % 127) / 127 - 0.25f;
	}
	assert_int_equal(tn_program_parse(&p, c, program, strlen(program), "t"),
		TN_OK);
	if (schedule != NULL)
		assert_int_equal(tn_program_set_schedule(p, schedule,
					 strlen(schedule), "s"), TN_OK);
	if (tn_program_run(p, in, outs) < 0)
		fail_msg("%s: %s\n%s", tn_context_diag(c)->rule,
			tn_context_diag(c)->text, schedule);
	tn_program_free(p);
	return out;
}

static bool same_bytes(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n) == 0;
}

static const machine *machine_here(tn_context *c)
{
	char *text = NULL, name[40] = "";
	tn_program *p;

	assert_int_equal(tn_program_parse(
				 &p, c, row_sum, strlen(row_sum), "t"), TN_OK);
	assert_int_equal(tn_program_explain(&text, p, TN_LEVEL_SCHEDULE, 0),
		TN_OK);
	assert_int_equal(sscanf(text, "schedule %39s", name), 1);
	tn_text_free(text);
	tn_program_free(p);
	return machine_find(name);
}

/* A schedule of the context is for programs with its kernels alone. */
static void of_context(void **state)
{
	static const char own[] = "program { x: f32[8,16]\n  y = exp(x)\n  return y }";
	static const char other[] = "program { x: f32[8,16]\n  y = neg(x)\n  return y }";
	static float out[262144], again[262144];
	char *text = NULL;
	tn_context *c;
	tn_program *p;
	tn_stats s;

	(void)state;
	assert_int_equal(tn_context_new(&c, NULL), TN_OK);
	assert_int_equal(tn_program_parse(&p, c, own, strlen(own), "t"), TN_OK);
	assert_int_equal(tn_program_explain(&text, p, TN_LEVEL_SCHEDULE, 0),
		TN_OK);
	tn_program_free(p);
	run(c, own, NULL, out);
	assert_int_equal(tn_context_set_schedule(
				 c, text, strlen(text), "s"), TN_OK);
	run(c, other, NULL, again);
	tn_context_stats(c, &s);
	assert_int_equal(s.n_pinned, 0);
	run(c, own, NULL, again);
	assert_memory_equal(out, again, 128 * sizeof *out);
	tn_context_stats(c, &s);
	assert_int_equal(s.n_pinned, 1);
	/* of its own: not by the context */
	run(c, own, text, again);
	tn_context_stats(c, &s);
	assert_int_equal(s.n_pinned, 1);
	text[strlen("schedule ")] = 'x'; /* the machine */
	assert_int_equal(tn_context_set_schedule(
				 c, text, strlen(text), "s"), TN_OK);
	assert_int_equal(tn_program_parse(&p, c, own, strlen(own), "t"), TN_OK);
	assert_int_equal(tn_program_compile(p), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "schedule.machine");
	tn_program_free(p);
	assert_int_equal(tn_context_load_schedule(c, "/nowhere"), TN_EIO);
	assert_string_equal(tn_context_diag(c)->rule, "file.read");
	tn_text_free(text);
	tn_context_free(c);
}

static void bits(void **state)
{
	static float own[262144], other[262144];
	tn_context *c;
	int32_t n_same = 0;

	(void)state;
	assert_int_equal(tn_context_new(&c, NULL), TN_OK);
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		struct seen q = {.program = programs[i], .every = 5,
			.m = machine_here(c)};
		tn_diag d = {0};

		assert_int_equal(unit_run(all_of, &q, 0, &d), TN_OK);
		memset(own, 0, sizeof own);
		run(c, programs[i], NULL, own);
		for (int32_t j = 0; j < q.n_kept; j++) {
			memset(other, 0, sizeof other);
			run(c, programs[i], q.kept[j].text, other);
			if (q.kept[j].keeps_bits &&
				!same_bytes(own, other, sizeof own))
				fail_msg("other bits by\n%s", q.kept[j].text);
			n_same += q.kept[j].keeps_bits;
			free(q.kept[j].text);
		}
	}
	assert_true(n_same > 8);
	tn_context_free(c);
}

/* ---- the search ---- */

static bool after_some(void *arg, const tn_tune_state *s)
{
	int *calls = arg;

	assert_true(s->n_kept <= s->n_tried && s->n_refused <= s->n_tried);
	return --*calls > 0;
}

static void search(void **state)
{
	static float own[262144], other[262144], x[262144];
	const void *in[] = {x, x};
	int calls = 12;
	tn_tune_options o = {.seconds = 20, .same_bits = true,
		.progress = after_some, .arg = &calls};
	tn_context *c;
	tn_program *p;
	char *text;

	(void)state;
	assert_int_equal(tn_context_new(&c, NULL), TN_OK);
	assert_int_equal(tn_program_parse(
				 &p, c, product, strlen(product), "t"), TN_OK);
	assert_int_equal(tn_program_tune(&text, NULL, in, &o), TN_EINVAL);
	assert_null(text);
	assert_int_equal(tn_program_tune(&text, p, NULL, &o), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "api.null");
	assert_int_equal(tn_program_tune(&text, p, in, &o), TN_OK);
	assert_int_equal(calls, 0); /* it ended when it was told to */
	assert_memory_equal(text, "schedule c/", 11);
	run(c, product, NULL, own);
	run(c, product, text, other);
	assert_memory_equal(own, other, sizeof own);
	tn_text_free(text);
	tn_program_free(p);
	tn_context_free(c);
}

/* Params are not written to, and no kernel at all is a text, too. */
static void search_params(void **state)
{
	static float v[64], out[64];
	const char program[] = "program { param p: f32[64]\n"
			       "  a = mul(p, 2.0)\n  q = write(p, a)\n"
			       "  return a }";
	const void *in[] = {v};
	void *outs[] = {out};
	tn_tune_options o = {.seconds = 1};
	tn_options interp = TN_OPTIONS_INIT;
	tn_context *c;
	tn_program *p;
	char *text;

	(void)state;
	for (int i = 0; i < 64; i++)
		v[i] = (float)i;
	assert_int_equal(tn_context_new(&c, NULL), TN_OK);
	assert_int_equal(tn_program_parse(
				 &p, c, program, strlen(program), "t"), TN_OK);
	assert_int_equal(tn_program_tune(&text, p, in, &o), TN_OK);
	for (int i = 0; i < 64; i++)
		assert_true(v[i] == (float)i);
	tn_program_free(p);
	assert_int_equal(tn_program_parse(
				 &p, c, program, strlen(program), "t"), TN_OK);
	assert_int_equal(tn_program_set_schedule(
				 p, text, strlen(text), "s"), TN_OK);
	assert_int_equal(tn_program_run(p, in, outs), TN_OK);
	assert_true(out[5] == 10);
	tn_text_free(text);
	tn_program_free(p);
	tn_context_free(c);
	interp.interp = true;
	assert_int_equal(tn_context_new(&c, &interp), TN_OK);
	assert_int_equal(tn_program_parse(
				 &p, c, product, strlen(product), "t"), TN_OK);
	assert_int_equal(tn_program_tune(&text, p, in, &o), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "tune.interp");
	tn_program_free(p);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours),
		cmocka_unit_test(preconditions),
		cmocka_unit_test(of_context),
		cmocka_unit_test(bits),
		cmocka_unit_test(search),
		cmocka_unit_test(search_params),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
