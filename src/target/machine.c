/*
 * machine.c: the machines, and every constant that a cost depends on.
 *
 * The figures of the machines of the C printer were measured on one core of a
 * server with AVX-512 (3.5 GHz, 48 KB of L1, 2 MB of L2 for each core). `fact`
 * below says how: `tenon bench machine` does the same on another machine, and
 * prints both values. `tenon bench estimate` shows how well they predict. Machines
 * with narrower vectors have the same memories, and more instructions for the
 * same number of elements.
 *
 * The sizes and limits of SCHEDULE, PRODUCT and FUSION are choices, and no single
 * measurement gives them: `fact` names the bench that shows what a change of one
 * is worth. Rates of FUSION are bounds that propose merges; the cycles above them
 * decide.
 */
#include "target/machine.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define HERTZ 3.5e9
#define AVX2_HERTZ 3.0e9 /* a server with Zen 3, 512 KB of L2 for each core */

#define MEMORIES                                    \
	{                                           \
		[MACHINE_L1] = {32 << 10, 250e9},   \
		[MACHINE_L2] = {1 << 20, 85e9},     \
		[MACHINE_L3] = {32 << 20, 27e9},    \
		[MACHINE_MAIN] = {INT64_MAX, 13e9}, \
	}

#define SCHEDULE                                                               \
	{                                                                      \
		.bytes_an_elem = 8, .ops_an_elem = 16,                         \
		.serial_elems = 16384, .chunk_elems = 32 << 10,                \
		.max_chunks = 4096, .min_chunks = 16, .stream_bytes = 8 << 20, \
		.owner_updates = INT64_MAX,                                    \
		.least_lanes = 4, .small_inside = 64, .rows_at_once = 8,       \
		.near_lanes = 2, .near_jump = 0.25, .write_jump = 1.5,         \
		.near_guard = 16, .ahead_bytes = 2048, .ahead_ops = 12,        \
		.turn_bytes = 512, .sum_vectors = 4, .long_vectors = 2,        \
		.rows_abreast = 8, .abreast_ops = 8, .abreast_bytes = 4096,    \
		.window_terms = 200, .image_terms = 700, .window_part = 4,     \
		.image_part = 2, .window_share = 0.72,                         \
		.long_ops = 8, .short_loop = 8, .short_sum = 16,               \
		.most_unrolled = 512, .unrolled_ops = 5, .unrolled_loops = 8, .far_vectors = 4, .row_blocks = 8, .large_block = 16,          \
		.least_part = 16, .beside_part = 16                            \
	}

/* For sums that are cut: pieces of rows and columns that are enough, pieces wanted, and
 * products of a piece for each element of it. */
#define PRODUCT(enough, wanted, least)                                         \
	{                                                                      \
		.least_rows = 2, .least_sum = 8, .least_need = 32,             \
		.most_residues = 4, .residue_work = 1 << 18, .again_terms = 128, .few_rows = 32, .few_rows_far = 64, .few_sums = 8,             \
		.few_vectors = 4, .lone_vectors = 8, .lone_ahead = 8,          \
		.near_part = 32, .line = 64, .ways = 8, .steady_part = 4, .fetch_products = 8, .thin = 2, \
		.copy_chunks = 16, .max_whole = 64 << 20, .column_chunks = 16, \
		.copied_chunks = 8, .row_chunks = 8, .shared_cycles = 135, .chunk_panels = 4, .few_chunks = 8, .few_tiles = 4, .few_ahead = 8, .pixels_ahead = 2, .result_terms = 128, \
		.result_row = 256, .uneven_rows = 64, .uneven_work = 64 << 20, .turned_rows = 64, .turned_bytes = 8192, \
		.few_rows_longest = 28, .along_rows = 4, .along_columns = 4, .block_most = 128, .block_chunks = 8,  \
		.enough_pieces = (enough), .cut_chunks = (wanted), .least_piece = (least),      \
		.piece_chunks = 16, .full_lanes = 85, .turn_gain = 10,         \
		.turn_sum = 64, .turn_vectors = 2, .turn_copy = 4 << 20, \
		.tile_quarters = 3, .slide_pixels = 7, .slide_sum = 128, .slide_near = 256, .slide_copies = 2, .slide_columns = 8, .sums_part = 8, .all_part = 8, \
		.most_equations = 60,    \
		.long_part = 4, .plain_part = 16,                              \
		.keys_part = 8, .keys_parts = 3, .block_quarters = 2,          \
		.mixed_quarters = 3, .panel_quarters = 3, .block_inner = 32,   \
		.window_quarters = 3, .window_tiles = 28, .least_fit = 64, .join_waste = 10,             \
		.join_lanes = 150                                              \
	}

