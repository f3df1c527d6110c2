/*
 * draw_cast.c: random programs of casts, between all pairs of types.
 *
 * Program number i goes through triple i of types, so that each type is once
 * between each two others, in no buffer: what a kernel needs of it must not
 * come from its operands. In between and behind stand elementwise operations
 * and a reduction now and then. Data are all bit patterns of the input's type,
 * drawn, and for floats the values next to where conversions change.
 *
 *   v1 = cast(x0, to=i32)
 *   v2 = neg(v1)
 *   v3 = cast(v2, to=bf16)
 */
#include "prop.h"

#include <math.h>

enum { MAX_STEPS = 4, MAX_EXTENT = 90 };

typedef struct cast_draft {
	arena *a;
	rng r;
	ir_program *p;
	int32_t v; /* the value made last */
} cast_draft;

static void call(cast_draft *d, const char *row, int32_t n, const int32_t *arg,
	int32_t n_attrs, ir_attr *attr)
{
	int32_t c = ir_program_call(
		d->p, row, n, arg, n_attrs, attr, NULL, (loc){0});

	d->v = d->p->call.at[c].result[0];
}

static void cast_to(cast_draft *d, tn_dtype to)
{
	ir_attr *attr = arena_make(d->a, ir_attr);

	*attr = (ir_attr){.name = "to", .kind = ATTR_DTYPE, .dtype = to};
	call(d, "cast", 1, &d->v, 1, attr);
}

typedef struct guess {
	cast_draft *d;
	const char *row;
	int32_t n;
} guess;

static void try_call(void *arg)
{
	guess *g = arg;
	int32_t args[IR_MAX_ARGS] = {g->d->v, g->d->v, g->d->v};

	call(g->d, g->row, g->n, args, 0, NULL);
}

/* A function of the scalar table that takes this type; both operands are the
 * same value. */
static void step(cast_draft *d)
{
	for (int32_t tries = 0; tries < 20; tries++) {
		int32_t n = (int32_t)rng_below(&d->r, ir_scalar_n());
		const ir_scalar *f = ir_scalar_at(n);
		guess g = {d, f->name, 1};

		for (const char *c = f->sig; *c != '>'; c++)
			g.n += *c == ',';
		if (env_run(arena_env(d->a), try_call, &g) == TN_OK)
			return;
	}
}

static void reduce(cast_draft *d)
{
	static const char *const rows[] = {
		"reduce_max", "reduce_min", "reduce_sum", "reduce_any"};
	guess g = {d, rows[rng_below(&d->r, 4)], 1};

	(void)env_run(arena_env(d->a), try_call, &g);
}

/* Around the ends of what the types hold, halves, and what is no number. */
static double near_an_end(rng *r)
{
	static const double list[] = {0, 0.5, 1.5, 127, 128, 255, 256, 32767,
		32768, 65504, 65535, 65536, 2147483647.0, 2147483648.0,
		4294967296.0, 0x1p53, 0x1p63, 0x1p64, 1e30, 1e-40, INFINITY,
		NAN, 0x1p-24, 0x1p-25, 2049, 257};
	double v = list[rng_below(r, (int64_t)(sizeof list / sizeof *list))];

	v += (double)rng_range(r, -2, 2) * 0.5;
	return rng_percent(r, 50) ? -v : v;
}

static void fill(cast_draft *d, const ir_type *t, unsigned char *data)
{
	int64_t n = type_numel(t);
	size_t size = dtype_size(t->dtype);

	for (int64_t i = 0; i < n; i++) {
		uint64_t bits = rng_next(&d->r);

		if (t->dtype == TN_BOOL)
			bits &= 1;
		if (dtype_is_float(t->dtype) && rng_percent(&d->r, 80))
			dtype_store_f64(
				t->dtype, data, i, near_an_end(&d->r));
		else
			memcpy(data + (size_t)i * size, &bits, size);
	}
}

static void draw(cast_draft *d, uint64_t index)
{
	int32_t more = (int32_t)rng_below(&d->r, MAX_STEPS);

	cast_to(d, (tn_dtype)(index / TN_N_DTYPES % TN_N_DTYPES));
	if (rng_percent(&d->r, 25))
		step(d);
	cast_to(d, (tn_dtype)(index / TN_N_DTYPES / TN_N_DTYPES % TN_N_DTYPES));
	for (int32_t i = 0; i < more; i++) {
		if (rng_percent(&d->r, 60))
			step(d);
		else
			cast_to(d, (tn_dtype)rng_below(&d->r, TN_N_DTYPES));
	}
	if (rng_percent(&d->r, 20))
		reduce(d);
}

prop_case *draw_cast(arena *a, ir_table *t, uint64_t seed, uint64_t index)
{
	prop_case *c = arena_make(a, prop_case);
	cast_draft d = {.a = a, .r = rng_new(seed, index),
		.p = ir_program_new(a, t)};
	/* 7 and the number of triples have no common factor */
	uint64_t triple = index * 7 + seed;
	ir_type type = {.dtype = (tn_dtype)(triple % TN_N_DTYPES), .rank = 1,
		.shape = {rng_range(&d.r, 1, MAX_EXTENT)}};

	*c = (prop_case){.seed = seed, .index = index, .p = d.p,
		.style = STYLE_SPECIAL};
	d.v = ir_program_input(d.p, "x0", type, (loc){0});
	draw(&d, triple);
	ir_program_output(d.p, d.v);
	c->in = arena_array(a, void *, 2);
	c->in[0] = arena_alloc(a, type_bytes(&type) + 8, 1);
	fill(&d, &type, c->in[0]);
	return c;
}
