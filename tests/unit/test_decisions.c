/*
 * Decisions of schedules: each kind of decision.def on a small program that
 * leads to it, with its figures; and what is said is compared with the trees
 * that were made, by other means than those of the passes.
 */
#include "decision_rows.h"
#include "unit.h"
#include "system_parse.h"
#include "interp/interp.h"

#include "engine/engine.h"
#include "loop/tree.h"
#include "schedule/decision.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define MACHINE "c/avx512"

/* By kind: does it say that something was done? */
static const bool is_taken[] = {
#define DECISION(id, pass, taken, sentence) taken,
#include "schedule/decision.def"
};

/* ---- what the trees say ---- */

struct facts {
	const loop_kernel *k;
	loop_set wide[64]; /* by first equation: variables of wide loops */
	loop_set tiled;	   /* equations with a tile */
	loop_set lanes[64]; /* by equation: variables that lanes walk */
	loop_set parts, spans, clips, abreast; /* variables */
	loop_set turned, kept; /* stages */
	loop_set staged;       /* phases */
	loop_set bulk;	       /* equations */
	const loop_node *tile[64]; /* by equation */
};

static void gather(struct facts *f, const loop_node *n, loop_set lanes)
{
	if (n->kind == LOOP_FOR && n->lanes > 1)
		lanes |= BIT(n->var);
	if (n->bulk)
		f->bulk |= BIT(n->child[0]->child[0]->eqn);
	if (n->wide)
		f->wide[n->child[0]->eqn] |= BIT(n->var);
	if (n->kind == LOOP_SPAN)
		f->spans |= BIT(n->var);
	if (n->n_clip > 0 && n->kind == LOOP_FOR)
		f->clips |= BIT(n->var);
	for (int32_t i = 0; n->kind == LOOP_TILE && i < n->n_clip; i++)
		f->clips |= loop_form_vars(n->clip[i].f) & f->k->eqn[n->eqn].reduced;
	if (n->kind == LOOP_FOR && n->unroll > 1 && n->up != NULL) {
		const loop_node *up = n->up;

		if (up->unroll > 1 && up->lanes <= 1 && up->up != NULL)
			up = up->up; /* of the few rows of a product */
		if (up->lanes > 1)
			f->abreast |= BIT(n->var);
	}
	if (n->kind == LOOP_TILE) {
		f->tiled |= BIT(n->eqn);
		f->tile[n->eqn] = n;
	}
	if (n->kind == LOOP_STAGE && f->k->eqn[n->eqn].stage)
		f->turned |= BIT(n->eqn);
	if (n->kind == LOOP_STMT && f->k->eqn[n->eqn].stage)
		f->kept |= BIT(n->eqn);
	if (n->kind == LOOP_BLOCK && n->parallel && n->child[n->n_child - 1] != NULL &&
		n->number < 0)
		for (int32_t i = 0; i < n->n_child; i++) {
			const loop_node *c = n->child[i];

			while (loop_is_loop(c))
				c = c->child[c->n_child - 1];
			if (c->kind == LOOP_PART)
				f->parts |= BIT(n->var);
		}
	if (!loop_is_loop(n))
		f->lanes[n->eqn] |= lanes;
	for (int32_t i = 0; i < n->n_child; i++)
		gather(f, n->child[i], lanes);
}

static bool has_stages(const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (has_stages(n->child[i]))
			return true;
	return n->stages > 1;
}

static struct facts facts_of(const loop_kernel *k)
{
	struct facts f = {.k = k};

	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			gather(&f, k->phase[p].root[i], 0),
			f.staged |= has_stages(k->phase[p].root[i]) ? BIT(p) : 0;
	return f;
}

static bool has_change(
	const loop_kernel *k, loop_change_kind kind, int32_t eqn, int32_t var)
{
	for (int32_t i = 0; i < k->change.n; i++) {
		const loop_change *c = &k->change.at[i];

		if (c->kind == kind && (eqn < 0 || c->eqn == eqn) &&
			(var < 0 || c->var == var))
			return true;
	}
	return false;
}

