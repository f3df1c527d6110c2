/*
 * call.c: calls as nodes: their operands, their results, and whether they have
 * a gradient. Inside a recording each is part of it.
 */
#include "value/node.h"

static void add_result(t_call *c, int32_t i, t_value *v)
{
	v->call = c;
	v->result = i;
	c->result[i] = v;
	c->refs++;
}

t_call *t_record(tensors *t, t_entry *e, int32_t n, const t_read *arg)
{
	t_call *c = t_call_new(t, n, e->inst->n_results);

	t->stats.n_calls++;
	c->entry = e;
	for (int32_t i = 0; i < n; i++)
		c->arg[c->n_args++] = t_read_of(arg[i].v, arg[i].view);
	for (int32_t i = 0; i < c->n_results; i++)
		add_result(c, i,
			t_value_new(t,
				&e->inst->tensor[e->inst->result[i]].type));
	t_track(t, c);
	t_captured(t, c);
	return c;
}

t_call *t_record_trace(tensors *t, t_trace *f, const t_read *arg)
{
	t_call *c;

	if (t->running == 0)
		t_check_writes(t, f, arg);
	c = t_call_new(t, f->n_in, f->n_out);
	t->stats.n_calls++;
	c->trace = f;
	for (int32_t i = 0; i < f->n_in; i++)
		c->arg[c->n_args++] = t_read_of(arg[i].v, arg[i].view);
	for (int32_t i = 0; i < f->n_out; i++)
		add_result(c, i, t_value_new(t, &f->out[i]->type));
	for (int32_t k = 0; k < f->n_in; k++)
		if (f->next[k] >= 0) { /* a version of the whole value */
			t_value *v = c->result[f->next[k]];

			v->type = arg[k].v->type;
			v->want = arg[k].v->buf != NULL && t->placed
				? 1 + arg[k].v->where
				: arg[k].v->want;
		}
	t_track(t, c);
	t_captured(t, c);
	return c;
}

t_value *t_record_write(tensors *t, t_read to, t_read value)
{
	t_call *c = t_call_new(t, 2, 1);

	t->stats.n_calls++;
	c->arg[c->n_args++] = t_read_of(to.v, to.view);
	c->arg[c->n_args++] = t_read_of(value.v, value.view);
	add_result(c, 0, t_value_new(t, &to.v->type));
	if (value.v->buf == NULL && to.view == NULL && value.view == NULL)
		value.v->writer = c;
	t_track(t, c);
	t_captured(t, c);
	return c->result[0];
}

t_value *t_copy_of(tensors *t, t_value *v, t_view *w, const ir_type *type)
{
	t_read arg = {v, w, false, 0};

	return t_record(t, t_entry_named(t, "copy", 1, &type, 0, NULL), 1, &arg)
		->result[0];
}
