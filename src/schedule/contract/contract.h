/* contract.h: private to contract/: products of a kernel, and their tiles. */
#ifndef LOOP_CONTRACT_H
#define LOOP_CONTRACT_H

#include "schedule/local.h"

enum { CONTRACT_NEEDS = 4, CONTRACT_FACTORS = 8, CONTRACT_BORDERS = 4 };

/* A sum of products, and the roles of its variables; -1: none. */
typedef struct contract_product {
	int32_t eqn;
	int32_t stage; /* the loop nest that computes it; its epilogue is in the next */
	bool begun; /* it has an initial value that is read, in a statement before */
	const expr *x, *y; /* its factors; columns walk y */
	const expr *finish; /* applied to each element, its parameter 0; or NULL */
	loop_set rows, columns, others, sums; /* variables that no loop around walks */
	int32_t i, j, s; /* the longest of rows, the columns in lanes, the longest sum */
	/* sizes of its tiles and blocks */
	int32_t lanes, vectors;
	int64_t tile, sum_block;
	bool pack_x, pack_y;
	bool whole_x; /* x can be copied once for all chunks */
	/* its copy has panels of so many rows, in which those of a term adjoin; 0:
	 * the terms of a row adjoin */
	int64_t panel_x;
	bool turned;  /* columns are not neighbours in the result: contract_turn */
	bool apart;   /* .. nor are they here, and tiles add to sums several times */
	bool near;    /* .. and their copy is small */
	bool slides;  /* .. rows are pixels of an image: slide.c */
	bool lone; /* no loop walks rows of x, and a copy of y is kept, or it is few: i is -1 */
	int32_t n_needs; /* see loop_node.need */
	ix_fact need[CONTRACT_NEEDS];
	int32_t n_clip; /* see loop_node.clip */
	loop_clip clip[CONTRACT_BORDERS];
	bool few; /* it has few rows, or one, and reads y once, where it lies */
	bool matrix; /* by matrix instructions */
	tn_dtype taken[2]; /* .. which take x and y as this dtype */
	bool wide_x; /* .. whose rows are f32: parts of two bytes are multiplied */
	bool rounded; /* .. which round both factors, in f32, themselves: x and y do not */
	/* by vectors that add up so many neighbours: x and y are narrow, less by
	 * offset than the factors; 0: it is not */
	int32_t dot;
	int64_t offset[2];
	bool tiled; /* .. in tile registers */
	const expr *by[2][2]; /* x and y: of vectors; as bytes less nothing, or NULL */
	int64_t less[2]; /* the offsets of vectors */
	bool inexact; /* see contract_factors */
	const expr *within; /* .. where terms count: warps test it piece by piece */
	const expr *counted; /* the same, for tile registers: which tiles need no check */
	const expr *from_y; /* what y is a copy of: rows.c */
	VEC(loop_node *) behind; /* epilogue: statements on each final element */
} contract_product;

typedef struct contract {
	loop_kernel *k;
	loop_node *top, *last; /* the loops around all nests: first and last */
	loop_set chain;	       /* their variables */
	/* those of them that sums of the nests walk: innermost, block by block */
	loop_set mixed;
	const loop_node *outer; /* the last loop that is not mixed */
	int32_t phase; /* the current one */
	int32_t slid; /* 1 + the product whose rows are pixels: slide.c; 0: none */
	/* if this phase computes one piece of a sum: the variable of the sum, and
	 * the variable that numbers the pieces; else -1 */
	int32_t cut_sum, number;
	int64_t cut_size;
	int64_t *block; /* by variable: length of its blocks; 0: walked, or whole */
	VEC(contract_product) product;
	VEC(loop_node *) plain; /* nests without tiles */
	VEC(loop_node *) before; /* copies of whole factors, in separate phases */
	VEC(int32_t) before_of;	 /* the tensors that they copy */
	/* online.c, keys.c: rows whose keys, with variable `keys`, are processed in blocks;
	 * online: they have a maximum, and between two loop nests sums are scaled.
	 * at_once: in one block */
	bool by_keys, online, at_once;
	/* .. by warps that each have some rows (rows.c): the loop around the keys, the
	 * block of keys, and that of rows in it */
	bool by_rows;
	loop_node *around_keys, *of_keys, *in_rows;
	eqn_rows rows; /* max -1: a row has none */
	loop_set row_vars, all_keys; /* variables of a row, and those that become `keys` */
	int32_t keys, was, scale_stage;
	int32_t *stage; /* by order of the leaf: its loop nest; -1: dropped */
	int32_t n_stages;
} contract;