/* alone: how much longer a merge may take on one thread */
#define FUSION(alone)                                                          \
	{                                                                      \
		.max_eqns = 64, .flops_per_s = 40e9, .contract_per_s = 150e9,  \
		.plain_contract_per_s = 8e9, .serial_volume = 4096,            \
		.tail_part = 8, .tail_eqns = 8, .again_ops = 40,               \
		.again_reads = 4, .most_lost = 1.1, .alone_lost = (alone),     \
		.least_gain = 1.05, .cuts = 8, .bound_cuts = 2,                \
		.split_rounds = 3, .alike = 0.02,                              \
		.split_iterations = 64, .strided = 1.3,                        \
		.gathered_ops = 100, .keys_at_once = 256,                      \
		.rows_at_once = 64, .copy_rows = 4, .copy_window_rows = 12,    \
		.batch_volume = 1 << 18, .wait_part = 4, .both_ways = 4,       \
		.most_held = 2                                                 \
	}

#define C_FAMILY(hz)                                                          \
	.priced_as = "c/avx512", .hertz = (hz), .memory = MEMORIES,           \
	.launch_s = 2e-6, .round_s = 0.2e-6, .phase_s = 0.6e-6,               \
	.chunk_s = 0.1e-6, .threads = 8,                                      \
	.stays_bytes = 4 << 20, .round_bytes = 2 << 20,                       \
	.hidden = 0.25, .schedule = SCHEDULE, .product = PRODUCT(8, 16, 512),  \
	.block = {.warps = 1, .shared_bytes = 32 << 10, .sum_terms = 32,      \
		.matrix_bytes = 64, .matrix_columns = 64, .least_rows = 4, .least_columns = 32, \
		.halvings = 1, .stages = 1,                                   \
		.bank_bytes = 4, .alone = 1},                                      \
	.fusion = FUSION(1.1)

/*
 * A warp of an NVIDIA GPU: a core whose vectors have 32 lanes. Rates are those of
 * the vendor's data sheets for a whole device, divided by the warps that run at a
 * time (WARPS of each of so many multiprocessors); cycles are those of a warp that
 * shares the multiprocessor's units with the others. None has been measured.
 */
#define WARPS 16

#define GPU_FAMILY(n_sm, hz, l1, l2, l2_rate, main_rate)                       \
	.priced_as = "cuda/sm_90", .vector_bytes = 256, .lanes = 32,           \
	.vector_registers = 64, .hertz = hz,                                   \
	.memory = {[MACHINE_L1] = {(l1) / WARPS, 64 * (hz) / WARPS},           \
		[MACHINE_L2] = {(l2) / (n_sm) / WARPS,                         \
			(l2_rate) / (n_sm) / WARPS},                           \
		[MACHINE_L3] = {(l2), (l2_rate) / (n_sm) / WARPS},             \
		[MACHINE_MAIN] = {INT64_MAX, (main_rate) / (n_sm) / WARPS}},   \
	.launch_s = 4e-6, .round_s = 4e-6, .phase_s = 4e-6,                    \
	.chunk_s = 0.1e-6,                                                     \
	.stays_bytes = (l2), .round_bytes = (l2) / (n_sm) / WARPS,             \
	.threads = (n_sm) * WARPS, .hidden = 0.25,                             \
	.product = PRODUCT(n_sm, 2 * (n_sm), 64),                              \
	.fusion = FUSION(1e9),                                                 \
	.cycles = {.vector_op = 4, .scalar_op = 4, .scalar_guard = 4,          \
		.load = {4, 4, 8, 4, 4}, .store = {4, 4, 8, 4, 4}, .fma = 4,   \
		.dot = 4, .tile_load = 4, .tile_start = 8, .turned = 1,        \
		.crowded = 8,                                                  \
		.loop = 8, .chain = 8, .window = 1e9, .beside = 0.3},          \
	.wide_bytes = 16, .wide_elems = 8, .narrow_indices = true,             \
	.schedule = GPU_SCHEDULE

