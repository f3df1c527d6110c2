/*
 * train_onnx.c: `tenon train MODEL.onnx`: trains an imported network on arrays
 * from files, and writes it as a model with the new weights.
 *
 *     $ tenon train net.onnx --data pictures.npz --batch 8 --epochs 3 \
 *         --out learnt.onnx
 *     12 parameters are trained, 3 are not
 *     step 1  loss 2.3026
 *
 * The data has an array for each input of the model, with the input's name ("x"
 * is accepted for the only input), and the targets of the first output, "y".
 * The first axis of all arrays numbers the examples.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"

#include <dirent.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INPUTS = 16, MAX_NAME = 256 };

/* An array of the data, from an archive or from a file of its own. */
typedef struct data_array {
	char name[MAX_NAME];
	const tn_array *at;
	tn_array *own; /* to be freed; NULL: an array of an archive */
} data_array;

typedef struct trainer {
	/* command-line options */
	const char *file, *data, *loss, *out, *optimizer;
	cli_list freeze;
	tn_optimizer_options rule;
	int64_t batch, epochs, steps, every, seed, classes;
	bool json, fresh;

	tn_context *c;
	tn_onnx *m;
	tn_program *p;
	tn_npz *npz;
	data_array *array;
	int32_t n_arrays;
	const tn_array *x[MAX_INPUTS], *y;
	int32_t n_in; /* number of inputs of the model */
	bool has_key;
	int64_t n_examples;

	int32_t n_params;
	tn_tensor **param;
	bool *trained;
	int32_t *next; /* the parameter that each additional output updates */
	tn_optimizer *opt;
	tn_function *step;
	int64_t *order; /* the order of examples in this epoch */
} trainer;

static bool said(const trainer *t)
{
	cli_diag(tn_context_diag(t->c));
	return false;
}

/* ---- data ---- */

static bool add_array(
	trainer *t, const char *name, const tn_array *at, tn_array *own)
{
	data_array *all = realloc(
		t->array, (size_t)(t->n_arrays + 1) * sizeof *all);

	if (all == NULL)
		return false;
	t->array = all;
	all += t->n_arrays++;
	snprintf(all->name, sizeof all->name, "%s", name);
	all->at = at;
	all->own = own;
	return true;
}

static bool read_archive(trainer *t)
{
	if (tn_npz_read(&t->npz, t->c, t->data) < 0)
		return said(t);
	for (int32_t i = 0; i < tn_npz_n(t->npz); i++)
		if (!add_array(t, tn_npz_name(t->npz, i),
			    tn_npz_array(t->npz, i), NULL))
			return false;
	return true;
}

static bool read_folder(trainer *t)
{
	struct dirent **entry = NULL;
	int n = scandir(t->data, &entry, NULL, alphasort);
	bool ok = true;

	if (n < 0) {
		cli_error(t->data, "train.data", "this is neither a folder "
			"with .npy files nor an .npz file");
		return false;
	}
	for (int i = 0; i < n; i++) {
		const char *name = entry[i]->d_name;
		char path[4096], stem[MAX_NAME];
		tn_array *a;

		if (ok && cli_ends_with(name, ".npy") && strlen(name) < MAX_NAME) {
			snprintf(path, sizeof path, "%s/%s", t->data, name);
			snprintf(stem, sizeof stem, "%.*s",
				(int)strlen(name) - 4, name);
			ok = tn_npy_read(&a, t->c, path) == TN_OK
				? add_array(t, stem, a, a)
				: said(t);
		}
		free(entry[i]);
	}
	free(entry);
	return ok;
}

static const tn_array *find_array(const trainer *t, const char *name)
{
	for (int32_t i = 0; i < t->n_arrays; i++)
		if (!strcmp(t->array[i].name, name))
			return t->array[i].at;
	return NULL;
}

/*
 * Finds an array by name; "gpu_0_data_0" is accepted for "gpu_0/data_0", which
 * cannot be a file name.
 */
static const tn_array *array_of(const trainer *t, const char *name)
{
	char clean[MAX_NAME];
	const tn_array *a = find_array(t, name);

	cli_clean_name(clean, sizeof clean, name);
	if (a == NULL)
		a = find_array(t, clean);
	if (a == NULL && tn_onnx_n_inputs(t->m) == 1)
		a = find_array(t, "x");
	if (a == NULL)
		cli_error(t->data, "train.data", "there is no array \"%s\": "
			"the data needs an array for each input of the model, "
			"and \"y\" with the expected results", clean);
	return a;
}

