/*
 * region_device.c: loops and branches as programs of a device, which reads their tests.
 *
 * A region with a test becomes a program that is a loop with a test (step_region.c),
 * and is evaluated by one run of it, which the host does not wait for where the device
 * can read the test (plan/loop.c):
 *
 *     while (any(x > 1)) x = x / 2      inputs x   program { loop(.., while=0) }
 *
 * For that the region must not write to its operands, which a body does in their
 * memory, nor carry more than copies are worth, nor make rows of a number that is not
 * known; and the host must not compute anything in it. Else the host evaluates a body
 * at a time. It does not depend on the driver which of both it is, and so the bits of
 * sums do not.
 */
#include "func/region.h"
#include "func/report.h"

static const char *why_calls(const t_trace *f);

static const char *why_bodies(const t_trace *f)
{
	const t_region *g = f->region;
	const char *why = NULL;

	for (int32_t k = 0; k < 2 && why == NULL; k++)
		if (g->body[k] != NULL)
			why = why_calls(g->body[k]);
	return why;
}

/* Why a loop cannot be one of a program; NULL: it can. */
static const char *why_loop(const t_region *g, const t_trace *f)
{
	bool rows = false;

	for (int32_t r = 0; r < f->n_out; r++)
		rows = rows || g->yield[r].kind == YIELD_ROWS ||
		       g->yield[r].kind == YIELD_EACH;
	for (int32_t i = 0; i < g->body[0]->n_in; i++) {
		if (g->feed[0][i].kind == FEED_KEY)
			return "each round draws random numbers of its own";
		rows = rows || g->feed[0][i].kind == FEED_ROW;
	}
	if (g->count >= 0 || (g->test >= 0 && rows))
		return "each round has a row of its own";
	return NULL;
}

static const char *why_region(const t_trace *f)
{
	const char *why = NULL;

	if (f->kind == REGION_HOST)
		return "it calls a function in C";
	if (f->kind == REGION_LOOP)
		why = why_loop(f->region, f);
	return why != NULL ? why : why_bodies(f);
}

/* Of the regions among the calls of a trace. */
static const char *why_calls(const t_trace *f)
{
	const char *why = NULL;

	for (int32_t k = 0; k < f->call.n && why == NULL; k++) {
		const t_trace *q = f->call.at[k]->trace;

		if (q != NULL)
			why = t_is_region(q) ? why_region(q) : why_calls(q);
	}
	return why;
}

static bool has_test(const t_trace *f)
{
	return f->kind == REGION_COND ||
	       (f->kind == REGION_LOOP && f->region->test >= 0);
}

/* ---- the program ---- */

typedef struct making {
	tensors *t;
	const t_call *c;
	void *made;
} making;

static void make(arena *a, void *arg)
{
	making *k = arg;
	const t_call *c = k->c;
	ir_program *p = ir_program_new(a, k->t->table);
	ir_loop_run *run = k->t->b.run_loop;
	int32_t *in = arena_array(a, int32_t, c->n_args + 1);
	int32_t *out = arena_array(a, int32_t, c->trace->n_out + 1);

	for (int32_t i = 0; i < c->n_args; i++)
		in[i] = ir_program_input(p, arena_printf(a, "x%d", (int)i),
			c->arg[i].v->type, (loc){0});
	step_put_region(k->t, p, c->trace, in, out, &run);
	for (int32_t r = 0; r < c->trace->n_out; r++)
		ir_program_output(p, out[r]);
	k->made = k->t->b.compile(k->t->b.arg, a, p, NULL);
}

static void keep_made(void *arg)
{
	making *k = arg;

	(void)arena_keep(k->t->a, make, k);
}

static const char *why_call(const tensors *t, const t_call *c)
{
	const t_trace *f = c->trace;
	size_t n = 0;

	if (t->placed)
		return "the device is one of a mesh";
	for (int32_t i = 0; i < c->n_args; i++)
		if (f->next[i] >= 0)
			return "it writes to a tensor, in its memory";
	for (int32_t r = 0; r < f->n_out; r++)
		n += ir_type_bytes(&f->out[r]->type);
	if (n > RUN_REPEAT_COPIES)
		return "it makes more than 8 MB, which takes longer to copy";
	return why_region(f);
}

/* Makes the program, if there can be one. */
static void prepare(tensors *t, t_call *c)
{
	t_region *g = c->trace->region;
	making k = {t, c, NULL};

	g->asks = why_call(t, c);
	if (g->asks != NULL)
		return;
	/* what a program has no room for is a region all the same */
	if (env_run(t->e, keep_made, &k) < 0)
		g->asks = "it does not become one program";
	else if (t->b.host_row(t->b.arg, k.made) != NULL)
		g->asks = "the host computes a part of it";
	g->program = k.made;
}

bool t_region_is_program(tensors *t, t_call *c)
{
	t_region *g = c->trace->region;

	if (t->b.device->is_host || !has_test(c->trace))
		return false;
	if (g->program == NULL && g->asks == NULL)
		prepare(t, c);
	if (g->asks != NULL)
		t->b.note_asked(t->b.arg, g->asks);
	return g->asks == NULL;
}

/* ---- a run ---- */

void t_region_run_program(tensors *t, t_call *c)
{
	t_region *g = c->trace->region;
	int32_t n = c->n_args;

	for (int32_t i = 0; i < n; i++)
		g->data[i] = c->arg[i].v->buf->data;
	for (int32_t r = 0; r < c->n_results; r++) {
		g->rows[r] = t_buffer_new(
			t, ir_type_bytes(&c->trace->out[r]->type));
		g->data[n + r] = g->rows[r]->data;
	}
	t->b.run(t->b.arg, g->program, (const void *const *)g->data, NULL,
		g->data + n);
	for (int32_t r = 0; r < c->n_results; r++) {
		if (!t_is_asked(c, r))
			continue;
		t_settle_result(t, c->result[r], g->rows[r]);
		g->rows[r] = NULL;
	}
}
