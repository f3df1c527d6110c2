/*
 * inst.h: private to ir/: one call of a row while it is unified.
 *
 *   attrs.c        values of attributes: given, by default, normalised
 *   unify.c        letters and packs: extents from shapes, broadcasting
 *   index.c        index arithmetic, entry by entry for packs and lists
 *   body.c         typed expressions
 *   instantiate.c  equations, results, the whole
 */
#ifndef IR_INST_H
#define IR_INST_H

#include "ir/row.h"

#define INST_MAX_LETTERS 256

/* One value, or a list of them: entries of a pack. */
typedef struct many {
	bool is_list;
	int32_t n; /* 1 when it is none */
	const in_node *const *v;
} many;

typedef enum sym_kind { SYM_LETTER, SYM_PACK, SYM_ATTR, SYM_LET } sym_kind;

typedef struct symbol {
	const char *name;
	sym_kind kind;
	bool is_bound; /* ATTR: its value is known */
	bool is_busy;  /* ATTR: its default is being evaluated */
	bool is_join;  /* PACK: some operand has ~ */
	const char *by; /* where it was bound: a tensor, or NULL */
	int32_t first, n; /* letters */
	many value;	  /* ATTR, LET */
	tn_dtype dtype;	  /* ATTR of kind dtype */
	bool is_dtype;
	const row_param *param;
	const ir_attr *given;
} symbol;

typedef struct inst {
	arena *a;
	env *e;
	const ir_row *r;
	loc at; /* of the call */
	int32_t n_operands;
	const ir_type *operand;
	map *word; /* name -> symbol */
	VEC(symbol) symbol;
	VEC(struct in_letter) letter;
	map *by_name; /* tensors */
	VEC(in_tensor) tensor;
	VEC(in_eqn) eqn;
	bool has_type; /* some operand is num or float */
	tn_dtype type;	/* the dtype of all of them */
	/* the equation at hand */
	const char *left_name;
	const in_node *const *left;
	int64_t left_numel;
	int32_t left_rank;
	int32_t pos_used;
} inst;

/* Throws ROW.WHAT; the text starts with "ROW: ". */
_Noreturn void inst_fail(const inst *u, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

symbol *inst_symbol(inst *u, const char *name); /* throws if there is none */

/* attrs.c */
void attrs_begin(inst *u, int32_t n, const ir_attr *attr);
const symbol *attr_value(inst *u, symbol *s); /* evaluates a default */

/* unify.c */
void unify_operands(inst *u);
void unify_for(inst *u, const row_for *f);
void unify_results(inst *u); /* of an opaque row */

/* index.c */
in_node *inst_node(inst *u, in_kind kind, tn_dtype t);
const in_node *node_int(inst *u, int64_t v);
const in_node *node_real(inst *u, double v);
const in_node *node_letter(inst *u, int32_t letter);
/* both untyped: folds constants, else index arithmetic or a comparison */
const in_node *node_binary(inst *u, const lex_operator *op, const in_node *a,
	const in_node *b);
bool node_is_const(const in_node *n);
double node_f64(const in_node *n);
/* 0 <= ... < extent of an index expression; 0 if a letter in it is empty */
int64_t node_extent(inst *u, const in_node *n);
void node_span(inst *u, const in_node *n, int64_t *min, int64_t *max);
bool node_same(const in_node *a, const in_node *b);

many index_many(inst *u, const row_node *e);
many many_list(inst *u, int32_t n, const in_node *const *v);
many many_of(inst *u, const in_node *n);
const in_node *index_one(inst *u, const row_node *e); /* one entry */
int64_t const_int(inst *u, const row_node *e);
/* entries of an attribute's list as integers */
int64_t many_int(inst *u, many m, int32_t i);
const in_node *read_node(inst *u, const row_node *e);
/* (a, b, c): ((a*#b)+b)*#c + c */
const in_node *composite(inst *u, int32_t n, const in_node *const *v);

/* body.c */
typedef struct typed {
	const in_node *n;
	bool is_typed;
} typed;
typed body_eval(inst *u, const row_node *e);
const in_node *body_adapt(inst *u, typed v, tn_dtype t);
bool body_is_literal(typed v); /* untyped and no axis value */

#endif