#define GPU_BLOCK(l1)                                                          \
	.warps = 8, .shared_bytes = (l1) / 2 - (2 << 10), .sum_terms = 32,     \
	.matrix_bytes = 128, .matrix_columns = 128, .least_rows = 4,           \
	.least_columns = 32, .halvings = 3, .stages = 2, .bank_bytes = 4,      \
	.alone = 4, .meet_cycles = 40

#define GPU_MATRIX                                                             \
	.rows = 16, .columns = 8, .row_bytes = 32, .pad_bytes = 16, .cycles = 32

#define GPU_SCHEDULE                                                           \
	{                                                                      \
		.bytes_an_elem = 8, .ops_an_elem = 16, .serial_elems = 1024,   \
		.chunk_elems = 2 << 10, .max_chunks = 1 << 16,                 \
		.min_chunks = 64,                                              \
		.stream_bytes = INT64_MAX, .least_lanes = 4,                   \
		.owner_updates = 32,                                           \
		.small_inside = INT32_MAX, .rows_at_once = 8, .near_lanes = 2, \
		.near_jump = 0.25, .write_jump = 1.5, .near_guard = 16,        \
		.ahead_bytes = 1, .ahead_ops = 1, .turn_bytes = 512,           \
		.sum_vectors = 2, .long_vectors = 1, .long_ops = 8,            \
		.rows_abreast = 1, .abreast_ops = 1, .abreast_bytes = 1, .window_terms = 1, .image_terms = 1, .window_part = 4, .image_part = 2, .window_share = 0.72, .most_unrolled = 128, \
		.unrolled_ops = 1, .unrolled_loops = 1, \
		.short_loop = 8, .short_sum = 16, .far_vectors = 4,            \
		.row_blocks = 8, .large_block = 16, .least_part = 16,          \
		.beside_part = 16                                              \
	}

#define AVX512                                                                \
	.vector_bytes = 64, .vector_registers = 32,                           \
	.cycles = {.vector_op = 1, .scalar_op = 0.8, .scalar_guard = 2,       \
		.load = {0.6, 1.2, 2, 1.3, 0.6}, .store = {1, 2, 20, 1.5, 1}, \
		.fma = 0.52, .dot = 0.52, .tile_load = 0.5, .tile_start = 4,  \
		.turned = 0.5, .crowded = 7, .loop = 1, .chain = 4,           \
		.window = 90, .beside = 0.3},                                 \
	C_FAMILY(HERTZ)
#define PLAIN                                                                 \
	.vector_bytes = 8, .vector_registers = 16,                            \
	.cycles = {.vector_op = 0.8, .scalar_op = 0.8, .scalar_guard = 2,     \
		.load = {0.6, 2, 2, 1.3, 0.6}, .store = {1, 3, 3, 1.5, 1},    \
		.fma = 1, .dot = 1, .tile_load = 0.5, .tile_start = 4,        \
		.turned = 1, .crowded = 7, .loop = 1, .chain = 4,             \
		.window = 90, .beside = 0.3},                                 \
	C_FAMILY(HERTZ)
#define INT_DOTS {TN_U8, TN_I8, 4}, {TN_I16, TN_I16, 2}

