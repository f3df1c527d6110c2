/*
 * stream.c: chooses results to store past the caches: large ones that no
 * statement of the kernel reads and that are not accumulated in memory, in kernels
 * that move more bytes than the caches have. Other results should stay in a cache
 * for their next reader.
 */
#include "schedule/local.h"

struct find {
	int32_t tensor;
	bool read;
};

static void on_read(void *arg, const expr *e)
{
	struct find *f = arg;

	if (e->kind == EX_READ && e->tensor == f->tensor)
		f->read = true;
}

void loop_choose_streams(loop_kernel *k)
{
	int64_t moved = 0;
	int32_t p, i, j, e, c;

	for (p = 0; p < k->n_params; p++) {
		const sys_tensor *t = &k->s->tensor.at[k->param[p]];

		moved += t->numel * (int64_t)dtype_size(t->dtype);
	}
	if (moved < k->machine->memory[MACHINE_L3].bytes)
		return;
	for (p = 0; p < k->n_outputs; p++) {
		struct find f = {k->param[p], false};
		const sys_tensor *t = &k->s->tensor.at[f.tensor];

		if (t->numel * (int64_t)dtype_size(t->dtype) <
				k->machine->schedule.stream_bytes ||
			!loop_maker(k, f.tensor, &e, &c) || k->eqn[e].push ||
			ir_in_place(k->s, f.tensor))
			continue;
		for (i = 0; i < k->n_eqns; i++)
			for (j = 0; j < k->eqn[i].e->n_out; j++)
				loop_walk(k->a, k->eqn[i].body[j], on_read, &f);
		k->stream[p] = !f.read && (k->eqn[e].e->monoid == IR_SET ||
						  k->buf_of[e][c] >= 0);
		loop_decide(k, k->stream[p] ? DECIDE_STREAM_TAKEN
					    : DECIDE_STREAM_READ, f.tensor, -1,
			t->numel * (int64_t)dtype_size(t->dtype), 0);
	}
}