static bool check_examples(trainer *t, const char *name, const tn_array *a)
{
	if (a->rank > 0 && a->shape[0] > 0 &&
		(t->n_examples == 0 || a->shape[0] == t->n_examples)) {
		t->n_examples = a->shape[0];
		return true;
	}
	cli_error(t->data, "train.data", "the first axis of \"%s\" must "
		"number the examples, as in the other arrays", name);
	return false;
}

static bool read_data(trainer *t)
{
	t->n_in = tn_onnx_n_inputs(t->m);
	if (t->n_in == 0 || t->n_in > MAX_INPUTS) {
		cli_error(t->file, "train.input", "the model must have 1 to "
			"%d inputs", MAX_INPUTS);
		return false;
	}
	if (cli_ends_with(t->data, ".npz") ? !read_archive(t) : !read_folder(t))
		return false;
	for (int32_t i = 0; i < t->n_in; i++) {
		const char *name = tn_onnx_input(t->m, i)->name;

		t->x[i] = array_of(t, name);
		if (t->x[i] == NULL || !check_examples(t, name, t->x[i]))
			return false;
	}
	t->y = find_array(t, "y");
	if (t->y == NULL) {
		cli_error(t->data, "train.data", "there is no array \"y\", "
			"which holds the expected results");
		return false;
	}
	return check_examples(t, "y", t->y);
}

/* ---- the model ---- */

/* Gives the model the shapes of a batch, which may determine other shapes. */
static bool give_shapes(trainer *t)
{
	if (t->batch > t->n_examples)
		t->batch = t->n_examples;
	for (int32_t i = 0; i < t->n_in; i++) {
		const tn_onnx_port *p = tn_onnx_input(t->m, i);

		for (int32_t k = 0; k < t->x[i]->rank; k++) {
			char dim[MAX_NAME + 32];

			if (p->rank >= 0 && p->rank != t->x[i]->rank) {
				cli_error(t->data, "train.data",
					"the model has %d axes for input "
					"\"%s\", but the data has %d",
					(int)p->rank, p->name,
					(int)t->x[i]->rank);
				return false;
			}
			snprintf(dim, sizeof dim, "%s[%d]", p->name, (int)k);
			if (tn_onnx_set_dim(t->m, dim, k == 0 ? t->batch
					: t->x[i]->shape[k]) < 0)
				return said(t);
		}
	}
	return true;
}

static bool is_frozen(const trainer *t, const tn_value *v)
{
	if (v->rank == 0 || !tn_dtype_is_float(v->dtype))
		return true;
	for (int i = 0; i < t->freeze.n; i++)
		if (fnmatch(t->freeze.at[i], v->name, 0) == 0)
			return true;
	return false;
}

static int32_t find_param(const trainer *t, const char *name)
{
	for (int32_t i = 0; i < t->n_params; i++)
		if (!strcmp(tn_program_param(t->p, i)->name, name))
			return i;
	return -1;
}

/*
 * Finds running statistics, which the network updates itself, and the optimiser
 * must not.
 */
static bool find_statistics(trainer *t)
{
	int32_t n = tn_program_n_outputs(t->p);

	t->next = cli_alloc((size_t)n + 1, sizeof *t->next);
	if (t->next == NULL)
		return false;
	for (int32_t i = 0; i < n; i++) {
		t->next[i] = i < tn_onnx_n_outputs(t->m)
			? -1
			: find_param(t, tn_program_output(t->p, i)->name);
		if (t->next[i] >= 0)
			t->trained[t->next[i]] = false;
	}
	return true;
}

static bool make_params(trainer *t)
{
	t->n_params = tn_program_n_params(t->p);
	t->param = cli_alloc((size_t)t->n_params + 1, sizeof(tn_tensor *));
	t->trained = cli_alloc((size_t)t->n_params + 1, sizeof *t->trained);
	if (t->param == NULL || t->trained == NULL)
		return false;
	for (int32_t i = 0; i < t->n_params; i++)
		t->trained[i] = !is_frozen(t, tn_program_param(t->p, i));
	if (!find_statistics(t))
		return false;
	for (int32_t i = 0; i < t->n_params; i++) {
		const tn_value *v = tn_program_param(t->p, i);
		const void *data = tn_program_param_data(t->p, i);

		if (!t->trained[i])
			tn_no_grad_enter(t->c);
		t->param[i] = tn_parameter(t->c, v->name, v->dtype, v->rank,
			v->shape, data);
		if (!t->trained[i])
			tn_no_grad_leave(t->c);
		else if (t->fresh && v->rank >= 2)
			tn_init_kaiming_normal(t->param[i], sqrt(2));
		if (t->trained[i] && tn_optimizer_add(t->opt, t->param[i]) < 0)
			return said(t);
	}
	return tn_context_status(t->c) == TN_OK || said(t);
}

