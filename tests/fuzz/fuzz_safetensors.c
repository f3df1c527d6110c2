/*
 * fuzz_safetensors.c: any bytes as a .safetensors file. Either they are refused
 * with a rule and a sentence, or the tensors are the data of the file, one
 * behind the other, and all of it can be read.
 */
#include "fuzz.h"
#include "memory_file.h"

#include "file/file.h"

struct input {
	env *e;
	arena *a;
	const uint8_t *bytes;
	size_t n;
};

static void check(bool holds)
{
	if (!holds)
		__builtin_trap();
}

static void reads(void *arg)
{
	struct input *in = arg;
	file_tensors x;
	size_t at;

	in->a = arena_new(in->e);
	file_tensors_open(in->a, memory_file(in->a, in->bytes, in->n), &x);
	at = x.n > 0 ? x.at[0].from : in->n;
	for (int32_t i = 0; i < x.n; i++) {
		const file_tensor *t = &x.at[i];
		unsigned char *data = arena_alloc(in->a, t->n_bytes, 1);
		int64_t n = shape_numel(t->shape, t->rank);

		check(t->rank >= 0 && t->rank <= TN_MAX_RANK && n >= 0);
		check((size_t)n * dtype_size(t->dtype) == t->n_bytes);
		check(t->from == at);
		file_tensors_read(&x, i, data);
		for (size_t k = 0; k < t->n_bytes && t->dtype == TN_BOOL; k++)
			check(data[k] <= 1);
		for (int32_t k = 0; k < i; k++)
			check(strcmp(x.at[k].name, t->name) != 0);
		at += t->n_bytes;
	}
	check(at == in->n);
	for (int32_t i = 0; i < x.n_pairs; i++)
		check(strlen(x.pair[i].key) + strlen(x.pair[i].value) < in->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct input in = {.e = env_new(), .bytes = bytes, .n = n};
	tn_status status;

	check(in.e != NULL);
	status = env_run(in.e, reads, &in);
	if (status != TN_OK) {
		const tn_diag *d = env_diag(in.e);

		check(status == TN_EINVAL || status == TN_EIO);
		check(strncmp(d->rule, "safetensors.", 12) == 0);
		check(d->text[0] != '\0' &&
			strncmp(d->file, "/proc/self/fd/", 14) == 0);
	}
	arena_free(in.a);
	env_free(in.e);
	return 0;
}
