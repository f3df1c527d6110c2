/*
 * A block of warps on the CPU. A warp is 32 fibers, which run one after another
 * until all of them have met at the same statement; the warps take turns, until
 * all have met at the same barrier. What they touch in between is noted twice:
 * by lanes since their warp has met, and by warps since the block has.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O1") /* most units run for less time than they compile */
#endif
typedef __INT64_TYPE__ simt_int;
typedef __UINT64_TYPE__ simt_word;
enum {
	SIMT_STACK = 16 << 10,
	SIMT_CELLS = 1 << 11,
	SIMT_BLOCK_CELLS = 1 << 13,
	SIMT_COPIES = 64, /* of one lane, under way */
	SIMT_BULKS = 16, /* copies in bulk, under way; groups of them */
	SIMT_BULK_GROUPS = 8,
	SIMT_BULK_MAP = 0x6b6c7562,
	SIMT_END = -1
};
/* What goes wrong: simt_failure() of simt.c says it in words. */
enum simt_what {
	SIMT_LANES_RACE,
	SIMT_LANES_PART,
	SIMT_WARPS_RACE,
	SIMT_WARPS_PART,
	SIMT_NO_WAIT,	 /* for a copy */
	SIMT_NEVER_WAIT, /* the kernel ends before its copies do */
	SIMT_MANY_COPIES,
	SIMT_BAD_COPY,
	SIMT_BAD_WIDE, /* an access of several elements is not aligned */
	SIMT_NO_FENCE, /* for instructions of several warps */
	SIMT_BAD_BULK, /* a copy in bulk */
	SIMT_WHATS
};
/* Why lanes meet: to show each other values, or what they have written, to
 * their warp or to all warps. */
enum simt_why { SIMT_SHOW, SIMT_WARP, SIMT_BLOCK };
struct simt_call {
	void *const *p;
	void *scratch, *local;
	simt_int chunk;
	simt_int *err;
};
/*
 * Who touched the eight bytes at address 8 * at since the last meeting: a byte
 * of writer and reader for each of them, lane + 1 or warp + 1; 0: none, 255:
 * several.
 */
struct simt_cell {
	simt_word at, epoch, writer, reader;
};
struct simt_copy {
	char *to;
	const char *from;
	unsigned n, group; /* bytes; committed before it */
	simt_int line;
};
/* A matrix, as the host describes it: bytes between rows, of an element; boxes of it. */
struct bulk_map {
	simt_word kind, base, columns, rows, step, box_columns, box_rows, size;
	simt_word unused[8];
} __attribute__((aligned(64)));
/* A copy in bulk: boxes beside each other from column x and row y on, `next` bytes apart
 * in the array. */