/* Checks that the targets of a cross entropy are classes of the model. */
static bool check_classes(const trainer *t, int64_t n)
{
	for (int64_t i = 0; i < t->y->n_elems; i++) {
		int64_t k = tn_get_i64(t->y->dtype, t->y->data, i);

		if (k >= 0 && k < n)
			continue;
		cli_error(t->data, "train.data", "example %lld of \"y\" has "
			"class %lld, but the model has the classes 0 to %lld",
			(long long)i, (long long)k, (long long)n - 1);
		return false;
	}
	return true;
}

/* Checks the shape of the targets against the first output of the model. */
static bool check_wanted(const trainer *t)
{
	const tn_value *out = tn_program_output(t->p, 0);
	int64_t n = t->batch > 0 ? out->n_elems / t->batch : 0;
	int64_t each = t->y->n_elems / t->n_examples;
	bool entropy = !strcmp(t->loss, "cross_entropy");

	if (entropy && each == 1 && n > 1 && tn_dtype_is_int(t->y->dtype))
		return check_classes(t, n);
	if (n > 0 && each == n && out->dtype == t->y->dtype)
		return true;
	cli_error(t->data, "train.data", "\"y\" has %lld elements of %s for "
		"each example, but the first output of the model has %lld of "
		"%s%s",
		(long long)each, tn_dtype_name(t->y->dtype), (long long)n,
		tn_dtype_name(out->dtype),
		entropy ? "; classes must be integers" : "");
	return false;
}

static bool build(trainer *t)
{
	bool logits = strcmp(t->loss, "cross_entropy") == 0;
	int32_t n = 0;

	tn_onnx_fold(t->m, 1);
	tn_onnx_train(t->m, true, logits);
	if (!give_shapes(t))
		return false;
	if (tn_onnx_build(&t->p, t->m) < 0 ||
		tn_optimizer_new(&t->opt, t->c, t->optimizer, &t->rule) < 0)
		return said(t);
	for (int32_t i = 0; i < t->n_in; i++)
		if (tn_program_input(t->p, i)->dtype != t->x[i]->dtype) {
			cli_error(t->data, "train.data", "input \"%s\" is %s, "
				"but the data is %s",
				tn_program_input(t->p, i)->name,
				tn_dtype_name(tn_program_input(t->p, i)->dtype),
				tn_dtype_name(t->x[i]->dtype));
			return false;
		}
	t->has_key = tn_program_n_inputs(t->p) > t->n_in;
	if (!check_wanted(t) || !make_params(t))
		return false;
	for (int32_t i = 0; i < t->n_params; i++)
		n += t->trained[i];
	if (n == 0) {
		cli_error(t->file, "train.frozen", "the model has no "
			"parameter left to train");
		return false;
	}
	if (!t->json)
		printf("%d parameters are trained, %d are not\n", (int)n,
			(int)(t->n_params - n));
	return true;
}

/* ---- a step ---- */

/* [b, k, 1, 1] -> [b, k]: logits with axes of extent 1 */
static tn_tensor *as_rows(tn_tensor *y, int64_t n)
{
	int64_t shape[2] = {n, tn_tensor_n_elems(y) / n};

	return tn_reshape(y, shape, 2);
}

static tn_tensor *loss_of(const trainer *t, tn_tensor *y, tn_tensor *want)
{
	int64_t n = tn_tensor_n_elems(y);

	if (!strcmp(t->loss, "cross_entropy")) {
		if (tn_tensor_n_elems(want) == t->batch)
			return tn_cross_entropy(as_rows(y, t->batch),
				tn_reshape(want, &t->batch, 1));
		return tn_cross_entropy_soft(
			as_rows(y, t->batch), as_rows(want, t->batch));
	}
	if (n == tn_tensor_n_elems(want))
		want = tn_reshape(want, tn_tensor_shape(y), tn_tensor_rank(y));
	return !strcmp(t->loss, "l1") ? tn_l1_loss(y, want)
				      : tn_mse(y, want);
}

