/*
 * op_rnn.c: RNN, GRU and LSTM: one matrix product for the inputs of all steps,
 * and a loop over the steps with one for the state (loop.c).
 *
 *     RNN    h' = f(x w' + h r' + b)
 *     GRU    z, r gates; h' = (1 - z) g(..) + z h
 *     LSTM   i, o, f gates; c' = f c + i g(..); h' = o h(c')
 *
 * With sequence lengths, a state does not change after the end of its sequence,
 * and outputs are 0 there; this is correct for both directions.
 */
#include "onnx/fused.h"
#include "onnx/ops.h"
#include "onnx/quant.h"

enum { MAX_STEPS = 1 << 24 };

/* Activations: ONNX's names, rows, and the defaults of alpha and beta. */
static const struct known {
	const char *onnx, *row, *alpha, *beta; /* attributes of the row */
	double a, b;
} known[] = {
	{"Relu", "relu", NULL, NULL, 0, 0},
	{"Tanh", "tanh", NULL, NULL, 0, 0},
	{"Sigmoid", "sigmoid", NULL, NULL, 0, 0},
	{"Softsign", "softsign", NULL, NULL, 0, 0},
	{"Softplus", "softplus", NULL, NULL, 0, 0},
	{"Affine", "affine", "alpha", "beta", 1, 0},
	{"LeakyRelu", "leaky_relu", "alpha", NULL, 0.01, 0},
	{"ThresholdedRelu", "thresholded_relu", "alpha", NULL, 1, 0},
	{"HardSigmoid", "hard_sigmoid", "alpha", "beta", 0.2, 0.5},
	{"Elu", "elu", "alpha", NULL, 1, 0},
	{"ScaledTanh", "tanh", "alpha", "beta", 1, 1}, /* alpha tanh(beta x) */
};
enum { N_KNOWN = (int)(sizeof known / sizeof known[0]) };

typedef struct cell cell;
typedef struct step_fn {
	int32_t n_gates, n_activations;
	const char *defaults[3];
	/*
	 * computes the next state, given the part of the gates that the inputs
	 * of a step determine
	 */
	void (*step)(cell *c, int32_t gates);
} step_fn;

typedef struct act {
	const struct known *k;
	double alpha, beta;
} act;

/* One direction. */
struct cell {
	node *d;
	const step_fn *fn;
	int64_t hidden, batch, steps;
	/* weights of the state, their bias, peepholes; -1: none */
	int32_t r, rb, p;
	int32_t h, c;	  /* the state; c: the cell of LSTM */
	act f[3];
	double clip; /* 0: none */
	bool linear_before_reset, input_forget;
	bool is_masked; /* sequences have lengths */
	bool wants_all; /* the state of all steps is an output */
	/* weights are integers, [inputs, gates]: r with this scale; -1: floats */
	int32_t r_scale;
	bool is_quantised;
};

static int32_t activate(const cell *c, int32_t which, int32_t x)
{
	const act *f = &c->f[which];
	node *d = c->d;

	if (c->clip > 0)
		x = rowa(d, "clip", A(x), REAL("lo", -c->clip),
			REAL("hi", c->clip));
	if (f->k->alpha != NULL && !strcmp(f->k->row, "tanh")) {
		tn_dtype t = on_dt(d, x);

		x = row(d, "tanh", A(on_two(d, "mul", x,
					  on_scalar(d, t, f->beta))));
		return on_two(d, "mul", x, on_scalar(d, t, f->alpha));
	}
	if (f->k->alpha == NULL)
		return row(d, f->k->row, A(x));
	if (f->k->beta == NULL)
		return rowa(d, f->k->row, A(x), REAL(f->k->alpha, f->alpha));
	return rowa(d, f->k->row, A(x), REAL(f->k->alpha, f->alpha),
		REAL(f->k->beta, f->beta));
}

/* Gate k of v (b, gates * hidden) */
static int32_t gate(const cell *c, int32_t v, int32_t k)
{
	return on_narrow(c->d, v, on_rank_of(c->d, v) - 1, k * c->hidden, c->hidden);
}

/* x w', or x w for integers w with a scale: then x is quantised, too. */
static int32_t times(node *d, int32_t x, int32_t w, int32_t scale)
{
	struct quantised q;

	if (scale < 0)
		return on_two(d, "matmul", x, on_transpose(d, w, LIST(d, 1, 0)));
	quant_dynamic(d, x, &q);
	x = on_product(d, quant_less(d, q.ints, q.zero), w);
	return quant_scaled(d, x, q.scale, scale);
}

