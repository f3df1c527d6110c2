/*
 * test_bpe.c: vocabularies: learned as a plain count of all pairs would, text
 * to tokens and back, files and what is refused of them; characters in pieces.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/gpt/train.h"

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(state >> 33) % below;
}

/* Words of few letters, spaces, digits, umlauts; or any bytes at all. */
static void write_text(uint8_t *to, size_t n, bool any)
{
	static const char some[] = "aaaabbbccddabcabaa ab  \n\t12+\303\244";

	for (size_t i = 0; i < n; i++)
		to[i] = any ? (uint8_t)draw(256)
			    : (uint8_t)some[draw(sizeof some - 1)];
}

static tn_context *context(void)
{
	tn_context *c = NULL;

	assert_int_equal(tn_context_new(&c, NULL), TN_OK);
	return c;
}

static bool same_tokens(const train_bpe *a, const train_bpe *b)
{
	size_t n, m;

	if (train_bpe_vocab(a) != train_bpe_vocab(b))
		return false;
	for (int64_t i = 0; i < train_bpe_vocab(a); i++) {
		const uint8_t *x = train_bpe_bytes(a, (train_token)i, &n);
		const uint8_t *y = train_bpe_bytes(b, (train_token)i, &m);

		if (n != m || memcmp(x, y, n) != 0)
			return false;
	}
	return true;
}

/* ---- the definition, slowly: all pairs are counted for each merge ---- */

enum { N = 1500, VOCAB = 290 };

/* Where words begin, in other words than those of bpe.c. */
static int class_of(uint8_t b)
{
	if (b >= 128 || strchr("abcd", b) != NULL)
		return 1;
	if (strchr("12", b) != NULL)
		return 2;
	return strchr(" \n\t", b) != NULL ? 3 : 4;
}

static void mark_words(const uint8_t *t, size_t n, bool *begins)
{
	size_t i = 0;

	memset(begins, 0, n + 1);
	while (i < n) {
		size_t from = i;
		int class = class_of(t[i]);

		begins[i] = true;
		if (t[i] == ' ' && i + 1 < n && class_of(t[i + 1]) != 3)
			class = class_of(t[++i]);
		while (i < n && class_of(t[i]) == class && i - from < 64)
			i++;
		if (class == 3 && i < n && class_of(t[i]) != 3 &&
			t[i - 1] == ' ' && i - from > 1)
			i--;
	}
}

static void learn_slowly(const uint8_t *text, uint32_t *merges, int n_merges)
{
	static int64_t count[VOCAB][VOCAB];
	static train_token t[N];
	static bool begins[N + 1];
	size_t n = N;

	mark_words(text, n, begins);
	for (size_t i = 0; i < n; i++)
		t[i] = text[i];
	for (int k = 0; k < n_merges; k++) {
		int a = 0, b = 0;
		size_t m = 0;

		memset(count, 0, sizeof count);
		for (size_t i = 0; i + 1 < n; i++)
			count[t[i]][t[i + 1]] += !begins[i + 1];
		for (int x = 0; x < VOCAB; x++)
			for (int y = 0; y < VOCAB; y++)
				if (count[x][y] > count[a][b]) {
					a = x;
					b = y;
				}
		merges[k] = (uint32_t)a << 16 | (uint32_t)b;
		for (size_t i = 0; i < n; m++) {
			bool pair = i + 1 < n && t[i] == a && t[i + 1] == b &&
				    !begins[i + 1];

			t[m] = pair ? (train_token)(256 + k) : t[i];
			begins[m] = begins[i];
			i += pair ? 2 : 1;
		}
		n = m;
	}
}

/* Bytes of token k by the slow merges. */
static size_t spell(const uint32_t *merges, uint32_t k, uint8_t *out)
{
	size_t n;

	if (k < 256) {
		out[0] = (uint8_t)k;
		return 1;
	}
	n = spell(merges, merges[k - 256] >> 16, out);
	return n + spell(merges, merges[k - 256] & 0xffff, out + n);
}

