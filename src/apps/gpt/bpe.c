/*
 * bpe.c: byte-pair encoding: learns a vocabulary from a text, and converts text
 * to tokens and back.
 *
 *     "the then"     words "the", " then"; t h e 2 times: th, then the
 *     tokens         0 .. 255 bytes, 256 "th", 257 "the", ...
 *
 * Text is cut into words, each with the space before it; a token never crosses
 * the end of a word. Learning merges the most frequent pair, of equally
 * frequent ones the smallest, so the same text gives the same tokens on any
 * machine. Pairs are in a heap, and each pair lists its words, so the cost of a
 * merge is proportional to what it changes. Any bytes can be encoded, and
 * decoding restores them.
 */
#include "apps/gpt/bpe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

enum { LETTER, DIGIT, SPACE, OTHER };

static int class_of(uint8_t b)
{
	if (b >= 0x80 || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z'))
		return LETTER;
	if (b >= '0' && b <= '9')
		return DIGIT;
	return b == ' ' || (b >= '\t' && b <= '\r') ? SPACE : OTHER;
}

/* Number of bytes of the first word of the text; n > 0. */
static size_t word_at(const uint8_t *text, size_t n)
{
	size_t most = n < BPE_WORD ? n : BPE_WORD, i = 1;
	int class = class_of(text[0]);

	if (text[0] == ' ' && most > 1 && class_of(text[1]) != SPACE)
		class = class_of(text[i++]);
	while (i < most && class_of(text[i]) == class)
		i++;
	/* the last space belongs to the next word */
	if (class == SPACE && i > 1 && i < n && text[i - 1] == ' ' &&
		class_of(text[i]) != SPACE)
		i--;
	return i;
}

/* ---- map of pairs: open addressing ---- */

static uint32_t key_of(train_token a, train_token b)
{
	return (uint32_t)a << 16 | b;
}

static size_t spread(uint64_t key)
{
	key *= UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(key ^ key >> 29);
}

/* The slot of a key, or the empty slot where it would be stored. */
static size_t find(const struct bpe_entry *at, size_t mask, uint32_t key)
{
	size_t i = spread(key) & mask;

	while (at[i].value > 0 && at[i].key != key)
		i = (i + 1) & mask;
	return i;
}

static int64_t get(const bpe_map *m, uint32_t key)
{
	return m->n == 0 ? -1 : m->at[find(m->at, m->mask, key)].value - 1;
}

/* Adds a new key. false: out of memory. */
static bool put(bpe_map *m, uint32_t key, int64_t value)
{
	size_t size = m->at == NULL ? 0 : m->mask + 1;

	if (2 * (m->n + 1) > size) {
		size_t more = size == 0 ? 1024 : 2 * size;
		struct bpe_entry *at = calloc(more, sizeof *at);

		if (at == NULL)
			return false;
		for (size_t i = 0; i < size; i++)
			if (m->at[i].value > 0)
				at[find(at, more - 1, m->at[i].key)] = m->at[i];
		free(m->at);
		m->at = at;
		m->mask = more - 1;
	}
	m->at[find(m->at, m->mask, key)] = (struct bpe_entry){key, value + 1};
	m->n++;
	return true;
}

/* ---- a vocabulary ---- */

tn_status bpe_no_memory(tn_context *c)
{
	return tn_at_fail(NULL, 0, c, TN_ENOMEM, "train.memory",
		"no memory for a vocabulary");
}

train_bpe *bpe_new(void)
{
	train_bpe *b = calloc(1, sizeof *b);

	if (b == NULL)
		return NULL;
	b->bytes = malloc(BPE_VOCAB * sizeof *b->bytes);
	b->merge = malloc(BPE_VOCAB * sizeof *b->merge);
	if (b->bytes == NULL || b->merge == NULL) {
		train_bpe_free(b);
		return NULL;
	}
	for (int i = 0; i < 256; i++) {
		b->bytes[i].at[0] = (uint8_t)i;
		b->bytes[i].n = 1;
	}
	b->vocab = 256;
	return b;
}

void train_bpe_free(train_bpe *b)
{
	if (b == NULL)
		return;
	free(b->bytes);
	free(b->merge);
	free(b->map.at);
	free(b);
}

const char *bpe_add(train_bpe *b, int64_t left, int64_t right)
{
	struct bpe_bytes *to = &b->bytes[b->vocab];
	const struct bpe_bytes *l, *r;
	uint32_t key;

	if (b->vocab == BPE_VOCAB)
		return "there are too many tokens";
	if (left < 0 || left >= b->vocab || right < 0 || right >= b->vocab)
		return "a pair contains a token that is not defined yet";
	l = &b->bytes[left];
	r = &b->bytes[right];
	key = key_of((train_token)left, (train_token)right);
	if (l->n + r->n > BPE_WORD)
		return "a token is too long";
	if (get(&b->map, key) >= 0)
		return "a pair occurs twice";
	if (!put(&b->map, key, b->vocab))
		return "no memory";
	memcpy(to->at, l->at, l->n);
	memcpy(to->at + l->n, r->at, r->n);
	to->n = (uint8_t)(l->n + r->n);
	b->merge[b->vocab] = key;
	b->vocab++;
	return NULL;
}

int64_t train_bpe_vocab(const train_bpe *b)
{
	return b == NULL ? 256 : b->vocab;
}

uint64_t train_bpe_hash(const train_bpe *b)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (int32_t i = 256; b != NULL && i < b->vocab; i++)
		h = (h ^ b->merge[i]) * UINT64_C(1099511628211);
	return b == NULL ? 0 : h;
}

