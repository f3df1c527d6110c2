/*
 * terms.c: what an adjoint consists of: tensors, forward values computed again,
 * and the terms of cotangents.
 *
 * What the adjoint needs of the forward beside operands and results is computed
 * again, by the same equations; where both stand in one program they are merged.
 */
#include "grad/local.h"

/* ---- tensors ---- */

int32_t adj_tensor(
	adjoint *g, const char *name, const ir_type *type, tn_dtype dtype)
{
	const char *quote = strchr(name, '\'');
	in_tensor t = {.name = quote == NULL
			? name /* x' is no name in a system */
			: arena_printf(g->a, "%.*s_next", (int)(quote - name),
				  name),
		.type = *type,
		.operand = -1,
		.result = -1,
		.next_of = -1};

	t.type.dtype = dtype;
	*vec_push(g->a, &g->tensor) = t;
	return g->tensor.n - 1;
}

void adj_eqn(adjoint *g, const in_eqn *q)
{
	*vec_push(g->a, &g->eqn) = *q;
}

/* A forward equation, here: in `again`, behind those that it reads. */
static void make_again(adjoint *g, int32_t number)
{
	const in_eqn *q = &g->fwd->eqn[number];
	const in_node **left =
		arena_array(g->a, const in_node *, q->n_left + 1);
	in_eqn r = *q;

	if (g->is_made[number])
		return;
	g->is_made[number] = true;
	for (int32_t k = 0; k < q->n_out; k++) {
		const in_tensor *t = &g->fwd->tensor[q->out[k]];

		if (g->value[q->out[k]] < 0)
			g->value[q->out[k]] = adj_tensor(
				g, t->name, &t->type, t->type.dtype);
		r.out[k] = g->value[q->out[k]];
	}
	for (int32_t i = 0; i < q->n_left; i++)
		left[i] = nd_again(g, q, q->left[i]);
	r.left = left;
	for (int32_t k = 0; k < ir_n_bodies(q); k++)
		r.body[k] = nd_again(g, q, q->body[k]);
	*vec_push(g->a, &g->again) = r;
}

int32_t adj_value(adjoint *g, int32_t tensor)
{
	const in_tensor *t = &g->fwd->tensor[tensor];

	if (g->value[tensor] >= 0) {
		int32_t here = g->value[tensor];

		if (g->tensor.at[here].operand >= 0)
			g->used[here] = true;
		return here;
	}
	if (t->operand >= 0 || t->result >= 0)
		env_bug(g->e, "grad", "%s of %s was not thought of", t->name,
			ir_row_name(g->fwd->row));
	for (int32_t i = 0; i < g->fwd->n_eqns; i++)
		for (int32_t k = 0; k < g->fwd->eqn[i].n_out; k++)
			if (g->fwd->eqn[i].out[k] == tensor)
				make_again(g, i);
	return g->value[tensor];
}

/* The row-major number of the left side of q, letters and all. */
static const in_node *left_number(adjoint *g, const in_eqn *q)
{
	const ir_type *t = &g->fwd->tensor[q->out[0]].type;
	const in_node *sum = nd_int(g, 0);

	for (int32_t i = 0; i < q->n_left; i++)
		sum = nd_index(g, IN_ADD,
			nd_index(g, IN_MUL, sum, nd_int(g, t->shape[i])),
			nd_again(g, q, q->left[i]));
	return sum;
}

const in_node *nd_again(adjoint *g, const in_eqn *q, const in_node *n)
{
	in_node *r;

	if (n == NULL)
		return NULL;
	if (n->kind == IN_POS)
		return left_number(g, q);
	r = arena_copy(g->a, n, sizeof *n);
	if (n->kind == IN_READ) {
		const in_node **at = arena_array(
			g->a, const in_node *, n->n_index + 1);

		r->tensor = adj_value(g, n->tensor);
		for (int32_t i = 0; i < n->n_index; i++)
			at[i] = nd_again(g, q, n->index[i]);
		r->index = at;
	}
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		r->arg[i] = nd_again(g, q, n->arg[i]);
	return r;
}

/* ---- cotangents ---- */

/*
 * Letters of an equation: those of its left side, those of q that only count
 * how often, those of its body: as the same row would be read from text.
 */
struct letters {
	adjoint *g;
	VEC(int32_t) at;
};

static bool has_letter(const struct letters *l, int32_t letter)
{
	for (int32_t i = 0; i < l->at.n; i++)
		if (l->at.at[i] == letter)
			return true;
	return false;
}

static void add_letter(struct letters *l, int32_t letter)
{
	if (!has_letter(l, letter))
		*vec_push(l->g->a, &l->at) = letter;
}