static void test_learn(void **unused)
{
	(void)unused;
	for (uint64_t seed = 0; seed < 10; seed++) {
		tn_context *c = context();
		uint8_t text[N], out[N];
		uint32_t merges[VOCAB - 256];
		train_bpe *b;
		size_t n, m;

		state = seed;
		write_text(text, N, false);
		learn_slowly(text, merges, VOCAB - 256);
		assert_int_equal(
			train_bpe_learn(&b, c, text, N, VOCAB), TN_OK);
		for (uint32_t k = 256; k < VOCAB; k++) {
			const uint8_t *at =
				train_bpe_bytes(b, (train_token)k, &n);

			m = spell(merges, k, out);
			assert_int_equal(n, m);
			assert_memory_equal(at, out, m);
		}
		train_bpe_free(b);
		tn_context_free(c);
	}
}

static void test_round_trip(void **unused)
{
	tn_context *c = context();
	uint8_t text[5000];
	train_token t[5000];
	train_bpe *b;

	(void)unused;
	state = 1;
	write_text(text, sizeof text, false);
	assert_int_equal(
		train_bpe_learn(&b, c, text, sizeof text, 300), TN_OK);
	for (int i = 0; i < 200; i++) {
		size_t n = draw(sizeof text), m, at = 0, size;

		write_text(text, n, i % 2 == 0);
		m = train_bpe_encode(i % 7 == 0 ? NULL : b, text, n, t);
		assert_true(m <= n);
		assert_true(i % 2 == 0 || i % 7 == 0 || n < 100 || m < n);
		for (size_t k = 0; k < m; k++) {
			const uint8_t *s = train_bpe_bytes(b, t[k], &size);

			assert_true(at + size <= n && size > 0);
			assert_memory_equal(s, text + at, size);
			at += size;
		}
		assert_int_equal(at, n);
	}
	train_bpe_free(b);
	tn_context_free(c);
}

static void test_too_many(void **unused)
{
	static const uint8_t text[] = "ab ab ab cd";
	tn_context *c = context();
	train_bpe *b;

	(void)unused;
	assert_int_equal(train_bpe_learn(&b, c, text, sizeof text - 1, 258),
		TN_OK); /* "ab", " ab" */
	train_bpe_free(b);
	assert_int_equal(train_bpe_learn(&b, c, text, sizeof text - 1, 259),
		TN_EINVAL);
	assert_null(b);
	assert_string_equal(tn_context_diag(c)->rule, "train.vocab");
	assert_non_null(strstr(tn_context_diag(c)->text, "at most 258"));
	tn_context_free(c);
}

/* ---- files ---- */

static void read_text(const char *path, const char *text, const char *expect)
{
	tn_context *c = context();
	FILE *f = fopen(path, "w");
	train_bpe *b;

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_true(train_bpe_read(&b, c, path) < 0);
	assert_null(b);
	assert_string_equal(tn_context_diag(c)->rule, "train.vocab");
	if (strstr(tn_context_diag(c)->text, expect) == NULL)
		fail_msg("%s: %s", text, tn_context_diag(c)->text);
	tn_context_free(c);
}

#define HEAD "{\"format\": \"tenon byte pairs 1\", \"merges\": ["

