/*
 * graph.c: what a program does on the device, as CUDA graphs.
 *
 * Between begin and end, launches, copies and fills are only noted. They happen
 * as a whole when the host waits for something, and at the end: then a graph of
 * them is launched, so that either all of them run or none, and so that a list of
 * launches costs the host one call. A loop of many rounds is several such lists. The graphs of a program are kept, for up to
 * four sets of addresses; for another set the one that was used least recently is
 * changed, or made again if it has conditions.
 */
#include "run/cuda/local.h"

enum { MOST_BINDINGS = 4 };
/* Of a program that starts more lists than that, such as one with a loop of very
 * many rounds, the others are not kept as graphs. With conditions they must be
 * graphs. */
enum { MOST_LISTS = 64 };

typedef struct binding {
	cu_exec exec;
	VEC(uint64_t) word; /* what the graph does */
	bool has_repeats;   /* it has conditions: it cannot be changed */
	int64_t used;
} binding;

/* What happens between two waits of a program. */
typedef struct list {
	binding b[MOST_BINDINGS];
} list;

struct run_lists {
	cuda_device *d;
	arena *a;
	VEC(list *) list; /* by number of the waits before it */
	int64_t clock;
};

/* ---- notes ------------------------------------------------------------- */

static void note(cuda_device *d, uint64_t word)
{
	*vec_push(d->a, &d->word) = word;
}

