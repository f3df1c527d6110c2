/*
 * config.c: the options of a run. One table defines the command-line options,
 * the metadata of checkpoints, and the accepted ranges.
 *
 *     {"width", false, 1, 65536, 128, offset of width}
 *     --width 256        "width": "256" in a checkpoint
 */
#define _POSIX_C_SOURCE 200809L
#include "apps/gpt/train.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(train_config, member)

const char *const train_dtypes[] = {"f32", "f64", "bf16", NULL};

tn_dtype train_config_dtype(const train_config *k)
{
	static const tn_dtype types[] = {TN_F32, TN_F64, TN_BF16};

	return types[k->dtype];
}

const train_field train_fields[] = {
	{"layers", false, 1, 512, 4, AT(layers), NULL},
	{"heads", false, 1, 512, 4, AT(heads), NULL},
	{"width", false, 1, 65536, 128, AT(width), NULL},
	{"vocab", false, 256, 65536, 256, AT(vocab), NULL},
	{"context", false, 1, 65536, 128, AT(context), NULL},
	{"batch", false, 1, 65536, 16, AT(batch), NULL},
	{"accumulate", false, 1, 65536, 1, AT(accumulate), NULL},
	{"steps", false, 1, 1e9, 300, AT(steps), NULL},
	{"warmup", false, 0, 1e9, 20, AT(warmup), NULL},
	{"every", false, 1, 1e9, 50, AT(every), NULL},
	{"seed", false, 0, 9e15, 0, AT(seed), NULL},
	{"dtype", false, 0, 2, 0, AT(dtype), train_dtypes},
	{"lr", true, 0, INFINITY, 2e-3, AT(lr), NULL},
	{"decay", true, 0, 1e6, 0.01, AT(decay), NULL},
	{"clip", true, 0, INFINITY, 1, AT(clip), NULL},
	{"dropout", true, 0, 0.99, 0, AT(dropout), NULL},
	{NULL, false, 0, 0, 0, 0, NULL},
};

static int64_t *whole(const train_config *k, const train_field *f)
{
	return (int64_t *)(void *)((char *)(uintptr_t)k + f->at);
}

static double *real(const train_config *k, const train_field *f)
{
	return (double *)(void *)((char *)(uintptr_t)k + f->at);
}

train_config train_config_new(void)
{
	train_config k;

	memset(&k, 0, sizeof k);
	for (const train_field *f = train_fields; f->name != NULL; f++)
		if (f->is_real)
			*real(&k, f) = f->start;
		else
			*whole(&k, f) = (int64_t)f->start;
	return k;
}

int train_config_set(train_config *k, const train_field *f, const char *text)
{
	char *end;
	double v;

	for (int i = 0; f->word != NULL; i++) {
		if (f->word[i] == NULL)
			return -1;
		if (strcmp(f->word[i], text) == 0) {
			*whole(k, f) = i;
			return 0;
		}
	}
	errno = 0;
	if (f->is_real) {
		v = strtod(text, &end);
	} else {
		int64_t i = strtoll(text, &end, 10);

		v = (double)i;
		if (errno == 0 && v >= f->lo && v <= f->hi)
			*whole(k, f) = i;
	}
	if (end == text || *end != '\0' || !isfinite(v) || v < f->lo ||
		v > f->hi || (errno != 0 && !f->is_real))
		return -1;
	if (f->is_real)
		*real(k, f) = v;
	return 0;
}

void train_config_text(
	const train_config *k, const train_field *f, char *out, size_t n)
{
	if (f->word != NULL)
		snprintf(out, n, "%s", f->word[*whole(k, f)]);
	else if (f->is_real)
		snprintf(out, n, "%.17g", *real(k, f));
	else
		snprintf(out, n, "%" PRId64, *whole(k, f));
}

/* ---- does it fit this machine? ---- */

double train_config_params(const train_config *k)
{
	double c = (double)k->width;

	return ((double)k->vocab + (double)k->context + 2) * c +
	       (double)k->layers * (12 * c * c + 13 * c);
}

/*
 * Estimates the memory of a run: parameters, gradients and two moments; for
 * each token the values that the backward pass reads, which are per layer about
 * 24 vectors of the width and the weights of attention, and the chances of all
 * tokens. Measured: docs/train.md.
 */
double train_config_bytes(const train_config *k)
{
	double tokens = (double)k->batch * (double)k->context;
	double layer = 24 * (double)k->width +
		       2 * (double)k->heads * (double)k->context;

	double bytes = (double)tn_dtype_bytes(train_config_dtype(k));
	/* bf16: two moments and a master copy in f32 */
	double state = bytes < 4 ? 3 * 4 : 2 * bytes;

	return (2 * bytes + state) * train_config_params(k) +
	       bytes * tokens * ((double)k->layers * layer +
					3 * (double)k->vocab);
}

/* Bytes of memory that this process may use. */
static double memory(void)
{
	static const char *const limits[] = {"/sys/fs/cgroup/memory.max",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes"};
	double n = (double)sysconf(_SC_PHYS_PAGES) *
		   (double)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		FILE *f = fopen(limits[i], "r");
		char text[64] = "";
		double limit;

		if (f == NULL)
			continue;
		if (fgets(text, sizeof text, f) == NULL)
			text[0] = '\0';
		limit = strtod(text, NULL); /* 0: not a number, such as "max" */
		if (limit > 0 && limit < n)
			n = limit;
		fclose(f);
	}
	return n;
}

tn_status train_config_check(const train_config *k, tn_context *c)
{
	double need = train_config_bytes(k), have = memory();

	if (k->width % k->heads != 0)
		return tn_at_fail(NULL, 0, c, TN_EINVAL, "train.heads",
			"--heads %" PRId64 " must divide --width %" PRId64,
			k->heads, k->width);
	if (need > have)
		return tn_at_fail(NULL, 0, c, TN_ENOMEM, "train.memory",
			"a model of %.3g parameters and a batch of %" PRId64
			" x %" PRId64 " tokens need about %.3g GB, and this "
			"machine has %.3g GB",
			train_config_params(k), k->batch, k->context,
			1e-9 * need, 1e-9 * have);
	return TN_OK;
}
