/*
 * env.c: the error environment. env_fail() leaves every function up to the
 * innermost env_run(), with the diagnosis kept in the env:
 *
 *     static void work(void *arg) { ... env_fail(e, TN_EINVAL, "tn.name", ...
 *     if (env_run(e, work, &arg) < 0)
 *             show(env_diag(e)->text);
 *
 * This is the only file with setjmp/longjmp. The jump leaks nothing, because
 * all that a pass acquires belongs to an arena.
 *
 * Guarantees: texts of a diagnosis are terminated, cut only between UTF-8
 * characters, and without control characters, even if a hostile file has them
 * in a name.
 */
#include "base/env.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

/* Bytes of a source line that a diagnosis shows around its column. */
enum { SHOWN = 160 };

struct frame {
	jmp_buf at;
	struct frame *up;
};

struct env {
	struct frame *top; /* innermost env_run, NULL outside */
	int64_t n_allocs, fail_at;
	tn_allocator memory;
	tn_diag diag;
};

static void *system_resize(void *arg, void *old, size_t n_bytes)
{
	(void)arg;
	if (n_bytes > 0)
		return realloc(old, n_bytes);
	free(old);
	return NULL;
}

env *env_new(void)
{
	env *e = calloc(1, sizeof(env));

	if (e != NULL)
		e->memory.resize = system_resize;
	return e;
}

env *env_new_with(const tn_allocator *memory)
{
	env *e = memory->resize(memory->arg, NULL, sizeof *e);

	if (e == NULL)
		return NULL;
	memset(e, 0, sizeof *e);
	e->memory = *memory;
	return e;
}

void env_free(env *e)
{
	if (e != NULL)
		env_release(e, e);
}

/*
 * setjmp is safe here: no local variable changes after it and is used later,
 * and the frame is popped on both paths.
 */
tn_status env_run(env *e, void (*fn)(void *arg), void *arg)
{
	struct frame frame;

	frame.up = e->top;
	e->top = &frame;
	if (setjmp(frame.at) != 0)
		return e->diag.status; /* throw() has popped the frame */
	fn(arg);
	e->top = frame.up;
	return TN_OK;
}

const tn_diag *env_diag(const env *e)
{
	return &e->diag;
}

void env_test_fail_alloc(env *e, int64_t n)
{
	e->fail_at = n > 0 ? e->n_allocs + n : 0;
}

void *env_calloc(env *e, size_t n_bytes)
{
	void *p;

	if (++e->n_allocs == e->fail_at)
		return NULL;
	/* the system gives zeroed pages for free */
	if (e->memory.resize == system_resize)
		return calloc(1, n_bytes);
	p = e->memory.resize(e->memory.arg, NULL, n_bytes);
	if (p != NULL)
		memset(p, 0, n_bytes);
	return p;
}

void env_release(env *e, void *p)
{
	tn_allocator m = e->memory; /* p may be e */

	if (p != NULL)
		m.resize(m.arg, p, 0);
}

/* ---- making the diagnosis ---- */

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* Copies n bytes of src, or as many whole characters as fit. */
static void put(char *out, size_t cap, const char *src, size_t n)
{
	if (n >= cap) {
		n = cap - 1;
		while (n > 0 && is_continuation(src[n]))
			n--;
	}
	memcpy(out, src, n);
	out[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (is_control(out[i]))
			out[i] = '?';
}

static void put_message(tn_diag *d, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

static void put_message(tn_diag *d, const char *fmt, va_list ap)
{
	char text[sizeof d->text + 4]; /* room to see a cut character */
	int n = text_vprint(text, sizeof text, fmt, ap);

	if (n < 0)
		n = 0;
	else if ((size_t)n >= sizeof text)
		n = sizeof text - 1;
	put(d->text, sizeof d->text, text, (size_t)n);
}

/*
 * Stores the diagnosis and jumps. Its arguments may have pointed into the env's
 * diagnosis, which is overwritten only now.
 */
static _Noreturn void throw(env * e, const tn_diag *d)
{
	struct frame *frame = e->top;

	if (frame == NULL) /* thrown outside of env_run: a bug */
		__builtin_trap();
	e->diag = *d;
	e->top = frame->up;
	longjmp(frame->at, 1);
}

static void put_place(tn_diag *d, tn_status status, const char *rule, loc at)
{
	d->status = status;
	put(d->rule, sizeof d->rule, rule, strlen(rule));
	if (at.file != NULL)
		put(d->file, sizeof d->file, at.file, strlen(at.file));
	d->line = at.line;
	d->column = at.column;
}

void env_fail(env *e, tn_status status, const char *rule, loc at,
	const char *fmt, ...)
{
	tn_diag d = {0};
	va_list ap;

	put_place(&d, status, rule, at);
	va_start(ap, fmt);
	put_message(&d, fmt, ap);
	va_end(ap);
	throw(e, &d);
}

void env_rethrow(env *e)
{
	tn_diag d = e->diag;

	throw(e, &d);
}

void env_bug(env *e, const char *where, const char *fmt, ...)
{
	tn_diag d = {0};
	va_list ap;

	put_place(&d, TN_EINTERNAL, where, (loc){0});
	va_start(ap, fmt);
	put_message(&d, fmt, ap);
	va_end(ap);
	throw(e, &d);
}

/* The line of the source, without its end; NULL if there is no such line. */
static const char *find_line(
	const char *source, size_t n_source, int32_t line, size_t *n)
{
	const char *s = source, *end = source + n_source, *stop;

	for (int32_t i = 1; i < line; i++) {
		s = memchr(s, '\n', (size_t)(end - s));
		if (s == NULL)
			return NULL;
		s++;
	}
	stop = memchr(s, '\n', (size_t)(end - s));
	*n = (size_t)((stop != NULL ? stop : end) - s);
	if (*n > 0 && s[*n - 1] == '\r')
		--*n;
	return s;
}

/*
 *     y = addd(x, x)
 *         ^
 * Adds the source line with a caret. Of a longer line only SHOWN bytes around
 * the column are shown.
 */
static void put_source(tn_diag *d, const char *source, size_t n_source, loc at)
{
	size_t n, from = 0, column, used;
	const char *line;
	char *out = d->extra;

	if (source == NULL || at.line < 1 || at.column < 1)
		return;
	line = find_line(source, n_source, at.line, &n);
	if (line == NULL)
		return;
	column = (size_t)at.column - 1;
	if (column > n)
		column = n;
	if (column > SHOWN / 2 && n > SHOWN)
		from = column - SHOWN / 2;
	while (from > 0 && is_continuation(line[from]))
		from--;
	if (n > from + SHOWN) { /* cut between characters */
		n = from + SHOWN;
		while (n > column && is_continuation(line[n]))
			n--;
	}
	put(out, sizeof d->extra, line + from, n - from);
	for (size_t i = from; i < n; i++)
		if (line[i] == '\t')
			out[i - from] = '\t';
	used = n - from;
	out[used++] = '\n';
	for (size_t i = from; i < column; i++)
		if (!is_continuation(line[i]))
			out[used++] = line[i] == '\t' ? '\t' : ' ';
	out[used++] = '^';
	out[used] = '\0';
}

void env_fail_source(env *e, const char *rule, loc at, const char *source,
	size_t n_source, const char *fmt, ...)
{
	tn_diag d = {0};
	va_list ap;

	put_place(&d, TN_EINVAL, rule, at);
	put_source(&d, source, n_source, at);
	va_start(ap, fmt);
	put_message(&d, fmt, ap);
	va_end(ap);
	throw(e, &d);
}
