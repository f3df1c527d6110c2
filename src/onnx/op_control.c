/*
 * op_control.c: If, Loop, Scan, sequences and optionals. The import resolves
 * all of them: conditions and trip counts are known then, so a branch is
 * chosen, a loop has as many rounds (loop.c) or is unrolled, and a sequence is a
 * list of values.
 *
 *     Loop(3, true, s){s' = s + 1}   add, add, add
 */
#include "onnx/ops.h"

enum { MAX_ROUNDS = 1 << 16, MAX_LISTED = 1 << 22 };

static bool host_bool(node *d, const val *v)
{
	if (v->kind != VAL_TENSOR || on_numel(d, v->v) != 1 ||
		dtype_is_float(on_dt(d, v->v)))
		on_fail(d, "onnx.type", "the condition must be a single bool or "
			"integer");
	return dtype_load_i64(on_dt(d, v->v), onnx_host(d->x, v->v), 0) != 0;
}

static const val *seq_in(node *d, int32_t i)
{
	if (on_val(d, i)->kind != VAL_SEQUENCE)
		on_fail(d, "onnx.type", "input %d is not a sequence", (int)i);
	return on_val(d, i);
}

static val tensor_val(node *d, int32_t v, int32_t elem)
{
	(void)d;
	return (val){.kind = VAL_TENSOR, .v = v, .elem = elem};
}

static val i64_val(node *d, int64_t i)
{
	int64_t *data = on_list_new(d, 1, i).at;

	return tensor_val(d, on_constant(d, TN_I64, on_list_new(d, 0, 0), data),
		onnx_dtype_elem(TN_I64));
}

static val bool_val(node *d, bool b)
{
	return tensor_val(d, on_scalar(d, TN_BOOL, b), onnx_dtype_elem(TN_BOOL));
}

static const onnx_graph *body(node *d, int32_t n_out)
{
	const onnx_graph *g = on_graph(d, "body");

	if (g->out.n < n_out)
		on_fail(d, "onnx.graph", "the body has %d outputs, but at "
			"least %d are needed", (int)g->out.n, (int)n_out);
	return g;
}

void onnx_if(node *d)
{
	const onnx_graph *g;
	val *out;

	on_in(d, 0);
	on_ignore(d, "then_branch");
	on_ignore(d, "else_branch");
	g = on_graph(d, host_bool(d, on_val(d, 0)) ? "then_branch"
						: "else_branch");
	out = arena_array(d->x->a, val, g->out.n + 1);
	d->x->run_graph(d, g, 0, NULL, out);
	for (int32_t i = 0; i < d->n_out && i < g->out.n; i++)
		on_set_val(d, i, out[i]);
}

/* ---- loops ---- */

/* The values that the rounds of a body have collected for one output. */
typedef struct pile {
	VEC(int32_t) v;
	int32_t elem;
} pile;

static void add_to(node *d, pile *p, const val *v)
{
	if (v->kind != VAL_TENSOR)
		on_fail(d, "onnx.type", "a value that a loop collects is not "
			"a tensor");
	*vec_push(d->x->a, &p->v) = v->v;
	p->elem = v->elem;
}

/*
 * Stacks the collected values along a new axis, which has extent 0 if there are
 * none.
 */
static val stacked(
	node *d, const pile *p, int32_t axis, bool back, const onnx_port *port)
{
	int32_t n = p->v.n, *part = arena_array(d->x->a, int32_t, n + 1), r;

	if (n == 0) {
		list shape = on_list_new(d, port->type.rank + 1, 0);

		for (int32_t i = 0; i < port->type.rank; i++)
			if (port->type.dim[i] > 0)
				shape.at[i + 1] = port->type.dim[i];
		return tensor_val(d,
			on_filled(d, on_elem_dtype(d, port->type.elem), shape, 0),
			port->type.elem);
	}
	r = on_rank_of(d, p->v.at[0]) + 1;
	axis = on_axis(d, axis, r);
	for (int32_t i = 0; i < n; i++)
		part[i] = on_unsqueeze(d, p->v.at[back ? n - 1 - i : i], axis);
	return tensor_val(d, on_concat(d, n, part, axis), p->elem);
}

