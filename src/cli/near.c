/*
 * near.c: suggests the nearest known word for an unknown one.
 *
 *     "trian" -> "train"        "repaet" -> "repeat"        "fly" -> none
 */
#include "cli/cli.h"

#include <string.h>

enum { MAX_WORD = 40 };

/*
 * The number of letters to change, insert, delete or exchange with the next
 * one; a large number for long words.
 */
static int distance(const char *a, const char *b)
{
	int row[3][MAX_WORD + 1];
	size_t na = strlen(a), nb = strlen(b);

	if (na > MAX_WORD || nb > MAX_WORD)
		return 2 * MAX_WORD;
	for (size_t j = 0; j <= nb; j++)
		row[0][j] = (int)j;
	for (size_t i = 1; i <= na; i++) {
		int *now = row[i % 3], *up = row[(i + 2) % 3];
		const int *two = row[(i + 1) % 3];

		now[0] = (int)i;
		for (size_t j = 1; j <= nb; j++) {
			int best = up[j - 1] + (a[i - 1] != b[j - 1]);

			if (up[j] + 1 < best)
				best = up[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
				a[i - 2] == b[j - 1] && two[j - 2] + 1 < best)
				best = two[j - 2] + 1;
			now[j] = best;
		}
	}
	return row[na % 3][nb];
}

void cli_near(cli_nearest *n, const char *word)
{
	int d = distance(n->wanted, word);
	bool begins = strlen(n->wanted) >= 2 &&
		!strncmp(n->wanted, word, strlen(n->wanted));

	if (begins) /* a prefix of the word */
		d = 1;
	if (d > (int)strlen(n->wanted) / 3 + 1 ||
		d >= (int)strlen(n->wanted))
		return;
	if (n->found == NULL || d < n->distance) {
		n->found = word;
		n->distance = d;
	}
}
