/*
 * calls.c: the parts of an exported program as C: each a call of a kernel for its
 * chunks, with the addresses of its tensors.
 *
 *     case 2: { // matmul
 *         void *const p[] = { a + 64, io[0], w + 128 };
 *         for (int64_t c = first; c < end; c++)
 *             k_matmul_5d1c.._0(p, 0, local, c, err);
 *         break;
 *     }
 *
 * A loop is a part whose chunks are its rounds; its body is a function. With a test
 * it is a `while`, or an `if`, and a part behind it fetches the results.
 */
#include "export/local.h"

#include <inttypes.h>

const char *export_addr(arena *a, place p)
{
	switch (p.kind) {
	case AT_NOWHERE:
		break;
	case AT_ARENA:
		return arena_printf(a, "a + %zu", p.at);
	case AT_WEIGHTS:
		return arena_printf(a, "w + %zu", p.at);
	case AT_IO:
		return arena_printf(a, "io[%zu]", p.at);
	}
	return "0";
}

/* A label that may stand in a comment. */
static void add_label(str *out, const char *name)
{
	for (int32_t i = 0; name[i] != '\0' && i < 100; i++) {
		char c = name[i];
		bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			(c >= '0' && c <= '9') || c == '.';

		str_addc(out, word ? c : '_');
	}
}

static void put_phase(str *out, const xplan *n, const part *t, const char *pad,
	const char *first, const char *end)
{
	const plan_launch *l = &n->p->launch.at[t->launch];
	const c_kernel *k = l->code;

	str_printf(out, "%s	void *const p[] = { ", pad);
	for (int32_t i = 0; i < k->n_params; i++)
		str_printf(out, "%s%s", i > 0 ? ", " : "",
			k->phase[t->phase].uses[i]
				? export_addr(out->a,
					  export_place_of(n, l->tensor[i]))
				: "0");
	for (int32_t i = 0; i < k->n_cells; i++)
		str_printf(out, ", %s",
			export_addr(out->a, n->launch[t->launch].cell[i]));
	str_printf(out,
		" };\n"
		"%s	for (int64_t c = %s; c < %s; c++)\n"
		"%s		%s(p, 0, local, c, err);\n",
		pad, first, end, pad, k->phase[t->phase].fn);
}

/* ---- loops ---- */

static size_t row_bytes(const ir_system *s, int32_t t)
{
	const sys_tensor *at = &s->tensor.at[t];

	return (size_t)at->numel * dtype_size(at->dtype) /
		(size_t)at->shape[0];
}

/* The address of what round i reads or writes as number k of the operands. */
static const char *round_addr(arena *a, const xplan *n, const part *t,
	int32_t k, bool out)
{
	const plan_launch *l = &n->p->launch.at[t->launch];
	const ir_loop *loop = plan_loop_of(n->p, t->launch);
	const xlaunch *at = &n->launch[t->launch];
	/* the operand itself has the shape of a row's stack */
	int32_t own = out ? l->eqn->out[k] : l->eqn->opaque_in[k];
	const char *whole = export_addr(a, export_place_of(n,
		l->tensor[out ? k : l->eqn->n_out + k]));

	if (strcmp(whole, "0") == 0)
		return whole;
	if (k < loop->n_carried && loop->n == 1 && loop->test > 0)
		return out ? arena_printf(a, "a + %zu", at->room[0][k]) : whole;
	if (k < loop->n_carried && loop->test > 0 && out)
		return arena_printf(a, "a + (i & 1 ? %zu : %zu)",
			at->room[1][k], at->room[0][k]);
	if (k < loop->n_carried)
		return out ? arena_printf(a,
				     "i == %" PRId64
				     " ? %s : a + (i & 1 ? %zu : %zu)",
				     loop->n - 1, whole, at->room[1][k],
				     at->room[0][k])
			   : arena_printf(a,
				     "i == 0 ? %s : a + (i & 1 ? %zu : %zu)",
				     whole, at->room[0][k], at->room[1][k]);
	if (out || k < loop->n_carried + loop->n_rows)
		return arena_printf(a, "(char *)(%s) + (size_t)i * %zu", whole,
			row_bytes(n->p->s, own));
	return whole;
}

