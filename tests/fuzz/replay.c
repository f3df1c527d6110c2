/*
 * replay.c: runs a fuzz target without a fuzzing engine.
 *
 *     fuzz_npy [--mutate N] [--seed S] [--first I] [--print] FILE|FOLDER...
 *
 * Every file is given to the target as it is; then N changed copies of files
 * chosen at random (cut, bytes flipped, deleted, repeated, replaced by a part
 * of another file or by digits; digits changed). The same seed gives the same
 * copies. A crash leaves nothing behind but the last line printed, which names
 * file, seed and number of the copy; --first I --mutate 1 makes that copy alone,
 * and --print writes it out instead of running it. A finding belongs into the
 * corpus.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILES = 4096, MAX_BYTES = 1 << 20 };

struct file {
	char *name;
	unsigned char *bytes;
	size_t n;
};

struct corpus {
	struct file at[MAX_FILES];
	size_t n;
};

struct copies {
	long first, n;
	uint64_t seed;
	bool print;
};

static void *must(void *p)
{
	if (p == NULL) {
		perror("fuzz");
		exit(2);
	}
	return p;
}

static void add_file(struct corpus *c, const char *path)
{
	struct file *f = &c->at[c->n];
	FILE *in = must(fopen(path, "rb"));

	if (c->n == MAX_FILES) {
		fprintf(stderr, "fuzz: more than %d files\n", MAX_FILES);
		exit(2);
	}
	f->bytes = must(malloc(MAX_BYTES));
	f->n = fread(f->bytes, 1, MAX_BYTES, in);
	f->bytes = must(realloc(f->bytes, f->n > 0 ? f->n : 1));
	f->name = must(strdup(path));
	fclose(in);
	c->n++;
}

static int is_visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void add(struct corpus *c, const char *path)
{
	struct dirent **names;
	struct stat st;
	int n;

	if (stat(path, &st) != 0) {
		perror(path);
		exit(2);
	}
	if (!S_ISDIR(st.st_mode)) {
		add_file(c, path);
		return;
	}
	n = scandir(path, &names, is_visible, alphasort);
	for (int i = 0; i < n; i++) {
		size_t room = strlen(path) + strlen(names[i]->d_name) + 2;
		char *full = must(malloc(room));

		snprintf(full, room, "%s/%s", path, names[i]->d_name);
		if (stat(full, &st) == 0 &&
			(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
			add(c, full);
		free(full);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

/* xorshift64* (Vigna 2016) */
static uint64_t next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static size_t below(uint64_t *state, size_t n)
{
	return n == 0 ? 0 : (size_t)(next(state) >> 20) % n;
}

/* Replaces out[at, at + n_old) by n_new bytes; sizes are within the buffer. */
static size_t splice(unsigned char *out, size_t n, size_t at, size_t n_old,
	const unsigned char *with, size_t n_new)
{
	if (n - n_old + n_new > MAX_BYTES)
		return n;
	memmove(out + at + n_new, out + at + n_old, n - at - n_old);
	memcpy(out + at, with, n_new);
	return n - n_old + n_new;
}

/* One change; returns the new number of bytes. */
static size_t change(
	uint64_t *rng, unsigned char *out, size_t n, const struct file *other)
{
	static const char *const bits[] = {"-1", "0", "9223372036854775807",
		"9223372036854775808", "4294967296", "65536", "(", "[", "{",
		"\"", "'", ",", "\n", "1e999", "\xff"};
	unsigned char part[64];
	size_t at = below(rng, n + 1), most = n - at, k, from;

	switch (below(rng, 8)) {
	case 0: /* cut */
		return at;
	case 1: /* flip a bit */
		if (at < n)
			out[at] ^= (unsigned char)(1u << below(rng, 8));
		return n;
	case 2: /* any byte */
		if (at < n)
			out[at] = (unsigned char)next(rng);
		return n;
	case 3: /* delete */
		k = below(rng, (most < 16 ? most : 16) + 1);
		return splice(out, n, at, k, part, 0);
	case 4: /* repeat */
		k = below(rng, (most < 64 ? most : 64) + 1);
		memcpy(part, out + at, k);
		return splice(out, n, at, 0, part, k);
	case 5: /* part of another */
		from = below(rng, other->n + 1);
		k = below(rng, other->n - from + 1);
		k = k < 64 ? k : 64;
		return splice(out, n, at, k < most ? k : most,
			other->bytes + from, k);
	case 6: /* another digit: what is read often stays valid */
		while (at < n && (out[at] < '0' || out[at] > '9'))
			at++;
		if (at < n)
			out[at] = (unsigned char)('0' + below(rng, 10));
		return n;
	default: /* what readers stumble over */
		k = below(rng, sizeof bits / sizeof *bits);
		return splice(out, n, at, below(rng, (most < 4 ? most : 4) + 1),
			(const unsigned char *)bits[k], strlen(bits[k]));
	}
}

static void run(const unsigned char *bytes, size_t n)
{
	/* a block of its own size, so that ASan sees an overrun */
	unsigned char *copy = must(malloc(n > 0 ? n : 1));

	memcpy(copy, bytes, n);
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

static void mutate(const struct corpus *c, const struct copies *o)
{
	unsigned char *out = must(malloc(MAX_BYTES));

	for (long i = o->first; i < o->first + o->n; i++) {
		uint64_t rng = (o->seed + 1) * UINT64_C(0x9e3779b97f4a7c15) +
			       (uint64_t)i * UINT64_C(0xbf58476d1ce4e5b9);
		const struct file *f;
		size_t n, n_changes;

		rng = rng == 0 ? 1 : rng;
		next(&rng);
		f = &c->at[below(&rng, c->n)];
		n = f->n;
		memcpy(out, f->bytes, n);
		for (n_changes = 1 + below(&rng, 4); n_changes > 0; n_changes--)
			n = change(&rng, out, n, &c->at[below(&rng, c->n)]);
		fprintf(stderr, "\r%s seed %llu copy %ld\033[K", f->name,
			(unsigned long long)o->seed, i);
		if (o->print)
			fwrite(out, 1, n, stdout);
		else
			run(out, n);
	}
	fputc('\n', stderr);
	free(out);
}

int main(int argc, char **argv)
{
	struct corpus *c = must(calloc(1, sizeof *c));
	struct copies o = {.seed = 1};

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--mutate") == 0 && i + 1 < argc)
			o.n = strtol(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
			o.seed = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--first") == 0 && i + 1 < argc)
			o.first = strtol(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--print") == 0)
			o.print = true;
		else
			add(c, argv[i]);
	if (c->n == 0) {
		fprintf(stderr,
			"usage: %s [--mutate N] [--seed S] [--first I] "
			"[--print] FILE|FOLDER...\n",
			argv[0]);
		return 2;
	}
	for (size_t i = 0; i < c->n && o.first == 0; i++) {
		fprintf(stderr, "%s\n", c->at[i].name);
		run(c->at[i].bytes, c->at[i].n);
	}
	mutate(c, &o);
	if (!o.print)
		printf("%zu files, %ld changed copies\n", c->n, o.n);
	for (size_t i = 0; i < c->n; i++) {
		free(c->at[i].name);
		free(c->at[i].bytes);
	}
	free(c);
	return 0;
}