bool contract_is_product(loop_kernel *k, const loop_eqn *e);
/* why.c: is it a sum of products, with or without tiles? */
bool contract_is_sum(const loop_kernel *k, const loop_eqn *e);
/* Gives this reason to all such sums without tiles that have no reason yet. */
void contract_decline(loop_kernel *k, decide_kind why, int32_t with, int64_t a,
	int64_t b);
/* Gives the sums that have no reason yet the reason of contract_factors. */
void contract_decline_rest(loop_kernel *k);
/* block.c: chooses the products that have tiles, and their blocks; false: none. */
bool contract_choose_blocks(contract *c);
/* The number of chunks into which rows and columns of a product can be divided. */
int64_t contract_pieces(contract *c, contract_product *p);
/* cut.c: cuts long sums with few rows and columns; separate phases add the pieces. */
void contract_cut(loop_kernel *k);
/* Turns the tree of c->phase into blocks of products; false: it has none. */
bool contract_phase(contract *c);
/* split.c: splits loops by residues along which neighbours are read. */
void contract_split(loop_kernel *k);
/* join.c: joins short axes of columns, if that helps. */
void contract_join(loop_kernel *k, bool all);
/* The loop around them that might be joined, too (all); -1: none. */
int32_t contract_joins_more(loop_kernel *k);
/* .. and the loops of sums, where blocks of warps copy the factors. */
void contract_join_sums(loop_kernel *k);
/*
 * Terms of a sum: f[0] * f[1]; finish is applied to the sum, its parameter 0 (NULL:
 * nothing). inexact: infinities and NaN can give other results than the body.
 * contract_factors is false if the terms are not products.
 */
typedef struct contract_terms {
	const expr *f[2], *finish;
	decide_kind why; /* why they are not products; DECIDE_N_KINDS: no product */
	bool inexact;
	/* .. if nothing else makes it so: where terms count */
	const expr *within;
	int32_t n_needs; /* guards outside which all terms are 0 */
	ix_fact need[CONTRACT_NEEDS];
} contract_terms;
bool contract_factors(
	loop_kernel *k, const loop_eqn *e, contract_terms *out);
/* Can the product have tiles, in the blocks chosen so far? Finds the roles of its
 * variables. */
bool contract_classify(contract *c, contract_product *p);
/* Exchanges rows and columns, if that fills lanes better. */
bool contract_turn(const contract *c, contract_product *p);
/* slide.c: the product of steady weights and the window of an image, whose pixels
 * are to be rows of its tiles; -1: there is none, or it is not worth it. */
int32_t contract_slide(loop_kernel *k);
/* Its roles, as contract_classify finds those of others. */
bool contract_slide_roles(contract *c, contract_product *p);
/* Copies the image with its border, in a phase before, unless its tiles leave out what
 * is outside. */
void contract_pack_image(contract *c, contract_product *p);
/* A factor: an element of memory, 0 outside of some intervals. */
typedef struct contract_image {
	const expr *read;
	int32_t n;
	const expr *border[CONTRACT_BORDERS];
	bool other; /* it is something else */
} contract_image;
/* border.c: false: it is none. */
bool contract_find_image(const expr *x, contract_image *m);
/* Can tiles of p, which are not chosen yet, leave out all that is outside? */
bool contract_clips_all(
	const loop_kernel *k, const contract_product *p, const contract_image *m);
/* Clips them to what is inside, where they can. */
void contract_clip_image(
	loop_kernel *k, contract_product *p, const contract_image *m);
/* May the tile leave out what is outside of this, its first factor being the image? */
bool contract_may_clip(const loop_kernel *k, const loop_node *n,
	const contract_image *m, const loop_clip *clip);
bool contract_all_clipped(const loop_node *n, const contract_image *m);
/* Is y so large that most of it comes from beyond the second cache? */
bool contract_is_far(const contract *c, const contract_product *p);
/* The product of the extents of these variables. */
int64_t contract_elements(const loop_kernel *k, loop_set s);
/* Does only the factor of rows walk the variable? */
bool contract_walks_rows(loop_kernel *k, const contract_product *p, int32_t v);
/* Can rows of pixels along v be inside of a panel of filters: does only the image walk
 * them, and do they follow each other in the result? */
bool contract_is_above(const contract *c, const contract_product *p, int32_t v);
/* Are pixels rows, and meet so many tiles of one picture a panel of filters with windows
 * that the panel should stay in the first cache? */
bool contract_meets_tiles(const contract *c, const contract_product *p);
/* Does half of the second cache hold y? */
bool contract_weights_fit(const contract *c, const contract_product *p);
/* Is it a bare read of the dtype of the sum, at an index that is not data? */
bool contract_is_bare(const expr *e, tn_dtype acc);
/* once.c: can all of a factor be copied before the product? */
bool contract_may_be_whole(
	const contract *c, const contract_product *p, const expr *of);
