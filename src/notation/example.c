/*
 * example.c: chooses example shapes for a row, to show it without a call.
 *
 * Consumes a row; produces an instance of it. Each letter gets a different
 * extent, from 2 on; packs get one axis, or two, or none; an attribute without
 * a default gets a small value of its kind. If the row's own checks refuse a
 * choice, the next one is tried.
 *
 *     matmul(x[~b.., m, k]:num, y[~b.., k, n]:num)   ->   f32[2,3,4] f32[2,4,5]
 */
#include "notation/row.h"

enum { MAX_NAMES = 24, MAX_TRIES = 400, N_LENGTHS = 4, N_VALUES = 5 };

typedef struct binding {
	const char *name;
	bool is_pack;
	int32_t n; /* length of a pack */
	int64_t e[TN_MAX_RANK];
} binding;

typedef struct example {
	arena *a;
	const ir_table *t;
	const ir_row *r;
	int32_t n_bound;
	binding bound[MAX_NAMES];
	int64_t next; /* extent of the next letter */
	/* the choice of lengths of packs: one digit for each pack */
	int32_t lengths;
	int32_t values; /* the choice of attributes */
	int32_t n_operands;
	ir_type *operand;
	int32_t n_attrs;
	ir_attr *attr;
	ir_inst *made;
	bool fits;
} example;

static binding *find(example *x, const char *name)
{
	for (int32_t i = 0; i < x->n_bound; i++)
		if (strcmp(x->bound[i].name, name) == 0)
			return &x->bound[i];
	return NULL;
}

static binding *bind(example *x, const char *name)
{
	if (x->n_bound == MAX_NAMES) {
		x->fits = false;
		return &x->bound[0];
	}
	x->bound[x->n_bound] = (binding){.name = name};
	return &x->bound[x->n_bound++];
}

static const row_param *attribute(const example *x, const char *name)
{
	for (int32_t i = 0; i < x->r->n_params; i++)
		if (!x->r->param[i].info.is_operand &&
			strcmp(x->r->param[i].info.name, name) == 0)
			return &x->r->param[i];
	return NULL;
}

/* The chosen value of an attribute without a default. */
static int64_t chosen_int(const example *x)
{
	static const int64_t v[N_VALUES] = {2, 1, 0, 3, 4};

	return v[x->values % N_VALUES];
}

/* The value of an extent or a length in a pattern; -1: unknown. */
static int64_t meaning(example *x, const row_node *n)
{
	const row_param *p;
	const binding *b;

	if (n == NULL)
		return -1;
	if (n->kind == RN_INT)
		return n->i;
	if (n->kind == RN_NAME) {
		p = attribute(x, n->name);
		if (p == NULL)
			return -1;
		if (strcmp(p->info.kind, "axis") == 0)
			return -1;
		if (p->by_default == NULL)
			return chosen_int(x);
		return p->by_default->kind == RN_INT ? p->by_default->i : -1;
	}
	if (n->kind == RN_SIZE || (n->kind == RN_CALL && n->n == 1)) {
		while (n->n > 0 && n->kind != RN_NAME && n->kind != RN_PACK)
			n = n->arg[0];
		b = n->name != NULL ? find(x, n->name) : NULL;
		if (b != NULL)
			return b->is_pack ? b->n : b->e[0];
	}
	return -1;
}

static int64_t letter(example *x, const row_pat *p)
{
	binding *b = p->name != NULL ? find(x, p->name) : NULL;
	int64_t v;

	if (p->kind == PAT_INT)
		return p->i;
	if (b != NULL)
		return b->e[0];
	v = meaning(x, p->extent);
	b = bind(x, p->name);
	b->e[0] = v >= 0 ? v : x->next++;
	return b->e[0];
}

static const binding *pack(example *x, const row_pat *p)
{
	static const int32_t length[N_LENGTHS] = {1, 2, 0, 3};
	binding *b = find(x, p->name);
	int64_t n;

	if (b != NULL)
		return b;
	n = meaning(x, p->extent);
	if (n < 0 || n > TN_MAX_RANK) {
		n = length[x->lengths % N_LENGTHS];
		x->lengths /= N_LENGTHS;
	}
	b = bind(x, p->name);
	b->is_pack = true;
	b->n = (int32_t)n;
	for (int32_t i = 0; i < b->n; i++)
		b->e[i] = x->next++;
	return b;
}

static void add_axis(example *x, ir_type *t, int64_t extent)
{
	if (t->rank == TN_MAX_RANK)
		x->fits = false;
	else
		t->shape[t->rank++] = extent;
}

