/*
 * A warp on the CPU: 32 fibers, which run one after another until all of them
 * have met at the same statement. What they touch in between is noted.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O1") /* most units run for less time than they compile */
#endif
typedef __INT64_TYPE__ simt_int;
typedef __UINT64_TYPE__ simt_word;
enum { SIMT_STACK = 16 << 10, SIMT_CELLS = 1 << 11, SIMT_END = -1 };
struct simt_call {
	void *const *p;
	void *scratch, *local;
	simt_int chunk;
	simt_int *err;
};
/*
 * Who touched the eight bytes at address 8 * at since the last meeting: a byte
 * of writer and reader for each of them, lane + 1; 0: none, 255: several.
 */
struct simt_cell {
	simt_word at, epoch, writer, reader;
};
struct simt_warp {
	void (*fn)(const struct simt_call *);
	const struct simt_call *call;
	struct simt_cell *cell;
	void *home, *stack[32]; /* stack pointers */
	simt_word slot[2][32];	/* what the lanes show each other, in turn */
	simt_word epoch, random;
	simt_int met[32]; /* lines where the lanes are; SIMT_END */
	simt_int failed;  /* 2 * line + 0 or 1, + 1 */
	int lane, turn, sync;
};
struct simt_index { unsigned x; };
/*
 * The warp of the fiber that runs: its address is at the low end of the fiber's
 * stack, which begins at a multiple of its size. A variable of the thread would
 * do, too, but not in a library that is unloaded under a leak checker.
 */
__attribute__((unused)) static struct simt_warp *simt_here(void)
{
	const simt_word at = (simt_word)__builtin_frame_address(0);

	return *(struct simt_warp **)(at & ~(simt_word)(SIMT_STACK - 1));
}
#define simt_now simt_here()
__attribute__((unused)) static struct simt_index simt_thread(void)
{
	return (struct simt_index){ (unsigned)simt_now->lane };
}
#define threadIdx simt_thread()
static const struct { unsigned x; } blockIdx = { 0 }, gridDim = { 1 }, blockDim = { 32 };

/* Saves the registers that a call keeps, continues on another stack. */
void simt_switch(void **from, void *to) __attribute__((visibility("hidden")));
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".hidden simt_switch\n"
	".type simt_switch,@function\n"
	"simt_switch:\n"
	"	pushq %rbp\n	pushq %rbx\n	pushq %r12\n"
	"	pushq %r13\n	pushq %r14\n	pushq %r15\n"
	"	movq %rsp, (%rdi)\n	movq %rsi, %rsp\n"
	"	popq %r15\n	popq %r14\n	popq %r13\n"
	"	popq %r12\n	popq %rbx\n	popq %rbp\n	ret\n"
	".size simt_switch,.-simt_switch\n"
	".popsection\n");
enum { SIMT_SAVED = 6, SIMT_RETURN = 6, SIMT_FRAME = 8 };
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
	".hidden simt_switch\n"
	".type simt_switch,%function\n"
	"simt_switch:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp]\n	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n	stp d14, d15, [sp, #144]\n"
	"	mov x2, sp\n	str x2, [x0]\n	mov sp, x1\n"
	"	ldp x19, x20, [sp]\n	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n	ret\n"
	".size simt_switch,.-simt_switch\n"
	".popsection\n");
enum { SIMT_SAVED = 20, SIMT_RETURN = 11, SIMT_FRAME = 20 };
#else
#error "the emulator of warps runs on x86-64 and AArch64"
#endif

