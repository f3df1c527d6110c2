/*
 * shard_text.c: texts of meshes and placements; explains a program on a mesh without
 * processes.
 *
 *   program + "data=2" + "x=shard(0)@data" -> plan -> all placements and reasons
 */
#include "api/shard.h"

struct mesh_text {
	tn_context *c;
	const char *text;
	shard_mesh m;
};

static void read_mesh(void *arg)
{
	struct mesh_text *k = arg;

	api_want(k->c, k->text, "the mesh");
	k->m = shard_mesh_parse(k->c->a, k->text);
}

tn_mesh *tn_at_mesh_parse(
	const char *file, int32_t line, tn_context *c, const char *text)
{
	struct mesh_text k = {.c = c, .text = text};

	if (api_sticky(c, file, line, read_mesh, &k) < 0)
		return NULL;
	return tn_at_mesh_new(file, line, c, k.m.n, k.m.name, k.m.extent);
}

const char *tn_mesh_axis(const tn_mesh *m, int32_t i, int64_t *extent)
{
	if (m == NULL)
		return NULL;
	if (i < 0 || i >= m->m.n)
		return NULL;
	*extent = m->m.extent[i];
	return m->m.name[i];
}

struct explain_call {
	tn_program *p;
	const char *mesh;
	const char *const *place;
	int32_t n_place;
	bool json;
	char **out;
};

/* As without tn_shard: other inputs are whole, and results have any placement. */
static void place(void *arg, shard_plan *p)
{
	const struct explain_call *k = arg;

	for (int32_t i = 0; i < k->n_place; i++)
		shard_placement_parse(p, k->place[i]);
	for (int32_t i = 0; i < p->s->input.n; i++)
		p->tensor[p->s->input.at[i]].fixed = true;
}

static void explain(void *arg)
{
	struct explain_call *k = arg;
	arena *a = arena_child(k->p->a);
	compile_options o = api_compile_options(k->p->c);
	compile_layout l = {.place = place, .arg = k};
	str s = str_new(a);
	compilation *c;
	shard_mesh m;

	api_want(k->p->c, k->mesh, "the mesh");
	api_want_shapes(k->p);
	m = shard_mesh_parse(a, k->mesh);
	if (k->n_place > 0)
		api_want(k->p->c, k->place, "the list of placements");
	for (int32_t i = 0; i < k->n_place; i++)
		api_want(k->p->c, k->place[i], "a placement");
	l.mesh = &m;
	o.layout = &l;
	c = compile_new(a, k->p->ir, &o);
	compile_to(c, TN_LEVEL_SYSTEM);
	shard_explain(&s, c->local, k->json);
	*k->out = api_text(k->p->c, &s);
	arena_free(a);
}

tn_status tn_program_explain_shard(char **out, tn_program *p,
	const char *mesh, const char *const *place, int32_t n_place,
	bool json)
{
	if (p == NULL) {
		*out = NULL;
		return api_null("the program");
	}

	struct explain_call k = {p, mesh, place, n_place, json, out};

	*out = NULL;
	return api_call(p->c, explain, &k);
}