/*
 * The body of Loop or Scan as that of a loop, with ONNX's element types of what
 * goes through it.
 */
typedef struct round_job {
	const onnx_graph *g;
	int32_t n_state, n_rows, n_out;
	bool is_loop; /* the row is the number of the round; it is not Scan's */
	int32_t *elem; /* of the states, then of the rows */
	int32_t *out_elem; /* of rows that it makes */
} round_job;

static int32_t result_of(node *d, const val *v, int32_t elem)
{
	if (v->kind != VAL_TENSOR || (elem != 0 && v->elem != elem))
		on_fail(d, "onnx.round", "what a loop carries or collects is "
			"not a tensor, or changes its type");
	return v->v;
}

static void round_of(node *d, void *arg, const int32_t *in, int32_t *out)
{
	const round_job *j = arg;
	int32_t n = j->n_state + j->n_rows, first = j->is_loop ? 2 : 0;
	val *x = arena_array(d->x->a, val, n + 3);
	val *y = arena_array(d->x->a, val, j->g->out.n + 1);
	const val *made = y + j->is_loop;

	if (j->is_loop) {
		x[0] = tensor_val(d, in[j->n_state], onnx_dtype_elem(TN_I64));
		x[1] = bool_val(d, true);
		n = j->n_state;
	}
	for (int32_t i = 0; i < n; i++)
		x[first + i] = tensor_val(d, in[i], j->elem[i]);
	d->x->run_graph(d, j->g, first + n, x, y);
	if (j->is_loop && !host_bool(d, &y[0]))
		on_fail(d, "onnx.round", "the loop ends earlier");
	for (int32_t i = 0; i < j->n_state + j->n_out; i++)
		out[i] = result_of(d, &made[i],
			i < j->n_state ? j->elem[i] : 0);
	for (int32_t i = 0; i < j->n_out; i++)
		j->out_elem[i] = made[j->n_state + i].elem;
}

/*
 * Runs states and rows [n, ..] through a loop; false: it must be unrolled. out:
 * the states at the end, then what it collects, [n, ..].
 */
static bool run_as_loop(node *d, round_job *j, int64_t n, const val *in, val *out)
{
	int32_t n_in = j->n_state + j->n_rows, n_out = j->n_state + j->n_out;
	int32_t *v = arena_array(d->x->a, int32_t, n_in + 1);
	int32_t *y = arena_array(d->x->a, int32_t, n_out + 1);
	const on_loop l = {.n = n, .n_carried = j->n_state,
		.n_rows = j->n_rows, .n_out = j->n_out, .in = v,
		.body = round_of, .arg = j};

	j->elem = arena_array(d->x->a, int32_t, n_in + 1);
	j->out_elem = arena_array(d->x->a, int32_t, j->n_out + 1);
	for (int32_t i = 0; i < n_in; i++) {
		if (in[i].kind != VAL_TENSOR)
			return false;
		v[i] = in[i].v;
		j->elem[i] = in[i].elem;
	}
	if (n_out == 0 || !on_loop_call(d, &l, y))
		return false;
	for (int32_t i = 0; i < n_out; i++)
		out[i] = tensor_val(d, y[i], i < j->n_state
			? j->elem[i] : j->out_elem[i - j->n_state]);
	return true;
}

/* A Loop of n rounds, unless it ends earlier. */
static bool loop_of(node *d, const onnx_graph *g, int32_t n_state, int64_t n)
{
	round_job j = {.g = g, .n_state = n_state, .n_rows = 1,
		.n_out = g->out.n - n_state - 1, .is_loop = true};
	val *in, *out;

	if (n < 1 || n > MAX_ROUNDS)
		return false;
	in = arena_array(d->x->a, val, n_state + 1);
	out = arena_array(d->x->a, val, g->out.n + 1);
	for (int32_t i = 0; i < n_state; i++)
		in[i] = *on_val(d, i + 2);
	in[n_state] = tensor_val(d,
		rowa(d, "iota", NO_ARGS, INTS("shape", LIST(d, n)),
			DTYPE("dtype", TN_I64)),
		onnx_dtype_elem(TN_I64));
	if (!run_as_loop(d, &j, n, in, out))
		return false;
	for (int32_t i = 0; i < n_state + j.n_out; i++)
		on_set_val(d, i, out[i]);
	return true;
}

