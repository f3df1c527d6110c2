/*
 * print.c: prints what one thread of a warp does, as CUDA C.
 *
 * Statements, names and instructions of one lane are those of target/c. Here is
 * what vectors add: where the lanes are in memory, and the instructions with
 * which lanes read each other's values. Those are executed by all threads of
 * the warp, so none stands in a condition of a single thread.
 */
#include "target/cuda/local.h"

#include <inttypes.h>

static const spread *spread_of(const printer *p)
{
	return p->more;
}

static kern_type wide_type(const printer *p, kern_val v)
{
	return kern_at(spread_of(p)->wide, v)->type;
}

static const char *name(printer *p, kern_val v)
{
	for (int32_t i = 1; i < SPREAD_LANES; i++)
		if (spread_of(p)->lane[i] == v)
			return arena_printf(p->a, "lane%d", 1 << i);
	return NULL;
}

static const char *element(printer *p, const kern_access *at, int32_t lanes)
{
	kern_access one = spread_access(spread_of(p), at, lanes);

	return c_element(p, &one);
}

/* Is the array registers of each thread? */
static bool is_own(const printer *p, int32_t array)
{
	return spread_of(p)->cells[array] > 0;
}

static const char *own_cell(printer *p, const kern_access *at)
{
	return spread_own_cell(p, spread_of(p), at);
}

/* ---- instructions ---- */

/* The type in the names of functions that hand such values around. */
static const char *shown(printer *p, kern_val v)
{
	kern_type t = wide_type(p, v);

	return t.dt == TN_BOOL ? "bool" : c_stored_type(p, t.dt);
}

/* list[lane] modulo mask + 1, a power of two; the list has 32 integers at most */
static const char *picked(
	printer *p, const int64_t *list, int32_t n, int64_t mask)
{
	const char *l = cuda_lane(p, n);
	int64_t step = (list[1] - list[0]) & mask;
	uint64_t word[4] = {0};
	int32_t i = 1;

	while (i < n && ((list[0] + i * step) & mask) == (list[i] & mask))
		i++;
	if (i == n && step == 0)
		return arena_printf(p->a, "%" PRId64, list[0]);
	if (i == n)
		return arena_printf(p->a,
			"((%" PRId64 " + %" PRId64 " * (int)%s) & %" PRId64 ")",
			list[0], step, l, mask);
	for (i = 1; i < n && list[i] == (i ^ list[0]);)
		i++;
	if (i == n)
		return arena_printf(p->a, "((int)%s ^ %" PRId64 ")", l, list[0]);
	for (i = 0; i < n; i++)
		word[i / 8] |= (uint64_t)(list[i] & 0xff) << i % 8 * 8;
	return arena_printf(p->a,
		"pick((int)%s, 0x%" PRIx64 "ull, 0x%" PRIx64 "ull, 0x%" PRIx64
		"ull, 0x%" PRIx64 "ull)",
		l, word[0], word[1], word[2], word[3]);
}

static const char *shuffle(printer *p, kern_val id)
{
	const kern_value *v = kern_at(p->k, id);
	int32_t n = wide_type(p, v->arg[0]).lanes, to = wide_type(p, id).lanes;
	const char *t = shown(p, v->arg[0]);
	const char *x = c_name(p, v->arg[0]), *y = c_name(p, v->arg[1]);
	const char *from;
	bool first = true, second = true;

	for (int32_t i = 0; i < to; i++) {
		first &= v->list[i] < n;
		second &= v->list[i] >= n;
	}
	from = to > 1 ? picked(p, v->list, to, first ? n - 1 : 2 * n - 1)
		      : arena_printf(p->a, "%" PRId64, v->list[0]);
	if (first)
		return arena_printf(p->a, "shfl_%s(%s, %s)", t, x, from);
	if (second)
		return arena_printf(
			p->a, "shfl_%s(%s, %s - %d)", t, y, from, n);
	return arena_printf(
		p->a, "both_%s(%s, %s, %s, %d)", t, x, y, from, n);
}

