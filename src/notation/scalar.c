/*
 * scalar.c: the table of scalar functions, compiled from scalar.def.
 *
 * Finds functions by name, computes the dtype of a result from the signature,
 * and the value for given arguments. All that the library knows of a function
 * is its row in scalar.def; this file names none.
 *
 *     int32_t fn = ir_scalar_find("max", 3);
 *     ir_scalar_at(fn)->f(NAN, 1, 0)                    NaN
 *     ir_scalar_dtype(fn, (tn_dtype[]){TN_I8, TN_I8}, 2)   TN_I8
 */
#include "notation/notation.h"

#include "base/random.h"

#include <math.h>

/* ---- functions that expressions of the table call ---- */

static int64_t wadd(int64_t x, int64_t y)
{
	return (int64_t)((uint64_t)x + (uint64_t)y);
}

static int64_t wsub(int64_t x, int64_t y)
{
	return (int64_t)((uint64_t)x - (uint64_t)y);
}

static int64_t wmul(int64_t x, int64_t y)
{
	return (int64_t)((uint64_t)x * (uint64_t)y);
}

static int64_t wneg(int64_t x)
{
	return wsub(0, x);
}

static int64_t idiv(int64_t x, int64_t y)
{
	return y == 0 ? 0 : y == -1 ? wneg(x) : x / y;
}

static int64_t irem(int64_t x, int64_t y)
{
	return y == 0 || y == -1 ? 0 : x % y;
}

