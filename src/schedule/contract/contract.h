/* contract.h: private to contract/: products of a kernel, and their blocks. */
#ifndef LOOP_CONTRACT_H
#define LOOP_CONTRACT_H

#include "schedule/local.h"

enum { CONTRACT_NEEDS = 4, CONTRACT_FACTORS = 8 };

/* A sum of a product, its variables by what they do. None: -1. */
typedef struct contract_product {
	int32_t eqn;
	int32_t stage; /* in which it is computed; what follows on it: the next */
	bool begun; /* an initial value that is read: a statement before it */
	const expr *x, *y; /* its factors; columns walk y */
	const expr *finish; /* of each element, parameter 0; NULL: none */
	loop_set rows, columns, others, sums; /* what no loop around walks */
	int32_t i, j, s; /* the longest rows, those in lanes, the longest sum */
	/* sizes of its tiles and blocks */
	int32_t lanes, vectors;
	int64_t tile, sum_block;
	bool pack_x, pack_y;
	bool whole_x; /* x may be copied once for all chunks that need it */
	bool turned;  /* columns do not adjoin in the result, see contract_turn */
	int32_t n_needs; /* see loop_node.need */
	ix_fact need[CONTRACT_NEEDS];
	bool few; /* rows */
	bool inexact; /* see contract_factors */
	VEC(loop_node *) behind; /* statements on each complete element */
} contract_product;

typedef struct contract {
	loop_kernel *k;
	loop_node *top, *last; /* the loops around everything */
	loop_set chain;	       /* their variables */
	/* of these, what some sums of the nests walk: innermost, block by block */
	loop_set mixed;
	const loop_node *outer; /* the last one that is not mixed */
	int32_t phase; /* at hand */
	/* a sum of which one piece is at hand: what counts them; -1: none */
	int32_t cut_sum, number;
	int64_t cut_size;
	int64_t *block; /* by variable: cut into so many; 0: walked, or whole */
	VEC(contract_product) product;
	VEC(loop_node *) plain; /* nests that take lanes as others do */
	VEC(loop_node *) before; /* copies of whole factors: phases of their own */
	VEC(int32_t) before_of;	 /* the tensors that they copy */
	/* contract_online.c: a row whose keys, which walk `keys`, go by in blocks
	 * of their loop; between two stages its sums are scaled */
	bool online, at_once; /* at_once: do not */
	eqn_rows rows;
	int32_t keys, was, scale_stage;
	int32_t *stage; /* by order of the leaf; -1 is dropped */
	int32_t n_stages;
} contract;

bool contract_is_product(loop_kernel *k, const loop_eqn *e);
/* why.c: is a product summed here, whether tiles can do it or not? */
bool contract_is_sum(const loop_kernel *k, const loop_eqn *e);
/* .. all of these that are no tiles, and have no reason yet, have this one */
void contract_decline(loop_kernel *k, decide_kind why, int32_t with, int64_t a,
	int64_t b);
/* .. those that have no reason yet have their own */
void contract_decline_rest(loop_kernel *k);
/* number of the product in c->product; -1: it is none */
int32_t contract_product_of(const contract *c, int32_t eqn);
/* block.c: which products tiles can do, in which blocks; false: none */
bool contract_choose_blocks(contract *c);
/* chunks of a product alone, as far as its rows and columns go */
int64_t contract_pieces(contract *c, contract_product *p);
/* cut.c: long sums with few rows and columns, in phases of their own */
void contract_cut(loop_kernel *k);
/* the tree of c->phase as blocks of products; false: it has none */
bool contract_phase(contract *c);
/* split.c: loops of which a factor asks for residues, as two */
void contract_split(loop_kernel *k);
/* join.c: short axes of columns made one, where that helps */
void contract_join(loop_kernel *k);
/*
 * Terms of a sum: f[0] * f[1]; and what becomes of it, parameter 0, in the end
 * (NULL: nothing). inexact: not the same as the body where something is no
 * finite number. false: they are no products.
 */
typedef struct contract_terms {
	const expr *f[2], *finish;
	decide_kind why; /* they are none; DECIDE_N_KINDS: nothing is multiplied */
	bool inexact;
	int32_t n_needs; /* elsewhere all terms are nothing */
	ix_fact need[CONTRACT_NEEDS];
} contract_terms;
bool contract_factors(
	loop_kernel *k, const loop_eqn *e, contract_terms *out);
/* Is it a product that tiles can do, in the blocks chosen so far? Its
 * variables, if so. */
bool contract_classify(contract *c, contract_product *p);
/* Changes rows and columns where lanes are better filled then. */
bool contract_turn(const contract *c, contract_product *p);
/* Is nothing of it made by this kernel, or found by data? */
bool contract_reads_memory(loop_kernel *k, const expr *e);
/* its sizes, once blocks are chosen */
void contract_sizes(contract *c, contract_product *p);
/* iterations of a variable inside the blocks around everything */
int64_t contract_extent(const contract *c, int32_t var);
/* puts the product and what follows on it into the body of a block */
void contract_nest(contract *c, contract_product *p, loop_node *body);

/* rows that no cache holds: their keys become the mixed loop */
void contract_online(contract *c);
void contract_online_block(contract *c);
void contract_online_open(contract *c, loop_node *body);
void contract_online_scale(contract *c, loop_node *body);
/* what the schedule of such a row makes, for its verifier */
bool contract_online_find(contract *c);
const expr *contract_online_was(contract *c);
const expr *contract_online_factor(contract *c, int32_t was);
const expr *contract_online_scaled(
	contract *c, int32_t was, int32_t by, int32_t eqn);
/* puts the end of a product that mixed loops add up there, if it has one */
void contract_done(contract *c, const contract_product *p, loop_node *body);

/* a plain nest behind what the body holds */
void contract_put(contract *c, loop_node *body, loop_node *nest);

int64_t contract_ceil(int64_t a, int64_t b);
loop_node *contract_block(
	contract *c, int32_t var, int64_t size, loop_node *child);

#endif