/* What the body reads and writes in a round. */
static void put_operands(str *out, const xplan *n, const part *t,
	const char *pad)
{
	const ir_loop *loop = plan_loop_of(n->p, t->launch);
	int32_t n_in = loop->body->input.n, n_out = loop->body->output.n;

	str_printf(out, "%s	void *const b[] = {\n", pad);
	for (int32_t k = 0; k < n_in + n_out; k++)
		str_printf(out, "%s		%s,\n", pad,
			round_addr(out->a, n, t, k < n_in ? k : k - n_in,
				k >= n_in));
	str_printf(out, "%s	};\n\n", pad);
}

/* "*(const uint8_t *)b[0]": the carried value that is the test */
static const char *test_of(arena *a, const ir_loop *loop)
{
	const ir_program *p = loop->body;
	int32_t k = loop->test - 1;

	return arena_printf(a, "*(const %s *)b[%d]",
		export_c_type(p->value.at[p->input.at[k]].type.dtype), (int)k);
}

static const char *count_of(arena *a, const xplan *n, const part *t)
{
	return arena_printf(a, "*(int64_t *)(void *)(a + %zu)",
		n->launch[t->launch].count);
}

/* One round or none. */
static void put_if(str *out, const xplan *n, const part *t, const char *pad,
	const ir_loop *loop)
{
	put_operands(out, n, t, pad);
	str_printf(out,
		"%s	%s = 0;\n"
		"%s	if (%s != 0) {\n"
		"%s		body_%d(a, w, b, local, 0, err);\n"
		"%s		%s = 1;\n"
		"%s	}\n",
		pad, count_of(out->a, n, t), pad, test_of(out->a, loop), pad,
		(int)n->launch[t->launch].body->number, pad,
		count_of(out->a, n, t), pad);
}

static void put_while(str *out, const xplan *n, const part *t, const char *pad,
	const ir_loop *loop, const char *first, const char *end)
{
	str_printf(out,
		"%s	int64_t i = %s;\n"
		"\n"
		"%s	%s = i;\n"
		"%s	while (i < %s && *err == 0) {\n",
		pad, first, pad, count_of(out->a, n, t), pad, end);
	put_operands(out, n, t, arena_printf(out->a, "%s	", pad));
	str_printf(out,
		"%s		if (%s == 0) {\n"
		"%s			*err = ENDED;\n"
		"%s			break;\n"
		"%s		}\n"
		"%s		body_%d(a, w, b, local, i, err);\n"
		"%s		%s = ++i;\n"
		"%s	}\n",
		pad, test_of(out->a, loop), pad, pad, pad, pad,
		(int)n->launch[t->launch].body->number, pad,
		count_of(out->a, n, t), pad);
}

static void put_rounds(str *out, const xplan *n, const part *t,
	const char *pad, const char *first, const char *end)
{
	const ir_loop *loop = plan_loop_of(n->p, t->launch);

	if (loop->test > 0 && loop->n == 1) {
		put_if(out, n, t, pad, loop);
		return;
	}
	if (loop->test > 0) {
		put_while(out, n, t, pad, loop, first, end);
		return;
	}
	str_printf(out, "%s	for (int64_t i = %s; i < %s && *err == 0; i++) {\n",
		pad, first, end);
	put_operands(out, n, t, arena_printf(out->a, "%s	", pad));
	str_printf(out,
		"%s		body_%d(a, w, b, local, i, err);\n"
		"%s	}\n",
		pad, (int)n->launch[t->launch].body->number, pad);
}

