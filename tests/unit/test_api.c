/* tenon.h as a user sees it: contexts, programs, runs, arrays, refusals. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char softmax[] = "program {\n"
			      "  x: f32[4,6]\n"
			      "  b: f32[6]\n"
			      "  t = add(x, b)\n"
			      "  y = softmax(t, axis=-1)\n"
			      "  return y, t\n"
			      "}\n";

static const char gather[] = "program {\n"
			     "  w: f32[5,2]\n"
			     "  ids: i64[3]\n"
			     "  y = embedding(ids, w)\n"
			     "  return y\n"
			     "}\n";

static tn_context *context(bool interp)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = interp;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

static tn_program *parse(tn_context *c, const char *text)
{
	tn_program *p;

	if (tn_program_parse(&p, c, text, strlen(text), "test.tn") < 0)
		fail_msg("%s", tn_context_diag(c)->text);
	return p;
}

static void run_ok(tn_program *p, tn_context *c, const void *const *in,
	void *const *out)
{
	if (tn_program_run(p, in, out) < 0)
		fail_msg("[%s] %s", tn_context_diag(c)->rule,
			tn_context_diag(c)->text);
}

/* Rows sum to one, compiled and interpreted agree, three runs in a row. */
static void runs(void **state)
{
	float x[24], b[6], y[2][24], t[2][24];
	const void *in[] = {x, b};

	(void)state;
	tn_fill_random(TN_F32, x, 24, 1, 0, 0);
	tn_fill_random(TN_F32, b, 6, 2, 0, 0);
	for (int k = 0; k < 2; k++) {
		tn_context *c = context(k);
		tn_program *p = parse(c, softmax);
		void *out[] = {y[k], t[k]};

		assert_int_equal(tn_program_n_inputs(p), 2);
		assert_int_equal(tn_program_n_outputs(p), 2);
		assert_string_equal(tn_program_input(p, 1)->name, "b");
		assert_int_equal(tn_program_output(p, 0)->n_elems, 24);
		assert_null(tn_program_input(p, 2));
		for (int i = 0; i < 3; i++) {
			memset(y[k], 0, sizeof y[k]);
			run_ok(p, c, in, out);
			for (int r = 0; r < 4; r++) {
				float s = 0;

				for (int j = 0; j < 6; j++)
					s += y[k][6 * r + j];
				assert_true(fabsf(s - 1) < 1e-5f);
			}
		}
		tn_program_free(p);
		tn_context_free(c);
	}
	for (int i = 0; i < 24; i++) {
		assert_true(t[0][i] == x[i] + b[i % 6]);
		assert_true(fabsf(y[0][i] - y[1][i]) < 1e-6f);
	}
}