static const machine machines[] = {
	{
		.name = "c/avx512",
		AVX512,
	},
	{
		.name = "c/avx512-vnni",
		AVX512,
		.dot = {INT_DOTS},
	},
	{
		.name = "c/avx512-bf16",
		AVX512,
		.dot = {INT_DOTS, {TN_BF16, TN_BF16, 2}},
	},
	{
		.name = "c/avx512-amx",
		AVX512,
		.dot = {INT_DOTS, {TN_BF16, TN_BF16, 2}},
		.tiles = {.rows = 16, .row_bytes = 64, .cycles = 20, .load = 12,
			.chain = 65, .start = 3, .block = 256, .near_part = 2,
			.long_parts = 3},
	},
	{
		.name = "c/avx2",
		.vector_bytes = 32,
		.vector_registers = 16,
		.cycles = {.vector_op = 0.8,
			.scalar_op = 0.8,
			.scalar_guard = 2,
			.load = {0.5, 1, 2, 1.3, 0.6},
			.store = {1, 2, 10, 1.5, 1},
			.fma = 0.52,
			.dot = 0.52,
			.tile_load = 0.5,
			.tile_start = 4,
			.turned = 0.6,
			.crowded = 7,
			.loop = 1,
			.chain = 4,
			.window = 90,
			.beside = 0.3},
		C_FAMILY(AVX2_HERTZ),
	},
	{
		.name = "c/neon",
		.vector_bytes = 16,
		.vector_registers = 32,
		.cycles = {.vector_op = 0.7,
			.scalar_op = 0.8,
			.scalar_guard = 2,
			.load = {0.5, 2, 2, 1.3, 0.6},
			.store = {1, 3, 5, 1.5, 1},
			.fma = 0.52,
			.dot = 0.52,
			.tile_load = 0.5,
			.tile_start = 4,
			.turned = 0.8,
			.crowded = 7,
			.loop = 1,
			.chain = 4,
			.window = 90,
			.beside = 0.3},
		C_FAMILY(HERTZ),
	},
	{
		.name = "c/sse",
		.vector_bytes = 16,
		.vector_registers = 16,
		.cycles = {.vector_op = 0.8,
			.scalar_op = 0.8,
			.scalar_guard = 2,
			.load = {0.5, 2, 2, 1.3, 0.6},
			.store = {1, 3, 5, 1.5, 1},
			.fma = 1,
			.dot = 1,
			.tile_load = 0.5,
			.tile_start = 4,
			.turned = 0.8,
			.crowded = 7,
			.loop = 1,
			.chain = 4,
			.window = 90,
			.beside = 0.3},
		C_FAMILY(HERTZ),
	},
	{
		.name = "c/plain",
		PLAIN,
	},
	/* One element at a time: C without vectors, for any compiler. */
	{
		.name = "c/scalar",
		.lanes = 1,
		PLAIN,
	},
	/* A100 SXM, 40 GB: 108 multiprocessors, 1.41 GHz, 40 MB of L2 */
	{.name = "cuda/sm_80",
		GPU_FAMILY(108, 1.41e9, 164 << 10, 40 << 20, 5e12, 1.55e12),
		.block = {GPU_BLOCK(164 << 10)},
		.matrix = {GPU_MATRIX}},
	/* H100 SXM, 80 GB: 132 multiprocessors, 1.755 GHz, 50 MB of L2 */
	{.name = "cuda/sm_90",
		GPU_FAMILY(132, 1.755e9, 228 << 10, 50 << 20, 7e12, 3.35e12),
		.block = {GPU_BLOCK(228 << 10)},
		.matrix = {GPU_MATRIX}},
	/* .. with the instructions that no other GPU has */
	{.name = "cuda/sm_90a",
		GPU_FAMILY(132, 1.755e9, 228 << 10, 50 << 20, 7e12, 3.35e12),
		.block = {GPU_BLOCK(228 << 10), .bulk_rows = 256,
			.bulk_each = 8, .bulk_cycles = 100},
		.matrix = {GPU_MATRIX, .warps = 4, .warps_cycles = 16,
			.rows_cycles = 8}},
};