static uint64_t as_word(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

void cuda_note_launch(cuda_device *d, const cuda_grid *g)
{
	vec_reserve(d->a, &d->word,
		CUDA_LAUNCH_WORDS + g->n_params + CU_MAP_WORDS * g->n_maps);
	note(d, CUDA_LAUNCH);
	note(d, as_word(g->fn));
	note(d, g->blocks);
	note(d, g->threads);
	note(d, g->shared_bytes);
	note(d, (uint64_t)g->n_params);
	note(d, (uint64_t)g->n_maps);
	for (int32_t i = 0; i < g->n_params; i++)
		note(d, *(const uint64_t *)g->param[i]);
	for (int32_t i = 0; i < CU_MAP_WORDS * g->n_maps; i++)
		note(d, g->map[i]);
	d->n_notes++;
}

void cuda_note_copy(cuda_device *d, cu_address to, cu_address from, size_t n)
{
	vec_reserve(d->a, &d->word, CUDA_COPY_WORDS);
	note(d, CUDA_COPY);
	note(d, to);
	note(d, from);
	note(d, n);
	d->n_notes++;
}

void cuda_note_fill(cuda_device *d, cu_address to, int byte, size_t n)
{
	vec_reserve(d->a, &d->word, CUDA_COPY_WORDS);
	note(d, CUDA_FILL);
	note(d, to);
	note(d, (uint64_t)byte);
	note(d, n);
	d->n_notes++;
}

void cuda_repeat(run_device *base, const run_repeat *r)
{
	cuda_device *d = (cuda_device *)base;

	vec_reserve(d->a, &d->word, CUDA_REPEAT_WORDS);
	note(d, CUDA_REPEAT);
	note(d, as_word(r->test));
	note(d, r->n);
	note(d, as_word(r->state));
	note(d, (uint64_t)r->most);
	d->n_notes++;
	d->n_repeats++;
	d->depth++;
}

void cuda_repeated(run_device *base)
{
	cuda_device *d = (cuda_device *)base;

	note(d, CUDA_REPEATED);
	d->depth--;
}

/* ---- what was noted happens -------------------------------------------- */

static cu_result issue_launch(cuda_device *d, const uint64_t *w)
{
	cuda_launch_args(d, w);
	return d->l.launch((cu_function)(uintptr_t)w[1], (unsigned)w[2], 1, 1,
		(unsigned)w[3], 1, 1, (unsigned)w[4], d->stream, d->args.at,
		NULL);
}

/* Room for the addresses of the params, so that nothing throws later. */
static void reserve_args(cuda_device *d)
{
	for (int32_t i = 0; i < d->word.n;) {
		const uint64_t *w = &d->word.at[i];

		if (w[0] == CUDA_LAUNCH) {
			d->args.n = 0;
			vec_reserve(d->a, &d->args, (int32_t)(w[5] + w[6]));
		}
		i += cuda_note_words(w);
	}
}

/* On the stream, or into the graph that the stream is being recorded into. */
static cu_result issue(cuda_device *d)
{
	cu_result r = CU_OK;

	for (int32_t i = 0; r == CU_OK && i < d->word.n;) {
		uint64_t *w = &d->word.at[i];

		if (w[0] == CUDA_LAUNCH)
			r = issue_launch(d, w);
		else if (w[0] == CUDA_COPY)
			r = d->l.copy(w[1], w[2], w[3], d->stream);
		else
			r = d->l.fill(w[1], (unsigned char)w[2], w[3], d->stream);
		i += cuda_note_words(w);
	}
	return r;
}

static cu_result record(cuda_device *d, cu_graph *g)
{
	cu_result r, end;

	*g = NULL;
	if (d->n_repeats > 0)
		return cuda_build(d, d->word.at, d->word.n, g);
	r = d->l.capture(d->stream, CU_RELAXED);
	if (r != CU_OK)
		return r;
	r = issue(d);
	end = d->l.capture_end(d->stream, g);
	return r != CU_OK ? r : end;
}

static void drop_exec(cuda_device *d, binding *b)
{
	if (b->exec != NULL)
		d->l.exec_free(b->exec);
	b->exec = NULL;
	b->word.n = 0;
}

/* The graph of the binding becomes what was noted. */
static cu_result change(cuda_device *d, binding *b)
{
	cu_update_result why;
	cu_graph g;
	cu_result r = record(d, &g);

	b->word.n = 0; /* it is of no use until it is whole */
	if (b->has_repeats || d->n_repeats > 0)
		drop_exec(d, b);
	if (r == CU_OK && b->exec != NULL &&
		d->l.exec_update(b->exec, g, &why) != CU_OK)
		drop_exec(d, b);
	if (r == CU_OK && b->exec == NULL)
		r = d->l.instantiate(&b->exec, g, 0);
	if (g != NULL)
		d->l.graph_free(g);
	if (r != CU_OK)
		return r;
	b->has_repeats = d->n_repeats > 0;
	memcpy(b->word.at, d->word.at, (size_t)d->word.n * sizeof *d->word.at);
	b->word.n = d->word.n;
	return CU_OK;
}

static bool is_same(const cuda_device *d, const binding *b)
{
	return b->exec != NULL && b->word.n == d->word.n &&
	       memcmp(b->word.at, d->word.at,
		       (size_t)d->word.n * sizeof *d->word.at) == 0;
}

/* The binding that is the same, or the one that was used least recently. */
static binding *choose(const cuda_device *d, list *l)
{
	binding *found = &l->b[0];

	for (int32_t i = 0; i < MOST_BINDINGS; i++) {
		if (is_same(d, &l->b[i]))
			return &l->b[i];
		if (l->b[i].used < found->used)
			found = &l->b[i];
	}
	return found;
}

static cu_result run_graph(cuda_device *d, binding *b)
{
	cu_result r = CU_OK;

	b->used = ++d->noting->clock;
	if (!is_same(d, b))
		r = change(d, b);
	d->n_graphs++;
	return r == CU_OK ? d->l.graph_launch(b->exec, d->stream) : r;
}

static list *next_list(cuda_device *d)
{
	run_lists *all = d->noting;
	list *l;

	if (d->n_lists < all->list.n)
		return all->list.at[d->n_lists++];
	vec_reserve(all->a, &all->list, 1);
	l = arena_make(all->a, list);
	*vec_push(all->a, &all->list) = l;
	d->n_lists++;
	return l;
}

/* Memory for what change() will keep, so that nothing throws there. */
static void reserve_words(cuda_device *d, binding *b)
{
	if (b->word.cap < d->word.n)
		vec_reserve(d->noting->a, &b->word, d->word.n - b->word.n);
}

static void forget_notes(cuda_device *d)
{
	d->n_notes = d->word.n = d->n_repeats = d->depth = 0;
}

static void flush(cuda_device *d, bool may_divide)
{
	bool as_graph = !may_divide || d->n_lists < MOST_LISTS;
	binding *b = NULL;
	cu_result r;

	if (d->noting == NULL || d->n_notes == 0)
		return;
	if (d->depth > 0)
		env_bug(arena_env(d->a), "run.repeat",
			"the host waits for what is repeated on %s",
			d->base.name);
	reserve_args(d);
	if (d->n_repeats > 0 && !as_graph)
		d->n_lists = MOST_LISTS - 1; /* all others share the last one */
	/* a graph of one node costs more than the node */
	if (d->n_repeats > 0 || (d->n_notes > 1 && as_graph)) {
		b = choose(d, next_list(d));
		reserve_words(d, b);
	}
	cuda_enter(d);
	r = b == NULL ? issue(d) : run_graph(d, b);
	forget_notes(d);
	cuda_check(d, r, "cannot launch", d->last_launch);
	cuda_leave(d);
}

void cuda_flush(cuda_device *d)
{
	flush(d, false);
}

/* ---- interface --------------------------------------------------------- */

static void end_lists(void *what)
{
	run_lists *all = what;
	cuda_device *d = all->d;

	if (d->context == NULL || d->l.push(d->context) != CU_OK)
		return;
	for (int32_t i = 0; i < all->list.n; i++)
		for (int32_t k = 0; k < MOST_BINDINGS; k++)
			drop_exec(d, &all->list.at[i]->b[k]);
	cuda_leave(d);
}

void cuda_begin(run_device *base, arena *a, run_lists **lists)
{
	cuda_device *d = (cuda_device *)base;

	if (*lists == NULL) {
		run_lists *all = arena_make(a, run_lists);

		all->d = d;
		all->a = a;
		arena_defer(a, end_lists, all);
		*lists = all;
	}
	d->noting = *lists;
	d->n_lists = 0;
	forget_notes(d);
}

void cuda_start(run_device *base)
{
	cuda_device *d = (cuda_device *)base;

	if (d->depth == 0)
		flush(d, true);
}

void cuda_finish(run_device *base)
{
	cuda_device *d = (cuda_device *)base;

	cuda_flush(d);
	d->noting = NULL;
}

void cuda_cancel(run_device *base)
{
	cuda_device *d = (cuda_device *)base;

	d->noting = NULL;
	forget_notes(d);
}
