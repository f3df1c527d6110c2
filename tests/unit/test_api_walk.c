/*
 * test_api_walk.c: every public function with arguments that are wrong.
 *
 * tools/api_walk.py makes a caller of each function from the headers, so none
 * can be forgotten. Each is called with good arguments but one, which takes
 * all its bad values in turn, then with all of them bad; each function in a
 * process of its own. It may succeed; it must not crash; and if it fails there
 * is a diagnosis with a rule and a sentence: in the context, or without one
 * in tn_context_diag(NULL).
 */
#include "api_context.h"
#include "unit.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_BAD = 6, ALL_BAD = 99, ROOM = 300 };

/* One call: argument `at` is bad, in this way. */
typedef struct bad {
	int32_t at, way;
	bool used; /* some argument was bad */
	const char *name;
	tn_context *c, *foreign;
	tn_program *program;
	tn_params *set;
	int64_t fails;
} bad;

static char scratch[1 << 16];

/* 0: a good one; 1 ..: a way to be bad */
static int32_t way_of(bad *b, int32_t i, int32_t ways)
{
	if ((b->at != i && b->at != ALL_BAD) || b->way > ways)
		return 0;
	b->used = true;
	return b->way;
}

static tn_context *a_context(bad *b, int32_t i, const char *name)
{
	(void)name;
	return way_of(b, i, 1) == 1 ? NULL : b->c;
}

static tn_tensor *bad_tensor(bad *b, int32_t way)
{
	tn_tensor *x = new_tensor(b->c);
	int64_t many[TN_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 2};

	switch (way) {
	case 1:
		return NULL;
	case 2: /* stale */
		tn_drop(x);
		return x;
	case 3:
		return new_tensor(b->foreign);
	case 4: /* of another dtype and shape */
		return tn_tensor_new(b->c, TN_BOOL, 0, NULL, NULL);
	case 5:
		return tn_tensor_new(b->c, TN_F64, TN_MAX_RANK, many, NULL);
	case 6: /* what a failed call gave, long ago */
		x = tn_tensor_new(b->c, (tn_dtype)77, 0, NULL, NULL);
		tn_context_clear(b->c);
		return x;
	default:
		return x;
	}
}

static tn_tensor *a_tensor(bad *b, int32_t i, const char *name)
{
	(void)name;
	return bad_tensor(b, way_of(b, i, 6));
}

static tn_tensor *const *a_tensors(bad *b, int32_t i, const char *name)
{
	static tn_tensor *x[ROOM];
	int32_t way = way_of(b, i, 6);

	(void)name;
	for (int32_t k = 0; k < ROOM; k++)
		x[k] = NULL;
	for (int32_t k = 0; k < 4; k++)
		x[k] = bad_tensor(b, way);
	return way == 1 ? NULL : x;
}

static tn_tensor **a_room(bad *b, int32_t i, const char *name)
{
	static tn_tensor *x[ROOM];

	(void)b;
	(void)i;
	(void)name;
	memset(x, 0, sizeof x);
	return x;
}

static void *a_handle_room(bad *b, int32_t i)
{
	static void *x[ROOM];

	(void)b;
	(void)i;
	memset(x, 0, sizeof x);
	return x;
}

static const char *a_text(bad *b, int32_t i, const char *name)
{
	switch (way_of(b, i, 4)) {
	case 1:
		return NULL;
	case 2:
		return "";
	case 3:
		return "no such thing";
	case 4:
		return "\xff\xfe{[\"%s%n";
	default:
		return strcmp(name, "path") == 0   ? "walk.file"
			: strcmp(name, "op") == 0  ? "relu"
			: strcmp(name, "mesh") == 0 ? "a=1"
						    : "x";
	}
}

/* what a format prints: there is always some */
static const char *a_word(bad *b, int32_t i)
{
	const char *text = a_text(b, i, "word");

	return text != NULL ? text : "";
}

static char *a_no_text(bad *b, int32_t i, const char *name)
{
	(void)b;
	(void)i;
	(void)name;
	return NULL; /* it is freed */
}

