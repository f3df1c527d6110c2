/*
 * rows.c: the sum of an instance over the rows of its operands, as one instance.
 *
 *     gw[n, k] += mul(d[b, n], x[b, k])          for each round r, then added up
 *     gw[n, k] += mul(d[r, b, n], x[r, b, k])    all rounds at once
 *
 * A sum of sums is a sum with one more letter. Equations before the last one get
 * the letter on the left as well: each row has its own.
 */
#include "program/local.h"

typedef struct summing {
	arena *a;
	const ir_inst *p;
	int32_t last;	  /* the equation that is summed */
	bool *is_row;	  /* by tensor: it has a row for each value of the letter */
	bool *is_needed;  /* by tensor */
	int32_t *number;  /* by tensor: in the new instance */
	const in_node *letter;
	bool refused;
} summing;

/* ---- which tensors ---- */

static void need(summing *s, const in_node *n, bool *any_row)
{
	if (n == NULL)
		return;
	if (n->kind == IN_POS)
		s->refused = true;
	if (n->kind == IN_READ) {
		for (int32_t i = 0; i < n->n_index; i++)
			need(s, n->index[i], any_row);
		s->is_needed[n->tensor] = true;
		*any_row |= s->is_row[n->tensor];
		s->refused |= n->flat && s->is_row[n->tensor];
	}
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		need(s, n->arg[i], any_row);
}

static bool reads_rows(summing *s, const in_eqn *q)
{
	bool any = false;

	for (int32_t k = 0; k < ir_n_bodies(q); k++)
		need(s, q->body[k], &any);
	for (int32_t k = 0; k < q->n_left; k++)
		need(s, q->left[k], &any);
	return any;
}

static bool makes_needed(const summing *s, const in_eqn *q)
{
	for (int32_t k = 0; k < q->n_out; k++)
		if (s->is_needed[q->out[k]])
			return true;
	return false;
}

static int64_t numel(const in_tensor *t)
{
	return shape_numel(t->type.shape, t->type.rank);
}

/* Is every element made by one value of the letters? */
static bool is_total(const ir_inst *p, const in_eqn *q)
{
	int64_t n = 1;

	for (int32_t i = 0; i < q->n_left; i++) {
		if (q->left[i]->kind != IN_LETTER)
			return false;
		for (int32_t k = 0; k < i; k++)
			if (q->left[k]->i == q->left[i]->i)
				return false;
		n *= p->letter[q->left[i]->i].extent;
	}
	return n == numel(&p->tensor[q->out[0]]);
}

/* Rows of what the last equation reads are no larger than its result. */
static bool is_small(const summing *s, const in_eqn *q)
{
	int64_t most = numel(&s->p->tensor[q->out[0]]);

	for (int32_t i = 0; i < s->p->n_tensors; i++)
		if (s->is_needed[i] && s->p->tensor[i].operand < 0 &&
			i != q->out[0] &&
			numel(&s->p->tensor[i]) >= most)
			return false;
	return true;
}

static bool find_tensors(summing *s, int32_t tensor)
{
	const ir_inst *p = s->p;
	const in_eqn *q = NULL;
	bool any = false;

	for (s->last = p->n_eqns - 1; s->last >= 0; s->last--)
		if (p->eqn[s->last].out[0] == tensor)
			break;
	if (s->last < 0)
		return false;
	q = &p->eqn[s->last];
	s->is_needed[tensor] = true;
	for (int32_t i = s->last; i >= 0; i--)
		if (makes_needed(s, &p->eqn[i])) {
			s->refused |=
				p->eqn[i].is_update || p->eqn[i].is_scan;
			(void)reads_rows(s, &p->eqn[i]);
		}
	for (int32_t i = 0; i <= s->last; i++) /* in order: readers last */
		if (makes_needed(s, &p->eqn[i])) {
			any = reads_rows(s, &p->eqn[i]);
			for (int32_t k = 0; k < p->eqn[i].n_out; k++)
				s->is_row[p->eqn[i].out[k]] = any && i < s->last;
		}
	return any && !s->refused && q->n_out == 1 &&
		(q->monoid == IR_SUM ||
			(q->monoid == IR_SET && is_total(p, q))) &&
		is_small(s, q);
}

/* ---- the instance ---- */

static const in_node *again(const summing *s, const in_node *n)
{
	in_node *m;
	bool row;

	if (n == NULL)
		return NULL;
	m = arena_copy(s->a, n, sizeof *n);
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		m->arg[i] = again(s, n->arg[i]);
	if (n->kind != IN_READ)
		return m;
	row = s->is_row[n->tensor];
	m->tensor = s->number[n->tensor];
	m->n_index = n->n_index + row;
	{
		const in_node **at = arena_array(
			s->a, const in_node *, m->n_index + 1);

		at[0] = s->letter;
		for (int32_t i = 0; i < n->n_index; i++)
			at[i + row] = again(s, n->index[i]);
		m->index = at;
	}
	return m;
}

