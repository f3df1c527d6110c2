/*
 * verify_elements.c: no chunk of a phase writes what another one reads or writes,
 * shown element by element, in arrays that have few of them.
 */
#include "kern/verify.h"

enum { MOST_ELEMS = 1 << 16 };

void kern_put_facts(struct kern_verifier *v, const struct kern_touch *t)
{
	v->range.fact.n = 0;
	for (int32_t i = 0; i < t->n_facts; i++)
		*vec_push(v->k->a, &v->range.fact) = t->facts[i];
}

/* Who writes each element: 1 + the chunk; 0 nobody. */
struct owners {
	int32_t *of;
	int64_t n;
	const struct kern_touch *t;
	bool writes;
};

static bool own(void *arg, int64_t at, int64_t chunk)
{
	struct owners *o = arg;

	for (int64_t i = 0; i < o->t->n[0]; i++)
		for (int64_t j = 0; j < o->t->n[1]; j++) {
			int64_t e = at + i * o->t->step[0] + j * o->t->step[1];

			if (e < 0 || e >= o->n ||
				(o->of[e] != 0 && o->of[e] != chunk + 1))
				return false;
			if (o->writes)
				o->of[e] = (int32_t)chunk + 1;
		}
	return true;
}

/* All its elements, those of lanes by their masks. */
static bool own_all(struct kern_verifier *v, struct owners *o,
	const struct kern_touch *t)
{
	kern_val chunk = v->by_warp != NULL ? v->by_warp->v
					    : v->k->phase[v->phase].chunk;
	bool ok = true;

	for (int32_t l = 0; l < (t->mask != 0 ? t->n[0] : 1) && ok; l++) {
		struct kern_touch one = *t;

		kern_put_facts(v, t);
		if (t->mask != 0) {
			one.n[0] = 1;
			one.at = kern_form_addc(v->k, t->at, l * t->step[0]);
			kern_assume(&v->range, t->mask,
				kern_form_const(v->k, l), true);
		}
		o->t = &one;
		ok = kern_is_never(&v->range) ||
		     kern_each(&v->range, one.at, chunk, own, o);
		o->t = t;
	}
	v->range.fact.n = 0;
	return ok;
}

bool kern_elements_are_apart(struct kern_verifier *v,
	const struct kern_touch *w, const struct kern_touch *o)
{
	const kern_array *a = &v->k->array.at[w->array];
	struct owners all = {.n = a->elems, .writes = true};

	if (a->elems > MOST_ELEMS || (a->space != KERN_PARAM &&
					     w->array != o->array))
		return false;
	all.of = arena_array(v->a, int32_t, a->elems + 1);
	if (!own_all(v, &all, w))
		return false;
	all.writes = o->write && o != w;
	return o == w || own_all(v, &all, o);
}
