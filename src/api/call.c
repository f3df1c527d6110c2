/*
 * call.c: enters and leaves the library. Every call that can fail runs inside
 * env_run, which turns what a pass throws into a status and a diagnosis.
 */
#include "api/api.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- diagnoses ---- */

#define NO_WORDS "a call has failed without a message"

/* The diagnosis of calls without a context, by thread. */
static _Thread_local tn_diag nobodys;

static void __attribute__((format(printf, 5, 0))) say_nobodys(const char *file,
	int32_t line, tn_status status, const char *rule, const char *format,
	va_list ap)
{
	nobodys = (tn_diag){.status = status, .line = line};
	(void)text_print(nobodys.rule, sizeof nobodys.rule, "%s",
		rule != NULL && rule[0] != '\0' ? rule : "api.fail");
	(void)text_print(nobodys.file, sizeof nobodys.file, "%s",
		file != NULL ? file : "");
	(void)text_vprint(nobodys.text, sizeof nobodys.text, format, ap);
	if (nobodys.text[0] == '\0')
		(void)text_print(
			nobodys.text, sizeof nobodys.text, NO_WORDS);
}

tn_status api_fail_alone(
	tn_status status, const char *rule, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say_nobodys(NULL, 0, status, rule, format, ap);
	va_end(ap);
	return status;
}

void api_say_nobodys(const tn_diag *d)
{
	nobodys = *d;
}

static void clear_nobodys(void)
{
	nobodys = (tn_diag){0};
}

tn_status api_null(const char *what)
{
	return api_fail_alone(TN_EINVAL, "api.null", "%s is NULL", what);
}

const tn_diag *tn_context_diag(const tn_context *c)
{
	if (c == NULL)
		return &nobodys;
	if (c->first.status != TN_OK)
		return &c->first;
	return c->failed ? env_diag(c->e) : &c->none;
}

tn_status tn_context_status(const tn_context *c)
{
	return c != NULL ? c->first.status : tn_context_diag(NULL)->status;
}

void tn_context_clear(tn_context *c)
{
	if (c == NULL) {
		clear_nobodys();
		return;
	}
	c->first = (tn_diag){0};
	c->failed = false;
	if (c->t != NULL)
		tensor_step_goes_on(c->t);
}

/* ---- the context of a call that names none ---- */

static _Thread_local struct {
	tn_context *c;
	int64_t n_freed;
} recent;
static _Atomic int64_t n_freed;

tn_context *api_context_recent(void)
{
	return recent.n_freed == n_freed ? recent.c : NULL;
}

void api_context_used(tn_context *c)
{
	recent.c = c;
	recent.n_freed = n_freed;
}

void api_context_ends(const tn_context *c)
{
	bool is_other = recent.c != c && recent.n_freed == n_freed;
	int64_t now = ++n_freed;

	if (is_other)
		recent.n_freed = now;
}

/* ---- calls ---- */

tn_status api_call(tn_context *c, void (*fn)(void *arg), void *arg)
{
	fp_env host;
	bool first;
	tn_status s;

	if (c == NULL)
		return api_null("the context");
	host = fp_enter();
	first = !c->is_inside;
	if (first)
		c->host = host;
	c->is_inside = true;
	s = env_run(c->e, fn, arg);
	c->is_inside = !first;
	fp_leave(&host);
	c->failed = c->failed || s < 0;
	return s;
}

void api_out(tn_context *c)
{
	c->is_inside = false;
	fp_leave(&c->host);
}

void api_back(tn_context *c)
{
	c->is_inside = true;
	c->host = fp_enter();
}

void api_want(tn_context *c, const void *p, const char *what)
{
	if (p == NULL)
		env_fail(c->e, TN_EINVAL, "api.null", (loc){0},
			"%s is NULL", what);
}

tn_status api_sticky(tn_context *c, const char *file, int32_t line,
	void (*fn)(void *arg), void *arg)
{
	tn_status s = api_call(c, fn, arg);
	tn_diag *d;

	if (s < 0 && c != NULL && c->t != NULL)
		tensor_step_fails(c->t);
	if (s >= 0 || c == NULL || c->first.status != TN_OK)
		return s;
	d = &c->first;
	*d = *env_diag(c->e);
	if (d->file[0] == '\0' && file != NULL) {
		strncpy(d->file, file, sizeof d->file - 1);
		d->line = line;
	}
	return s;
}

/* ---- failures that the host reports ---- */

struct fail_call {
	tn_context *c;
	tn_status status;
	const char *rule, *text;
};

static void throw_fail(void *arg)
{
	const struct fail_call *f = arg;
	bool rule = f->rule != NULL && f->rule[0] != '\0';

	env_fail(f->c->e, f->status, rule ? f->rule : "api.fail", (loc){0},
		"%s", f->text[0] != '\0' ? f->text : NO_WORDS);
}

tn_status tn_at_fail(const char *file, int32_t line, tn_context *c,
	tn_status status, const char *rule, const char *format, ...)
{
	char text[sizeof((tn_diag *)0)->text];
	struct fail_call f = {
		c, status < 0 ? status : TN_EINVAL, rule, text};
	va_list ap;

	va_start(ap, format);
	if (c == NULL)
		say_nobodys(file, line, f.status, rule, format, ap);
	else
		text_vprint(text, sizeof text, format, ap);
	va_end(ap);
	if (c == NULL)
		return f.status;
	return api_sticky(c, file, line, throw_fail, &f);
}

/* ---- texts that the caller frees ---- */

/*
 * The allocator of a text is stored before it, so that tn_text_free needs no
 * context.
 */
struct text {
	tn_allocator memory;
	char at[];
};

char *api_text(tn_context *c, const str *s)
{
	const tn_allocator *m = &c->o.memory;
	size_t n = sizeof(struct text) + s->n + 1;
	struct text *t = m->resize != NULL ? m->resize(m->arg, NULL, n)
					   : malloc(n);

	if (t == NULL)
		env_fail(c->e, TN_ENOMEM, "memory", (loc){0},
			"out of memory: %zu bytes were asked for", n);
	t->memory = *m;
	memcpy(t->at, s->at, s->n + 1);
	return t->at;
}

void tn_text_free(char *text)
{
	struct text *t;
	tn_allocator m;

	if (text == NULL)
		return;
	t = (struct text *)(void *)(text - offsetof(struct text, at));
	m = t->memory;
	if (m.resize != NULL)
		m.resize(m.arg, t, 0);
	else
		free(t);
}
