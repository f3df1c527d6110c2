/*
 * export_steps.c: steps of training as exported C have the bits of the library.
 *
 *     export_steps mlp|regions|conv|gpt|gpt_bf16 STEPS DIR
 *
 * A net is made, and its step exported into DIR (tn_function_export_c); the C is
 * compiled into a shared object and loaded. Then both make the same steps on the
 * same batches, and after each the loss and the whole state are compared: parameters,
 * statistics, moments, counts. The arena has guards and holds no number before the
 * first step, nor between steps behind the state; each array has guards, too. Between
 * steps there are some with a class that there is not, of which nothing is left.
 *
 * With regions, the C is one program where the library runs several, which rounds in
 * another order: then values are near, and the exported test, whose bits are those of
 * the same program in the library, must pass.
 */
#define _GNU_SOURCE
#include "api/api.h"
#include "apps/gpt/train.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, FILL = 0xff, MAX_IN = 3, TEXT = 1 << 20 };

/* ---- nets ---- */

typedef struct net {
	tn_context *c;
	tn_params *p, *all;
	tn_optimizer *opt;
	tn_layer *layer[4];
	train_gpt *gpt;
	tn_tensor *count; /* how often a branch was taken; or NULL */
	int n_taken;
	tn_function *step;
	const struct kind *kind;
} net;

typedef struct kind {
	const char *name, *optimizer;
	double lr, decay, clip;
	int64_t x[4], y[2]; /* shapes of a batch */
	int32_t rank;
	int64_t n_x, n_y, classes;
	bool is_gpt, has_key, is_bf16, has_regions;
	void (*make)(net *n);
	tn_tensor *(*loss)(const net *n, tn_tensor *x, tn_tensor *y);
} kind;

static void make_mlp(net *n)
{
	n->layer[0] = tn_nn_linear(n->p, "in", 5, 24, NULL);
	n->layer[1] = tn_nn_linear(n->p, "hidden", 24, 20, NULL);
	n->layer[2] = tn_nn_linear(n->p, "out", 20, 3, NULL);
}

static tn_tensor *mlp_loss(const net *n, tn_tensor *x, tn_tensor *y)
{
	tn_tensor *h = tn_relu(tn_nn_forward(n->layer[0], x));

	h = tn_nn_dropout(h, 0.2, true);
	h = tn_relu(tn_nn_forward(n->layer[1], h));
	return tn_cross_entropy(tn_nn_forward(n->layer[2], h), y);
}

/* ---- conditions and loops ---- */

/* h, row -> h', and a row that says how great it is */
static tn_status one_layer(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	const net *n = user;

	out[0] = tn_tanh(tn_nn_forward(n->layer[1], tn_mul(in[0], in[1])));
	out[1] = tn_reduce_max(out[0], NULL, 0, false);
	return tn_context_status(c);
}

static tn_status twice(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	const net *n = user;

	/* a condition may write: how often it was taken */
	tn_copy_(n->count, tn_add(n->count, tn_scalar(c, TN_F32, 1)));
	out[0] = tn_mul(in[0], tn_scalar(c, TN_F32, 2));
	return tn_context_status(c);
}

static tn_status shifted(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	const net *n = user;

	out[0] = tn_relu(tn_nn_forward(n->layer[1], in[0]));
	return tn_context_status(c);
}

static tn_status is_large(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)user;
	out[0] = tn_gt(in[0], tn_scalar(c, TN_F32, 0.25));
	return tn_context_status(c);
}

static tn_status halve(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)user;
	out[0] = tn_mul(in[0], tn_scalar(c, TN_F32, 0.5));
	return tn_context_status(c);
}

static void make_regions(net *n)
{
	static const int64_t one[1] = {1};
	static const float zero[1];

	n->layer[0] = tn_nn_linear(n->p, "in", 5, 20, NULL);
	n->layer[1] = tn_nn_linear(n->p, "hidden", 20, 20, NULL);
	n->layer[2] = tn_nn_linear(n->p, "out", 20, 3, NULL);
	tn_no_grad_enter(n->c);
	n->count = tn_parameter(n->c, "count", TN_F32, 0, one, zero);
	tn_no_grad_leave(n->c);
}