enum { N_MACHINES = sizeof machines / sizeof *machines };

static double larger(double a, double b)
{
	return a > b ? a : b;
}

double machine_dot_cycles(
	const machine *m, double rows, double vectors, double groups)
{
	double loads = m->cycles.tile_load * (rows + vectors);

	return groups * larger(m->cycles.chain,
				larger(loads, m->cycles.dot * rows * vectors));
}

double machine_tile_cycles(
	const machine *m, double rows, double vectors, double groups)
{
	const machine_tiles *t = &m->tiles;
	double part = rows / t->rows; /* of a register: what an instruction takes */
	double steps = ceil(groups / t->rows);
	/* what is loaded is not hidden behind what is multiplied */
	double each = t->cycles * part * vectors + t->load * (part + vectors);

	return steps * larger(each, t->chain * (part < 1 ? part : 1)) +
	       t->start * rows * vectors;
}

const machine *machine_at(int32_t i)
{
	return i < N_MACHINES ? &machines[i] : NULL;
}

const machine *machine_find(const char *name)
{
	for (int32_t i = 0; i < N_MACHINES; i++)
		if (strcmp(machines[i].name, name) == 0)
			return &machines[i];
	return NULL;
}

static machine_dots dots_of(const machine *m)
{
	machine_dots d = MACHINE_NO_DOTS;

	for (size_t i = 0; i < sizeof m->dot / sizeof *m->dot; i++)
		if (m->dot[i].terms > 0)
			d = m->dot[i].x == TN_BF16 ? MACHINE_ALL_DOTS
			    : d == MACHINE_NO_DOTS ? MACHINE_INT_DOTS
						   : d;
	return m->tiles.rows > 0 ? MACHINE_TILE_DOTS : d;
}

const machine *machine_of_c(
	int32_t vector_bytes, int32_t n_registers, machine_dots dots)
{
	const machine *best = machine_find("c/plain");

	for (int32_t i = 0; i < N_MACHINES; i++) {
		const machine *m = &machines[i];

		if (m->lanes == 0 && m->vector_bytes == vector_bytes &&
			dots_of(m) <= dots &&
			(best->vector_bytes != vector_bytes ||
				m->vector_registers == n_registers ||
				dots_of(m) > MACHINE_NO_DOTS))
			best = m;
	}
	return best;
}

/* ---- the constants, with what they were measured with ---- */

#define KIND(field)                   \
	_Generic(((machine *)0)->field, \
		double : FACT_DOUBLE,   \
		int64_t : FACT_LONG,    \
		int32_t : FACT_INT)
#define FACT(field, unit, from)                                           \
	{                                                                 \
#field, offsetof(machine, field), KIND(field), unit, from \
	}
#define SIZE(field, from) FACT(field, "", "tenon bench " from)

enum fact_kind { FACT_DOUBLE, FACT_LONG, FACT_INT };

