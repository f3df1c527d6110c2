/*
 * ranks.h: one body on n threads that are the processes of a world, each with
 * a context of its own. In tests of sharded tensors.
 */
#ifndef RANKS_H
#define RANKS_H

#include <tenon.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef void ranks_body(tn_context *c, int32_t process, void *arg);

typedef struct ranks_thread {
	pthread_t id;
	tn_world *w;
	int32_t process;
	bool interp;
	ranks_body *body;
	void *arg;
	tn_status status; /* of its context, in the end */
	char rule[64], text[1024];
} ranks_thread;

/* By process; NULL: that of the environment. */
static const char *const *ranks_devices;

static void *ranks_main(void *arg)
{
	ranks_thread *t = arg;
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = t->interp;
	o.threads = 1;
	if (ranks_devices != NULL)
		o.device = ranks_devices[t->process];
	if (tn_context_new(&c, &o) < 0)
		abort();
	if (tn_join(c, t->w, t->process) < 0)
		abort();
	t->body(c, t->process, t->arg);
	t->status = tn_context_status(c);
	snprintf(t->rule, sizeof t->rule, "%s", tn_context_diag(c)->rule);
	snprintf(t->text, sizeof t->text, "%s", tn_context_diag(c)->text);
	tn_context_free(c);
	return NULL;
}

/* t has room for n */
static void ranks_run(
	ranks_thread *t, int32_t n, bool interp, ranks_body *body, void *arg)
{
	tn_world *w = tn_world_new(n);

	for (int32_t i = 0; i < n; i++) {
		t[i] = (ranks_thread){.w = w,
			.process = i,
			.interp = interp,
			.body = body,
			.arg = arg};
		if (pthread_create(&t[i].id, NULL, ranks_main, &t[i]) != 0)
			abort();
	}
	for (int32_t i = 0; i < n; i++)
		pthread_join(t[i].id, NULL);
	tn_world_free(w);
}

#endif
