/*
 * args.c: parses command lines: --flag, --name=value, --name value. "--" ends
 * the options; "-" is a positional argument (standard input).
 *
 *     {"level", .value = &level}   --level=loops   or   --level loops
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int cli_usage(const cli_command *self, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "tenon %s: ", self->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "; tenon %s --help says what is accepted\n",
		self->name);
	return CLI_USAGE;
}

static const cli_option *find(
	const cli_option *options, const char *name, size_t n)
{
	for (; options->name != NULL; options++)
		if (strlen(options->name) == n &&
			!memcmp(options->name, name, n))
			return options;
	return NULL;
}

static void keep(const cli_option *o, const char *value)
{
	if (o->list != NULL)
		o->list->at[o->list->n++] = value;
	else
		*o->value = value;
}

static int no_option(
	const cli_command *self, const char *arg, const cli_option *options)
{
	char word[64];
	cli_nearest n = {.wanted = word};

	snprintf(word, sizeof word, "%s", arg + strspn(arg, "-"));
	word[strcspn(word, "=")] = '\0';
	for (; options->name != NULL; options++)
		cli_near(&n, options->name);
	if (n.found == NULL)
		return cli_usage(self, "no option %s", arg);
	return cli_usage(
		self, "no option %s (did you mean --%s?)", arg, n.found);
}

/*
 * Parses an argument that begins with dashes; advances *i if its value is the
 * next argument.
 */
static int option(const cli_command *self, int argc, char **argv, int *i,
	const cli_option *options)
{
	const char *name = argv[*i] + 2;
	const char *eq = strchr(name, '=');
	size_t n = eq != NULL ? (size_t)(eq - name) : strlen(name);
	const cli_option *o = find(options, name, n);

	if (strncmp(argv[*i], "--", 2) != 0 || o == NULL)
		return no_option(self, argv[*i], options);
	if (o->flag != NULL) {
		if (eq != NULL)
			return cli_usage(self, "--%s takes no value", o->name);
		*o->flag = true;
		return -1;
	}
	if (eq == NULL && *i + 1 >= argc)
		return cli_usage(self, "--%s needs a value", o->name);
	keep(o, eq != NULL ? eq + 1 : argv[++*i]);
	return -1;
}

int cli_args(const cli_command *self, int argc, char **argv,
	const cli_option *options, const char **positional, int n_max)
{
	int n = 0, code;
	bool open = true; /* "--" has not occurred yet */

	for (int i = 0; i < argc; i++) {
		if (open && !strcmp(argv[i], "--")) {
			open = false;
		} else if (open && (!strcmp(argv[i], "--help") ||
					   !strcmp(argv[i], "-h"))) {
			fputs(self->help, stdout);
			return CLI_OK;
		} else if (open && argv[i][0] == '-' && argv[i][1] != '\0') {
			code = option(self, argc, argv, &i, options);
			if (code >= 0)
				return code;
		} else if (n < n_max) {
			positional[n++] = argv[i];
		} else {
			return cli_usage(self, "too many arguments: %s",
				argv[i]);
		}
	}
	return -1;
}

bool cli_seed(const cli_command *self, const char *text, uint64_t *out)
{
	char *end;

	if (text == NULL)
		return true;
	errno = 0;
	*out = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0)
		return true;
	cli_usage(self, "--seed %s is not an integer of at least 0", text);
	return false;
}

bool cli_whole(const char *text, int64_t lo, int64_t *out)
{
	char *end = NULL;

	if (text == NULL)
		return true;
	*out = strtoll(text, &end, 10);
	return end != text && *end == '\0' && *out >= lo && *out < 1 << 30;
}