static void test_file(void **unused)
{
	char path[] = "/tmp/test_bpe.XXXXXX", longer[4000] = HEAD "[97, 97]";
	tn_context *c = context();
	uint8_t text[5000];
	train_bpe *b, *d;
	int fd = mkstemp(path);

	(void)unused;
	assert_true(fd >= 0);
	close(fd);
	state = 5;
	write_text(text, sizeof text, false);
	assert_int_equal(
		train_bpe_learn(&b, c, text, sizeof text, 300), TN_OK);
	assert_int_equal(train_bpe_write(b, c, path), TN_OK);
	assert_int_equal(train_bpe_read(&d, c, path), TN_OK);
	assert_true(same_tokens(b, d));
	assert_true(train_bpe_hash(b) == train_bpe_hash(d));
	train_bpe_free(d);
	train_bpe_free(b);
	read_text(path, "", "not a vocabulary");
	read_text(path, "{}", "not a vocabulary");
	read_text(path, "{\"format\": \"tenon byte pairs 2\"}", "not a vocab");
	read_text(path, HEAD, "a pair of numbers");
	read_text(path, HEAD "[97, 97]", "expected ',' or ']'");
	read_text(path, HEAD "[97, 97]]", "expected '}'");
	read_text(path, HEAD "[97, 97]]} x", "something follows the end");
	read_text(path, HEAD "[97]]}", "a pair of numbers");
	read_text(path, HEAD "[97, -1]]}", "a pair of numbers");
	read_text(path, HEAD "[97, 99999999999999999999]]}", "a pair of num");
	read_text(path, HEAD "[97, 256]]}", "is not defined yet");
	read_text(path, HEAD "[97, 97], [97, 97]]}", "a pair occurs twice");
	for (int i = 0; i < 64; i++) /* twice as long each time */
		sprintf(longer + strlen(longer), ", [%d, %d]", 256 + i,
			256 + i);
	read_text(path, longer, "too long");
	unlink(path);
	assert_true(train_bpe_read(&b, c, path) < 0);
	tn_context_free(c);
}

/* ---- characters ---- */

/* An independent word on it: decoded, checked, encoded is the same. */
static bool is_character(const char *s, size_t n)
{
	const uint8_t *b = (const uint8_t *)s;
	uint32_t v = n == 1 ? b[0] : b[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++) {
		if (b[i] >> 6 != 2)
			return false;
		v = v << 6 | (b[i] & 63);
	}
	switch (n) {
	case 1: return v < 0x80;
	case 2: return b[0] >> 5 == 6 && v >= 0x80;
	case 3: return b[0] >> 4 == 14 && v >= 0x800 &&
		       (v < 0xd800 || v > 0xdfff);
	case 4: return b[0] >> 3 == 30 && v >= 0x10000 && v <= 0x10ffff;
	}
	return false;
}

static void test_utf8(void **unused)
{
	static const char often[] = "\303\244\342\202\254\360\237\230\200a";

	(void)unused;
	state = 9;
	for (int round = 0; round < 300; round++) {
		uint8_t text[200];
		char raw[900], shown[900], now[8];
		size_t n_raw = 0, n_shown = 0, n;
		train_utf8 a = {0}, b = {0};

		write_text(text, sizeof text, true);
		for (size_t i = 0; i < sizeof text; i++) /* more that are */
			if (draw(3) > 0)
				text[i] = (uint8_t)often[draw(10)];
		for (size_t i = 0; i < sizeof text; i++) {
			n = train_utf8_push(&a, text[i], NULL, raw + n_raw);
			n_raw += n;
			assert_true(n <= 4);
			n = train_utf8_push(&b, text[i], "?", now);
			memcpy(shown + n_shown, now, n);
			n_shown += n;
		}
		n_raw += train_utf8_end(&a, NULL, raw + n_raw);
		n_shown += train_utf8_end(&b, "?", shown + n_shown);
		assert_int_equal(n_raw, sizeof text);
		assert_memory_equal(raw, text, sizeof text);
		for (size_t i = 0; i < n_shown; i += n) {
			for (n = 1; n <= 4 && i + n <= n_shown; n++)
				if (is_character(shown + i, n))
					break;
			assert_true(n <= 4 && i + n <= n_shown);
		}
	}
}

/* Each character at once, none before it is whole. */
static void test_utf8_whole(void **unused)
{
	static const char *const text[] = {"a", "\303\244", "\342\202\254",
		"\360\237\230\200", "\355\237\277", "\364\217\277\277"};

	(void)unused;
	for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
		size_t n = strlen(text[i]);
		train_utf8 u = {0};
		char out[8];

		for (size_t k = 0; k < n; k++)
			assert_int_equal(train_utf8_push(&u,
						 (uint8_t)text[i][k], NULL, out),
				k + 1 == n ? n : 0);
		assert_memory_equal(out, text[i], n);
		assert_int_equal(train_utf8_end(&u, "?", out), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learn),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_utf8_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