static void letters_of(struct letters *l, const in_node *n)
{
	if (n == NULL)
		return;
	if (n->kind == IN_LETTER)
		add_letter(l, (int32_t)n->i);
	for (int32_t i = 0; i < n->n_index; i++)
		letters_of(l, n->index[i]);
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		letters_of(l, n->arg[i]);
}

void adj_set_letters(adjoint *g, const in_eqn *q, in_eqn *r)
{
	struct letters l = {.g = g}, body = {.g = g};

	for (int32_t i = 0; i < r->n_left; i++)
		letters_of(&l, r->left[i]);
	letters_of(&body, r->body[0]);
	for (int32_t i = 0; i < q->n_letters; i++)
		if (!has_letter(&body, q->letters[i]))
			add_letter(&l, q->letters[i]);
	for (int32_t i = 0; i < body.at.n; i++)
		add_letter(&l, body.at.at[i]);
	r->n_letters = l.at.n;
	r->letters = l.at.at;
}

in_eqn adj_new_eqn(int32_t out, int32_t monoid, int32_t n_left,
	const in_node *const *left, const in_node *body)
{
	in_eqn r = {.n_out = 1,
		.monoid = monoid,
		.n_left = n_left,
		.left = left,
		.scan_axis = -1,
		.scan_letter = -1};

	r.out[0] = out;
	r.body[0] = body;
	return r;
}

const char *adj_named(adjoint *g, const char *prefix, int32_t t)
{
	return arena_printf(
		g->a, "%s%s", prefix, g->fwd->tensor[t].name);
}

/* Seeds begin the sum where more comes. */
static void begin_with_seed(adjoint *g, int32_t t, int32_t out)
{
	const ir_type *y = &g->fwd->tensor[t].type;
	const in_node **at = arena_array(g->a, const in_node *, y->rank + 1);
	in_eqn q = {.n_letters = y->rank}, r;
	int32_t *letter = arena_array(g->a, int32_t, y->rank + 1);

	for (int32_t i = 0; i < y->rank; i++) {
		in_node *n = arena_make(g->a, in_node);

		letter[i] = g->letter.n;
		*vec_push(g->a, &g->letter) = (struct in_letter){
			arena_printf(g->a, "s_%d", (int)g->letter.n),
			y->shape[i]};
		*n = (in_node){.kind = IN_LETTER,
			.dtype = TN_I64,
			.i = letter[i]};
		at[i] = n;
	}
	q.letters = letter;
	g->used[g->seed[t]] = true;
	r = adj_new_eqn(out, IR_SET, y->rank, at,
		nd_read(g, g->seed[t], y->rank, at));
	adj_set_letters(g, &q, &r);
	adj_eqn(g, &r);
}

void adj_add(adjoint *g, const in_eqn *q, int32_t t,
	const in_node *const *left, bool may_skip, const in_node *body)
{
	const in_tensor *y = &g->fwd->tensor[t];
	bool first = g->cotangent[t] < 0;
	in_eqn r;

	if (first) {
		g->cotangent[t] = adj_tensor(
			g, adj_named(g, "g", t), &y->type, y->type.dtype);
		if (g->seed[t] >= 0) {
			begin_with_seed(g, t, g->cotangent[t]);
			first = false;
		}
	}
	r = adj_new_eqn(g->cotangent[t], IR_SUM, y->type.rank, left, body);
	r.is_update = !first;
	r.skip = may_skip;
	adj_set_letters(g, q, &r);
	adj_eqn(g, &r);
}

/* The finished value of what q makes, at its left side. */
const in_node *adj_at_left(
	adjoint *g, const in_eqn *q, int32_t tensor)
{
	const in_node **at = arena_array(
		g->a, const in_node *, q->n_left + 1);

	for (int32_t i = 0; i < q->n_left; i++)
		at[i] = nd_again(g, q, q->left[i]);
	return nd_read(g, tensor, q->n_left, at);
}

/* A self-read at left + k: its term of h, moved back by k. */
void adj_self(adjoint *g, const in_eqn *q, const in_node *const *left,
	const in_node *body)
{
	struct scan_of *s = &g->scan;
	const in_node *l = left[q->scan_axis];
	int64_t k = l->arg[1]->i;
	const in_node *moved, *h;
	tn_dtype t = g->fwd->tensor[q->out[0]].type.dtype;

	/* the index is letter + k or letter - k: instantiation has seen to it */
	k = l->kind == IN_ADD ? k : -k;
	moved = nd_shifted(g, body, q->scan_letter, -k);
	h = nd_shifted(g, adj_at_left(g, q, s->h), q->scan_letter, -k);
	moved = nd_where(g, nd_inside(g, h), moved, nd_real(g, t, 0));
	s->sum = nd_call(g, "add", t, s->sum, moved, NULL);
}
