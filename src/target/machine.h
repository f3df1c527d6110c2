/*
 * machine.h: interface of target/: the capabilities and costs of machines.
 *
 * A machine is chosen by name and is constant. Besides sizes, fusion and schedules
 * depend only on the numbers here: they are functions of the program and of the
 * machine's name, not of the load, the number of threads or the compiling machine.
 *
 *     const machine *m = machine_find("c/avx512");
 *     m->vector_bytes                      64
 *     m->memory[MACHINE_L2].bytes          1 MB
 */
#ifndef TARGET_MACHINE_H
#define TARGET_MACHINE_H

#include "base/base.h"

/* Memories of one core, the nearest first. */
typedef enum machine_level {
	MACHINE_L1,
	MACHINE_L2,
	MACHINE_L3,
	MACHINE_MAIN,
	MACHINE_N_LEVELS
} machine_level;

typedef struct machine_memory {
	int64_t bytes;	    /* that a kernel may count on */
	double bytes_per_s; /* of one core that reads and writes */
} machine_memory;

/* How the elements of a vector, or one element, come from memory. */
typedef enum machine_access {
	MACHINE_WHOLE,	  /* neighbours, all lanes */
	MACHINE_MASKED,	  /* neighbours, some lanes */
	MACHINE_STRIDED,  /* two apart, or backwards: vectors and a shuffle */
	MACHINE_GATHERED, /* one by one: of each lane */
	MACHINE_SCALAR,	  /* no lanes */
	MACHINE_N_ACCESSES
} machine_access;

/* Cycles of instructions, when enough of them are independent. */
typedef struct machine_cycles {
	double vector_op; /* of weight 1 (scalar.def), all lanes of a vector */
	double scalar_op; /* .. of one element */
	double scalar_guard; /* a condition on indices that lanes do not share */
	double load[MACHINE_N_ACCESSES], store[MACHINE_N_ACCESSES];
	double fma;	   /* of vectors, in a tile */
	double dot;	   /* .. that adds up neighbours: machine_dot */
	double tile_load;  /* of a vector, or of an element for all lanes */
	double tile_start; /* clears, adds up and stores a vector of sums */
	double turned;	   /* an element of a square turned in registers */
	double crowded;	   /* a store to a line that others have driven out of
			    * its set */
	double loop;	   /* an iteration: counts, compares, jumps */
	double chain;	   /* before a sum can be added to again, or an operation
			    * has the result of the one before */
	double window;	   /* of work that is begun before earlier work is done */
	double beside;	   /* part of the lesser of arithmetic and accesses that
			* the other does not hide */
} machine_cycles;

/* Sizes and limits of the schedule: docs/schedule.md, docs/contractions.md. */
typedef struct machine_schedule {
	int32_t bytes_an_elem, ops_an_elem; /* each is work of one element */
	int64_t serial_elems; /* less work is done by the calling thread */
	int64_t chunk_elems; /* work of a chunk, in elements, at least */
	int64_t max_chunks;
	int64_t owner_updates; /* of a scatter, for each chunk that has elements of
				* its own; INT64_MAX: chunks do not divide them */
	int64_t min_chunks;   /* fewer: a reduction is split */
	int64_t stream_bytes; /* larger results go past the caches, if the
			       * kernel moves more than the last one holds */
	int32_t least_lanes;  /* shorter rows are walked one by one */
	int32_t small_inside; /* iterations inside of a loop that has lanes */
	int32_t rows_at_once; /* added to one row of accumulators */
	int32_t near_lanes;   /* lanes so far apart are shuffled */
	double near_jump;     /* .. which is this part of a jump */
	double write_jump;    /* a jump of a store, in those of a load */
	int64_t near_guard;   /* cuts so close to an end are worth a vector */
	int64_t ahead_bytes;  /* what is read soon is asked for so early */
	int64_t ahead_ops;    /* .. by loops of so many operations */
	int64_t turn_bytes;   /* a side of a tile that is transposed */
	int32_t sum_vectors, long_vectors; /* accumulators of a sum in lanes; of
					    * one with a long body */
	int64_t long_ops;     /* a body of more operations is long */
	int32_t rows_abreast; /* read at a time by sums in lanes, one of each; 1: no */
	int64_t abreast_ops;  /* .. in bodies of so many operations, at most */
	int64_t window_terms; /* of rows of sliding windows abreast, all together at most .. */
	int64_t image_terms;  /* .. of all rows of an image */
	int32_t window_part, image_part; /* so many rows are the registers, divided by this */
	double window_share; /* of the elements of their windows, they load at most */
	int64_t abreast_bytes; /* .. rows of so many bytes, at least, of inputs that
				* come from the farthest memory */
	int64_t short_loop;   /* a loop of so many iterations is unrolled */
	int64_t most_unrolled; /* .. with those inside it: statements, and lanes apart; less
				* where the compiler loads all of them before the first is used */
	int32_t unrolled_ops; /* a short loop that numbers lanes, of fewer statements,
			       * is unrolled; 1: none is */
	int32_t unrolled_loops; /* .. unless so many stand side by side */
	int64_t short_sum;    /* terms: a shorter sum overlaps with the next */
	int32_t far_vectors;  /* of a row that is read from far, at least */
	int32_t row_blocks;   /* blocks of columns, at least */
	int32_t large_block;  /* blocks of so many chunks' work are cut again */
	int32_t least_part;   /* bytes moved for one of a partial result */
	int32_t beside_part;  /* cycles of loops for one that lanes save beside
			       * them, at most */
} machine_schedule;

