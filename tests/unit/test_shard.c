/*
 * test_shard.c: layouts against brute force: who owns what, and when a reshape
 * leaves each process a box. With SHARD_ALL every shape of up to 4 axes and 64
 * elements on meshes of 2 to 8; without it a sample of those.
 */
#include "unit.h"

#include "layout/layout.h"

#ifndef SHARD_ALL
#define SHARD_ALL 0
#endif

enum { MAX_ELEMS = 64, MAX_PROCESSES = 16 };

/* ---- what a process owns, element by element ---- */

/* Is the set a box of the axes: as many elements as all combinations? */
static bool is_box(const bool *in, int64_t numel, int32_t rank,
	const int64_t *shape, int64_t *local)
{
	bool used[TN_MAX_RANK][MAX_ELEMS] = {{false}};
	int64_t n = 0, product = 1;

	for (int64_t e = 0; e < numel; e++) {
		int64_t rest = e;

		if (!in[e])
			continue;
		n++;
		for (int32_t k = rank - 1; k >= 0; k--) {
			used[k][rest % shape[k]] = true;
			rest /= shape[k];
		}
	}
	for (int32_t k = 0; k < rank; k++) {
		local[k] = 0;
		for (int64_t x = 0; x < shape[k]; x++)
			local[k] += used[k][x];
		product *= local[k];
	}
	return n == 0 || n == product;
}

struct trial {
	arena *a;
	shard_mesh mesh;
	int64_t n_free, n_not;
	int64_t n_two_free, n_two_missed; /* of two cuts */
	/* who owns each element, by set_layout(): the same seen through any shape */
	bool in[MAX_PROCESSES][MAX_ELEMS];
	int64_t size, total;
};

/* runs, element by element, must say the same as shard_owns */
static void check_runs(struct trial *t, const shard_layout *l, int64_t p,
	const bool *in)
{
	shard_runs r = shard_owned(t->a, l, &t->mesh, p);
	int64_t e = 0, n = 0;

	for (int32_t i = 0; i < r.n; i++) {
		assert_true(r.at[i].n > 0);
		assert_true(i == 0 || e < r.at[i].from);
		for (; e < r.at[i].from; e++)
			assert_false(in[e]);
		for (; e < r.at[i].from + r.at[i].n; e++, n++)
			assert_true(in[e]);
	}
	for (; e < l->numel; e++)
		assert_false(in[e]);
	assert_int_equal(n, r.elems);
}

static void set_layout(struct trial *t, const shard_layout *l)
{
	t->size = 1;
	t->total = 0;
	for (int32_t i = 0; i < t->mesh.n; i++)
		t->size *= t->mesh.extent[i];
	assert_true(t->size <= MAX_PROCESSES && l->numel <= MAX_ELEMS);
	for (int64_t p = 0; p < t->size; p++) {
		for (int64_t e = 0; e < l->numel; e++) {
			t->in[p][e] = shard_owns(l, &t->mesh, p, e);
			t->total += t->in[p][e];
		}
		check_runs(t, l, p, t->in[p]);
	}
}

/* the layout by axis must say who owns each element */
static void check_axes(const struct trial *t, const shard_layout *l, int64_t p,
	const bool *in, int32_t rank, const int64_t *shape)
{
	shard_layout axis[TN_MAX_RANK];
	bool owns[TN_MAX_RANK][MAX_ELEMS] = {{false}}; /* places of an axis */

	assert_true(shard_by_axis(l, rank, shape, axis));
	for (int32_t k = 0; k < rank; k++)
		for (int64_t x = 0; x < shape[k]; x++)
			owns[k][x] = shard_owns(&axis[k], &t->mesh, p, x);
	for (int64_t e = 0; e < l->numel; e++) {
		bool mine = true;
		int64_t rest = e;

		for (int32_t k = rank - 1; k >= 0; k--) {
			mine &= owns[k][rest % shape[k]];
			rest /= shape[k];
		}
		assert_int_equal(mine, in[e]);
	}
}