/* in: a batch of each input, the key if there is one, the targets */
static tn_status record_step(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	const trainer *t = user;
	int32_t n_in = t->n_in + t->has_key;
	int32_t n_out = tn_program_n_outputs(t->p), n_all = n_in + t->n_params;
	tn_tensor **x = cli_alloc((size_t)n_all, sizeof(tn_tensor *));
	tn_tensor **y = cli_alloc((size_t)n_out, sizeof(tn_tensor *));

	if (x == NULL || y == NULL)
		goto out;
	for (int32_t i = 0; i < n_in; i++)
		x[i] = in[i];
	for (int32_t i = 0; i < t->n_params; i++)
		x[n_in + i] = t->param[i];
	if (tn_apply(t->p, n_all, x, n_out, y) < 0)
		goto out;
	out[0] = loss_of(t, y[0], in[n_in]);
	tn_backward(out[0], NULL);
	tn_optimizer_step(t->opt);
	tn_no_grad_enter(c);
	for (int32_t i = 0; i < n_out; i++)
		if (t->next[i] >= 0)
			tn_copy_(t->param[t->next[i]], y[i]);
	tn_no_grad_leave(c);
out:
	free(x);
	free(y);
	return tn_context_status(c);
}

/* The examples order[from ..] of an array as a tensor. */
static tn_tensor *batch_of(const trainer *t, const tn_array *a, int64_t from)
{
	int64_t shape[TN_MAX_RANK];
	size_t row = a->n_bytes / (size_t)a->shape[0];
	char *data = cli_alloc((size_t)t->batch, row + 1);
	tn_tensor *out;

	if (data == NULL)
		return NULL;
	for (int64_t i = 0; i < t->batch; i++)
		memcpy(data + (size_t)i * row, (const char *)a->data +
				(size_t)t->order[from + i] * row, row);
	memcpy(shape, a->shape, sizeof shape);
	shape[0] = t->batch;
	out = tn_tensor_new(t->c, a->dtype, a->rank, shape, data);
	free(data);
	return out;
}

static double one_step(trainer *t, int64_t from)
{
	tn_tensor *in[MAX_INPUTS + 2], *loss = NULL;
	int32_t n = 0;
	double value;

	tn_scope_enter(t->c);
	for (; n < t->n_in; n++)
		in[n] = batch_of(t, t->x[n], from);
	if (t->has_key)
		in[n++] = tn_random_key(t->c);
	in[n++] = batch_of(t, t->y, from);
	tn_function_call(t->step, in, &loss);
	tn_eval(t->param, t->n_params);
	value = tn_item(loss);
	tn_scope_leave(t->c);
	return value;
}

/* Shuffles the examples; the order depends on the seed and the epoch. */
static void shuffle(trainer *t, int64_t epoch)
{
	int64_t at[2];

	for (int64_t i = t->n_examples - 1; i > 0; i--) {
		tn_fill_random(TN_I64, at, 1, (uint64_t)(t->seed * 1000003 +
				epoch * 7919 + i), 0, i + 1);
		at[1] = t->order[i];
		t->order[i] = t->order[at[0]];
		t->order[at[0]] = at[1];
	}
}

static void report(const trainer *t, int64_t step, double loss, double seconds)
{
	if (t->json) {
		printf("{\"step\":%lld,\"loss\":", (long long)step);
		cli_json_number(stdout, loss);
		printf(",\"ms\":%.3f}\n", 1e3 * seconds);
	} else {
		printf("step %lld  loss %.6g  %.1f ms\n", (long long)step, loss,
			1e3 * seconds);
	}
}

static bool learn(trainer *t)
{
	int64_t per_epoch = t->n_examples / t->batch;
	int64_t n = t->steps > 0 ? t->steps : t->epochs * per_epoch;

	t->order = cli_alloc((size_t)t->n_examples, sizeof *t->order);
	if (t->order == NULL)
		return false;
	for (int64_t i = 0; i < t->n_examples; i++)
		t->order[i] = i;
	for (int64_t i = 0; i < n; i++) {
		double start = cli_now(), loss;

		if (i % per_epoch == 0)
			shuffle(t, i / per_epoch);
		loss = one_step(t, i % per_epoch * t->batch);
		if (tn_context_status(t->c) < 0)
			return said(t);
		if (i == 0 || (i + 1) % t->every == 0 || i == n - 1)
			report(t, i + 1, loss, cli_now() - start);
		if (!isfinite(loss)) {
			cli_error(t->file, "train.diverged", "the loss is not "
				"a number in step %lld; a smaller --lr may "
				"help", (long long)i + 1);
			return false;
		}
	}
	return true;
}

/* ---- the result ---- */

