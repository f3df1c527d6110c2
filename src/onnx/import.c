/*
 * import.c: imports the graphs of a model, node by node, in the order of
 * order.c.
 *
 *     onnx_model  ->  ir_program + elements of the initialisers
 *
 * Each name is defined once, and before it is used, so an unknown name is an
 * error. Bodies of If, Loop, Scan and functions are built in place, each in its
 * own scope; their depth and the number of nodes are limited.
 */
#include "onnx/import.h"

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
/* a fuzzer should try many models, not large ones */
enum { MAX_NODES = 1 << 12 };
#else
enum { MAX_NODES = 1 << 16 };
#endif

static _Noreturn void fail(const onnx_import *x, const char *rule,
	const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static _Noreturn void fail(
	const onnx_import *x, const char *rule, const char *fmt, ...)
{
	str s = str_new(x->a);
	va_list ap;

	va_start(ap, fmt);
	str_vprintf(&s, fmt, ap);
	va_end(ap);
	env_fail(x->e, TN_EINVAL, rule, (loc){.file = x->where}, "%s", s.at);
}

/* ---- names ---- */

static scope *scope_new(onnx_import *x, const scope *outer)
{
	scope *s = arena_make(x->a, scope);

	s->name = map_new(x->a);
	s->outer = outer;
	return s;
}

static void define(onnx_import *x, scope *s, const char *name, val v)
{
	if (map_get_str(s->name, name, -1) >= 0)
		env_fail(x->e, TN_EINVAL, "onnx.duplicate",
			(loc){.file = x->where},
			"\"%.200s\" is defined twice; every value needs a name "
			"of its own",
			name);
	map_set_str(s->name, name, s->value.n);
	*vec_push(x->a, &s->value) = v;
	if (v.kind == VAL_TENSOR && onnx_fact(x, v.v)->label == NULL)
		onnx_fact(x, v.v)->label = x->p->value.at[v.v].shown = name;
}

static void add_initialisers(onnx_import *x, scope *s, const onnx_graph *g)
{
	for (int32_t i = 0; i < g->init.n; i++) {
		onnx_array t = onnx_model_array(
			x->m, x->m->file, &g->init.at[i]);
		int32_t v = onnx_const(x, &t.type, t.data);

		define(x, s, g->init.at[i].name,
			(val){.kind = VAL_TENSOR, .v = v, .elem = t.elem});
	}
}

/* ---- nodes ---- */

static int64_t version_of(const onnx_opsets *o, const char *domain)
{
	for (int32_t i = 0; i < o->n; i++)
		if (!strcmp(o->at[i].domain, domain))
			return o->at[i].version;
	return 0;
}

static const char *describe(const onnx_import *x, const onnx_node *n)
{
	str s = str_new(x->a), name = str_new(x->a);

	str_addn(&name, n->name, strlen(n->name) < 60 ? strlen(n->name) : 60);
	str_printf(&s, "%.150s: node %lld, %.60s", x->m->file,
		(long long)x->n_nodes, n->op);
	if (name.n > 0) {
		str_addc(&s, ' ');
		str_json(&s, name.at);
	}
	/* names may contain any bytes: only printable characters are shown */
	for (char *c = s.at; *c != '\0'; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	return s.at;
}

static void run_nodes(onnx_import *x, const node *frame, int32_t n,
	const onnx_node *at);

static void enter(onnx_import *x)
{
	if (++x->depth > ONNX_MAX_DEPTH)
		fail(x, "onnx.depth", "graphs and functions are nested more "
				      "than 32 deep");
}

/* Builds a call of a function of the model: its body, in place. */
static void run_function(node *d, const onnx_function *f)
{
	onnx_opsets opsets = {f->opset.n, f->opset.at};
	node frame = {.caller = d->n, .callee = f, .opsets = &opsets};
	val none = {0};

	enter(d->x);
	frame.scope = scope_new(d->x, NULL);
	for (int32_t i = 0; i < f->in.n; i++)
		define(d->x, frame.scope, f->in.at[i],
			i < d->n_in ? d->in[i] : none);
	run_nodes(d->x, &frame, f->node.n, f->node.at);
	for (int32_t i = 0; i < f->out.n && i < d->n_out; i++)
		d->out[i] = onnx_find(d->x, frame.scope, f->out.at[i]);
	d->x->depth--;
}

static const char *function_key(arena *a, const char *domain, const char *name)
{
	return arena_printf(a, "%zu:%s:%s", strlen(domain), domain, name);
}

/*
 * Finds the functions of the model. Two functions of the same name, which
 * differ by their overload, are not supported.
 */
static void find_functions(onnx_import *x)
{
	x->function = map_new(x->a);
	for (int32_t i = 0; i < x->m->function.n; i++) {
		const onnx_function *f = &x->m->function.at[i];
		const char *key = function_key(x->a, f->domain, f->name);

		if (map_get_str(x->function, key, -1) >= 0)
			env_fail(x->e, TN_EINVAL, "onnx.duplicate",
				(loc){.file = x->where},
				"function \"%.200s\" is defined twice", f->name);
		map_set_str(x->function, key, i);
	}
}

static const onnx_function *find_function(
	const onnx_import *x, const onnx_node *n)
{
	int64_t i = x->m->function.n == 0
		? -1
		: map_get_str(x->function,
			  function_key(x->a, n->domain, n->op), -1);

	return i >= 0 ? &x->m->function.at[i] : NULL;
}

/* Names all other nodes that cannot run, too. */
static _Noreturn void no_operator(const node *d)
{
	onnx_import *x = d->x;
	onnx_refusals all = onnx_refused(x->a, x->m);
	int32_t since = onnx_op_since(d->n->domain, d->n->op);
	str s = str_new(x->a);

	for (int32_t i = 0; i < x->unasked.n; i++)
		*vec_push(x->a, &all) = x->unasked.at[i];
	str_printf(&s, "operator %.100s of domain \"%.100s\", opset %lld, is "
		"not supported", d->n->op, d->n->domain, (long long)d->opset);
	if (since >= 0)
		str_printf(&s, " before opset %d", (int)since);
	onnx_refusals_list(&s, &all);
	env_fail(x->e, TN_EINVAL, "onnx.operator", (loc){.file = x->where},
		"%s", s.at);
}

static _Noreturn void no_attribute(const onnx_import *x)
{
	const onnx_refusal *r = &x->unasked.at[0];
	str s = str_new(x->a);

	if (r->kind == REFUSED_INPUT)
		str_printf(&s, "input %d of the operator is not supported",
			(int)r->input);
	else
		str_printf(&s, "attribute %.100s is not supported", r->what);
	onnx_refusals_list(&s, &x->unasked);
	env_fail(x->e, TN_EINVAL, onnx_refusal_rule(r),
		(loc){.file = r->where}, "%s", s.at);
}

/* The import goes on to find the others, but where it runs what it has made. */
static void note(const node *d, onnx_refusal r)
{
	enum { MOST = 64 };
	onnx_import *x = d->x;

	for (int32_t i = 0; i < x->unasked.n; i++) {
		const onnx_refusal *k = &x->unasked.at[i];

		/* in a body of many rounds, or a function of many calls */
		if (k->node == d->n && k->kind == r.kind &&
			k->input == r.input && k->what == r.what)
			return;
	}
	r.node = d->n;
	r.name = onnx_node_name(d->n);
	r.domain = d->n->domain;
	r.opset = d->opset;
	r.where = x->where;
	*vec_push(x->a, &x->unasked) = r;
	if (x->path != NULL || x->unasked.n >= MOST)
		no_attribute(x);
}

/*
 * Finds inputs and attributes of a node that its builder has not read: ignoring
 * them would give wrong results, so onnx_import_run refuses the model.
 */
static void check_asked(const node *d)
{
	for (int32_t i = 0; i < d->n_in; i++)
		if (d->in[i].kind != VAL_NONE && !d->asked_in[i])
			note(d, (onnx_refusal){REFUSED_INPUT, .input = i});
	for (int32_t i = 0; i < d->n->attr.n; i++)
		if (!d->asked_attr[i])
			note(d, (onnx_refusal){REFUSED_ATTR,
				.what = d->n->attr.at[i].name});
}

/* Is the value of strings, or of sequences of them? */
static bool has_strings(const val *v)
{
	if (v->kind == VAL_TENSOR)
		return v->elem == ONNX_STRING;
	for (int32_t i = 0; v->kind == VAL_SEQUENCE && i < v->n; i++)
		if (has_strings(&v->at[i]))
			return true;
	return false;
}

/* Has it no elements that are strings or not: an input that is not there? */
static bool has_none(const val *v)
{
	return v->kind != VAL_TENSOR && v->n == 0;
}

/*
 * Strings are numbers of i32, so only some operators may see them, and not beside
 * other elements of i32. Is an input of strings?
 */
static bool takes_strings(const node *d)
{
	int32_t strings = 0, others = 0;

	for (int32_t i = 0; i < d->n_in; i++) {
		bool may = (d->op->of >> (i < 63 ? i : 63) & 1) != 0;
		bool is = has_strings(&d->in[i]);

		if (is && !may)
			on_fail(d, "onnx.elem", "the operator does not take "
				"strings%s", d->op->strings == STRINGS_REFUSED
				? "" : arena_printf(d->x->a, " as input %d",
					(int)i));
		strings += is;
		others += may && !is && !has_none(&d->in[i]);
	}
	if (strings > 0 && others > 0 && d->op->strings == STRINGS_MOVED)
		on_fail(d, "onnx.elem", "some of its inputs are strings, and "
			"some are not; all of them must be, or none");
	return strings > 0;
}

static void build_node(node *d)
{
	bool strings = takes_strings(d);

	d->op->build(d);
	check_asked(d);
	for (int32_t i = 0; i < d->n_out && strings; i++)
		if (d->op->strings == STRINGS_MOVED &&
			d->out[i].kind == VAL_TENSOR &&
			on_dt(d, d->out[i].v) == TN_I32)
			d->out[i].elem = ONNX_STRING;
}

static void run_node(onnx_import *x, const node *frame, const onnx_node *n)
{
	const onnx_function *f = find_function(x, n);
	node d = *frame;
	val *in = arena_array(x->a, val, n->in.n + 1);

	if (++x->n_nodes > MAX_NODES)
		fail(x, "onnx.size", "the model has more than 2^16 nodes, "
			"counted with loops unrolled");
	x->where = describe(x, n);
	d.x = x;
	d.n = n;
	d.n_in = n->in.n;
	d.n_out = n->out.n;
	d.in = in;
	d.out = arena_array(x->a, val, n->out.n + 1);
	d.asked_in = arena_array(x->a, bool, n->in.n + 1);
	d.asked_attr = arena_array(x->a, bool, n->attr.n + 1);
	d.opset = version_of(frame->opsets, n->domain);
	for (int32_t i = 0; i < n->in.n; i++)
		if (n->in.at[i][0] != '\0')
			in[i] = onnx_find(x, frame->scope, n->in.at[i]);
	if (f != NULL) {
		run_function(&d, f);
	} else {
		d.op = onnx_op_find(n->domain, n->op, d.opset);
		if (d.op == NULL)
			no_operator(&d);
		build_node(&d);
	}
	for (int32_t i = 0; i < n->out.n; i++)
		if (n->out.at[i][0] != '\0')
			define(x, frame->scope, n->out.at[i], d.out[i]);
}

static void run_nodes(onnx_import *x, const node *frame, int32_t n,
	const onnx_node *at)
{
	const char *where = x->where;

	for (int32_t i = 0; i < n; i++) {
		if (frame->scope == x->top)
			x->top_node = i;
		run_node(x, frame, &at[i]);
	}
	x->where = where;
}

static void run_graph(
	node *d, const onnx_graph *g, int32_t n_in, const val *in, val *out)
{
	onnx_import *x = d->x;
	node frame = {.caller = d->caller, .callee = d->callee,
		.opsets = d->opsets};

	if (g->in.n != n_in)
		on_fail(d, "onnx.graph", "the body has %d inputs, but %d are "
			"needed",
			(int)g->in.n, (int)n_in);
	enter(x);
	frame.scope = scope_new(x, d->scope);
	for (int32_t i = 0; i < n_in; i++)
		define(x, frame.scope, g->in.at[i].name, in[i]);
	add_initialisers(x, frame.scope, g);
	run_nodes(x, &frame, g->node.n, g->node.at);
	for (int32_t i = 0; i < g->out.n; i++)
		out[i] = onnx_find(x, frame.scope, g->out.at[i].name);
	x->depth--;
}

/* ---- inputs ---- */

onnx_import *onnx_import_new(arena *a, onnx_model *m)
{
	onnx_import *x = arena_make(a, onnx_import);

	x->a = a;
	x->e = arena_env(a);
	x->m = m;
	x->dim = map_new(a);
	x->given = arena_array(a, struct given, m->input.n + 1);
	x->where = m->file;
	x->key = -1;
	x->run_graph = run_graph;
	return x;
}

void onnx_bind_dim(onnx_import *x, const char *name, int64_t size)
{
	if (size < 0)
		env_fail(x->e, TN_EINVAL, "onnx.dim", (loc){0},
			"the size %lld of dimension %.100s is negative",
			(long long)size, name);
	map_set_str(x->dim, name, size);
}

void onnx_unroll(onnx_import *x, bool unrolled)
{
	x->unrolled = unrolled;
}

void onnx_train(onnx_import *x, bool training, bool logits)
{
	x->training = training;
	x->logits = logits;
}

void onnx_fold_from(onnx_import *x, int64_t n_elems)
{
	x->fold_from = n_elems;
}

void onnx_give(onnx_import *x, int32_t i, int32_t n, const onnx_array *arrays)
{
	x->given[i] = (struct given){true, n, arrays};
}

/*
 * The extent that "x[0]" sets for an axis of input x, whatever the model
 * declares.
 */
static int64_t set_extent(const onnx_import *x, const char *name, int32_t axis)
{
	const char *key = arena_printf(x->a, "%s[%d]", name, (int)axis);

	return map_get_str(x->dim, key, -1);
}

/* The extent of an axis of an input; -1: it must be given. */
static int64_t extent_of(onnx_import *x, const onnx_port *p, int32_t i)
{
	const onnx_type *t = &p->type;
	int64_t n = set_extent(x, p->name, i);

	if (n >= 0)
		return n;
	n = t->dim[i];
	if (n < 0 && t->dim_name[i] != NULL)
		n = map_get_str(x->dim, t->dim_name[i], -1);
	if (n >= 0 || !x->tries)
		return n;
	x->has_assumed = true;
	return 1;
}

/* Refuses a model with dimensions whose sizes must be given: names all of them. */
static void want_dims(onnx_import *x)
{
	enum { MOST = 600 };
	str s = str_new(x->a);
	map *seen = map_new(x->a);
	int32_t n = 0, left = 0;

	for (int32_t i = 0; i < x->m->input.n; i++) {
		const onnx_port *p = &x->m->input.at[i];
		const onnx_type *t = &p->type;
		bool open = t->kind == ONNX_TENSOR && t->has_shape &&
			!(x->given[i].is && x->given[i].n > 0);

		for (int32_t k = 0; open && k < t->rank; k++) {
			const char *name = t->dim_name[k];

			if (extent_of(x, p, k) >= 0 ||
				(name != NULL && map_get_str(seen, name, 0)))
				continue;
			if (name != NULL)
				map_set_str(seen, name, 1);
			left += s.n >= MOST;
			if (s.n >= MOST)
				continue;
			str_add(&s, n++ > 0 ? ", " : "");
			str_printf(&s, "%.100s%s%.100s[%d]%s",
				name != NULL ? name : "",
				name != NULL ? " (" : "", p->name, (int)k,
				name != NULL ? ")" : "");
		}
	}
	if (left > 0)
		str_printf(&s, " and %d more", (int)left);
	if (n > 0)
		env_fail(x->e, TN_EINVAL, "onnx.dim", (loc){.file = x->where},
			"the model has dimensions whose sizes must be given: "
			"%s", s.at);
}

/* The declared type with its dimensions filled in. */
static ir_type input_type(onnx_import *x, const onnx_port *p)
{
	const onnx_type *t = &p->type;
	ir_type out = {.rank = t->rank};

	if (!onnx_elem_dtype(t->elem, &out.dtype))
		env_fail(x->e, TN_EINVAL, "onnx.elem", (loc){.file = x->where},
			"input \"%.200s\" has elements of type %s, which is "
			"not supported",
			p->name, onnx_elem_name(t->elem));
	if (!t->has_shape)
		fail(x, "onnx.dim", "the model does not declare the shape of "
				    "input \"%.200s\": it must be given",
			p->name);
	for (int32_t i = 0; i < t->rank; i++) {
		out.shape[i] = extent_of(x, p, i);
		if (i == 0 && t->dim[0] == 1 &&
			set_extent(x, p->name, 0) >= 0)
			x->is_batched = true;
	}
	return out;
}

/*
 * Checks that a given value has the declared element type. Its shape replaces
 * the declared one.
 */
static void check_given(
	const onnx_import *x, const onnx_port *p, const onnx_array *g)
{
	tn_dtype want;

	if (!onnx_elem_dtype(p->type.elem, &want) || want != g->type.dtype)
		fail(x, "onnx.input", "input \"%.200s\" has elements of type "
			"%s, but the value that is given has %s", p->name,
			onnx_elem_name(p->type.elem), dtype_name(g->type.dtype));
}

static val tensor_input(onnx_import *x, const onnx_port *p, const char *name,
	const onnx_array *known)
{
	ir_type t;
	val v = {.kind = VAL_TENSOR, .elem = p->type.elem};

	if (known != NULL) {
		check_given(x, p, known);
		t = known->type;
	} else {
		t = input_type(x, p);
	}
	v.v = onnx_free(x, name, known, &t);
	onnx_fact(x, v.v)->elem = p->type.elem;
	return v;
}

static val list_input(onnx_import *x, const onnx_port *p, const struct given *g)
{
	onnx_port part = {p->name, *p->type.of};
	bool is_optional = p->type.kind == ONNX_OPTIONAL;
	val v = {.kind = VAL_SEQUENCE, .n = g->n}, *at;

	if (!g->is)
		fail(x, "onnx.value", "input \"%.200s\" is a sequence or "
				      "optional: its value must be given",
			p->name);
	if (is_optional && part.type.kind == ONNX_SEQUENCE)
		return list_input(x, &part, g);
	if (part.type.kind != ONNX_TENSOR)
		fail(x, "onnx.type", "the type of input \"%.200s\" is not "
				     "supported",
			p->name);
	if (is_optional && g->n == 0)
		return (val){0};
	if (is_optional)
		return tensor_input(x, &part, p->name, &g->at[0]);
	at = arena_array(x->a, val, g->n + 1);
	for (int32_t i = 0; i < g->n; i++)
		at[i] = tensor_input(x, &part,
			arena_printf(x->a, "%s[%d]", p->name, (int)i),
			&g->at[i]);
	v.at = at;
	return v;
}

static void add_input(onnx_import *x, scope *s, int32_t i)
{
	const onnx_port *p = &x->m->input.at[i];
	const struct given *g = &x->given[i];
	val v;

	if (p->type.kind == ONNX_TENSOR)
		v = tensor_input(x, p, p->name, g->is && g->n > 0 ? g->at : NULL);
	else if (p->type.kind != ONNX_OTHER)
		v = list_input(x, p, g);
	else
		fail(x, "onnx.type", "the type of input \"%.200s\" is not "
				     "supported",
			p->name);
	define(x, s, p->name, v);
}

/* ---- the whole ---- */

typedef struct outputs {
	VEC(int32_t) value;
	VEC(onnx_value) as;
} outputs;

static void add_output(
	onnx_import *x, outputs *o, const char *name, const val *v)
{
	if (o->value.n == MAX_NODES)
		fail(x, "onnx.size", "the model has more than 2^16 outputs");
	if (v->kind == VAL_TENSOR) {
		*vec_push(x->a, &o->value) = v->v;
		*vec_push(x->a, &o->as) = (onnx_value){name, v->elem};
		return;
	}
	for (int32_t i = 0; i < v->n; i++)
		add_output(x, o, arena_printf(x->a, "%s[%d]", name, (int)i),
			&v->at[i]);
}

/*
 * Adds the updates of running statistics in training, as outputs with their
 * names.
 */
static void add_updates(onnx_import *x, outputs *o)
{
	for (int32_t i = 0; i < x->update.n; i++) {
		const update *u = &x->update.at[i];
		const fact *f = onnx_fact(x, u->old);
		val v = {.kind = VAL_TENSOR, .v = u->new,
			.elem = onnx_dtype_elem(
				x->p->value.at[u->new].type.dtype)};

		if (f->is_const && f->label != NULL)
			add_output(x, o, f->label, &v);
	}
}

struct whole {
	onnx_import *x;
	onnx_program p;
};

static void import(void *arg)
{
	struct whole *w = arg;
	onnx_import *x = w->x;
	onnx_opsets opsets = {x->m->opset.n, x->m->opset.at};
	node frame = {.opsets = &opsets};
	const onnx_graph *g = &x->m->graph;
	outputs o = {0};

	x->p = ir_program_new(x->a, ir_table_new(x->a));
	/* its derivatives are calls of adjoints, and a loop has none */
	for (int32_t i = 0; i < g->node.n; i++)
		x->unrolled |= !strcmp(g->node.at[i].op, "Gradient");
	find_functions(x);
	frame.scope = x->top = scope_new(x, NULL);
	want_dims(x);
	for (int32_t i = 0; i < x->m->input.n; i++)
		add_input(x, frame.scope, i);
	add_initialisers(x, frame.scope, g);
	run_nodes(x, &frame, g->node.n, g->node.at);
	for (int32_t i = 0; i < g->out.n; i++) {
		val v = onnx_find(x, frame.scope, g->out.at[i].name);

		add_output(x, &o, g->out.at[i].name, &v);
	}
	add_updates(x, &o);
	w->p = onnx_prune(x, o.value.n, o.value.at, o.as.at);
}

/* Throws again what says nothing of the model. */
static tn_status run_import(struct whole *w)
{
	tn_status s = env_run(w->x->e, import, w);

	if (s == TN_ENOMEM || s == TN_EINTERNAL)
		env_rethrow(w->x->e);
	return s;
}

static bool has_failed_by(const onnx_import *x, const char *rule)
{
	return strcmp(env_diag(x->e)->rule, rule) == 0;
}

onnx_program onnx_import_run(onnx_import *x)
{
	struct whole w = {.x = x};
	tn_status s = run_import(&w);

	/* what was not read may be why something else has failed */
	if (x->unasked.n > 0 && (s >= 0 || !has_failed_by(x, "onnx.operator")))
		no_attribute(x);
	if (s < 0)
		env_rethrow(x->e);
	return w.p;
}

void onnx_import_try(onnx_import *x)
{
	struct whole w = {.x = x};
	const tn_diag *d = env_diag(x->e);

	x->tries = true;
	/* values may still be given, and sizes be others */
	if (run_import(&w) < 0 && x->unasked.n == 0 && !x->has_assumed &&
		!has_failed_by(x, "onnx.operator") &&
		!has_failed_by(x, "onnx.value") && !has_failed_by(x, "onnx.dim"))
		*vec_push(x->a, &x->unasked) = (onnx_refusal){REFUSED_BUILD,
			.name = arena_strdup(x->a, d->file),
			.rule = arena_strdup(x->a, d->rule),
			.what = arena_strdup(x->a, d->text)};
}