/* The layout of set_layout() seen through a shape. */
static void try_shape(struct trial *t, const shard_layout *l, int32_t rank,
	const int64_t *shape)
{
	int64_t boundary = -1;
	bool is_free = shard_is_free(l, rank, shape, &boundary), all = true;

	for (int64_t p = 0; p < t->size; p++) {
		const bool *in = t->in[p];
		int64_t local[TN_MAX_RANK] = {0}, derived[TN_MAX_RANK] = {0};

		all &= is_box(in, l->numel, rank, shape, local);
		if (!is_free || (rank == 0 && l->n > 0))
			continue;
		check_axes(t, l, p, in, rank, shape);
		assert_true(shard_local_shape(
			l, &t->mesh, p, rank, shape, derived));
		for (int32_t k = 0, none = 0; k < rank; k++) {
			none |= local[k] == 0;
			if (k == rank - 1 && !none)
				assert_memory_equal(local, derived,
					(size_t)rank * sizeof *local);
		}
	}
	if (l->n == t->mesh.n)
		assert_int_equal(t->total, l->numel);
	if (t->mesh.n == 1) {
		assert_int_equal(is_free, all);
		t->n_free += is_free;
		t->n_not += !is_free;
	} else {
		assert_true(!is_free || all); /* never free when it is not */
		t->n_two_free += is_free;
		t->n_two_missed += all && !is_free;
	}
}

/* ---- all shapes of so many elements ---- */

struct shapes {
	int32_t n;
	struct one_shape {
		int32_t rank;
		int64_t shape[4];
	} at[1000];
};

static void list_shapes(struct shapes *s, struct one_shape so_far, int64_t rest)
{
	if (rest == 1)
		s->at[s->n++] = so_far;
	if (so_far.rank == 4)
		return;
	for (int64_t d = 1; d <= rest; d++) {
		struct one_shape next = so_far;

		if (rest % d != 0)
			continue;
		next.shape[next.rank++] = d;
		list_shapes(s, next, rest / d);
	}
}

/* one in 2^rare of the shapes; of all of them in the large suite if rare is 0 */
static void try_cut(struct trial *t, const struct shapes *s,
	const shard_layout *l, uint64_t *pick, int32_t rare)
{
	int32_t shift = SHARD_ALL ? rare : 5;

	set_layout(t, l);
	for (int32_t i = 0; i < s->n; i++) {
		*pick = *pick * 6364136223846793005u + 1442695040888963407u;
		if (*pick >> 33 < (uint64_t)1 << (31 - shift))
			try_shape(t, l, s->at[i].rank, s->at[i].shape);
	}
}

/* Every cut of one axis of these shapes, on every mesh: a cut of the same run
 * is the same layout, so each run is tried once. */
static void try_runs(struct trial *t, const struct shapes *s, int64_t numel,
	uint64_t *pick)
{
	bool seen[MAX_ELEMS + 1][MAX_ELEMS + 1] = {{false}};

	for (int32_t i = 0; i < s->n; i++) {
		const struct one_shape *x = &s->at[i];
		int64_t lo = 1;

		for (int32_t k = x->rank - 1; k >= 0; k--) {
			int64_t hi = lo * x->shape[k];

			for (int64_t p = 2; p <= 8 && !seen[lo][hi]; p++) {
				shard_layout l = shard_replicated(numel);

				t->mesh.extent[0] = p;
				shard_cut(arena_env(t->a), &l, &t->mesh,
					x->rank, x->shape, k, 0, 0);
				try_cut(t, s, &l, pick, 0);
				arena_clear(t->a);
			}
			seen[lo][hi] = true;
			lo = hi;
		}
	}
}

static void reshapes(arena *a, void *arg)
{
	static struct shapes s;
	struct trial t = {.a = arena_child(a), .mesh = {.n = 1}};
	uint64_t pick = 1;

	(void)arg;
	for (int64_t numel = 1; numel <= MAX_ELEMS; numel++) {
		s.n = 0;
		list_shapes(&s, (struct one_shape){0}, numel);
		try_runs(&t, &s, numel, &pick);
	}
	assert_true(t.n_free > 1000 && t.n_not > 1000);
	print_message("reshapes: %lld free, %lld not\n", (long long)t.n_free,
		(long long)t.n_not);
}

