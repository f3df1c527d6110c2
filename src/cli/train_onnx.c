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
#include "cli/train_net.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 256 };

/* An array of the data, from an archive or from a file of its own. */
typedef struct data_array {
	char name[MAX_NAME];
	const tn_array *at;
	tn_array *own; /* to be freed; NULL: an array of an archive */
} data_array;

typedef struct trainer {
	train_net net;
	/* command-line options */
	const char *data, *out;
	int64_t epochs, steps, every;
	bool json;

	tn_npz *npz;
	data_array *array;
	int32_t n_arrays;
	const tn_array *x[TRAIN_MAX_INPUTS], *y;
	int64_t n_examples;
	int64_t *order; /* the order of examples in this epoch */
} trainer;

static bool said(const trainer *t)
{
	cli_diag(tn_context_diag(t->net.c));
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
	if (tn_npz_read(&t->npz, t->net.c, t->data) < 0)
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
			ok = tn_npy_read(&a, t->net.c, path) == TN_OK
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
	if (a == NULL && tn_onnx_n_inputs(t->net.m) == 1)
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
	if (cli_ends_with(t->data, ".npz") ? !read_archive(t) : !read_folder(t))
		return false;
	for (int32_t i = 0; i < t->net.n_in; i++) {
		const char *name = tn_onnx_input(t->net.m, i)->name;

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
	if (t->net.batch > t->n_examples)
		t->net.batch = t->n_examples;
	for (int32_t i = 0; i < t->net.n_in; i++) {
		const tn_onnx_port *p = tn_onnx_input(t->net.m, i);

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
			if (tn_onnx_bind_dim(t->net.m, dim, k == 0 ? t->net.batch
					: t->x[i]->shape[k]) < 0)
				return said(t);
		}
	}
	return true;
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
	const tn_value *out = tn_program_output(t->net.p, 0);
	int64_t n = t->net.batch > 0 ? out->n_elems / t->net.batch : 0;
	int64_t each = t->y->n_elems / t->n_examples;
	bool entropy = !strcmp(t->net.loss, "cross_entropy");

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
	const train_net *n = &t->net;

	if (!give_shapes(t) || !train_net_build(&t->net))
		return false;
	for (int32_t i = 0; i < n->n_in; i++)
		if (tn_program_input(n->p, i)->dtype != t->x[i]->dtype) {
			cli_error(t->data, "train.data", "input \"%s\" is %s, "
				"but the data is %s",
				tn_program_input(n->p, i)->name,
				tn_dtype_name(tn_program_input(n->p, i)->dtype),
				tn_dtype_name(t->x[i]->dtype));
			return false;
		}
	if (!check_wanted(t) || !train_net_params(&t->net))
		return false;
	if (!t->json)
		printf("%d parameters are trained, %d are not\n",
			(int)n->n_trained, (int)(n->n_params - n->n_trained));
	return true;
}

/* ---- a step ---- */

/* The examples order[from ..] of an array as a tensor. */
static tn_tensor *batch_of(const trainer *t, const tn_array *a, int64_t from)
{
	int64_t shape[TN_MAX_RANK];
	size_t row = a->n_bytes / (size_t)a->shape[0];
	char *data = cli_alloc((size_t)t->net.batch, row + 1);
	tn_tensor *out;

	if (data == NULL)
		return NULL;
	for (int64_t i = 0; i < t->net.batch; i++)
		memcpy(data + (size_t)i * row, (const char *)a->data +
				(size_t)t->order[from + i] * row, row);
	memcpy(shape, a->shape, sizeof shape);
	shape[0] = t->net.batch;
	out = tn_tensor_new(t->net.c, a->dtype, a->rank, shape, data);
	free(data);
	return out;
}

static double one_step(trainer *t, int64_t from)
{
	tn_tensor *in[TRAIN_MAX_INPUTS + 2], *loss = NULL;
	int32_t n = 0;
	double value;

	tn_scope_enter(t->net.c);
	for (; n < t->net.n_in; n++)
		in[n] = batch_of(t, t->x[n], from);
	if (t->net.has_key)
		in[n++] = tn_random_key(t->net.c);
	in[n++] = batch_of(t, t->y, from);
	tn_function_call(t->net.step, in, &loss);
	tn_eval(t->net.param, t->net.n_params);
	value = tn_item(loss);
	tn_scope_leave(t->net.c);
	return value;
}