/* h r' plus its bias: (b, gates * hidden) */
static int32_t of_state(const cell *c, int32_t h, int32_t r, int32_t rb)
{
	int32_t o = times(c->d, h, r, c->r_scale);

	return on_two(c->d, "add", o, rb);
}

static void rnn_step(cell *c, int32_t gates)
{
	c->h = activate(c, 0, on_two(c->d, "add", gates,
				      of_state(c, c->h, c->r, c->rb)));
}

static void gru_step(cell *c, int32_t gates)
{
	node *d = c->d;
	int64_t n = c->hidden;
	int32_t zr = of_state(c, c->h, on_narrow(d, c->r, 0, 0, 2 * n),
		on_narrow(d, c->rb, 0, 0, 2 * n));
	int32_t rh = on_narrow(d, c->r, 0, 2 * n, n), new;
	int32_t bh = on_narrow(d, c->rb, 0, 2 * n, n), z, r;

	z = activate(c, 0, on_two(d, "add", gate(c, gates, 0), gate(c, zr, 0)));
	r = activate(c, 0, on_two(d, "add", gate(c, gates, 1), gate(c, zr, 1)));
	if (c->linear_before_reset)
		new = on_two(d, "mul", r, of_state(c, c->h, rh, bh));
	else
		new = of_state(c, on_two(d, "mul", r, c->h), rh, bh);
	new = activate(c, 1, on_two(d, "add", gate(c, gates, 2), new));
	/* (1 - z) new + z h */
	c->h = on_two(d, "add", new, on_two(d, "mul", z,
				       on_two(d, "sub", c->h, new)));
}

/* Adds peephole k of (3 * hidden) times the cell s to x. */
static int32_t peep(const cell *c, int32_t x, int32_t k, int32_t s)
{
	if (c->p < 0)
		return x;
	return on_two(c->d, "add", x, on_two(c->d, "mul", gate(c, c->p, k), s));
}

static void lstm_step(cell *c, int32_t gates)
{
	node *d = c->d;
	int32_t i, o, f, g;

	gates = on_two(d, "add", gates, of_state(c, c->h, c->r, c->rb));
	i = activate(c, 0, peep(c, gate(c, gates, 0), 0, c->c));
	f = activate(c, 0, peep(c, gate(c, gates, 2), 2, c->c));
	if (c->input_forget)
		f = on_two(d, "sub", on_scalar(d, on_dt(d, i), 1), i);
	g = activate(c, 1, gate(c, gates, 3));
	c->c = on_two(d, "add", on_two(d, "mul", f, c->c), on_two(d, "mul", i, g));
	o = activate(c, 0, peep(c, gate(c, gates, 1), 1, c->c));
	c->h = on_two(d, "mul", o, activate(c, 2, c->c));
}

/* Compares names of activations; ONNX ignores their case. */
static bool same_name(const char *x, const char *y)
{
	while (*x != '\0' && (*x | 0x20) == (*y | 0x20))
		x++, y++;
	return *x == *y;
}

static void set_activations(node *d, cell *c, int32_t direction)
{
	const wire_floats *alphas = on_reals(d, "activation_alpha");
	const wire_floats *betas = on_reals(d, "activation_beta");
	int32_t n = c->fn->n_activations, first = direction * n;
	int32_t ia = 0, ib = 0;
	bool given = on_has_attr(d, "activations");

	if (given && on_n_texts(d, "activations") < first + n)
		on_fail(d, "onnx.attr", "activations has %d entries, but %d "
			"are needed", on_n_texts(d, "activations"), first + n);
	/* alpha and beta list values only for activations that have them */
	for (int32_t i = 0; i < first + n; i++) {
		const char *name = given ? on_text_at(d, "activations", i)
					 : c->fn->defaults[i % n];
		const struct known *k = NULL;
		act f;

		for (int32_t j = 0; j < N_KNOWN; j++)
			if (same_name(known[j].onnx, name))
				k = &known[j];
		if (k == NULL)
			on_fail(d, "onnx.attr", "activation %.50s is not "
				"supported", name);
		f = (act){k, k->a, k->b};
		if (k->alpha != NULL && alphas != NULL && ia < alphas->v.n)
			f.alpha = (double)alphas->v.at[ia++];
		if (k->beta != NULL && betas != NULL && ib < betas->v.n)
			f.beta = (double)betas->v.at[ib++];
		if (i >= first)
			c->f[i - first] = f;
	}
}