/* What was carried when the test ended the loop. */
static void put_ended(str *out, const xplan *n, const part *t, const char *pad)
{
	const plan_launch *l = &n->p->launch.at[t->launch];
	const ir_loop *loop = plan_loop_of(n->p, t->launch);
	const xlaunch *at = &n->launch[t->launch];

	str_printf(out, "%s	const int64_t n = %s;\n\n", pad,
		count_of(out->a, n, t));
	for (int32_t k = 0; k < loop->n_carried; k++) {
		const char *to = export_addr(out->a,
			export_place_of(n, l->tensor[k]));
		const char *from = export_addr(out->a,
			export_place_of(n, l->tensor[l->eqn->n_out + k]));
		size_t bytes = n->p->location[l->tensor[k]].bytes;

		if (strcmp(to, "0") == 0 || bytes == 0)
			continue;
		str_printf(out,
			"%s	memcpy(%s, n == 0 ? %s : a + (n & 1 ? %zu : "
			"%zu), %zu);\n",
			pad, to, from, at->room[0][k], at->room[1][k], bytes);
	}
	str_printf(out, "%s	(void)n;\n", pad);
}

/* ---- rows without equations ---- */

static void put_type(str *out, const ir_type *t)
{
	str_printf(out, "{ %d, %d, {", (int)t->dtype, (int)t->rank);
	for (int32_t d = 0; d < t->rank; d++)
		str_printf(out, " %" PRId64 ",", t->shape[d]);
	str_add(out, t->rank == 0 ? " 0 } },\n" : " } },\n");
}

static void put_addresses(str *out, const xplan *n, const plan_launch *l,
	const char *pad, const char *name, int32_t from, int32_t to)
{
	str_printf(out, "%s	%s *const %s[] = {", pad,
		from > 0 ? "const void" : "void", name);
	for (int32_t k = from; k < to; k++)
		str_printf(out, " %s,",
			export_addr(out->a, export_place_of(n, l->tensor[k])));
	str_add(out, " 0 };\n");
}

/*
 *     const void *const in[] = { io[0], };
 *     void *const out[] = { io[1], a + 64, };
 *     const row_call j = { type, type + 1, in, out, attr, a + 128 };
 *
 *     run_sort(&j);
 */
static void put_row(str *out, const xplan *n, int32_t launch, const char *pad)
{
	const plan_launch *l = &n->p->launch.at[launch];
	int32_t n_in = l->eqn->n_opaque_in, n_out = l->eqn->n_out;
	ir_type *in = arena_array(out->a, ir_type, n_in + 1);
	ir_type *results = arena_array(out->a, ir_type, n_out + 1);

	export_row_types(n, l, in, results);
	str_printf(out, "%s	static const row_type type[] = {\n", pad);
	for (int32_t k = 0; k < n_in + n_out; k++) {
		str_printf(out, "%s		", pad);
		put_type(out, k < n_in ? &in[k] : &results[k - n_in]);
	}
	str_printf(out, "%s	};\n%s	static const int64_t attr[] = {", pad,
		pad);
	for (int32_t k = 0; k < l->eqn->n_opaque_attr; k++)
		str_printf(out, " %" PRId64 ",", l->eqn->opaque_attr[k]);
	str_add(out, " 0 };\n");
	put_addresses(out, n, l, pad, "in", n_out, n_out + n_in);
	put_addresses(out, n, l, pad, "out", 0, n_out);
	str_printf(out,
		"%s	const row_call j = { type, type + %d, in, out, attr, "
		"a + %zu };\n"
		"\n"
		"%s	run_%s(&j);\n",
		pad, (int)n_in, n->launch[launch].row_room, pad,
		l->eqn->opaque->name);
}

/* ---- parts ---- */

static void put_part(str *out, const xplan *n, const part *t, const char *pad,
	const char *first, const char *end)
{
	switch (t->kind) {
	case PART_PHASE:
		put_phase(out, n, t, pad, first, end);
		break;
	case PART_ROUNDS:
		put_rounds(out, n, t, pad, first, end);
		break;
	case PART_ENDED:
		put_ended(out, n, t, pad);
		break;
	case PART_ROW:
		put_row(out, n, t->launch, pad);
		break;
	case PART_SAVE:
	case PART_COPY:
		str_printf(out, "%s	memcpy(%s, %s, %zu);\n", pad,
			export_addr(out->a, t->to),
			export_addr(out->a, t->from), t->bytes);
		break;
	}
}

