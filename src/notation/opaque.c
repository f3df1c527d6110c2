/*
 * opaque.c: the rows that have no index equations: C functions on whole, dense
 * tensors, found by the name of the row.
 *
 *   in     types and data, as the row declares them; attr: its attributes
 *          in order, axes normalised
 *   out    the function writes every element of every result
 *
 *     sort([3, NaN, 1, 3])          o [1, 3, 3, NaN]   k [2, 0, 3, 1]
 *     nonzero([0, 5])               k [[1], [-1]]      n 1
 *
 * The function of a row is in opaque_ROW.h, in C99 that knows nothing of this
 * library but what stands below, before the includes: export/ puts the same text
 * into exported C. It works in a room whose size depends on types and attributes only.
 *
 * Results whose size depends on data have the largest possible size, and a count;
 * after the counted elements, indices are -1 and values 0.
 */
#include "notation/notation.h"

/* ---- what the rows see ---- */

typedef ir_type row_type;
typedef tn_dtype row_dtype;

/* A call. */
typedef struct row_call {
	const row_type *in_type, *out_type;
	const void *const *in;
	void *const *out;
	const int64_t *attr;
	char *room; /* room_ROW bytes at a multiple of 8 */
} row_call;

#define row_load_f64 dtype_load_f64
#define row_load_i64 dtype_load_i64
#define row_store_f64 dtype_store_f64
#define row_store_i64 dtype_store_i64
#define row_size dtype_size
#define row_bits dtype_bits
#define row_is_float dtype_is_float
#define row_is_u64(t) ((t) == TN_U64)
#define row_is_bool(t) ((t) == TN_BOOL)

#include "notation/opaque_order.h"
#include "notation/opaque_lines.h"

#include "notation/opaque_argsort.h"
#include "notation/opaque_bit_cast.h"
#include "notation/opaque_det.h"
#include "notation/opaque_non_max_suppression.h"
#include "notation/opaque_nonzero.h"
#include "notation/opaque_sort.h"
#include "notation/opaque_topk.h"
#include "notation/opaque_unique.h"
#include "notation/opaque_unique_slices.h"

/* ---- the table ---- */

typedef struct job {
	row_call call;
	size_t bytes;
	void (*run)(const row_call *j);
} job;

static void run_in_room(arena *a, void *arg)
{
	job *j = arg;

	j->call.room = arena_alloc(a, j->bytes + 8, 8);
	j->run(&j->call);
}

extern const char *const ir_text_order[], *const ir_text_lines[];

#define OPAQUE(name)                                                           \
	extern const char *const ir_text_##name[];                             \
	static size_t bytes_##name(const ir_type *in_type,                     \
		const ir_type *out_type, const int64_t *attr)                  \
	{                                                                      \
		row_call j = {in_type, out_type, NULL, NULL, attr, NULL};      \
                                                                               \
		return room_##name(&j);                                        \
	}                                                                      \
	static void do_##name(env *e, const ir_opaque *self,                   \
		const ir_type *in_type, const void *const *in,                 \
		const ir_type *out_type, void *const *out,                     \
		const int64_t *attr)                                           \
	{                                                                      \
		job j = {{in_type, out_type, in, out, attr, NULL},             \
			bytes_##name(in_type, out_type, attr), run_##name};    \
                                                                               \
		(void)self;                                                    \
		arena_run(e, run_in_room, &j);                                 \
	}                                                                      \
	static const char *const *const text_##name[] = {                      \
		ir_text_order, ir_text_lines, ir_text_##name, NULL};
OPAQUE(sort)
OPAQUE(argsort)
OPAQUE(topk)
OPAQUE(nonzero)
OPAQUE(unique)
OPAQUE(non_max_suppression)
OPAQUE(det)
OPAQUE(bit_cast)
OPAQUE(unique_slices)
#undef OPAQUE

#define ROW(name) {#name, do_##name, NULL, text_##name, bytes_##name}
static const ir_opaque table[] = {
	ROW(sort),
	ROW(argsort),
	ROW(topk),
	ROW(nonzero),
	ROW(unique),
	ROW(non_max_suppression),
	ROW(det),
	ROW(bit_cast),
	ROW(unique_slices),
};
#undef ROW

const ir_opaque *ir_opaque_find(const char *name)
{
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}
