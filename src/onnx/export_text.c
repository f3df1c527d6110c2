/*
 * export_text.c: exports rows that need several ONNX operators, or one whose
 * inputs are made from attributes. A text describes them:
 *
 *     "Slice 0 @start:0 @start:0+count @axis:0 > o"
 *     "Gather 0 #index > o axis=#axis:0"
 *
 *     OP input ... > result ... name=value ...    steps are separated by ";"
 *
 *     0, 1 ..      operand           o, o1 ..     result of the call
 *     $a:d         the attribute a, or d if not given, a number of the type
 *                  of operand 0      $=d          d as such a number
 *     #a:d, #=d    the same, an i64  @a:d, @=d    the same, a list of i64
 *     a?, -        no input if the call does not give a; no input
 *     @a*v         as many v as a has numbers
 *     @a+b         added up          @a&b         concatenated, each
 *                  for all axes      @^a:d        extents of the results along
 *                  the axis a        anything else  a name within the text
 *
 * A call with an attribute that its text does not name is refused. "known" is
 * not an operator: it names attributes that the text handles in another way.
 */
#include "onnx/export.h"
#include "onnx/put.h"

#include <stdlib.h>

typedef struct text_row {
	const char *row, *text;
	const char *when; /* only if this flag is set */
	bool like;	  /* only if the result has the shape of operand 0 */
} text_row;

#define SOFTMAX_AND_SUM "Softmax a > p axis=-1; MatMul p 2 > o"
#define SCORES                                                                 \
	"Einsum 0 1 > s equation=...td,...ud->...tu; Mul s $scale > c; "

static const text_row table[] = {
	{.row = "silu", .text = "Sigmoid 0 > t; Mul 0 t > o"},
	{.row = "square", .text = "Mul 0 0 > o"},
	{.row = "squared_difference", .text = "Sub 0 1 > t; Mul t t > o"},
	{.row = "affine", .text = "Mul 0 $alpha:1 > t; Add t $beta:0 > o"},
	{.row = "addcmul", .text = "Mul 1 2 > t; Mul t $value:1 > u; "
				   "Add 0 u > o"},
	{.row = "clip", .text = "Clip 0 - $hi? > t; Clip t $lo? > o"},
	{.row = "masked_fill", .text = "Where 1 $value 0 > o"},
	{.row = "rsqrt", .text = "Sqrt 0 > t; Reciprocal t > o"},
	{.row = "ne", .text = "Equal 0 1 > t; Not t > o"},
	{.row = "isfinite", .text = "Abs 0 > t; Less t $=inf > o"},
	{.row = "gelu_tanh", .text = "Gelu 0 > o approximate=tanh"},
	{.row = "tanh_shrink", .text = "Tanh 0 > t; Sub 0 t > o"},
	{.row = "log_sigmoid", .text = "Neg 0 > t; Softplus t > u; Neg u > o"},
	{.row = "shrink", .text = "Shrink 0 > o lambd=$lambd:0.5 "
				  "bias=$bias:0"},
	{.row = "prelu", .text = "PRelu 0 1 > o", .like = true},
	{.row = "reduce_all", .text = "Cast 0 > t to=6; ReduceMin t @axes? > u "
		"keepdims=#keep:0; Cast u > o to=9"},
	{.row = "reduce_any", .text = "Cast 0 > t to=7; ReduceSum t @axes? > u "
		"keepdims=#keep:0; Cast u > o to=9"},
	{.row = "reduce_var", .text = "ReduceMean 0 @axes? > m keepdims=1; "
		"Sub 0 m > d; Mul d d > q; ReduceMean q @axes? > o "
		"keepdims=#keep:0"},
	{.row = "reduce_std", .text = "ReduceMean 0 @axes? > m keepdims=1; "
		"Sub 0 m > d; Mul d d > q; ReduceMean q @axes? > v "
		"keepdims=#keep:0; Sqrt v > o"},
	{.row = "narrow", .text = "Slice 0 @start:0 @start:0+count @axis:0 "
				  "> o"},
	{.row = "flip", .text = "Slice 0 @axes*-1 @axes*-9223372036854775808 "
				"@axes @axes*-1 > o"},
	{.row = "slice", .text = "Slice 0 @start @start+count @axes? > o"},
	{.row = "select", .text = "Gather 0 #index > o axis=#axis:0"},
	{.row = "split", .text = "Split 0 @^axis:0 > * axis=#axis:0; "
				 "known @sizes @parts"},
	{.row = "pad", .text = "Pad 0 @lo&hi $value:0 > o"},
	{.row = "pad_edge", .text = "Pad 0 @lo&hi > o mode=edge"},
	{.row = "pad_reflect", .text = "Pad 0 @lo&hi > o mode=reflect"},
	{.row = "pad_wrap", .text = "Pad 0 @lo&hi > o mode=wrap"},
	{.row = "cumsum", .text = "CumSum 0 #axis:0 > o"},
	{.row = "cumsum_exclusive", .text = "CumSum 0 #axis:0 > o exclusive=1"},
	{.row = "cumsum_reverse", .text = "CumSum 0 #axis:0 > o reverse=1"},
	{.row = "cumsum_reverse_exclusive",
		.text = "CumSum 0 #axis:0 > o reverse=1 exclusive=1"},
	{.row = "tril", .text = "Trilu 0 #k:0 > o upper=0"},
	{.row = "triu", .text = "Trilu 0 #k:0 > o upper=1"},
	{.row = "global_avg_pool",
		.text = "GlobalAveragePool 0 > t; Flatten t > o axis=1"},
	{.row = "global_max_pool",
		.text = "GlobalMaxPool 0 > t; Flatten t > o axis=1"},
	{.row = "outer", .text = "Unsqueeze 0 @=1 > t; Mul t 1 > o"},
	{.row = "vecdot", .text = "Mul 0 1 > t; ReduceSum t @=-1 > o "
				  "keepdims=0"},
	{.row = "addmm", .text = "Gemm 1 2 0 > o alpha=$alpha:1 beta=$beta:1"},
	{.row = "linear", .text = "Transpose 1 > t; MatMul 0 t > u; "
				  "Add u 2 > o"},
	{.row = "linear_nobias", .text = "Transpose 1 > t; MatMul 0 t > o"},
	{.row = "rms_norm", .text = "Mul 0 0 > t; ReduceMean t @=-1 > m "
		"keepdims=1; Add m $eps:1e-5 > e; Sqrt e > s; Div 0 s > n; "
		"Mul n 1 > o"},
	{.row = "depth_to_space", .text = "DepthToSpace 0 > o blocksize=#r"},
	{.row = "pixel_shuffle",
		.text = "DepthToSpace 0 > o blocksize=#r mode=CRD"},
	{.row = "space_to_depth", .text = "SpaceToDepth 0 > o blocksize=#r"},
	{.row = "gather_nd", .text = "GatherND 1 0 > o"},
	{.row = "topk", .text = "TopK 0 @count > * axis=#axis:-1 "
				"largest=#largest:1"},
	{.row = "attention", .when = "causal", .text = SCORES
		"Mul c $=0 > z; Sub z $=inf > n; Trilu n #=1 > m upper=1; "
		"Add c m > a; known #causal; " SOFTMAX_AND_SUM},
	{.row = "attention", .text = SCORES
		"known #causal; Identity c > a; " SOFTMAX_AND_SUM},
};