static void put_label(str *out, const xplan *n, const part *t)
{
	str_add(out, "/* ");
	if (t->kind == PART_SAVE)
		str_add(out, "in case that a later part fails");
	else if (t->kind == PART_COPY)
		str_add(out, "an output that is another tensor");
	else
		add_label(out, n->p->launch.at[t->launch].source->name);
	str_add(out, " */\n");
}

/* Is it the rounds of a loop that a test ends? */
static bool has_test(const xplan *n, const part *t)
{
	return t->kind == PART_ROUNDS &&
		plan_loop_of(n->p, t->launch)->test > 0;
}

static void put_body(str *out, const xplan *n)
{
	str_printf(out,
		"\n/* A round of a loop; b: what it reads, then what it "
		"writes. */\n"
		"static void body_%d(char *const a, char *const w, void *const "
		"*const io,\n"
		"	void *const local, const int64_t round, int64_t *const err)\n"
		"{\n"
		"	(void)a, (void)w, (void)io, (void)local, (void)round;\n",
		(int)n->number);
	for (int32_t i = 0; i < n->part.n; i++) {
		const part *t = &n->part.at[i];

		str_printf(out, "	%s{ ", t->once ? "if (round == 0) " : "");
		put_label(out, n, t);
		put_part(out, n, t, "	", "0",
			arena_printf(out->a, "%" PRId64, t->n_chunks));
		str_add(out, "	}\n");
		if (has_test(n, t))
			str_add(out, "	if (*err == ENDED)\n		*err = 0;\n");
		if (t->fails)
			str_add(out, "	if (*err != 0)\n		return;\n");
	}
	str_add(out, "	(void)err;\n}\n");
}

/* Which parts only the calling thread runs. */
static void put_serial(str *out, const xplan *n, const char *suffix)
{
	str_printf(out, "\nstatic const unsigned char is_serial%s[] = {",
		suffix);
	for (int32_t i = 0; i < n->part.n; i++)
		str_printf(out, "%s%d,", i % 24 == 0 ? "\n	" : " ",
			n->part.at[i].serial);
	str_add(out, "\n	0\n};\n");
}

static void put_tables(str *out, const export_net *x, const xplan *n)
{
	const char *suffix = export_suffix(x, n->variant);

	str_printf(out, "\n/* Chunks of each part. */\n"
		"static const int64_t n_chunks%s[] = {", suffix);
	for (int32_t i = 0; i < n->part.n; i++)
		str_printf(out, "%s%" PRId64 ",", i % 8 == 0 ? "\n	" : " ",
			n->part.at[i].n_chunks);
	str_add(out, "\n	0\n};\n");
	if (x->job->threads != EXPORT_ALONE)
		put_serial(out, n, suffix);
}

void export_calls(str *out, const export_net *x, int32_t v)
{
	const xplan *n = x->variant[v];

	for (int32_t i = x->plan.n - 1; i >= 0; i--) /* inner loops first */
		if (x->plan.at[i]->variant == v && x->plan.at[i] != n)
			put_body(out, x->plan.at[i]);
	put_tables(out, x, n);
	str_printf(out,
		"\n/* Chunks first .. end - 1 of a part. */\n"
		"static void run_part%s(const int part, char *const a, char "
		"*const w,\n"
		"	void *const *const io, void *const local, const int64_t "
		"first,\n"
		"	const int64_t end, int64_t *const err)\n"
		"{\n"
		"	(void)a, (void)w, (void)io, (void)local, (void)first;\n"
		"	(void)end, (void)err;\n"
		"	switch (part) {\n",
		export_suffix(x, v));
	for (int32_t i = 0; i < n->part.n; i++) {
		str_printf(out, "	case %d: { ", (int)i);
		put_label(out, n, &n->part.at[i]);
		put_part(out, n, &n->part.at[i], "	", "first", "end");
		str_add(out, "		break;\n	}\n");
	}
	str_add(out, "	default:\n		break;\n	}\n}\n");
}
