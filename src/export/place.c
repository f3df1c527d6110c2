/*
 * place.c: where everything of an exported program is.
 *
 *   arena      state | tensors | cells of scratch, and loops, of one step | saved params
 *   constants  header | constant inputs | cells that hold copies of them
 *
 * A phase that only copies a constant into scratch is run when the files are made;
 * its cell is then a constant, and the input itself is one only if another phase
 * reads it. In the body of a loop, a phase that copies what is the same in all
 * rounds runs in the first one.
 */
#include "export/local.h"

static size_t plus(const export_net *x, size_t a, size_t b)
{
	size_t sum;

	if (__builtin_add_overflow(a, b, &sum) || sum > (size_t)1 << 46)
		env_fail(arena_env(x->a), TN_ENOMEM, "run.memory", (loc){0},
			"the exported program needs more than 2^46 bytes");
	return sum;
}

/* ---- constants ---- */

/* Where the constants have room for it; equal data are there once. */
static size_t constant_at(export_net *x, const void *data, size_t bytes)
{
	size_t at = x->weights_bytes;

	for (int32_t i = 0; data != NULL && i < x->constant.n; i++)
		if (x->constant.at[i].data == data &&
			x->constant.at[i].bytes == bytes)
			return x->constant.at[i].at;
	if (at == 0)
		at = EXPORT_HEADER;
	*vec_push(x->a, &x->constant) = (constant){
		.data = data, .at = at, .bytes = bytes};
	x->weights_bytes = plus(x, at, export_up(bytes));
	return at;
}

static bool is_constant(const xplan *n, int32_t input)
{
	return n->data != NULL && n->data[input] != NULL &&
	       (n->pinned == NULL || !n->pinned[input]) &&
	       (n->state == NULL || !n->state[input]);
}

/* The input that a phase copies into scratch and does no more, or -1. */
static int32_t copied(const xplan *n, const plan_launch *l, int32_t phase)
{
	int32_t k = l->code->phase[phase].copies - 1;
	const plan_location *at;

	if (k < 0)
		return -1;
	at = &n->p->location[l->tensor[k]];
	return at->where == PLAN_INPUT ? at->number : -1;
}

static bool is_of(const xplan *n, int32_t input, cell_kind kind)
{
	if (input < 0)
		return false;
	return kind == CELL_PACKED ? is_constant(n, input)
				   : n->same != NULL && n->same[input];
}

/*
 * The phases all of whose cells are copies of this kind. A cell with another
 * writer is none, and what else its writers write is none either.
 */
static uint32_t phases_of(
	const xplan *n, const plan_launch *l, cell_kind kind)
{
	const c_kernel *k = l->code;
	uint32_t phases = 0, before;

	for (int32_t i = 0; i < k->n_phases; i++)
		if (is_of(n, copied(n, l, i), kind))
			phases |= UINT32_C(1) << i;
	do {
		before = phases;
		for (int32_t i = 0; i < k->n_cells; i++)
			if ((k->cell[i].written & ~phases) != 0)
				phases &= ~k->cell[i].written;
	} while (phases != before);
	return phases;
}

/* ---- launches ---- */

/* Cells of a launch; scratch: bytes of the step so far. */
static void place_cells(export_net *x, xplan *n, int32_t i, size_t *scratch,
	size_t *kept)
{
	const plan_launch *l = &n->p->launch.at[i];
	const c_kernel *k = l->code;
	xlaunch *at = &n->launch[i];

	at->packed = phases_of(n, l, CELL_PACKED);
	at->once = phases_of(n, l, CELL_KEPT) & ~at->packed;
	at->cell = arena_array(x->a, place, k->n_cells + 1);
	for (int32_t c = 0; c < k->n_cells; c++) {
		uint32_t by = k->cell[c].written;
		size_t *to = (by & at->once) != 0 ? kept : scratch;

		if ((by & at->packed) != 0) {
			at->cell[c] = (place){AT_WEIGHTS,
				constant_at(x, NULL, k->cell[c].bytes)};
			continue;
		}
		at->cell[c] = (place){AT_ARENA, *to};
		*to = plus(x, *to, export_up(k->cell[c].bytes));
	}
}

static bool runs(const xlaunch *at, int32_t phase)
{
	return (at->packed >> phase & 1) == 0;
}

/* Constants that phases read which do run. */
static void place_inputs(export_net *x, xplan *n, int32_t i)
{
	const plan_launch *l = &n->p->launch.at[i];

	for (int32_t k = 0; k < l->n_params; k++) {
		const plan_location *at = &n->p->location[l->tensor[k]];
		bool used = l->code == NULL;

		for (int32_t f = 0; l->code != NULL && f < l->code->n_phases; f++)
			used = used || (runs(&n->launch[i], f) &&
					       l->code->phase[f].uses[k]);
		if (used && at->where == PLAN_INPUT &&
			is_constant(n, at->number))
			n->input[at->number] = (place){AT_WEIGHTS,
				constant_at(x, n->data[at->number], at->bytes)};
	}
}