/*
 * The part of weight input i for a direction, without that axis; -1: not given.
 */
static int32_t part(node *d, int32_t i, int32_t direction)
{
	return on_has(d, i) ? rowa(d, "select", A(on_in(d, i)),
				      INT("axis", 0), INT("index", direction))
			    : -1;
}

/* [t, b, 1]: is step t within each sequence? -1: all are */
static int32_t inside(const cell *c)
{
	node *d = c->d;
	int32_t n, t;

	if (!on_has(d, 4))
		return -1;
	n = on_reshape(d, on_cast_to(d, on_in(d, 4), TN_I64),
		LIST(d, 1, c->batch, 1));
	t = rowa(d, "iota", NO_ARGS, INTS("shape", LIST(d, c->steps, 1, 1)),
		DTYPE("dtype", TN_I64));
	return row(d, "gt", A(n, t));
}

static int32_t choose(node *d, int32_t mask, int32_t new, int32_t old)
{
	return mask < 0 ? new : row(d, "where", A(mask, new, old));
}

/*
 * The initial state from input i, (directions, b, h); zeros if it is not given.
 */
static int32_t first_state(
	const cell *c, int32_t i, int32_t direction, tn_dtype t)
{
	node *d = c->d;
	bool batch_first = on_int(d, "layout", 0) != 0;

	if (!on_has(d, i))
		return on_filled(d, t, LIST(d, c->batch, c->hidden), 0);
	return rowa(d, "select", A(on_in(d, i)), INT("axis", batch_first),
		INT("index", direction));
}

/* One round: the state, then what the inputs determine, and whether it counts. */
static void round_of(node *d, void *arg, const int32_t *in, int32_t *out)
{
	cell *c = arg;
	int32_t n = c->fn->n_gates == 4 ? 2 : 1;
	int32_t mask = c->is_masked ? in[n + 1] : -1;

	c->h = in[0];
	if (n == 2)
		c->c = in[1];
	c->fn->step(c, in[n]);
	if (c->wants_all)
		out[n] = choose(d, mask, c->h, on_scalar(d, on_dt(d, c->h), 0));
	out[0] = choose(d, mask, c->h, in[0]);
	if (n == 2)
		out[1] = choose(d, mask, c->c, in[1]);
}

/*
 * Integers of input i, less the zero point behind the scale of input `scale`:
 * each is one number of a direction, or one for each gate.
 */
static int32_t weights(cell *c, int32_t i, int32_t scale, int32_t direction,
	int32_t *s)
{
	node *d = c->d;
	int32_t w = part(d, i, direction), z = part(d, scale + 1, direction);
	tn_dtype t = on_dt(d, on_in(d, i));

	if (w < 0)
		on_fail(d, "onnx.input", "input %d is missing", (int)i);
	*s = part(d, scale, direction);
	if (*s < 0 || !dtype_is_float(on_dt(d, *s)) || (z >= 0 &&
			(on_dt(d, z) != t || on_numel(d, z) != on_numel(d, *s))))
		on_fail(d, "onnx.elem", "input %d needs scales that are floats, "
			"and as many zero points of its own type", (int)i);
	if (on_numel(d, *s) != 1 && on_numel(d, *s) != on_extent(d, w, 1))
		on_fail(d, "onnx.shape", "input %d has %lld scales; accepted "
			"are 1 and %lld", (int)i, (long long)on_numel(d, *s),
			(long long)on_extent(d, w, 1));
	return z < 0 ? on_cast_to(d, w, TN_I32) : quant_less(d, w, z);
}

/* What the inputs of all steps determine, in one product: [t, b, gates * hidden] */
static int32_t of_inputs(cell *c, int32_t x, int32_t direction)
{
	node *d = c->d;
	int64_t n = c->hidden * c->fn->n_gates;
	int32_t b = part(d, 3, direction), w, scale = -1, gates;

	if (c->is_quantised) {
		w = weights(c, 1, 8, direction, &scale);
		c->r = weights(c, 2, 10, direction, &c->r_scale);
	} else {
		w = part(d, 1, direction);
		c->r = part(d, 2, direction);
	}
	gates = times(d, x, w, scale);
	c->rb = on_filled(d, on_dt(d, x), LIST(d, n), 0);
	if (b >= 0) {
		gates = on_two(d, "add", gates, on_narrow(d, b, 0, 0, n));
		c->rb = on_narrow(d, b, 0, n, n);
	}
	return gates;
}