#define ROW4(i) (i), (i) + 1, (i) + 2, (i) + 3
#define ROW16(i) ROW4(i), ROW4((i) + 4), ROW4((i) + 8), ROW4((i) + 12)
#define ROW64(i) ROW16(i), ROW16((i) + 16), ROW16((i) + 32), ROW16((i) + 48)

const uint8_t *train_bpe_bytes(const train_bpe *b, train_token t, size_t *n)
{
	static const uint8_t byte[256] = {
		ROW64(0), ROW64(64), ROW64(128), ROW64(192)};

	*n = t < train_bpe_vocab(b) ? 1 : 0;
	if (t < 256 || *n == 0)
		return &byte[t % 256];
	*n = b->bytes[t].n;
	return b->bytes[t].at;
}

/* ---- text to tokens ---- */

/*
 * Encodes a word, given as its bytes: applies merges in the order in which they
 * were learned.
 */
static size_t encode_word(const train_bpe *b, train_token *t, size_t n)
{
	for (;;) {
		int64_t best = BPE_VOCAB;
		size_t at = 0, m = 0;

		for (size_t i = 0; i + 1 < n; i++) {
			int64_t id = get(&b->map, key_of(t[i], t[i + 1]));

			if (id >= 0 && id < best) {
				best = id;
				at = i;
			}
		}
		if (best == BPE_VOCAB)
			return n;
		for (size_t i = at; i < n; m++) {
			bool is_pair = i + 1 < n &&
				key_of(t[i], t[i + 1]) == b->merge[best];

			t[at + m] = is_pair ? (train_token)best : t[i];
			i += is_pair ? 2 : 1;
		}
		n = at + m;
	}
}

size_t train_bpe_encode(
	const train_bpe *b, const uint8_t *text, size_t n, train_token *out)
{
	size_t n_out = 0;

	for (size_t i = 0; i < n;) {
		size_t m = b == NULL ? n - i : word_at(text + i, n - i);

		for (size_t k = 0; k < m; k++)
			out[n_out + k] = text[i + k];
		n_out += b == NULL ? m : encode_word(b, out + n_out, m);
		i += m;
	}
	return n_out;
}

/* ---- learning ---- */

typedef struct word {
	train_token *t; /* in learning.pool */
	uint32_t n;
	int64_t count;
	uint64_t hash; /* of its bytes */
} word;

typedef struct pair {
	uint32_t key;
	int64_t count;
	uint32_t *in; /* words that have contained it; some are listed twice */
	size_t n, cap;
} pair;

typedef struct waiting {
	int64_t count;
	uint32_t key;
} waiting;

typedef struct learning {
	train_token *pool;
	word *word;
	size_t n_words, cap_words;
	pair *pair;
	size_t n_pairs, cap_pairs;
	bpe_map map; /* key -> number of the pair */
	waiting *heap;
	size_t n_heap, cap_heap;
	size_t n_before; /* number of pairs before this merge */
} learning;