/* .. of products. */
typedef struct machine_product {
	int32_t least_rows, least_sum; /* with fewer there are no tiles */
	int32_t least_need;	       /* terms that a condition must spare */
	int32_t most_residues;	       /* a loop is taken apart by, at most */
	int64_t residue_work; /* products of an equation that is, at least */
	int32_t again_terms; /* of a product that is computed again, not stored, at most */
	/* memory decides, not arithmetic: y is read once; with y far away */
	int32_t few_rows, few_rows_far;
	int32_t few_sums; /* .. lines of y side by side */
	int32_t few_vectors;   /* .. vectors of a tile */
	int32_t lone_vectors;  /* of a tile of one row, at most */
	int32_t lone_ahead;    /* terms ahead of it are prefetched */
	int32_t near_part;     /* of the first cache: rows read in place */
	int32_t line, ways;    /* bytes of a line and lines of a set, there */
	int32_t steady_part;   /* of the second cache: larger weights come from memory */
	int32_t fetch_products; /* of vectors, at least, for each prefetch of rows */
	int32_t thin;	       /* bytes of lines for one byte that is read: too many */
	int32_t copy_chunks;   /* of a factor that is copied as a whole */
	int64_t max_whole;     /* bytes of such a factor */
	int32_t column_chunks; /* pieces of the columns, where there are many */
	int32_t copied_chunks; /* of all, where rows are copied for each */
	int32_t chunk_panels;  /* panels of columns in a chunk, at most */
	int32_t row_chunks;    /* pieces of the rows, where chunks divide rows, at least */
	int32_t shared_cycles; /* that a line takes which two cores write */
	int32_t few_chunks;    /* of few rows */
	int32_t few_tiles;     /* one above the other that have all rows, at most */
	int32_t few_ahead;     /* lines of y that are prefetched ahead of a tile */
	int32_t result_terms;  /* of sums, at most, whose results are prefetched to be written */
	int32_t result_row;    /* bytes of a row, at least, which is prefetched to be written */
	int32_t uneven_rows;   /* at least, of which the last tile may be lower */
	int64_t uneven_work;   /* .. and multiplications, at least */
	int32_t turned_bytes;  /* of sums, of which squares are turned at a time */
	int32_t turned_rows;   /* of sums, at least, of which squares are turned for what follows */
	int32_t pixels_ahead;  /* tiles ahead of which lines of neighbouring rows are prefetched */
	int32_t few_rows_longest;
	int32_t along_rows; /* at most, whose sums are in lanes: columns abreast, at most */
	int32_t along_columns;
	int32_t block_most;    /* of loops around several nests */
	int32_t block_chunks;  /* leave so many, where there are */
	int32_t enough_pieces; /* of rows and columns: no sum is cut */
	int32_t cut_chunks;    /* what cutting is to give */
	int32_t least_piece;   /* products of a piece, by element of it */
	int32_t piece_chunks;  /* its work, in the least work of a chunk */
	int32_t full_lanes;    /* percent that hold columns: good enough */
	int32_t turn_gain;     /* percent more of them are worth turning */
	int32_t turn_sum;      /* terms that pay for the way of a turned sum */
	int32_t turn_vectors;  /* of few rows that are turned, at most */
	int64_t turn_copy;     /* elements of a factor copied for it */
	int32_t tile_quarters; /* of the rows of a tile, where equal tiles are lower */
	int32_t slide_pixels;  /* of a row of an image that are rows of tiles, at least */
	int32_t slide_sum;     /* .. of so many terms */
	int32_t slide_near;    /* pixels of an image without a window, at most */
	int32_t slide_copies;  /* elements of its copy for each of its own, at most */
	int32_t sums_part;     /* of the second cache, for the sums of its pixels: one of so many */
	int32_t all_part;      /* .. for a panel that is read with all terms of a sum */
	int32_t slide_columns; /* of its window that are written out one by one, at most */
	int32_t most_equations; /* of a kernel in tiles, with copies of factors */
	/* of the second cache: longer rows go by in blocks; and those whose sums are not
	 * scaled for it */
	int32_t long_part, plain_part;
	int32_t keys_part; /* .. of which each takes keys_parts of so many parts */
	int32_t keys_parts;
	/* quarters of the second cache: for blocks of several products, for
	 * those of unlike ones, and for a block of rows and its panel */
	int32_t block_quarters, mixed_quarters, panel_quarters;
	int32_t block_inner; /* of the second loop around several nests */
	int32_t window_quarters; /* of the first cache: a panel of sliding windows */
	int32_t window_tiles; /* .. where pixels are rows: of so many tiles, at least */
	int32_t least_fit;   /* terms that a panel in the first cache holds */
	int32_t join_waste;  /* percent of lanes that may be idle: no joining */
	int32_t join_lanes;  /* .. of a vector that columns fill: none */
} machine_product;

