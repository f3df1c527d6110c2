/*
 * simt.c: a translation unit in which fibers of the CPU are the threads of a warp.
 */
#include "target/simt/simt.h"

#include "target/simt/prelude.h"

#include <inttypes.h>

enum { ALIGN = 64 };

static size_t aligned(size_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* As prelude.c divides it: stacks of the fibers; warps, and what their lanes
 * have touched; what the warps of a block have; its shared memory. */
size_t simt_memory(int32_t warps, size_t shared)
{
	enum {
		STACK = 16 << 10,
		CELL = 32,
		WARP = 2048,
		COPIES = 64 * 32 * 32
	};
	size_t n = (size_t)warps, words = (shared + 7) / 8;
	size_t bytes = STACK + n * (32 * STACK + WARP + (CELL << 11));

	if (warps > 1)
		bytes += CELL << 13;
	if (shared > 0)
		bytes += aligned(shared) + words * (CELL + 2) + n * COPIES;
	return bytes;
}

static int32_t most_warps(const c_kernel *k)
{
	int32_t n = 1;

	for (int32_t i = 0; i < k->n_phases; i++)
		n = k->phase[i].warps > n ? k->phase[i].warps : n;
	return n;
}

/* Of the local memory: what the emulator has, behind that of each warp. */
static size_t room_of(const c_kernel *k)
{
	return simt_memory(most_warps(k), k->shared_bytes);
}

c_kernel *simt_print(arena *a, const kern_kernel *k)
{
	c_kernel *c = cuda_print(a, k);

	c->local_bytes = aligned(c->local_bytes) * (size_t)most_warps(c) +
			 room_of(c);
	return c;
}

/* The function that runs a chunk of a phase. */
static void add_phase(str *out, const c_kernel *k, int32_t phase)
{
	const char *fn = k->phase[phase].fn;
	int32_t warps = k->phase[phase].warps;

	str_printf(out,
		"\nstatic void %s_thread(const struct simt_call *c)\n{\n"
		"	%s_lane(",
		fn, fn);
	for (int32_t i = 0; i < k->n_params; i++)
		str_printf(out, "c->p[%d], ", i);
	str_printf(out,
		"c->scratch, c->local, c->chunk, c->chunk + 1, c->err");
	for (int32_t i = 0; i < k->phase[phase].n_maps; i++) {
		const c_map *m = &k->phase[phase].map[i];

		str_printf(out,
			",\n		simt_bulk_map(c->p[%d], %" PRId64 ", %" PRId64 ", %d)",
			m->param, m->columns, m->rows, m->box);
	}
	str_printf(out,
		");\n}\n"
		"void %s(void *const *p, void *scratch, void *local, i64 "
		"chunk,\n	i64 *err)\n{\n"
		"	struct simt_call c = { p, scratch, local, chunk, err };\n"
		"	simt_run_block(%s_thread, &c, (char *)local + %zu, %d, "
		"%zu);\n}\n",
		fn, fn, k->local_bytes - room_of(k), warps,
		warps > 1 ? k->shared_bytes : 0);
}

void simt_unit(str *out, const c_kernel *const *k, int32_t n)
{
	map *functions = map_new(out->a);

	for (int32_t i = 0; simt_prelude[i] != NULL; i++)
		str_add(out, simt_prelude[i]);
	c_unit(out, k, n);
	for (int32_t i = 0; i < n; i++) {
		const char *fn = k[i]->n_phases > 0 ? k[i]->phase[0].fn : "";

		if (k[i]->n_phases == 0 || map_get_str(functions, fn, 0) != 0)
			continue;
		map_set_str(functions, fn, 1);
		for (int32_t j = 0; j < k[i]->n_phases; j++)
			add_phase(out, k[i], j);
	}
}

const char *simt_failure(int64_t err, int64_t *line)
{
	/* by enum simt_what of prelude.c */
	static const char *const what[] = {
		"two lanes of a warp access one cell, one of them writes it, "
		"and they do not meet in between",
		"the lanes of a warp do not meet at the same statement",
		"two warps of a block access one cell, one of them writes it, "
		"and they do not meet in between",
		"the warps of a block do not meet at the same barrier",
		"a cell is accessed before the copy to it was waited for",
		"the kernel ends, and a copy was not waited for",
		"a lane has more than 64 copies under way",
		"a copy has another size than 4, 8 or 16 bytes, an address that "
		"is not a multiple of its size, or goes to other memory than shared",
		"a lane accesses several elements at once, at an address that is "
		"not a multiple of their bytes",
		"an instruction of several warps reads what was copied without a "
		"fence, and a barrier behind it",
		"a copy in bulk is not a box of the matrix that was described, does not go "
		"to a place for eight rows of shared memory, or is one of more than 16, or "
		"of 8 groups, under way"};
	enum { N = sizeof what / sizeof *what };
	int64_t n = -1 - err;

	*line = n / N;
	return what[n % N];
}

const c_target simt_warps = {"simt", simt_print, simt_unit, simt_failure};
