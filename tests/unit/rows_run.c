/*
 * rows_run.c: runs one case of rows.h through .tn text and the interpreter,
 * then once more lowered to a system; or compiled, by the public API. On the
 * way the program verifies, and prints a text that parses to itself; so does
 * the system.
 */
#include "rows.h"
#include "system_parse.h"

#include "eval_system.h"

#include "base/random.h"
#include "interp/interp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct run {
	const row_case *c;
	const char *type; /* of T */
	bool is_first;	  /* of the types */
	bool compiled;
	bool is_lowered;  /* run as a system, not by the interpreter */
	arena *a;
	env *e;
	int32_t n_in, n_out;
	ten in[ROW_IN], out[ROW_OUT], want[ROW_OUT];
	str text;
} run;

/* ---- tensors from text ---- */

static void ten_alloc(run *r, ten *t)
{
	t->n = shape_numel(t->shape, t->rank);
	t->data = arena_alloc(r->a, (size_t)t->n + 1, dtype_size(t->dtype));
	t->at = arena_array(r->a, double, t->n + 1);
}

static void ten_set(ten *t, int64_t i, double v)
{
	if (dtype_is_float(t->dtype))
		dtype_store_f64(t->dtype, t->data, i, v);
	else
		dtype_store_i64(t->dtype, t->data, i, (int64_t)v);
	t->at[i] = dtype_is_float(t->dtype) ?
		dtype_load_f64(t->dtype, t->data, i) :
		(double)dtype_load_i64(t->dtype, t->data, i);
}

static void ten_draw(ten *t, const char *p)
{
	long lo = -16, hi = 17;
	char *end;
	long seed = strtol(p, &end, 10);
	bool given = *end == ' ';

	if (given) {
		lo = strtol(end, &end, 10);
		hi = strtol(end, &end, 10);
	}
	for (int64_t i = 0; i < t->n; i++) {
		double v = (double)lo +
			floor((double)base_u01(seed, i) * (double)(hi - lo));

		ten_set(t, i,
			given || !dtype_is_float(t->dtype) ? v : v / 8);
	}
}

/* "f32[2,3] 1 2 3 4 5 6"; false: no values follow the type */
static bool ten_read(run *r, ten *t, const char *text)
{
	const char *bracket = strchr(text, '[');
	size_t n_name = (size_t)(bracket - text);
	char *p;

	assert_non_null(bracket);
	if (n_name == 1 && *text == 'T')
		assert_true(dtype_parse(r->type, strlen(r->type), &t->dtype));
	else
		assert_true(dtype_parse(text, n_name, &t->dtype));
	for (p = strchr(text, '[') + 1; *p != ']'; p += *p == ',')
		t->shape[t->rank++] = strtoll(p, &p, 10);
	ten_alloc(r, t);
	for (p++; *p == ' '; p++)
		;
	if (*p == '~')
		ten_draw(t, p + 1);
	else if (*p == '*')
		for (int64_t i = 0; i < t->n; i++)
			ten_set(t, i, strtod(p + 1, NULL));
	else if (*p == '\0')
		return t->n == 0;
	else if (t->dtype == TN_I64)
		for (int64_t i = 0; i < t->n; i++) {
			int64_t v = strtoll(p, &p, 10);

			dtype_store_i64(TN_I64, t->data, i, v);
			t->at[i] = (double)v;
		}
	else
		for (int64_t i = 0; i < t->n; i++) {
			char *end;

			ten_set(t, i, strtod(p, &end));
			if (end == p)
				fail_msg("%s: too few values in %s", r->c->call,
					text);
			p = end;
		}
	return true;
}

/* ---- the program ---- */

static void add_type(str *s, const char *name, const ten *t)
{
	str_printf(s, "  %s: %s", name, dtype_name(t->dtype));
	str_shape(s, t->shape, t->rank);
	str_addc(s, '\n');
}

static void write_program(run *r)
{
	static const char *const names[] = {
		"a", "b", "c", "d", "e", "f", "g", "h", "i"};

	r->text = str_new(r->a);
	str_add(&r->text, "program {\n");
	for (; r->n_in < ROW_IN && r->c->in[r->n_in] != NULL; r->n_in++) {
		ten *t = &r->in[r->n_in];

		assert_true(ten_read(r, t, r->c->in[r->n_in]));
		add_type(&r->text, names[r->n_in], t);
	}
	if (r->c->out[0][0] == '!')
		r->n_out = 1;
	else
		while (r->n_out < ROW_OUT && r->c->out[r->n_out] != NULL)
			r->n_out++;
	for (int32_t i = 0; i < r->n_out; i++)
		str_printf(&r->text, "%sr%d", i > 0 ? ", " : "  ", i);
	str_printf(&r->text, " = %s\n  return ", r->c->call);
	for (int32_t i = 0; i < r->n_out; i++)
		str_printf(&r->text, "%sr%d", i > 0 ? ", " : "", i);
	str_add(&r->text, "\n}\n");
}