void onnx_loop(node *d)
{
	int32_t n = d->n_in > 2 ? d->n_in - 2 : 0; /* carried values */
	const onnx_graph *g = body(d, n + 1);
	int32_t n_pile = g->out.n - n - 1;
	int64_t most = on_has(d, 0) ? on_host_int(d, 0) : INT64_MAX;
	bool go = !on_has(d, 1) || host_bool(d, on_val(d, 1));
	val *in = arena_array(d->x->a, val, n + 2);
	val *out = arena_array(d->x->a, val, g->out.n + 1);
	pile *piles = arena_array(d->x->a, pile, n_pile + 1);

	for (int32_t i = 0; i < n; i++)
		in[i + 2] = *on_val(d, i + 2);
	if (go && loop_of(d, g, n, most))
		return;
	for (int64_t k = 0; k < most && go; k++) {
		if (k == MAX_ROUNDS)
			on_fail(d, "onnx.size", "a loop has more than %d "
				"rounds",
				MAX_ROUNDS);
		in[0] = i64_val(d, k);
		in[1] = bool_val(d, true);
		d->x->run_graph(d, g, n + 2, in, out);
		for (int32_t i = 0; i < n; i++)
			in[i + 2] = out[i + 1];
		for (int32_t i = 0; i < n_pile; i++)
			add_to(d, &piles[i], &out[n + 1 + i]);
		go = host_bool(d, &out[0]);
	}
	for (int32_t i = 0; i < n; i++)
		on_set_val(d, i, in[i + 2]);
	for (int32_t i = 0; i < n_pile; i++)
		on_set_val(d, n + i, stacked(d, &piles[i], 0, false,
						  &g->out.at[n + 1 + i]));
}

static int64_t at_or(const list *l, int32_t i, int64_t otherwise)
{
	return i < l->n ? l->at[i] : otherwise;
}

/* Element k of an axis, without the axis. */
static val element(node *d, const val *v, int32_t axis, int64_t k)
{
	return tensor_val(d, rowa(d, "select", A(v->v), INT("axis", axis),
				     INT("index", k)),
		v->elem);
}

typedef struct scan_job {
	const onnx_graph *g;
	int32_t n_state, n_scan, n_out;
	list in_axes, in_back, out_axes, out_back;
	int32_t shift; /* number of axes before those that attributes count */
} scan_job;

static scan_job scan_of(node *d, int32_t first)
{
	scan_job s = {0};

	s.n_scan = (int32_t)on_bound(d, "num_scan_inputs",
		on_int(d, "num_scan_inputs", 1), 1, d->n_in - first);
	s.n_state = d->n_in - first - s.n_scan;
	s.g = body(d, s.n_state);
	s.n_out = s.g->out.n - s.n_state;
	s.in_axes = s.in_back = s.out_axes = s.out_back = on_list_new(d, 0, 0);
	on_list(d, "scan_input_axes", &s.in_axes);
	on_list(d, first > 0 ? "directions" : "scan_input_directions",
		&s.in_back);
	on_list(d, "scan_output_axes", &s.out_axes);
	on_list(d, "scan_output_directions", &s.out_back);
	return s;
}