/* Makes room for one more element. */
static bool room(void *at, size_t n, size_t *cap, size_t size)
{
	void **p = at;
	size_t more = *cap < 16 ? 16 : 2 * *cap;
	void *q;

	if (n < *cap)
		return true;
	q = realloc(*p, more * size);
	if (q == NULL)
		return false;
	*p = q;
	*cap = more;
	return true;
}

static bool is_above(const waiting *a, const waiting *b)
{
	return a->count != b->count ? a->count > b->count : a->key < b->key;
}

static bool push(learning *l, const pair *p)
{
	waiting w = {p->count, p->key};
	size_t i = l->n_heap;

	if (!room(&l->heap, l->n_heap, &l->cap_heap, sizeof *l->heap))
		return false;
	for (; i > 0 && is_above(&w, &l->heap[(i - 1) / 2]); i = (i - 1) / 2)
		l->heap[i] = l->heap[(i - 1) / 2];
	l->heap[i] = w;
	l->n_heap++;
	return true;
}

static waiting pop(learning *l)
{
	waiting top = l->heap[0], w = l->heap[--l->n_heap];
	size_t i = 0, k;

	for (; (k = 2 * i + 1) < l->n_heap; i = k) {
		if (k + 1 < l->n_heap &&
			is_above(&l->heap[k + 1], &l->heap[k]))
			k++;
		if (!is_above(&l->heap[k], &w))
			break;
		l->heap[i] = l->heap[k];
	}
	l->heap[i] = w;
	return top;
}

/*
 * Adds `times` to the counts of all pairs of a word, and lists the word in new
 * pairs.
 */
static bool count_pairs(learning *l, uint32_t number, int64_t times)
{
	const word *w = &l->word[number];

	for (uint32_t i = 0; i + 1 < w->n; i++) {
		uint32_t key = key_of(w->t[i], w->t[i + 1]);
		int64_t at = get(&l->map, key);
		pair *p;

		if (at < 0) {
			if (!room(&l->pair, l->n_pairs, &l->cap_pairs,
				    sizeof *l->pair) ||
				!put(&l->map, key, (int64_t)l->n_pairs))
				return false;
			at = (int64_t)l->n_pairs++;
			l->pair[at] = (pair){.key = key};
		}
		p = &l->pair[at];
		p->count += times;
		if ((size_t)at < l->n_before || times < 0 ||
			(p->n > 0 && p->in[p->n - 1] == number))
			continue;
		if (!room(&p->in, p->n, &p->cap, sizeof *p->in))
			return false;
		p->in[p->n++] = number;
	}
	return true;
}

/* Hash table of word numbers, with open addressing; -1: an empty slot. */
typedef struct words {
	int64_t *at;
	size_t size; /* a power of two; at most half is used */
} words;

static bool grow(words *h, const learning *l)
{
	size_t size = h->size == 0 ? 1024 : 2 * h->size;
	int64_t *at = malloc(size * sizeof *at);

	if (at == NULL)
		return false;
	for (size_t i = 0; i < size; i++)
		at[i] = -1;
	for (size_t i = 0; i < l->n_words; i++) {
		size_t to = spread(l->word[i].hash) & (size - 1);

		while (at[to] >= 0)
			to = (to + 1) & (size - 1);
		at[to] = (int64_t)i;
	}
	free(h->at);
	*h = (words){at, size};
	return true;
}

static bool is_word(const word *w, const uint8_t *text, size_t n)
{
	if (w->n != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (w->t[i] != text[i])
			return false;
	return true;
}

/*
 * Counts one more occurrence of the word of n bytes; used: length of the pool.
 */
static bool add_word(
	learning *l, words *h, size_t *used, const uint8_t *text, size_t n)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	size_t at;
	word *w;

	if (2 * (l->n_words + 1) > h->size && !grow(h, l))
		return false;
	for (size_t k = 0; k < n; k++)
		hash = (hash ^ text[k]) * UINT64_C(1099511628211);
	at = spread(hash) & (h->size - 1);
	while (h->at[at] >= 0 && !is_word(&l->word[h->at[at]], text, n))
		at = (at + 1) & (h->size - 1);
	if (h->at[at] >= 0) {
		l->word[h->at[at]].count++;
		return true;
	}
	if (!room(&l->word, l->n_words, &l->cap_words, sizeof *l->word))
		return false;
	w = &l->word[l->n_words];
	*w = (word){l->pool + *used, (uint32_t)n, 1, hash};
	for (size_t k = 0; k < n; k++)
		w->t[k] = text[k];
	*used += n;
	h->at[at] = (int64_t)l->n_words++;
	return true;
}

