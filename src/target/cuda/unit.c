/*
 * unit.c: prints a translation unit for NVRTC.
 */
#include "target/cuda/local.h"
#include "target/cuda/prelude.h"

void cuda_unit_body(str *out, const c_kernel *const *k, int32_t n)
{
	map *functions = map_new(out->a);

	c_unit_helpers(out, k, n);
	for (int32_t i = 0; i < n; i++) {
		const char *fn = k[i]->n_phases > 0 ? k[i]->phase[0].fn : "";

		if (k[i]->n_phases == 0 || map_get_str(functions, fn, 0) != 0)
			continue;
		map_set_str(functions, fn, 1);
		str_printf(out, "\n%s", k[i]->c);
	}
}

void cuda_unit(str *out, const c_kernel *const *k, int32_t n)
{
	for (int32_t i = 0; cuda_prelude[i] != NULL; i++)
		str_add(out, cuda_prelude[i]);
	cuda_unit_body(out, k, n);
}

const c_target cuda_nvrtc = {"cuda", cuda_print, cuda_unit, NULL};