/* Rows first, in the order of the rounds; and back. */
static bool scan_as_loop(node *d, const scan_job *s, int64_t rounds,
	const val *in, val *out)
{
	int32_t n = s->n_state + s->n_scan;
	round_job j = {.g = s->g, .n_state = s->n_state, .n_rows = s->n_scan,
		.n_out = s->n_out};
	val *x = arena_array(d->x->a, val, n + 1);

	memcpy(x, in, (size_t)n * sizeof *x);
	for (int32_t i = 0; i < s->n_scan; i++) {
		val *v = &x[s->n_state + i];

		v->v = on_move_axis(d, v->v,
			on_axis(d, at_or(&s->in_axes, i, 0),
				on_rank_of(d, v->v)), 0);
		if (at_or(&s->in_back, i, 0) != 0)
			v->v = on_flip(d, v->v, 0);
	}
	if (!run_as_loop(d, &j, rounds, x, out))
		return false;
	for (int32_t i = 0; i < s->n_out; i++) {
		val *v = &out[s->n_state + i];

		if (at_or(&s->out_back, i, 0) != 0)
			v->v = on_flip(d, v->v, 0);
		v->v = on_move_axis(d, v->v, 0,
			on_axis(d, at_or(&s->out_axes, i, 0),
				on_rank_of(d, v->v)));
	}
	return true;
}

/* in: states, then scanned tensors; out: states, then collected values */
static void scan(node *d, const scan_job *s, const val *in, val *out)
{
	int32_t n = s->n_state + s->n_scan;
	val *arg = arena_array(d->x->a, val, n + 1);
	val *res = arena_array(d->x->a, val, s->g->out.n + 1);
	pile *piles = arena_array(d->x->a, pile, s->n_out + 1);
	int64_t rounds = -1;

	memcpy(arg, in, (size_t)s->n_state * sizeof *arg);
	for (int32_t i = 0; i < s->n_scan; i++) {
		const val *v = &in[s->n_state + i];
		int32_t axis;

		if (v->kind != VAL_TENSOR)
			on_fail(d, "onnx.type", "a value that is scanned is "
				"not a tensor");
		axis = on_axis(d, at_or(&s->in_axes, i, 0), on_rank_of(d, v->v));
		if (rounds >= 0 && rounds != on_extent(d, v->v, axis))
			on_fail(d, "onnx.shape", "the values that are scanned "
						 "have different lengths");
		rounds = on_extent(d, v->v, axis);
	}
	on_bound(d, "the number of rounds", rounds, 0, MAX_ROUNDS);
	if (scan_as_loop(d, s, rounds, in, out))
		return;
	for (int64_t k = 0; k < rounds; k++) {
		for (int32_t i = 0; i < s->n_scan; i++) {
			const val *v = &in[s->n_state + i];
			bool back = at_or(&s->in_back, i, 0) != 0;

			arg[s->n_state + i] = element(d, v,
				on_axis(d, at_or(&s->in_axes, i, 0),
					on_rank_of(d, v->v)),
				back ? rounds - 1 - k : k);
		}
		d->x->run_graph(d, s->g, n, arg, res);
		memcpy(arg, res, (size_t)s->n_state * sizeof *arg);
		for (int32_t i = 0; i < s->n_out; i++)
			add_to(d, &piles[i], &res[s->n_state + i]);
	}
	memcpy(out, arg, (size_t)s->n_state * sizeof *out);
	for (int32_t i = 0; i < s->n_out; i++)
		out[s->n_state + i] = stacked(d, &piles[i],
			(int32_t)at_or(&s->out_axes, i, 0),
			at_or(&s->out_back, i, 0) != 0,
			&s->g->out.at[s->n_state + i]);
}

void onnx_scan(node *d)
{
	scan_job s = scan_of(d, 0);
	val *out = arena_array(d->x->a, val, s.g->out.n + 1);

	scan(d, &s, on_vals(d), out);
	for (int32_t i = 0; i < d->n_out && i < s.g->out.n; i++)
		on_set_val(d, i, out[i]);
}

/*
 * Scan of opset 8 scans each element of a batch separately; input 0 has the
 * lengths.
 */