/* A layer three times (for), one of two, and a scale that is halved (while). */
static tn_tensor *regions_loss(const net *n, tn_tensor *x, tn_tensor *y)
{
	static const float rows[3][20] = {{1, -1, 0.5f}, {2, 1}, {0.5f, 3, 1}};
	static const int64_t shape[2] = {3, 20};
	tn_context *c = n->c;
	void *user = (void *)(uintptr_t)n;
	tn_tensor *in[2], *out[2], *h, *scale, *test;

	in[0] = tn_relu(tn_nn_forward(n->layer[0], x));
	in[1] = tn_tensor_new(c, TN_F32, 2, shape, rows);
	tn_scan(c, one_layer, user, 3, 1, 1, in, 1, out);
	test = tn_gt(tn_reduce_sum(out[0], NULL, 0, false),
		tn_scalar(c, TN_F32, 0));
	tn_cond(c, test, twice, shifted, user, 1, out, 1, &h);
	tn_no_grad_enter(c);
	scale = tn_add(tn_reduce_max(out[1], NULL, 0, false),
		tn_scalar(c, TN_F32, 0.125));
	tn_while(c, is_large, halve, user, 0, 1, &scale, &scale);
	tn_no_grad_leave(c);
	return tn_cross_entropy(
		tn_nn_forward(n->layer[2], tn_mul(h, scale)), y);
}

/* ---- convolutions, and a language model ---- */

static void make_conv(net *n)
{
	tn_nn_conv2d_options o = TN_NN_CONV2D_OPTIONS_INIT;

	o.padding[0] = o.padding[1] = 1;
	n->layer[0] = tn_nn_conv2d(n->p, "first", 1, 6, 3, 3, &o);
	n->layer[1] = tn_nn_batch_norm(n->p, "norm", 6, NULL);
	n->layer[2] = tn_nn_conv2d(n->p, "second", 6, 8, 3, 3, &o);
	n->layer[3] = tn_nn_linear(n->p, "out", 8 * 16, 4, NULL);
}

static tn_tensor *conv_loss(const net *n, tn_tensor *x, tn_tensor *y)
{
	static const int64_t two[] = {2, 2}, one[] = {1, 1}, none[] = {0, 0};
	int64_t flat[] = {4, 8 * 16};
	tn_tensor *h = tn_nn_forward(n->layer[0], x);

	h = tn_relu(tn_nn_forward(n->layer[1], h));
	h = tn_max_pool(h, two, 2, two, 2, one, 2, none, 2, none, 2);
	h = tn_relu(tn_nn_forward(n->layer[2], h));
	return tn_cross_entropy(
		tn_nn_forward(n->layer[3], tn_reshape(h, flat, 2)), y);
}

static void make_gpt(net *n)
{
	train_config k = train_config_new();

	k.layers = 2;
	k.heads = 2;
	k.width = 16;
	k.context = 8;
	k.batch = 2;
	k.vocab = 256;
	k.dropout = 0;
	while (n->kind->is_bf16 && train_config_dtype(&k) != TN_BF16)
		k.dtype++;
	if (train_gpt_new(&n->gpt, n->c, &k) >= 0)
		n->p = train_gpt_params(n->gpt);
}

static tn_tensor *gpt_loss(const net *n, tn_tensor *x, tn_tensor *y)
{
	return train_gpt_loss(n->gpt, x, y);
}

static const kind kinds[] = {
	{"mlp", "adamw", 0.01, 0.01, 0, {8, 5}, {8}, 2, 40, 8, 3, false, true,
		false, false, make_mlp, mlp_loss},
	{"regions", "sgd_momentum", 0.02, 0, 0, {8, 5}, {8}, 2, 40, 8, 3, false,
		false, false, true, make_regions, regions_loss},
	{"conv", "sgd_momentum", 0.02, 0, 0, {4, 1, 8, 8}, {4}, 4, 256, 4, 4,
		false, false, false, false, make_conv, conv_loss},
	{"gpt", "adamw", 0.003, 0.1, 1, {2, 8}, {16}, 2, 16, 16, 256, true,
		false, false, false, make_gpt, gpt_loss},
	{"gpt_bf16", "adamw", 0.003, 0.1, 1, {2, 8}, {16}, 2, 16, 16, 256, true,
		false, true, false, make_gpt, gpt_loss},
};