static char **a_text_room(bad *b, int32_t i, const char *name)
{
	return (char **)a_room(b, i, name);
}

static const char *const *a_texts(bad *b, int32_t i, const char *name)
{
	static const char *const good[] = {"x", "y", "z", "w"};
	static const char *const none[4], *const empty[] = {"", "", "", ""};

	(void)name;
	switch (way_of(b, i, 3)) {
	case 1:
		return NULL;
	case 2:
		return none;
	case 3:
		return empty;
	default:
		return good;
	}
}

/* Counts are never larger than what is there: that nobody can see. */
static int32_t an_i32(bad *b, int32_t i, const char *name)
{
	switch (way_of(b, i, 3)) {
	case 1:
		return -1;
	case 2:
		return INT32_MIN;
	case 3:
		return strcmp(name, "i") == 0 || strcmp(name, "k") == 0
			? INT32_MAX : 0;
	default:
		return 1;
	}
}

static int64_t an_i64(bad *b, int32_t i, const char *name)
{
	bool counts = strcmp(name, "n_elems") == 0;

	if (strncmp(b->name, "tn_get_", 7) == 0 ||
		strncmp(b->name, "tn_set_", 7) == 0)
		return 1; /* an element of what is there */
	switch (way_of(b, i, 5)) {
	case 1:
		return -1;
	case 2:
		return INT64_MIN;
	case 3:
		return counts ? 0 : INT64_MAX;
	case 4:
		return 0;
	case 5:
		return counts ? 1 : (int64_t)1 << 40;
	default:
		return 1;
	}
}

static uint64_t a_u64(bad *b, int32_t i, const char *name)
{
	(void)name;
	return way_of(b, i, 1) == 1 ? UINT64_MAX : 1;
}

static size_t a_size(bad *b, int32_t i, const char *name)
{
	(void)name;
	return way_of(b, i, 1) == 1 ? 0 : 1;
}

static uint32_t a_u32(bad *b, int32_t i, const char *name)
{
	return (uint32_t)an_i32(b, i, name);
}

static double a_double(bad *b, int32_t i, const char *name)
{
	(void)name;
	switch (way_of(b, i, 4)) {
	case 1:
		return NAN;
	case 2:
		return -1;
	case 3:
		return HUGE_VAL;
	case 4:
		return 0;
	default:
		return 0.5;
	}
}

static bool a_bool(bad *b, int32_t i, const char *name)
{
	(void)name;
	return way_of(b, i, 1) == 1;
}

static tn_dtype a_dtype(bad *b, int32_t i, const char *name)
{
	static const int other[] = {0, -1, TN_N_DTYPES, TN_BOOL};

	(void)name;
	return (tn_dtype)other[way_of(b, i, 3)];
}

static tn_level a_level(bad *b, int32_t i, const char *name)
{
	return (tn_level)a_dtype(b, i, name);
}

static tn_status a_status(bad *b, int32_t i, const char *name)
{
	(void)name;
	return way_of(b, i, 1) == 1 ? TN_OK : TN_EIO;
}

static const int64_t *some_i64(bad *b, int32_t i, const char *name)
{
	static const int64_t good[ROOM] = {1, 1, 1, 1},
		less[ROOM] = {-1, -1, -1, -1},
		least[ROOM] = {INT64_MIN, INT64_MIN, INT64_MIN},
		most[ROOM] = {INT64_MAX, INT64_MAX, INT64_MAX};
	const int64_t *const at[] = {good, NULL, less, least, most};

	(void)name;
	return at[way_of(b, i, 4)];
}

static int64_t *room_i64(bad *b, int32_t i, const char *name)
{
	return (int64_t *)(void *)a_room(b, i, name);
}

static int32_t *room_i32(bad *b, int32_t i, const char *name)
{
	return (int32_t *)(void *)a_room(b, i, name);
}

static double *room_f64(bad *b, int32_t i, const char *name)
{
	return (double *)(void *)a_room(b, i, name);
}

static const bool *some_bool(bad *b, int32_t i, const char *name)
{
	static const bool none[ROOM];

	(void)name;
	return way_of(b, i, 1) == 1 ? NULL : none;
}