void onnx_scan8(node *d)
{
	scan_job s = scan_of(d, 1);
	int32_t n = s.n_state + s.n_scan;
	val *in = arena_array(d->x->a, val, n + 1);
	val *out = arena_array(d->x->a, val, s.g->out.n + 1);
	pile *piles = arena_array(d->x->a, pile, s.g->out.n + 1);
	int64_t n_batch;

	if (on_has(d, 0))
		on_fail(d, "onnx.input", "sequence lengths are not supported");
	if (on_rank_of(d, on_in(d, 1)) < 1)
		on_fail(d, "onnx.shape", "a state needs a batch axis");
	n_batch = on_bound(d, "the batch", on_extent(d, on_in(d, 1), 0), 1,
		MAX_ROUNDS);
	for (int64_t b = 0; b < n_batch; b++) {
		for (int32_t i = 0; i < n; i++) {
			on_in(d, i + 1);
			in[i] = element(d, on_val(d, i + 1), 0, b);
		}
		scan(d, &s, in, out);
		for (int32_t i = 0; i < s.g->out.n; i++)
			add_to(d, &piles[i], &out[i]);
	}
	for (int32_t i = 0; i < d->n_out && i < s.g->out.n; i++)
		on_set_val(d, i, stacked(d, &piles[i], 0, false,
					      &s.g->out.at[i]));
}

/* ---- sequences ---- */

/*
 * Sets output i to a sequence. Each sequence is a new list, so a loop that
 * appends costs the square of its rounds. ONNX has no sequences of sequences,
 * and walking nested ones with shared elements could take exponential time:
 * refused.
 */
static void set_seq(node *d, int32_t i, int32_t n, const val *at)
{
	val v = {.kind = VAL_SEQUENCE, .n = n};
	val *own;

	d->x->n_listed += n;
	if (d->x->n_listed > MAX_LISTED)
		on_fail(d, "onnx.size", "the sequences have more than 2^22 "
			"elements in all");
	v.at = own = arena_array(d->x->a, val, n + 1);
	for (int32_t k = 0; k < n; k++) {
		if (at[k].kind != VAL_TENSOR)
			on_fail(d, "onnx.type", "an element of a sequence is "
				"not a tensor");
		own[k] = at[k];
	}
	on_set_val(d, i, v);
}

void onnx_sequence_construct(node *d)
{
	set_seq(d, 0, d->n_in, on_vals(d));
}

void onnx_sequence_empty(node *d)
{
	on_ignore(d, "dtype");
	set_seq(d, 0, 0, d->in);
}

/* An index in a sequence; a negative one counts from the end. */
static int32_t place(node *d, int32_t i, int32_t n, int32_t most)
{
	int64_t at = on_has(d, i) ? on_host_int(d, i) : most;

	at = at < 0 ? at + n : at;
	return (int32_t)on_bound(d, "a position in a sequence", at, 0, most);
}

void onnx_sequence_at(node *d)
{
	const val *s = seq_in(d, 0);

	on_set_val(d, 0, s->at[place(d, 1, s->n, s->n - 1)]);
}

void onnx_sequence_insert(node *d)
{
	const val *s = seq_in(d, 0);
	val *at = arena_array(d->x->a, val, s->n + 1);
	int32_t k = place(d, 2, s->n, s->n);

	on_in(d, 1);
	for (int32_t i = 0; i <= s->n; i++)
		at[i] = i == k ? *on_val(d, 1) : s->at[i > k ? i - 1 : i];
	set_seq(d, 0, s->n + 1, at);
}

void onnx_sequence_erase(node *d)
{
	const val *s = seq_in(d, 0);
	val *at = arena_array(d->x->a, val, s->n + 1);
	int32_t k = place(d, 1, s->n, s->n - 1);

	for (int32_t i = 0; i + 1 < s->n; i++)
		at[i] = s->at[i >= k ? i + 1 : i];
	set_seq(d, 0, s->n - 1, at);
}

void onnx_sequence_length(node *d)
{
	on_set_val(d, 0, i64_val(d, seq_in(d, 0)->n));
}