static void add_phases(export_net *x, xplan *n, int32_t step, int32_t i)
{
	const plan_launch *l = &n->p->launch.at[i];

	for (int32_t f = 0; f < l->code->n_phases; f++)
		if (runs(&n->launch[i], f))
			*vec_push(x->a, &n->part) = (part){.kind = PART_PHASE,
				.step = step,
				.launch = i,
				.phase = f,
				.n_chunks = l->code->phase[f].n_chunks,
				.serial = l->serial,
				.once = (n->launch[i].once >> f & 1) != 0,
				.fails = l->n_checks > 0};
}

/* ---- loops ---- */

static size_t place_plan(export_net *x, xplan *n, size_t base);

static xplan *new_plan(export_net *x, const export_plan *e, int32_t variant)
{
	xplan *n = arena_make(x->a, xplan);
	const ir_system *s = e->p->s;

	n->e = e;
	n->p = e->p;
	n->variant = variant;
	n->number = x->plan.n;
	n->input = arena_array(x->a, place, s->input.n + 1);
	n->out_io = arena_array(x->a, int32_t, s->output.n + 1);
	n->launch = arena_array(x->a, xlaunch, e->p->launch.n + 1);
	*vec_push(x->a, &x->plan) = n;
	return n;
}

/* What is constant outside is so inside, if it is the same in all rounds. */
static xplan *new_body(export_net *x, const xplan *outer, int32_t i)
{
	const plan_launch *l = &outer->p->launch.at[i];
	const ir_loop *loop = plan_loop_of(outer->p, i);
	xplan *n = new_plan(x, outer->e->body[i], outer->variant);
	int32_t n_in = n->p->s->input.n, n_out = n->p->s->output.n;
	const void **data = arena_array(x->a, const void *, n_in + 1);
	bool *same = arena_array(x->a, bool, n_in + 1);

	for (int32_t k = 0; k < n_in; k++) {
		const plan_location *at =
			&outer->p->location[l->tensor[l->eqn->n_out + k]];

		n->input[k] = (place){AT_IO, (size_t)k};
		same[k] = k >= loop->n_carried + loop->n_rows;
		if (same[k] && at->where == PLAN_INPUT &&
			is_constant(outer, at->number))
			data[k] = outer->data[at->number];
	}
	for (int32_t k = 0; k < n_out; k++)
		n->out_io[k] = n_in + k;
	n->data = data;
	n->same = same;
	return n;
}

static void place_loop(export_net *x, xplan *n, int32_t step, int32_t i,
	size_t *scratch)
{
	const plan_launch *l = &n->p->launch.at[i];
	const ir_loop *loop = plan_loop_of(n->p, i);
	xlaunch *at = &n->launch[i];

	for (int32_t r = 0; r < 2; r++) {
		at->room[r] = arena_array(x->a, size_t, loop->n_carried + 1);
		for (int32_t k = 0; k < loop->n_carried; k++) {
			at->room[r][k] = *scratch;
			*scratch = plus(x, *scratch,
				export_up(n->p->location[l->tensor[k]].bytes));
		}
	}
	at->count = *scratch;
	if (loop->test > 0)
		*scratch = plus(x, *scratch, EXPORT_ALIGN);
	at->body = new_body(x, n, i);
	*scratch = place_plan(x, at->body, *scratch);
	*vec_push(x->a, &n->part) = (part){.kind = PART_ROUNDS,
		.step = step,
		.launch = i,
		.n_chunks = loop->n,
		.serial = true,
		.fails = true};
	if (loop->test > 0)
		*vec_push(x->a, &n->part) = (part){.kind = PART_ENDED,
			.step = step,
			.launch = i,
			.n_chunks = 1,
			.serial = true};
}

/* ---- rows without equations ---- */

static void place_row(export_net *x, xplan *n, int32_t step, int32_t i,
	size_t *scratch)
{
	const plan_launch *l = &n->p->launch.at[i];

	n->launch[i].row_room = *scratch;
	*scratch = plus(x, *scratch,
		export_up(export_row_room(x->a, n, l)));
	*vec_push(x->a, &n->part) = (part){.kind = PART_ROW,
		.step = step,
		.launch = i,
		.n_chunks = 1,
		.serial = true};
}

/* ---- plans ---- */