static void check_print(run *r, const ir_program *p)
{
	str one = str_new(r->a), two = str_new(r->a);

	ir_program_verify(p);
	ir_program_print(&one, p);
	ir_program_print(&two, ir_program_parse(r->a, one.at, one.n, "printed", interp_loop));
	assert_string_equal(one.at, two.at);
}

/* The same by way of lowering; the system also prints and parses back. */
static void run_system(run *r, const ir_program *p, const void *const *input,
	void *const *output)
{
	ix *x = ix_new(r->a);
	ir_system *s = ir_lower(r->a, x, p);
	str one = str_new(r->a), two = str_new(r->a);
	void **data;

	ir_system_verify(s);
	ir_system_print(&one, s);
	ir_system_print(&two,
		ir_system_parse(r->a, ix_new(r->a), one.at, one.n, "printed"));
	assert_string_equal(one.at, two.at);
	data = eval_system(r->a, s, input);
	for (int32_t i = 0; i < s->output.n; i++) {
		const sys_tensor *t = &s->tensor.at[s->output.at[i]];

		assert_int_equal(t->numel, r->out[i].n);
		memcpy(output[i], data[s->output.at[i]],
			(size_t)t->numel * dtype_size(t->dtype));
	}
}

/* Memory for result i, whatever is expected of it. */
static void *result(run *r, int32_t i, tn_dtype t, int32_t rank,
	const int64_t *shape)
{
	r->out[i] = (ten){.dtype = t, .rank = rank};
	memcpy(r->out[i].shape, shape, (size_t)rank * sizeof shape[0]);
	ten_alloc(r, &r->out[i]);
	memset(r->out[i].data, 0xa5, /* every element is to be written */
		(size_t)r->out[i].n * dtype_size(t));
	return r->out[i].data;
}

static void run_program(void *arg)
{
	run *r = arg;
	ir_program *p =
		ir_program_parse(r->a, r->text.at, r->text.n, "case.tn", interp_loop);
	const void *input[ROW_IN] = {NULL};
	void *output[ROW_OUT] = {NULL};

	if (r->is_first)
		check_print(r, p);
	for (int32_t i = 0; i < r->n_in; i++)
		input[i] = r->in[i].data;
	for (int32_t i = 0; i < r->n_out; i++) {
		const ir_type *t = &p->value.at[p->output.at[i]].type;

		output[i] = result(r, i, t->dtype, t->rank, t->shape);
	}
	if (r->is_lowered)
		run_system(r, p, input, output);
	else
		interp_run(r->e, p, input, output);
}

/* Through the public API: the whole pipeline. */
static tn_status run_compiled(run *r, tn_context *c)
{
	const void *input[ROW_IN] = {NULL};
	void *output[ROW_OUT] = {NULL};
	tn_program *p;
	tn_status status =
		tn_program_parse(&p, c, r->text.at, r->text.n, "case.tn");

	if (status != TN_OK)
		return status;
	for (int32_t i = 0; i < r->n_in; i++)
		input[i] = r->in[i].data;
	for (int32_t i = 0; i < r->n_out; i++) {
		const tn_value *v = tn_program_output(p, i);

		output[i] = result(r, i, v->dtype, v->rank, v->shape);
	}
	status = tn_program_run(p, input, output);
	tn_program_free(p);
	return status;
}

/* Runs the case; what went wrong goes to *d. */
static tn_status run_case(run *r, tn_diag *d)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;
	tn_status status;

	if (!r->compiled) {
		status = env_run(r->e, run_program, r);
		*d = *env_diag(r->e);
		return status;
	}
	o.threads = 1;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	status = run_compiled(r, c);
	*d = *tn_context_diag(c);
	tn_context_free(c);
	return status;
}

/* ---- comparison ---- */