/* Runs one direction on x (t, b, i). Sets the state; returns it of all steps. */
static int32_t run_direction(cell *c, int32_t x, int32_t direction, bool back)
{
	node *d = c->d;
	tn_dtype t = on_dt(d, x);
	int32_t in[4], out[3], n = c->fn->n_gates == 4 ? 2 : 1, mask;
	on_loop l = {.n = c->steps, .n_carried = n, .n_rows = 1,
		.n_out = c->wants_all, .in = in, .body = round_of, .arg = c};

	in[n] = of_inputs(c, x, direction);
	in[0] = first_state(c, 5, direction, t);
	if (n == 2) {
		in[1] = first_state(c, 6, direction, t);
		c->p = part(d, 7, direction);
	}
	set_activations(d, c, direction);
	mask = inside(c);
	c->is_masked = mask >= 0;
	if (c->is_masked)
		in[n + l.n_rows++] = mask;
	for (int32_t i = n; back && i < n + l.n_rows; i++)
		in[i] = on_flip(d, in[i], 0);
	on_loop_run(d, &l, out);
	c->h = out[0];
	if (n == 2)
		c->c = out[1];
	if (!c->wants_all)
		return -1;
	return back ? on_flip(d, out[n], 0) : out[n];
}

static void recurrent(node *d, const step_fn *fn, bool is_quantised)
{
	const char *way = on_text(d, "direction", "forward");
	bool both = !strcmp(way, "bidirectional");
	bool back = !strcmp(way, "reverse");
	bool batch_first = on_int(d, "layout", 0) != 0;
	int32_t x = on_in(d, 0), n = both ? 2 : 1, h[2], c[2], all[2];
	cell k = {.d = d, .fn = fn, .c = -1, .p = -1, .r_scale = -1,
		.is_quantised = is_quantised, .wants_all = on_wants(d, 0)};

	if (on_rank_of(d, x) != 3 || on_rank_of(d, on_in(d, 1)) != 3 ||
		on_rank_of(d, on_in(d, 2)) != 3 ||
		on_extent(d, on_in(d, 2), 0) != n)
		on_fail(d, "onnx.shape", "inputs (t, b, i) and weights "
			"(%d, g, i), (%d, g, h) are needed", (int)n, (int)n);
	if (batch_first)
		x = on_transpose(d, x, LIST(d, 1, 0, 2));
	k.hidden = on_extent(d, on_in(d, 2), is_quantised ? 1 : 2);
	on_bound(d, "hidden_size", on_int(d, "hidden_size", k.hidden),
		k.hidden, k.hidden);
	/* opset 1; the node's outputs show it */
	on_ignore(d, "output_sequence");
	if (on_has(d, 4))
		on_bound(d, "the number of lengths", on_numel(d, on_in(d, 4)),
			on_extent(d, x, 1), on_extent(d, x, 1));
	k.steps = on_bound(d, "the number of steps", on_extent(d, x, 0), 1,
		MAX_STEPS);
	k.batch = on_extent(d, x, 1);
	k.clip = on_real(d, "clip", 0);
	k.linear_before_reset = on_int(d, "linear_before_reset", 0) != 0;
	k.input_forget = on_int(d, "input_forget", 0) != 0;
	for (int32_t i = 0; i < n; i++) {
		all[i] = run_direction(&k, x, i, back || i == 1);
		h[i] = k.h;
		c[i] = k.c;
	}
	/* (t, n, b, h), or with the batch first (b, t, n, h) and (b, n, h) */
	if (k.wants_all) {
		x = on_stack(d, n, all, 1);
		on_set(d, 0, batch_first
			? on_transpose(d, x, LIST(d, 2, 0, 1, 3)) : x);
	}
	on_set(d, 1, on_stack(d, n, h, batch_first));
	if (fn->n_gates == 4)
		on_set(d, 2, on_stack(d, n, c, batch_first));
}

void onnx_rnn(node *d)
{
	static const step_fn fn = {1, 1, {"Tanh"}, rnn_step};

	recurrent(d, &fn, false);
}

void onnx_gru(node *d)
{
	static const step_fn fn = {3, 2, {"Sigmoid", "Tanh"}, gru_step};

	recurrent(d, &fn, false);
}

static const step_fn lstm = {4, 3, {"Sigmoid", "Tanh", "Tanh"}, lstm_step};

void onnx_lstm(node *d)
{
	recurrent(d, &lstm, false);
}

/* The weights are integers; inputs and state become integers in each round. */
void onnx_dynamic_lstm(node *d)
{
	recurrent(d, &lstm, true);
}