static void place_step(export_net *x, xplan *n, int32_t s, size_t *scratch,
	size_t *kept)
{
	const plan_step *step = &n->p->step.at[s];

	for (int32_t i = step->first; i < step->first + step->n; i++) {
		if (n->p->launch.at[i].code == NULL) {
			if (plan_loop_of(n->p, i) != NULL)
				place_loop(x, n, s, i, scratch);
			else
				place_row(x, n, s, i, scratch);
			place_inputs(x, n, i);
			continue;
		}
		place_cells(x, n, i, scratch, kept);
		place_inputs(x, n, i);
		add_phases(x, n, s, i);
	}
}

static void add_copies(export_net *x, xplan *n)
{
	for (int32_t i = 0; i < n->p->copy.n; i++) {
		const plan_copy *c = &n->p->copy.at[i];
		const plan_location *from = &n->p->location[c->tensor];
		place to = {AT_IO, (size_t)n->out_io[c->number]};

		if (from->where == PLAN_INPUT && is_constant(n, from->number))
			n->input[from->number] = (place){AT_WEIGHTS,
				constant_at(x, n->data[from->number],
					from->bytes)};
		*vec_push(x->a, &n->part) = (part){.kind = PART_COPY,
			.step = n->p->step.n,
			.n_chunks = 1,
			.serial = true,
			.from = export_place_of(n, c->tensor),
			.to = to,
			.bytes = from->bytes};
	}
}

/* Copies of params that are written before the last part that can fail. */
static void add_saves(export_net *x, xplan *n, int32_t s, size_t *saved)
{
	int32_t n_early;
	const plan_early *early = plan_early_writes(x->a, n->p, &n_early);

	for (int32_t i = 0; i < n_early; i++) {
		size_t bytes = n->p->location[early[i].tensor].bytes;

		if (early[i].step != s)
			continue;
		*vec_push(x->a, &n->part) = (part){.kind = PART_SAVE,
			.step = s,
			.n_chunks = 1,
			.serial = true,
			.from = n->input[early[i].input],
			.to = {AT_ARENA, *saved},
			.bytes = bytes};
		*saved = plus(x, *saved, export_up(bytes));
	}
}

static size_t saved_bytes(export_net *x, const plan *p)
{
	int32_t n;
	const plan_early *early = plan_early_writes(x->a, p, &n);
	size_t sum = 0;

	for (int32_t i = 0; i < n; i++)
		sum = plus(x, sum,
			export_up(p->location[early[i].tensor].bytes));
	return sum;
}

/* Cells that are kept from round to round are behind the tensors. */
static size_t kept_bytes(const xplan *n)
{
	size_t sum = 0;

	for (int32_t i = 0; n->same != NULL && i < n->p->launch.n; i++) {
		const plan_launch *l = &n->p->launch.at[i];
		uint32_t once;

		if (l->code == NULL)
			continue;
		once = phases_of(n, l, CELL_KEPT) &
			~phases_of(n, l, CELL_PACKED);
		for (int32_t c = 0; c < l->code->n_cells; c++)
			if ((l->code->cell[c].written & once) != 0)
				sum += export_up(l->code->cell[c].bytes);
	}
	return sum;
}

/* Places a plan in the arena from `base` on; returns where it ends. */
static size_t place_plan(export_net *x, xplan *n, size_t base)
{
	size_t kept = plus(x, base, n->p->tensor_bytes);
	size_t saved = plus(x, kept, kept_bytes(n));
	size_t begin = plus(x, saved, saved_bytes(x, n->p)), end = begin;

	n->base = base;
	if (n->p->local_bytes > x->local_bytes)
		x->local_bytes = n->p->local_bytes;
	for (int32_t s = 0; s < n->p->step.n; s++) {
		size_t scratch = begin;

		add_saves(x, n, s, &saved);
		place_step(x, n, s, &scratch, &kept);
		if (scratch > end)
			end = scratch;
	}
	add_copies(x, n);
	return end;
}

place export_place_of(const xplan *n, int32_t tensor)
{
	const plan_location *at = &n->p->location[tensor];
	int32_t store;

	switch (at->where) {
	case PLAN_NOWHERE:
		break;
	case PLAN_INPUT:
		return n->input[at->number];
	case PLAN_OUTPUT:
		store = at->number < n->p->s->store.n
				? n->p->s->store.at[at->number]
				: -1;
		return store >= 0 ? n->input[store]
				  : (place){AT_IO,
					    (size_t)n->out_io[at->number]};
	case PLAN_SLAB:
		return (place){AT_ARENA, n->base + at->offset};
	}
	return (place){AT_NOWHERE, 0};
}

/* ---- arrays of the caller ---- */