static int64_t imod(int64_t x, int64_t y)
{
	int64_t r = irem(x, y);

	return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* x^y with wrap-around; a negative y gives 1 / x^-y, truncated */
static int64_t ipow(int64_t x, int64_t y)
{
	int64_t r = 1;

	if (y < 0)
		return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
	for (; y > 0; y >>= 1, x = wmul(x, x))
		if ((y & 1) != 0)
			r = wmul(r, x);
	return r;
}

static int64_t ishl(int64_t x, int64_t y)
{
	return y < 0 || y > 63 ? 0 : (int64_t)((uint64_t)x << y);
}

static int64_t ishr(int64_t x, int64_t y)
{
	return y < 0 || y > 63 ? -(int64_t)(x < 0) : x >> y;
}

static uint64_t udiv(uint64_t x, uint64_t y)
{
	return y == 0 ? 0 : x / y;
}

static uint64_t urem(uint64_t x, uint64_t y)
{
	return y == 0 ? 0 : x % y;
}

static uint64_t upow(uint64_t x, uint64_t y)
{
	uint64_t r = 1;

	for (; y > 0; y >>= 1, x *= x)
		if ((y & 1) != 0)
			r *= x;
	return r;
}

static uint64_t ushl(uint64_t x, uint64_t y)
{
	return y > 63 ? 0 : x << y;
}

static uint64_t ushr(uint64_t x, uint64_t y)
{
	return y > 63 ? 0 : x >> y;
}

static double fmax2(double x, double y)
{
	return x != x ? x : y != y ? y : x > y ? x : y;
}

static double fmin2(double x, double y)
{
	return x != x ? x : y != y ? y : x < y ? x : y;
}

static double fmodf2(double x, double y)
{
	double r = fmod(x, y);

	return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* 10 of 52 bits of the fraction; below 2^-126 a multiple of 2^-136. */
static double tf32(double x)
{
	const uint64_t drop = (UINT64_C(1) << 42) - 1;
	uint64_t u;

	if (x != x)
		return x;
	if (fabs(x) < 0x1p-126)
		return copysign(trunc(fabs(x) * 0x1p136 + 0.5) * 0x1p-136, x);
	memcpy(&u, &x, sizeof u);
	u = (u + drop / 2 + 1) & ~drop;
	memcpy(&x, &u, sizeof x);
	return x;
}

static double sigmoid(double x)
{
	return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static double softplus(double x)
{
	return fmax2(x, 0) + log1p(exp(-fabs(x)));
}

/* ---- the table ---- */

#define SCALAR(name, sig, F, I, emit, flops, dx, dy, dz, laws, doc)            \
	static double f_##name(double x, double y, double z)                   \
	{                                                                      \
		(void)x, (void)y, (void)z;                                     \
		return F;                                                      \
	}                                                                      \
	static int64_t i_##name(int64_t x, int64_t y, int64_t z)               \
	{                                                                      \
		(void)x, (void)y, (void)z;                                     \
		return I;                                                      \
	}
#define MIXED(name, sig, G, emit, flops, doc)                                  \
	static double g_##name(int64_t x, int64_t y, int64_t z)                \
	{                                                                      \
		(void)x, (void)y, (void)z;                                     \
		return G;                                                      \
	}
#include "notation/scalar.def"
#undef SCALAR
#undef MIXED

/*
 * The same text on u64: comparisons are unsigned by its type, and where a
 * function depends on the sign, it is another one.
 */
#define idiv udiv
#define irem urem
#define imod urem
#define ipow upow
#define ishl ushl
#define ishr ushr
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits" /* x < 0 is part of the text */
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#define SCALAR(name, sig, F, I, emit, flops, dx, dy, dz, laws, doc)            \
	static uint64_t w_##name(uint64_t x, uint64_t y, uint64_t z)           \
	{                                                                      \
		(void)x, (void)y, (void)z;                                     \
		return (uint64_t)(I);                                          \
	}                                                                      \
	static int64_t u_##name(int64_t x, int64_t y, int64_t z)               \
	{                                                                      \
		return (int64_t)w_##name(                                      \
			(uint64_t)x, (uint64_t)y, (uint64_t)z);                \
	}
#define MIXED(name, sig, G, emit, flops, doc)
#include "notation/scalar.def"
#undef SCALAR
#undef MIXED
#pragma GCC diagnostic pop

/* number of arguments of a signature "X>Z", "X,Y>Z" or "X,Y,Z>Z" */
#define ARITY(sig) ((int32_t)(sizeof(sig) - 2) / 2)
#define SCALAR(name, sig, F, I, emit, flops, dx, dy, dz, laws, doc)            \
	{#name, sig, emit, {dx, dy, dz}, doc, ARITY(sig), f_##name, i_##name,  \
		u_##name, NULL, flops, laws},
#define MIXED(name, sig, G, emit, flops, doc)                                  \
	{#name, sig, emit, {"", "", ""}, doc, ARITY(sig), NULL, NULL, NULL,    \
		g_##name, flops, ""},
static const ir_scalar table[] = {
#include "notation/scalar.def"
};
#undef SCALAR
#undef MIXED

enum { N_SCALARS = (int)(sizeof table / sizeof table[0]) };

int32_t ir_scalar_n(void)
{
	return N_SCALARS;
}

const ir_scalar *ir_scalar_at(int32_t fn)
{
	return &table[fn];
}

int32_t ir_scalar_find(const char *name, size_t n)
{
	for (int32_t i = 0; i < N_SCALARS && n > 0; i++)
		if (table[i].name[0] == name[0] && strlen(table[i].name) == n &&
			memcmp(table[i].name, name, n) == 0)
			return i;
	return -1;
}

static bool fits(char letter, tn_dtype t)
{
	switch (letter) {
	case 'F':
		return dtype_is_float(t);
	case 'I':
		return dtype_is_int(t);
	case 'N':
		return dtype_is_float(t) || dtype_is_int(t);
	case 'B':
		return t == TN_BOOL;
	default: /* O, T */
		return true;
	}
}

int32_t ir_scalar_dtype(int32_t fn, const tn_dtype *arg, int32_t n)
{
	const ir_scalar *s = &table[fn];
	char result = s->sig[2 * s->n_args];
	int32_t dtype = result == 'B' ? TN_BOOL : result == 'F' ? TN_F32 : -1;

	if (n != s->n_args)
		return -1;
	for (int32_t k = 0; k < n; k++) {
		char letter = s->sig[2 * k];

		if (!fits(letter, arg[k]))
			return -1;
		for (int32_t m = 0; m < k; m++)
			if (s->sig[2 * m] == letter && arg[m] != arg[k])
				return -1;
		if (letter == result)
			dtype = (int32_t)arg[k];
	}
	return dtype;
}

ir_number ir_scalar_eval(int32_t fn, tn_dtype arg, const ir_number *v)
{
	const ir_scalar *s = &table[fn];
	ir_number r = {0};
	char result = s->sig[2 * s->n_args];
	int32_t n = s->n_args;

	if (s->g != NULL) {
		r.f = s->g(v[0].i, n > 1 ? v[1].i : 0, n > 2 ? v[2].i : 0);
	} else if (dtype_is_float(arg)) {
		/* sel: its first argument is a bool, the others are floats */
		double x = s->sig[0] == 'B' ? (double)v[0].i : v[0].f;

		r.f = s->f(x, n > 1 ? v[1].f : 0, n > 2 ? v[2].f : 0);
		if (result == 'B')
			r.i = r.f != 0;
	} else {
		r.i = (arg == TN_U64 ? s->u : s->i)(v[0].i,
			n > 1 ? v[1].i : 0, n > 2 ? v[2].i : 0);
	}
	return r;
}

int64_t ir_wrap(tn_dtype t, int64_t v)
{
	unsigned char cell[8];

	if (t == TN_I64 || t == TN_U64 || dtype_is_float(t))
		return v;
	if (t == TN_BOOL)
		return v != 0;
	dtype_store_i64(t, cell, 0, v);
	return dtype_load_i64(t, cell, 0);
}

double ir_round(tn_dtype t, double v)
{
	unsigned char cell[8];

	if (t == TN_F64 || !dtype_is_float(t))
		return v;
	dtype_store_f64(t, cell, 0, v);
	return dtype_load_f64(t, cell, 0);
}

ir_number ir_cast(tn_dtype to, tn_dtype from, ir_number v)
{
	ir_number r = {0};

	if (dtype_is_float(to))
		r.f = ir_round(to, dtype_is_float(from) ? v.f
				   : from == TN_U64	? (double)(uint64_t)v.i
							: (double)v.i);
	else if (!dtype_is_float(from))
		r.i = ir_wrap(to, v.i);
	else {
		unsigned char cell[8];

		dtype_store_f64(to, cell, 0, v.f);
		r.i = dtype_load_i64(to, cell, 0);
	}
	return r;
}
