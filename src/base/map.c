/*
 * map.c: maps byte strings to integers. Entries are in a list in the order of
 * insertion, which is the order of iteration, so that no output depends on
 * hashes. If there are more than a few, they are found by an open-addressed
 * table of entry numbers, which is at most half full.
 *
 *     map_set_str(m, "b", 7); map_set_str(m, "a", 8); map_set_str(m, "b", 9);
 *     map_key: "b", "a"       map_get_str(m, "b", -1): 9
 */
#include "base/base.h"

enum { FEW = 8 }; /* up to this number, entries are searched one by one */

struct entry {
	const void *key;
	size_t n_bytes;
	uint64_t hash;
	int64_t value;
};

struct map {
	arena *a;
	VEC(struct entry) entries;
	int32_t *table;	  /* 1 + entry number; 0: empty */
	uint32_t n_table; /* a power of 2 */
};

static uint64_t mix(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 wide;
	wide p = (wide)a * b;

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/*
 * Hashes eight bytes per step, mixed by a 64x64 -> 128 bit product as in
 * wyhash. The length is included, so that "a" and "a\0" differ.
 */
uint64_t hash_bytes(const void *data, size_t n_bytes, uint64_t seed)
{
	const uint64_t k0 = 0xa0761d6478bd642f, k1 = 0xe7037ed1a0b428db;
	const unsigned char *p = data;
	uint64_t h = mix(seed ^ k0, (uint64_t)n_bytes ^ k1);

	for (; n_bytes >= 8; n_bytes -= 8, p += 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		h = mix(h ^ word ^ k0, k1);
	}
	if (n_bytes > 0) {
		uint64_t word = 0;

		memcpy(&word, p, n_bytes);
		h = mix(h ^ word ^ k0, k1);
	}
	return mix(h ^ k1, k0);
}

map *map_new(arena *a)
{
	map *m = arena_make(a, map);

	m->a = a;
	return m;
}

int32_t map_n(const map *m)
{
	return m->entries.n;
}

static bool is_at(const map *m, int32_t i, const void *key, size_t n_bytes,
	uint64_t h)
{
	const struct entry *e = &m->entries.at[i];

	return e->hash == h && e->n_bytes == n_bytes &&
	       (n_bytes == 0 || memcmp(e->key, key, n_bytes) == 0);
}

/*
 * The slot of the key in the table, or the empty slot where it would be stored.
 */
static uint32_t find(const map *m, const void *key, size_t n_bytes, uint64_t h)
{
	uint32_t mask = m->n_table - 1, i = (uint32_t)h & mask;

	for (; m->table[i] != 0; i = (i + 1) & mask)
		if (is_at(m, m->table[i] - 1, key, n_bytes, h))
			break;
	return i;
}

/* The entry number of the key; -1: there is none. */
static int32_t entry_of(
	const map *m, const void *key, size_t n_bytes, uint64_t h)
{
	if (m->n_table > 0)
		return m->table[find(m, key, n_bytes, h)] - 1;
	for (int32_t i = 0; i < m->entries.n; i++)
		if (is_at(m, i, key, n_bytes, h))
			return i;
	return -1;
}

/* Makes room for one more entry; keeps the table at most half full. */
static void grow(map *m)
{
	uint32_t n = m->n_table == 0 ? 4 * FEW : m->n_table * 2;

	if ((uint64_t)m->entries.n * 2 + 2 <= m->n_table ||
		m->entries.n < FEW)
		return;
	if (m->n_table >= UINT32_C(1) << 31)
		env_fail(arena_env(m->a), TN_ENOMEM, "memory", (loc){0},
			"the program is too large: a table of the compiler "
			"holds at most 2^30 entries");
	m->table = arena_array(m->a, int32_t, n);
	m->n_table = n;
	for (int32_t i = 0; i < m->entries.n; i++) {
		uint32_t at = (uint32_t)m->entries.at[i].hash & (n - 1);

		while (m->table[at] != 0)
			at = (at + 1) & (n - 1);
		m->table[at] = i + 1;
	}
}

int64_t map_get(const map *m, const void *key, size_t n_bytes, int64_t missing)
{
	int32_t i;

	if (m->entries.n == 0)
		return missing;
	i = entry_of(m, key, n_bytes, hash_bytes(key, n_bytes, 0));
	return i < 0 ? missing : m->entries.at[i].value;
}

static void add(map *m, const void *key, size_t n_bytes, uint64_t h,
	int64_t value)
{
	struct entry e = {.n_bytes = n_bytes, .hash = h, .value = value};

	grow(m);
	/* first, because it may throw */
	e.key = arena_copy(m->a, key, n_bytes);
	*vec_push(m->a, &m->entries) = e;
	if (m->n_table > 0)
		m->table[find(m, key, n_bytes, h)] = m->entries.n;
}

void map_set(map *m, const void *key, size_t n_bytes, int64_t value)
{
	uint64_t h = hash_bytes(key, n_bytes, 0);
	int32_t at = entry_of(m, key, n_bytes, h);

	if (at >= 0)
		m->entries.at[at].value = value;
	else
		add(m, key, n_bytes, h, value);
}

int32_t map_number(map *m, const void *key, size_t n_bytes)
{
	uint64_t h = hash_bytes(key, n_bytes, 0);
	int32_t at = entry_of(m, key, n_bytes, h);

	if (at < 0) {
		at = m->entries.n;
		add(m, key, n_bytes, h, at);
	}
	return at;
}

const void *map_key(const map *m, int32_t i, size_t *n_bytes)
{
	if (n_bytes != NULL)
		*n_bytes = m->entries.at[i].n_bytes;
	return m->entries.at[i].key;
}

int64_t map_value(const map *m, int32_t i)
{
	return m->entries.at[i].value;
}