/* Is there a stage of the tensor among these? */
static bool stages(const loop_kernel *k, loop_set of, int32_t tensor)
{
	for (int32_t i = 0; i < k->n_eqns; i++)
		if ((of & BIT(i)) != 0 && k->eqn[i].e->out[0] == tensor)
			return true;
	return false;
}

static bool copies(const loop_kernel *k, int32_t tensor, bool whole)
{
	for (int32_t p = 0; p < k->n_phases && whole; p++)
		if (k->phase[p].copies > 0 &&
			k->param[k->phase[p].copies - 1] == tensor)
			return true;
	for (int32_t i = 0; i < k->n_eqns && !whole; i++)
		if (k->eqn[i].pack && k->eqn[i].body[0]->kind == EX_READ &&
			k->eqn[i].body[0]->tensor == tensor)
			return true;
	return false;
}

/* Is a factor of the tile of eqn a read of this tensor? */
static bool reads_in_place(const struct facts *f, int32_t eqn, int32_t tensor)
{
	const loop_node *t = f->tile[eqn];

	for (int i = 0; i < 2 && t != NULL; i++)
		if (t->factor[i]->kind == EX_READ &&
			t->factor[i]->tensor == tensor)
			return true;
	return false;
}

/* Is a statement of the equation, not what it begins with, at or below n? */
static bool updates(const loop_node *n, int32_t eqn)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (updates(n->child[i], eqn))
			return true;
	return n->kind == LOOP_STMT && n->eqn == eqn;
}

/* Do chunks walk a block of a variable that the updates of the scatter lack? */
static bool has_owners(const loop_kernel *k, int32_t eqn)
{
	const loop_eqn *e = &k->eqn[eqn];
	const loop_node *n = k->phase[0].root[0];

	return n->kind == LOOP_BLOCK && n->parallel && e->push && updates(n, eqn) &&
	       ((e->left | e->reduced) & BIT(n->var)) == 0;
}

/* Are rows and columns exchanged? Sums that warps hold are apart, too. */
static bool is_turned(const struct facts *f, int32_t eqn)
{
	return f->k->eqn[eqn].apart &&
	       (f->tile[eqn] == NULL || f->tile[eqn]->held == 0);
}

/* Do chunks divide the rows of its tile, and not the columns? */
static bool divides_rows(const struct facts *f, int32_t eqn)
{
	const loop_node *t = f->tile[eqn];
	bool divided = false;

	if (t == NULL)
		return false;
	for (const loop_node *n = t->up; n != NULL; n = n->up) {
		if (n->kind != LOOP_BLOCK || !n->parallel)
			continue;
		if (n->var == t->var && n->size < f->k->var[n->var].extent)
			return false;
		divided |= n->var == t->row_var &&
			   n->size < f->k->var[n->var].extent;
	}
	return divided;
}

/* Do tiles of the product prefetch elements of the tensor? */
static bool prefetches(const loop_kernel *k, int32_t eqn, int32_t tensor)
{
	const loop_node *t = loop_tile_of(k, eqn);

	for (int32_t i = 0; i < t->n_ahead; i++)
		if (t->ahead[i].tensor == tensor)
			return true;
	return false;
}

/* Does a loop of the statement prefetch elements of its result? */
static bool prefetches_own(const loop_kernel *k, const loop_node *n, int32_t eqn)
{
	bool asks = false, has = false;

	for (int32_t i = 0; i < n->n_ahead; i++)
		asks |= n->ahead[i].tensor == k->eqn[eqn].e->out[0];
	for (int32_t i = 0; i < n->n_child; i++) {
		has |= n->child[i]->kind == LOOP_STMT && n->child[i]->eqn == eqn;
		if (prefetches_own(k, n->child[i], eqn))
			return true;
	}
	return asks && has;
}

static bool prefetches_results(const loop_kernel *k, int32_t eqn)
{
	const loop_phase *ph = &k->phase[k->n_phases - 1];
	bool any = false;

	if (loop_tile_of(k, eqn) == NULL) { /* a statement behind tiles */
		for (int32_t i = 0; i < ph->n_roots; i++)
			any |= prefetches_own(k, ph->root[i], eqn);
		return any;
	}
	for (int32_t i = 0; i < k->n_outputs; i++)
		any |= prefetches(k, eqn, k->param[i]);
	return any;
}