static bool is_set(const exporter *x, const char *flag)
{
	const ir_attr *a = export_attr(x, flag);

	return a != NULL && a->kind == ATTR_INT && a->i != 0;
}

static bool is_like(const exporter *x)
{
	const ir_type *o = &x->p->value.at[x->call->result[0]].type;
	const ir_type *i = &x->p->value.at[x->call->arg[0]].type;

	return o->rank == i->rank && !memcmp(o->shape, i->shape,
		(size_t)o->rank * sizeof *o->shape);
}

const char *export_text_of(const exporter *x)
{
	const char *name = ir_row_name(x->call->row);

	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const text_row *r = &table[i];

		if (!strcmp(r->row, name) &&
			(r->when == NULL || is_set(x, r->when)) &&
			(!r->like || is_like(x)))
			return r->text;
	}
	return NULL;
}

/* ---- words ---- */

typedef struct word {
	const char *at;
	size_t n;
} word;

static word next(const char **s)
{
	word w;

	while (**s == ' ')
		(*s)++;
	w.at = *s;
	if (**s == ';' || **s == '\0') {
		w.n = 0;
		return w;
	}
	w.n = strcspn(*s, " ;");
	*s += w.n;
	return w;
}

static bool is(word w, char c)
{
	return w.n == 1 && w.at[0] == c;
}

/* "name:default" or "name" or "=value" */
typedef struct term {
	const char *name; /* "": a constant */
	bool has_default;
	double value;
	const ir_attr *a; /* NULL: not given */
} term;

