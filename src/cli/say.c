/*
 * say.c: prints the messages of the commands: diagnoses and notes on standard
 * error, JSON on standard output.
 *
 *     add.tn:4:7: error[tn.op]: no operation is called ad; did you mean add?
 *       t = ad(x, y)
 *           ^
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * Are colours allowed? Only on a terminal, and not with NO_COLOR
 * (no-color.org).
 */
static bool colours(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDERR_FILENO) && (no == NULL || *no == '\0') &&
	       (term == NULL || strcmp(term, "dumb") != 0);
}

static void head(const char *kind, const char *rule)
{
	bool c = colours();

	fputs(c ? "\033[1;31m" : "", stderr);
	if (rule != NULL && *rule != '\0')
		fprintf(stderr, "%s[%s]:", kind, rule);
	else
		fprintf(stderr, "%s:", kind);
	fputs(c ? "\033[0m " : " ", stderr);
}

/*
 * Prints text without control characters, which names from files may contain.
 */
static void put(const char *text)
{
	for (const char *s = text; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;

		fputc((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? '?'
									: c,
			stderr);
	}
}

static void vput(const char *fmt, va_list ap)
{
	char text[2048];

	vsnprintf(text, sizeof text, fmt, ap);
	put(text);
}

void cli_diag(const tn_diag *d)
{
	if (d->file[0] != '\0') {
		put(d->file);
		fputc(':', stderr);
		if (d->line > 0)
			fprintf(stderr, "%d:", (int)d->line);
		if (d->line > 0 && d->column > 0)
			fprintf(stderr, "%d:", (int)d->column);
		fputc(' ', stderr);
	}
	head("error", d->rule);
	put(d->text);
	fputc('\n', stderr);
	if (d->extra[0] == '\0')
		return;
	/* the source line and its caret, both indented by two */
	for (const char *s = d->extra; s != NULL && *s != '\0';) {
		const char *end = strchr(s, '\n');
		int n = end != NULL ? (int)(end - s) : (int)strlen(s);

		fprintf(stderr, "  %.*s\n", n, s);
		s = end != NULL ? end + 1 : NULL;
	}
}

int cli_error(const char *file, const char *rule, const char *fmt, ...)
{
	va_list ap;

	if (file != NULL) {
		put(file);
		fputs(": ", stderr);
	}
	head("error", rule);
	va_start(ap, fmt);
	vput(fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return CLI_FAILED;
}

void cli_note(const char *fmt, ...)
{
	va_list ap;

	fputs("tenon: ", stderr);
	va_start(ap, fmt);
	vput(fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

int cli_no_context(void)
{
	cli_diag(tn_context_diag(NULL));
	return CLI_FAILED;
}

void cli_progress(const char *fmt, ...)
{
	const char *term = getenv("TERM");
	va_list ap;

	/* a terminal that cannot overwrite a line */
	if (!isatty(STDERR_FILENO) ||
		(term != NULL && strcmp(term, "dumb") == 0))
		return;
	fputs("\r\033[K", stderr);
	va_start(ap, fmt);
	vput(fmt, ap);
	va_end(ap);
	fflush(stderr);
}

void cli_json_text(FILE *f, const char *text)
{
	fputc('"', f);
	for (const char *s = text; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c == '\n')
			fputs("\\n", f);
		else if (c < 0x20 || c == 0x7f)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

void cli_json_number(FILE *f, double v)
{
	if (isfinite(v))
		fprintf(f, "%.9g", v);
	else
		fputs("null", f);
}

bool cli_flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	if (errno != EPIPE)
		cli_error(NULL, "file.write", "standard output: %s",
			strerror(errno));
	return false;
}

bool cli_can_write(const char *path, const char *rule)
{
	bool is_new = access(path, F_OK) != 0;
	/* if this is a pipe, do not wait for its other end */
	int fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);

	if (fd < 0 && errno == ENXIO)
		return true;
	if (fd < 0) {
		cli_error(path, rule, "cannot be written: %s", strerror(errno));
		return false;
	}
	close(fd);
	if (is_new)
		unlink(path);
	return true;
}

void *cli_alloc(size_t n, size_t size)
{
	void *m = calloc(n > 0 ? n : 1, size > 0 ? size : 1);

	if (m == NULL)
		cli_error(NULL, "run.memory", "no memory for %zu bytes",
			n * size);
	return m;
}

double cli_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