/* .. of fusion: docs/fusion.md. */
typedef struct machine_fusion {
	int32_t max_eqns; /* of one kernel */
	double flops_per_s, contract_per_s, plain_contract_per_s;
	int64_t serial_volume; /* instances that may run without a shared loop */
	int32_t tail_part;     /* a tail is at most this part of all */
	int32_t tail_eqns;
	int64_t again_ops; /* of a producer that is computed again */
	int32_t again_reads;
	int64_t split_iterations; /* with fewer that are parallel a reduction is
				   * split into chunks: to so many in all */
	double strided; /* a walk across the rows of a large tensor, in times of
			 * one along them */
	int32_t gathered_ops; /* operations in the time in which an element of
			       * rows of different lengths is gathered */
	int32_t keys_at_once; /* of a row that goes by in blocks */
	int32_t rows_at_once; /* .. so many rows at a time */
	/* an element of a factor is copied in the time in which so many rows
	 * are multiplied with it; for a window, with more than one sum */
	double copy_rows, copy_window_rows;
	int32_t wait_part; /* of the second cache: rows that wait for their sum */
	int32_t both_ways; /* smaller are rows that are blocked both ways */
	double most_lost; /* fused, in seconds apart, as they are scheduled */
	double alone_lost; /* .. on one thread */
	double least_gain; /* .. in those of the parts of a kernel that is split */
	int32_t cuts; /* of a kernel that are priced */
	int32_t bound_cuts; /* .. though a bound says that they are slower */
	int32_t split_rounds; /* in which parts are merged with others */
	double alike; /* seconds that differ by less than this part say nothing */
	double most_held; /* results of a kernel, in times of its largest, behind what is
			   * made again to save memory */
	int64_t batch_volume; /* instances of an equation of a small kernel */
} machine_fusion;

/* Warps that run a chunk together, and share memory. */
typedef struct machine_block {
	int32_t warps;	      /* of a block of products; 1: there are none */
	int32_t shared_bytes; /* that a block may have */
	int32_t sum_terms;    /* of a factor that are copied at a time */
	int32_t matrix_bytes; /* of a row of a factor of matrix instructions */
	int32_t matrix_columns; /* of a tile by such instructions, at most */
	/* of a tile that is made smaller so that there are more; columns: of one by matrix
	 * instructions */
	int32_t least_rows, least_columns;
	int32_t halvings; /* of tiles, which are tried for that */
	int32_t stages; /* pieces of factors in buffers at a time; 1: copies that
			 * go on while warps compute are not there */
	int32_t bank_bytes; /* of shared memory, which has a power of two of them */
	double alone; /* times that tiles take in a warp that shares nothing */
	int32_t bulk_rows; /* that one instruction copies, at most; 0: there is none */
	int32_t bulk_each; /* .. in multiples of this */
	double bulk_cycles; /* of the thread that begins such a copy */
	double meet_cycles; /* of each warp, until all of them have come */
} machine_block;

/* One instruction adds the products of rows x terms and terms x columns elements
 * of two bytes to f32; 0: there is none. */
typedef struct machine_matrix {
	int32_t rows, columns;
	int32_t row_bytes; /* of the terms that it takes of a row */
	int32_t pad_bytes; /* between rows of factors: other banks of memory */
	double cycles;
	/* so many warps multiply with the same columns, which the instruction takes from
	 * their memory; 0: each with its own. Cycles of as much work of a warp */
	int32_t warps;
	double warps_cycles;
	double rows_cycles; /* .. of which so many load rows; not if those stay in memory */
} machine_matrix;

/*
 * One instruction adds to each lane of a vector of 32-bit sums the products of
 * `terms` neighbours of dtypes x and y: kern_dot_terms. terms 0: none.
 */
typedef struct machine_dot {
	tn_dtype x, y;
	int32_t terms;
} machine_dot;