static term term_of(const exporter *x, const char *s, size_t n)
{
	term t = {0};
	size_t k = 0;

	while (k < n && s[k] != ':' && s[k] != '=' && s[k] != '?')
		k++;
	t.name = arena_strndup(x->a, s, k);
	if (k < n && s[k] != '?') {
		t.has_default = true;
		t.value = text_f64(arena_strndup(x->a, s + k + 1, n - k - 1),
			NULL);
	}
	t.a = k > 0 ? export_attr(x, t.name) : NULL;
	if (t.a == NULL && !t.has_default && !(k < n && s[k] == '?'))
		export_refuse(x, "export.attr", "the call does not give a "
			"value",
			t.name);
	if (t.a != NULL && t.a->kind != ATTR_INT && t.a->kind != ATTR_REAL &&
		t.a->kind != ATTR_INTS)
		export_refuse(x, "export.attr", "the value is not a number",
			t.name);
	return t;
}

static double number_of(const exporter *x, const term *t)
{
	if (t->a == NULL)
		return t->value;
	if (t->a->kind == ATTR_INTS)
		export_refuse(x, "export.attr", "the value is a list", t->name);
	return t->a->kind == ATTR_INT ? (double)t->a->i : t->a->f;
}

/*
 * Reads a list of at most `room` integers; all: one for each axis of operand 0.
 */
static int32_t list_of(
	const exporter *x, const term *t, bool all, int64_t *out)
{
	int32_t rank = x->p->value.at[x->call->arg[0]].type.rank;
	int32_t n = all ? rank : 1;

	if (t->a == NULL || t->a->kind != ATTR_INTS) {
		for (int32_t i = 0; i < n; i++)
			out[i] = (int64_t)number_of(x, t);
		return n;
	}
	if (t->a->n > TN_MAX_RANK || (all && t->a->n != rank))
		export_refuse(x, "export.attr", "there is not one integer for "
			"each axis",
			t->name);
	for (int32_t i = 0; i < t->a->n; i++)
		out[i] = t->a->ints[i];
	return t->a->n;
}

/*
 * Reads "a+b", the sums, "a&b", the concatenation, or "a*v"; returns the number
 * of integers.
 */
static int32_t integers(const exporter *x, word w, int64_t *out)
{
	size_t k = strcspn(w.at, "+&*; "), rest;
	bool two = k < w.n, behind = two && w.at[k] == '&';
	term t = term_of(x, w.at, two ? k : w.n);
	int64_t more[TN_MAX_RANK];
	int32_t n = list_of(x, &t, behind, out), m;

	if (!two)
		return n;
	for (int32_t i = 0; i < n && w.at[k] == '*'; i++)
		out[i] = strtoll(w.at + k + 1, NULL, 10);
	if (w.at[k] == '*')
		return n;
	rest = w.n - k - 1;
	t = term_of(x, w.at + k + 1, rest);
	m = list_of(x, &t, behind, more);
	if (!behind && m != n)
		export_refuse(x, "export.attr", "there is not one integer for "
			"each axis",
			t.name);
	for (int32_t i = 0; i < m; i++)
		if (behind)
			out[n + i] = more[i];
		else
			out[i] += more[i];
	return behind ? n + m : n;
}

static int32_t sizes(const exporter *x, word w, int64_t *out)
{
	const ir_call *c = x->call;
	term t = term_of(x, w.at, w.n);
	int64_t axis = (int64_t)number_of(x, &t);

	for (int32_t i = 0; i < c->n_results; i++) {
		const ir_type *r = &x->p->value.at[c->result[i]].type;

		out[i] = r->shape[axis < 0 ? axis + r->rank : axis];
	}
	return c->n_results;
}

/* ---- steps ---- */

/* Names inside a text are made distinct for each call. */
static const char *name_in(exporter *x, word w)
{
	const ir_call *c = x->call;
	int32_t k = w.n > 1 ? w.at[1] - '0' : 0;

	if (w.at[0] >= '0' && w.at[0] <= '9')
		return export_name(x, c->arg[w.at[0] - '0']);
	if (w.at[0] == 'o' && k >= 0 && k < c->n_results)
		return export_name(x, c->result[k]);
	return arena_printf(x->a, "%s.%.*s", export_name(x, c->result[0]),
		(int)w.n, w.at);
}

static const char *number_input(exporter *x, word w)
{
	ir_type t = {.dtype = x->p->value.at[x->call->arg[0]].type.dtype};
	char data[16] = {0};
	term u = term_of(x, w.at + 1, w.n - 1);

	if (u.a == NULL && !u.has_default)
		return "";
	if (w.at[0] == '#') {
		t.dtype = TN_I64;
		dtype_store_i64(TN_I64, data, 0, (int64_t)number_of(x, &u));
	} else if (dtype_is_float(t.dtype)) {
		dtype_store_f64(t.dtype, data, 0, number_of(x, &u));
	} else {
		dtype_store_i64(t.dtype, data, 0, (int64_t)number_of(x, &u));
	}
	return export_const(x, &t, data);
}

