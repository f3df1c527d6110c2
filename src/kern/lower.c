/*
 * lower.c: lowers a scheduled MapExpr to kern.
 *
 * Phases are lowered in the order of the tree. Kernels with the same structure
 * get the same text: it contains nothing of the user's program but the labels
 * of equations, in notes.
 */
#include "kern/lower.h"
#include "schedule/decision.h"

/* Is the register set in a loop below its scope, or accumulated into? */
static bool set_below(const loop_node *n, const loop_buf *b)
{
	if (!loop_is_loop(n))
		return n->eqn == b->eqn && n->kind != LOOP_STAGE &&
		       loop_first(n->up) != b->scope;
	for (int32_t i = 0; i < n->n_child; i++)
		if (set_below(n->child[i], b))
			return true;
	return false;
}

static void find_named(lowering *lw)
{
	const loop_kernel *k = lw->k;

	lw->named = arena_array(lw->a, bool, k->n_bufs + 1);
	for (int32_t i = 0; i < k->n_bufs; i++) {
		const loop_buf *b = &k->buf[i];

		lw->named[i] = k->eqn[b->eqn].e->monoid != IR_SET;
		for (int32_t p = 0; p < k->n_phases; p++)
			for (int32_t j = 0; j < k->phase[p].n_roots; j++)
				lw->named[i] |= set_below(
					k->phase[p].root[j], b);
	}
}

static int32_t function(lowering *lw, const char *name)
{
	int32_t fn = ir_scalar_find(name, strlen(name));

	if (fn < 0)
		lw_bug(lw, "no scalar function", name);
	return fn;
}

static void find_functions(lowering *lw)
{
	lw->fn.add = function(lw, "add");
	lw->fn.sub = function(lw, "sub");
	lw->fn.mul = function(lw, "mul");
	lw->fn.div = function(lw, "div");
	lw->fn.sqrt = function(lw, "sqrt");
	lw->fn.and = function(lw, "and");
	lw->fn.or = function(lw, "or");
	lw->fn.not = function(lw, "not");
	lw->fn.sel = function(lw, "sel");
	lw->fn.ge = function(lw, "ge");
	lw->fn.lt = function(lw, "lt");
	lw->fn.eq = function(lw, "eq");
	lw->fn.ne = function(lw, "ne");
}

static void find_here(lowering *lw, const loop_node *n)
{
	if (!loop_is_loop(n))
		lw->here[n->eqn] = true;
	for (int32_t i = 0; i < n->n_child; i++)
		find_here(lw, n->child[i]);
}

static void phase(lowering *lw, const loop_phase *ph)
{
	const loop_kernel *k = lw->k;
	ix_dom dom = k->dom;

	kern_open_phase(lw->b, ph->n_chunks, ph->copies);
	lw->phase = (int32_t)(ph - k->phase);
	lw->b->k->phase[lw->phase].warps = ph->warps > 1 ? ph->warps : 1;
	lw->chunk = lw_form_of(lw, lw->b->k->phase[lw->phase].chunk);
	lw->unsafe = map_new(lw->a);
	lw->data = map_new(lw->a);
	lw->here = arena_array(lw->a, bool, k->n_eqns + 1);
	for (int32_t i = 0; i < ph->n_roots && ph->n_chunks > 1; i++)
		find_here(lw, ph->root[i]);
	lw->dom = &dom;
	lw->memo.n = lw->fun.n = lw->def.n = lw->facts.n = lw->acc.n = 0;
	lw->digit.n = lw->block.n = lw->hold.n = 0;
	lw->lanes = lw->each = 1;
	lw->vvar = -1;
	lw->streams = false;
	for (int32_t i = 0; i < k->n_vars; i++) {
		int64_t n = k->var[i].extent;

		lw->var[i] = lw_num(lw, 0);
		lw->plus[i] = 0;
		lw->span[i] = (struct span){lw_num(lw, 0), lw_num(lw, n), 0, n,
			n, 0, 0, 0, 0, 0};
	}
	lw_declare_registers(lw, NULL);
	lw_nest(lw, ph->root, ph->n_roots);
	lw_release(lw, (struct marks){0});
	if (lw->streams)
		kern_fence(lw->b);
	kern_close(lw->b);
}

