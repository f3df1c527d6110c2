/*
 * inst.h: private to notation/: one call of a row while it is unified.
 *
 *   attrs.c        values of attributes: given, normalised
 *   unify.c        letters and packs: extents from shapes, broadcasting
 *   node.c         nodes, their bounds and their arithmetic
 *   index.c        index arithmetic, entry by entry for packs and lists; reads
 *   body.c         typed expressions
 *   inst_fail.c    errors, and what they call the operands
 *   instantiate.c  equations, results, the whole
 *   inst_grad.c    the grad block of a row
 *   inst_print.c   an instance as a row
 */
#ifndef IR_INST_H
#define IR_INST_H

#include "notation/row.h"

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
	const char *const *shown; /* see ir_instantiate */
	map *word; /* name -> symbol */
	VEC(symbol) symbol;
	VEC(struct in_letter) letter;
	map *by_name; /* tensors */
	VEC(in_tensor) tensor;
	VEC(in_eqn) eqn;
	bool has_type; /* some operand is num or float */
	tn_dtype type;	/* the dtype of all of them */
	/* of the current equation */
	const char *left_name;
	int64_t left_numel;
} inst;

/* Throws ROW.WHAT; the text starts with "ROW: ". */
_Noreturn void inst_fail(const inst *u, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* what a message calls an operand of the row: "foo: f32[2,3]", "operand x: .." */
const char *inst_operand(const inst *u, const char *param);
/* the same; of another tensor of the row its name */
const char *inst_tensor(const inst *u, const in_tensor *t);
/* all operands, for what fails by no single one: " (foo: f32[2,3], ..)" or "" */
const char *inst_operands(const inst *u);

/* instantiate.c */
/* operands, attributes, letters: all but the equations */
inst *inst_begin(arena *a, const ir_row *r, int32_t n_operands,
	const ir_type *operand, const char *const *shown, int32_t n_attrs,
	const ir_attr *attr, loc at);
/* let, check and for in front of the equations; then these */
void inst_prepare(inst *u, int32_t n, const row_stmt *s);
void inst_eqns(inst *u, int32_t n, const row_stmt *s);

/* attrs.c */
void inst_attrs(inst *u, int32_t n, const ir_attr *attr);
many inst_ints(inst *u, int32_t n, const int64_t *v);
many inst_all_axes(inst *u, bool reverse);
many inst_given(inst *u, const symbol *s);
/* what the kind of the attribute makes of these entries */
many inst_normal(inst *u, const symbol *s, many v);
void inst_dtype(inst *u, symbol *s);
/* the rank of operand 0 */
static inline int32_t inst_rank0(const inst *u)
{
	return u->n_operands > 0 ? u->operand[0].rank : 0;
}

/* unify.c */
void inst_unify_operands(inst *u);
void inst_unify_for(inst *u, const row_for *f);
void inst_unify_results(inst *u); /* of an opaque row */
void inst_batch(inst *u, ir_inst *out); /* the same; when all is unified */

/* node.c */
in_node *inst_node(inst *u, in_kind kind, tn_dtype t);
const in_node *inst_int(inst *u, int64_t v);
const in_node *inst_real(inst *u, double v);
const in_node *inst_letter(inst *u, int32_t letter);
/* both untyped: folds constants, else index arithmetic or a comparison */
const in_node *inst_binary(inst *u, const lex_operator *op, const in_node *a,
	const in_node *b);
bool inst_is_const(const in_node *n);
/* an integer that index arithmetic can be made of: no real, truth value, float read */
bool inst_is_index(const in_node *n);
double inst_f64(const in_node *n);
/* 0 <= ... < extent of an index expression; 0 if a letter in it is empty */
int64_t inst_extent(inst *u, const in_node *n);
many inst_list(inst *u, int32_t n, const in_node *const *v);
many inst_one_of(inst *u, const in_node *n);
/* entries of an attribute's list as integers */
int64_t inst_entry(inst *u, many m, int32_t i);
symbol *inst_symbol(inst *u, const char *name); /* throws if there is none */

/* index.c */
const symbol *inst_attr(inst *u, symbol *s); /* evaluates a default */
many inst_many(inst *u, const row_node *e);
const in_node *inst_read(inst *u, const row_node *e);
const in_node *inst_single(inst *u, const row_node *e); /* one entry */
int64_t inst_const(inst *u, const row_node *e);

/* body.c */
typedef struct typed {
	const in_node *n;
	bool is_typed;
} typed;
typed inst_value(inst *u, const row_node *e);
const in_node *inst_adapt(inst *u, typed v, tn_dtype t);
bool inst_is_literal(typed v); /* untyped and no axis value */

#endif