/* Do several chunks need the same part of a factor? */
bool contract_is_shared(const contract *c, const expr *of);
/* Would a copy of the panels of columns be kept, and several rows read it? */
bool contract_keeps_columns(const contract *c, const contract_product *p);
/* Are they copied once: because each block of rows would copy them again, or because
 * the copy is kept? */
bool contract_copies_columns(const contract *c, const contract_product *p);
/* Can tiles read a factor where it lies, as the one of rows? */
bool contract_is_readable(
	const contract *c, const contract_product *p, const expr *of);
/* Rows of a tile of two vectors that registers hold. */
int64_t contract_most_rows(const loop_kernel *k);
/* Do so many rows of x, so many bytes an element, share few sets of the first cache, because
 * their distance is a multiple of a large power of two? Then they evict each other. */
bool contract_lies_badly(
	const loop_kernel *k, const expr *x, int32_t along, int64_t rows, int64_t size);
/* Can whole vectors of y be read in place? Sets step to the bytes between rows. */
bool contract_in_lanes(const contract *c, const contract_product *p, int64_t *step);
int64_t contract_bytes_of_y(const contract *c, const contract_product *p);
/* A divisor of n, at most `most` and at least half of it; else a length of pieces that are
 * nearly equal. */
int64_t contract_equal(int64_t n, int64_t most);
/* along.c: of a kernel without tiles: puts loops over few rows into those over columns,
 * where contract_goes_along */
void contract_put_rows_inside(loop_kernel *k);
/* behind.c: should what follows the sums read squares of them that were turned? Says why
 * not. Then: the loop over rows, in one over columns, which are turned before. */
bool contract_turns_sums(const contract *c, const contract_product *p);
loop_node *contract_turned_columns(
	contract *c, const contract_product *p, loop_node *rows);
/* few.c: one row, of a copy of y that is kept, or read once: sets lone and few */
void contract_find_lone(contract *c, contract_product *p);
/* Sizes for few rows: tiles, and blocks of columns. */
void contract_size_few(contract *c, contract_product *p);
void contract_block_few(contract *c, const contract_product *p);
/* Do few rows stay loops, with their sums in lanes? Sets few_rows of the equation. */
bool contract_goes_along(const contract *c, const contract_product *p);
/* Do blocks of rows alone make enough chunks? */
bool contract_rows_suffice(const contract *c, const contract_product *p);
/* Sets its sizes, once blocks are chosen. */
void contract_sizes(contract *c, contract_product *p);
/* A tile of the product. */
loop_node *contract_tile(contract *c, const contract_product *p);
/* matrix.c: do matrix instructions take its factors? Sets what they take. */
bool contract_takes_matrix(loop_kernel *k, contract_product *p);
/* .. and do they compute it? Sets its tile. */
void contract_choose_matrix(contract *c, contract_product *p);
/* Its tiles are by matrix instructions from now on. */
void contract_use_matrix(loop_kernel *k, contract_product *p);
/* Do the sums have another dtype than the memory of the result? */
bool contract_lies_apart(const contract *c, const contract_product *p);
/* The values of e in a dtype of one or two bytes, which has all of them; NULL: it
 * may not have them, or no matrix instruction takes it. */
const expr *contract_as_short(loop_kernel *k, const expr *e, tn_dtype t);
/* How many terms an instruction has of such factors. */
int32_t contract_terms_at_once(const loop_kernel *k, tn_dtype t);
/* The variable along which elements of a copy of f adjoin: `usual`, unless matrix
 * instructions take the copy, and those in memory adjoin along the other one. */
int32_t contract_last_of(const contract *c, const contract_product *p,
	const expr *f, int32_t usual, int32_t other);
/* .. and along which such a copy reads it: `last`, unless elements adjoin along
 * `other`, and not along it. */
int32_t contract_lanes_of(const contract *c, const contract_product *p,
	const expr *f, int32_t last, int32_t other);
/* dot.c: do dots compute it? Then x and y are what they multiply. */
/* Do guards skip whole tiles, and no terms of one? */
bool contract_guards_tiles(int32_t n, const ix_fact *need, loop_set sums);
/* Is the sum added up in blocks of a mixed loop, of whole groups? */
bool contract_adds_blocks(const contract *c, const contract_product *p);
void contract_choose_dot(const contract *c, contract_product *p);
/* Values that are e once they are rounded to t: what was chosen is rounded once, and not
 * before it is chosen, too. */
const expr *contract_before_rounding(loop_kernel *k, const expr *e, tn_dtype t);
/* The narrow values that are `offset` less than e; NULL: they may not fit t. */
const expr *contract_narrow(
	loop_kernel *k, const expr *e, tn_dtype t, int64_t offset);
