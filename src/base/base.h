/*
 * base.h: interface of base/: used by all other folders.
 *
 *   env     error environment: one protected call, thrown diagnoses
 *   arena   memory of one lifetime; everything in it is freed at once
 *   vec     growing arrays in an arena
 *   map     byte strings to integers, in insertion order
 *   str     growing text
 *   number  floating-point numbers as text, whatever the locale
 *   fp      the floating-point environment of a thread
 *   dtype   sizes, names and conversions of element types
 *
 * Errors. A pass does not return a status: it throws with env_fail(), and the
 * entry of the library (env_run) catches, so that no check can be forgotten.
 * Whatever a pass acquires is therefore owned by an arena (arena_defer for
 * what is not memory), never by a local variable. Running out of memory is
 * thrown the same way: arena_alloc never returns NULL.
 */
#ifndef BASE_H
#define BASE_H

#include <tenon.h>

#include <fenv.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- env ------------------------------------------------------------- */

typedef struct env env;

/* A position in a source text; file is borrowed. */
typedef struct loc {
	const char *file; /* NULL: not known */
	int32_t line, column;
} loc;

env *env_new(void); /* NULL when out of memory */
env *env_new_with(const tn_allocator *memory); /* all memory of it and its arenas */
void env_free(env *e);

/*
 * Calls fn(arg). Returns TN_OK, or the status that env_fail threw on the way;
 * the diagnosis is then env_diag(e). Nests: the innermost run catches.
 */
tn_status env_run(env *e, void (*fn)(void *arg), void *arg);
const tn_diag *env_diag(const env *e);

/*
 * Throw. `rule` is the stable id of the violated rule ("tn.syntax"). The
 * message is one sentence that says what was wrong and what is accepted.
 */
