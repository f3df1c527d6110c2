/*
 * onnx/: recurrences as loops: the values, gradients and errors of a loop are
 * those of its rounds, one after another.
 */
#define _POSIX_C_SOURCE 200809L
#include "onnx_run.h"

#include <tenon.h>
#include <tenon_onnx.h>

#include <stdlib.h>
#include <unistd.h>

enum { MAX_OUT = 4, MANY = 1 << 14 };

typedef struct loop_case {
	int32_t n_loops; /* calls of loops in the program */
	const char *model;
} loop_case;

#define RNN(op, g, n, more)                                                    \
	"opset 14; in x float [7,2,3]; in w float [" n "," g ",3];"            \
	"in r float [" n "," g ",4]; out y; out h; node " op " x w r " more
#define LSTM(n, more) RNN("LSTM", "16", n, more)
#define GRU(n, more) RNN("GRU", "12", n, more)
#define BOTH " direction=\"bidirectional\""
#define BACK " direction=\"reverse\""
#define SCAN                                                                   \
	"opset 16; in x float [3,6]; in s float [3]; out t; out y; "           \
	"node Scan s x > t y : num_scan_inputs=1 scan_input_axes=[1] "
#define LOOP                                                                   \
	"opset 16; in x float [6,3]; in s float [3]; in f float [3]; out t;"   \
	"out y; init n int64 [] 6; init go bool [] 1; node Loop n go s > t y :"
#define BODY "body={ in i int64 []; in c bool []; in a float [3]; "

/* Models whose inputs are floats. */
static const loop_case smooth[] = {
	{1, LSTM("1", "> y h;")},
	{1, "in b float [1,32]; in k float [1,2,4]; in c float [1,2,4];"
	    "in p float [1,12]; out d;" LSTM("1", "b _ k c p > y h d : " BACK ";")},
	{2, "in b float [2,32]; init n int32 [2] 3 6;" LSTM("2",
		"b n > y h : " BOTH ";")},
	{2, LSTM("2", "> _ h : input_forget=1 " BOTH ";") " node Neg h > y;"},
	{1, GRU("1", "> y h;")},
	{1, "in b float [1,24];" GRU("1", "b > y h : linear_before_reset=1 " BACK
		";")},
	{2, "init n int32 [2] 7 1; in k float [2,2,4];" GRU("2",
		"_ n k > y h : " BOTH ";")},
	{1, RNN("RNN", "4", "1", "> y h : activations=[\"Tanh\"];")},
	{1, "opset 14; in x float [2,7,3]; in w float [1,16,3];"
	    "in r float [1,16,4]; out y; out h; "
	    "node LSTM x w r > y h : layout=1;"},
	{1, "opset 27; in q float [2,5,4]; in k float [2,5,2]; in v float [2,5,3];"
	    "in p float [2,1,2,3]; in g float [2,5,2]; in b float [2,5,1]; out y;"
	    "out s; node LinearAttention q k v p g b > y s : q_num_heads=2 "
	    "kv_num_heads=1;"},
	{1, SCAN "body={ in a float [3]; in e float [3]; node Mul a e > m;"
		 "node Tanh m > b; node Add b e > o; out b; out o; };"},
	/* from the last to the first, and collected along the second axis */
	{1, SCAN "scan_input_directions=[1] scan_output_directions=[1] "
		 "scan_output_axes=[1] "
		 "body={ in a float [3]; in e float [3]; node Mul a e > m;"
		 "node Tanh m > b; node Add b e > o; out b; out o; };"},
	/* a value from outside, and the number of the round as an index */
	{1, LOOP BODY "node Gather x i > e; node Mul e f > g; node Add a g > b;"
		 "node Tanh b > o; node Identity c > d; out d; out b; out o; };"},
	/* carried values that change places */
	{1, "opset 16; in s float [3]; in f float [3]; out t; out u;"
	    "init n int64 [] 9; node Loop n _ s f > t u : body={ in i int64 [];"
	    "in c bool []; in a float [3]; in b float [3]; node Sin a > e;"
	    "out c; out b; out e; };"},
	/* a loop in a loop, which reads a state of the one around it */
	{1, SCAN "body={ in a float [3]; in e float [3]; init n int64 [] 5;"
		 "node Loop n _ e > b : body={ in i int64 []; in c bool [];"
		 "in p float [3]; node Mul p a > q; node Sin q > z; out c;"
		 "out z; }; node Add b e > o; out b; out o; };"},
};

