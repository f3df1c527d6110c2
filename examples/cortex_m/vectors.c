/*
 * vectors.c: where a Cortex-M begins: the end of its stack, and the first function,
 * which is that of the C library. Programs that answer interrupts have more of them.
 */
extern void _start(void);

__attribute__((section(".vectors"), used)) static void *const vectors[] = {
	(void *)0x20400000, (void *)_start};
