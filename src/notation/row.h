/*
 * row.h: private to notation/: a row as parsed. Patterns, statements, expressions;
 * nothing is expanded yet: that is done for given shapes by instantiate.c.
 */
#ifndef IR_ROW_H
#define IR_ROW_H

#include "notation/notation.h"
#include "notation/lex.h"

typedef enum rn_kind {
	RN_INT,	   /* i */
	RN_REAL,   /* f */
	RN_NAME,   /* letter, attribute, let, or a word: pos, all, a dtype */
	RN_PACK,   /* name.. */
	RN_SIZE,   /* #arg[0], a letter or a pack */
	RN_PICK,   /* pack arg[0] @ list arg[1] */
	RN_DROP,   /* pack arg[0] \ list arg[1] : keep arg[2], which may be NULL */
	RN_STAR,   /* x[*] */
	RN_NEG,	   /* -arg[0] */
	RN_BINARY, /* arg[0] op arg[1] */
	RN_COND,   /* arg[0] ? arg[1] : arg[2] */
	RN_WHERE,  /* arg[1] where arg[0] else arg[2] */
	RN_ELSE,   /* arg[0] else arg[1] */
	RN_SKIP,   /* the F of E else skip */
	RN_CALL,   /* name(arg..) */
	RN_READ,   /* name[arg..] */
	RN_TUPLE,  /* (arg, arg..): composite index, or a monoid's element */
	RN_LIST	   /* [arg..] */
} rn_kind;

typedef struct row_node row_node;
struct row_node {
	rn_kind kind;
	const lex_token *at;
	const char *name;
	int64_t i;
	double f;
	const lex_operator *op;
	int32_t n;
	const row_node *const *arg;
};

typedef enum pat_kind {
	PAT_LETTER, /* name, extent if given */
	PAT_PACK,   /* name.., extent: its length if given */
	PAT_JOIN,   /* ~name.. */
	PAT_COMP,   /* sub: digits, first is slowest */
	PAT_INT	    /* i */
} pat_kind;

typedef struct row_pat {
	pat_kind kind;
	const lex_token *at;
	const char *name;
	const row_node *extent;
	int64_t i;
	int32_t n;
	const struct row_pat *sub;
} row_pat;

/* An operand, an attribute, or a result of an opaque row. */
typedef struct row_param {
	ir_param info;
	const lex_token *at;
	int32_t n_pats;
	const row_pat *pat;
	const row_node *by_default; /* attribute; NULL: required */
	const char *along;	    /* ints@axes: the name behind @ */
	tn_dtype dtype;		    /* result of an opaque row */
	bool has_dtype;
	const char *dtype_of;	    /* or the attribute that says it; or NULL */
} row_param;

typedef enum stmt_kind { STMT_LET, STMT_CHECK, STMT_EQN } stmt_kind;

typedef struct row_for {
	const char *name;
	bool is_pack;
	const row_node *extent;
	const lex_token *at;
} row_for;

typedef struct row_stmt {
	stmt_kind kind;
	const lex_token *at;  /* its operator, or its first word */
	const lex_token *end; /* its last token */
	const char *name;     /* LET */
	const row_node *expr; /* LET, CHECK, and the body of EQN */
	int32_t n_out;
	const char *out[IR_MAX_COMP];
	int32_t n_left;
	const row_node *const *left;
	int32_t monoid;
	int32_t n_fors;
	const row_for *fors;
} row_stmt;

/* How a variadic row makes its text: see builders.c. */
typedef struct row_builder row_builder;

struct ir_row {
	const char *name, *doc, *text;
	const lex *l; /* tokens, for errors; NULL in a builder's row */
	bool is_opaque, is_user;
	int32_t n_params, n_operands;
	const row_param *param; /* in the order written */
	int32_t n_results;
	const row_param *result;
	int32_t n_stmts;
	const row_stmt *stmt;
	int32_t n_grads;
	bool has_grad;
	const row_stmt *grad;
	const row_builder *builder;
};

/* attributes with all that they point to (attrs.c) */
ir_attr *row_copy_attrs(arena *a, const ir_attr *attr, int32_t n);

/* throws notation.* */
ir_row *row_parse(arena *a, const char *text, size_t n, loc at);
/* names: what is read is there, what is bound is bound once (row_check.c) */
void row_check(const ir_row *r);

/* the row of this call: built as text for the operands and attributes given */
struct row_builder {
	const char *name, *doc, *text; /* text: how it is written, for documents */
	bool is_variadic;
	int32_t n_results; /* -1: depends on attributes */
	/* more operands than a call takes: the row that joins the results of
	 * parts, with the same attributes; NULL: none does */
	const char *join;
	void (*build)(str *out, const char *name, int32_t n,
		const ir_type *operand, const char *const *shown,
		int32_t n_attrs, const ir_attr *attr, loc at);
	/* results, of what may be wrong; operand NULL: not known */
	int64_t (*count)(const ir_type *operand, int32_t n_attrs,
		const ir_attr *attr);
};
const row_builder *row_builder_at(int32_t i); /* NULL behind the last */
const ir_row *row_built(const ir_table *t, const ir_row *r, int32_t n,
	const ir_type *operand, const char *const *shown, int32_t n_attrs,
	const ir_attr *attr, loc at);
void build_einsum(str *out, const char *name, int32_t n,
	const ir_type *operand, const char *const *shown, int32_t n_attrs,
	const ir_attr *attr, loc at);

const char *row_type_text(arena *a, const ir_type *t); /* "f32[2,3]" */
/* "foo: f32[2,3]"; shown NULL: "operand x: f32[2,3]" (inst_fail.c) */
const char *row_operand_text(
	arena *a, const char *shown, const char *param, const ir_type *t);

#endif
