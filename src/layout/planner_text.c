/*
 * planner_text.c: a proposal as text or JSON.
 *
 *     block*.up.weight x4     f32[512,128]     model: axis 0 by 256
 */
#include "layout/local.h"

typedef struct writer {
	str *o;
	const shard_plan *p;
	const shard_proposal *q;
	const shard_wishes *w;
} writer;

static const char *where(const writer *z, int32_t tensor)
{
	const sys_tensor *t = &z->p->s->tensor.at[tensor];
	str s = str_new(z->o->a);

	shard_placement_print(&s, &z->p->tensor[tensor].have, 0, 0, z->p->mesh,
		t->rank, t->shape);
	return s.at;
}

static const char *type_of(const writer *z, int32_t tensor)
{
	const sys_tensor *t = &z->p->s->tensor.at[tensor];
	str s = str_new(z->o->a);

	str_printf(&s, "%s[", dtype_name(t->dtype));
	for (int32_t i = 0; i < t->rank; i++)
		str_printf(&s, "%s%lld", i > 0 ? "," : "",
			(long long)t->shape[i]);
	str_add(&s, "]");
	return s.at;
}

static const char *axes_of(const writer *z, uint32_t mask)
{
	str s = str_new(z->o->a);

	for (int32_t m = 0; m < z->p->mesh->n; m++)
		if (mask >> m & 1)
			str_printf(&s, "%s%s", s.n > 0 ? "," : "",
				z->p->mesh->name[m]);
	return s.at;
}

/* 1234567 -> "1.23 MB" */
static const char *size_text(const writer *z, double n)
{
	static const char *const unit[] = {"B", "KB", "MB", "GB", "TB", "PB"};
	int32_t k = 0;

	for (; n >= 1000 && k < 5; k++)
		n /= 1000;
	return arena_printf(
		z->o->a, k == 0 ? "%.0f %s" : "%.3g %s", n, unit[k]);
}

static void text(const writer *z)
{
	const shard_bill *b = &z->q->bill;
	int64_t n = 1;

	str_add(z->o, "mesh");
	for (int32_t m = 0; m < z->p->mesh->n; m++) {
		n *= z->p->mesh->extent[m];
		str_printf(z->o, "%c%s=%lld", m > 0 ? ',' : ' ',
			z->p->mesh->name[m],
			(long long)z->p->mesh->extent[m]);
	}
	str_printf(z->o, ": %lld processes, %d proposals tried\n\n",
		(long long)n, (int)z->q->n_tried);
	for (int32_t i = 0; i < z->q->input.n; i++) {
		const shard_placed *k = &z->q->input.at[i];
		const char *name = k->n > 1
			? arena_printf(z->o->a, "%s x%d", k->name, (int)k->n)
			: k->name;

		str_printf(z->o, "  %-26s %-18s %s\n", name,
			type_of(z, k->tensor), where(z, k->tensor));
	}
	str_printf(z->o, "\nmoves, bytes that a process receives\n");
	for (int32_t i = 0; i < z->q->charge.n; i++) {
		const shard_charge *c = &z->q->charge.at[i];

		str_printf(z->o, "  %-26s %-12s %10s  of %s",
			c->name, axes_of(z, c->mask), size_text(z, c->bytes),
			c->of);
		str_printf(z->o, c->n > 1 ? ", %d times\n" : "\n", (int)c->n);
	}
	if (z->q->charge.n == 0)
		str_add(z->o, "  none\n");
	str_printf(z->o,
		"\nmemory of a process: %s of %s: inputs %s, states %s, "
		"values %s\n",
		size_text(z, b->memory), size_text(z, z->w->memory),
		size_text(z, b->inputs), size_text(z, b->states),
		size_text(z, b->values));
	str_printf(z->o,
		"step: %.4g ms: %.4g computing %.4g GFLOP, %.4g moving %s\n",
		1e3 * b->seconds, 1e3 * (b->seconds - b->link_seconds),
		1e-9 * b->flops, 1e3 * b->link_seconds,
		size_text(z, b->moved));
}

static void json(const writer *z)
{
	const shard_bill *b = &z->q->bill;

	str_add(z->o, "{\"mesh\":{");
	for (int32_t m = 0; m < z->p->mesh->n; m++)
		str_printf(z->o, "%s\"%s\":%lld", m > 0 ? "," : "",
			z->p->mesh->name[m],
			(long long)z->p->mesh->extent[m]);
	str_add(z->o, "},\"inputs\":[");
	for (int32_t i = 0; i < z->q->input.n; i++) {
		const shard_placed *k = &z->q->input.at[i];

		str_printf(z->o, "%s{\"name\":\"%s\",\"count\":%d,"
				 "\"type\":\"%s\",\"placement\":\"%s\"}",
			i > 0 ? "," : "", k->name, (int)k->n,
			type_of(z, k->tensor), where(z, k->tensor));
	}
	str_add(z->o, "],\"moves\":[");
	for (int32_t i = 0; i < z->q->charge.n; i++) {
		const shard_charge *c = &z->q->charge.at[i];

		str_printf(z->o, "%s{\"move\":\"%s\",\"axes\":\"%s\","
				 "\"of\":\"%s\",\"count\":%d,\"bytes\":%.0f}",
			i > 0 ? "," : "", c->name, axes_of(z, c->mask), c->of,
			(int)c->n, c->bytes);
	}
	str_printf(z->o,
		"],\"memory\":%.0f,\"memory_inputs\":%.0f,"
		"\"memory_states\":%.0f,\"memory_values\":%.0f,"
		"\"flops\":%.6g,\"bytes\":%.0f,\"link_seconds\":%.6g,"
		"\"seconds\":%.6g}\n",
		b->memory, b->inputs, b->states, b->values, b->flops, b->moved,
		b->link_seconds, b->seconds);
}

void shard_proposal_print(str *out, const shard_plan *p,
	const shard_proposal *q, const shard_wishes *w, bool as_json)
{
	writer z = {out, p, q, w};

	if (as_json)
		json(&z);
	else
		text(&z);
}