/* Models that have another form, or no loop. */
static const loop_case others[] = {
	/* few rounds */
	{0, "opset 14; in x float [4,2,3]; in w float [1,16,3];"
	    "in r float [1,16,4]; out y; node LSTM x w r > y;"},
	/* a shape depends on the round */
	{0, LOOP BODY "init o int64 [1] 1; node Reshape i o > k; node Add k o > l;"
		 "node Slice x k l > e; node ReduceSum e > g : keepdims=0;"
		 "node Add a g > b; out c; out b; out b; };"},
	/* what is carried grows */
	{0, "opset 16; in s float [3]; out t; init n int64 [] 6; node Loop n _ s "
	    "> t : body={ in i int64 []; in c bool []; in a float [N];"
	    "node Concat a s > b : axis=0; out c; out b; };"},
	/* rounds draw different random numbers */
	{0, "opset 16; in s float [3]; out t; init n int64 [] 6; node Loop n _ s "
	    "> t : body={ in i int64 []; in c bool []; in a float [3];"
	    "node RandomUniformLike a > r; node Add a r > b; out c; out b; };"},
	/* the body says when to end */
	{0, "opset 16; in s float [3]; out t; init n int64 [] 8; node Loop n _ s "
	    "> t : body={ in i int64 []; in c bool []; in a float [3];"
	    "init m int64 [] 5; node Less i m > d; node Sin a > b; out d;"
	    "out b; };"},
	/* a sequence is carried */
	{0, "opset 16; in s float [3]; out t; init n int64 [] 6;"
	    "node SequenceEmpty > q; node Loop n _ q > l : body={ in i int64 [];"
	    "in c bool []; in a seq(float) [3]; node SequenceInsert a s > b;"
	    "out c; out b; }; node ConcatFromSequence l > t : axis=0;"},
	/* a state that stays, and one that does not depend on it */
	{1, LOOP BODY "node Gather x i > e; out c; out a; out e; };"},
	/* carried values of other types */
	{1, "opset 16; in s float [3]; out t; out k; init n int64 [] 6;"
	    "init z int64 [] 0; node Loop n _ s z > t k : body={ in i int64 [];"
	    "in c bool []; in a float [3]; in m int64 []; node Add m i > l;"
	    "node Cast l > f : to=1; node Add a f > b; out c; out b; out l; };"},
	{1, "opset 16; in s float [3]; out t; init n int64 [] 6;"
	    "init z uint16 [] 65533; node Loop n _ z > k : body={ in i int64 [];"
	    "in c bool []; in m uint16 []; init o uint16 [] 1; node Add m o > l;"
	    "out c; out l; }; node Cast k > f : to=1; node Add s f > t;"},
};

/* ---- values ---- */

typedef struct made {
	onnx_program p;
	void *out[MAX_OUT];
	int32_t n_loops;
} made;

static made run_one(arena *a, const char *text, bool unrolled)
{
	pb bytes = onnx_write(a, text);
	onnx_import *x = onnx_import_new(a, parse_model(a, &bytes, NULL));
	const void *in[16];
	made m = {0};

	onnx_unroll(x, unrolled);
	m.p = onnx_import_run(x);
	ir_program_verify(m.p.ir);
	assert_true(m.p.ir->input.n <= 16 && m.p.ir->output.n <= MAX_OUT);
	for (int32_t i = 0; i < m.p.ir->call.n; i++)
		m.n_loops += ir_loop_of(m.p.ir->call.at[i].inst) != NULL;
	for (int32_t i = 0; i < m.p.ir->input.n; i++) {
		const ir_type *t =
			&m.p.ir->value.at[m.p.ir->input.at[i]].type;
		void *data = arena_alloc(a, MANY, 1);

		tn_fill_random(t->dtype, data, shape_numel(t->shape, t->rank),
			7 + (uint64_t)i, 0, 2);
		in[i] = i < m.p.n_free ? data : m.p.bound[i];
	}
	for (int32_t i = 0; i < m.p.ir->output.n; i++)
		m.out[i] = arena_alloc(a, MANY, 1);
	interp_run(arena_env(a), m.p.ir, in, m.out);
	return m;
}

