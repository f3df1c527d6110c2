/*
 * spmdplan.c: reads cases, a line each, and prints where tensors lie; what
 * tools/spmdcheck compares.
 *
 *     case add.01
 *     mesh 2 3
 *     program program { x: f32[6,4]; y: f32[4]; o = add(x, y); return o }
 *     in 0 0 -1             by axis of the tensor the axis of the mesh; -1 none
 *     out 0 1 -1
 *     gradient              of the program's one call: operands and cotangents
 *                           to the cotangents of the operands
 *     go                    infer; "values" infers and works it out as well
 *
 * prints, each with the layout in words behind a bar
 *
 *     in 0 0 -1 | ..        what all that read it need
 *     out 0 0 -1 partial 1 | ..
 *     part out 0 2 1 | ..   a cut that is no whole axis: on axis 2 by mesh 1
 *     why ..
 *     values ok             the processes together make what one makes
 *     done
 */
#include "shard_sim.h"
#include "interp/interp.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINE = 1 << 14 };

struct mapping {
	bool is_out;
	int32_t number, n;
	int32_t mesh[TN_MAX_RANK];
};

struct one_case {
	shard_mesh mesh;
	char program[LINE];
	int32_t n;
	struct mapping map[64];
	bool values, gradient;
};

static void annotate(env *e, shard_plan *p, const struct mapping *w)
{
	const ir_system *s = p->s;
	int32_t n = w->is_out ? s->output.n : s->input.n;
	int32_t tensor;
	shard_layout l;

	if (w->number >= n)
		env_fail(e, TN_EINVAL, "spmd.tensor", (loc){0},
			"there is no tensor %d", w->number);
	tensor = w->is_out ? s->output.at[w->number] : s->input.at[w->number];
	l = shard_replicated(s->tensor.at[tensor].numel);
	if (w->n != s->tensor.at[tensor].rank)
		env_fail(e, TN_EINVAL, "spmd.rank", (loc){0},
			"%s has rank %d", s->tensor.at[tensor].name,
			s->tensor.at[tensor].rank);
	for (int32_t k = 0; k < w->n; k++)
		/* an axis of extent 1 has nothing to cut */
		if (w->mesh[k] >= 0 && s->tensor.at[tensor].shape[k] > 1)
			shard_cut(e, &l, p->mesh, w->n,
				s->tensor.at[tensor].shape, k, w->mesh[k], 0);
	shard_annotate(p, tensor, &l, false);
}

/* An axis of the mesh that cuts the whole axis in blocks; -1. */
static int32_t whole_axis(const shard_plan *p, const shard_tag *g, int64_t extent)
{
	return g->mult == 1 && g->count == p->mesh->extent[g->mesh] &&
			g->hi == extent
		? g->mesh
		: -1;
}

/* One cut by itself, as axes; what is no whole axis goes to parts. */
static void one_cut(const shard_plan *p, const shard_layout *l, int32_t i,
	const sys_tensor *t, int32_t *mesh, const char *what, str *parts)
{
	shard_layout one = shard_replicated(l->numel), axis[TN_MAX_RANK];

	one.tag[one.n++] = l->tag[i];
	one.tag[0].within = -1;
	if (l->tag[i].within >= 0)
		str_printf(parts, "part %s -1 %d\n", what, l->tag[i].mesh);
	else if (!shard_by_axis(&one, t->rank, t->shape, axis))
		str_printf(parts, "part %s -1 %d\n", what, l->tag[i].mesh);
	else
		for (int32_t k = 0; k < t->rank; k++) {
			if (axis[k].n == 0)
				continue;
			if (mesh[k] < 0)
				mesh[k] = whole_axis(
					p, &axis[k].tag[0], t->shape[k]);
			if (mesh[k] != l->tag[i].mesh)
				str_printf(parts, "part %s %d %d\n", what, k,
					l->tag[i].mesh);
		}
}

static void print_layout(str *o, const shard_plan *p, const char *kind,
	int32_t number, int32_t tensor, const shard_layout *l, uint32_t partial)
{
	const sys_tensor *t = &p->s->tensor.at[tensor];
	const char *what = arena_printf(o->a, "%s %d", kind, number);
	int32_t mesh[TN_MAX_RANK];
	str parts = str_new(o->a);

	for (int32_t k = 0; k < t->rank; k++)
		mesh[k] = -1;
	for (int32_t i = 0; i < l->n; i++)
		one_cut(p, l, i, t, mesh, what, &parts);
	str_add(o, what);
	for (int32_t k = 0; k < t->rank; k++)
		str_printf(o, " %d", mesh[k]);
	for (int32_t m = 0; m < p->mesh->n; m++)
		if (partial >> m & 1)
			str_printf(o, " partial %d", m);
	str_add(o, " | ");
	shard_layout_print(o, l, p->mesh);
	str_addc(o, '\n');
	str_add(o, parts.n > 0 ? parts.at : "");
}

static void print_plan(str *o, shard_plan *p)
{
	const ir_system *s = p->s;

	for (int32_t i = 0; i < s->input.n; i++) {
		int32_t t = s->input.at[i];
		shard_layout l = p->tensor[t].have;
		bool read = false;

		for (int32_t q = 0; q < s->eqn.n; q++) {
			const eqn_unit *u = p->eqn[q].unit;

			for (int32_t r = 0; r < u->n_reads; r++) {
				shard_layout one;

				if (u->read[r].tensor != t)
					continue;
				one = shard_needs(p, q, t);
				l = read ? shard_common(&l, &one) : one;
				read = true;
			}
		}
		print_layout(o, p, "in", i, t, &l, 0);
	}
	for (int32_t i = 0; i < s->output.n; i++) {
		int32_t t = s->output.at[i], q = s->tensor.at[t].eqn;
		shard_layout l =
			q < 0 ? p->tensor[t].have
			      : shard_makes(p, q, s->tensor.at[t].comp);
		uint32_t partial = 0;

		for (int32_t m = 0; q >= 0 && m < p->mesh->n; m++)
			if (shard_is_partial(p, q, m))
				partial |= 1u << m;
		print_layout(o, p, "out", i, t, &l, partial);
	}
	for (int32_t i = 0; i < p->why.n; i++)
		str_printf(o, "why %s\n", p->why.at[i].text);
}