static bool save(trainer *t)
{
	const char **name = cli_alloc((size_t)t->n_params + 1, sizeof *name);
	tn_array *array = cli_alloc((size_t)t->n_params + 1, sizeof *array);
	bool ok = name != NULL && array != NULL;
	int32_t n = 0;

	for (int32_t i = 0; ok && i < t->n_params; i++) {
		const tn_value *v = tn_program_param(t->p, i);
		bool changed = t->trained[i];

		for (int32_t k = 0; k < tn_program_n_outputs(t->p); k++)
			changed = changed || t->next[k] == i;
		if (!changed)
			continue;
		name[n] = v->name;
		array[n].dtype = v->dtype;
		array[n].rank = v->rank;
		memcpy(array[n].shape, v->shape, sizeof v->shape);
		array[n].n_elems = v->n_elems;
		array[n].n_bytes = v->n_bytes;
		array[n].data = cli_alloc(1, v->n_bytes + 1);
		ok = array[n].data != NULL &&
			(tn_read(t->param[i], array[n].data, v->n_bytes) ==
					TN_OK || said(t));
		n++;
	}
	ok = ok && (tn_onnx_save(t->m, t->out, n, name, array) == TN_OK ||
			   said(t));
	for (int32_t i = 0; array != NULL && i < n; i++)
		free(array[i].data);
	free(array);
	free(name);
	return ok;
}

static void end(trainer *t)
{
	tn_function_free(t->step);
	tn_optimizer_free(t->opt);
	tn_program_free(t->p);
	tn_onnx_free(t->m);
	tn_npz_free(t->npz);
	for (int32_t i = 0; i < t->n_arrays; i++)
		tn_array_free(t->array[i].own);
	free(t->array);
	free(t->param);
	free(t->trained);
	free(t->next);
	free(t->order);
	cli_close(t->c);
}

static int train(trainer *t, const tn_options *o)
{
	bool ok = false;

	if (!cli_can_write(t->out, "onnx.write"))
		return CLI_FAILED;
	if (cli_context_new(&t->c, o) < 0)
		return cli_no_context();
	tn_set_seed(t->c, (uint64_t)t->seed);
	if (tn_onnx_open(&t->m, t->c, t->file) < 0 ||
		(t->classes > 0 && tn_onnx_classes(t->m, t->classes,
					   (uint64_t)t->seed) < 0))
		said(t);
	else if (read_data(t) && build(t)) {
		if (tn_compile(&t->step, t->c, record_step, t,
			    t->n_in + t->has_key + 1, 1, "step") < 0)
			said(t);
		else
			ok = learn(t) && save(t);
	}
	end(t);
	return ok ? CLI_OK : CLI_FAILED;
}

/* ---- the command line ---- */

static bool whole(const char *text, int64_t lo, int64_t *out)
{
	char *end = NULL;

	if (text == NULL)
		return true;
	*out = strtoll(text, &end, 10);
	return end != text && *end == '\0' && *out >= lo && *out < 1 << 30;
}

static bool real(const char *text, double *out)
{
	char *end = NULL;

	if (text == NULL)
		return true;
	*out = strtod(text, &end);
	return end != text && *end == '\0' && *out >= 0 && isfinite(*out);
}

