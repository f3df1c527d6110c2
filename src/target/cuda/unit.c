/*
 * unit.c: prints a translation unit for NVRTC.
 */
#include "target/cuda/local.h"
#include "target/cuda/prelude.h"

void cuda_unit(str *out, const c_kernel *const *k, int32_t n)
{
	for (int32_t i = 0; cuda_prelude[i] != NULL; i++)
		str_add(out, cuda_prelude[i]);
	c_unit(out, k, n);
}

const c_target cuda_nvrtc = {"cuda", cuda_print, cuda_unit, NULL};