/* ---- values ---- */

static bool equal(tn_dtype t, const void *a, const void *b, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		double x = dtype_load_f64(t, a, i), y = dtype_load_f64(t, b, i);
		double d = x - y, m = x < 0 ? -x : x;

		if (x == y || (x != x && y != y))
			continue;
		if (!(d < 1e-5 * (1 + m) && d > -1e-5 * (1 + m)))
			return false;
	}
	return true;
}

/* Small whole numbers; indices are 0 or 1. */
static void **make_inputs(arena *a, const ir_system *s)
{
	void **in = arena_array(a, void *, s->input.n + 1);
	uint64_t r = 7;

	for (int32_t i = 0; i < s->input.n; i++) {
		const sys_tensor *t = &s->tensor.at[s->input.at[i]];

		in[i] = arena_alloc(
			a, (size_t)t->numel + 1, dtype_size(t->dtype));
		for (int64_t e = 0; e < t->numel; e++) {
			r = r * 6364136223846793005u + 1442695040888963407u;
			if (dtype_is_float(t->dtype))
				dtype_store_f64(t->dtype, in[i], e,
					(double)(r >> 61) - 3);
			else
				dtype_store_i64(t->dtype, in[i], e,
					(int64_t)(r >> 63));
		}
	}
	return in;
}

static void check_values(arena *a, str *o, shard_plan *p)
{
	const void *const *in = (const void *const *)make_inputs(a, p->s);
	void **whole = sim_whole(a, p->s, in), **parts;
	sim_result r = {0};

	parts = sim_run(a, p, in, &r);
	for (int32_t t = 0; t < p->s->tensor.n; t++) {
		const sys_tensor *x = &p->s->tensor.at[t];

		if (equal(x->dtype, whole[t], parts[t], x->numel))
			continue;
		str_printf(o, "values wrong in %s\n", x->name);
		return;
	}
	str_printf(o, "values ok\n");
}

struct job {
	const struct one_case *c;
	str *o;
};

static void solve(arena *a, void *arg)
{
	const struct job *j = arg;
	const struct one_case *c = j->c;
	ir_program *g = ir_program_parse(
		a, c->program, strlen(c->program), "case", interp_loop);
	str o = str_new(a);
	shard_plan *p;

	if (c->gradient)
		g = sim_gradient(a, g);
	p = shard_plan_new(a, ir_lower(a, ix_new(a), g), &c->mesh);
	for (int32_t i = 0; i < c->n; i++)
		annotate(arena_env(a), p, &c->map[i]);
	shard_propagate(p);
	print_plan(&o, p);
	fputs(o.at, stdout);
	o = str_new(a);
	if (c->values)
		check_values(a, &o, p);
	if (o.n > 0)
		fputs(o.at, stdout);
}

struct call {
	env *e;
	struct job job;
};

static void enter(void *arg)
{
	struct call *c = arg;

	arena_run(c->e, solve, &c->job);
}

static void go(const struct one_case *c)
{
	struct call call = {.e = env_new(), .job = {.c = c}};

	if (call.e == NULL)
		exit(1);
	if (env_run(call.e, enter, &call) != TN_OK)
		printf("error %s: %s\n", env_diag(call.e)->rule,
			env_diag(call.e)->text);
	printf("done\n");
	fflush(stdout);
	env_free(call.e);
}

/* ---- lines ---- */

static int32_t numbers(const char *text, int64_t *out, int32_t most)
{
	int32_t n = 0;
	char *end;

	for (; n < most; n++, text = end) {
		out[n] = strtoll(text, &end, 10);
		if (end == text)
			break;
	}
	return n;
}

static void read_line(struct one_case *c, char *line)
{
	int64_t v[TN_MAX_RANK + 1];
	int32_t n;

	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, "case ", 5) == 0) {
		memset(c, 0, sizeof *c);
	} else if (strncmp(line, "mesh ", 5) == 0) {
		c->mesh.n = numbers(line + 5, c->mesh.extent, SHARD_MAX_AXES);
	} else if (strncmp(line, "program ", 8) == 0) {
		strcpy(c->program, line + 8);
	} else if (strncmp(line, "in ", 3) == 0 ||
		strncmp(line, "out ", 4) == 0) {
		struct mapping *w = &c->map[c->n];

		w->is_out = line[0] == 'o';
		n = numbers(line + 3 + w->is_out, v, TN_MAX_RANK + 1);
		w->number = (int32_t)v[0];
		w->n = n - 1;
		for (int32_t i = 1; i < n; i++)
			w->mesh[i - 1] = (int32_t)v[i];
		c->n += n > 0 && c->n < 63;
	} else if (strcmp(line, "gradient") == 0) {
		c->gradient = true;
	} else if (strcmp(line, "go") == 0 || strcmp(line, "values") == 0) {
		c->values = line[0] == 'v';
		go(c);
	}
}

int main(void)
{
	static struct one_case c;
	static char line[LINE];

	while (fgets(line, sizeof line, stdin) != NULL)
		read_line(&c, line);
	return 0;
}
