/*
 * region_take.c: operands and results of regions, in whose memory they are.
 */
#include "func/region.h"

bool t_is_asked(const t_call *c, int32_t r)
{
	return c->result[r] != NULL && c->result[r]->data > 0;
}

/* Does somebody ask for operand i beside this call as that operand? */
bool t_is_wanted_beside(tensors *t, const t_call *c, int32_t i)
{
	return t->dropped != TENSOR_RULE_TAKE &&
		c->arg[i].v->data > (t_tape_reads(t, c, i) ? 0 : 1);
}

t_value *t_take(tensors *t, t_call *c, int32_t i)
{
	t_value *v = c->arg[i].v, *mine = t_value_new(t, &v->type);
	bool wanted = t_is_wanted_beside(t, c, i);
	bool is_only_held = v->held > 0 && v->buf->refs == 1 &&
		t_data(v) <= (t_tape_reads(t, c, i) ? 0 : 1);

	t_value_keep(mine);
	if (!is_only_held && (wanted || v->buf->refs > 1))
		t_count_copy(t, v);
	if (v->buf->refs == 1 && (v->buf->is_external || !wanted)) {
		t_buffer *b = wanted ? t_buffer_copy(t, v) : NULL;

		mine->buf = v->buf;
		v->buf = b;
	} else {
		mine->buf = t_buffer_copy(t, v);
	}
	return mine;
}

/* Result `to` is in b, or in the memory that waits for it. */
void t_settle_result(tensors *t, t_value *to, t_buffer *b)
{
	to->buf = b;
	if (to->place == NULL)
		return;
	t_copy(t, to->place->data, b->data, ir_type_bytes(&to->type));
	t_buffer_drop(t, b);
	to->buf = to->place;
	to->place = NULL;
}

void t_become(tensors *t, t_call *c, int32_t r, t_value *v, bool in_place)
{
	t_value *to = c->result[r];

	if (in_place || (v->refs == 1 && v->buf->refs == 1 &&
				v->buf->own != NULL)) {
		t_buffer *b = v->buf;

		v->buf = NULL;
		t_settle_result(t, to, b);
	} else {
		t_buffer *b = t_buffer_new(t, ir_type_bytes(&to->type));

		t_copy(t, b->data, v->buf->data, ir_type_bytes(&to->type));
		t_settle_result(t, to, b);
	}
	t_value_drop(t, v);
}
