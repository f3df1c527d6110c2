/*
 * fuzz_schedule.c: any bytes as the schedules of a program: the program, a line
 * "# pinned", and the text of the level schedule. It is refused with a rule and a
 * sentence that is the user's fault, never the library's; or its kernels pass the
 * verifier of kernels, print what parses back to them, and compute what those of
 * Tenon's own schedules compute: a text that is accepted changes no value.
 */
#define _GNU_SOURCE /* memmem */
#include "run_kernel.h"

#include "fuzz.h"

#include "engine/engine.h"
#include "interp/interp.h"

#include <math.h>

struct input {
	env *e;
	arena *a;
	const char *text, *pinned;
	size_t n, n_pinned;
	compilation *own, *made; /* made: by the text, which is accepted */
};

static void check(bool holds)
{
	if (!holds)
		__builtin_trap();
}

static compilation *compiled(struct input *in, compile_text pinned)
{
	compile_options o = compile_options_default(machine_find("c/avx2"));
	ir_program *p = ir_program_parse(in->a, in->text, in->n, "fuzz.tn", interp_loop);
	compilation *c;

	o.verify = true;
	o.schedule = pinned;
	c = compile_new(in->a, p, &o);
	compile_to(c, TN_LEVEL_SCHEDULE);
	return c;
}

/* Orders of sums differ, and with them the last bits. */
static void same_data(const kern_array *r, const void *x, const void *y)
{
	for (int64_t i = 0; i < r->elems; i++) {
		double a = dtype_load_f64(r->dtype, x, i);
		double b = dtype_load_f64(r->dtype, y, i);
		bool rounds = dtype_is_float(r->dtype);

		check(a == b || (isnan(a) && isnan(b)) ||
			(rounds && fabs(a - b) <=
					1e-5 + 1e-3 * (fabs(a) + fabs(b))));
	}
}

static void same_kernel(arena *a, kern_kernel *own, kern_kernel *made)
{
	void **x, **y;

	if (!is_small_kernel(a, own) || !is_small_kernel(a, made))
		return;
	if (run_kernel(a, own, 1, &x) != 0) {
		check(run_kernel(a, made, 2, &y) != 0);
		return;
	}
	check(run_kernel(a, made, 2, &y) == 0);
	for (int32_t i = 0; i < own->n_outputs; i++)
		same_data(&own->array.at[i], x[i], y[i]);
}

static void reads_back(struct input *in)
{
	str one = str_new(in->a), two = str_new(in->a);

	compile_explain(&one, in->made, TN_LEVEL_SCHEDULE, 0);
	compile_explain(&two,
		compiled(in, (compile_text){one.at, "printed", one.n, NULL}),
		TN_LEVEL_SCHEDULE, 0);
	check(one.n == two.n && memcmp(one.at, two.at, one.n) == 0);
}

static void reads(void *arg)
{
	struct input *in = arg;
	compilation *made;

	in->a = arena_new(in->e);
	in->own = compiled(in, (compile_text){0});
	made = compiled(in,
		(compile_text){in->pinned, "fuzz.schedule", in->n_pinned, NULL});
	in->made = made;
	compile_to(in->own, TN_LEVEL_KERN);
	compile_to(made, TN_LEVEL_KERN);
	reads_back(in);
	check(made->groups->kernel.n == in->own->groups->kernel.n);
	for (int32_t i = 0; i < made->groups->kernel.n; i++)
		if (made->kernels[i] != NULL) {
			kern_verify_text(made->kernels[i], i);
			same_kernel(in->a, in->own->kernels[i],
				made->kernels[i]);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static const char mark[] = "\n# pinned\n";
	const char *text = (const char *)bytes;
	const char *at = memmem(bytes, n, mark, sizeof mark - 1);
	struct input in = {.e = env_new(), .text = text};
	tn_status status;

	check(in.e != NULL);
	if (at == NULL)
		return env_free(in.e), 0;
	in.n = (size_t)(at - text) + 1;
	in.pinned = at + sizeof mark - 1;
	in.n_pinned = n - (size_t)(in.pinned - text);
	status = env_run(in.e, reads, &in);
	if (status != TN_OK) {
		const tn_diag *d = env_diag(in.e);

		check(status == TN_ENOMEM ||
			(status == TN_EINVAL && in.made == NULL));
		check(d->rule[0] != '\0' && d->text[0] != '\0');
	}
	arena_free(in.a);
	env_free(in.e);
	return 0;
}