static const char *ident_of(export_net *x, map *seen, const char *kind,
	const char *name)
{
	str s = str_new(x->a);
	const char *base, *full, *upper;

	str_printf(&s, "%s_", kind);
	for (; *name != '\0' && s.n < 60; name++) {
		bool word = (*name >= 'a' && *name <= 'z') ||
			(*name >= 'A' && *name <= 'Z') ||
			(*name >= '0' && *name <= '9');

		str_addc(&s, word ? *name : '_');
	}
	base = full = s.at;
	for (int32_t i = 2;; i++) {
		upper = export_upper(x->a, full);
		if (map_get_str(seen, upper, 0) == 0)
			break;
		full = arena_printf(x->a, "%s_%d", base, (int)i);
	}
	map_set_str(seen, upper, 1);
	return full;
}

static bool is_zero(const void *data, size_t n)
{
	const uint8_t *b = data;

	for (size_t i = 0; i < n; i++)
		if (b[i] != 0)
			return false;
	return true;
}

/* An input that is kept: in the arena, and where it begins in the constants. */
static void add_state(export_net *x, map *seen, int32_t i)
{
	const xplan *n = x->main;
	const sys_tensor *t = &n->p->s->tensor.at[n->p->s->input.at[i]];
	size_t bytes = n->p->location[n->p->s->input.at[i]].bytes;

	n->input[i] = (place){AT_ARENA, x->state_bytes};
	x->state[x->n_state++] = (struct state){
		ident_of(x, seen, "state", t->name), t, i, x->state_bytes,
		bytes,
		is_zero(n->data[i], bytes)
			? 0
			: constant_at(x, n->data[i], bytes)};
	x->state_bytes = plus(x, x->state_bytes, export_up(bytes));
}

static void name_arrays(export_net *x)
{
	const xplan *n = x->main;
	const ir_system *s = n->p->s;
	map *seen = map_new(x->a);

	x->io = arena_array(x->a, struct io, s->input.n + s->output.n + 1);
	x->state = arena_array(x->a, struct state, s->input.n + 1);
	for (int32_t i = 0; i < s->input.n; i++) {
		const sys_tensor *t = &s->tensor.at[s->input.at[i]];
		bool written = false;

		for (int32_t k = 0; k < s->store.n; k++)
			written = written || s->store.at[k] == i;
		if (n->state != NULL && n->state[i]) {
			add_state(x, seen, i);
			continue;
		}
		if (is_constant(n, i)) {
			if (written)
				env_fail(arena_env(x->a), TN_EINVAL,
					"export.written", (loc){0},
					"the program writes to %s, whose "
					"elements are constant here: make it "
					"an input that the caller passes",
					t->name);
			continue;
		}
		n->input[i] = (place){AT_IO, (size_t)x->n_io};
		x->io[x->n_io++] = (struct io){
			ident_of(x, seen, written ? "io" : "in", t->name), t, i,
			-1, written};
	}
	x->n_in = x->n_io;
	for (int32_t i = 0; i < s->output.n; i++) {
		const sys_tensor *t = &s->tensor.at[s->output.at[i]];

		if (i < s->store.n && s->store.at[i] >= 0)
			continue;
		n->out_io[i] = x->n_io;
		x->io[x->n_io++] = (struct io){
			ident_of(x, seen, "out", t->name), t, -1, i, true};
	}
}

static void place_pinned(export_net *x)
{
	const xplan *n = x->main;

	for (int32_t i = 0; i < x->n_in; i++) {
		int32_t k = x->io[i].input;

		if (n->pinned != NULL && n->pinned[k])
			constant_at(x, n->data[k],
				n->p->location[n->p->s->input.at[k]].bytes);
	}
}

/* The program of a variant; what the caller passes is where it is in all of them. */
static xplan *new_main(export_net *x, int32_t v)
{
	xplan *n = new_plan(x, x->job->variant[v].plan, v);

	n->data = x->job->data;
	n->pinned = x->job->pinned;
	n->state = x->job->state;
	if (v == 0) {
		x->main = n;
		name_arrays(x);
		return n;
	}
	memcpy(n->input, x->main->input,
		(size_t)n->p->s->input.n * sizeof *n->input);
	memcpy(n->out_io, x->main->out_io,
		(size_t)n->p->s->output.n * sizeof *n->out_io);
	return n;
}

void export_place(export_net *x)
{
	x->variant = arena_array(x->a, xplan *, x->job->n_variants + 1);
	for (int32_t v = 0; v < x->job->n_variants; v++)
		x->variant[v] = new_main(x, v);
	for (int32_t v = 0; v < x->job->n_variants; v++) {
		size_t end = export_up(
			place_plan(x, x->variant[v], x->state_bytes));

		if (end > x->fixed_bytes)
			x->fixed_bytes = end;
	}
	place_pinned(x);
}