_Noreturn void env_fail(env *e, tn_status status, const char *rule, loc at,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The same with the source text in which `at` lies: keeps line and caret. */
_Noreturn void env_fail_source(env *e, const char *rule, loc at,
	const char *source, size_t n_source, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

/* Throw env_diag(e) again, to the next env_run up. */
_Noreturn void env_rethrow(env *e);

/* Throw TN_EINTERNAL: an invariant of the library does not hold. */
_Noreturn void env_bug(env *e, const char *where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Tests only: the n-th allocation from now on fails, as if memory had run out
 * (every arena of this env counts). 0 or less: none fails. A test raises n
 * until the task succeeds.
 */
void env_test_fail_alloc(env *e, int64_t n);

/* ---- arena ----------------------------------------------------------- */

typedef struct arena arena;

arena *arena_new(env *e);	 /* throws TN_ENOMEM */
arena *arena_child(arena *parent); /* freed with its parent at the latest */
void arena_free(arena *a);	 /* NULL is fine; children first */
/* As after arena_new, but the chunk being filled is kept: for scratch. */
void arena_clear(arena *a);
env *arena_env(const arena *a);
size_t arena_bytes(const arena *a); /* memory held, in bytes */
/* Counts n bytes that live as long as the arena, and are not its own. */
void arena_count(arena *a, size_t n);

/* Calls fn(a, arg) with an arena that is freed when fn returns or throws. */
void arena_run(env *e, void (*fn)(arena *a, void *arg), void *arg);
/* The same with a child of `parent`, which stays if fn returns. */
arena *arena_keep(arena *parent, void (*fn)(arena *a, void *arg), void *arg);

/* Zeroed, aligned to 16. Throws TN_ENOMEM; n * size is overflow-checked. */
void *arena_alloc(arena *a, size_t n, size_t size);
#define arena_make(a, T) ((T *)arena_alloc((a), 1, sizeof(T)))
#define arena_array(a, T, n) ((T *)arena_alloc((a), (size_t)(n), sizeof(T)))
void *arena_copy(arena *a, const void *data, size_t n_bytes);
char *arena_strdup(arena *a, const char *s);
char *arena_strndup(arena *a, const char *s, size_t n);
char *arena_printf(arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Calls fn(what) when the arena is freed, last deferred first. If memory runs
 * out, fn(what) is called at once, and TN_ENOMEM thrown.
 */
void arena_defer(arena *a, void (*fn)(void *what), void *what);

/* ---- vec ------------------------------------------------------------- */

/* VEC(int) v = {0}; *vec_push(a, &v) = 3; for (i = 0; i < v.n; i++) v.at[i] */
#define VEC(T)                                                                 \
	struct {                                                               \
		T *at;                                                         \
		int32_t n, cap;                                                \
	}
#define vec_push(a, v)                                                         \
	((v)->at = vec_room((a), (v)->at, (v)->n, &(v)->cap,                   \
		 sizeof *(v)->at),                                             \
		&(v)->at[(v)->n++])
#define vec_pop(v) ((v)->at[--(v)->n])
/* room for `more` further elements; does not change n */
#define vec_reserve(a, v, more)                                                \
	((v)->at = vec_grow((a), (v)->at, (v)->n, &(v)->cap, sizeof *(v)->at,  \
		 (more)))
void *vec_grow(arena *a, void *at, int32_t n, int32_t *cap, size_t size,
	int32_t more);
/* The elements, with room for one more. */
static inline void *vec_room(
	arena *a, void *at, int32_t n, int32_t *cap, size_t size)
{
	return n < *cap ? at : vec_grow(a, at, n, cap, size, 1);
}

/* ---- map ------------------------------------------------------------- */

/* Keys are copied into the arena; iteration 0 .. n-1 is insertion order. */
typedef struct map map;

map *map_new(arena *a);
int32_t map_n(const map *m);
/* The number of a key: its value if it is there, else the next one, map_n, as
 * its value. For maps that only this function fills. */
int32_t map_number(map *m, const void *key, size_t n_bytes);
/* value of the key, or `missing` */
int64_t map_get(const map *m, const void *key, size_t n_bytes, int64_t missing);
void map_set(map *m, const void *key, size_t n_bytes, int64_t value);
const void *map_key(const map *m, int32_t i, size_t *n_bytes);
int64_t map_value(const map *m, int32_t i);
#define map_get_str(m, s, missing) map_get((m), (s), strlen(s), (missing))
#define map_set_str(m, s, v) map_set((m), (s), strlen(s), (v))

uint64_t hash_bytes(const void *data, size_t n_bytes, uint64_t seed);

/* ---- str ------------------------------------------------------------- */

/* Text that grows in an arena; s->at is always terminated. */
typedef struct str {
	arena *a;
	char *at;
	size_t n, cap;
} str;

str str_new(arena *a);
void str_add(str *s, const char *text);
void str_addn(str *s, const char *text, size_t n);
void str_addc(str *s, char c);
void str_printf(str *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void str_vprintf(str *s, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
/* shape as "[2,3]" */
void str_shape(str *s, const int64_t *shape, int32_t rank);
/* text as a JSON string, quotes included; control characters escaped */
void str_json(str *s, const char *text);
/* the shortest decimal text that reads back to the same double; inf, -inf, nan */
void str_double(str *s, double v);

/*
 * The one pair for floating-point text, whatever the locale of the process:
 * strtod and snprintf as they are in "C". All that print a format (env_fail,
 * arena_printf, str_printf ..) do it by text_vprint.
 */
double text_f64(const char *text, char **end);
int text_print(char *out, size_t n, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int text_vprint(char *out, size_t n, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

/* ---- integers -------------------------------------------------------- */

/* false on overflow */
static inline bool mul_ok(int64_t a, int64_t b, int64_t *out)
{
	return !__builtin_mul_overflow(a, b, out);
}
static inline bool add_ok(int64_t a, int64_t b, int64_t *out)
{
	return !__builtin_add_overflow(a, b, out);
}
/* floor division and its non-negative remainder; m > 0 */
static inline int64_t floor_div(int64_t a, int64_t m)
{
	return a / m - (a % m < 0);
}
static inline int64_t floor_mod(int64_t a, int64_t m)
{
	return a % m < 0 ? a % m + m : a % m;
}
int64_t gcd_i64(int64_t a, int64_t b); /* of the magnitudes; gcd(0, b) = b */
/*
 * Number of elements; -1 if an extent is negative or the product of those that
 * are not 0 exceeds 2^48 (so that strides never overflow, empty or not).
 */
int64_t shape_numel(const int64_t *shape, int32_t rank);

/* ---- fp ---- */

/* The floating-point environment of the calling thread. */
typedef struct fp_env {
	bool is_default;
	uint32_t sse; /* x86 */
	uint16_t x87;
#if !defined(__x86_64__) && !(defined(__i386__) && defined(__SSE__))
	fenv_t all;
#endif
} fp_env;

/* The default one from here on; what it was, for fp_leave. */
fp_env fp_enter(void);
void fp_leave(const fp_env *host);

/* ---- dtype ----------------------------------------------------------- */

size_t dtype_size(tn_dtype t);	      /* bytes of one element */
const char *dtype_name(tn_dtype t);   /* "f32" */
bool dtype_parse(const char *s, size_t n, tn_dtype *out);
bool dtype_is_float(tn_dtype t);
bool dtype_is_int(tn_dtype t); /* not bool */
bool dtype_is_unsigned(tn_dtype t); /* an integer that is never negative */
tn_dtype dtype_wide(tn_dtype t);    /* in which it is computed: of f16 f32 */
bool dtype_is_narrow(tn_dtype t);   /* is that another one? */
int32_t dtype_bits(tn_dtype t);	    /* of an element in a file, packed */
tn_dtype dtype_acc(tn_dtype t); /* accumulator: f16 f32; ints i64; u64 itself */

float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float f); /* round to nearest even */
float bf16_to_f32(uint16_t h);
uint16_t f32_to_bf16(float f); /* round to nearest even, NaN stays NaN */

/*
 * Element i of an array as double or int64, and back. To an integer: truncated
 * towards zero, NaN is 0, beyond int64 its nearest end, then wraps to the type;
 * u64: beyond its greatest value that one. To bool: not zero. A double is
 * rounded once, but to floats of a byte or less through f32. An int64 has the
 * bits of a u64. Data need not be aligned.
 */
double dtype_load_f64(tn_dtype t, const void *data, int64_t i);
int64_t dtype_load_i64(tn_dtype t, const void *data, int64_t i);
void dtype_store_f64(tn_dtype t, void *data, int64_t i, double v);
void dtype_store_i64(tn_dtype t, void *data, int64_t i, int64_t v);

#endif