/* The difference of neighbours, if all n >= 2 have the same one; 0: no. */
static int64_t even_step(const int64_t *list, int32_t n)
{
	int64_t most = INT64_C(1) << 40, step = 0;

	for (int32_t i = 0; i < n; i++) {
		if (list[i] < -most || list[i] > most)
			return 0;
		if (i == 1)
			step = list[1] - list[0];
		if (i > 1 && list[i] - list[i - 1] != step)
			return 0;
	}
	return step;
}

/* Constant lanes, in lines of their own. */
static void lanes(printer *p, kern_val id)
{
	const kern_value *v = kern_at(p->k, id);
	const char *t = c_type(p, v->type), *x = c_name(p, id);
	int32_t n = wide_type(p, id).lanes;
	int64_t step = n > 1 ? even_step(v->list, n) : 0;

	if (step != 0) {
		c_line(p, "const %s %s = (%s)(%" PRId64 " + %" PRId64 " * %s);",
			t, x, t, v->list[0], step, cuda_lane(p, n));
		return;
	}
	c_line(p, "%s %s = (%s)%" PRId64 ";", t, x, t, v->list[0]);
	for (int32_t i = 1; i < n; i++)
		if (v->list[i] != v->list[i - 1])
			c_line(p, "%s = %s >= %d ? (%s)%" PRId64 " : %s;", x,
				cuda_lane(p, n), i, t, v->list[i], x);
}

static const char *load(printer *p, kern_val id)
{
	const kern_value *v = kern_at(p->k, id);
	int32_t n = wide_type(p, id).lanes;
	str s = str_new(p->a);

	if (v->at.mask != 0)
		str_printf(&s, "%s", c_name(p, v->at.mask));
	if (n > 1 && v->at.part > 0)
		str_printf(&s, "%s%s < %d", s.n > 0 ? " && " : "", cuda_lane(p, n),
			v->at.part);
	if (s.n > 0)
		str_add(&s, " ? ");
	if (is_own(p, v->at.array))
		str_add(&s, own_cell(p, &v->at));
	else
		str_printf(&s, "LD(%s)", element(p, &v->at, n));
	if (v->at.mask != 0 || (n > 1 && v->at.part > 0))
		str_add(&s, " : 0");
	return s.at;
}

/* x as memory has it, if an instruction makes that of it; else NULL */
static const char *narrowed(printer *p, const char *x, tn_dtype to)
{
	return to == TN_BF16  ? arena_printf(p->a, "to_bf16(%s)", x)
	       : to == TN_F16 ? arena_printf(p->a, "to_f16(%s)", x)
			      : NULL;
}

/* Conversions that the GPU has; NULL: those of C */
static const char *converted(printer *p, const kern_value *v)
{
	const char *x;

	if (v->op == KERN_NARROW)
		return narrowed(p, c_name(p, v->arg[0]), v->type.dt);
	if (v->op == KERN_WIDEN &&
		kern_at(p->k, v->arg[0])->type.dt == TN_F16)
		return arena_printf(
			p->a, "from_f16(%s)", c_name(p, v->arg[0]));
	if (v->op != KERN_ROUND)
		return NULL;
	x = narrowed(p, c_name(p, v->arg[0]), v->dt);
	return x == NULL ? NULL
	       : v->dt == TN_F16
		       ? arena_printf(p->a, "from_f16(%s)", x)
		       : arena_printf(p->a, "from_bf16(%s)", x);
}

static const char *value(printer *p, kern_val id)
{
	const kern_value *v = kern_at(p->k, id);
	const char *x = converted(p, v);

	if (x != NULL)
		return x;

	if (v->op == KERN_LOAD)
		return load(p, id);
	if (v->op == KERN_SPLAT)
		return c_name(p, v->arg[0]);
	if (v->op == KERN_SHUFFLE)
		return shuffle(p, id);
	if (v->op == KERN_LANE && spread_own(spread_of(p), v->form[0]) != NULL)
		return c_name(p, v->arg[0]); /* of this thread */
	if (v->op == KERN_LANE)
		return arena_printf(p->a, "shfl_%s(%s, (int)(%s))",
			shown(p, v->arg[0]), c_name(p, v->arg[0]),
			c_form(p, v->form[0]));
	if (v->op == KERN_ANY && wide_type(p, v->arg[0]).lanes > 1)
		return arena_printf(
			p->a, "any_lane(%s)", c_name(p, v->arg[0]));
	return c_value(p, id);
}