static bool streams(const loop_kernel *k, int32_t tensor)
{
	for (int32_t p = 0; p < k->n_outputs; p++)
		if (k->param[p] == tensor)
			return k->stream[p];
	return false;
}

static bool is_copied(const struct facts *f, const loop_decision *d)
{
	if (d->with < 0 || is_turned(f, d->of))
		return is_taken[d->kind];
	if (d->kind == DECIDE_COPY_IN_PLACE)
		return !reads_in_place(f, d->of, d->with);
	return copies(f->k, d->with, d->kind == DECIDE_COPY_WHOLE);
}

/* Are tiles of several products in a block of rows that each warp has some of? */
static int32_t held_below(const loop_node *n)
{
	int32_t m = n->kind == LOOP_TILE && n->held > 0;

	for (int32_t i = 0; i < n->n_child; i++)
		m += held_below(n->child[i]);
	return m;
}

static bool has_own_rows(const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (has_own_rows(n->child[i]))
			return true;
	return n->kind == LOOP_BLOCK && n->by_warp && held_below(n) > 1;
}

/* Is the tile what the pass makes of tiles? */
static bool is_tile(const loop_node *t, int32_t pass)
{
	switch (pass) {
	case DECIDE_PASS_MATRIX:
		return t->matrix;
	case DECIDE_PASS_DOT:
		return t->dot > 0;
	case DECIDE_PASS_TILES:
		return t->tiled;
	case DECIDE_PASS_WARPGROUP:
		return t->warps > 1;
	default:
		return t->held > 0;
	}
}

/* Was done what the pass says, as far as the trees show? */
static bool is_kept(const loop_decision *d)
{
	return decide_pass_of(d->kind) == DECIDE_PASS_KEEP ||
	       d->kind == DECIDE_SQUARES_SHARED;
}

/* Do tiles prefetch lines of rows, or of results, or do these go past the caches? */
static bool has_lines(const loop_kernel *k, const loop_decision *d)
{
	if (decide_pass_of(d->kind) == DECIDE_PASS_STREAM)
		return streams(k, d->of);
	if (decide_pass_of(d->kind) == DECIDE_PASS_RESULTS)
		return prefetches_results(k, d->of);
	return prefetches(k, d->of, loop_tile_of(k, d->of)->factor[0]->tensor);
}