static const char *list_input(exporter *x, word w)
{
	enum { ROOM = 256 };
	int64_t *v = arena_array(x->a, int64_t, ROOM);
	word rest = {w.at + 1, w.n - 1};
	ir_type t = {.dtype = TN_I64, .rank = 1};

	if (rest.at[0] == '^') {
		if (x->call->n_results > ROOM)
			export_refuse(x, "export.row", "too many results", "");
		t.shape[0] = sizes(x, (word){rest.at + 1, rest.n - 1}, v);
	} else {
		if (rest.at[rest.n - 1] == '?') {
			term u = term_of(x, rest.at, rest.n);

			if (u.a == NULL)
				return "";
		}
		t.shape[0] = integers(x, rest, v);
		if (t.shape[0] == 0)
			export_refuse(x, "export.attr", "there are no axes", "");
	}
	return export_const(x, &t, v);
}

static void add_input(exporter *x, word w)
{
	const char *name;

	if (is(w, '-'))
		name = "";
	else if (w.at[0] == '$' || w.at[0] == '#')
		name = number_input(x, w);
	else if (w.at[0] == '@')
		name = list_input(x, w);
	else
		name = name_in(x, w);
	put_text(&x->node, 1, name);
}

static void add_text(exporter *x, const char *name, word w)
{
	str a = str_new(x->a);

	put_text(&a, 1, name);
	put_text(&a, 4, arena_strndup(x->a, w.at, w.n));
	put_int(&a, 20, 3);
	put_part(&x->node, 5, &a);
}

static void add_attr(exporter *x, word w, size_t eq)
{
	const char *name = arena_strndup(x->a, w.at, eq);
	word v = {w.at + eq + 1, w.n - eq - 1};
	term t;

	if (v.at[0] == '$' || v.at[0] == '#') {
		t = term_of(x, v.at + 1, v.n - 1);
		if (v.at[0] == '$')
			export_attr_real(x, name, number_of(x, &t));
		else
			export_attr_int(x, name, (int64_t)number_of(x, &t));
	} else if (v.at[0] == '-' || (v.at[0] >= '0' && v.at[0] <= '9')) {
		export_attr_int(x, name, strtoll(v.at, NULL, 10));
	} else {
		add_text(x, name, v);
	}
}

static void add_output(exporter *x, word w)
{
	if (!is(w, '*')) {
		put_text(&x->node, 2, name_in(x, w));
		return;
	}
	for (int32_t i = 0; i < x->call->n_results; i++)
		put_text(&x->node, 2, export_name(x, x->call->result[i]));
}

/* Exports one step; false: the text has ended. */
static bool step(exporter *x, const char **s)
{
	word op = next(s), w;
	bool behind = false, is_known = op.n == 5 && !memcmp(op.at, "known", 5);

	x->node = str_new(x->a);
	for (w = next(s); w.n > 0; w = next(s)) {
		const char *eq = memchr(w.at, '=', w.n);

		if (is_known)
			continue;
		if (is(w, '>'))
			behind = true;
		else if (!behind)
			add_input(x, w);
		else if (eq != NULL)
			add_attr(x, w, (size_t)(eq - w.at));
		else
			add_output(x, w);
	}
	if (!is_known) {
		put_text(&x->node, 4, arena_strndup(x->a, op.at, op.n));
		put_part(&x->graph, 1, &x->node);
	}
	if (**s == ';')
		(*s)++;
	return **s != '\0';
}

/*
 * Refuses attributes that the text does not name, because they would be lost.
 */
static void check_attrs(const exporter *x, const char *text)
{
	for (int32_t i = 0; i < x->call->n_attrs; i++) {
		const char *name = x->call->attr[i].name, *s = text;
		size_t n = strlen(name);
		bool known = false;

		while (!known && (s = strstr(s, name)) != NULL) {
			known = s > text && strchr("$#@+&^", s[-1]) != NULL &&
				strchr(":?+&* ;", s[n]) != NULL;
			s++;
		}
		if (!known)
			export_refuse(x, "export.attr", "the ONNX operators "
				"have no attribute for it", name);
	}
}

void export_run_text(exporter *x, const char *text)
{
	check_attrs(x, text);
	while (step(x, &text))
		;
}