static bool let(printer *p, kern_val v)
{
	const kern_value *x = kern_at(p->k, v);

	if (spread_of(p)->idle[v])
		return true;
	if (x->op == KERN_CHECK)
		c_checked(p, v,
			arena_printf(p->a, "FAIL(err, %" PRId64 ");",
				x->num[0]));
	else if (x->op == KERN_LANES)
		lanes(p, v);
	else
		return false;
	return true;
}

/* ---- statements ---- */

static void before(printer *p, const kern_stmt *s)
{
	if (spread_has_sync(spread_of(p), s, SYNC_READ))
		c_line(p, "SYNC();");
}

/* The name of an operand, which all threads have computed. */
static const char *computed(printer *p, kern_val v)
{
	bool known = c_is_named(p, v);
	const char *x = c_taken(p, v);

	if (!known && !c_is_named(p, v)) {
		p->is_let[v] = true;
		c_line(p, "const %s %s = %s;", c_type_of(p, v), c_name(p, v), x);
	}
	return c_name(p, v);
}

/* The threads that write a vector of n lanes; NULL: all of them that are here. */
static const char *writers(
	printer *p, const kern_access *at, int32_t n, int32_t part)
{
	const kern_stmt *own = spread_own(spread_of(p), at->at);

	if (own != NULL)
		n = spread_by_lane(spread_of(p), own) < CUDA_WARP
			    ? (int32_t)own->hi->c0
			    : CUDA_WARP;
	if (n > 1 && part > 0)
		n = part;
	return n < CUDA_WARP ? arena_printf(p->a, "%s < %d",
				       cuda_lane(p, CUDA_WARP), n)
			     : NULL;
}

static void store(printer *p, const kern_stmt *s)
{
	int32_t n = wide_type(p, s->x).lanes;
	const char *who = writers(p, &s->at, n, s->at.part);
	const char *x = computed(p, s->x);

	if (spread_has_sync(spread_of(p), s, SYNC_WRITE))
		c_line(p, "SYNC();");
	if (who != NULL)
		c_line(p, "if (%s)", who);
	if (is_own(p, s->at.array)) {
		c_line(p, "%s%s = %s;", who != NULL ? "\t" : "",
			own_cell(p, &s->at), x);
		return;
	}
	c_line(p, "%sST(%s, %s);", who != NULL ? "\t" : "",
		element(p, &s->at, n), x);
}

static char letter_of(kern_space s)
{
	static const char letter[] = {[KERN_PARAM] = 'p',
		[KERN_SCRATCH] = 'q',
		[KERN_LOCAL] = 'b',
		[KERN_STACK] = 's'};

	return letter[s];
}

/* The name of the condition that accesses of several elements are aligned. */
static const char *is_aligned(printer *p, int32_t array)
{
	const kern_array *r = &p->k->array.at[array];

	return arena_printf(
		p->a, "wide_%c%d", letter_of(r->space), r->number);
}

static void own_together(printer *p, kern_stmt *const *list, int32_t n)
{
	for (int32_t i = 0; i < n; i++) {
		const kern_stmt *s = list[i];

		if (s->kind == KERN_STORE)
			c_line(p, "%s = %s;", own_cell(p, &s->at),
				c_name(p, s->x));
		else
			c_line(p, "%s = %s;", c_name(p, s->v),
				own_cell(p, &kern_at(p->k, s->v)->at));
	}
}