static void *room_data(bad *b, int32_t i, const char *name)
{
	if (strcmp(name, "user") == 0)
		return NULL;
	return way_of(b, i, 1) == 1 ? NULL : scratch;
}

static const void *some_data(bad *b, int32_t i, const char *name)
{
	return room_data(b, i, name);
}

static void *const *room_arrays(bad *b, int32_t i, const char *name)
{
	static void *at[ROOM], *none[ROOM];

	(void)name;
	for (int32_t k = 0; k < ROOM; k++)
		at[k] = scratch;
	switch (way_of(b, i, 2)) {
	case 1:
		return NULL;
	case 2:
		return none;
	default:
		return at;
	}
}

static const void *const *some_arrays(bad *b, int32_t i, const char *name)
{
	return (const void *const *)room_arrays(b, i, name);
}

static const tn_array *an_array(bad *b, int32_t i, const char *name)
{
	static tn_array a[8];
	int32_t way = way_of(b, i, 4);

	(void)name;
	for (int32_t k = 0; k < 8; k++) {
		a[k] = (tn_array){.dtype = TN_F32, .rank = 1, .shape = {4},
			.n_elems = 4, .n_bytes = 16, .data = scratch};
		if (way == 2)
			a[k] = (tn_array){.rank = -1};
		if (way == 3)
			a[k] = (tn_array){.dtype = (tn_dtype)99,
				.rank = 77, .n_elems = -5};
		if (way == 4)
			a[k].data = NULL;
	}
	return way == 1 ? NULL : a;
}

static tn_array *no_array(bad *b, int32_t i, const char *name)
{
	(void)b;
	(void)i;
	(void)name;
	return NULL; /* it is freed */
}

static tn_array **room_array(bad *b, int32_t i, const char *name)
{
	return (tn_array **)(void *)a_room(b, i, name);
}

static const tn_array **room_borrowed(bad *b, int32_t i, const char *name)
{
	return (const tn_array **)(void *)a_room(b, i, name);
}

static bool is_freed(const bad *b)
{
	size_t n = strlen(b->name);

	return n > 5 && strcmp(b->name + n - 5, "_free") == 0;
}

static tn_program *a_program(bad *b, int32_t i, const char *name)
{
	static const char text[] =
		"program { x: f32[4] y = relu(x) return y }";
	tn_program *p;

	(void)name;
	if (way_of(b, i, 1) == 1 || is_freed(b))
		return NULL;
	if (tn_program_parse(&p, b->c, text, strlen(text), NULL) < 0)
		exit(3);
	return p;
}

/* Of these there is only none: they come from files, or are made elsewhere. */
static void *none(bad *b, int32_t i)
{
	(void)way_of(b, i, 1);
	return NULL;
}

static tn_onnx *a_model(bad *b, int32_t i, const char *name)
{
	(void)name;
	return none(b, i);
}

static tn_npz *an_npz(bad *b, int32_t i, const char *name)
{
	(void)name;
	return none(b, i);
}

static tn_params *a_set(bad *b, int32_t i, const char *name)
{
	tn_params *p;

	(void)name;
	if (way_of(b, i, 1) == 1 || is_freed(b))
		return NULL;
	if (tn_params_new(&p, b->c) < 0)
		exit(3);
	return p;
}

static tn_optimizer *an_optimizer(bad *b, int32_t i, const char *name)
{
	tn_optimizer *o;

	(void)name;
	if (way_of(b, i, 1) == 1 || is_freed(b))
		return NULL;
	if (tn_optimizer_new(&o, b->c, "adam", NULL) < 0)
		exit(3);
	return o;
}

static tn_layer *a_layer(bad *b, int32_t i, const char *name)
{
	tn_params *p;

	(void)name;
	if (way_of(b, i, 1) == 1)
		return NULL;
	if (tn_params_new(&p, b->c) < 0)
		exit(3);
	return tn_nn_linear(p, "fc", 3, 2, NULL);
}