static tn_status record(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	net *n = user;

	out[0] = n->kind->loss(n, in[0], in[1]);
	tn_backward(out[0], NULL);
	tn_optimizer_step(n->opt);
	return tn_context_status(c);
}

/* A context without tile registers, which exported code does not use: sums of bf16 have
 * other bits in them. */
static tn_status new_context(tn_context **c)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_status s = tn_context_new(c, &o);

	if (s < 0 || !run_jit_target(api_jit(*c))->tiles)
		return s;
	tn_context_free(*c);
	if (setenv("TENON_TARGET", "cooperlake", 1) != 0)
		return TN_EIO;
	return tn_context_new(c, &o);
}

static bool make(net *n, const kind *k)
{
	tn_optimizer_options rule = TN_OPTIMIZER_OPTIONS_INIT;

	n->kind = k;
	rule.lr = k->lr;
	rule.decay = k->decay;
	rule.clip_norm = k->clip;
	if (new_context(&n->c) < 0)
		return false;
	tn_set_seed(n->c, 7);
	if (!k->is_gpt && tn_params_new(&n->p, n->c) < 0)
		return false;
	k->make(n);
	return n->p != NULL &&
		tn_optimizer_new(&n->opt, n->c, k->optimizer, &rule) >= 0 &&
		tn_optimizer_add_all(n->opt, n->p) >= 0 &&
		tn_compile(&n->step, n->c, record, n, 2, 1, "step") >= 0 &&
		tn_params_new(&n->all, n->c) >= 0 &&
		tn_optimizer_add_states(n->opt, n->all) >= 0;
}

static void end(net *n)
{
	tn_function_free(n->step);
	tn_optimizer_free(n->opt);
	tn_params_free(n->all);
	if (n->gpt != NULL)
		train_gpt_free(n->gpt);
	else
		tn_params_free(n->p);
	tn_context_free(n->c);
}

/* ---- a batch, in arrays with guards ---- */

typedef struct batch {
	unsigned char room[MAX_IN + 1][2 * GUARD + 4096];
	size_t bytes[MAX_IN + 1]; /* x, y, key; the loss */
} batch;

static void fill(batch *b, const net *n, int64_t step)
{
	const kind *k = n->kind;
	uint64_t seed = 100 + (uint64_t)step;
	uint64_t key[2] = {n->c->seed, n->c->n_keys};
	int64_t value;

	memset(b->room, FILL, sizeof b->room);
	b->bytes[0] = (size_t)k->n_x * (k->is_gpt ? 8 : 4);
	b->bytes[1] = (size_t)k->n_y * 8;
	b->bytes[2] = 8;
	b->bytes[3] = 4;
	if (k->is_gpt)
		tn_fill_random(TN_I64, b->room[0] + GUARD, k->n_x, seed, 0, 256);
	else
		tn_fill_random(TN_F32, b->room[0] + GUARD, k->n_x, seed, 0, 0);
	tn_fill_random(
		TN_I64, b->room[1] + GUARD, k->n_y, seed + 9999, 0, k->classes);
	value = (int64_t)(hash_bytes(key, sizeof key, 0) >> 1);
	memcpy(b->room[2] + GUARD, &value, 8); /* the next key of the context */
}

static bool fences_stand(const batch *b)
{
	for (int i = 0; i <= MAX_IN; i++)
		for (size_t k = 0; k < sizeof b->room[i]; k++)
			if ((k < GUARD || k >= GUARD + b->bytes[i]) &&
				b->room[i][k] != FILL)
				return false;
	return true;
}

static void tensors_of(const net *n, const batch *b, tn_tensor **in)
{
	const kind *k = n->kind;

	in[0] = tn_tensor_new(n->c, k->is_gpt ? TN_I64 : TN_F32, k->rank, k->x,
		b->room[0] + GUARD);
	in[1] = tn_tensor_new(n->c, TN_I64, 1, k->y, b->room[1] + GUARD);
}

/* ---- the exported step ---- */