static bool is_done(const struct facts *f, const loop_decision *d)
{
	const loop_kernel *k = f->k;

	switch (decide_pass_of(d->kind)) {
	case DECIDE_PASS_TILE:
		return (f->tiled & BIT(d->of)) != 0;
	case DECIDE_PASS_OWN:
		return has_own_rows(k->phase[k->n_phases - 1].root[0]);
	case DECIDE_PASS_CUT:
		return has_change(k, LOOP_CHANGE_CUT, d->of, -1);
	case DECIDE_PASS_HALVE:
		return k->halved > 0;
	case DECIDE_PASS_TURN:
		return is_turned(f, d->of);
	case DECIDE_PASS_DIVIDE:
		return divides_rows(f, d->of);
	case DECIDE_PASS_COPY:
		return is_copied(f, d);
	case DECIDE_PASS_RESIDUES:
		return has_change(k, LOOP_CHANGE_SPLIT, -1, d->of);
	case DECIDE_PASS_JOIN:
		return has_change(k, LOOP_CHANGE_JOIN, -1, d->of);
	case DECIDE_PASS_PARTS:
		return (f->parts & BIT(d->of)) != 0;
	case DECIDE_PASS_LANES:
		/* another nest of the same statement may have them */
		return is_taken[d->kind] && d->with >= 0 &&
		       (f->lanes[d->with] & BIT(d->of)) != 0;
	case DECIDE_PASS_SQUARES:
	case DECIDE_PASS_KEEP:
		return stages(k, is_kept(d) ? f->kept : f->turned, d->of);
	case DECIDE_PASS_OWNERS:
		return has_owners(k, d->of);
	case DECIDE_PASS_CHUNKS:
		return k->phase[d->of].n_chunks > 1;
	case DECIDE_PASS_MATRIX:
	case DECIDE_PASS_DOT:
	case DECIDE_PASS_TILES:
	case DECIDE_PASS_WARPGROUP:
	case DECIDE_PASS_HOLD:
		return f->tile[d->of] != NULL &&
		       is_tile(f->tile[d->of], decide_pass_of(d->kind));
	case DECIDE_PASS_WARPS:
		return k->phase[d->of].warps > 1;
	case DECIDE_PASS_BULK:
		return (f->bulk & BIT(d->of)) != 0;
	case DECIDE_PASS_STAGES:
		return (f->staged & BIT(d->of)) != 0;
	case DECIDE_PASS_WIDE:
		return (f->wide[d->with] & BIT(d->of)) != 0;
	case DECIDE_PASS_GUARDS:
		return (f->spans & BIT(d->of)) != 0;
	case DECIDE_PASS_CLIPS:
		return (f->clips & BIT(d->of)) != 0;
	case DECIDE_PASS_PIXELS:
	case DECIDE_PASS_RESULTS:
	case DECIDE_PASS_STREAM:
		return has_lines(k, d);
	case DECIDE_PASS_ABREAST:
		return (f->abreast & BIT(d->of)) != 0;
	case DECIDE_PASS_ROWS:
	case DECIDE_PASS_APART:
	case DECIDE_PASS_INDICES: /* the kernel has it: `one` */
	case DECIDE_N_PASSES:
		break;
	}
	return is_taken[d->kind];
}

/* A sum of something times something. */
static bool is_product(const loop_eqn *e)
{
	const expr *b = e->body[0];

	while (b->kind == EX_CAST ||
		(b->kind == EX_SELECT && b->arg[2]->kind == EX_CONST))
		b = b->arg[b->kind == EX_SELECT];
	return e->e->monoid == IR_SUM && e->e->n_out == 1 && e->reduced != 0 &&
	       !e->part && b->kind == EX_CALL &&
	       !strcmp(ir_scalar_at(b->fn)->name, "mul");
}

static const loop_decision *find(
	const loop_kernel *k, decide_pass pass, int32_t of, int32_t with)
{
	for (int32_t i = 0; i < k->decision.n; i++) {
		const loop_decision *d = &k->decision.at[i];

		if (decide_pass_of(d->kind) == pass && d->of == of &&
			(with < 0 || d->with == with))
			return d;
	}
	return NULL;
}

static int32_t first_leaf(const loop_node *n)
{
	while (loop_is_loop(n))
		n = n->child[0];
	return n->eqn;
}

/* Each loop at the bottom that nobody walks in lanes has a reason. */
static void check_loops(loop_kernel *k, const loop_node *n, bool in_lanes)
{
	bool bottom = n->kind == LOOP_FOR;

	in_lanes |= n->lanes > 1;
	for (int32_t i = 0; i < n->n_child; i++) {
		bottom &= !loop_is_loop(n->child[i]) &&
			  n->child[i]->kind != LOOP_STAGE &&
			  n->child[i]->kind != LOOP_TILE &&
			  n->child[i]->kind != LOOP_DONE;
		check_loops(k, n->child[i], in_lanes);
	}
	if (!bottom || in_lanes)
		return;
	if (find(k, DECIDE_PASS_LANES, n->var, first_leaf(n)) == NULL &&
		find(k, DECIDE_PASS_ABREAST, n->var, -1) == NULL)
		fail_msg("%s: no reason why %s of %s has no lanes", k->name,
			k->var[n->var].name,
			loop_label(&k->eqn[first_leaf(n)]));
}

