/*
 * report.c: a page that shows what ran and how it was made, for a browser: one
 * file that needs no other one, and no network.
 *
 *     cli_report_write("demo/report.html", "{\"profile\": ...}")
 *
 * The page (report.html, a part of this program) draws what the object tells.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <errno.h>
#include <string.h>

extern const char *const cli_report_page[];

#define MARK "@DATA@"

/* JSON in a script: what could end the script is written otherwise. */
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