static const struct fact {
	const char *name;
	size_t at; /* of the field */
	enum fact_kind kind;
	const char *unit, *from;
} fact[] = {
	FACT(hertz, "Hz", "a chain of operations on an integer"),
	FACT(memory[MACHINE_L1].bytes, "B", "y = 2 x in place, by size"),
	FACT(memory[MACHINE_L2].bytes, "B", "y = 2 x, by size"),
	FACT(memory[MACHINE_L3].bytes, "B", "y = 2 x, by size"),
	FACT(memory[MACHINE_L1].bytes_per_s, "B/s", "y = 2 x in place, 16 KB"),
	FACT(memory[MACHINE_L2].bytes_per_s, "B/s", "y = 2 x, 512 KB"),
	FACT(memory[MACHINE_L3].bytes_per_s, "B/s", "y = 2 x, 16 MB"),
	FACT(memory[MACHINE_MAIN].bytes_per_s, "B/s", "y = 2 x, 256 MB"),
	FACT(launch_s, "s", "a kernel of one element, between others"),
	FACT(round_s, "s", "bench/peers/rnn.py --hidden 8"),
	FACT(phase_s, "s", "a sum of 262144 in two phases, less 16 of them in one"),
	FACT(chunk_s, "s", "4096 chunks of 16 elements, less 16 of 4096"),
	FACT(hidden, "", "polynomials over 16 MB: beside their arithmetic alone"),
	FACT(cycles.vector_op, "cycles", "polynomials of 32 operations over 16 KB"),
	FACT(cycles.scalar_op, "cycles", "the same, one by one"),
	FACT(cycles.scalar_guard, "cycles", "a sliding window with a guard, no lanes"),
	FACT(cycles.load[MACHINE_WHOLE], "cycles", "a sum of x[i], 16 KB"),
	FACT(cycles.load[MACHINE_MASKED], "cycles", "rows of all lanes but two"),
	FACT(cycles.load[MACHINE_STRIDED], "cycles", "x[2 i], 16 KB"),
	FACT(cycles.load[MACHINE_GATHERED], "cycles",
		"x[5 i], 16 KB: of one lane"),
	FACT(cycles.load[MACHINE_SCALAR], "cycles", "x[i] one by one, 16 KB"),
	FACT(cycles.store[MACHINE_WHOLE], "cycles", "o[i], 16 KB"),
	FACT(cycles.store[MACHINE_MASKED], "cycles", "rows of all lanes but two"),
	FACT(cycles.store[MACHINE_STRIDED], "cycles", "o[2 i], 16 KB"),
	FACT(cycles.store[MACHINE_GATHERED], "cycles",
		"o[5 i], 16 KB: of one lane"),
	FACT(cycles.store[MACHINE_SCALAR], "cycles", "o[i] one by one, 16 KB"),
	FACT(cycles.fma, "cycles", "a product of 128 x 128 x 128"),
	FACT(cycles.dot, "cycles", "the same of bf16"),
	FACT(tiles.cycles, "cycles", "AMX: four sums of registers, again and again"),
	FACT(tiles.load, "cycles",
		"of bf16, 512 x 512 x 64 less 512 x 256 x 64, without cycles"),
	FACT(tiles.chain, "cycles", "AMX: one sum of a register, again and again"),
	FACT(tiles.start, "cycles", "of bf16, twice 512 x 64 x 64 less 512 x 128 x 64"),
	SIZE(tiles.rows, "contract"),
	SIZE(tiles.row_bytes, "contract"),
	SIZE(tiles.block, "contract"),
	SIZE(tiles.near_part, "contract"),
	SIZE(tiles.long_parts, "contract"),
	FACT(cycles.tile_load, "cycles", "a product of 2 x 256 x 128, less half of it"),
	FACT(cycles.tile_start, "cycles", "a product with sums of 8 terms"),
	FACT(cycles.turned, "cycles", "a transposition of 512 x 512"),
	FACT(cycles.crowded, "cycles",
		"o[256 i + j] = x, 64 rows, column by column"),
	FACT(cycles.loop, "cycles", "rows of 16 elements"),
	FACT(cycles.chain, "cycles", "a sum in one accumulator"),
	FACT(cycles.window, "cycles", "tenon bench merges"),
	FACT(cycles.beside, "", "polynomials beside loads, 16 KB"),
	SIZE(schedule.bytes_an_elem, "fused"),
	SIZE(schedule.ops_an_elem, "fused"),
	SIZE(schedule.serial_elems, "step"),
	SIZE(schedule.chunk_elems, "fused"),
	SIZE(schedule.max_chunks, "fused"),
	SIZE(schedule.min_chunks, "fused"),
	SIZE(schedule.owner_updates, "fused"),
	SIZE(schedule.stream_bytes, "fused"),
	SIZE(schedule.least_lanes, "nets"),
	SIZE(schedule.small_inside, "nets"),
	SIZE(schedule.rows_at_once, "fused"),
	SIZE(schedule.near_lanes, "nets"),
	SIZE(schedule.near_jump, "nets"),
	SIZE(schedule.write_jump, "nets"),
	SIZE(schedule.near_guard, "nets"),
	SIZE(schedule.ahead_bytes, "fused"),
	SIZE(schedule.ahead_ops, "fused"),
	SIZE(schedule.turn_bytes, "fused"),
	SIZE(schedule.sum_vectors, "fused"),
	SIZE(schedule.long_vectors, "fused"),
	SIZE(schedule.rows_abreast, "fused"),
	SIZE(schedule.abreast_ops, "fused"),
	SIZE(schedule.abreast_bytes, "generate"),
	SIZE(schedule.window_terms, "nets"),
	SIZE(schedule.image_terms, "nets"),
	SIZE(schedule.window_part, "nets"),
	SIZE(schedule.image_part, "nets"),
	SIZE(schedule.window_share, "nets"),
	SIZE(schedule.long_ops, "fused"),
	SIZE(schedule.short_loop, "nets"),
	SIZE(schedule.short_sum, "nets"),
	SIZE(schedule.most_unrolled, "nets"),
	SIZE(schedule.unrolled_ops, "nets"),
	SIZE(schedule.unrolled_loops, "nets"),
	SIZE(schedule.far_vectors, "fused"),
	SIZE(schedule.row_blocks, "fused"),
	SIZE(schedule.large_block, "fused"),
	SIZE(schedule.least_part, "fused"),
	SIZE(schedule.beside_part, "fused"),
	SIZE(product.least_rows, "contract"),
	SIZE(product.least_sum, "contract"),
	SIZE(product.least_need, "contract"),
	SIZE(product.most_residues, "contract"),
	SIZE(product.residue_work, "contract"),
	SIZE(product.again_terms, "contract"),
	SIZE(product.few_rows, "contract"),
	SIZE(product.few_rows_far, "contract"),
	SIZE(product.few_sums, "contract"),
	SIZE(product.few_vectors, "contract"),
	SIZE(product.lone_vectors, "step"),
	SIZE(product.lone_ahead, "step"),
	SIZE(product.near_part, "contract"),
	SIZE(product.line, "contract"),
	SIZE(product.ways, "contract"),
	SIZE(product.steady_part, "nets"),
	SIZE(product.fetch_products, "nets"),
	SIZE(product.thin, "contract"),
	SIZE(product.copy_chunks, "contract"),
	SIZE(product.max_whole, "contract"),
	SIZE(product.column_chunks, "contract"),
	SIZE(product.copied_chunks, "contract"),
	SIZE(product.chunk_panels, "contract"),
	SIZE(product.row_chunks, "contract"),
	SIZE(product.shared_cycles, "contract"),
	SIZE(product.few_chunks, "contract"),
	SIZE(product.few_tiles, "contract"),
	SIZE(product.few_ahead, "contract"),
	SIZE(product.pixels_ahead, "nets"),
	SIZE(product.result_terms, "nets"),
	SIZE(product.result_row, "nets"),
	SIZE(product.uneven_rows, "contract"),
	SIZE(product.uneven_work, "nets"),
	SIZE(product.turned_rows, "nets"),
	SIZE(product.turned_bytes, "nets"),
	SIZE(product.few_rows_longest, "contract"),
	SIZE(product.along_rows, "contract"),
	SIZE(product.along_columns, "contract"),
	SIZE(product.block_most, "contract"),
	SIZE(product.block_chunks, "contract"),
	SIZE(product.enough_pieces, "contract"),
	SIZE(product.cut_chunks, "contract"),
	SIZE(product.least_piece, "contract"),
	SIZE(product.piece_chunks, "contract"),
	SIZE(product.full_lanes, "contract"),
	SIZE(product.turn_gain, "contract"),
	SIZE(product.turn_sum, "contract"),
	SIZE(product.turn_vectors, "contract"),
	SIZE(product.turn_copy, "contract"),
	SIZE(product.tile_quarters, "contract"),
	SIZE(product.slide_pixels, "contract"),
	SIZE(product.slide_sum, "contract"),
	SIZE(product.slide_near, "contract"),
	SIZE(product.slide_copies, "contract"),
	SIZE(product.sums_part, "contract"),
	SIZE(product.all_part, "contract"),
	SIZE(product.slide_columns, "contract"),
	SIZE(product.most_equations, "contract"),
	SIZE(product.long_part, "contract"),
	SIZE(product.plain_part, "contract"),
	SIZE(product.keys_part, "contract"),
	SIZE(product.keys_parts, "contract"),
	SIZE(product.block_quarters, "contract"),
	SIZE(product.mixed_quarters, "contract"),
	SIZE(product.panel_quarters, "contract"),
	SIZE(product.block_inner, "contract"),
	SIZE(product.window_quarters, "contract"),
	SIZE(product.window_tiles, "nets"),
	SIZE(product.least_fit, "contract"),
	SIZE(product.join_waste, "contract"),
	SIZE(product.join_lanes, "contract"),
	SIZE(block.warps, "contract"),
	SIZE(block.shared_bytes, "contract"),
	SIZE(block.sum_terms, "contract"),
	SIZE(block.matrix_bytes, "contract"),
	SIZE(block.matrix_columns, "contract"),
	SIZE(block.least_rows, "contract"),
	SIZE(block.least_columns, "contract"),
	SIZE(block.halvings, "contract"),
	SIZE(block.stages, "contract"),
	SIZE(block.bank_bytes, "gpu"),
	SIZE(block.alone, "gpu"),
	FACT(fusion.flops_per_s, "1/s", "polynomials of 32 operations over 16 KB"),
	FACT(fusion.contract_per_s, "1/s", "a product of 512 x 512 x 512"),
	SIZE(fusion.max_eqns, "merges"),
	SIZE(fusion.serial_volume, "step"),
	SIZE(fusion.tail_part, "step"),
	SIZE(fusion.tail_eqns, "step"),
	SIZE(fusion.again_ops, "merges"),
	SIZE(fusion.again_reads, "merges"),
	SIZE(fusion.split_iterations, "merges"),
	SIZE(fusion.strided, "merges"),
	SIZE(fusion.gathered_ops, "merges"),
	SIZE(fusion.keys_at_once, "contract"),
	SIZE(fusion.rows_at_once, "contract"),
	SIZE(fusion.copy_rows, "contract"),
	SIZE(fusion.copy_window_rows, "contract"),
	SIZE(fusion.wait_part, "contract"),
	SIZE(fusion.most_held, "step"),
	SIZE(fusion.both_ways, "contract"),
	SIZE(fusion.most_lost, "merges"),
	SIZE(fusion.alone_lost, "merges"),
	SIZE(fusion.least_gain, "merges"),
	SIZE(fusion.cuts, "merges"),
	SIZE(fusion.bound_cuts, "merges"),
	SIZE(fusion.split_rounds, "merges"),
	SIZE(fusion.alike, "merges"),
	SIZE(fusion.batch_volume, "step"),
	SIZE(fusion.plain_contract_per_s, "merges"),
	SIZE(stays_bytes, "estimate"),
	SIZE(round_bytes, "estimate"),
	SIZE(threads, "fused"),
};

bool machine_fact_at(const machine *m, int32_t i, machine_fact *out)
{
	const char *at;
	int64_t whole;
	int32_t small;

	if (i < 0 || i >= (int32_t)(sizeof fact / sizeof *fact))
		return false;
	*out = (machine_fact){.name = fact[i].name,
		.unit = fact[i].unit,
		.from = fact[i].from};
	at = (const char *)m + fact[i].at;
	switch (fact[i].kind) {
	case FACT_DOUBLE:
		memcpy(&out->value, at, sizeof out->value);
		break;
	case FACT_LONG:
		memcpy(&whole, at, sizeof whole);
		out->value = (double)whole;
		break;
	case FACT_INT:
		memcpy(&small, at, sizeof small);
		out->value = small;
		break;
	}
	return true;
}