struct simt_bulk {
	struct simt_block *block;
	struct bulk_map map;
	char *to;
	simt_word next;
	int x, y, boxes;
	unsigned group; /* ended before it */
	simt_int line;
};
struct simt_warp {
	struct simt_block *block;
	struct simt_cell *cell;
	void *home, *stack[32]; /* stack pointers */
	simt_word slot[2][32];	/* what the lanes show each other, in turn */
	simt_word epoch;
	simt_int met[32];	/* lines where the lanes are; SIMT_END */
	struct simt_copy *copy; /* SIMT_COPIES of each lane */
	unsigned n_copies[32], group[32];
	int number, lane, turn, why;
	int step, left; /* to the next lane; lanes that have not met yet */
	/* by lane: it has copied to shared memory since its last fence */
	unsigned char copied[32];
	int products; /* instructions of several warps, since the last barrier */
};
struct simt_block {
	void (*fn)(const struct simt_call *);
	const struct simt_call *call;
	struct simt_warp *warp;
	struct simt_cell *cell, *shared_cell; /* hashed; of each word of shared */
	char *shared;
	unsigned char *under_way; /* 4 bytes of shared: a copy writes them */
	simt_word n_shared, epoch, random;
	simt_int failed; /* SIMT_WHATS * line + what + 1 */
	int n, late;
	struct simt_bulk bulk[SIMT_BULKS];
	int n_bulk;
	unsigned bulk_met; /* groups that the first thread has waited for */
	int unfenced; /* a copy had no fence in front of the last barrier */
};
_Static_assert(sizeof(struct simt_warp) <= 2048, "simt_memory of simt.c");
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
	const struct simt_warp *w = simt_now;

	return (struct simt_index){ (unsigned)(32 * w->number + w->lane) };
}
__attribute__((unused)) static struct simt_index simt_threads(void)
{
	return (struct simt_index){ (unsigned)(32 * simt_now->block->n) };
}
#define threadIdx simt_thread()
#define blockDim simt_threads()
__attribute__((unused)) static const struct simt_index blockIdx = { 0 }, gridDim = { 1 };

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
SIMT_CALLED static void simt_meet(simt_int line, int why)
{
	struct simt_warp *w = simt_now;
	const int lane = w->lane;

	w->met[lane] = line;
	w->why = why;
	if (--w->left == 0) {
		simt_switch(&w->stack[lane], w->home);
		return;
	}
	w->lane = (lane + w->step) & 31;
	simt_switch(&w->stack[lane], w->stack[w->lane]);
}
/* The first one counts, but a bad barrier may be why lanes race. */
static void simt_fail(struct simt_block *b, simt_int line, int what)
{
	if (b->failed == 0 || what == SIMT_LANES_PART || what == SIMT_WARPS_PART)
		b->failed = SIMT_WHATS * line + what + 1;
}
static void simt_start(void)
{
	struct simt_warp *w = simt_now;
	const int lane = w->lane;

	w->block->fn(w->block->call);
	if (w->n_copies[lane] > 0)
		simt_fail(w->block, w->copy[SIMT_COPIES * lane].line, SIMT_NEVER_WAIT);
	if (w->number == 0 && lane == 0 && w->block->n_bulk > 0)
		simt_fail(w->block, w->block->bulk[0].line, SIMT_NEVER_WAIT);
	simt_meet(SIMT_END, SIMT_BLOCK);
}
static unsigned simt_draw(struct simt_block *b, unsigned below)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return (unsigned)(b->random >> 33) % below;
}
/*
 * Each lane runs until it meets the others: from any of them, in steps that have
 * no divisor with 32 in common. Returns whether they met.
 */
static int simt_round(struct simt_warp *w)
{
	const int order = (int)simt_draw(w->block, 32 * 16);
	int i;

	w->lane = order % 32;
	w->step = 1 + order / 32 * 2;
	w->left = 32;
	simt_switch(&w->home, w->stack[w->lane]);
	for (i = 1; i < 32; i++)
		if (w->met[i] != w->met[0]) {
			simt_fail(w->block, w->met[0] > w->met[i] ? w->met[0] : w->met[i],
				SIMT_LANES_PART);
			return 0;
		}
	w->turn ^= 1;
	w->epoch += w->why == SIMT_WARP;
	return 1;
}
/* Four warps execute instructions together: equally many. Returns whether they have. */
static int simt_group_meets(struct simt_block *b, simt_int line)
{
	int i, j;

	b->unfenced = 0;
	for (i = 0; i < b->n; i++) {
		struct simt_warp *w = &b->warp[i];

		if (w->products != b->warp[i / 4 * 4].products) {
			simt_fail(b, line, SIMT_WARPS_PART);
			return 0;
		}
		for (j = 0; j < 32; j++)
			b->unfenced |= w->copied[j];
	}
	for (i = 0; i < b->n; i++)
		b->warp[i].products = 0;
	return 1;
}
/* All warps wait for each other. Returns whether they go on. */
static int simt_barrier(struct simt_block *b)
{
	const simt_int met = b->warp[0].met[0];
	int i;

	for (i = 0; i < b->n; i++) {
		const simt_int other = b->warp[i].met[0];
		if (other != met) {
			simt_fail(b, met > other ? met : other, SIMT_WARPS_PART);
			return 0;
		}
		b->warp[i].why = SIMT_SHOW;
		b->warp[i].epoch++;
	}
	if (!simt_group_meets(b, met))
		return 0;
	b->epoch++;
	return met != SIMT_END;
}
/* A warp that does not wait; NULL: all do. */
static struct simt_warp *simt_next(struct simt_block *b)
{
	int from = b->n > 1 ? (int)simt_draw(b, (unsigned)b->n) : 0, i;