static void operand(example *x, const row_param *q)
{
	ir_type *t = &x->operand[x->n_operands++];
	const char *c = q->info.dtype_class;

	*t = (ir_type){.dtype = strcmp(c, "int") == 0 ? TN_I64
			: strcmp(c, "bool") == 0      ? TN_BOOL
						      : TN_F32};
	for (int32_t i = 0; i < q->n_pats; i++) {
		const row_pat *p = &q->pat[i];
		const binding *b;
		int64_t n = 1;

		switch (p->kind) {
		case PAT_LETTER:
		case PAT_INT:
			add_axis(x, t, letter(x, p));
			break;
		case PAT_PACK:
		case PAT_JOIN:
			b = pack(x, p);
			for (int32_t k = 0; k < b->n; k++)
				add_axis(x, t, b->e[k]);
			break;
		case PAT_COMP:
			for (int32_t k = 0; k < p->n; k++)
				n *= letter(x, &p->sub[k]);
			add_axis(x, t, n);
			break;
		}
	}
}

/*
 * Sets a list: one entry for each axis of the first operand, or of its last
 * pack.
 */
static void list(example *x, ir_attr *a)
{
	const ir_type *t = x->n_operands > 0 ? &x->operand[0] : NULL;
	int32_t n = t != NULL ? t->rank : 2;
	int64_t *v;

	for (int32_t i = 0; x->values / N_VALUES % 2 == 1 && i < x->n_bound;
		i++)
		if (x->bound[i].is_pack)
			n = x->bound[i].n;
	v = arena_array(x->a, int64_t, n + 1);
	for (int32_t i = 0; i < n; i++)
		v[i] = x->values / N_VALUES / 2 == 1 && t != NULL &&
				i < t->rank
			? t->shape[i]
			: chosen_int(x);
	if (strcmp(attribute(x, a->name)->info.kind, "perm") == 0)
		for (int32_t i = 0; i < n; i++)
			v[i] = n - 1 - i;
	a->kind = ATTR_INTS;
	a->n = n;
	a->ints = v;
}

static void give(example *x, const row_param *q)
{
	const char *kind = q->info.kind;
	ir_attr *a = &x->attr[x->n_attrs];

	if (q->by_default != NULL)
		return;
	*a = (ir_attr){.name = q->info.name};
	if (strcmp(kind, "int") == 0 || strcmp(kind, "flag") == 0) {
		a->kind = ATTR_INT;
		a->i = chosen_int(x);
	} else if (strcmp(kind, "axis") == 0) {
		a->kind = ATTR_INT;
	} else if (strcmp(kind, "real") == 0) {
		a->kind = ATTR_REAL;
		a->f = 0.5;
	} else if (strcmp(kind, "dtype") == 0) {
		a->kind = ATTR_DTYPE;
		a->dtype = TN_F64;
	} else if (strcmp(kind, "string") == 0) {
		x->fits = false;
	} else {
		list(x, a);
	}
	x->n_attrs++;
}

static void try_it(void *arg)
{
	example *x = arg;

	x->made = ir_instantiate(x->a, x->t, x->r, x->n_operands, x->operand,
		NULL, x->n_attrs, x->attr, (loc){0});
}

static bool has_elements(const ir_inst *p)
{
	for (int32_t i = 0; i < p->n_tensors; i++)
		if (shape_numel(p->tensor[i].type.shape,
			    p->tensor[i].type.rank) == 0)
			return false;
	return true;
}

static ir_inst *make(example *x)
{
	const ir_row *r = x->r;
	tn_status s;

	x->n_bound = x->n_operands = x->n_attrs = 0;
	x->next = 2;
	x->fits = true;
	for (int32_t i = 0; i < r->n_params; i++)
		if (r->param[i].info.is_operand)
			operand(x, &r->param[i]);
	for (int32_t i = 0; i < r->n_params; i++)
		if (!r->param[i].info.is_operand)
			give(x, &r->param[i]);
	if (!x->fits)
		return NULL;
	s = env_run(arena_env(x->a), try_it, x);
	if (s == TN_ENOMEM)
		env_rethrow(arena_env(x->a));
	if (s < 0)
		return NULL;
	return has_elements(x->made) ? x->made : NULL;
}

ir_inst *ir_row_example(arena *a, const ir_table *t, const ir_row *r)
{
	example x = {.a = a, .t = t, .r = r};

	if (r->builder != NULL) /* the number of operands is unknown */
		return NULL;
	x.operand = arena_array(a, ir_type, r->n_params + 1);
	x.attr = arena_array(a, ir_attr, r->n_params + 1);
	for (int32_t i = 0; i < MAX_TRIES; i++) {
		ir_inst *made;

		x.values = i / 20;
		x.lengths = i % 20;
		made = make(&x);
		if (made != NULL)
			return made;
	}
	return NULL;
}