static int run(const cli_command *self, int argc, char **argv)
{
	trainer t = {.loss = "cross_entropy", .optimizer = "adamw", .batch = 8,
		.epochs = 1, .every = 1,
		.rule = TN_OPTIMIZER_OPTIONS_INIT};
	const char *lr = NULL, *decay = NULL, *clip = NULL, *batch = NULL;
	const char *epochs = NULL, *steps = NULL, *every = NULL, *seed = NULL;
	const char *threads = NULL, *classes = NULL, *schedule = NULL;
	tn_options o = TN_OPTIONS_INIT;
	const cli_option options[] = {
		{"data", .value = &t.data},
		{"loss", .value = &t.loss},
		{"out", .value = &t.out},
		{"optimizer", .value = &t.optimizer},
		{"freeze", .list = &t.freeze},
		{"lr", .value = &lr},
		{"decay", .value = &decay},
		{"clip", .value = &clip},
		{"batch", .value = &batch},
		{"epochs", .value = &epochs},
		{"steps", .value = &steps},
		{"every", .value = &every},
		{"seed", .value = &seed},
		{"classes", .value = &classes},
		{"threads", .value = &threads},
		{"device", .value = &o.device},
		{"fresh", .flag = &t.fresh},
		{"schedule", .value = &schedule},
		{"interp", .flag = &o.interp},
		{"json", .flag = &t.json},
		{0},
	};
	int64_t n_threads = 0;
	int code;

	t.freeze.at = cli_alloc((size_t)argc + 1, sizeof *t.freeze.at);
	if (t.freeze.at == NULL)
		return CLI_FAILED;
	code = cli_args(self, argc, argv, options, &t.file, 1);
	if (code >= 0)
		goto out;
	if (t.file == NULL || t.data == NULL || t.out == NULL)
		code = cli_usage(self, "give MODEL.onnx, --data and --out");
	else if (strcmp(t.loss, "cross_entropy") != 0 &&
		strcmp(t.loss, "mse") != 0 && strcmp(t.loss, "l1") != 0)
		code = cli_usage(self, "--loss must be cross_entropy, mse or "
			"l1");
	else if (!real(lr, &t.rule.lr) || !real(decay, &t.rule.decay) ||
		!real(clip, &t.rule.clip_norm))
		code = cli_usage(self, "--lr, --decay and --clip must be "
				       "numbers of at least 0");
	else if (!whole(batch, 1, &t.batch) || !whole(epochs, 1, &t.epochs) ||
		!whole(steps, 1, &t.steps) || !whole(every, 1, &t.every) ||
		!whole(classes, 2, &t.classes) || !whole(seed, 0, &t.seed) || !whole(threads, 0, &n_threads) ||
		n_threads > 4096)
		code = cli_usage(self, "--batch, --epochs, --steps and "
			"--every must be integers of at least 1, --seed and "
			"--threads of at least 0, --classes of at least 2");
	o.threads = (int32_t)n_threads;
	if (code < 0)
		code = cli_pin(self, schedule);
	if (code < 0)
		code = cli_pin_end(train(&t, &o));
	if (!cli_flush())
		code = CLI_FAILED;
out:
	free(t.freeze.at);
	return code;
}

const cli_command cli_train_onnx = {
	"train",
	"... train MODEL.onnx: train an ONNX model on arrays",
	"usage: tenon train MODEL.onnx --data FILE.npz|DIR --out FILE.onnx\n"
	"                   [OPTION]...\n"
	"\n"
	"Trains an ONNX model on examples, and writes it with the trained\n"
	"parameters; everything else in the file stays as it was. In training,\n"
	"batch normalisation uses the statistics of the batch and updates its\n"
	"running statistics, and dropout drops elements.\n"
	"\n"
	"  --data FILE.npz|DIR  the examples: one array for each input, with the\n"
	"                   input's name (or \"x\" for the only input), and \"y\" with\n"
	"                   the expected results; files NAME.npy in a folder, or\n"
	"                   arrays of an .npz file. The first axis of each array\n"
	"                   numbers the examples\n"
	"  --out FILE.onnx  the trained model\n"
	"  --loss cross_entropy  y has classes, or a weight for each class; a\n"
	"                   softmax at the end of the model becomes part of the\n"
	"                   loss\n"
	"  --loss mse|l1    y has the shape of the output\n"
	"  --optimizer NAME adamw (the default), sgd, sgd_momentum, adam, adagrad,\n"
	"                   rmsprop or lamb\n"
	"  --lr X           learning rate (0.001)\n"
	"  --decay X        weight decay (0)\n"
	"  --clip X         largest norm of the gradients, 0: no limit (0)\n"
	"  --freeze PATTERN do not train these parameters, such as \"conv1*\"; may be\n"
	"                   given several times\n"
	"  --batch N        examples in a step (8)\n"
	"  --epochs N       how often each example is used (1)\n"
	"  --steps N        number of steps, instead of --epochs\n"
	"  --every N        steps between reports (1)\n"
	"  --classes N      change the number of classes: the last layer gets new\n"
	"                   random weights, and the shapes behind it change\n"
	"  --fresh          begin with new random weights\n"
	"  --seed N         seed for weights, dropout and the order of examples (0)\n"
	"  --threads N      number of threads, 0: one per CPU (0)\n"
	"  --device DEVICE  what runs the kernels: cpu, simt, cuda:0 .. (TENON_DEVICE,\n"
	"                   or cpu)\n"
	"  --schedule FILE  use the schedules in FILE for the program that has their\n"
	"                   kernels, such as the step; TENON_DUMP=schedule prints\n"
	"                   those of all programs\n"
	"  --interp         use the slow interpreter: only for tiny models\n"
	"  --json           print one JSON object for each report\n"
	"  --help           print this text\n",
	run,
};
