/*
 * local.h: private to target/c/: the state of printing one kernel.
 */
#ifndef TARGET_C_LOCAL_H
#define TARGET_C_LOCAL_H

#include "target/c/c.h"
#include "target/c/math.h"

/* A helper or a type that the text names. */
typedef enum need_kind {
	NEED_TYPE,     /* lanes of a dtype */
	NEED_UNSIGNED, /* the same, unsigned */
	NEED_MATH,     /* helper of math.c, by name */
	NEED_INT,      /* helper for integers, by name: see unit.c */
	NEED_FROM,     /* `of` from floats of t, in lanes */
	NEED_TURN      /* square of t, lanes by lanes */
} need_kind;

struct need {
	need_kind kind;
	const char *name;
	tn_dtype t, of;
	int32_t lanes;
};
struct needs {
	int32_t n;
	const struct need *at;
};

typedef struct printer {
	arena *a;
	const kern_kernel *k;
	c_math *m;
	map *known; /* needs that are listed */
	VEC(struct need) needs;
	str *out;
	int32_t depth;
	bool *is_let;	/* [value] named by a statement before */
	kern_val *name; /* [value] whose name it has */
	bool *used;	/* [array] in this phase */
	int32_t *streams; /* bytes of vectors that go past the caches; 0: none */
} printer;

/* value.c: what C calls and computes */
const char *c_type(printer *p, kern_type t);
const char *c_stored_type(printer *p, tn_dtype t);
const char *c_name(printer *p, kern_val v); /* or a literal */
const char *c_form(printer *p, const kern_form *f);
const char *c_element(printer *p, const kern_access *at); /* "p1[4 * x3]" */
const char *c_value(printer *p, kern_val v); /* of the instruction */
const char *c_use(printer *p, const char *helper, tn_dtype t, int32_t lanes);
const char *c_int_helper(printer *p, const char *name);
const char *c_turn(printer *p, tn_dtype t, int32_t lanes);
void c_need(printer *p, struct need n);

#endif
