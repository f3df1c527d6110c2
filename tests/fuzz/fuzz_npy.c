/*
 * fuzz_npy.c: any bytes as an .npy file. Either they are refused with a rule
 * and a sentence, or what is read has the size its shape says, all of it there.
 */
#include "fuzz.h"

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
	file_array x;
	int64_t n;
	volatile unsigned char sum = 0;

	in->a = arena_new(in->e);
	file_npy_parse(in->a, "fuzz.npy", in->bytes, in->n, &x);
	check(x.rank >= 0 && x.rank <= TN_MAX_RANK);
	n = shape_numel(x.shape, x.rank);
	check(n >= 0 && (size_t)n * dtype_size(x.dtype) <= in->n);
	for (size_t i = 0; i < (size_t)n * dtype_size(x.dtype); i++) {
		unsigned char c = ((unsigned char *)x.data)[i];

		check(x.dtype != TN_BOOL || c <= 1);
		sum = (unsigned char)(sum + c);
	}
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
		check(strncmp(d->rule, "npy.", 4) == 0 && d->text[0] != '\0');
		check(strcmp(d->file, "fuzz.npy") == 0);
	}
	arena_free(in.a);
	env_free(in.e);
	return 0;
}