static void check_kernel(loop_kernel *k)
{
	struct facts f = facts_of(k);

	for (int32_t i = 0; i < k->decision.n; i++) {
		const loop_decision *d = &k->decision.at[i];
		str s = str_new(k->a);

		if (is_done(&f, d) == is_taken[d->kind])
			continue;
		decide_subject(&s, k, d);
		str_add(&s, ": ");
		decide_sentence(&s, k, d);
		fail_msg("%s: %s: the trees say otherwise: %s", k->name,
			decide_name(d->kind), s.at);
	}
	for (int32_t i = 0; i < k->n_eqns; i++) {
		const loop_decision *d = find(k, DECIDE_PASS_TILE, i, -1);

		if (is_product(&k->eqn[i]) && d == NULL)
			fail_msg("%s: no decision about the product %s#%d",
				k->name, loop_label(&k->eqn[i]), i);
	}
	for (int32_t p = 0; p < k->n_phases; p++) {
		if (find(k, DECIDE_PASS_CHUNKS, p, -1) == NULL &&
			k->phase[p].n_chunks == 1 && p + 1 < k->n_phases)
			fail_msg("%s: no reason why phase %d is one chunk",
				k->name, p);
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			check_loops(k, k->phase[p].root[i], false);
	}
}

/* ---- programs ---- */

struct call {
	const struct row *row;
	const char *file; /* or of this file */
	bool found;
	char said[4000];
};

static const char *read_file(arena *a, const char *name)
{
	const char *root = getenv("TN_SOURCE_ROOT");
	char path[1000], part[4096];
	str s = str_new(a);
	FILE *f;
	size_t n;

	snprintf(path, sizeof path, "%s/tests/golden/%s",
		root != NULL ? root : ".", name);
	f = fopen(path, "r");
	assert_non_null(f);
	while ((n = fread(part, 1, sizeof part, f)) > 0)
		str_addn(&s, part, n);
	fclose(f);
	*(strstr(s.at, "\n# >>>") + 1) = '\0';
	return s.at;
}

/* The machine of that name, or c/avx512 with another limit. */
static const machine *machine_named(arena *a, const char *name)
{
	machine *m = arena_make(a, machine);

	*m = *machine_find(MACHINE);
	if (name == NULL)
		return m;
	if (!strcmp(name, "none"))
		m->unscheduled = true;
	else if (!strcmp(name, "tall tiles"))
		m->product.least_rows = 8;
	else if (!strcmp(name, "small kernels"))
		m->product.most_equations = 4;
	else if (!strcmp(name, "small blocks")) {
		*m = *machine_find("cuda/sm_90");
		m->block.shared_bytes = 1024;
	} else if (!strcmp(name, "tight blocks")) {
		*m = *machine_find("cuda/sm_90");
		m->block.shared_bytes = 20 << 10;
		m->block.sum_terms = 16;
	} else if (!strcmp(name, "slow barriers")) {
		*m = *machine_find("cuda/sm_90");
		m->block.meet_cycles = 1e5;
		m->block.shared_bytes = 40 << 10; /* so pieces are cut */
	} else if (!strcmp(name, "slow warpgroups")) {
		*m = *machine_find("cuda/sm_90a");
		m->matrix.warps_cycles = 2 * m->matrix.cycles;
	} else if (!strcmp(name, "slow bulk")) {
		*m = *machine_find("cuda/sm_90a");
		m->block.bulk_cycles = 1e6;
	} else if (!strcmp(name, "kernels of a CPU")) {
		*m = *machine_find("cuda/sm_90");
		m->priced_as = MACHINE;
	} else if (!strcmp(name, "small caches"))
		m->memory[MACHINE_L2].bytes = 256;
	else
		return machine_find(name);
	return m;
}

static compilation *compiled(arena *a, const char *text, const char *name)
{
	const machine *m = machine_named(a, name);
	compile_options o;
	ir_program *p;

	o = compile_options_default(m);
	if (strncmp(text, "system {", 8) == 0)
		return compile_new_system(a,
			ir_system_parse(a, ix_new(a), text, strlen(text), "t"),
			&o);
	if (strchr(text, '\n') == NULL)
		text = read_file(a, text);
	p = ir_program_parse(a, text, strlen(text), "t", interp_loop);
	/* as if the program were run again and again */
	for (int32_t i = 0; i < p->input.n; i++)
		p->value.at[p->input.at[i]].steady =
			p->value.at[p->input.at[i]].is_param;
	return compile_new(a, p, &o);
}

