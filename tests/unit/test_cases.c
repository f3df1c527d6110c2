/*
 * test_cases.c: the fusion cases (tests/golden/fusion) and what random
 * programs found (tests/prop/found): values.
 *
 * Each program runs twice through the public interface, compiled and
 * interpreted, on the same seeded inputs. The interpreter is slow: programs
 * beyond what it does in a second are run as they are, but compared as a twin
 * whose large extents are a 32nd. Small programs and twins also go the way of
 * the random programs, where every element has a bound of its own.
 */
#include "unit.h"

#include "../prop/prop.h"
#include "interp/interp.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_COST = 3000000, MAX_BOUND_COST = 300000, MAX_FILES = 400 };

struct file {
	char path[600];
	char *text; /* the program alone */
};
static struct file files[MAX_FILES];
static int32_t n_files;

/* ---- files ---- */

static char *read_program(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20), line[4096];
	size_t n = 0;

	assert_non_null(f);
	assert_non_null(text);
	while (fgets(line, sizeof line, f) != NULL) {
		if (strncmp(line, "# >>>", 5) == 0)
			break;
		if (line[0] == '#')
			continue;
		assert_true(n + strlen(line) < 1 << 20);
		strcpy(text + n, line);
		n += strlen(line);
	}
	fclose(f);
	return text;
}