static void test_reshapes(void **state)
{
	(void)state;
	assert_int_equal(unit_run(reshapes, NULL, 0, NULL), TN_OK);
}

/* Two axes of a mesh, on the same axis of the tensor or on two, any blocks. */
static void two_cuts(arena *a, void *arg)
{
	static struct shapes s;
	struct trial t = {.a = arena_child(a), .mesh = {.n = 2}};
	uint64_t pick = 2;
	int64_t numels[] = {12, 20, 24, 36, 60};

	(void)arg;
	for (size_t n = 0; n < sizeof numels / sizeof *numels; n++) {
		s.n = 0;
		list_shapes(&s, (struct one_shape){0}, numels[n]);
		for (int32_t i = 0; i < s.n; i++) {
			const struct one_shape *x = &s.at[i];

			for (int32_t k = 0; k < 9 * x->rank * x->rank; k++) {
				shard_layout l = shard_replicated(numels[n]);

				if (!SHARD_ALL && k % 7 != 0)
					continue;
				t.mesh.extent[0] = 2 + k % 3;
				t.mesh.extent[1] = 2 + k / 3 % 3;
				shard_cut(arena_env(a), &l, &t.mesh, x->rank,
					x->shape, k / 9 % x->rank, 0, 0);
				shard_cut(arena_env(a), &l, &t.mesh, x->rank,
					x->shape, k / 9 / x->rank, 1, 0);
				try_cut(&t, &s, &l, &pick, 5);
			}
			arena_clear(t.a);
		}
	}
	assert_true(t.n_two_free > 1000);
	print_message("two cuts: %lld free, %lld boxes not recognised\n",
		(long long)t.n_two_free, (long long)t.n_two_missed);
}

static void test_two_cuts(void **state)
{
	(void)state;
	assert_int_equal(unit_run(two_cuts, NULL, 0, NULL), TN_OK);
}

/* n places in every block size that fits p processes: flattened with an inner
 * axis, and split again; processes that own nothing included. */
static void uneven(arena *a, void *arg)
{
	struct trial t = {.a = arena_child(a), .mesh = {.n = 1}};
	int64_t empty = 0;

	(void)arg;
	for (int64_t n = 1; n <= 64; n++)
		for (int64_t p = 1; p <= 16; p++)
			for (int64_t b = (n + p - 1) / p; b <= n; b++) {
				int64_t shape[2] = {n, 3}, flat = 3 * n;
				shard_layout l = shard_replicated(flat);

				if (!SHARD_ALL && (n + p + b) % 5 != 0)
					continue;
				t.mesh.extent[0] = p;
				shard_cut(arena_env(a), &l, &t.mesh, 2, shape,
					0, 0, b);
				for (int64_t r = 0; r < p; r++) {
					int64_t from = r * b, to = from + b;
					int64_t two[2], one;
					shard_runs own = shard_owned(
						t.a, &l, &t.mesh, r);

					from = from < n ? from : n;
					to = to < n ? to : n;
					empty += from == to;
					assert_int_equal(
						own.elems, 3 * (to - from));
					if (own.n > 0)
						assert_int_equal(
							own.at[0].from,
							3 * from);
					assert_true(shard_local_shape(&l,
						&t.mesh, r, 2, shape, two));
					assert_int_equal(
						two[0] * two[1], own.elems);
					assert_int_equal(two[0], to - from);
					assert_true(shard_local_shape(&l,
						&t.mesh, r, 1, &flat, &one));
					assert_int_equal(one, own.elems);
				}
				/* n split in two, where it can be */
				shard_layout s = shard_replicated(n);

				shard_cut(arena_env(a), &s, &t.mesh, 1, &n, 0,
					0, b);
				set_layout(&t, &s);
				for (int64_t d = 1; d <= n; d++) {
					int64_t split[2] = {n / d, d};

					if (n % d != 0)
						continue;
					try_shape(&t, &s, 2, split);
				}
				arena_clear(t.a);
			}
	assert_true(empty > 100);
}