/* Collects the distinct words of the text and their counts. */
static bool collect(learning *l, const uint8_t *text, size_t n)
{
	words h = {0};
	size_t used = 0;
	bool ok;

	l->pool = malloc((n + 1) * sizeof *l->pool);
	ok = l->pool != NULL;
	for (size_t i = 0, m; i < n && ok; i += m) {
		m = word_at(text + i, n - i);
		ok = add_word(l, &h, &used, text + i, m);
	}
	free(h.at);
	return ok;
}

/* Replaces the pair by token `to` in all words. */
static bool merge(learning *l, int64_t number, train_token to)
{
	uint32_t key = l->pair[number].key;

	l->n_before = l->n_pairs;
	for (size_t j = 0; j < l->pair[number].n; j++) {
		uint32_t k = l->pair[number].in[j];
		word *w = &l->word[k];
		uint32_t n = 0, i = 0;

		while (i + 1 < w->n && key_of(w->t[i], w->t[i + 1]) != key)
			i++;
		if (i + 1 >= w->n)
			continue; /* the word does not contain it any more */
		if (!count_pairs(l, k, -w->count))
			return false;
		for (i = 0; i < w->n; n++) {
			bool is_pair = i + 1 < w->n &&
				       key_of(w->t[i], w->t[i + 1]) == key;

			w->t[n] = is_pair ? to : w->t[i];
			i += is_pair ? 2 : 1;
		}
		w->n = n;
		if (!count_pairs(l, k, w->count))
			return false;
	}
	for (size_t i = l->n_before; i < l->n_pairs; i++)
		if (!push(l, &l->pair[i]))
			return false;
	return true;
}

/* The most frequent pair; -1: no pair occurs twice. */
static int64_t next(learning *l, bool *ok)
{
	while (l->n_heap > 0 && *ok) {
		waiting w = pop(l);
		int64_t at = get(&l->map, w.key);

		/*
		 * counts of known pairs only fall, so an entry with an old
		 * count is put back, now lower in the heap
		 */
		if (l->pair[at].count == w.count)
			return w.count >= 2 ? at : -1;
		*ok = l->pair[at].count == 0 || push(l, &l->pair[at]);
	}
	return -1;
}

static void forget(learning *l)
{
	for (size_t i = 0; i < l->n_pairs; i++)
		free(l->pair[i].in);
	free(l->pair);
	free(l->word);
	free(l->pool);
	free(l->map.at);
	free(l->heap);
}

tn_status train_bpe_learn(train_bpe **out, tn_context *c, const uint8_t *text,
	size_t n, int64_t vocab)
{
	learning l = {0};
	train_bpe *b = bpe_new();
	bool ok = b != NULL && collect(&l, text, n);
	int64_t at = 0;

	*out = NULL;
	for (size_t i = 0; i < l.n_words && ok; i++)
		ok = count_pairs(&l, (uint32_t)i, l.word[i].count);
	for (size_t i = 0; i < l.n_pairs && ok; i++)
		ok = push(&l, &l.pair[i]);
	while (ok && b->vocab < vocab && (at = next(&l, &ok)) >= 0 && ok) {
		uint32_t key = l.pair[at].key;

		ok = bpe_add(b, key >> 16, key & 0xffff) == NULL &&
		     merge(&l, at, (train_token)(b->vocab - 1));
	}
	forget(&l);
	if (ok && b->vocab == vocab) {
		*out = b;
		return TN_OK;
	}
	if (ok)
		tn_at_fail(NULL, 0, c, TN_EINVAL, "train.vocab",
			"the text has too few pairs for a vocabulary of %" PRId64
			" tokens: at most %" PRId32 " are possible", vocab,
			b->vocab);
	else
		bpe_no_memory(c);
	train_bpe_free(b);
	return tn_context_status(c);
}