#define SIMT_USED __attribute__((unused))
#define SIMT_CALLED __attribute__((unused, noinline)) /* units compile sooner */
SIMT_CALLED static void simt_meet(simt_int line, int sync)
{
	struct simt_warp *w = simt_now;
	const int lane = w->lane;

	w->met[lane] = line;
	w->sync = sync;
	simt_switch(&w->stack[lane], w->home);
}
static void simt_start(void)
{
	simt_now->fn(simt_now->call);
	simt_meet(SIMT_END, 0);
}
static unsigned simt_draw(struct simt_warp *w, unsigned below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (unsigned)(w->random >> 33) % below;
}
static void simt_fail(struct simt_warp *w, simt_int line, int what)
{
	if (w->failed == 0)
		w->failed = 2 * line + what + 1;
}
/* Each lane runs until it meets the others. Returns whether all have ended. */
static int simt_round(struct simt_warp *w)
{
	int order[32], i;

	for (i = 0; i < 32; i++) {
		const int j = (int)simt_draw(w, (unsigned)i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	for (i = 0; i < 32; i++) {
		w->lane = order[i];
		simt_switch(&w->home, w->stack[order[i]]);
	}
	for (i = 1; i < 32; i++)
		if (w->met[i] != w->met[0]) {
			simt_fail(w, w->met[0] > w->met[i] ? w->met[0] : w->met[i], 1);
			return 1;
		}
	w->turn ^= 1;
	w->epoch += (simt_word)w->sync;
	return w->met[0] == SIMT_END;
}
SIMT_USED static void simt_run(void (*fn)(const struct simt_call *),
	const struct simt_call *call, char *memory)
{
	struct simt_warp w = { 0 };
	int i, j;

	memory += -(simt_word)memory % SIMT_STACK;
	w.fn = fn;
	w.call = call;
	w.cell = (struct simt_cell *)(memory + 32 * SIMT_STACK);
	/* what another kernel has left there is not of this one */
	__builtin_memset(w.cell, 0, SIMT_CELLS * sizeof *w.cell);
	w.epoch = 1;
	w.random = 0x9e3779b97f4a7c15u * (simt_word)(call->chunk + 1);
	for (i = 0; i < 32; i++) {
		/* not all in the same lines of the cache */
		void **top = (void **)(memory + (i + 1) * SIMT_STACK - i * 64) -
			SIMT_FRAME;
		for (j = 0; j < SIMT_SAVED; j++)
			top[j] = 0;
		top[SIMT_RETURN] = (void *)simt_start;
		w.stack[i] = top;
		*(struct simt_warp **)(memory + i * SIMT_STACK) = &w;
	}
	while (!simt_round(&w))
		;
	if (w.failed != 0)
		*call->err = -w.failed;
}
/* Those of the bytes in `who` that are neither 0 nor those of `me`, as 255. */
static simt_word simt_others(simt_word who, simt_word me)
{
	simt_word others = 0;
	int i;

	for (i = 0; i < 64; i += 8)
		if ((who >> i & 255) != 0 && (who >> i & 255) != (me >> i & 255))
			others |= (simt_word)255 << i;
	return others;
}
/* Access of the bytes at p that ones stands for: 1 for the first, 256 for the
 * second .., in one word. */
SIMT_CALLED static void simt_touch_word(
	const volatile void *p, simt_word ones, int write, simt_int line)
{
	struct simt_warp *w = simt_now;
	const simt_word at = (simt_word)p / 8, here = ones << (simt_word)p % 8 * 8;
	const simt_word mask = here * 255, me = here * (simt_word)(w->lane + 1);
	struct simt_cell *c = &w->cell[(at ^ at >> 11) % SIMT_CELLS];
	simt_word writer, reader;

	if (c->at != at || c->epoch != w->epoch) {
		c->at = at;
		c->epoch = w->epoch;
		c->writer = c->reader = 0;
	}
	writer = c->writer & mask;
	reader = c->reader & mask;
	if (writer != 0 && writer != me && simt_others(writer, me) != 0)
		simt_fail(w, line, 0);
	if (write) {
		if (reader != 0 && reader != me && simt_others(reader, me) != 0)
			simt_fail(w, line, 0);
		c->writer = (c->writer & ~mask) | me;
	} else if (reader == 0) {
		c->reader |= me;
	} else if (reader != mask && reader != me) {
		c->reader |= me | simt_others(reader, me);
	}
}
/* Elements lie at multiples of their size, so those of eight bytes at most are
 * in one word. */
SIMT_USED static inline void simt_touch(
	const volatile void *p, unsigned long n, int write, simt_int line)
{
	static const simt_word ones[9] = { 0, 1, 0x101, 0, 0x1010101, 0, 0, 0,
		0x101010101010101u };
	unsigned long i;

	if (n <= 8)
		simt_touch_word(p, ones[n], write, line);
	else
		for (i = 0; i < n; i += 8)
			simt_touch_word((const volatile char *)p + i, ones[8], write,
				line);
}
SIMT_CALLED static simt_word simt_exchange(simt_word x, int l, simt_int line)
{
	struct simt_warp *w = simt_now;
	const int turn = w->turn;

	w->slot[turn][w->lane] = x;
	simt_meet(line, 0);
	return w->slot[turn][l & 31];
}

/* ---- what kernels call ---- */

#define KERNEL(name) static void name##_lane
#define LD(element) (simt_touch(&(element), sizeof(element), 0, __LINE__), (element))
#define ST(element, x) (simt_touch(&(element), sizeof(element), 1, __LINE__), (void)((element) = (x)))
#define SYNC() simt_meet(__LINE__, 1)
#define FAIL(err, n) (*(err) = (n))
#define any_lane(x) simt_any((x), __LINE__)
SIMT_USED static int simt_any(int x, simt_int line)
{
	int i, any = 0;

	for (i = 0; i < 32; i++) {
		/* each lane sees all others: their slots stay until the next meeting */
		any |= i == 0 ? (int)simt_exchange(x != 0, 0, line) :
				(int)simt_now->slot[simt_now->turn ^ 1][i];
	}
	return any;
}
SIMT_USED static int pick(int l, simt_word a, simt_word b, simt_word c, simt_word d)
{
	return (int)(((l < 16 ? l < 8 ? a : b : l < 24 ? c : d) >> 8 * (l & 7)) & 255);
}
#define SIMT_SHUFFLES(name, type) \
	SIMT_USED static type simt_shfl_##name(type x, int l, simt_int line) \
	{ \
		simt_word bits = 0; \
		__builtin_memcpy(&bits, &x, sizeof x); \
		bits = simt_exchange(bits, l, line); \
		__builtin_memcpy(&x, &bits, sizeof x); \
		return x; \
	} \
	SIMT_USED static type simt_both_##name(type x, type y, int l, int n, simt_int line) \
	{ \
		const type a = simt_shfl_##name(x, l & (n - 1), line); \
		const type b = simt_shfl_##name(y, l & (n - 1), line); \
		return l < n ? a : b; \
	}
SIMT_SHUFFLES(f32, float)
SIMT_SHUFFLES(f64, double)
SIMT_SHUFFLES(i8, __INT8_TYPE__)
SIMT_SHUFFLES(i16, __INT16_TYPE__)
SIMT_SHUFFLES(i32, __INT32_TYPE__)
SIMT_SHUFFLES(i64, __INT64_TYPE__)
SIMT_SHUFFLES(u8, __UINT8_TYPE__)
SIMT_SHUFFLES(u16, __UINT16_TYPE__)
SIMT_SHUFFLES(bool, int)
#define shfl_f32(x, l) simt_shfl_f32(x, l, __LINE__)
#define shfl_f64(x, l) simt_shfl_f64(x, l, __LINE__)
#define shfl_i8(x, l) simt_shfl_i8(x, l, __LINE__)
#define shfl_i16(x, l) simt_shfl_i16(x, l, __LINE__)
#define shfl_i32(x, l) simt_shfl_i32(x, l, __LINE__)
#define shfl_i64(x, l) simt_shfl_i64(x, l, __LINE__)
#define shfl_u8(x, l) simt_shfl_u8(x, l, __LINE__)
#define shfl_u16(x, l) simt_shfl_u16(x, l, __LINE__)
#define shfl_bool(x, l) simt_shfl_bool(x, l, __LINE__)
#define both_f32(x, y, l, n) simt_both_f32(x, y, l, n, __LINE__)
#define both_f64(x, y, l, n) simt_both_f64(x, y, l, n, __LINE__)
#define both_i8(x, y, l, n) simt_both_i8(x, y, l, n, __LINE__)
#define both_i16(x, y, l, n) simt_both_i16(x, y, l, n, __LINE__)
#define both_i32(x, y, l, n) simt_both_i32(x, y, l, n, __LINE__)
#define both_i64(x, y, l, n) simt_both_i64(x, y, l, n, __LINE__)
#define both_u8(x, y, l, n) simt_both_u8(x, y, l, n, __LINE__)
#define both_u16(x, y, l, n) simt_both_u16(x, y, l, n, __LINE__)
#define both_bool(x, y, l, n) simt_both_bool(x, y, l, n, __LINE__)
