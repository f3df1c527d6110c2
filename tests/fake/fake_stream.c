/*
 * fake_stream.c: streams, events and graphs of the driver without a GPU.
 */
#include "fake_local.h"

#include <stdlib.h>

/* ---- streams and events ------------------------------------------------ */

EXPORT result cuStreamCreate(stream **s, unsigned flags)
{
	result r = fake_enter();

	(void)flags;
	*s = calloc(1, sizeof **s);
	(*s)->last = &(*s)->first;
	fake_add_stream(*s);
	fake_state.n_streams++;
	return fake_leave(r);
}

EXPORT result cuStreamDestroy_v2(stream *s)
{
	result r = fake_enter();

	(void)fake_drain(s, NULL);
	fake_drop_stream(s);
	free(s);
	fake_state.n_streams--;
	return fake_leave(r);
}

EXPORT result cuStreamSynchronize(stream *s)
{
	(void)fake_enter();
	if (s->recorded != NULL)
		fake_stop("a stream is waited for while it is recorded");
	fake_state.n_waits++;
	return fake_leave(fake_drain(s, NULL));
}

EXPORT result cuEventCreate(event **e, unsigned flags)
{
	result r = fake_enter();

	(void)flags;
	*e = calloc(1, sizeof **e);
	fake_state.n_events++;
	return fake_leave(r);
}

EXPORT result cuEventDestroy_v2(event *e)
{
	result r = fake_enter();

	if (e->of != NULL)
		(void)fake_drain(e->of, NULL);
	free(e);
	fake_state.n_events--;
	return fake_leave(r);
}

EXPORT result cuEventRecord(event *e, stream *s)
{
	result r = fake_enter();

	if (r != OK)
		return fake_leave(r);
	e->of = s;
	e->n++;
	e->n_recorded++;
	return fake_leave(fake_queue(s, &(op){.kind = RECORD, .event = e}));
}

EXPORT result cuStreamWaitEvent(stream *s, event *e, unsigned flags)
{
	result r = fake_enter();

	(void)flags;
	if (r != OK || e->of == NULL || e->of == s) /* done, or in order */
		return fake_leave(r);
	return fake_leave(fake_queue(s, &(op){.kind = WAIT, .event = e,
		.of = e->of, .at = e->n_recorded}));
}

EXPORT result cuEventSynchronize(event *e)
{
	result r = fake_enter();

	if (e->of != NULL)
		r = fake_drain(e->of, e);
	return fake_leave(r);
}

EXPORT result cuEventQuery(event *e)
{
	result r = fake_enter();

	if (e->of != NULL)
		fake_try(e->of);
	if (r == OK)
		r = fake_state.is_broken ? ILLEGAL : e->n > 0 ? NOT_READY : OK;
	return fake_leave(r);
}

/* ---- graphs ------------------------------------------------------------ */

graph *fake_new_graph(void)
{
	graph *g = calloc(1, sizeof *g);

	g->last = &g->first;
	return g;
}

static graph *new_graph(void)
{
	fake_state.n_graphs++;
	return fake_new_graph();
}

void fake_append(graph *g, op *o)
{
	*g->last = o;
	g->last = &o->next;
}

static void take(graph *to, const graph *from);

op *fake_copy_op(const op *o)
{
	op *copy = malloc(sizeof *copy);

	*copy = *o;
	copy->next = NULL;
	if (o->body != NULL) {
		copy->body = fake_new_graph();
		take(copy->body, o->body);
	}
	return copy;
}

static void empty(graph *g)
{
	for (op *next, *o = g->first; o != NULL; o = next) {
		next = o->next;
		fake_free_op(o);
	}
	g->first = NULL;
	g->last = &g->first;
}

void fake_free_op(op *o)
{
	if (o->body != NULL)
		empty(o->body);
	free(o->body);
	free(o);
}

static void take(graph *to, const graph *from)
{
	empty(to);
	for (const op *o = from->first; o != NULL; o = o->next)
		fake_append(to, fake_copy_op(o));
}

EXPORT result cuStreamBeginCapture_v2(stream *s, int mode)
{
	result r = fake_enter();

	(void)mode;
	if (r != OK || s->recorded != NULL)
		return fake_leave(r != OK ? r : BAD_CAPTURE);
	s->recorded = new_graph();
	return fake_leave(OK);
}

static result drop_graph(graph *g)
{
	empty(g);
	free(g);
	fake_state.n_graphs--;
	return OK;
}

EXPORT result cuStreamEndCapture(stream *s, graph **g)
{
	result r = fake_enter();

	*g = s->recorded;
	s->recorded = NULL;
	if (*g != NULL && (*g)->is_refused) {
		drop_graph(*g);
		*g = NULL;
		return fake_leave(BAD_CAPTURE);
	}
	return fake_leave(r);
}

EXPORT result cuGraphInstantiateWithFlags(
	graph **x, graph *g, unsigned long long flags)
{
	result r = fake_enter();

	(void)flags;
	if (r != OK)
		return fake_leave(r);
	fake_check_bodies(g);
	if (g->tail != NULL && g->has_exec)
		fake_stop("a second executable graph with conditions");
	g->has_exec = true;
	*x = new_graph();
	take(*x, g);
	return fake_leave(OK);
}

EXPORT result cuGraphExecUpdate_v2(graph *x, graph *g, void *why)
{
	result r = fake_enter();
	const op *a = x->first, *b = g->first;

	(void)why;
	if (r != OK)
		return fake_leave(r);
	/* the functions may change, but not what kinds of nodes there are */
	while (a != NULL && b != NULL && a->kind == b->kind) {
		a = a->next;
		b = b->next;
	}
	if (a != NULL || b != NULL)
		return fake_leave(BAD_UPDATE);
	take(x, g);
	return fake_leave(OK);
}

EXPORT result cuGraphExecDestroy(graph *x)
{
	(void)fake_enter();
	return fake_leave(drop_graph(x));
}

EXPORT result cuGraphDestroy(graph *g)
{
	(void)fake_enter();
	return fake_leave(drop_graph(g));
}

EXPORT result cuGraphLaunch(graph *x, stream *s)
{
	result r = fake_enter();

	if (r != OK)
		return fake_leave(r);
	fake_state.n_graph_launches++;
	r = fake_assign(s, x);
	for (const op *o = x->first; r == OK && o != NULL; o = o->next)
		r = fake_queue(s, o);
	return fake_leave(r);
}