static double tolerance_of(const run *r, tn_dtype t)
{
	if (r->c->tolerance > 0)
		return r->c->tolerance;
	return t == TN_F64 ? 1e-12 :
		t == TN_F32 ? 2e-6 :
		t == TN_F16 ? 2e-3 :
			      2e-2;
}

static void compare(const run *r, int32_t k)
{
	const ten *got = &r->out[k], *want = &r->want[k];

	if (got->dtype != want->dtype || got->rank != want->rank ||
		memcmp(got->shape, want->shape,
			(size_t)got->rank * sizeof got->shape[0]) != 0) {
		str s = str_new(r->a);

		add_type(&s, "result", got);
		add_type(&s, "expected", want);
		fail_msg("%s (T = %s%s)\n%s", r->c->call, r->type,
			r->is_lowered ? ", lowered" : "", s.at);
	}
	for (int64_t i = 0; i < got->n; i++) {
		double g, w, tol = tolerance_of(r, got->dtype);

		if (!dtype_is_float(got->dtype)) {
			int64_t gi = dtype_load_i64(got->dtype, got->data, i);
			int64_t wi = dtype_load_i64(want->dtype, want->data, i);

			if (gi != wi)
				fail_msg("%s (T = %s%s): result %d[%lld] is "
					 "%lld, not %lld",
					r->c->call, r->type,
					r->is_lowered ? ", lowered" : "", k,
					(long long)i,
					(long long)gi, (long long)wi);
			continue;
		}
		g = dtype_load_f64(got->dtype, got->data, i);
		w = dtype_load_f64(want->dtype, want->data, i);
		if (g == w || (g != g && w != w) ||
			fabs(g - w) <= tol * (1 + fabs(w)))
			continue;
		fail_msg("%s (T = %s%s): result %d[%lld] is %.17g, not %.17g",
			r->c->call, r->type, r->is_lowered ? ", lowered" : "",
			k, (long long)i, g, w);
	}
}

static void expect(run *r)
{
	for (int32_t k = 0; k < r->n_out; k++)
		if (!ten_read(r, &r->want[k], r->c->out[k]))
			assert_non_null(r->c->want);
	if (r->c->want == NULL)
		return;
	r->c->want(r->in, r->want);
	for (int32_t k = 0; k < r->n_out; k++)
		for (int64_t i = 0; i < r->want[k].n; i++)
			ten_set(&r->want[k], i, r->want[k].at[i]);
}

static void check(run *r)
{
	tn_status status;
	tn_diag d;

	write_program(r);
	status = run_case(r, &d);
	if (r->c->out[0][0] == '!') {
		if (status == TN_OK)
			fail_msg("%s: no error", r->c->call);
		if (strcmp(d.rule, r->c->out[0] + 1) != 0 ||
			(r->c->out[1] != NULL &&
				strstr(d.text, r->c->out[1]) == NULL))
			fail_msg("%s: error [%s] %s", r->c->call, d.rule,
				d.text);
		return;
	}
	if (status != TN_OK)
		fail_msg("%s\nerror [%s] %s\n%s", r->text.at, d.rule, d.text,
			d.extra);
	expect(r);
	for (int32_t k = 0; k < r->n_out; k++)
		compare(r, k);
	if (r->compiled)
		return;
	r->is_lowered = true;
	if (run_case(r, &d) != TN_OK)
		fail_msg("%s\nlowered: error [%s] %s\n%s", r->text.at, d.rule,
			d.text, d.extra);
	for (int32_t k = 0; k < r->n_out; k++)
		compare(r, k);
}

static void with_arena(arena *a, void *arg)
{
	run *r = arg;

	r->a = a;
	check(r);
}

static void run_type(const row_case *c, const char *type, bool is_first,
	bool compiled)
{
	run r = {.c = c,
		.type = type,
		.is_first = is_first,
		.compiled = compiled,
		.e = env_new()};
	struct unit_call u = {.fn = with_arena, .arg = &r, .e = r.e};
	tn_status status = env_run(r.e, unit_enter, &u);

	if (status != TN_OK)
		fail_msg("%s: the test throws: %s", c->call,
			env_diag(r.e)->text);
	arena_free(u.a);
	env_free(r.e);
}

void row_case_run(const row_case *c, bool compiled)
{
	char types[80], *p = types, *type;
	bool is_first = true;

	snprintf(types, sizeof types, "%s", c->types != NULL ? c->types : "f32");
	for (; (type = strtok_r(p, " ", &p)) != NULL; is_first = false)
		run_type(c, type, is_first, compiled);
}
