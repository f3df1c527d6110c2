/*
 * pack.c: the constants of an exported program, one block of bytes.
 *
 *   0   "TNEXPORT"              8   version of this header
 *   12  bytes of a vector       16  bytes of the whole block
 *   24  id: of the constants and of what they were made for
 *   32  sum of the 64-bit words from byte 64 on, see NAME_check_weights
 *   64  constants, each at a multiple of 64
 *
 * All numbers have the byte order of a little-endian machine. Copies are made by
 * the kernels themselves, which are compiled for this machine. What is no copy is
 * not copied: the block is a list of pieces, which are where they were.
 */
#include "export/local.h"

#include "base/sha256.h"
#include "run/run.h"

#include <inttypes.h>

typedef void kernel_fn(void *const *p, void *scratch, void *local,
	int64_t chunk, int64_t *err);

static void put(uint8_t *to, uint64_t v, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		to[i] = (uint8_t)(v >> 8 * i);
}

/* Written so that compilers make one load of it. */
static uint64_t get(const uint8_t *b)
{
	return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 |
		(uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 |
		(uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 |
		(uint64_t)b[7] << 56;
}

/* ---- copies ---- */

/* The kernels that copy constants. */
static void compile_packers(export_net *x)
{
	const c_kernel **k = NULL;
	int32_t n = 0, room = 0;
	str text = str_new(x->a);

	for (int32_t i = 0; i < x->plan.n; i++)
		room += x->plan.at[i]->p->launch.n;
	k = arena_array(x->a, const c_kernel *, room + 1);
	for (int32_t i = 0; i < x->plan.n; i++)
		for (int32_t j = 0; j < x->plan.at[i]->p->launch.n; j++)
			if (x->plan.at[i]->launch[j].packed != 0)
				k[n++] = x->plan.at[i]->p->launch.at[j].code;
	if (n == 0)
		return;
	str_add(&text, "#define KERNEL\n");
	x->main->p->target->unit(&text, k, n);
	x->job->jit.compile(x->job->jit.arg, text.at);
}

static const void *data_of(const xplan *n, int32_t tensor)
{
	const plan_location *at = &n->p->location[tensor];

	return at->where == PLAN_INPUT && n->data != NULL
		? n->data[at->number]
		: NULL;
}

/* Where a phase writes what the block has at this byte. */
static void *made_at(const export_net *x, size_t at)
{
	for (int32_t i = 0; i < x->constant.n; i++) {
		const constant *c = &x->constant.at[i];

		if (c->at == at && c->data == NULL)
			return c->made;
	}
	return NULL;
}

static void pack_launch(export_net *x, const xplan *n, int32_t i)
{
	const plan_launch *l = &n->p->launch.at[i];
	const c_kernel *k = l->code;
	const xlaunch *at = &n->launch[i];
	void **p = arena_array(x->a, void *, k->n_params + k->n_cells + 1);
	void *local = arena_alloc(x->a, k->local_bytes + 64, 1);
	int64_t err = 0;

	local = (void *)(((uintptr_t)local + 63) & ~(uintptr_t)63);
	for (int32_t c = 0; c < k->n_cells; c++)
		p[k->n_params + c] = at->cell[c].kind == AT_WEIGHTS
			? made_at(x, at->cell[c].at)
			: NULL;
	for (int32_t f = 0; f < k->n_phases; f++) {
		kernel_fn *fn;

		if ((at->packed >> f & 1) == 0)
			continue;
		/* a kernel takes inputs as const, and only reads them */
		for (int32_t j = 0; j < k->n_params; j++)
			p[j] = k->phase[f].uses[j]
				? (void *)(uintptr_t)data_of(n, l->tensor[j])
				: NULL;
		x->job->jit.find(x->job->jit.arg, k->phase[f].fn, &fn);
		for (int64_t c = 0; c < k->phase[f].n_chunks; c++)
			fn(p, NULL, local, c, &err);
	}
}

/* ---- the block ---- */

/* A constant, and zeros up to the next one. */
static void add_constant(export_net *x, const constant *c)
{
	const uint8_t *data = c->data != NULL ? c->data : c->made;
	size_t whole = c->bytes / EXPORT_ALIGN * EXPORT_ALIGN;

	if (whole > 0)
		*vec_push(x->a, &x->weights) = (export_piece){data, whole};
	if (whole < c->bytes) {
		uint8_t *end = arena_array(x->a, uint8_t, EXPORT_ALIGN);

		memcpy(end, data + whole, c->bytes - whole);
		*vec_push(x->a, &x->weights) =
			(export_piece){end, EXPORT_ALIGN};
	}
}

/* Of what is behind the header. */
static uint64_t sum_of(const export_net *x)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	/* the shift: else high bits of two words could cancel each other */
	for (int32_t i = 1; i < x->weights.n; i++) {
		const export_piece *p = &x->weights.at[i];

		for (size_t k = 0; k < p->n_bytes; k += 8) {
			sum = (sum ^ get((const uint8_t *)p->data + k)) *
				UINT64_C(0x100000001b3);
			sum ^= sum >> 32;
		}
	}
	return sum;
}

/* Of the constants, by their sum, and of the kernels that read them. */
static uint64_t id_of(const export_net *x, uint64_t sum)
{
	uint8_t digest[HASH_BYTES], b[8];
	sha256 h;

	put(b, sum, 8);
	sha256_start(&h);
	sha256_add_str(&h, export_machines(x));
	sha256_add_str(&h, x->code);
	sha256_add(&h, b, sizeof b);
	sha256_end(&h, digest);
	return get(digest);
}

static void make_copies(export_net *x)
{
	size_t bytes = 0;
	uint8_t *to;

	for (int32_t i = 0; i < x->constant.n; i++)
		if (x->constant.at[i].data == NULL)
			bytes += export_up(x->constant.at[i].bytes);
	to = run_slab(x->a, bytes);
	for (int32_t i = 0; i < x->constant.n; i++) {
		constant *c = &x->constant.at[i];

		if (c->data != NULL)
			continue;
		c->made = to;
		to += export_up(c->bytes);
	}
	compile_packers(x);
	for (int32_t i = 0; i < x->plan.n; i++)
		for (int32_t j = 0; j < x->plan.at[i]->p->launch.n; j++)
			if (x->plan.at[i]->launch[j].packed != 0)
				pack_launch(x, x->plan.at[i], j);
}

void export_pack(export_net *x)
{
	uint8_t *header = arena_array(x->a, uint8_t, EXPORT_HEADER);
	uint64_t sum = 0;

	make_copies(x);
	if (x->weights_bytes > 0) {
		*vec_push(x->a, &x->weights) =
			(export_piece){header, EXPORT_HEADER};
		for (int32_t i = 0; i < x->constant.n; i++)
			add_constant(x, &x->constant.at[i]);
		sum = sum_of(x);
	}
	x->id = id_of(x, sum);
	memcpy(header, "TNEXPORT", 8);
	put(header + 8, EXPORT_VERSION, 4);
	put(header + 12, (uint64_t)x->job->vector_bytes, 4);
	put(header + 16, x->weights_bytes, 8);
	put(header + 24, x->id, 8);
	put(header + 32, sum, 8);
}
