/*
 * report.c: writes a page for a browser that shows what ran and how it was
 * compiled: a single file, which needs no other files and no network.
 *
 *     cli_report_write("demo/report.html", "{\"about\": .., \"profile\": ..}")
 *
 * The page (report.html, embedded in this program) shows the content of the
 * JSON object.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern const char *const cli_report_page[];

#define MARK "@DATA@"

/* ---- date, machine, command line ---- */

/* The name of the processor; "" if the system does not report it. */
static void cpu_name(char *out, size_t n)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[300];

	*out = '\0';
	while (f != NULL && *out == '\0' && fgets(line, sizeof line, f) != NULL) {
		char *value = strchr(line, ':');

		if (value == NULL || strncmp(line, "model name", 10) != 0)
			continue;
		value += 1 + strspn(value + 1, " ");
		value[strcspn(value, "\n")] = '\0';
		snprintf(out, n, "%s", value);
	}
	if (f != NULL)
		fclose(f);
}

static bool is_plain(const char *arg)
{
	if (*arg == '\0')
		return false;
	for (; *arg != '\0'; arg++)
		if (!isalnum((unsigned char)*arg) &&
			strchr("_./=,:@%+-", *arg) == NULL)
			return false;
	return true;
}

/* Prints an argument, quoted for a shell. */
static void add_argument(FILE *f, const char *arg)
{
	if (is_plain(arg)) {
		fputs(arg, f);
		return;
	}
	fputc('\'', f);
	for (; *arg != '\0'; arg++)
		if (*arg == '\'')
			fputs("'\\''", f);
		else
			fputc(*arg, f);
	fputc('\'', f);
}

/* The command line of this process; NULL if the system does not report it. */
static char *command_line(void)
{
	FILE *from = fopen("/proc/self/cmdline", "r"), *to;
	char *out = NULL, *arg = NULL;
	size_t n = 0, room = 0;
	bool first = true;

	if (from == NULL)
		return NULL;
	to = open_memstream(&out, &n);
	while (to != NULL && getdelim(&arg, &room, '\0', from) > 0) {
		if (!first)
			fputc(' ', to);
		first = false;
		add_argument(to, arg);
	}
	free(arg);
	fclose(from);
	if (to == NULL || fclose(to) != 0) {
		free(out);
		return NULL;
	}
	return out;
}

void cli_report_about(FILE *f)
{
	char date[40] = "", cpu[200], *command = command_line();
	time_t now = time(NULL);
	struct tm utc;

	if (gmtime_r(&now, &utc) != NULL)
		strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc);
	cpu_name(cpu, sizeof cpu);
	fprintf(f, "\"about\": {\"date\": \"%s\", \"cpus\": %ld, \"cpu\": ",
		date, sysconf(_SC_NPROCESSORS_ONLN));
	cli_json_text(f, cpu);
	fputs(", \"version\": ", f);
	cli_json_text(f, tn_version());
	fputs(", \"command\": ", f);
	cli_json_text(f, command != NULL ? command : "");
	fputs("}, ", f);
	free(command);
}

/* ---- the page ---- */

/*
 * Prints JSON inside a script element: '<', which could end the script, is
 * escaped.
 */
static void add_json(FILE *f, const char *json)
{
	for (; *json != '\0'; json++)
		if (*json == '<')
			fputs("\\u003c", f);
		else
			fputc(*json, f);
}

bool cli_report_write(const char *path, const char *json)
{
	FILE *f = fopen(path, "w");
	bool ok;

	if (f == NULL) {
		cli_error(path, "report.write", "cannot be written: %s",
			strerror(errno));
		return false;
	}
	for (int i = 0; cli_report_page[i] != NULL; i++) {
		const char *line = cli_report_page[i];
		const char *mark = strstr(line, MARK);

		if (mark == NULL) {
			fputs(line, f);
			continue;
		}
		fwrite(line, 1, (size_t)(mark - line), f);
		add_json(f, json);
		fputs(mark + strlen(MARK), f);
	}
	ok = ferror(f) == 0;
	if (fclose(f) != 0 || !ok) {
		cli_error(path, "report.write", "cannot be written: %s",
			strerror(errno));
		return false;
	}
	return true;
}