static tn_status first(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c;
	(void)user;
	out[0] = tn_relu(in[0]);
	return TN_OK;
}

static tn_body *a_body(bad *b, int32_t i, const char *name)
{
	(void)name;
	return way_of(b, i, 1) == 1 ? NULL : first;
}

static tn_status nothing(void *user, int32_t n_in, const tn_array *in,
	int32_t n_out, const tn_array *out)
{
	(void)user;
	(void)n_in;
	(void)in;
	(void)n_out;
	(void)out;
	return TN_OK;
}

static tn_host *a_host(bad *b, int32_t i, const char *name)
{
	(void)name;
	return way_of(b, i, 1) == 1 ? NULL : nothing;
}

static tn_function *a_function(bad *b, int32_t i, const char *name)
{
	tn_function *f;

	(void)name;
	if (way_of(b, i, 1) == 1 || is_freed(b))
		return NULL;
	if (tn_compile(&f, b->c, first, NULL, 1, 1, "f") < 0)
		exit(3);
	return f;
}

static tn_mesh *a_mesh(bad *b, int32_t i, const char *name)
{
	(void)name;
	return way_of(b, i, 1) == 1 ? NULL : tn_mesh_parse(b->c, "a=1");
}

static tn_world *a_world(bad *b, int32_t i, const char *name)
{
	(void)name;
	return way_of(b, i, 1) == 1 || is_freed(b) ? NULL : tn_world_new(1);
}

static const tn_attr *some_attrs(bad *b, int32_t i, const char *name)
{
	static tn_attr a[4];
	int32_t way = way_of(b, i, 6);

	(void)name;
	memset(a, 0, sizeof a);
	a[0].name = "alpha";
	a[0].kind = TN_ATTR_REAL;
	if (way == 2)
		a[0].name = NULL;
	if (way == 3)
		memset(&a[0].kind, 77, sizeof a[0].kind);
	if (way == 4)
		a[0].kind = TN_ATTR_STRING; /* NULL */
	if (way == 5) {
		a[0].kind = TN_ATTR_INTS; /* NULL */
		a[0].n_ints = 3;
	}
	if (way == 6) {
		a[0].kind = TN_ATTR_INTS;
		a[0].ints = (const int64_t *)(const void *)scratch;
		a[0].n_ints = -3;
	}
	return way == 1 ? NULL : a;
}

static const tn_pair *some_pairs(bad *b, int32_t i, const char *name)
{
	static const tn_pair good[4] = {{"a", "b"}}, less[4];

	(void)name;
	switch (way_of(b, i, 2)) {
	case 1:
		return NULL;
	case 2:
		return less;
	default:
		return good;
	}
}

static const tn_placement *some_places(bad *b, int32_t i, const char *name)
{
	static const tn_placement good[8] = {TN_SHARDED(0)},
		kind[8] = {{(tn_placement_kind)99, 0, 0, NULL}},
		axis[8] = {TN_SHARDED(77)}, op[8] = {TN_PARTS(NULL)},
		block[8] = {TN_SHARDED_BY(0, -1)};
	const tn_placement *const at[] = {good, NULL, kind, axis, op, block};

	(void)name;
	return at[way_of(b, i, 5)];
}

static const tn_export_options *some_export(bad *b, int32_t i, const char *name)
{
	static tn_export_options good = TN_EXPORT_INIT, size, kind, word;
	const tn_export_options *const at[] = {&good, NULL, &size, &kind, &word};

	(void)name;
	size = kind = word = good;
	size.n_bytes = 3;
	kind.threads = (tn_export_threads)99;
	word.name = "not a name";
	return at[way_of(b, i, 4)];
}

static tn_dl_managed *a_managed(bad *b, int32_t i, const char *name)
{
	static tn_dl_managed m;
	static int64_t shape[] = {4};
	int32_t way = way_of(b, i, 3);

	(void)name;
	m = (tn_dl_managed){.tensor = {.data = scratch, .device = {1, 0},
				    .n_axes = 1, .dtype = {2, 32, 1},
				    .shape = shape}};
	if (way == 2)
		memset(&m, 0, sizeof m);
	if (way == 3)
		m.tensor.n_axes = -1;
	return way == 1 ? NULL : &m;
}