/* The program as text is the program. */
static void check_text(arena *a, const made *m)
{
	str one = str_new(a), two = str_new(a);
	ir_program *p;

	ir_program_print(&one, m->p.ir);
	p = ir_program_parse(a, one.at, one.n, "printed", interp_loop);
	ir_program_verify(p);
	ir_program_print(&two, p);
	assert_string_equal(one.at, two.at);
}

static void same_values(const char *text, const made *x, const made *y)
{
	assert_int_equal(x->p.ir->output.n, y->p.ir->output.n);
	for (int32_t i = 0; i < x->p.ir->output.n; i++) {
		const ir_type *t =
			&x->p.ir->value.at[x->p.ir->output.at[i]].type;
		const ir_type *u =
			&y->p.ir->value.at[y->p.ir->output.at[i]].type;

		assert_true(ir_type_same(t, u));
		assert_int_equal(x->p.output[i].elem, y->p.output[i].elem);
		for (int64_t k = 0; k < shape_numel(t->shape, t->rank); k++) {
			double v = dtype_load_f64(t->dtype, x->out[i], k);
			double w = dtype_load_f64(t->dtype, y->out[i], k);

			if (!(fabs(v - w) <= 2e-6 * (1 + fabs(w))))
				fail_msg("output %d [%lld]: %g, not %g\n%s",
					(int)i, (long long)k, v, w, text);
		}
	}
}

static void check_table(arena *a, const loop_case *at, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		made loop = run_one(a, at[i].model, false);
		made plain = run_one(a, at[i].model, true);

		if (loop.n_loops != at[i].n_loops || plain.n_loops != 0)
			fail_msg("%d and %d loops, not %d\n%s", loop.n_loops,
				plain.n_loops, at[i].n_loops, at[i].model);
		same_values(at[i].model, &loop, &plain);
		check_text(a, &loop);
	}
}

static void values(arena *a, void *arg)
{
	(void)arg;
	check_table(a, smooth, sizeof smooth / sizeof *smooth);
	check_table(a, others, sizeof others / sizeof *others);
}

static void run_in_arena(void (*fn)(arena *a, void *arg), void *arg)
{
	env *e = env_new();
	arena *a = arena_new(e);

	fn(a, arg);
	arena_free(a);
	env_free(e);
}

static void test_values(void **state)
{
	(void)state;
	run_in_arena(values, NULL);
}

/* The program is as large for any number of rounds. */
static void sizes(arena *a, void *arg)
{
	int32_t n[2];

	(void)arg;
	for (int32_t i = 0; i < 2; i++) {
		const char *text = arena_printf(a, "opset 14; in x float "
			"[%d,1,3]; in w float [1,16,3]; in r float [1,16,4];"
			"out y; node LSTM x w r > y;", i == 0 ? 5 : 100000);
		pb bytes = onnx_write(a, text);
		onnx_program p = onnx_import_run(
			onnx_import_new(a, parse_model(a, &bytes, NULL)));

		n[i] = p.ir->call.n;
	}
	assert_int_equal(n[0], n[1]);
}

static void test_sizes(void **state)
{
	(void)state;
	run_in_arena(sizes, NULL);
}

/* ---- the library ---- */

typedef struct file {
	char path[32];
	tn_context *c[2]; /* the second interprets */
} file;

