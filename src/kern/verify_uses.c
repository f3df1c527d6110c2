/*
 * verify_uses.c: what the statements of a kernel do with values and arrays, which
 * the verifier asks for before it walks them: which lanes of a value somebody
 * looks at, which values are only chosen from, which arrays of a block hold
 * checked indices, which are written once.
 */
#include "kern/verify.h"

/*
 * Arrays of a block in which only indices of one check are stored; -1: not so.
 * Registers: how many statements set them.
 */
static void find_checked(struct kern_verifier *v, const kern_block *b)
{
	const kern_kernel *k = v->k;
	int32_t *of = v->range.checked;

	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];
		kern_accessed t[KERN_MOST_ACCESSED];

		if (s->kind == KERN_STORE &&
			k->array.at[s->at.array].space == KERN_STACK) {
			const kern_value *x = kern_at(k, s->x);
			int32_t n = x->op == KERN_CHECK ? (int32_t)x->num[0]
							: -1;
			int32_t *is = &of[s->at.array];

			*is = *is == 0 || *is == n ? n : -1;
		} else if (s->kind == KERN_ARRAY && s->stream) {
			of[s->array] = -1; /* zeros */
		} else if (s->kind == KERN_SET || s->kind == KERN_SET_LANE) {
			v->sets[s->v]++;
		}
		for (int32_t j = kern_accesses(s, t) - 1; j >= 0; j--)
			if (t[j].writes && s->kind != KERN_STORE)
				of[t[j].at->array] = -1;
		for (int32_t j = 0; j < s->n_acc; j++)
			v->sets[s->acc[j]] += s->kind != KERN_GIVE;
		find_checked(v, &s->body);
		find_checked(v, &s->other);
	}
}

/* How often do statements write an array, or read it? */
struct uses {
	int32_t n_writes, n_reads;
};

static void count_uses(const kern_kernel *k, const kern_stmt *s, int32_t array,
	struct uses *u)
{
	kern_val at_hand[] = {s->kind == KERN_LET ? s->v : 0, s->x};
	kern_accessed t[KERN_MOST_ACCESSED];

	for (int32_t i = kern_accesses(s, t) - 1; i >= 0; i--) {
		u->n_writes += t[i].writes && t[i].at->array == array;
		u->n_reads += t[i].reads && t[i].at->array == array;
	}
	for (int32_t i = 0; i < 2; i++)
		u->n_reads += kern_at(k, at_hand[i])->op == KERN_LOAD &&
			      kern_at(k, at_hand[i])->at.array == array;
	for (int32_t i = 0; i < s->body.list.n; i++)
		count_uses(k, s->body.list.at[i], array, u);
	for (int32_t i = 0; i < s->other.list.n; i++)
		count_uses(k, s->other.list.at[i], array, u);
}

/* kern_range.once of the arrays of this block, and of those in it */
static void find_once(struct kern_verifier *v, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];
		int32_t n = 0;
		bool apart = true;

		for (int32_t j = i + 1; s->kind == KERN_ARRAY && j < b->list.n;
			j++) {
			struct uses u = {0, 0};

			count_uses(v->k, b->list.at[j], s->array, &u);
			n += u.n_writes;
			apart &= u.n_writes == 0 || u.n_reads == 0;
		}
		if (s->kind == KERN_ARRAY)
			v->range.once[s->array] = n == 1 && apart;
		find_once(v, &s->body);
		find_once(v, &s->other);
	}
}

/* Addresses and masks look at what they are made of. */
static void find_addressed(const kern_form *f, const kern_access *at, bool *other)
{
	for (int32_t i = 0; f != NULL && i < f->n; i++)
		other[f->t[i].v] = true;
	if (at == NULL || at->at == NULL)
		return;
	find_addressed(at->at, NULL, other);
	other[at->mask] = other[at->whole] = other[at->by] = true;
}

/* Values that statements look at: not what a register gets of which only a
 * selection uses what is in it. */
static void find_other(
	const struct kern_verifier *v, const kern_block *b, bool *other)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];
		bool sets = s->kind == KERN_VAR || s->kind == KERN_SET ||
			    s->kind == KERN_SET_LANE;

		if (!sets || !v->selected[s->v])
			other[s->x] = true;
		else
			v->selected[s->x] = true;
		find_addressed(s->lo, &s->at, other);
		find_addressed(s->hi, &s->from, other);
		find_addressed(NULL, &s->to, other);
		find_other(v, &s->body, other);
		find_other(v, &s->other, other);
	}
}

/* All lanes of what a statement takes are looked at. */
static void find_stated(struct kern_verifier *v, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];

		v->shuffled[s->x] = UINT64_MAX;
		find_stated(v, &s->body);
		find_stated(v, &s->other);
	}
}

/* The lanes that a shuffle takes of its two operands. A lane that neither has is
 * refused where the shuffle is verified. */
static void pass_shuffled(struct kern_verifier *v, const kern_value *x)
{
	int32_t n = x->type.lanes;

	for (int32_t l = 0; l < n; l++) {
		int64_t from = x->list[l];

		if (from >= 0 && from < 2 * n)
			v->shuffled[x->arg[from >= n]] |= UINT64_C(1)
				<< from % n;
	}
}

/* What values say of their operands, from the last one on: those who use a
 * value stand behind it. */
static void pass_selected(struct kern_verifier *v, bool *other)
{
	int32_t sel = ir_scalar_find("sel", 3);

	for (kern_val i = v->k->value.n - 1; i > 0; i--) {
		const kern_value *x = kern_at(v->k, i);
		bool is_sel = x->op == KERN_CALL && x->fn == sel;

		v->selected[i] &= !other[i];
		find_addressed(x->form[0], &x->at, other);
		find_addressed(x->form[1], NULL, other);
		for (int32_t j = 0; j < KERN_MAX_ARGS; j++) {
			bool choice = (is_sel && j > 0) || v->selected[i];

			v->selected[x->arg[j]] |= choice;
			other[x->arg[j]] |= !choice;
			if (x->op != KERN_SHUFFLE)
				v->shuffled[x->arg[j]] = UINT64_MAX;
		}
		if (x->op == KERN_SHUFFLE)
			pass_shuffled(v, x);
	}
}

/* Values that are looked at only where a condition selects them: the second time
 * it is known of registers, too. */
static void find_selected(struct kern_verifier *v)
{
	const kern_kernel *k = v->k;

	v->selected = arena_array(v->a, bool, k->value.n + 1);
	v->shuffled = arena_array(v->a, uint64_t, k->value.n + 1);
	for (int32_t n = 0; n < 2; n++) {
		bool *other = arena_array(v->a, bool, k->value.n + 1);

		for (int32_t i = 0; i < k->n_phases; i++)
			find_other(v, &k->phase[i].body, other);
		pass_selected(v, other);
	}
	for (int32_t i = 0; i < k->n_phases; i++)
		find_stated(v, &k->phase[i].body);
}

void kern_find_uses(struct kern_verifier *v)
{
	const kern_kernel *k = v->k;

	v->range.checked = arena_array(v->a, int32_t, k->array.n + 1);
	v->range.once = arena_array(v->a, bool, k->array.n + 1);
	v->sets = arena_array(v->a, int32_t, k->value.n + 1);
	for (int32_t i = 0; i < k->n_phases; i++) {
		find_checked(v, &k->phase[i].body);
		find_once(v, &k->phase[i].body);
	}
	find_selected(v);
}
