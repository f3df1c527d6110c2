/*
 * fp.c: the floating-point environment of a thread.
 *
 * A host may round upwards, flush subnormals to zero, or trap on overflow. The
 * library computes in the default environment (round to nearest, with
 * subnormals, exceptions masked), and restores that of the host afterwards:
 *
 *     fp_env host = fp_enter();  ...  fp_leave(&host);
 *
 * Costs two instructions if the host uses the default one, which is usual.
 */
#include "base/base.h"

#if defined(__x86_64__) || (defined(__i386__) && defined(__SSE__))

enum { SSE = 0x1f80, X87 = 0x37f, SSE_FLAGS = 0x3f };

fp_env fp_enter(void)
{
	uint16_t x87;
	fp_env host = {.sse = __builtin_ia32_stmxcsr()};

	/* also of x87, which the C library uses to convert decimal text */
	__asm__ volatile("fnstcw %0" : "=m"(x87));
	host.x87 = x87;
	host.is_default = (host.sse & ~(uint32_t)SSE_FLAGS) == SSE &&
		x87 == X87;
	if (!host.is_default) {
		x87 = X87;
		__builtin_ia32_ldmxcsr(SSE);
		__asm__ volatile("fldcw %0" : : "m"(x87));
	}
	return host;
}

void fp_leave(const fp_env *host)
{
	uint16_t x87 = host->x87;

	if (host->is_default)
		return;
	__builtin_ia32_ldmxcsr(host->sse);
	__asm__ volatile("fldcw %0" : : "m"(x87));
}

#else

fp_env fp_enter(void)
{
	fp_env host = {.is_default = false};

	fegetenv(&host.all);
	fesetenv(FE_DFL_ENV);
	return host;
}

void fp_leave(const fp_env *host)
{
	fesetenv(&host->all);
}

#endif