/*
 * Tile registers: one instruction adds to the sums of a register, which has `rows`
 * rows of row_bytes, the products of as many rows of terms and of as many groups of
 * neighbours, of bf16 or of bytes. rows 0: there are none.
 */
typedef struct machine_tiles {
	int32_t rows, row_bytes;
	double cycles; /* of an instruction */
	double load;   /* of a register of factors */
	double chain;  /* before a register can be added to again */
	double start;  /* moves a vector of sums to a register and back */
	int32_t block; /* rows and columns of a chunk, at most: each comes to the core once */
	int32_t near_part; /* a panel of columns takes one of so many parts of the first cache */
	int32_t long_parts; /* rows of scores are long from one of so many parts of the usual bytes on */
} machine_tiles;

/* What the C compiler says of such instructions. */
typedef enum machine_dots {
	MACHINE_NO_DOTS,
	MACHINE_INT_DOTS, /* of integers: AVX512-VNNI */
	MACHINE_ALL_DOTS, /* .. and of bf16: AVX512-BF16 */
	MACHINE_TILE_DOTS, /* .. and in tile registers: AMX-BF16, AMX-INT8 */
	MACHINE_N_DOTS
} machine_dots;

typedef struct machine {
	const char *name;      /* "c/avx512" */
	const char *priced_as; /* the machine by whose costs programs are
				* partitioned: one for all of a printer, so
				* that groups do not depend on its vectors */
	int32_t vector_bytes; /* the most that a vector has */
	int32_t lanes; /* that each vector has, whatever its elements; 0: as many
			* as fit into vector_bytes */
	int32_t vector_registers;
	double hertz;
	machine_memory memory[MACHINE_N_LEVELS];
	int64_t stays_bytes; /* inputs of a program: more are far in each run */
	int64_t round_bytes; /* the body of a loop: L2 has as many in each round */
	double launch_s; /* one kernel */
	double round_s;	 /* .. that one thread runs in a round of a loop */
	double phase_s;	 /* each further phase of it */
	double chunk_s;	 /* a chunk, for the thread that runs it */
	int32_t threads; /* that partition counts on */
	double hidden;	 /* part of the shorter of arithmetic and traffic that
			* the longer one does not hide */
	machine_cycles cycles;
	machine_schedule schedule;
	machine_product product;
	machine_block block;
	machine_matrix matrix;
	machine_dot dot[3]; /* the one with most terms first */
	machine_tiles tiles;
	machine_fusion fusion;
	/* that a lane accesses at once, and elements of them; 0: one by one */
	int32_t wide_bytes, wide_elems;
	bool narrow_indices; /* integers of 32 bits are faster than those of 64 */
	bool unscheduled; /* for tests and small code: everything scalar and serial */
} machine;

/* The least that a launch takes; in_rounds: in the body of a loop. */
static inline double machine_launch(const machine *m, bool in_rounds)
{
	return in_rounds ? m->round_s : m->launch_s;
}

/* The number of lanes of a vector whose elements have so many bytes. */
static inline int32_t machine_lanes(const machine *m, int32_t elem_bytes)
{
	return m->lanes > 0 ? m->lanes : m->vector_bytes / elem_bytes;
}

/* The bytes of a row from which rows, one for each lane, are too long for the second
 * cache. */
static inline double machine_long_row(const machine *m)
{
	return (double)m->memory[MACHINE_L2].bytes /
	       (m->product.long_part * machine_lanes(m, 4));
}

static inline bool machine_is_long(const machine *m, double row)
{
	return row > machine_long_row(m);
}

/* The same for rows without a maximum, whose sums need not be scaled. */
static inline bool machine_is_long_plain(const machine *m, double row)
{
	return row * m->product.plain_part > machine_long_row(m) * m->product.long_part;
}

/* Cycles of a tile of dots whose sums have so many groups of terms: by vectors, and in
 * tile registers, to which its sums are moved. */
double machine_dot_cycles(
	const machine *m, double rows, double vectors, double groups);
double machine_tile_cycles(
	const machine *m, double rows, double vectors, double groups);

/* NULL: there is no such machine. */
const machine *machine_find(const char *name);
/* The one of the C printer with vectors of so many bytes, and these dots, if they
 * are known for such vectors. */
const machine *machine_of_c(
	int32_t vector_bytes, int32_t n_registers, machine_dots dots);
/* All of them, in a fixed order; NULL behind the last. */
const machine *machine_at(int32_t i);

/* One constant: its name, its value with its unit, where it comes from. */
typedef struct machine_fact {
	const char *name;
	double value;
	const char *unit, *from; /* a measurement; of a size: the bench that shows
				  * what it is worth */
} machine_fact;
/* The i-th constant; false: there are no more. */
bool machine_fact_at(const machine *m, int32_t i, machine_fact *out);

#endif
