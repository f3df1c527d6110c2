/*
 * emit.c: a scheduled MapExpr becomes C functions, one per phase; kernels
 * become a translation unit.
 *
 *   void k_add_relu_5d1c.._0(void *const *p, void *scratch, void *local, i64 chunk,
 *                            i64 *err)
 *
 * Names are the operations, for people, and a hash of the text, which tells
 * texts apart: kernels of the same text are one function.
 * No name of a user is in the text, but for labels in comments, which are
 * letters, digits, '_' and '.' only.
 */
#include "emit/local.h"

#include <inttypes.h>

_Noreturn void emit_bug(emitter *em, const char *what, const char *name)
{
	env_bug(arena_env(em->a), "emit", "%s: %s %s", em->k->name, what, name);
}

void em_line(emitter *em, const char *fmt, ...)
{
	va_list ap;
	int32_t i;

	for (i = 0; i < em->depth; i++)
		str_addc(em->out, '\t');
	va_start(ap, fmt);
	str_vprintf(em->out, fmt, ap);
	va_end(ap);
	str_addc(em->out, '\n');
}

const char *em_fresh(emitter *em, const char *prefix)
{
	return arena_printf(em->a, "%s%d", prefix, em->n_names++);
}

static void need(emitter *em, const char *name, tn_dtype t, int32_t lanes)
{
	int32_t i;

	for (i = 0; i < em->needs.n; i++) {
		const struct need *n = &em->needs.at[i];

		if (n->t == t && n->lanes == lanes &&
			(n->name == name ||
				(n->name != NULL && name != NULL &&
					strcmp(n->name, name) == 0)))
			return;
	}
	*vec_push(em->a, &em->needs) = (struct need){name, t, lanes};
}

const char *em_use(emitter *em, const char *name, tn_dtype t, int32_t lanes)
{
	const char *f = emit_math_use(em->m, name, t, lanes);

	if (f == NULL)
		env_bug(arena_env(em->a), "emit", "no helper %s of %s", name,
			dtype_name(t));
	need(em, name, t, lanes);
	return f;
}

const char *em_type(emitter *em, tn_dtype t, int32_t lanes)
{
	need(em, NULL, t, lanes);
	return emit_math_type(em->m, t, lanes);
}

const char *em_own(emitter *em, const char *name)
{
	need(em, arena_printf(em->a, "@%s", name), TN_I64, 1);
	return name;
}

const char *em_unsigned_type(emitter *em, tn_dtype t, int32_t lanes)
{
	int32_t bytes = (int32_t)dtype_size(t);

	if (lanes == 1) /* small ones are promoted: no overflow there */
		return bytes == 8 ? "__UINT64_TYPE__" : "__UINT32_TYPE__";
	need(em, "#", t, lanes);
	return arena_printf(em->a, "u%dx%d", 8 * bytes, lanes);
}

/* Is the register set deeper than its scope, or accumulated into? */
static bool set_below(const loop_node *n, const loop_buf *b)
{
	int32_t i;

	if (!loop_is_loop(n))
		return n->eqn == b->eqn && n->kind != LOOP_STAGE &&
		       loop_first(n->up) != b->scope;
	for (i = 0; i < n->n_child; i++)
		if (set_below(n->child[i], b))
			return true;
	return false;
}

static void find_named(emitter *em)
{
	const loop_kernel *k = em->k;
	int32_t i, j, p;

	em->named = arena_array(em->a, bool, k->n_bufs + 1);
	for (i = 0; i < k->n_bufs; i++) {
		const loop_buf *b = &k->buf[i];

		em->named[i] = k->eqn[b->eqn].e->monoid != IR_SET;
		for (p = 0; p < k->n_phases; p++)
			for (j = 0; j < k->phase[p].n_roots; j++)
				em->named[i] |= set_below(
					k->phase[p].root[j], b);
	}
}

/* Pointers that the body uses, then the body. */
static void function(emitter *em, str *out, const char *text)
{
	const loop_kernel *k = em->k;
	bool restrict_ok = !loop_writes_input(k);
	int32_t i;

	em->out = out;
	em->depth = 1;
	for (i = 0; i < k->n_params; i++) {
		tn_dtype t = k->s->tensor.at[k->param[i]].dtype;

		if (em->used_param[i])
			em_line(em, "%s%s *const %sp%d = p[%d];",
				i >= k->n_outputs ? "const " : "",
				em_type(em, t, 1),
				restrict_ok ? "restrict " : "", i, i);
		if (em->used_stream[i])
			em_line(em,
				"const int n%d = ((__UINTPTR_TYPE__)p%d & %d) "
				"== 0;",
				i, i, k->machine->vector_bytes - 1);
	}
	for (i = 0; i < k->n_bufs; i++) {
		const loop_buf *b = &k->buf[i];

		if (em->used_buf[i] && b->where != LOOP_REGISTER)
			em_line(em,
				"%s *const b%d = (void *)((char *)%s + "
				"%" PRId64 ");",
				em_type(em, b->dtype, 1), i,
				b->where == LOOP_LOCAL ? "local" : "scratch",
				b->offset);
	}
	em_line(em,
		"(void)p, (void)scratch, (void)local, (void)chunk, (void)err;");
	str_add(out, text);
	str_add(out, "}\n");
}