static void test_uneven(void **state)
{
	(void)state;
	assert_int_equal(unit_run(uneven, NULL, 0, NULL), TN_OK);
}

/* ---- messages ---- */

static const struct {
	int32_t axis, mesh_axis;
	int64_t block;
	const char *rule;
} bad[] = {
	{2, 0, 0, "shard.axis"},
	{-1, 0, 0, "shard.axis"},
	{0, 1, 0, "shard.axis"},
	{0, 0, 2, "shard.block"},
	{0, 0, -1, "shard.block"},
};

static void cut_badly(arena *a, void *arg)
{
	shard_mesh m = {.n = 1, .extent = {4}};
	int64_t shape[2] = {10, 6};
	shard_layout l = shard_replicated(60);
	size_t i = *(size_t *)arg;

	shard_cut(arena_env(a), &l, &m, 2, shape, bad[i].axis,
		bad[i].mesh_axis, bad[i].block);
}

static void cut_twice(arena *a, void *arg)
{
	shard_mesh m = {.n = 1, .extent = {4}};
	int64_t shape[2] = {10, 6};
	shard_layout l = shard_replicated(60);

	(void)arg;
	shard_cut(arena_env(a), &l, &m, 2, shape, 0, 0, 0);
	shard_cut(arena_env(a), &l, &m, 2, shape, 1, 0, 0);
}

static void bad_mesh(arena *a, void *arg)
{
	shard_mesh m = {.n = 2, .extent = {4, 0}};

	(void)arg;
	shard_mesh_size(arena_env(a), &m);
}

static void test_errors(void **state)
{
	tn_diag d;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(unit_run(cut_badly, &i, 0, &d), TN_EINVAL);
		assert_string_equal(d.rule, bad[i].rule);
	}
	assert_int_equal(unit_run(cut_twice, NULL, 0, &d), TN_EINVAL);
	assert_string_equal(d.rule, "shard.twice");
	assert_int_equal(unit_run(bad_mesh, NULL, 0, &d), TN_EINVAL);
	assert_string_equal(d.rule, "shard.mesh");
}

/* ---- as text and back ---- */

static int32_t count_cuts(const shard_layout *l, int32_t mesh)
{
	int32_t n = 0;

	for (int32_t i = 0; i < l->n; i++)
		n += l->tag[i].mesh == mesh;
	return n;
}

static void one_text(arena *a, void *arg)
{
	uint64_t r = *(const uint64_t *)arg;
	env *e = arena_env(a);
	shard_mesh m = {.n = 2, .name = {"data", "model"}};
	int64_t shape[3];
	ir_system *s = ir_system_new(a, ix_new(a));
	shard_plan *p;
	shard_layout l;
	str text = str_new(a);
	uint32_t parts = 0;
	int32_t t;

	for (int32_t i = 0; i < 3; i++)
		shape[i] = (int64_t)(r >> 4 * i & 7) + 1;
	m.extent[0] = (int64_t)(r >> 12 & 3) + 1;
	m.extent[1] = (int64_t)(r >> 14 & 3) + 1;
	t = ir_add_tensor(s, "x", TN_F32, 3, shape);
	s->tensor.at[t].is_input = true;
	*vec_push(a, &s->input) = t;
	p = shard_plan_new(a, s, &m);
	l = shard_replicated(shape[0] * shape[1] * shape[2]);
	/* the second may cut the blocks of the first; either may be the first */
	for (int32_t i = 0; i < 2; i++) {
		int32_t mesh = (int32_t)(r >> 16 & 1) ^ i;
		int32_t axis = (int32_t)(r >> (17 + 2 * i) & 3);
		int64_t least = (shape[axis % 3] + m.extent[mesh] - 1) /
			m.extent[mesh];

		if (axis < 3)
			shard_cut(e, &l, &m, 3, shape, axis, mesh,
				l.n == 0 ? least + (int64_t)(r >> 21 & 1) : 0);
	}
	/* what cuts nothing may be parts */
	for (int32_t i = 0; i < 2; i++)
		if (count_cuts(&l, i) == 0 && m.extent[i] > 1)
			parts |= (uint32_t)(r >> (22 + i) & 1) << i;
	str_add(&text, "x=");
	shard_placement_print(&text, &l, parts, IR_SUM, &m, 3, shape);
	/* cuts of axes are said so that they can be read */
	assert_null(strstr(text.at, "elements"));
	assert_null(strchr(text.at, '/'));
	shard_placement_parse(p, text.at);
	assert_int_equal(p->tensor[t].parts, parts);
	for (int64_t q = 0; q < m.extent[0] * m.extent[1]; q++)
		for (int64_t i = 0; i < l.numel; i++)
			if (shard_owns(&l, &m, q, i) !=
				shard_owns(&p->tensor[t].have, &m, q, i))
				env_bug(e, "test", "%s: process %lld, %lld",
					text.at, (long long)q, (long long)i);
}

