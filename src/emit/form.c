/*
 * form.c: index forms as C expressions over the loop variables.
 *
 *   4*i + (j div 2) mod 3 + 1   ->   4 * i0 + i1 / 2 % 3 + 1
 *
 * A variable of an unrolled loop is a sum, of a name and a constant, or is a
 * constant: constants are added up here, not in the text.
 *
 * In a vector loop a form may be asked for at a lane: the variable that the
 * lanes walk is then (i1 + l). Indices read from data are loaded, compared
 * with their bounds and clamped in front of the expression that uses them.
 */
#include "emit/local.h"

#include <inttypes.h>

bool em_form_varies(emitter *em, const ix_form *f)
{
	return em->lanes > 1 && (loop_form_vars(f) >> em->vvar & 1) != 0;
}

static const char *fun_text(emitter *em, const ix_atom *t, const char *lane)
{
	int32_t i;

	for (i = em->fun.n - 1; i >= 0; i--)
		if (em->fun.at[i].atom == t) {
			if (!em->fun.at[i].lanes)
				return em->fun.at[i].t;
			return arena_printf(em->a, "%s[%s]", em->fun.at[i].t,
				lane == NULL ? "0" : lane);
		}
	emit_bug(em, "a data index was not loaded", "");
}

/* The variable, with the constant that unrolling adds. */
static const char *var_text(emitter *em, int32_t axis)
{
	const char *v = em->var[axis];
	int64_t plus = em->plus[axis];

	if (v[0] == '\0')
		return arena_printf(em->a, "%" PRId64, plus);
	return plus == 0 ? v
			 : arena_printf(em->a, "(%s + %" PRId64 ")", v, plus);
}

/* Is it the variable itself, not some of its digits? */
static bool is_whole(const emitter *em, const ix_atom *t)
{
	return t->kind == IX_DIGIT && t->lo == 1 &&
	       t->hi >= em->dom->box.extent[t->axis];
}

static const char *atom_text(emitter *em, const ix_atom *t, const char *lane)
{
	const char *v;
	int64_t min, max, ext;

	switch (t->kind) {
	case IX_DIGIT:
		ext = em->dom->box.extent[t->axis];
		v = var_text(em, t->axis);
		if (lane != NULL && t->axis == em->vvar)
			v = arena_printf(em->a, "(%s + %s)", v, lane);
		if (t->lo > 1)
			v = arena_printf(em->a, "%s / %" PRId64, v, t->lo);
		if (t->hi < ext)
			v = arena_printf(
				em->a, "%s %% %" PRId64, v, t->hi / t->lo);
		return t->lo > 1 || t->hi < ext ? arena_printf(em->a, "(%s)", v)
						: v;
	case IX_FLOOR:
		ix_range(em->dom, t->f, &min, &max);
		if (min >= 0)
			return arena_printf(em->a, "((%s) / %" PRId64 ")",
				em_form_text(em, t->f, lane), t->den);
		return arena_printf(em->a, "%s(%s, %" PRId64 ")",
			em_own(em, "floor_div"), em_form_text(em, t->f, lane),
			t->den);
	case IX_CLAMP:
		return arena_printf(em->a, "%s(%s, %" PRId64 ", %" PRId64 ")",
			em_own(em, "clamp_i64"), em_form_text(em, t->f, lane),
			t->lo, t->hi);
	case IX_FUN:
		return fun_text(em, t, lane);
	}
	emit_bug(em, "unknown atom", "");
}

static const char *split(
	emitter *em, const ix_form *f, const char *lane, int64_t *plus)
{
	str s = str_new(em->a);
	int64_t c0 = f->c0;
	bool some = false;
	int32_t i;

	for (i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;
		int64_t c = f->t[i].coef;
		const char *v;

		if (is_whole(em, t)) {
			bool at_lane = lane != NULL && t->axis == em->vvar;

			c0 += c * em->plus[t->axis];
			v = em->var[t->axis];
			if (v[0] == '\0')
				continue;
			if (at_lane)
				v = arena_printf(em->a, "(%s + %s)", v, lane);
		} else {
			v = atom_text(em, t, lane);
		}
		if (some)
			str_add(&s, c < 0 ? " - " : " + ");
		else if (c < 0)
			str_add(&s, "-");
		some = true;
		if (c != 1 && c != -1)
			str_printf(&s, "%" PRIu64 " * ",
				c < 0 ? -(uint64_t)c : (uint64_t)c);
		str_add(&s, v);
	}
	*plus = c0;
	return some ? s.at : "";
}

const char *em_form_split(emitter *em, const ix_form *f, int64_t *plus)
{
	return split(em, f, NULL, plus);
}

const char *em_form_text(emitter *em, const ix_form *f, const char *lane)
{
	int64_t c0;
	const char *t = split(em, f, lane, &c0);

	if (t[0] == '\0')
		return arena_printf(em->a, "%" PRId64, c0);
	if (c0 == 0)
		return t;
	return arena_printf(em->a, "%s %c %" PRIu64, t, c0 < 0 ? '-' : '+',
		c0 < 0 ? -(uint64_t)c0 : (uint64_t)c0);
}

/* Name of the block of var that holds n, or NULL. */
static const char *block_at(emitter *em, const loop_node *n, int32_t var)
{
	int32_t level = 0;

	while (n != NULL && (n->kind != LOOP_BLOCK || n->var != var))
		n = n->up;
	if (n == NULL)
		return NULL;
	for (const loop_node *u = n->up; u != NULL; u = u->up)
		level += u->kind == LOOP_BLOCK && u->var == var;
	return arena_printf(em->a, "b%d_%d", var, level);
}

