/*
 * fuzz_kern.c: any bytes as the text of a kernel. It is refused with a rule and
 * a sentence that is the user's fault, never the library's; or the verifier
 * accepts it, then it prints what parses back to it, and the interpreter, which
 * checks each access, runs it without an element outside an array, one that is
 * not written yet, or one that two chunks of a phase access: what is accepted
 * would have been compiled.
 */
#include "fuzz.h"

#include "run_kernel.h"

struct input {
	env *e;
	arena *a;
	const char *text;
	size_t n;
	bool accepted; /* what follows must not fail */
};

static void check(bool holds)
{
	if (!holds)
		__builtin_trap();
}

static kern_kernel *parsed(arena *a, const char *text, size_t n)
{
	kern_kernel *k = kern_parse(a, text, n, "fuzz");

	kern_verify(k);
	return k;
}

static void reads(void *arg)
{
	struct input *in = arg;
	arena *a = in->a = arena_new(in->e);
	kern_kernel *k = parsed(a, in->text, in->n);
	str one = str_new(a), two = str_new(a);
	void **param;

	in->accepted = true;
	kern_print(&one, k, 0);
	kern_print(&two, parsed(a, one.at, one.n), 0);
	check(one.n == two.n && memcmp(one.at, two.at, one.n) == 0);
	for (uint64_t seed = 1; seed <= 2 && is_small_kernel(a, k); seed++)
		(void)run_kernel(a, k, seed, &param);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct input in = {
		.e = env_new(), .text = (const char *)bytes, .n = n};
	tn_status status;

	check(in.e != NULL);
	status = env_run(in.e, reads, &in);
	if (status != TN_OK) {
		const tn_diag *d = env_diag(in.e);

		check(status == TN_ENOMEM ||
			(status == TN_EINVAL && !in.accepted));
		check(d->rule[0] != '\0' && d->text[0] != '\0');
	}
	arena_free(in.a);
	env_free(in.e);
	return 0;
}
