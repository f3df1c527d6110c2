/*
 * test_rows_compiled.c: the cases of test_rows.c through the whole pipeline:
 * fused, emitted as C, compiled, run.
 */
#include "rows.h"

int main(void)
{
	return rows_main(true);
}
