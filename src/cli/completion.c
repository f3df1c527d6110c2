/*
 * completion.c: `tenon completion SHELL`: prints a script with which a shell
 * completes commands and options. Commands are those of the table of commands;
 * options are those that their help texts mention.
 */
#include "cli/cli.h"

#include <string.h>

/*
 * Finds the next --option in *at; returns the length of its name without
 * dashes, or 0.
 */
static size_t next_option(const char **at, const char **name)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyz-";
	const char *p = *at;

	while ((p = strstr(p, "--")) != NULL) {
		size_t n = strspn(p + 2, set);

		*at = p + 2 + n;
		*name = p + 2;
		if (n > 0 && p[2] != '-')
			return n;
		p += 2;
	}
	return 0;
}

static bool is_first(const char *text, const char *at, size_t n)
{
	const char *name;
	size_t k;

	while ((k = next_option(&text, &name)) > 0 && name < at)
		if (k == n && !memcmp(name, at, n))
			return false;
	return true;
}

/* Prints before, option, after for each option of the commands of this name. */
static void put_options(const cli_command *const *all, const char *command,
	const char *before, const char *after)
{
	for (int i = 0; all[i] != NULL; i++) {
		const char *at = all[i]->help, *name;
		size_t n;

		if (strcmp(all[i]->name, command) != 0)
			continue;
		while ((n = next_option(&at, &name)) > 0)
			if (is_first(all[i]->help, name, n))
				printf("%s%.*s%s", before, (int)n, name, after);
	}
}

/* Is command i the first of its name? */
static bool is_listed(const cli_command *const *all, int i)
{
	for (int k = 0; k < i; k++)
		if (!strcmp(all[k]->name, all[i]->name))
			return false;
	return true;
}

static void put_cases(const cli_command *const *all, const char *before,
	const char *after)
{
	for (int i = 0; all[i] != NULL; i++) {
		if (!is_listed(all, i))
			continue;
		printf("\t%s) %s", all[i]->name, before);
		put_options(all, all[i]->name, "--", " ");
		printf("%s ;;\n", after);
	}
}

static void bash(const cli_command *const *all)
{
	fputs("# bash completion for tenon; made by: tenon completion bash\n"
	      "_tenon()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} words=\n\n"
	      "\tCOMPREPLY=()\n"
	      "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
	      "\t\tCOMPREPLY=($(compgen -W \"",
		stdout);
	for (int i = 0; all[i] != NULL; i++)
		if (is_listed(all, i))
			printf("%s ", all[i]->name);
	fputs("--help --version\" -- \"$cur\"))\n"
	      "\t\treturn\n\tfi\n"
	      "\tcase ${COMP_WORDS[1]} in\n",
		stdout);
	put_cases(all, "words='", "'");
	fputs("\tesac\n"
	      "\tcase $cur in\n"
	      "\t-*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
	      "\tesac\n}\n"
	      "complete -o default -F _tenon tenon\n",
		stdout);
}

static void zsh(const cli_command *const *all)
{
	fputs("#compdef tenon\n"
	      "# zsh completion for tenon; made by: tenon completion zsh\n"
	      "_tenon()\n{\n"
	      "\tlocal -a known\n\n"
	      "\tif (( CURRENT == 2 )); then\n"
	      "\t\tknown=(\n",
		stdout);
	for (int i = 0; all[i] != NULL; i++)
		if (is_listed(all, i))
			printf("\t\t\t'%s:%s'\n", all[i]->name,
				all[i]->summary);
	fputs("\t\t)\n"
	      "\t\t_describe command known\n"
	      "\t\treturn\n\tfi\n"
	      "\tcase $words[2] in\n",
		stdout);
	put_cases(all, "known=(", ")");
	fputs("\tesac\n"
	      "\tif [[ $PREFIX == -* ]]; then\n"
	      "\t\tcompadd -- $known\n"
	      "\telse\n"
	      "\t\t_files\n\tfi\n}\n"
	      "if [ \"$funcstack[1]\" = _tenon ]; then\n"
	      "\t_tenon \"$@\"\n"
	      "else\n"
	      "\tcompdef _tenon tenon\nfi\n",
		stdout);
}

static void fish(const cli_command *const *all)
{
	fputs("# fish completion for tenon; made by: tenon completion fish\n",
		stdout);
	for (int i = 0; all[i] != NULL; i++) {
		char before[160];

		if (!is_listed(all, i))
			continue;
		printf("complete -c tenon -n __fish_use_subcommand -f -a %s "
		       "-d '%s'\n",
			all[i]->name, all[i]->summary);
		snprintf(before, sizeof before,
			"complete -c tenon -n '__fish_seen_subcommand_from "
			"%s' -l ",
			all[i]->name);
		put_options(all, all[i]->name, before, "\n");
	}
}

int cli_complete(const cli_command *self, const cli_command *const *all,
	int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*put)(const cli_command *const *all);
	} shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
	const cli_option options[] = {{0}};
	const char *shell = NULL;
	int code = cli_args(self, argc, argv, options, &shell, 1);

	if (code >= 0)
		return code;
	for (int i = 0; shell != NULL && i < 3; i++)
		if (!strcmp(shell, shells[i].name)) {
			shells[i].put(all);
			return CLI_OK;
		}
	return cli_usage(self, "give bash, zsh or fish, not %s",
		shell != NULL ? shell : "nothing");
}
