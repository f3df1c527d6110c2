/*
 * layer.c: the common part of all layers: construction under a name, and
 * evaluation.
 *
 *     nn_begin   name entered          "block0.fc."
 *     nn_weight  "weight" added        "block0.fc.weight"
 *     nn_end     name left
 */
#include "nn/local.h"

nn_making nn_begin(nn_site at, tn_params *p, const char *name,
	size_t said_bytes, size_t options_bytes, size_t n_bytes)
{
	nn_making m = {.at = at, .p = p, .c = tn_params_context(p)};

	if (tn_at_params_enter(at.file, at.line, p, "%s",
		    name != NULL ? name : "") < 0) {
		m.failed = true;
		m.p = NULL; /* no name was entered */
		return m;
	}
	if (said_bytes != options_bytes) {
		tn_at_fail(at.file, at.line, m.c, TN_EINVAL, "nn.options",
			"the options of layer %.60s have %zu bytes, not %zu: "
			"start from their INIT",
			name, said_bytes, options_bytes);
		m.failed = true;
		return m;
	}
	m.layer = tn_params_alloc(p, n_bytes);
	m.failed = m.layer == NULL;
	return m;
}

tn_layer *nn_end(nn_making *m)
{
	if (m->p != NULL && tn_params_leave(m->p) < 0)
		return NULL;
	if (m->failed)
		return NULL;
	m->layer->p = m->p;
	return m->layer;
}

void nn_want(nn_making *m, bool holds, const char *rule, const char *text)
{
	if (m->failed || holds)
		return;
	tn_at_fail(m->at.file, m->at.line, m->c, TN_EINVAL, rule, "%s", text);
	m->failed = true;
}

void nn_want_extent(nn_making *m, const char *what, int64_t extent)
{
	if (m->failed || extent > 0)
		return;
	tn_at_fail(m->at.file, m->at.line, m->c, TN_EINVAL, "nn.extent",
		"%s is %lld, and must be positive", what, (long long)extent);
	m->failed = true;
}

tn_tensor *nn_param(nn_making *m, const char *name, tn_dtype dtype,
	int32_t rank, const int64_t *shape, bool trained)
{
	tn_tensor *x = NULL;

	if (!m->failed)
		x = tn_at_params_make(m->at.file, m->at.line, m->p, name,
			dtype, rank, shape, trained);
	m->failed = m->failed || x == NULL;
	return x;
}

tn_tensor *nn_vector(nn_making *m, const char *name, tn_dtype dtype,
	int64_t n, double value)
{
	tn_tensor *x = nn_param(m, name, dtype, 1, &n, true);

	if (!m->failed && value != 0)
		m->failed = tn_at_init_constant(
				    m->at.file, m->at.line, x, value) < 0;
	return x;
}

tn_tensor *nn_weight(nn_making *m, const char *name, tn_dtype dtype,
	int32_t rank, const int64_t *shape, double gain)
{
	tn_tensor *x = nn_param(m, name, dtype, rank, shape, true);

	if (!m->failed)
		m->failed = tn_at_init_kaiming_uniform(
				    m->at.file, m->at.line, x, gain) < 0;
	return x;
}

tn_tensor *tn_at_nn_forward(
	const char *file, int32_t line, tn_layer *layer, tn_tensor *x)
{
	nn_site at = {file, line};

	if (layer != NULL)
		return layer->run(&at, layer, x);
	if (x != NULL || layer == NULL)
		tn_at_fail(file, line, tn_tensor_context(x), TN_EINVAL,
			"nn.layer", "the layer is NULL: the call that should "
				"have made it failed");
	return NULL;
}

tn_tensor *tn_at_nn_dropout(
	const char *file, int32_t line, tn_tensor *x, double p, bool training)
{
	tn_context *c = tn_tensor_context(x);
	tn_tensor *key, *out;

	if (!tn_is_valid(x)) {
		tn_at_fail(file, line, c, TN_EINVAL, "tensor.handle",
			"the input of dropout is not a valid tensor");
		return NULL;
	}
	if (!(p >= 0 && p < 1)) {
		tn_at_fail(file, line, c, TN_EINVAL, "nn.dropout",
			"a probability of %g is not within 0 <= p < 1", p);
		return NULL;
	}
	if (!training || p == 0)
		return x;
	key = tn_at_random_key(file, line, c);
	out = tn_at_dropout(file, line, x, key, p);
	tn_drop(key);
	return out;
}