static void index_out_of_range(void **state)
{
	float w[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, y[6];
	int64_t ids[3] = {4, 0, 2};
	const void *in[] = {w, ids};
	void *out[] = {y};

	(void)state;
	for (int k = 0; k < 2; k++) {
		tn_context *c = context(k);
		tn_program *p = parse(c, gather);

		assert_int_equal(tn_program_compile(p), TN_OK);
		assert_int_equal(tn_program_input(p, 1)->lo, 0);
		assert_int_equal(tn_program_input(p, 1)->hi, 5);
		assert_int_equal(tn_program_input(p, 0)->hi, 0);
		ids[1] = 0;
		run_ok(p, c, in, out);
		assert_true(y[0] == 8 && y[2] == 0 && y[5] == 5);
		for (int bad = -1; bad <= 5; bad += 6) {
			ids[1] = bad;
			assert_int_equal(
				tn_program_run(p, in, out), TN_ERANGE);
			assert_string_equal(
				tn_context_diag(c)->rule, "index.range");
			/* compiled code knows the tensor, not the row */
			assert_non_null(strstr(tn_context_diag(c)->text,
				k ? "embedding" : "ids[1]"));
		}
		ids[1] = 3; /* and after an error all is well again */
		run_ok(p, c, in, out);
		assert_true(y[2] == 6);
		tn_program_free(p);
		tn_context_free(c);
	}
}

static void refusals(void **state)
{
	static const char bad[] = "program {\n  x: f32[4]\n"
				  "  y = reluu(x)\n  return y\n}\n";
	tn_options old = TN_OPTIONS_INIT;
	tn_context *c;
	tn_program *p;
	float y[24], t[24];
	void *out[] = {y, t};

	(void)state;
	old.n_bytes--;
	assert_int_equal(tn_context_new(&c, &old), TN_EINVAL);
	c = context(true);
	assert_int_equal(tn_context_diag(c)->status, TN_OK);
	assert_int_equal(
		tn_program_parse(&p, c, bad, strlen(bad), "bad.tn"), TN_EINVAL);
	assert_null(p);
	assert_string_equal(tn_context_diag(c)->file, "bad.tn");
	assert_int_equal(tn_context_diag(c)->line, 3);
	assert_int_equal(tn_program_load(&p, c, "/nonexistent.tn"), TN_EIO);
	assert_string_equal(tn_context_diag(c)->rule, "file.read");
	p = parse(c, softmax);
	assert_int_equal(tn_program_run(p, NULL, out), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "api.null");
	tn_program_free(p);
	tn_program_free(NULL);
	tn_text_free(NULL);
	tn_array_free(NULL);
	tn_context_free(c);
	tn_context_free(NULL);
}

/* An output inside an input, or in another output, is refused before anything is
 * written; arrays that touch are not. */
static void overlaps(void **state)
{
	float m[24 + 6 + 24 + 24], before[78];

	(void)state;
	for (int k = 0; k < 2; k++) {
		tn_context *c = context(k);
		tn_program *p = parse(c, softmax);
		const void *in[] = {m, m + 24};
		void *out[] = {m + 30, m + 54};

		tn_fill_random(TN_F32, m, 78, 3, 0, 0);
		memcpy(before, m, sizeof m);
		for (int i = 0; i < 3; i++) {
			static const char *const says[] = {
				"output y overlaps that of input x",
				"output t overlaps that of input b",
				"outputs y and t overlap"};
			void *bad[] = {i == 0 ? m : out[0],
				i == 0 ? out[1] : i == 1 ? m + 29 : m + 53};

			assert_int_equal(tn_program_run(p, in, bad), TN_EINVAL);
			assert_string_equal(
				tn_context_diag(c)->rule, "program.overlap");
			assert_non_null(
				strstr(tn_context_diag(c)->text, says[i]));
			assert_memory_equal(m, before, sizeof m);
		}
		run_ok(p, c, in, out);
		assert_true(m[54] == m[0] + m[24]);
		tn_program_free(p);
		tn_context_free(c);
	}
}

static void texts(void **state)
{
	tn_context *c = context(false);
	tn_program *p = parse(c, softmax), *q;
	char *text, *again;

	(void)state;
	for (int level = TN_LEVEL_PROGRAM; level <= TN_LEVEL_C; level++)
		for (uint32_t flags = 0; flags < 4; flags++) {
			assert_int_equal(tn_program_explain(&text, p,
						 (tn_level)level, flags),
				TN_OK);
			assert_true(strlen(text) > 20);
			tn_text_free(text);
		}
	assert_int_equal(
		tn_program_explain(&text, p, TN_LEVEL_PROGRAM, 0), TN_OK);
	q = parse(c, text);
	assert_int_equal(
		tn_program_explain(&again, q, TN_LEVEL_PROGRAM, 0), TN_OK);
	assert_string_equal(text, again);
	tn_text_free(text);
	tn_text_free(again);
	assert_int_equal(tn_ops_text(&text, c, true), TN_OK);
	assert_non_null(strstr(text, "softmax"));
	tn_text_free(text);
	tn_program_free(q);
	tn_program_free(p);
	tn_context_free(c);
}

/* What is compiled once is not compiled again: in a context, then on disk. */
static void caches(void **state)
{
	char dir[] = "/tmp/test_api-XXXXXX", path[64];
	tn_options o = TN_OPTIONS_INIT;
	tn_stats s;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/cache", dir);
	o.cache_dir = path;
	for (int round = 0; round < 3; round++) {
		tn_context *c;

		if (round == 2)
			o.cache_dir = ""; /* keeps nothing, finds nothing */
		assert_int_equal(tn_context_new(&c, &o), TN_OK);
		for (int k = 0; k < 2; k++) {
			tn_program *p = parse(c, softmax);

			assert_int_equal(tn_program_compile(p), TN_OK);
			tn_program_free(p);
		}
		tn_context_stats(c, &s);
		assert_int_equal(s.n_programs, 2);
		assert_true(s.n_kernels >= 2);
		assert_int_equal(s.n_compiled, round != 1);
		assert_int_equal(s.n_disk_hits, round == 1);
		assert_int_equal(s.n_memory_hits, 1);
		tn_context_free(c);
	}
	snprintf(path, sizeof path, "rm -rf %s", dir);
	assert_int_equal(system(path), 0);
}

/* Every equation a kernel of its own: more kernels, the same values. */
static void unfused(void **state)
{
	float x[24], b[6], y[2][24], t[24];
	const void *in[] = {x, b};
	int64_t n_kernels[2];

	(void)state;
	tn_fill_random(TN_F32, x, 24, 1, 0, 0);
	tn_fill_random(TN_F32, b, 6, 2, 0, 0);
	for (int k = 0; k < 2; k++) {
		tn_options o = TN_OPTIONS_INIT;
		void *out[] = {y[k], t};
		tn_context *c;
		tn_program *p;
		tn_stats s;

		o.no_fusion = k;
		o.threads = 1 + 2 * k;
		assert_int_equal(tn_context_new(&c, &o), TN_OK);
		p = parse(c, softmax);
		run_ok(p, c, in, out);
		tn_context_stats(c, &s);
		n_kernels[k] = s.n_kernels;
		tn_program_free(p);
		tn_context_free(c);
	}
	assert_true(n_kernels[0] < n_kernels[1]);
	for (int i = 0; i < 24; i++)
		assert_true(fabsf(y[0][i] - y[1][i]) < 1e-6f);
}

/* ---- memory of the caller's choice ---- */

struct budget {
	int64_t n_live, n_left; /* blocks; allocations until one fails */
};

static void *resize(void *arg, void *old, size_t n_bytes)
{
	struct budget *b = arg;

	if (n_bytes == 0) {
		b->n_live--;
		free(old);
		return NULL;
	}
	if (b->n_left >= 0 && b->n_left-- == 0)
		return NULL;
	b->n_live += old == NULL;
	return realloc(old, n_bytes);
}

static tn_status interpret(struct budget *b)
{
	tn_options o = TN_OPTIONS_INIT;
	float x[24] = {0}, bias[6] = {0}, y[24], t[24];
	const void *in[] = {x, bias};
	void *out[] = {y, t};
	tn_context *c;
	tn_program *p = NULL;
	tn_status s;

	o.interp = true;
	o.memory = (tn_allocator){resize, b};
	s = tn_context_new(&c, &o);
	if (s == TN_OK)
		s = tn_program_parse(&p, c, softmax, strlen(softmax), NULL);
	if (s == TN_OK)
		s = tn_program_run(p, in, out);
	tn_program_free(p);
	tn_context_free(c);
	return s;
}

static void memory_ends(void **state)
{
	struct budget b = {0, -1};
	tn_status s = TN_ENOMEM;

	(void)state;
	assert_int_equal(interpret(&b), TN_OK);
	assert_int_equal(b.n_live, 0);
	for (int64_t n = 0; n < 3000 && s != TN_OK; n++) {
		b = (struct budget){0, n};
		s = interpret(&b);
		assert_true(s == TN_OK || s == TN_ENOMEM);
		assert_int_equal(b.n_live, 0);
	}
	assert_int_equal(s, TN_OK);
}

static void arrays(void **state)
{
	static const int64_t shape[] = {2, 3};
	char path[] = "/tmp/test_api-XXXXXX.npy";
	int file = mkstemps(path, 4);
	tn_context *c = context(true);
	int32_t data[6] = {1, -2, 3, 4, 5, 6};
	tn_array *a;

	(void)state;
	assert_true(file >= 0);
	close(file);
	assert_int_equal(tn_npy_write(c, path, TN_I32, 2, shape, data), TN_OK);
	assert_int_equal(tn_npy_read(&a, c, path), TN_OK);
	assert_int_equal(a->dtype, TN_I32);
	assert_int_equal(a->n_elems, 6);
	assert_memory_equal(a->data, data, sizeof data);
	assert_int_equal(tn_get_i64(TN_I32, a->data, 1), -2);
	tn_array_free(a);
	assert_int_equal(tn_npy_write(c, path, TN_I32, 9, shape, data),
		TN_EINVAL);
	unlink(path);
	assert_int_equal(tn_npy_read(&a, c, path), TN_EIO);
	assert_null(a);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs),
		cmocka_unit_test(index_out_of_range),
		cmocka_unit_test(refusals),
		cmocka_unit_test(overlaps),
		cmocka_unit_test(texts),
		cmocka_unit_test(caches),
		cmocka_unit_test(unfused),
		cmocka_unit_test(memory_ends),
		cmocka_unit_test(arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