static tn_dl_managed **room_managed(bad *b, int32_t i, const char *name)
{
	return (tn_dl_managed **)(void *)a_room(b, i, name);
}

/* Choices: the defaults, or zeros. */
static void *options(bad *b, int32_t i, size_t n)
{
	static char zeros[1024];

	if (n > sizeof zeros)
		exit(3);
	return way_of(b, i, 1) == 1 ? zeros : NULL;
}

static void *room(bad *b, int32_t i, size_t n)
{
	static char out[8192];

	(void)b;
	(void)i;
	if (n > sizeof out)
		exit(3);
	return out;
}

/* ---- what came of it ---- */

static void want_words(bad *b, const char *what)
{
	const tn_diag *d = tn_context_diag(b->c);

	if (d->rule[0] == '\0' || d->text[0] == '\0')
		d = tn_context_diag(b->foreign);
	if (d->rule[0] == '\0' || d->text[0] == '\0')
		d = tn_context_diag(NULL);
	if (d->rule[0] != '\0' && d->text[0] != '\0')
		return;
	printf("%s: argument %d bad in way %d: %s, and no diagnosis\n",
		b->name, b->at, b->way, what);
	b->fails++;
}

static void status_is(bad *b, tn_status s)
{
	if (s < 0)
		want_words(b, "a status");
}

static void tensor_is(bad *b, tn_tensor *x)
{
	/* a question whose answer may be "none" */
	bool asks = strcmp(b->name, "tn_gradient") == 0 ||
		strncmp(b->name, "tn_params_", 10) == 0 ||
		strcmp(b->name, "tn_optimizer_state") == 0;

	if (!tn_is_valid(x) && !(asks && b->at != 0) &&
		strcmp(b->name, "tn_params_at") != 0 &&
		strcmp(b->name, "tn_params_get") != 0 &&
		strcmp(b->name, "tn_optimizer_state") != 0 &&
		strcmp(b->name, "tn_gradient") != 0)
		want_words(b, "no tensor");
}

static void layer_is(bad *b, tn_layer *x)
{
	if (x == NULL)
		want_words(b, "no layer");
}

static void mesh_is(bad *b, tn_mesh *x)
{
	if (x == NULL)
		want_words(b, "no mesh");
}

#include "walk.inc"

enum { N_WALKS = (int)(sizeof walks / sizeof walks[0]) };

static void call(bad *b, const struct walk *w)
{
	b->c = new_context();
	b->foreign = new_context();
	b->used = false;
	tn_context_clear(NULL);
	w->call(b);
}

/* All ways in which one argument can be bad, then all at once. */
static int walk(const struct walk *w)
{
	bad b = {.name = w->name};

	for (int32_t i = 0; i <= w->n; i++) {
		b.at = i == w->n ? ALL_BAD : i;
		for (b.way = 1; b.way <= MOST_BAD; b.way++) {
			call(&b, w);
			if (!b.used)
				break;
		}
	}
	return b.fails > 0;
}

static void all(void **state)
{
	const char *only = getenv("TN_WALK");
	char dir[] = "/tmp/tenon-walk-XXXXXX";
	static const int ends[] = {
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	int n_bad = 0;

	(void)state;
	assert_true(N_WALKS > 400);
	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < N_WALKS; i++) {
		int status = 0;
		pid_t child;

		if (only != NULL && strstr(walks[i].name, only) == NULL)
			continue;
		fflush(NULL);
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			alarm(60);
			/* cmocka would catch them and go on */
			for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
				signal(ends[k], SIG_DFL);
			if (chdir(dir) != 0)
				_exit(3);
			status = walk(&walks[i]);
			fflush(NULL);
			_exit(status);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			continue;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
			print_error("%s: ended by %d\n", walks[i].name, status);
		n_bad++;
	}
	(void)remove("walk.file");
	if (n_bad > 0)
		fail_msg("%d of %d functions", n_bad, N_WALKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