/* Neighbours of this lane, at once. */
static void together(printer *p, kern_stmt *const *list)
{
	const kern_stmt *first = list[0];
	bool store = first->kind == KERN_STORE, sync = false;
	const kern_access *at = store ? &first->at
				      : &kern_at(p->k, first->v)->at;
	int32_t n = wide_type(p, store ? first->x : first->v).lanes;
	const char *who = store ? writers(p, at, n, 0) : NULL;
	str names = str_new(p->a);

	for (int32_t i = 0; i < first->together; i++) {
		const kern_stmt *s = list[i];

		sync |= spread_has_sync(spread_of(p), s, SYNC_READ | SYNC_WRITE);
		if (!store) {
			p->is_let[s->v] = true;
			c_line(p, "%s %s;", c_type_of(p, s->v), c_name(p, s->v));
		}
		str_printf(&names, ", %s",
			store ? computed(p, s->x) : c_name(p, s->v));
	}
	if (is_own(p, at->array)) {
		own_together(p, list, first->together);
		return;
	}
	if (sync)
		c_line(p, "SYNC();");
	if (who != NULL)
		c_line(p, "if (%s)", who);
	c_line(p, "%s%s%d(%s, %s%s);", who != NULL ? "\t" : "",
		store ? "ST" : "LD", first->together, is_aligned(p, at->array),
		element(p, at, n), names.at);
}

/* Notes the arrays with such accesses. */
static void find_wide(printer *p, const kern_block *b, bool *arrays)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];

		if (s->kind == KERN_ASYNC)
			arrays[s->from.array] = true;
		if (s->together > 0)
			arrays[s->kind == KERN_STORE
					? s->at.array
					: kern_at(p->k, s->v)->at.array] = true;
		find_wide(p, &s->body, arrays);
		find_wide(p, &s->other, arrays);
	}
}

/* Are these arrays aligned? Asked once. */
static void alignments(printer *p)
{
	bool *arrays = arena_array(p->a, bool, p->k->array.n + 1);

	find_wide(p, &p->phase->body, arrays);
	for (int32_t i = 0; i < p->k->array.n; i++)
		if (arrays[i] && !is_own(p, i))
			c_line(p, "const int %s = ALIGNED(%c%d);",
				is_aligned(p, i),
				letter_of(p->k->array.at[i].space),
				p->k->array.at[i].number);
}

static void set_lane(printer *p, const kern_stmt *s)
{
	int32_t n = wide_type(p, s->v).lanes;
	const char *x = computed(p, s->x);

	if (n == 1 || spread_own(spread_of(p), s->lo) != NULL)
		c_line(p, "%s = %s;", c_name(p, s->v), x);
	else
		c_line(p, "%s = %s == %s ? %s : %s;", c_name(p, s->v),
			cuda_lane(p, n), c_form(p, s->lo), x, c_name(p, s->v));
}

/* Each thread has its iteration; what it stores, one of several threads does. */
static void by_lane(printer *p, const kern_stmt *s)
{
	int32_t n = (int32_t)s->hi->c0, lanes = spread_by_lane(spread_of(p), s);
	const char *x = c_name(p, s->v);

	if (n < lanes)
		c_line(p, "if (%s < %d) {", cuda_lane(p, lanes), n);
	else
		c_line(p, "{");
	c_line(p, "	const %s %s = %s;", c_type_of(p, s->v), x, cuda_lane(p, lanes));
	c_line(p, "	(void)%s;", x);
}

static void array(printer *p, const kern_stmt *s)
{
	const kern_array *r = &p->k->array.at[s->array];

	if (!s->stream)
		return;
	if (spread_has_sync(spread_of(p), s, SYNC_WRITE))
		c_line(p, "SYNC();");
	c_line(p, "for (%s i = %s; i < %" PRId64 "; i += %d)", c_index_type(p),
		cuda_lane(p, CUDA_WARP), r->elems, CUDA_WARP);
	c_line(p, "	ST(s%d[i], 0);", r->number);
}

static void prefetch(printer *p, const kern_stmt *s)
{
	(void)p, (void)s; /* other warps run while one waits */
}

static void fence(printer *p)
{
	(void)p; /* stores are seen by the next phase: a launch of its own */
}

static void barrier(printer *p)
{
	/* what was copied is for instructions of several warps, which see it behind that */
	for (int32_t i = 0; i < p->k->array.n; i++)
		if (p->k->array.at[i].swizzled > 0) {
			c_line(p, "PROXY_FENCE();");
			break;
		}
	c_line(p, "BLOCK_SYNC();");
}

