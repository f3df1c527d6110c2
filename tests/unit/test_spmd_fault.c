/*
 * test_spmd_fault.c: processes of a mesh that differ, and what each of them is
 * told. Processes are threads.
 */
#include "ranks.h"
#include "unit.h"

#include <string.h>

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

enum { N = 3 };

static const tn_placement rows[1] = {TN_SHARDED(0)};

static tn_tensor *ramp(tn_context *c, tn_mesh *m)
{
	double v[12];
	tn_tensor *x;

	for (int32_t i = 0; i < 12; i++)
		v[i] = i;
	x = tn_tensor_new(c, TN_F64, 2, SHAPE(6, 2), v);
	tn_shard(x, m, rows);
	return x;
}

static tn_mesh *mesh(tn_context *c)
{
	return tn_mesh_new(c, 1, NULL, SHAPE(N));
}

/* ---- what is compared ---- */

static void words(tn_context *c, int32_t process, void *arg)
{
	(void)arg;
	if (tn_agree(c, "the seed", "5") < 0)
		return;
	tn_agree(c, "the rate", process == 1 ? "0.1" : "0.01");
}

static const char long_word[] =
	"sixty letters and more, which are the same in the beginning ";

static void long_words(tn_context *c, int32_t process, void *arg)
{
	char text[80];

	(void)arg;
	snprintf(text, sizeof text, "%s%d", long_word, (int)process);
	tn_agree(c, "the name", text);
}

static void meshes(tn_context *c, int32_t process, void *arg)
{
	const char *name[] = {process == 2 ? "model" : "data"};

	(void)arg;
	(void)tn_mesh_new(c, 1, name, SHAPE(N));
}

/* One multiplies by another number: another program. */
static void programs(tn_context *c, int32_t process, void *arg)
{
	tn_mesh *m = mesh(c);
	tn_tensor *x = ramp(c, m);
	double v[12];

	(void)arg;
	x = process == 0 ? tn_exp(x) : tn_sin(x);
	(void)!tn_read(x, v, sizeof v);
}

/* One places what it computes elsewhere. */
static void places(tn_context *c, int32_t process, void *arg)
{
	const tn_placement wide[1] = {TN_SHARDED_BY(0, 4)};
	tn_mesh *m = mesh(c);
	tn_tensor *x = tn_exp(ramp(c, m));
	double v[12];

	(void)arg;
	tn_shard(x, m, process == 1 ? wide : rows);
	(void)!tn_read(x, v, sizeof v);
}

static const struct {
	ranks_body *body;
	const char *text;
} differs[] = {
	{words, "the rate is not the same on all processes: 0.01 on 0 and 2; "
		"0.1 on 1"},
	{long_words, "the name is not the same on all processes: "},
	{meshes, "the mesh is not the same on all processes: data=3 on 0 and 1; "
		 "model=3 on 2"},
	{programs, "a program that is compiled is not the same on all "
		   "processes: 1 calls"},
	{places, "a program that is compiled is not the same on all "
		 "processes: 1 calls"},
};

static void test_differ(void **state)
{
	ranks_thread t[N];

	(void)state;
	for (size_t i = 0; i < sizeof differs / sizeof *differs; i++) {
		ranks_run(t, N, true, differs[i].body, NULL);
		for (int32_t p = 0; p < N; p++) {
			assert_int_equal(t[p].status, TN_EINVAL);
			assert_string_equal(t[p].rule, "shard.differ");
			assert_string_equal(t[p].text, t[0].text);
			assert_non_null(strstr(t[p].text, differs[i].text));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