/* Shuffles the examples; the order depends on the seed and the epoch. */
static void shuffle(trainer *t, int64_t epoch)
{
	int64_t at[2];

	for (int64_t i = t->n_examples - 1; i > 0; i--) {
		tn_fill_random(TN_I64, at, 1, (uint64_t)(t->net.seed * 1000003 +
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
	int64_t per_epoch = t->n_examples / t->net.batch;
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
		loss = one_step(t, i % per_epoch * t->net.batch);
		if (tn_context_status(t->net.c) < 0)
			return said(t);
		if (i == 0 || (i + 1) % t->every == 0 || i == n - 1)
			report(t, i + 1, loss, cli_now() - start);
		if (!isfinite(loss)) {
			cli_error(t->net.file, "train.diverged", "the loss is not "
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
	const char **name = cli_alloc((size_t)t->net.n_params + 1, sizeof *name);
	tn_array *array = cli_alloc((size_t)t->net.n_params + 1, sizeof *array);
	bool ok = name != NULL && array != NULL;
	int32_t n = 0;

	for (int32_t i = 0; ok && i < t->net.n_params; i++) {
		const tn_value *v = tn_program_param(t->net.p, i);
		bool changed = t->net.trained[i];

		for (int32_t k = 0; k < tn_program_n_outputs(t->net.p); k++)
			changed = changed || t->net.next[k] == i;
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
			(tn_read(t->net.param[i], array[n].data, v->n_bytes) ==
					TN_OK || said(t));
		n++;
	}
	ok = ok && (tn_onnx_save(t->net.m, t->out, n, name, array) == TN_OK ||
			   said(t));
	for (int32_t i = 0; array != NULL && i < n; i++)
		free(array[i].data);
	free(array);
	free(name);
	return ok;
}

static void end(trainer *t)
{
	train_net_end(&t->net);
	tn_npz_free(t->npz);
	for (int32_t i = 0; i < t->n_arrays; i++)
		tn_array_free(t->array[i].own);
	free(t->array);
	free(t->order);
	cli_close(t->net.c);
}

static int train(trainer *t, const tn_options *o)
{
	bool ok = false;

	if (!cli_can_write(t->out, "onnx.write"))
		return CLI_FAILED;
	if (cli_context_new(&t->net.c, o) < 0)
		return cli_no_context();
	ok = train_net_open(&t->net) && read_data(t) && build(t) && learn(t) &&
		save(t);
	end(t);
	return ok ? CLI_OK : CLI_FAILED;
}

/* ---- the command line ---- */

static int run(const cli_command *self, int argc, char **argv)
{
	trainer t = {.net = TRAIN_NET_INIT, .epochs = 1, .every = 1};
	const char *epochs = NULL, *steps = NULL, *every = NULL, *seed = NULL;
	const char *threads = NULL, *schedule = NULL;
	tn_options o = TN_OPTIONS_INIT;
	const cli_option options[] = {
		{"data", .value = &t.data},
		{"loss", .value = &t.net.loss},
		{"out", .value = &t.out},
		{"optimizer", .value = &t.net.optimizer},
		{"freeze", .list = &t.net.freeze},
		{"lr", .value = &t.net.words.lr},
		{"decay", .value = &t.net.words.decay},
		{"clip", .value = &t.net.words.clip},
		{"batch", .value = &t.net.words.batch},
		{"epochs", .value = &epochs},
		{"steps", .value = &steps},
		{"every", .value = &every},
		{"seed", .value = &seed},
		{"classes", .value = &t.net.words.classes},
		{"threads", .value = &threads},
		{"device", .value = &o.device},
		{"fresh", .flag = &t.net.fresh},
		{"schedule", .value = &schedule},
		{"interp", .flag = &o.interp},
		{"json", .flag = &t.json},
		{0},
	};
	int64_t n_threads = 0;
	int code;

	t.net.freeze.at = cli_alloc((size_t)argc + 1, sizeof *t.net.freeze.at);
	if (t.net.freeze.at == NULL)
		return CLI_FAILED;
	code = cli_args(self, argc, argv, options, &t.net.file, 1);
	if (code >= 0)
		goto out;
	if (t.net.file == NULL || t.data == NULL || t.out == NULL)
		code = cli_usage(self, "give MODEL.onnx, --data and --out");
	else if (!cli_whole(epochs, 1, &t.epochs) ||
		!cli_whole(steps, 1, &t.steps) ||
		!cli_whole(every, 1, &t.every) ||
		!cli_whole(seed, 0, &t.net.seed) ||
		!cli_whole(threads, 0, &n_threads) || n_threads > 4096)
		code = cli_usage(self, "--epochs, --steps and --every must be "
			"integers of at least 1, --seed and --threads of at "
			"least 0");
	else
		code = train_net_read(self, &t.net);
	o.threads = (int32_t)n_threads;
	if (code < 0)
		code = cli_pin(self, schedule);
	if (code < 0)
		code = cli_pin_end(train(&t, &o));
	if (!cli_flush())
		code = CLI_FAILED;
out:
	free(t.net.freeze.at);
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
