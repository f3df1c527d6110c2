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
		str_printf(out, ",\"bytes\":%zu,\"written\":%s%s}",
			(size_t)io->t->numel * dtype_size(io->t->dtype),
			io->written ? "true" : "false",
			export_is_string(x, io) ? ",\"strings\":true" : "");
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
			str_printf(out, ",\"body\":%d,\"function\":\"%s%s\"",
				(int)n->number, l->code->phase[0].fn,
				export_suffix(x, n->variant));
			str_printf(out,
				",\"flops\":%" PRId64 ",\"bytes\":%" PRId64
				",\"packed\":%s}",
				l->code->flops, l->code->bytes,
				n->launch[j].packed != 0 ? "true" : "false");
			first = false;
		}
	}
}

/* ---- sizes ---- */

/* Of all rounds. */
static void add_work(const xplan *n, export_size *s, int64_t rounds)
{
	for (int32_t j = 0; j < n->p->launch.n; j++) {
		const plan_launch *l = &n->p->launch.at[j];
		const xplan *body = n->launch[j].body;
		int64_t flops, bytes, r = rounds;

		if (body != NULL) {
			if (!mul_ok(r, plan_loop_of(n->p, j)->n, &r))
				r = INT64_MAX;
			add_work(body, s, r);
		}
		if (l->code == NULL)
			continue;
		if (!mul_ok(l->code->flops, rounds, &flops) ||
			!mul_ok(l->code->bytes, rounds, &bytes) ||
			!add_ok(s->flops, flops, &flops) ||
			!add_ok(s->bytes, bytes, &bytes))
			flops = bytes = INT64_MAX;
		s->flops = flops;
		s->bytes = bytes;
	}
}

export_size export_size_of(const export_net *x)
{
	export_size s = {.memory_limit = x->job->memory_limit,
		.arena_bytes = (int64_t)(x->fixed_bytes +
			export_up(x->local_bytes)),
		.state_bytes = (int64_t)x->state_bytes,
		.weights_bytes = (int64_t)x->weights_bytes};

	add_work(x->variant[x->job->n_variants - 1], &s, 1);
	return s;
}

static void put_size(str *out, const export_size *s)
{
	str_printf(out,
		"\n  {\"memory_limit\":%" PRId64 ",\"arena_bytes\":%" PRId64
		",\"weights_bytes\":%" PRId64 ",\"flops\":%" PRId64
		",\"bytes\":%" PRId64 "}",
		s->memory_limit, s->arena_bytes, s->weights_bytes, s->flops,
		s->bytes);
}

/* Memory against work: this export, and others of the same. */
static void put_sizes(str *out, const export_net *x)
{
	export_size own = export_size_of(x);

	put_size(out, &own);
	for (int32_t i = 0; i < x->job->n_others; i++) {
		str_add(out, ",");
		put_size(out, &x->job->others[i]);
	}
}

static size_t plan_bytes(const plan *p)
{
	return p->tensor_bytes + p->scratch_bytes + p->kept_bytes +
		p->local_bytes;
}

/* Copies of params, in case that a later part fails. */
static size_t saved_bytes(const export_net *x, const plan *p)
{
	int32_t n;
	const plan_early *early = plan_early_writes(x->a, p, &n);
	size_t sum = 0;

	for (int32_t i = 0; i < n; i++)
		sum += export_up(p->location[early[i].tensor].bytes);
	return sum;
}

void export_json(str *out, const export_net *x)
{
	export_size s = export_size_of(x);
	size_t most = 0, saved = 0;
	int32_t n_parts = 0;

	for (int32_t v = 0; v < x->job->n_variants; v++) {
		if (plan_bytes(x->variant[v]->p) > most)
			most = plan_bytes(x->variant[v]->p);
		if (saved_bytes(x, x->variant[v]->p) > saved)
			saved = saved_bytes(x, x->variant[v]->p);
		n_parts += x->variant[v]->part.n;
	}
	str_printf(out,
		"{\"name\":\"%s\",\"machine\":\"%s\",\"vector_bytes\":%d,\n"
		" \"arena_bytes\":%" PRId64 ",\"thread_bytes\":%zu,"
		"\"weights_bytes\":%zu,\"weights_id\":\"%016" PRIx64 "\",\n"
		" \"state_bytes\":%zu,\"plan_bytes\":%zu,\"saved_bytes\":%zu,"
		"\"parts\":%d,\"loops\":%d,\n"
		" \"flops\":%" PRId64 ",\"bytes\":%" PRId64 ",\n",
		x->job->name, export_machines(x), (int)x->job->vector_bytes,
		s.arena_bytes, export_up(x->local_bytes), x->weights_bytes,
		x->id, x->state_bytes, most, saved, (int)n_parts,
		(int)(x->plan.n - x->job->n_variants), s.flops, s.bytes);
	export_strings_json(out, x);
	str_add(out, " \"libm\":[");
	for (int32_t i = 0; x->libm[i] != NULL; i++)
		str_printf(out, "%s\"%s\"", i > 0 ? "," : "", x->libm[i]);
	str_add(out, "],\n \"inputs\":[");
	put_arrays(out, x, true);
	str_add(out, "],\n \"outputs\":[");
	put_arrays(out, x, false);
	str_add(out, "],\n \"state\":[");
	export_state_json(out, x);
	str_add(out, "],\n \"sizes\":[");
	put_sizes(out, x);
	str_add(out, "],\n \"kernels\":[");
	put_kernels(out, x);
	str_add(out, "]}\n");
}