void onnx_concat_from_sequence(node *d)
{
	const val *s = seq_in(d, 0);
	int32_t *v = arena_array(d->x->a, int32_t, s->n + 1), axis;
	bool is_new = on_int(d, "new_axis", 0) != 0;

	if (s->n == 0)
		on_fail(d, "onnx.shape", "the sequence is empty");
	for (int32_t i = 0; i < s->n; i++) {
		if (s->at[i].kind != VAL_TENSOR)
			on_fail(d, "onnx.type", "element %d of the sequence is "
				"not a tensor", i);
		v[i] = s->at[i].v;
	}
	axis = on_axis(d, on_int(d, "axis", 0), on_rank_of(d, v[0]) + is_new);
	for (int32_t i = 0; i < s->n && is_new; i++)
		v[i] = on_unsqueeze(d, v[i], axis);
	on_set_elem(d, 0, on_concat(d, s->n, v, axis), s->at[0].elem);
}

void onnx_split_to_sequence(node *d)
{
	int32_t x = on_in(d, 0), elem = on_elem(d, 0);
	int32_t axis = on_axis(d, on_int(d, "axis", 0), on_rank_of(d, x));
	int64_t n = on_extent(d, x, axis), at = 0, part = 1;
	bool squeeze = on_int(d, "keepdims", 1) == 0 && !on_has(d, 1);
	list sizes;
	val *out;

	on_bound(d, "an extent", n, 0, MAX_ROUNDS);
	if (on_has(d, 1) && on_rank_of(d, on_in(d, 1)) == 1) {
		sizes = on_ints(d, 1);
		on_check_parts(d, sizes, n);
	} else {
		if (on_has(d, 1))
			part = on_bound(d, "the size of a part",
				on_host_int(d, 1), 1, INT64_C(1) << 40);
		sizes = on_list_new(d, (int32_t)((n + part - 1) / part), part);
	}
	out = arena_array(d->x->a, val, sizes.n + 1);
	for (int32_t i = 0; i < sizes.n; i++) {
		int64_t size = sizes.at[i] < n - at ? sizes.at[i] : n - at;
		int32_t v = on_narrow(d, x, axis, at, on_bound(d, "a part", size,
							   0, n));

		out[i] = tensor_val(
			d, squeeze ? on_drop_axis(d, v, axis) : v, elem);
		at += size;
	}
	set_seq(d, 0, sizes.n, out);
}

void onnx_sequence_map(node *d)
{
	const onnx_graph *g = body(d, d->n_out);
	const val *s = seq_in(d, 0);
	val *in = arena_array(d->x->a, val, d->n_in + 1);
	val *out = arena_array(d->x->a, val, g->out.n + 1);
	val *all = arena_array(d->x->a, val,
		on_bound(d, "the number of elements made",
			(int64_t)d->n_out * s->n, 0, MAX_LISTED) + 1);

	for (int32_t k = 0; k < s->n; k++) {
		for (int32_t i = 0; i < d->n_in; i++) {
			in[i] = *on_val(d, i);
			if (in[i].kind != VAL_SEQUENCE)
				continue;
			if (in[i].n != s->n)
				on_fail(d, "onnx.shape", "the sequences have "
							 "different lengths");
			in[i] = in[i].at[k];
		}
		d->x->run_graph(d, g, d->n_in, in, out);
		for (int32_t i = 0; i < d->n_out; i++)
			all[i * s->n + k] = out[i];
	}
	for (int32_t i = 0; i < d->n_out; i++)
		set_seq(d, i, s->n, all + i * s->n);
}

/* ---- optionals ---- */

void onnx_optional(node *d)
{
	on_ignore(d, "type");
	on_set_val(d, 0, *on_val(d, 0));
}

void onnx_optional_get(node *d)
{
	if (on_val(d, 0)->kind == VAL_NONE)
		on_fail(d, "onnx.value", "the optional has no element");
	onnx_identity(d);
}

void onnx_has_element(node *d)
{
	on_set_val(d, 0, bool_val(d, on_has(d, 0)));
}