/* tiles.c: do tile registers add them up? It has its columns, and no rows yet. */
void contract_choose_tiles(const contract *c, contract_product *p);
/* Its factors become those of tile registers, or of vectors. */
void contract_use_tiles(contract_product *p, bool tiled);
/* The most rows of a tile whose sums are in registers. */
int32_t contract_dot_rows(const contract *c, const contract_product *p);
/* Bytes of an element of the factors, as tiles read them. */
int64_t contract_factor_bytes(const contract *c, const contract_product *p);
/* Adds the product and its epilogue to the body of a block. */
void contract_nest(contract *c, contract_product *p, loop_node *body);

/* For rows that no cache holds: the loop of their keys becomes the mixed loop. */
void contract_online(contract *c);
/* keys.c: finds values of each row for many keys, and sums of them; false: there are no
 * such, or something else. Sets rows, row_vars, all_keys and keys. */
bool contract_find_keys(contract *c);
void contract_online_block(contract *c);
void contract_online_open(contract *c, loop_node *body);
void contract_online_scale(contract *c, loop_node *body);
/* for the verifier: the row, and the equations that its schedule adds */
bool contract_online_find(contract *c);
const expr *contract_online_was(contract *c);
const expr *contract_online_factor(contract *c, int32_t was);
const expr *contract_online_scaled(
	contract *c, int32_t was, int32_t by, int32_t eqn);
/* rows.c: may each warp of a block have some rows, with all that belongs to them? Sets
 * the blocks and tiles. Then: the block of rows, inside that of keys; the nest of a
 * product in it; and the end, when what is outside of the keys is there, too. False:
 * a loop is not such. */
bool contract_choose_rows(contract *c);
loop_node *contract_rows_open(contract *c, loop_node *outer, loop_node *keys);
void contract_rows_nest(contract *c, contract_product *p, loop_node *in);
bool contract_rows_close(contract *c);
/* In the finished tree: leaves out blocks of rows or keys in which no term counts. */
void contract_rows_need(contract *c, loop_node *block);
/* Adds the epilogue of a product that mixed loops add up, if it has one. */
void contract_done(contract *c, const contract_product *p, loop_node *body);

/* pack.c: copies a factor, which is then a read of the copy: y for a panel, the
 * rows of x in a block; or all of it, in a phase before. */
void contract_pack_y(contract *c, contract_product *p, loop_node *panel);
void contract_pack_x(contract *c, contract_product *p, loop_node *body);
void contract_pack_whole(contract *c, const contract_product *p,
	const expr **f, int32_t last);
/* The last two nests of a body: where the second one can follow the first one in each
 * iteration, one nest does both. */
void contract_join_behind(contract *c, loop_node *body);
void contract_pack_panels(contract *c, contract_product *p);

/* ---- common.c ---- */

/* Are elements neighbours along v? */
bool contract_adjoins(const loop_kernel *k, const ix_form *f, int32_t v);
/* A statement of the equation. */
loop_node *contract_leaf(contract *c, loop_kind kind, int32_t eqn);
/* The tensor of a factor that is a bare read; else -1. */
int32_t contract_tensor_of(const expr *f);

/* The number of the product in c->product, or -1. */
int32_t contract_product_of(const contract *c, int32_t eqn);
/* Is it a bare read of a steady input that the last cache can hold, of which one row is
 * to read a copy that is made once for all runs? In the rounds of a loop any
 * order of it is copied, else one in which columns (of the variables left) adjoin. */
bool contract_is_kept(const loop_kernel *k, const expr *e, loop_set left);
/* .. of a tensor that takes half of the last cache or more, in whose lines columns adjoin?
 * One row may read it once, where it lies. */
bool contract_is_long(const loop_kernel *k, const expr *e, loop_set left);
/* Does it read only memory, at indices without data? */
bool contract_reads_memory(loop_kernel *k, const expr *e);
/* The iterations of a variable inside the blocks around all nests. */
int64_t contract_extent(const contract *c, int32_t var);
/* Appends a nest without tiles to the body. */
void contract_put(contract *c, loop_node *body, loop_node *nest);
int64_t contract_ceil(int64_t a, int64_t b); /* a / b, rounded up */
/* The percent of their vectors that n elements fill. */
int64_t contract_filled(int64_t n, int64_t lanes);
/* Is the factor a bare read of a steady input, as it is multiplied? */
bool contract_is_steady(
	const loop_kernel *k, const contract_product *p, const expr *f);
loop_node *contract_block(
	contract *c, int32_t var, int64_t size, loop_node *child);

#endif
