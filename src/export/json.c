/*
 * json.c: NAME.json: memory and work of the exported program, for tools.
 */
#include "export/local.h"

#include <inttypes.h>

static void put_arrays(str *out, const export_net *x, bool inputs)
{
	bool first = true;

	for (int32_t i = 0; i < x->n_io; i++) {
		const struct io *io = &x->io[i];

		if ((io->input >= 0) != inputs)
			continue;
		str_printf(out, "%s\n  {\"name\":", first ? "" : ",");
		str_json(out, io->t->name);
		str_printf(out, ",\"argument\":\"%s\",\"dtype\":\"%s\",\"shape\":",
			io->ident, dtype_name(io->t->dtype));
		str_shape(out, io->t->shape, io->t->rank);
		str_printf(out, ",\"bytes\":%zu,\"written\":%s}",
			(size_t)io->t->numel * dtype_size(io->t->dtype),
			io->written ? "true" : "false");
		first = false;
	}
}

static void put_kernels(str *out, const export_net *x)
{
	bool first = true;

	for (int32_t i = 0; i < x->plan.n; i++) {
		const xplan *n = x->plan.at[i];

		for (int32_t j = 0; j < n->p->launch.n; j++) {
			const plan_launch *l = &n->p->launch.at[j];

			if (l->code == NULL)
				continue;
			str_printf(out, "%s\n  {\"name\":", first ? "" : ",");
			str_json(out, l->source->name);
			str_printf(out, ",\"body\":%d,\"function\":\"%s\"",
				(int)n->number, l->code->phase[0].fn);
			str_printf(out,
				",\"flops\":%" PRId64 ",\"bytes\":%" PRId64
				",\"packed\":%s}",
				l->code->flops, l->code->bytes,
				n->launch[j].packed != 0 ? "true" : "false");
			first = false;
		}
	}
}

void export_json(str *out, const export_net *x)
{
	const plan *p = x->main->p;

	str_printf(out,
		"{\"name\":\"%s\",\"machine\":\"%s\",\"vector_bytes\":%d,\n"
		" \"arena_bytes\":%zu,\"thread_bytes\":%zu,"
		"\"weights_bytes\":%zu,\"weights_id\":\"%016" PRIx64 "\",\n"
		" \"state_bytes\":%zu,\"plan_bytes\":%zu,\"parts\":%d,\"loops\":%d,\n",
		x->job->name, x->job->machine, (int)x->job->vector_bytes,
		x->fixed_bytes + export_up(x->local_bytes),
		export_up(x->local_bytes), x->weights_bytes, x->id,
		x->state_bytes,
		p->tensor_bytes + p->scratch_bytes + p->kept_bytes +
			p->local_bytes,
		(int)x->main->part.n, (int)x->plan.n - 1);
	str_add(out, " \"libm\":[");
	for (int32_t i = 0; x->libm[i] != NULL; i++)
		str_printf(out, "%s\"%s\"", i > 0 ? "," : "", x->libm[i]);
	str_add(out, "],\n \"inputs\":[");
	put_arrays(out, x, true);
	str_add(out, "],\n \"outputs\":[");
	put_arrays(out, x, false);
	str_add(out, "],\n \"state\":[");
	export_state_json(out, x);
	str_add(out, "],\n \"kernels\":[");
	put_kernels(out, x);
	str_add(out, "]}\n");
}