	for (i = 0; i < b->n; i++, from++) {
		if (from == b->n)
			from = 0;
		if (b->warp[from].why != SIMT_BLOCK)
			return &b->warp[from];
	}
	return (struct simt_warp *)0;
}
/* Takes n bytes of *memory, which has them: simt_memory of simt.c. */
static void *simt_take(char **memory, simt_word n)
{
	char *p = *memory;

	*memory += n;
	return p;
}
static void simt_open(struct simt_warp *w, char *stacks)
{
	int i, j;

	w->epoch = 1;
	/* what another kernel has left there is not of this one */
	__builtin_memset(w->cell, 0, SIMT_CELLS * sizeof *w->cell);
	for (i = 0; i < 32; i++) {
		/* not all in the same lines of the cache */
		void **top = (void **)(stacks + (i + 1) * SIMT_STACK - i * 64) -
			SIMT_FRAME;
		for (j = 0; j < SIMT_SAVED; j++)
			top[j] = 0;
		top[SIMT_RETURN] = (void *)simt_start;
		w->stack[i] = top;
		*(struct simt_warp **)(stacks + i * SIMT_STACK) = w;
	}
}
#ifndef SIMT_LATE
#define SIMT_LATE simt_draw(&b, 2)
#endif
/* One chunk by a block of so many warps, which have so much memory together. */
SIMT_USED static void simt_run_block(void (*fn)(const struct simt_call *),
	const struct simt_call *call, char *memory, int warps, simt_word shared)
{
	struct simt_block b = { 0 };
	struct simt_warp *w;
	char *stacks;
	int i;

	memory += -(simt_word)memory % SIMT_STACK;
	stacks = simt_take(&memory, (simt_word)warps * 32 * SIMT_STACK);
	b.fn = fn;
	b.call = call;
	b.n = warps;
	b.n_shared = shared;
	b.epoch = 1;
	b.random = 0x9e3779b97f4a7c15u * (simt_word)(call->chunk + 1);
	b.late = (int)SIMT_LATE;
	b.warp = simt_take(&memory, (simt_word)warps * 2048);
	__builtin_memset(b.warp, 0, (simt_word)warps * sizeof *b.warp);
	for (i = 0; i < warps; i++) {
		w = &b.warp[i];
		w->block = &b;
		w->number = i;
		w->cell = simt_take(&memory, SIMT_CELLS * sizeof *w->cell);
		simt_open(w, stacks + i * 32 * SIMT_STACK);
	}
	if (warps > 1) {
		b.cell = simt_take(&memory, SIMT_BLOCK_CELLS * sizeof *b.cell);
		__builtin_memset(b.cell, 0, SIMT_BLOCK_CELLS * sizeof *b.cell);
	}
	if (shared > 0) {
		simt_word words = (shared + 7) / 8;
		b.shared = simt_take(&memory, (shared + 63) / 64 * 64);
		__builtin_memset(b.shared, 255, shared); /* NaN: nothing was written */
		b.shared_cell = simt_take(&memory, words * sizeof *b.cell);
		__builtin_memset(b.shared_cell, 0, words * sizeof *b.cell);
		for (i = 0; i < warps; i++)
			b.warp[i].copy = simt_take(
				&memory, 32 * SIMT_COPIES * sizeof(struct simt_copy));
		b.under_way = simt_take(&memory, 2 * words);
		__builtin_memset(b.under_way, 0, 2 * words);
	}
	do
		while ((w = simt_next(&b)) != 0)
			if (!simt_round(w))
				goto end;
	while (simt_barrier(&b));
end:
	if (b.failed != 0)
		*call->err = -b.failed;
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
/* Notes an access by `me`. Returns whether it conflicts with that of another. */
static inline int simt_note(struct simt_cell *c, simt_word at, simt_word epoch,
	simt_word mask, simt_word me, int write)
{
	simt_word writer, reader;
	int bad;

	if (c->at != at || c->epoch != epoch) {
		c->at = at;
		c->epoch = epoch;
		c->writer = c->reader = 0;
	}
	writer = c->writer & mask;
	reader = c->reader & mask;
	bad = writer != 0 && writer != me && simt_others(writer, me) != 0;
	if (write) {
		bad |= reader != 0 && reader != me && simt_others(reader, me) != 0;
		c->writer = (c->writer & ~mask) | me;
	} else if (reader == 0) {
		c->reader |= me;
	} else if (reader != mask && reader != me) {
		c->reader |= me | simt_others(reader, me);
	}
	return bad;
}
/* For the warps of a block, and what a copy has not written yet. */
SIMT_CALLED static void simt_touch_block(struct simt_warp *w, simt_word p,
	simt_word here, int write, simt_int line)
{
	struct simt_block *b = w->block;
	const simt_word at = p / 8, in = p - (simt_word)b->shared;
	const int is_shared = in < b->n_shared;
	struct simt_cell *c = is_shared ? &b->shared_cell[in / 8]
					: &b->cell[(at ^ at >> 13) % SIMT_BLOCK_CELLS];

	if (is_shared &&
		((here & 0xffffffff && b->under_way[in / 8 * 2]) ||
			(here >> 32 && b->under_way[in / 8 * 2 + 1])))
		simt_fail(b, line, SIMT_NO_WAIT);
	if (b->n > 1 && simt_note(c, at, b->epoch, here * 255,
				here * (simt_word)(w->number + 1), write))
		simt_fail(b, line, SIMT_WARPS_RACE);
}
/* Access of the bytes at p that ones stands for: 1 for the first, 256 for the
 * second .., in one word. */
SIMT_CALLED static void simt_touch_word(
	const volatile void *p, simt_word ones, int write, simt_int line)
{
	struct simt_warp *w = simt_now;
	const simt_word at = (simt_word)p / 8, here = ones << (simt_word)p % 8 * 8;

	if (simt_note(&w->cell[(at ^ at >> 11) % SIMT_CELLS], at, w->epoch, here * 255,
		    here * (simt_word)(w->lane + 1), write))
		simt_fail(w->block, line, SIMT_LANES_RACE);
	if (w->block->n > 1 || w->block->n_shared > 0)
		simt_touch_block(w, (simt_word)p, here, write, line);
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
/* Several elements: at once if wide. */
SIMT_CALLED static void simt_touch_wide(const volatile void *p, unsigned long size,
	int n, int wide, int write, simt_int line)
{
	int i;

	if (wide && (simt_word)p % (size * (unsigned)n) != 0)
		simt_fail(simt_now->block, line, SIMT_BAD_WIDE);
	for (i = 0; i < n; i++)
		simt_touch((const volatile char *)p + (unsigned)i * size, size, write,
			line);
}
SIMT_CALLED static simt_word simt_exchange(simt_word x, int l, simt_int line)
{
	struct simt_warp *w = simt_now;
	const int turn = w->turn;

	w->slot[turn][w->lane] = x;
	simt_meet(line, SIMT_SHOW);
	return w->slot[turn][l & 31];
}

/* ---- what kernels call ---- */

#define KERNEL(name) static void name##_lane
#define LD(element) (simt_touch(&(element), sizeof(element), 0, __LINE__), (element))
#define ST(element, x) (simt_touch(&(element), sizeof(element), 1, __LINE__), (void)((element) = (x)))
#define ALIGNED(array) ((simt_word)(array) % 16 == 0)
#define SIMT_WIDE(wide, e, n, write) simt_touch_wide(&(e), sizeof(e), n, (wide), write, __LINE__)
#define LD2(wide, e, a, b) \
	(SIMT_WIDE(wide, e, 2, 0), (a) = (&(e))[0], (b) = (&(e))[1])
#define LD4(wide, e, a, b, c, d) \
	(SIMT_WIDE(wide, e, 4, 0), (a) = (&(e))[0], (b) = (&(e))[1], (c) = (&(e))[2], \
		(d) = (&(e))[3])
#define LD8(wide, e, a, b, c, d, f, g, h, i) \
	(SIMT_WIDE(wide, e, 8, 0), (a) = (&(e))[0], (b) = (&(e))[1], (c) = (&(e))[2], \
		(d) = (&(e))[3], (f) = (&(e))[4], (g) = (&(e))[5], (h) = (&(e))[6], \
		(i) = (&(e))[7])
#define ST2(wide, e, a, b) \
	(SIMT_WIDE(wide, e, 2, 1), (&(e))[0] = (a), (&(e))[1] = (b))
#define ST4(wide, e, a, b, c, d) \
	(SIMT_WIDE(wide, e, 4, 1), (&(e))[0] = (a), (&(e))[1] = (b), (&(e))[2] = (c), \
		(&(e))[3] = (d))
#define ST8(wide, e, a, b, c, d, f, g, h, i) \
	(SIMT_WIDE(wide, e, 8, 1), (&(e))[0] = (a), (&(e))[1] = (b), (&(e))[2] = (c), \
		(&(e))[3] = (d), (&(e))[4] = (f), (&(e))[5] = (g), (&(e))[6] = (h), \
		(&(e))[7] = (i))
SIMT_USED static unsigned simt_bits(float x)
{
	unsigned b;
	__builtin_memcpy(&b, &x, sizeof b);
	return b;
}
SIMT_USED static float simt_of_bits(unsigned b)
{
	float x;
	__builtin_memcpy(&x, &b, sizeof x);
	return x;
}
/* To nearest, ties to even; NaN is quiet, and keeps what there is room for. */
SIMT_USED static __UINT16_TYPE__ to_bf16(float x)
{
	const unsigned b = simt_bits(x), up = ((b & 0xffff) + (b >> 16 & 1) + 0x7fff) >> 16;
	return (__UINT16_TYPE__)(x == x ? (b >> 16) + up : b >> 16 | 0x40);
}
SIMT_USED static float from_bf16(unsigned h)
{
	return simt_of_bits(h << 16);
}
SIMT_USED static __UINT16_TYPE__ to_f16(float x)
{
	const unsigned b = simt_bits(x), a = b & 0x7fffffff, sign = b >> 16 & 0x8000;
	unsigned r = (a + 0xfff + (a >> 13 & 1) - (112u << 23)) >> 13;
	if (a < 0x38800000) /* 0.5 has a unit of 2^-24, as subnormal numbers have */
		r = simt_bits(simt_of_bits(a) + 0.5f) - 0x3f000000;
	if (a >= 0x477ff000)
		r = 0x7c00;
	if (x != x)
		r = (a >> 13 & 0x3ff) | 0x7e00;
	return (__UINT16_TYPE__)(r | sign);
}
SIMT_USED static float from_f16(unsigned h)
{
	const unsigned a = h & 0x7fff, sign = (h & 0x8000) << 16;
	if (a < 0x400)
		return simt_of_bits(simt_bits((float)(int)a * 0x1p-24f) | sign);
	return simt_of_bits(a < 0x7c00	 ? ((a << 13) + (112u << 23)) | sign
			    : a > 0x7c00 ? a << 13 | 0x7fc00000 | sign
					 : 0x7f800000 | sign);
}
#define SYNC() simt_meet(__LINE__, SIMT_WARP)
#define BLOCK_SYNC() simt_meet(__LINE__, SIMT_BLOCK)
#define SHARED() (simt_now->block->shared)
#define FAIL(err, n) (*(err) = (n))
/*
 * Copies from global to shared memory of which the lane does not see the end:
 * of 4, 8 or 16 bytes. COPY_WAIT(n) waits for those of all groups that the lane
 * has committed, but the last n. A copy reads and writes at some time from its
 * start until then: late, and until then NaN is there; or early, so that nobody
 * finds what was there before. Both its ends count as accesses of the lane.
 */
#define COPY_ASYNC(to, from, n) simt_copy_async((to), (from), (n), __LINE__)
#define COPY_COMMIT() ((void)simt_now->group[simt_now->lane]++)
#define COPY_WAIT(n) simt_copy_wait(n)
SIMT_CALLED static void simt_copy_async(
	void *to, const void *from, unsigned n, simt_int line)
{
	struct simt_warp *w = simt_now;
	struct simt_block *b = w->block;
	struct simt_copy *c = w->copy + SIMT_COPIES * w->lane + w->n_copies[w->lane];
	const simt_word in = (simt_word)to - (simt_word)b->shared;

	if (w->n_copies[w->lane] == SIMT_COPIES) {
		simt_fail(b, line, SIMT_MANY_COPIES);
		return;
	}
	if ((n != 4 && n != 8 && n != 16) || ((simt_word)to | (simt_word)from) % n != 0 ||
		in >= b->n_shared || b->n_shared - in < n) {
		simt_fail(b, line, SIMT_BAD_COPY);
		return;
	}
	w->n_copies[w->lane]++;
	w->copied[w->lane] = 1;
	*c = (struct simt_copy){ (char *)to, (const char *)from, n,
		w->group[w->lane], line };
	simt_touch(from, n, 0, line);
	simt_touch(to, n, 1, line);
	__builtin_memset(b->under_way + in / 4, 1, n / 4);
	if (b->late)
		__builtin_memset(to, 255, n);
	else
		__builtin_memcpy(to, from, n);
}
static void simt_copy_end(struct simt_block *b, const struct simt_copy *c)
{
	__builtin_memset(b->under_way + (c->to - b->shared) / 4, 0, c->n / 4);
	if (b->late)
		__builtin_memcpy(c->to, c->from, c->n);
	simt_touch(c->from, c->n, 0, c->line);
	simt_touch(c->to, c->n, 1, c->line);
}
SIMT_CALLED static void simt_copy_wait(int n)
{
	struct simt_warp *w = simt_now;
	struct simt_copy *c = w->copy + SIMT_COPIES * w->lane;
	int i, left = 0;

	for (i = 0; i < (int)w->n_copies[w->lane]; i++)
		if (w->group[w->lane] - c[i].group > (unsigned)n)
			simt_copy_end(w->block, &c[i]);
		else
			c[left++] = c[i];
	w->n_copies[w->lane] = (unsigned)left;
}
/* Rows of elements, 16 bytes at a time if they begin at such multiples. */
#define COPY_ROWS(wide, to, n, from, m, rows, width) \
	simt_copy_rows((wide), (to), (n) * (simt_int)sizeof *(to), (from), \
		(m) * (simt_int)sizeof *(to), (rows), \
		(width) * (simt_int)sizeof *(to), __LINE__)
SIMT_CALLED static void simt_copy_rows(int wide, void *to, simt_int n,
	const void *from, simt_int m, simt_int rows, simt_int width, simt_int line)
{
	const simt_int each = wide ? 16 : 1, row = width / each;
	simt_int i;

	for (i = simt_now->lane; i < rows * row; i += 32) {
		char *p = (char *)to + n * (i / row) + i % row * each;
		const char *q = (const char *)from + m * (i / row) + i % row * each;

		if (wide) {
			simt_copy_async(p, q, 16, line);
			continue;
		}
		simt_touch(q, 1, 0, line);
		simt_touch(p, 1, 1, line);
		*p = *q;
	}
}
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
SIMT_SHUFFLES(u32, __UINT32_TYPE__)
SIMT_SHUFFLES(u64, __UINT64_TYPE__)
SIMT_SHUFFLES(bool, int)
#define shfl_f32(x, l) simt_shfl_f32(x, l, __LINE__)
#define shfl_f64(x, l) simt_shfl_f64(x, l, __LINE__)
#define shfl_i8(x, l) simt_shfl_i8(x, l, __LINE__)
#define shfl_i16(x, l) simt_shfl_i16(x, l, __LINE__)
#define shfl_i32(x, l) simt_shfl_i32(x, l, __LINE__)
#define shfl_i64(x, l) simt_shfl_i64(x, l, __LINE__)
#define shfl_u8(x, l) simt_shfl_u8(x, l, __LINE__)
#define shfl_u16(x, l) simt_shfl_u16(x, l, __LINE__)
#define shfl_u32(x, l) simt_shfl_u32(x, l, __LINE__)
#define shfl_u64(x, l) simt_shfl_u64(x, l, __LINE__)
#define shfl_bool(x, l) simt_shfl_bool(x, l, __LINE__)
#define both_f32(x, y, l, n) simt_both_f32(x, y, l, n, __LINE__)
#define both_f64(x, y, l, n) simt_both_f64(x, y, l, n, __LINE__)
#define both_i8(x, y, l, n) simt_both_i8(x, y, l, n, __LINE__)
#define both_i16(x, y, l, n) simt_both_i16(x, y, l, n, __LINE__)
#define both_i32(x, y, l, n) simt_both_i32(x, y, l, n, __LINE__)
#define both_i64(x, y, l, n) simt_both_i64(x, y, l, n, __LINE__)
#define both_u8(x, y, l, n) simt_both_u8(x, y, l, n, __LINE__)
#define both_u16(x, y, l, n) simt_both_u16(x, y, l, n, __LINE__)
#define both_u32(x, y, l, n) simt_both_u32(x, y, l, n, __LINE__)
#define both_u64(x, y, l, n) simt_both_u64(x, y, l, n, __LINE__)
#define both_bool(x, y, l, n) simt_both_bool(x, y, l, n, __LINE__)