static const char *phase_text(emitter *em, const loop_phase *ph)
{
	const loop_kernel *k = em->k;
	str body = str_new(em->a), out = str_new(em->a);
	ix_dom dom = k->dom;
	int32_t i;

	em->used_param = arena_array(em->a, bool, k->n_params + 1);
	em->used_buf = arena_array(em->a, bool, k->n_bufs + 1);
	em->used_stream = arena_array(em->a, bool, k->n_params + 1);
	em->unsafe = map_new(em->a);
	em->var = arena_array(em->a, const char *, k->n_vars + 1);
	em->plus = arena_array(em->a, int64_t, k->n_vars + 1);
	em->span = arena_array(em->a, struct span, k->n_vars + 1);
	em->dom = &dom;
	em->out = &body;
	em->depth = 1;
	em->n_names = 0;
	em->memo.n = em->fun.n = em->def.n = em->facts.n = em->acc.n = 0;
	em->lanes = 1;
	em->vvar = -1;
	em->phase = (int32_t)(ph - k->phase);
	em->streams = false;
	for (i = 0; i < k->n_vars; i++) {
		int64_t n = k->var[i].extent;

		/* i8 is a type */
		em->var[i] = arena_printf(em->a, "i%d%s", i,
			i == 8 || i == 16 || i == 32 || i == 64 ? "_" : "");
		em->span[i] = (struct span){
			"0", arena_printf(em->a, "%" PRId64, n), 0, n, n, 0, 0, 0, 0};
	}
	em_declare_registers(em, NULL);
	em_nest(em, ph->root, ph->n_roots);
	em_release(em, (struct marks){0});
	if (em->streams)
		em_line(em, "__atomic_thread_fence(__ATOMIC_SEQ_CST);");
	function(em, &out, body.at);
	return out.at;
}

/* Guards and choices are no arithmetic; what is named twice is done once. */
static void count_call(void *arg, const expr *e)
{
	int64_t *flops = arg;

	if (e->kind == EX_CALL && e->dtype != TN_BOOL)
		*flops += ir_scalar_at(e->fn)->flops;
}

static void count(emit_kernel *out, loop_kernel *k)
{
	int32_t i, j, v;

	out->serial_elems = k->machine->schedule.serial_elems;
	for (i = 0; i < k->n_params; i++) {
		const sys_tensor *t = &k->s->tensor.at[k->param[i]];

		out->bytes += t->numel * (int64_t)dtype_size(t->dtype);
	}
	for (i = 0; i < k->n_eqns; i++) {
		const loop_eqn *e = &k->eqn[i];
		int64_t n = 1, f = e->e->monoid != IR_SET;
		loop_set walked = e->part ? loop_expr_vars(k, e->body[0])
					  : e->left | e->reduced;

		for (v = 0; v < k->n_vars; v++)
			if ((walked >> v & 1) != 0)
				n *= k->var[v].extent;
		for (j = 0; j < e->e->n_out; j++)
			loop_walk(k->a, e->body[j], count_call, &f);
		out->flops += n * f;
	}
}

emit_kernel *emit_make(arena *a, loop_kernel *k)
{
	emitter em = {.a = a, .k = k, .s = k->s, .m = emit_math_new(a)};
	emit_kernel *out = arena_make(a, emit_kernel);
	struct needs *needs = arena_make(a, struct needs);
	const char *text[LOOP_MAX_PHASES];
	uint64_t h = 1;
	str c = str_new(a), name = str_new(a);
	int32_t i;

	find_named(&em);
	em_type(&em, TN_I64, 1);
	em_type(&em, TN_U8, 1);
	for (i = 0; i < k->n_phases; i++) {
		text[i] = phase_text(&em, &k->phase[i]);
		h = hash_bytes(text[i], strlen(text[i]), h);
	}
	loop_name(&name, k);
	for (i = 0; i < k->n_phases; i++) {
		out->phase[i].fn = arena_printf(
			a, "k_%s_%016" PRIx64 "_%d", name.at, h, i);
		out->phase[i].n_chunks = k->phase[i].n_chunks;
		out->phase[i].copies = k->phase[i].copies;
		str_printf(&c,
			"void %s(void *const *p, void *scratch, void *local,\n"
			"	i64 chunk, i64 *err)\n{\n%s%s",
			out->phase[i].fn, text[i],
			i + 1 < k->n_phases ? "\n" : "");
	}
	out->c = c.at;
	out->n_phases = k->n_phases;
	out->n_params = k->n_params;
	out->param = k->param;
	out->n_outputs = k->n_outputs;
	out->scratch_bytes = k->scratch_bytes;
	out->local_bytes = k->local_bytes;
	out->n_checks = em.check.n;
	out->check = em.check.at;
	needs->n = em.needs.n;
	needs->at = em.needs.at;
	out->needs = needs;
	count(out, k);
	return out;
}