/* A tensor of this shape, x, as the only input of a system. */
static ir_system *one_input(arena *a, int32_t rank, const int64_t *shape)
{
	ir_system *s = ir_system_new(a, ix_new(a));
	int32_t t = ir_add_tensor(s, "x", TN_F32, rank, shape);

	s->tensor.at[t].is_input = true;
	*vec_push(a, &s->input) = t;
	return s;
}

static void same_elements(env *e, const char *text, const shard_mesh *m,
	const shard_layout *x, const shard_layout *y)
{
	int64_t n = shard_mesh_size(e, m);

	for (int64_t q = 0; q < n; q++)
		for (int64_t i = 0; i < x->numel; i++)
			if (shard_owns(x, m, q, i) != shard_owns(y, m, q, i))
				env_bug(e, "test", "%s: process %lld, %lld",
					text, (long long)q, (long long)i);
}

/* A shape of as many elements; returns its rank. */
static int32_t other_shape(uint64_t *r, int64_t numel, int64_t *shape)
{
	int32_t rank = 0;

	while (numel > 1 && rank < 4) {
		int64_t f = 1 + (int64_t)(*r % (uint64_t)numel);

		*r = *r * UINT64_C(6364136223846793005) + 1;
		for (; numel % f != 0; f++)
			;
		shape[rank++] = f;
		numel /= f;
	}
	if (numel > 1)
		shape[rank++] = numel;
	return rank;
}

enum { TEXT_PARTS, TEXT_DIGITS, TEXT_ELEMENTS, TEXT_NESTED, TEXT_KINDS };
static int64_t n_texts[TEXT_KINDS];

/* Cut in one shape, said in another: up to three cuts, of one axis too. */
static void one_reshaped(arena *a, void *arg)
{
	uint64_t r = *(const uint64_t *)arg;
	env *e = arena_env(a);
	/* names that are parts of each other, and of the notation */
	shard_mesh m = {.n = 3, .name = {"m", "m/2", "elements"}};
	int64_t shape[3], other[5];
	int32_t rank;
	uint32_t parts = 0;
	shard_layout l;
	shard_plan *p;
	str text = str_new(a);

	for (int32_t i = 0; i < 3; i++) {
		shape[i] = (int64_t)(r >> 4 * i & 7) + 1;
		m.extent[i] = (int64_t)(r >> (12 + 2 * i) & 3) + 1;
	}
	l = shard_replicated(shape[0] * shape[1] * shape[2]);
	for (int32_t i = 0; i < 3; i++)
		if ((r >> (18 + 2 * i) & 3) < 3)
			shard_cut(e, &l, &m, 3, shape,
				(int32_t)(r >> (18 + 2 * i) & 3), i, 0);
		else if (m.extent[i] > 1 && r >> 30 & 1)
			parts |= 1u << i;
	r >>= 24;
	rank = other_shape(&r, l.numel, other);
	p = shard_plan_new(a, one_input(a, rank, other), &m);
	str_add(&text, "x=");
	shard_placement_print(&text, &l, parts, IR_SUM, &m, rank, other);
	n_texts[TEXT_PARTS] += strstr(text.at, "parts") != NULL;
	n_texts[TEXT_DIGITS] += strchr(text.at, '%') != NULL;
	n_texts[TEXT_ELEMENTS] += strstr(text.at, "elements: m") != NULL;
	n_texts[TEXT_NESTED] += strstr(text.at, "of each block of") != NULL;
	shard_placement_parse(p, text.at);
	if (p->tensor[0].parts != parts)
		env_bug(e, "test", "%s: parts", text.at);
	same_elements(e, text.at, &m, &l, &p->tensor[0].have);
}