static void file_new(file *f)
{
	int fd;

	strcpy(f->path, "/tmp/tenon-onnx-XXXXXX");
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	close(fd);
	for (int32_t i = 0; i < 2; i++) {
		tn_options o = TN_OPTIONS_INIT;

		o.cache_dir = "";
		o.threads = 1;
		o.interp = i == 1;
		assert_int_equal(tn_context_new(&f->c[i], &o), TN_OK);
	}
}

static void file_free(file *f)
{
	unlink(f->path);
	for (int32_t i = 0; i < 2; i++)
		tn_context_free(f->c[i]);
}

static void write_model(arena *a, const char *path, const char *text)
{
	pb bytes = onnx_write(a, text);
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes.s.at, 1, bytes.s.n, f), bytes.s.n);
	assert_int_equal(fclose(f), 0);
}

typedef struct loaded {
	tn_program *p;
	const void *in[16];
	void *out[MAX_OUT];
} loaded;

static void load(arena *a, tn_context *c, const char *path, loaded *x)
{
	if (tn_onnx_load(&x->p, c, path) != TN_OK)
		fail_msg("%s", tn_context_diag(c)->text);
	assert_in_range(tn_program_n_inputs(x->p), 1, 16);
	for (int32_t i = 0; i < tn_program_n_inputs(x->p); i++) {
		const tn_value *v = tn_program_input(x->p, i);
		void *data = arena_alloc(a, MANY, 1);

		tn_fill_random(v->dtype, data, v->n_elems, 7 + (uint64_t)i, 0,
			2);
		x->in[i] = data;
	}
	for (int32_t i = 0; i < tn_program_n_outputs(x->p); i++)
		x->out[i] = arena_alloc(a, MANY, 1);
}

static void check_runs_of(tn_context *c, const loaded *x)
{
	for (int32_t i = 0; i < 2; i++)
		if (tn_program_run(x->p, x->in, x->out) != TN_OK)
			fail_msg("%s", tn_context_diag(c)->text);
}

static void same_outputs(const loaded *x, const loaded *y, const char *text)
{
	assert_int_equal(tn_program_n_outputs(x->p), tn_program_n_outputs(y->p));
	for (int32_t k = 0; k < tn_program_n_outputs(x->p); k++) {
		const float *v = x->out[k], *w = y->out[k];

		for (int64_t j = 0; j < tn_program_output(x->p, k)->n_elems; j++)
			if (!(fabs((double)(v[j] - w[j])) < 2e-5))
				fail_msg("%g, not %g\n%s", (double)v[j],
					(double)w[j], text);
	}
}

/* Compiled, twice, against the interpreter. */
static void compiled(arena *a, void *arg)
{
	file *f = arg;

	for (size_t i = 0; i < sizeof smooth / sizeof *smooth; i++) {
		loaded x[2] = {{0}};

		write_model(a, f->path, smooth[i].model);
		for (int32_t k = 0; k < 2; k++) {
			load(a, f->c[k], f->path, &x[k]);
			check_runs_of(f->c[k], &x[k]);
		}
		same_outputs(&x[0], &x[1], smooth[i].model);
		for (int32_t k = 0; k < 2; k++)
			tn_program_free(x[k].p);
	}
}

/* Exported, and read again. */
static void exported(arena *a, void *arg)
{
	file *f = arg;

	for (size_t i = 0; i < sizeof smooth / sizeof *smooth; i++) {
		loaded x[2] = {{0}};

		write_model(a, f->path, smooth[i].model);
		for (int32_t k = 0; k < 2; k++) {
			load(a, f->c[1], f->path, &x[k]);
			check_runs_of(f->c[1], &x[k]);
			if (k == 0 &&
				tn_onnx_export(x[k].p, f->path) != TN_OK)
				fail_msg("%s\n%s",
					tn_context_diag(f->c[1])->text,
					smooth[i].model);
		}
		same_outputs(&x[0], &x[1], smooth[i].model);
		for (int32_t k = 0; k < 2; k++)
			tn_program_free(x[k].p);
	}
}

