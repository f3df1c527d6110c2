/*
 * bound.c: where the tensors of a run are, which copies of inputs are there from
 * an earlier one, and what is said of a bad index.
 */
#include "plan/exec.h"

/* "ids[2,0]": element i of tensor t by its index. */
static void add_position(str *s, const sys_tensor *t, int64_t i)
{
	int64_t at[TN_MAX_RANK];

	for (int32_t k = t->rank - 1; k >= 0; k--) {
		at[k] = i % t->shape[k];
		i /= t->shape[k];
	}
	str_add(s, t->name);
	if (t->rank > 0)
		str_shape(s, at, t->rank);
}

void *plan_data_of(const plan_exec *x, int32_t tensor)
{
	const plan_location *at = &x->p->location[tensor];

	switch (at->where) {
	case PLAN_NOWHERE:
		return NULL;
	case PLAN_INPUT:
		return (void *)(uintptr_t)x->in[at->number];
	case PLAN_OUTPUT:
		return x->out[at->number];
	case PLAN_SLAB:
		return x->slab + at->offset;
	}
	return NULL;
}

const void *plan_host_data(plan_exec *x, int32_t tensor)
{
	const void *at = plan_data_of(x, tensor);
	size_t n = x->p->location[tensor].bytes;
	void *copy;

	if (x->d->is_host || at == NULL)
		return at;
	if (x->room == NULL)
		x->room = arena_child(x->a);
	copy = arena_alloc(x->room, n > 0 ? n : 1, 1);
	x->d->get(x->d, copy, at, n);
	return copy;
}

/* is_kept: the indices are still as the kernel has read them. */
_Noreturn void plan_bad_index(
	plan_exec *x, const struct bound *b, int64_t n, bool is_kept)
{
	const c_check *c = &b->l->check[n];
	int32_t root = x->p->root[c->tensor];
	const sys_tensor *t = &x->p->s->tensor.at[root];
	const void *data = is_kept ? plan_host_data(x, root) : NULL;
	arena *tmp = arena_child(x->a);
	str s = str_new(tmp);
	char text[256];

	plan_undo_blame(x->undo, c);
	for (int64_t i = 0; data != NULL && i < t->numel; i++) {
		int64_t v = dtype_load_i64(t->dtype, data, i);

		if (v >= c->lo && v < c->hi)
			continue;
		add_position(&s, t, i);
		str_printf(&s, " is %lld", (long long)v);
		break;
	}
	if (s.n == 0)
		str_printf(&s, "an index read from %s is out of range", t->name);
	memcpy(text, s.at, s.n < sizeof text ? s.n + 1 : sizeof text);
	text[sizeof text - 1] = '\0';
	arena_free(tmp);
	env_fail(arena_env(x->a), TN_ERANGE, "index.range", (loc){0},
		"%s; %s is used as an index here, and accepted are %lld <= v "
		"< %lld",
		text, t->name, (long long)c->lo, (long long)c->hi);
}

/* Is the copy that the phase would make there already, of equal elements? */
static bool has_copy(const plan_exec *x, const struct bound *b, int32_t phase)
{
	int32_t in = b->copies[phase];

	return in >= 0 && x->version != NULL && x->version[in] != 0 &&
	       b->version[phase] == x->version[in] &&
	       b->copied[phase] == x->in[in];
}

int64_t plan_chunks_of(const plan_exec *x, const struct bound *b, int32_t phase)
{
	if (phase >= b->code->n_phases || has_copy(x, b, phase))
		return 0;
	return b->code->phase[phase].n_chunks;
}

/* Notes the copy after the phase has run. */
void plan_note_copy(plan_exec *x, struct bound *b, int32_t phase)
{
	int32_t in = phase < b->code->n_phases ? b->copies[phase] : -1;

	if (in < 0 || has_copy(x, b, phase))
		return;
	/* without a version, the copy is not used again */
	b->version[phase] = x->version != NULL ? x->version[in] : 0;
	b->copied[phase] = x->in[in];
	x->n_copied++;
}