static void test_reshaped_text(void **state)
{
	uint64_t r = 1;
	tn_diag d;

	(void)state;
	for (int32_t i = 0; i < 6000; i++) {
		uint64_t draw;

		r = r * UINT64_C(6364136223846793005) + 1442695040888963407u;
		draw = r >> 8;
		if (unit_run(one_reshaped, &draw, 0, &d) < 0)
			fail_msg("%s", d.text);
	}
	for (int32_t i = 0; i < TEXT_KINDS; i++)
		assert_true(n_texts[i] > 50);
}

/* Texts of that form that no tensor can have. */
static void bad_text(arena *a, void *arg)
{
	shard_mesh m = {.n = 2, .name = {"m", "n"}, .extent = {6, 2}};
	shard_plan *p = shard_plan_new(a,
		one_input(a, 2, (const int64_t[]){12, 10}), &m);

	shard_placement_parse(p, arg);
}

static void test_bad_texts(void **state)
{
	static const struct {
		const char *text, *rule;
	} no[] = {
		{"x=m: axis 0 by 1", "shard.block"},
		{"x=m/1%2: axis 0 by 2", "shard.block"},
		{"x=m/2%3: axis 0 by 4, m/2%3: axis 1 by 4", "shard.block"},
		{"x=m/1%2: axis 0 by 6, m/1%3: axis 1 by 4", "shard.block"},
		{"x=m/4%3: axis 0 by 4", "shard.block"},
		{"x=m: axis 0/5 by 1", "shard.block"},
		{"x=m: axis 0/24 by 1", "shard.block"},
		{"x=m: axis 0%24 by 4", "shard.block"},
		{"x=m: axis 0%4 by 1, n: axis 0%6 by 3", "shard.block"},
		{"x=m: axis 0/2 by 1 of each block", "shard.block"},
		{"x=m: axis 0 by 2, n: axis 0 by 1 of each block of n",
			"shard.block"},
		{"x=elements: m on 7:120 by 1", "shard.block"},
		{"x=elements: m on 1:7 by 1", "shard.block"},
		{"x=elements: m on 1:0 by 1", "shard.place"},
		{"x=elements: m: axis 0 by 2", "shard.place"},
		{"x=m/0%2: axis 0 by 6", "shard.place"},
		{"x=m/2: axis 0 by 6", "shard.place"},
		{"x=m/2%3: parts of a sum", "shard.place"},
		{"x=m/2%3: replicated", "shard.place"},
		{"x=m: axis 0/2 by 2 of 7", "shard.place"},
		{"x=m: axis 0/99999999999999999999 by 2", "shard.place"},
		{"x=m/9223372036854775807%9223372036854775807: axis 0 by 6",
			"shard.block"},
		{"x=view of m: axis 0 by 2", "shard.place"},
		{"x=o: axis 0 by 2", "shard.axis"},
	};
	tn_diag d;

	(void)state;
	for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
		if (unit_run(bad_text, (void *)(uintptr_t)no[i].text, 0, &d) >=
			0)
			fail_msg("%s: accepted", no[i].text);
		if (strcmp(d.rule, no[i].rule) != 0)
			fail_msg("%s: %s: %s", no[i].text, d.rule, d.text);
	}
}

static void test_text(void **state)
{
	uint64_t r = 1;
	tn_diag d;

	(void)state;
	for (int32_t i = 0; i < 3000; i++) {
		uint64_t draw;

		r = r * UINT64_C(6364136223846793005) + 1442695040888963407u;
		draw = r >> 30;
		if (unit_run(one_text, &draw, 0, &d) < 0)
			fail_msg("%s", d.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reshapes),
		cmocka_unit_test(test_two_cuts),
		cmocka_unit_test(test_uneven),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_reshaped_text),
		cmocka_unit_test(test_bad_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