typedef struct step_c {
	void *lib;
	int (*init)(const char *weights);
	int (*step)(void *x, void *y, void *key, void *loss);
	const unsigned char *(*state)(void);
	int (*fences)(void);
	size_t (*state_bytes)(void);
	char *json;
} step_c;

static bool write_driver(const net *n, const char *dir)
{
	char path[4096];
	FILE *f;
	bool ok;

	snprintf(path, sizeof path, "%s/drive.c", dir);
	f = fopen(path, "w");
	if (f == NULL)
		return false;
	fprintf(f,
		"#include \"net.h\"\n"
		"#include <stdio.h>\n"
		"#include <string.h>\n"
		"static unsigned char room[64 + NET_ARENA_BYTES + 64] "
		"__attribute__((aligned(64)));\n"
		"static unsigned char w[NET_WEIGHTS_BYTES] "
		"__attribute__((aligned(64)));\n"
		"static net_net net;\n"
		"int drive_init(const char *file)\n"
		"{\n"
		"	FILE *f = fopen(file, \"rb\");\n"
		"	if (f == NULL || fread(w, 1, sizeof w, f) != sizeof w)\n"
		"		return 1;\n"
		"	fclose(f);\n"
		"	memset(room, 255, sizeof room);\n"
		"	return net_check_weights(w, sizeof w) != 0 ? 2\n"
		"		: net_init(&net, room + 64, NET_ARENA_BYTES, w, "
		"sizeof w);\n"
		"}\n"
		"int drive_step(void *x, void *y, void *key, void *loss)\n"
		"{\n"
		"	(void)key;\n"
		"	memset(room + 64 + NET_STATE_BYTES, 255,\n"
		"		NET_ARENA_BYTES - NET_STATE_BYTES);\n"
		"	return net_step(&net, x, y%s, loss);\n"
		"}\n"
		"const unsigned char *drive_state(void) { return room + 64; }\n"
		"size_t drive_state_bytes(void) { return NET_STATE_BYTES; }\n"
		"int drive_fences(void)\n"
		"{\n"
		"	for (int i = 0; i < 64; i++)\n"
		"		if (room[i] != 255 || room[64 + NET_ARENA_BYTES + "
		"i] != 255)\n"
		"			return 0;\n"
		"	return 1;\n"
		"}\n",
		n->kind->has_key ? ", key" : "");
	ok = ferror(f) == 0;
	return fclose(f) == 0 && ok;
}

static char *text_of(const char *path)
{
	char *text = calloc(TEXT, 1);
	FILE *f = fopen(path, "r");

	if (f == NULL || text == NULL || fread(text, 1, TEXT - 1, f) == 0) {
		printf("%s cannot be read\n", path);
		exit(1);
	}
	fclose(f);
	return text;
}

static void *find(void *lib, const char *name)
{
	void *f = dlsym(lib, name);

	if (f == NULL) {
		printf("%s\n", dlerror());
		exit(1);
	}
	return f;
}

static bool load(step_c *s, const net *n, const char *dir)
{
	char path[4096], command[3 * 4096];
	const char *cc = getenv("CC") != NULL ? getenv("CC") : "cc";

	if (!write_driver(n, dir))
		return false;
	snprintf(command, sizeof command,
		"make -s -C %s CC=%s CFLAGS='-std=c99 -pedantic -O2 -fPIC -Wall "
		"-Wextra -Werror' libnet.a >&2 && %s -std=c99 -fPIC -shared "
		"-o %s/drive.so %s/drive.c %s/libnet.a -lm",
		dir, cc, cc, dir, dir, dir);
	if (system(command) != 0)
		return false;
	snprintf(path, sizeof path, "%s/drive.so", dir);
	s->lib = dlopen(path, RTLD_NOW);
	if (s->lib == NULL) {
		printf("%s\n", dlerror());
		return false;
	}
	*(void **)&s->init = find(s->lib, "drive_init");
	*(void **)&s->step = find(s->lib, "drive_step");
	*(void **)&s->state = find(s->lib, "drive_state");
	*(void **)&s->fences = find(s->lib, "drive_fences");
	*(void **)&s->state_bytes = find(s->lib, "drive_state_bytes");
	snprintf(path, sizeof path, "%s/net.json", dir);
	s->json = text_of(path);
	snprintf(path, sizeof path, "%s/net.weights", dir);
	return s->init(path) == 0;
}

