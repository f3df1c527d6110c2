/*
 * simt.c: a translation unit in which fibers of the CPU are the threads of a warp.
 */
#include "target/simt/simt.h"

#include "target/simt/prelude.h"

#include <inttypes.h>

enum {
	/* as in prelude.c: stacks of the fibers, cells that they touched */
	MEMORY = (33 * 16 << 10) + (32 << 11),
	ALIGN = 64
};

static size_t aligned(size_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

c_kernel *simt_print(arena *a, const kern_kernel *k)
{
	c_kernel *c = cuda_print(a, k);

	c->local_bytes = aligned(c->local_bytes) + MEMORY;
	return c;
}

/* The function that runs a chunk of a phase. */
static void add_phase(str *out, const c_kernel *k, int32_t phase)
{
	const char *fn = k->phase[phase].fn;

	str_printf(out,
		"\nstatic void %s_thread(const struct simt_call *c)\n{\n"
		"	%s_lane(",
		fn, fn);
	for (int32_t i = 0; i < k->n_params; i++)
		str_printf(out, "c->p[%d], ", i);
	str_printf(out,
		"c->scratch, c->local, c->chunk, c->chunk + 1, c->err);\n}\n"
		"void %s(void *const *p, void *scratch, void *local, i64 "
		"chunk,\n	i64 *err)\n{\n"
		"	struct simt_call c = { p, scratch, local, chunk, err };\n"
		"	simt_run(%s_thread, &c, (char *)local + %zu);\n}\n",
		fn, fn, aligned(k->local_bytes - MEMORY));
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
	static const char *const what[] = {
		"two lanes of a warp access one cell, one of them writes it, "
		"and they do not meet in between",
		"the lanes of a warp do not meet at the same statement"};
	int64_t n = -1 - err;

	*line = n / 2;
	return what[n % 2];
}

const c_target simt_warps = {"simt", simt_print, simt_unit, simt_failure};