static in_eqn eqn_again(const summing *s, const in_eqn *q, bool is_last)
{
	bool row = s->is_row[q->out[0]];
	bool any = row || is_last;
	in_eqn e = *q;
	const in_node **left = arena_array(s->a, const in_node *, q->n_left + 1);
	int32_t *letters = arena_array(s->a, int32_t, q->n_letters + 1);

	left[0] = s->letter;
	letters[row ? 0 : q->n_letters] = (int32_t)s->letter->i;
	for (int32_t i = 0; i < q->n_left; i++)
		left[i + row] = again(s, q->left[i]);
	for (int32_t i = 0; i < q->n_letters; i++)
		letters[i + row] = q->letters[i];
	e.n_left = q->n_left + row;
	e.left = left;
	e.n_letters = q->n_letters + any;
	e.letters = letters;
	for (int32_t k = 0; k < ir_n_bodies(q); k++) {
		e.out[k] = s->number[q->out[k]];
		e.body[k] = again(s, q->body[k]);
	}
	if (is_last)
		e.monoid = IR_SUM;
	return e;
}

/* A name that no letter has. */
static const char *letter_name(const summing *s)
{
	const char *name = "round";

	for (int32_t i = 0; i < s->p->n_letters; i++)
		if (strcmp(s->p->letter[i].name, name) == 0) {
			name = arena_printf(s->a, "%s_", name);
			i = -1;
		}
	return name;
}

static void add_tensors(summing *s, ir_inst *out, int32_t tensor, int64_t n,
	int32_t *operand)
{
	const ir_inst *p = s->p;
	in_tensor *t = arena_array(s->a, in_tensor, p->n_tensors + 1);
	int32_t *result = arena_make(s->a, int32_t);

	for (int32_t i = 0; i < p->n_tensors; i++) {
		in_tensor *to = &t[out->n_tensors];

		if (!s->is_needed[i])
			continue;
		*to = p->tensor[i];
		if (s->is_row[i]) {
			memmove(to->type.shape + 1, to->type.shape,
				(size_t)to->type.rank *
					sizeof to->type.shape[0]);
			to->type.shape[0] = n;
			to->type.rank++;
		}
		if (to->operand >= 0) {
			operand[out->n_tensors] = to->operand;
			to->operand = out->n_tensors;
		}
		to->result = i == tensor ? 0 : -1;
		s->number[i] = out->n_tensors++;
	}
	*result = s->number[tensor];
	out->tensor = t;
	out->result = result;
	out->n_results = 1;
}

static bool fits(const summing *s)
{
	for (int32_t i = 0; i < s->p->n_tensors; i++)
		if (s->is_needed[i] && s->is_row[i] &&
			(s->p->tensor[i].type.rank == TN_MAX_RANK ||
				s->p->tensor[i].next_of >= 0))
			return false;
	return true;
}

ir_inst *ir_inst_sum_rows(arena *a, const ir_inst *p, int32_t r,
	const bool *is_row, int64_t n, int32_t *operand)
{
	summing s = {.a = a, .p = p};
	ir_inst *out;
	in_node *letter = arena_make(a, in_node);
	in_eqn *q = arena_array(a, in_eqn, p->n_eqns + 1);
	struct in_letter *l = arena_array(a, struct in_letter, p->n_letters + 1);

	s.is_row = arena_array(a, bool, p->n_tensors + 1);
	s.is_needed = arena_array(a, bool, p->n_tensors + 1);
	s.number = arena_array(a, int32_t, p->n_tensors + 1);
	for (int32_t i = 0; i < p->n_tensors; i++)
		s.is_row[i] = p->tensor[i].operand >= 0 &&
			is_row[p->tensor[i].operand];
	if (p->opaque != NULL || !find_tensors(&s, p->result[r]) || !fits(&s))
		return NULL;
	*letter = (in_node){.kind = IN_LETTER, .dtype = TN_I64,
		.i = p->n_letters};
	s.letter = letter;
	if (p->n_letters > 0)
		memcpy(l, p->letter, (size_t)p->n_letters * sizeof *l);
	l[p->n_letters] = (struct in_letter){letter_name(&s), n};
	out = arena_make(a, ir_inst);
	out->row = p->row;
	out->n_letters = p->n_letters + 1;
	out->letter = l;
	add_tensors(&s, out, p->result[r], n, operand);
	for (int32_t i = 0; i <= s.last; i++)
		if (makes_needed(&s, &p->eqn[i]))
			q[out->n_eqns++] =
				eqn_again(&s, &p->eqn[i], i == s.last);
	out->eqn = q;
	return out;
}