/* Is it a sum, not a factor? */
static bool is_sum(const char *t)
{
	int32_t depth = 0;

	for (; *t != '\0'; t++) {
		depth += (*t == '(') - (*t == ')');
		if (depth == 0 && (*t == '+' || *t == '-'))
			return true;
	}
	return false;
}

const char *em_digits_text(emitter *em, const loop_buf *b,
	const ix_form *const *digit, const char *lane)
{
	str s = str_new(em->a);
	int32_t i;

	for (i = 0; i < b->n_vars; i++) {
		const char *base = block_at(em, b->scope, b->var[i]);
		const char *t = em_form_text(em, digit[i], lane);

		if (i > 0)
			str_add(&s, " + ");
		if (b->stride[i] != 1)
			str_printf(&s, "%" PRId64 " * ", b->stride[i]);
		if (base != NULL)
			str_printf(&s, "(%s - %s)", t, base);
		else
			str_printf(&s, is_sum(t) ? "(%s)" : "%s", t);
		if (b->panel > 0 && i == b->n_vars - 1)
			str_printf(&s, " + %" PRId64 " * ((%s) / %" PRId64 ")",
				b->panel_step - b->panel, t, b->panel);
	}
	return b->n_vars == 0 ? "0" : s.at;
}

const char *em_path_text(emitter *em, const char *lane)
{
	str s = str_new(em->a);
	int32_t i;

	for (i = 0; i < em->path.n; i++) {
		const struct path *p = &em->path.at[i];

		str_add(&s, i > 0 ? " && " : "");
		str_add(&s, p->negated ? "!" : "");
		str_add(&s, p->c.t);
		if (p->c.lanes > 1)
			str_printf(&s, "[%s]", lane == NULL ? "0" : lane);
	}
	return s.at;
}

static int32_t check_number(emitter *em, const ix_atom *t)
{
	int32_t i;

	for (i = 0; i < em->check.n; i++)
		if (em->check.at[i].tensor == t->fun &&
			em->check.at[i].lo == t->lo &&
			em->check.at[i].hi == t->hi)
			return i + 1;
	*vec_push(em->a, &em->check) = (emit_check){
		(int32_t)t->fun, t->lo, t->hi};
	return em->check.n;
}

/* Text of "some lane takes this branch", when the branch differs by lane. */
static const char *some_lane(emitter *em)
{
	const char *any = em_fresh(em, "t");

	em_line(em, "int %s = 0;", any);
	em_line(em, "for (int l = 0; l < %d; l++)", em->lanes);
	em_line(em, "	%s |= %s;", any, em_path_text(em, "l"));
	return any;
}

/*
 * An index that does not walk with the lanes stays one number, also where only
 * some of the lanes ask for it: addresses are computed from it for all.
 */
static void load_fun(emitter *em, const ix_atom *t)
{
	bool lanes = em_form_varies(em, t->f), by_lane = false;
	struct place_of p;
	const char *d, *l, *at = "", *when = "", *from;
	const val *known;
	int32_t i, comp;

	for (i = 0; i < em->fun.n; i++)
		if (em->fun.at[i].atom == t)
			return;
	em_load_funs(em, t->f);
	for (i = 0; i < em->path.n; i++)
		by_lane |= em->path.at[i].c.lanes > 1;
	l = lanes ? "l" : NULL;
	known = em_stored(em, (int32_t)t->fun, t->f);
	if (known != NULL && known->lanes > 1) {
		from = arena_printf(em->a, "%s[%s]", known->t, lanes ? l : "0");
	} else if (known != NULL) {
		from = known->t;
	} else { /* copies of inputs are for what walks a loop, not for indices */
		p = em_place_tensor(em, (int32_t)t->fun, t->f,
			loop_maker(em->k, (int32_t)t->fun, &i, &comp) &&
				em->k->eqn[i].stage);
		from = em_element(em, &p, l);
	}
	d = em_fresh(em, "d");
	if (em->path.n > 0 && by_lane && !lanes)
		when = some_lane(em);
	else if (em->path.n > 0)
		when = em_path_text(em, l);
	if (lanes) {
		em_line(em, "i64 %s[%d] = { 0 };", d, em->lanes);
		em_line(em, "for (int l = 0; l < %d; l++) {", em->lanes);
		em->depth++;
		at = "[l]";
	}
	em_line(em, "%s%s%s = %s%s(i64)%s%s;", lanes ? "" : "i64 ", d, at, when,
		when[0] != '\0' ? " ? " : "", from,
		when[0] != '\0' ? arena_printf(em->a, " : %" PRId64, t->lo)
				: "");
	em_line(em, "if (%s%s < %" PRId64 " || %s%s >= %" PRId64 ") {", d, at,
		t->lo, d, at, t->hi);
	em_line(em, "	*err = %d;", check_number(em, t));
	em_line(em, "	%s%s = %s(%s%s, %" PRId64 ", %" PRId64 ");", d, at,
		em_own(em, "clamp_i64"), d, at, t->lo, t->hi - 1);
	em_line(em, "}");
	if (lanes) {
		em->depth--;
		em_line(em, "}");
	}
	*vec_push(em->a, &em->fun) = (struct memo_fun){t, d, lanes};
}

void em_load_funs(emitter *em, const ix_form *f)
{
	int32_t i;

	for (i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind == IX_FUN)
			load_fun(em, t);
		else if (t->kind != IX_DIGIT)
			em_load_funs(em, t->f);
	}
}
