/*
 * fuzz_notation.c: any bytes as a row of the notation, as a system or as a
 * program with rows. They are refused with a rule and a sentence that is the
 * user's fault, never the library's; a program that is accepted lowers to a
 * system that verifies; systems and programs print what parses back to them.
 */
#include "fuzz.h"
#include "system_parse.h"

#include "program/program.h"
#include "interp/interp.h"

struct input {
	env *e;
	arena *a;
	const char *text;
	size_t n;
	bool lowers; /* what follows is lowering */
};

static void check(bool holds)
{
	if (!holds)
		__builtin_trap();
}

static bool begins(const struct input *in, const char *word)
{
	return in->n >= strlen(word) &&
		memcmp(in->text, word, strlen(word)) == 0;
}

static void same_system(arena *a, ir_system *s)
{
	str one = str_new(a), two = str_new(a);

	ir_system_print(&one, s);
	ir_system_print(&two,
		ir_system_parse(a, ix_new(a), one.at, one.n, "printed"));
	check(one.n == two.n && memcmp(one.at, two.at, one.n) == 0);
}

static void reads(void *arg)
{
	struct input *in = arg;
	arena *a = in->a = arena_new(in->e);

	if (begins(in, "system")) {
		same_system(a, ir_system_parse(a, ix_new(a), in->text, in->n,
				       "fuzz"));
	} else if (begins(in, "op ") || begins(in, "program")) {
		ir_program *p = ir_program_parse(a, in->text, in->n, "fuzz", interp_loop);
		ir_system *s;

		in->lowers = true;
		s = ir_lower(a, ix_new(a), p);
		ir_system_verify(s);
		same_system(a, s);
	} else {
		ir_table_define(ir_table_new(a), in->text, in->n,
			(loc){.file = "fuzz", .line = 1, .column = 1});
	}
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

		check(status == TN_EINVAL || status == TN_ENOMEM);
		check(d->rule[0] != '\0' && d->text[0] != '\0');
	}
	arena_free(in.a);
	env_free(in.e);
	return 0;
}