static void params(lowering *lw)
{
	const loop_kernel *k = lw->k;
	kern_kernel *out = lw->b->k;

	for (int32_t i = 0; i < k->n_params; i++) {
		const sys_tensor *t = &k->s->tensor.at[k->param[i]];

		kern_add_param(out, t->dtype, t->numel, i < k->n_outputs,
			k->param[i]);
	}
	for (int32_t i = 0; i < k->n_outputs; i++)
		for (int32_t j = 0; j < k->n_params; j++)
			if (ir_same_memory(k->s, k->param[i], k->param[j]))
				out->array.at[i].in = j + 1;
	out->n_outputs = k->n_outputs;
	out->shared = loop_writes_input(k);
	out->scratch_bytes = k->scratch_bytes;
	out->local_bytes = k->local_bytes;
}

/*
 * Counts arithmetic operations. Guards and selections do not count; a shared
 * expression counts once.
 */
static void count_call(void *arg, const expr *e)
{
	int64_t *flops = arg;

	if (e->kind == EX_CALL && e->dtype != TN_BOOL)
		*flops += ir_scalar_at(e->fn)->flops;
}

static void count(kern_kernel *out, loop_kernel *k)
{
	const machine_schedule *m = &k->machine->schedule;

	for (int32_t i = 0; i < k->n_params; i++) {
		const sys_tensor *t = &k->s->tensor.at[k->param[i]];

		out->bytes += t->numel * (int64_t)dtype_size(t->dtype);
	}
	for (int32_t i = 0; i < k->n_eqns; i++) {
		const loop_eqn *e = &k->eqn[i];
		int64_t n = 1, f = e->e->monoid != IR_SET;
		loop_set walked = e->part ? loop_expr_vars(k, e->body[0])
					  : e->left | e->reduced;

		for (int32_t v = 0; v < k->n_vars; v++)
			if ((walked >> v & 1) != 0)
				n *= k->var[v].extent;
		for (int32_t j = 0; j < e->e->n_out; j++)
			loop_walk(k->a, e->body[j], count_call, &f);
		out->flops += n * f;
	}
	out->serial = out->bytes / m->bytes_an_elem +
			      out->flops / m->ops_an_elem <
		      m->serial_elems;
}

static int32_t *none(lowering *lw, int32_t n)
{
	int32_t *a = arena_array(lw->a, int32_t, n + 1);

	for (int32_t i = 0; i < n; i++)
		a[i] = -1;
	return a;
}

/* Says of what width the indices are, on a machine where that counts. */
static void choose_indices(kern_kernel *out, loop_kernel *k)
{
	const int64_t none = INT64_MAX;
	int64_t most;

	if (!k->machine->narrow_indices)
		return;
	most = kern_narrow(out);
	loop_decide(k,
		out->narrow	  ? DECIDE_INDICES_TAKEN
		: most < none ? DECIDE_INDICES_LARGE
			      : DECIDE_INDICES_DATA,
		-1, -1, most, INT32_MAX);
}

kern_kernel *kern_lower(arena *a, loop_kernel *k)
{
	str name = str_new(a);
	kern_kernel *out = kern_new(a, k->name);
	kern_builder b = kern_build(out);
	lowering lw = {.a = a, .k = k, .s = k->s, .b = &b};

	b.number = true;
	find_named(&lw);
	find_functions(&lw);
	params(&lw);
	lw.var = arena_array(a, form, k->n_vars + 1);
	lw.plus = arena_array(a, int64_t, k->n_vars + 1);
	lw.span = arena_array(a, struct span, k->n_vars + 1);
	lw.reg = arena_array(a, val *, k->n_bufs + 1);
	for (int32_t i = 0; i < k->n_bufs; i++)
		lw.reg[i] = arena_array(a, val,
			k->buf[i].where == LOOP_REGISTER ? k->buf[i].elems : 1);
	lw.sums = arena_array(a, val *, k->n_bufs + 1);
	lw.array_of_buf = none(&lw, k->n_bufs * LOOP_MAX_STAGES);
	lw.array_of_part = none(&lw, k->n_eqns * IR_MAX_COMP);
	for (int32_t i = 0; i < k->n_phases; i++)
		phase(&lw, &k->phase[i]);
	count(out, k);
	out->spread = k->machine->lanes > 1;
	loop_name(&name, k);
	out->name = name.at;
	kern_sweep(out);
	if (k->machine->wide_bytes > 0)
		kern_join_accesses(out);
	kern_place_barriers(out);
	kern_tidy(out);
	if (k->machine->lanes > 0)
		kern_deal_to_lanes(out, k->machine->lanes);
	kern_unroll(out, k->machine->schedule.unrolled_ops,
		k->machine->schedule.unrolled_loops);
	choose_indices(out, k);
	return out;
}