static void add_folder(const char *name)
{
	const char *root = getenv("TN_SOURCE_ROOT");
	char folder[256];
	struct dirent **list;
	int n;

	snprintf(folder, sizeof folder, "%s/tests/%s",
		root != NULL ? root : ".", name);
	n = scandir(folder, &list, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		const char *dot = strrchr(list[i]->d_name, '.');

		if (dot != NULL && strcmp(dot, ".tn") == 0) {
			struct file *f = &files[n_files++];

			assert_true(n_files < MAX_FILES);
			snprintf(f->path, sizeof f->path, "%s/%s", folder,
				list[i]->d_name);
			f->text = read_program(f->path);
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}

/* Extents of 500 and more by 32, in what stands in brackets. */
static char *twin_of(const char *text)
{
	char *to = calloc(1, strlen(text) + 1);
	size_t n = 0;
	int depth = 0;

	assert_non_null(to);
	while (*text != '\0') {
		size_t digits = strspn(text, "0123456789");

		depth += *text == '[' ? 1 : *text == ']' ? -1 : 0;
		if (digits > 0 && depth > 0) {
			long v = strtol(text, NULL, 10);

			v = v >= 500 ? v / 32 : v == 56 ? 7 : v;
			n += (size_t)sprintf(to + n, "%ld", v);
			text += digits;
		} else {
			to[n++] = *text++;
		}
	}
	return to;
}

/* ---- the public interface ---- */

static void must(tn_context *c, tn_status s, const char *path)
{
	if (s != TN_OK)
		fail_msg("%s: [%s] %s\n%s", path, tn_context_diag(c)->rule,
			tn_context_diag(c)->text, tn_context_diag(c)->extra);
}

struct run {
	tn_context *c;
	tn_program *p;
	void **in, **out;
};

static struct run run_program(const char *path, const char *text, bool interp)
{
	struct run r = {0};
	tn_options o = TN_OPTIONS_INIT;
	int32_t n_in, n_out;

	o.interp = interp;
	assert_int_equal(tn_context_new(&r.c, &o), TN_OK);
	must(r.c, tn_program_parse(&r.p, r.c, text, strlen(text), path), path);
	n_in = tn_program_n_inputs(r.p);
	n_out = tn_program_n_outputs(r.p);
	r.in = calloc((size_t)n_in + 1, sizeof(void *));
	r.out = calloc((size_t)n_out + 1, sizeof(void *));
	assert_true(r.in != NULL && r.out != NULL);
	must(r.c, tn_program_compile(r.p), path);
	for (int32_t i = 0; i < n_in; i++) {
		const tn_value *v = tn_program_input(r.p, i);

		r.in[i] = malloc(v->n_bytes + 1);
		assert_non_null(r.in[i]);
		tn_fill_random(v->dtype, r.in[i], v->n_elems,
			(uint64_t)i + 1, 0, 4);
	}
	for (int32_t i = 0; i < n_out; i++) {
		r.out[i] = malloc(tn_program_output(r.p, i)->n_bytes + 1);
		assert_non_null(r.out[i]);
	}
	must(r.c, tn_program_run(r.p, (const void *const *)r.in, r.out), path);
	return r;
}

static void free_run(struct run *r)
{
	for (int32_t i = 0; i < tn_program_n_inputs(r->p); i++)
		free(r->in[i]);
	for (int32_t i = 0; i < tn_program_n_outputs(r->p); i++)
		free(r->out[i]);
	free(r->in);
	free(r->out);
	tn_program_free(r->p);
	tn_context_free(r->c);
}

/* Rough: sums of thousands in another order. The twins are held to bounds. */
static void compare(const char *path, const struct run *x, const struct run *y)
{
	for (int32_t i = 0; i < tn_program_n_outputs(x->p); i++) {
		const tn_value *v = tn_program_output(x->p, i);

		for (int64_t k = 0; k < v->n_elems; k++) {
			double a = tn_get_f64(v->dtype, x->out[i], k);
			double b = tn_get_f64(v->dtype, y->out[i], k);

			if (!(fabs(a - b) <= 1e-4 * (1 + fabs(b))) &&
				!(isnan(a) && isnan(b)))
				fail_msg("%s: %s element %lld is %.9g, "
					 "interpreted %.9g",
					path, v->name, (long long)k, a, b);
		}
	}
}

/* ---- the way of the random programs ---- */

struct bounded {
	const struct file *f;
	const char *text;
	int64_t cost;
	const char *message;
};

static void find_cost(arena *a, void *arg)
{
	struct bounded *b = arg;
	ir_program *p = ir_program_parse(
		a, b->text, strlen(b->text), b->f->path, interp_loop);

	for (int32_t i = 0; i < p->call.n; i++)
		b->cost += inst_cost(p->call.at[i].inst);
}

static void run_bounded(arena *a, void *arg)
{
	struct bounded *b = arg;
	prop_options o = {.seed = 1};
	prop_result r = {0};
	prop_case c = {.seed = 1, .style = STYLE_GENERAL};
	const char *m;

	c.p = ir_program_parse(a, b->text, strlen(b->text), b->f->path, interp_loop);
	m = try_case(a, c.p->table, &o, &c, &r);
	b->message = m != NULL ? strdup(m) : NULL;
}

static int64_t cost_of(struct bounded *b)
{
	tn_diag d;

	b->cost = 0;
	if (unit_run(find_cost, b, 0, &d) != TN_OK)
		fail_msg("%s: [%s] %s", b->f->path, d.rule, d.text);
	return b->cost;
}

static void test_file(void **state)
{
	const struct file *f = *state;
	struct bounded b = {.f = f, .text = f->text};
	bool whole = cost_of(&b) <= MAX_COST;
	char *twin = twin_of(f->text);
	struct run x = run_program(f->path, f->text, false);
	tn_diag d;

	if (!whole) {
		free_run(&x);
		x = run_program(f->path, twin, false);
	}
	{
		struct run y = run_program(
			f->path, whole ? f->text : twin, true);

		compare(f->path, &x, &y);
		free_run(&y);
	}
	free_run(&x);
	if (b.cost > MAX_BOUND_COST)
		b.text = twin;
	if (cost_of(&b) <= MAX_BOUND_COST) {
		if (unit_run(run_bounded, &b, 0, &d) != TN_OK)
			fail_msg("%s: [%s] %s", f->path, d.rule, d.text);
		if (b.message != NULL)
			fail_msg("%s: %s", f->path, b.message);
	}
	free(twin);
}

int main(void)
{
	static struct CMUnitTest tests[MAX_FILES];
	int bad;

	add_folder("golden/fusion");
	
	add_folder("prop/found");
	for (int32_t i = 0; i < n_files; i++)
		tests[i] = (struct CMUnitTest){
			strrchr(files[i].path, '/') + 1, test_file, NULL, NULL,
			&files[i]};
	bad = _cmocka_run_group_tests(
		"cases", tests, (size_t)n_files, NULL, NULL);
	for (int32_t i = 0; i < n_files; i++)
		free(files[i].text);
	return bad != 0 || n_files < 50;
}