/* The byte of the state at which a tensor is; SIZE_MAX: it is not kept. */
static size_t place_of(const step_c *s, const char *name, size_t *bytes)
{
	const char *list = strstr(s->json, "\"state\":[");
	char word[300];
	const char *at;

	snprintf(word, sizeof word, "{\"name\":\"%s\",", name);
	for (char *p = word + 9; *p != '\0'; p++)
		if (*p == '.')
			*p = '_';
	at = list != NULL ? strstr(list, word) : NULL;
	if (at == NULL || (at = strstr(at, "\"bytes\":")) == NULL ||
		sscanf(at, "\"bytes\":%zu,\"at\":%zu", bytes, bytes + 1) != 2)
		return SIZE_MAX;
	return bytes[1];
}

/* Elements of a tensor are equal, or with regions near: relative to the greatest. */
static bool agree(const net *n, const void *want, const void *got, size_t bytes)
{
	const float *x = want, *y = got;
	double most = 0, apart = 0;

	if (!n->kind->has_regions)
		return memcmp(want, got, bytes) == 0;
	for (size_t i = 0; i < bytes / 4; i++) {
		double d = (double)x[i] - (double)y[i];

		if (!(d == d))
			return false;
		most = x[i] > most ? x[i] : -x[i] > most ? -x[i] : most;
		apart = d > apart ? d : -d > apart ? -d : apart;
	}
	return apart <= 1e-4 * most + 1e-9;
}

static int32_t compare_set(const net *n,
	const step_c *s, tn_params *p, int64_t step, int32_t *n_same)
{
	int32_t bad = 0;

	for (int32_t i = 0; i < tn_params_n(p); i++) {
		tn_tensor *x = tn_params_at(p, i);
		size_t b[2] = {0}, at = place_of(s, tn_params_name(p, i), b);
		void *data = malloc(b[0] + 1);

		if (at == SIZE_MAX || tn_read(x, data, b[0]) < 0) {
			printf("%s is not in the state\n", tn_params_name(p, i));
			bad++;
		} else if (!agree(n, data, s->state() + at, b[0])) {
			printf("step %" PRId64 ": %s has other bits\n", step,
				tn_params_name(p, i));
			bad++;
		} else {
			++*n_same;
		}
		free(data);
	}
	return bad;
}

/* ---- the steps ---- */

/* The last class is one that there is not: of such a step nothing is left. */
static bool fails_whole(const net *n, const step_c *s, size_t state_bytes)
{
	static batch b;
	unsigned char *was = malloc(state_bytes);
	int64_t none = n->kind->classes;
	int code;
	bool same;

	if (was == NULL)
		return false;
	fill(&b, n, 12345);
	memcpy(b.room[1] + GUARD + 8 * (n->kind->n_y - 1), &none, 8);
	memcpy(was, s->state(), state_bytes);
	code = s->step(b.room[0] + GUARD, b.room[1] + GUARD, b.room[2] + GUARD,
		b.room[3] + GUARD);
	same = memcmp(was, s->state(), state_bytes) == 0;
	free(was);
	if (code != -5 || !same || !fences_stand(&b) || !s->fences())
		printf("a step with a wrong class: code %d, the state is %s\n",
			code, same ? "as it was" : "another");
	return code == -5 && same;
}

/* The test beside the step, whose bits are those of the same program. */
static bool passes(const char *dir)
{
	char command[2 * 4096];

	snprintf(command, sizeof command, "make -s -C %s check", dir);
	return system(command) == 0;
}