static const char *warp(printer *p)
{
	(void)p;
	return "warp";
}

/* Element to + i n + j = element from + j m + i: this thread has all of its j. */
static void turn(printer *p, const kern_stmt *s)
{
	int32_t n = s->type.lanes;
	const char *l = cuda_lane(p, n);

	before(p, s);
	if (spread_has_sync(spread_of(p), s, SYNC_WRITE))
		c_line(p, "SYNC();");
	c_line(p, "for (%s i = 0; i < %d; i++)", c_index_type(p), n);
	if (n < CUDA_WARP)
		c_line(p, "	if (%s < %d)", cuda_lane(p, CUDA_WARP), n);
	c_line(p,
		"		ST((&%s)[i * %" PRId64 " + %s], LD((&%s)[%s * %" PRId64
		" + i]));",
		c_element(p, &s->at), s->n, l, c_element(p, &s->from), l, s->m);
}

/* ---- copies ---- */

static void async(printer *p, const kern_stmt *s)
{
	bool bulk = cuda_has_maps(&p->phase->body);

	if (s->kind == KERN_COMMIT)
		c_line(p, bulk ? "BULK_COMMIT();" : "COPY_COMMIT();");
	else if (s->kind == KERN_WAIT)
		c_line(p, "%s_WAIT(%d);", bulk ? "BULK" : "COPY", s->groups);
	else if (s->bulk)
		cuda_bulk(p, s);
	else if (p->k->array.at[s->at.array].swizzled > 0)
		c_line(p, "COPY_SWIZZLED(%s, %s, &%s, %" PRId64 ", %d, %d);",
			is_aligned(p, s->from.array), cuda_swizzled(p, &s->at),
			c_element(p, &s->from), s->m, s->rows, s->width);
	else
		c_line(p, "COPY_ROWS(%s, &%s, %" PRId64 ", &%s, %" PRId64
			  ", %d, %d);",
			is_aligned(p, s->from.array), c_element(p, &s->at),
			s->n, c_element(p, &s->from), s->m, s->rows, s->width);
}

/* ---- functions ---- */

static void pointers(
	printer *p, kern_space space, char letter, const char *memory)
{
	for (int32_t i = spread_next(p->k, space, -1); i >= 0;
		i = spread_next(p->k, space, i)) {
		const kern_array *r = &p->k->array.at[i];
		const char *t = c_stored_type(p, r->dtype);

		if (!p->used[i])
			continue;
		if (is_own(p, i)) {
			c_line(p, "%s %c%d[%d] __attribute__((unused)) = { 0 };",
				t, letter, r->number,
				(int)spread_of(p)->cells[i]);
			continue;
		}
		c_line(p, "%s *const %c%d = (%s *)(%s + %" PRId64 ");", t,
			letter, r->number, t, memory, r->offset);
	}
}

/* The memory of the warp, or of the block and of each of its warps. */
static void memories(printer *p)
{
	const size_t bytes = p->k->local_bytes;

	if (p->phase->warps > 1) {
		c_line(p, "const %s warp = threadIdx.x / 32;", c_index_type(p));
		c_line(p, "char *const shared = SHARED();");
		c_line(p, "char *const local = locals + %zu * ((i64)blockIdx.x * "
			  "%d + warp);",
			bytes, p->phase->warps);
		return;
	}
	c_line(p, "const i64 warps = (i64)gridDim.x * (blockDim.x / 32);");
	c_line(p, "const i64 warp = (i64)blockIdx.x * (blockDim.x / 32) + "
		  "threadIdx.x / 32;");
	c_line(p, "char *const local = locals + %zu * warp;", bytes);
}

/* The chunks of this block, or warp: their numbers are counted in 64 bits, because
 * of the step. */