static void gradients(arena *a, void *arg)
{
	file *f = arg;

	for (size_t i = 0; i < sizeof smooth / sizeof *smooth; i++) {
		tn_gradcheck_options o = TN_GRADCHECK_OPTIONS_INIT;
		tn_gradcheck_result r = {0};
		loaded x = {0};

		write_model(a, f->path, smooth[i].model);
		load(a, f->c[1], f->path, &x);
		if (tn_program_gradcheck(x.p, x.in, &o, &r) != TN_OK)
			fail_msg("%s\n%s", tn_context_diag(f->c[1])->text,
				smooth[i].model);
		assert_true(r.n_checked > 0);
		tn_program_free(x.p);
	}
}

/* An index that is wrong in round 4 of 6: an error, and then a run that is not. */
static void errors(arena *a, void *arg)
{
	file *f = arg;
	float from[4] = {1, 2, 3, 4}, to[6];
	int64_t at[6] = {0, 1, 2, 3, 9, 1};
	loaded x = {0};

	write_model(a, f->path, "opset 16; in x float [4]; in i int64 [6]; out y;"
		"node Scan i > y : num_scan_inputs=1 body={ in e int64 [];"
		"node Gather x e > o; out o; };");
	for (int32_t k = 0; k < 2; k++) {
		load(a, f->c[k], f->path, &x);
		x.in[0] = from;
		x.in[1] = at;
		x.out[0] = to;
		for (int32_t i = 0; i < 4; i++) {
			at[4] = i % 2 == 0 ? 9 : 3;
			assert_int_equal(tn_program_run(x.p, x.in, x.out),
				i % 2 == 0 ? TN_ERANGE : TN_OK);
			assert_true(i % 2 == 0 || (to[4] == 4 && to[5] == 2));
		}
		tn_program_free(x.p);
	}
}

/* The weights of a loop are where the caller has put them, and change there. */
static void weights(arena *a, void *arg)
{
	file *f = arg;
	char *own = arena_alloc(a, MANY, 1);
	float x[12], w[64 * 32], y[64], first = 0;
	const void *in[2] = {x, own + 4};
	void *out[1] = {y};
	tn_program *p;

	write_model(a, f->path, "opset 16; in x float [6,1,2]; in w float "
		"[1,32,32]; out y; init v float [1,32,2] "
		"0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
		"0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0;"
		"init b float [1,64] 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
		"1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
		"1 1 1 1 1 1 1 1 1; node RNN x v w b > _ y : "
		"activations=[\"Relu\"];");
	assert_int_equal(tn_onnx_load(&p, f->c[0], f->path), TN_OK);
	memset(x, 0, sizeof x);
	for (int32_t k = 0; k < 3; k++) {
		float want = 0;

		for (int32_t i = 0; i < 32 * 32; i++)
			w[i] = k == 1 ? 0.03125f : 0.015625f;
		memcpy(own + 4, w, 32 * 32 * sizeof *w);
		for (int32_t i = 0; i < 6; i++)
			want = 2 + 32 * want * w[0];
		assert_int_equal(tn_program_run(p, in, out), TN_OK);
		assert_float_equal(y[0], want, 1e-4);
		assert_true(k != 2 || y[0] == first);
		first = k == 0 ? y[0] : first;
	}
	tn_program_free(p);
}

static void in_files(void (*fn)(arena *a, void *arg))
{
	file f;

	file_new(&f);
	run_in_arena(fn, &f);
	file_free(&f);
}

static void test_compiled(void **state)
{
	(void)state;
	in_files(compiled);
}

static void test_exported(void **state)
{
	(void)state;
	in_files(exported);
}

static void test_gradients(void **state)
{
	(void)state;
	in_files(gradients);
}

static void test_errors(void **state)
{
	(void)state;
	in_files(errors);
}

static void test_weights(void **state)
{
	(void)state;
	in_files(weights);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_compiled),
		cmocka_unit_test(test_exported),
		cmocka_unit_test(test_gradients),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_weights)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