static bool both(net *n, step_c *s, int64_t step, int32_t *n_same)
{
	static batch b;
	tn_tensor *in[2], *loss = NULL;
	float want = 0, got;
	int code;
	int32_t bad = 0;
	size_t bytes[2];
	double steps;

	fill(&b, n, step);
	tn_scope_enter(n->c);
	tensors_of(n, &b, in);
	tn_function_call(n->step, in, &loss);
	tn_params_eval(n->p);
	if (tn_read(loss, &want, 4) < 0) {
		printf("%s\n", tn_context_diag(n->c)->text);
		return false;
	}
	tn_scope_leave(n->c);
	code = s->step(b.room[0] + GUARD, b.room[1] + GUARD, b.room[2] + GUARD,
		b.room[3] + GUARD);
	memcpy(&got, b.room[3] + GUARD, 4);
	if (code != 0 || !agree(n, &want, &got, 4)) {
		printf("step %" PRId64 ": code %d, loss %.9g, and wanted is "
		       "%.9g\n", step, code, (double)got, (double)want);
		bad++;
	}
	if (!fences_stand(&b) || !s->fences()) {
		printf("step %" PRId64 ": memory beside an array or the arena "
		       "was written\n", step);
		bad++;
	}
	bad += compare_set(n, s, n->p, step, n_same);
	bad += compare_set(n, s, n->all, step, n_same);
	if (n->count != NULL && place_of(s, "count", bytes) != SIZE_MAX) {
		float count;

		bad += tn_read(n->count, &count, 4) < 0 ||
			memcmp(&count, s->state() + place_of(s, "count", bytes),
				4) != 0;
		n->n_taken = (int)count;
	}
	/* rows without a correction of moments do not read the count */
	if (place_of(s, "steps", bytes) != SIZE_MAX) {
		memcpy(&steps, s->state() + place_of(s, "steps", bytes), 8);
		bad += steps != (double)tn_optimizer_steps(n->opt);
	}
	return bad == 0;
}

static int32_t count_kept(const step_c *s)
{
	int32_t n = 0;

	for (const char *p = strstr(s->json, "\"state\":[");
		p != NULL && strncmp(p, "\"kernels\"", 9) != 0; p++)
		n += strncmp(p, "{\"name\"", 7) == 0;
	return n;
}

static int run(net *n, int64_t n_steps, const char *dir)
{
	static batch b;
	static const char *const in_names[] = {"x", "y"}, *const out[] = {"loss"};
	tn_export_options o = TN_EXPORT_INIT;
	tn_tensor *in[2], *rate;
	int32_t n_same = 0, kept;
	step_c s = {0};

	rate = tn_optimizer_rate(n->opt);
	o.in_names = in_names;
	o.out_names = out;
	o.kept = &rate;
	o.n_kept = 1;
	o.weights = TN_EXPORT_FILE;
	fill(&b, n, -1);
	tn_scope_enter(n->c);
	tensors_of(n, &b, in);
	if (tn_function_export_c(n->step, in, dir, &o) < 0) {
		printf("%s\n", tn_context_diag(n->c)->text);
		return 1;
	}
	tn_scope_leave(n->c);
	if (!load(&s, n, dir) || (n->kind->has_regions && !passes(dir)))
		return 1;
	for (int64_t i = 0; i < n_steps; i++)
		if ((i % 7 == 2 && !fails_whole(n, &s, s.state_bytes())) ||
			!both(n, &s, i, &n_same))
			return 1;
	kept = count_kept(&s);
	/* besides what was compared: the rate, and perhaps the count */
	if (n_same != n_steps * (tn_params_n(n->p) + tn_params_n(n->all)) ||
		kept - n_same / n_steps < 1 ||
		kept - n_same / n_steps > 2 + (n->count != NULL)) {
		printf("%d tensors are kept, and %d were compared\n", (int)kept,
			(int)(n_same / n_steps));
		return 1;
	}
	if (n->count != NULL &&
		(n->n_taken == 0 || (int64_t)n->n_taken == n_steps)) {
		printf("of a condition only one branch was taken\n");
		return 1;
	}
	printf("%s: %" PRId64 " steps, %d tensors of state: %s\n",
		n->kind->name, n_steps, (int)kept,
		n->kind->has_regions ? "near those of the library"
				     : "the bits of the library");
	free(s.json);
	return 0;
}

int main(int argc, char **argv)
{
	int bad = 1;
	net n = {0};

	if (argc != 4)
		return 2;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strcmp(kinds[i].name, argv[1]) == 0 &&
			make(&n, &kinds[i]))
			bad = run(&n, atoll(argv[2]), argv[3]);
	end(&n);
	return bad;
}