static void chunks(printer *p)
{
	const char *count = p->k->narrow ? "n" : "chunk";

	if (p->phase->warps > 1)
		c_line(p, "for (i64 %s = first + blockIdx.x; %s < end; "
			  "%s += gridDim.x) {",
			count, count, count);
	else
		c_line(p, "for (i64 %s = first + warp; %s < end; %s += "
			  "warps) {",
			count, count, count);
	if (p->k->narrow)
		c_line(p, "	const i32 chunk = (i32)n;");
}

static void open(printer *p)
{
	const kern_kernel *k = p->k;
	const spread *s = spread_of(p);
	bool block = p->phase->warps > 1;

	c_line(p, "const %s %s = threadIdx.x %% 32;", c_index_type(p),
		cuda_lane(p, CUDA_WARP));
	for (int32_t i = 1; i < SPREAD_LANES - 1; i++)
		if (s->lane[i] != 0)
			c_line(p, "const %s %s = threadIdx.x %% %d;",
				c_index_type(p), c_name(p, s->lane[i]), 1 << i);
	memories(p);
	for (int32_t i = 0; i < k->n_params; i++)
		if (!p->used[i])
			c_line(p, "(void)p%d;", i);
	pointers(p, KERN_SCRATCH, 'q', "scratch");
	pointers(p, KERN_LOCAL, 'b', block ? "shared" : "local");
	pointers(p, KERN_STACK, 's', "local");
	c_line(p, "(void)scratch, (void)local, (void)err;");
	if (block)
		c_line(p, "(void)shared;");
	alignments(p);
	if (cuda_has_maps(&p->phase->body))
		c_line(p, "BULK_OPEN(shared + %zu);", cuda_bulk_offset(s->wide));
	chunks(p);
	p->depth++;
	if (k->narrow)
		c_line(p, "(void)chunk;");
	for (int32_t i = 1; i < SPREAD_LANES; i++)
		if (s->lane[i] != 0)
			c_line(p, "(void)%s;", c_name(p, s->lane[i]));
}

static void close(printer *p)
{
	/* the next chunk uses the same memory */
	c_line(p, p->phase->warps > 1 ? "BLOCK_SYNC();" : "SYNC();");
	p->depth--;
	c_line(p, "}");
}

static void head(printer *p, str *out, const char *fn)
{
	const kern_kernel *k = p->k;
	const c_map *m;
	int32_t n = cuda_maps(p->a, k, p->phase, &m);

	str_printf(out, "KERNEL(%s)(\n", fn);
	for (int32_t i = 0; i < k->n_params; i++)
		str_printf(out, "	%s%s *const %sp%d,\n",
			k->array.at[i].out ? "" : "const ",
			c_stored_type(p, k->array.at[i].dtype),
			k->shared ? "" : "__restrict__ ", i);
	str_add(out,
		"	char *const scratch, char *const locals, const i64 first, "
		"const i64 end,\n"
		"	i64 *const err");
	for (int32_t i = 0; i < n; i++)
		str_printf(out, ",\n	BULK_MAP %s", cuda_map_name(p->a, &m[i]));
	str_add(out, ")\n{\n");
}

c_kernel *cuda_print(arena *a, const kern_kernel *k)
{
	static const dialect d = {.name = name,
		.value = value,
		.let = let,
		.before = before,
		.store = store,
		.together = together,
		.set_lane = set_lane,
		.array = array,
		.prefetch = prefetch,
		.fence = fence,
		.barrier = barrier,
		.warp = warp,
		.by_lane = by_lane,
		.turn = turn,
		.matrix = cuda_matrix,
		.async = async,
		.open = open,
		.close = close,
		.head = head};
	spread *s = spread_new(a, k);
	c_kernel *c = c_print_as(a, s->narrow, &d, s);

	for (int32_t i = 0; i < k->n_phases; i++) {
		c_phase *ph = &c->phase[i];

		if (ph->warps > 1 && c->shared_bytes < k->local_bytes)
			c->shared_bytes = k->local_bytes;
		ph->n_maps = cuda_maps(a, k, &k->phase[i], &ph->map);
		if (ph->n_maps > 0)
			c->shared_bytes = cuda_bulk_offset(k) + CUDA_BULK_BYTES;
	}
	return c;
}