/* What is decided when the kernel is there. */
static void check_indices(compilation *c, int32_t i)
{
	const loop_decision *d;

	compile_to(c, TN_LEVEL_KERN);
	d = loop_decided(c->loops[i], DECIDE_PASS_INDICES, -1);
	assert_true((d != NULL) == c->o.machine->narrow_indices);
	assert_true(c->kernels[i]->narrow == (d != NULL && is_taken[d->kind]));
	kern_verify(c->kernels[i]);
}

/* All kernels, and those of the bodies of loops. */
static void look(struct call *q, compilation *c, str *all)
{
	const struct row *r = q->row;

	compile_to(c, TN_LEVEL_SCHEDULE);
	for (int32_t i = 0; i < c->system->eqn.n; i++) {
		const sys_eqn *e = &c->system->eqn.at[i];

		if (e->opaque != NULL && e->opaque->loop != NULL)
			look(q, compile_body(c, e->opaque->loop), all);
	}
	for (int32_t i = 0; i < c->groups->kernel.n; i++) {
		loop_kernel *k = c->loops[i];

		if (k == NULL)
			continue;
		check_kernel(k);
		if (c->o.machine->narrow_indices)
			check_indices(c, i);
		loop_text_decisions(all, k);
		for (int32_t j = 0; j < k->decision.n && r != NULL; j++) {
			const loop_decision *d = &k->decision.at[j];

			q->found |= d->kind == (int32_t)r->kind &&
				    (r->a < 0 || d->a == r->a) &&
				    (r->b < 0 || d->b == r->b);
		}
	}
}

static void one(arena *a, void *arg)
{
	struct call *q = arg;
	const struct row *r = q->row;
	str all = str_new(a);

	look(q, compiled(a, r != NULL ? r->program : q->file,
			   r != NULL ? r->machine : NULL), &all);
	snprintf(q->said, sizeof q->said, "%s", all.at);
}

static void each_kind(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct call q = {.row = &rows[i]};
		tn_diag d = {0};

		if (unit_run(one, &q, 0, &d) != TN_OK) {
			print_error("%s: %s: %s\n%s", decide_name(rows[i].kind),
				d.rule, d.text, d.extra);
			bad++;
		} else if (!q.found) {
			print_error("%s: not said:\n%s",
				decide_name(rows[i].kind), q.said);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
}

/* No kind without a program, but those that are named as such. */
static void all_kinds(void **state)
{
	int bad = 0;

	(void)state;
	for (int32_t k = 0; k < DECIDE_N_KINDS; k++) {
		int n = 0;

		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
			n += rows[i].kind == (decide_kind)k;
		for (size_t i = 0; i < sizeof hard / sizeof *hard; i++)
			n += hard[i] == (decide_kind)k;
		if (n != 1)
			print_error("%s: %d programs\n", decide_name(k), n);
		bad += n != 1;
	}
	assert_int_equal(bad, 0);
}

/* What is said of the programs of the goldens holds, and nothing is left out. */
static void all_goldens(void **state)
{
	static const char *const folders[] = {"fusion", "inplace", "split"};
	int n = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		const char *root = getenv("TN_SOURCE_ROOT");
		char path[1000];
		struct dirent *e;
		DIR *d;

		snprintf(path, sizeof path, "%s/tests/golden/%s",
			root != NULL ? root : ".", folders[i]);
		d = opendir(path);
		assert_non_null(d);
		while ((e = readdir(d)) != NULL) {
			struct call q = {.file = path};
			tn_diag said = {0};

			if (strstr(e->d_name, ".tn") == NULL)
				continue;
			snprintf(path, sizeof path, "%s/%s", folders[i],
				e->d_name);
			n += unit_run(one, &q, 0, &said) == TN_OK;
		}
		closedir(d);
	}
	assert_true(n > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kinds),
		cmocka_unit_test(each_kind),
		cmocka_unit_test(all_goldens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
