/*
 * transfer.c: tensors and their devices: tensors go from one to another; and what a
 * device has done so far.
 */
#include "api/shard.h"

#include <stdlib.h>

const char *tn_device_of(const tn_tensor *x)
{
	const tn_context *c = tn_is_valid(x) ? tn_tensor_context(x) : NULL;

	return c != NULL ? c->device->name : NULL;
}

tn_tensor *tn_at_to(const char *file, int32_t line, tn_context *c, tn_tensor *x)
{
	tn_context *from = tn_tensor_context(x);
	tn_tensor *y = NULL;
	const tn_diag *d;
	size_t n;
	void *data;

	if (!tn_is_valid(x)) {
		(void)tn_at_fail(file, line, c, TN_EINVAL, "tensor.handle",
			"the tensor is NULL, was dropped, or is the result of "
			"a failed call");
		return NULL;
	}
	n = (size_t)tn_tensor_n_elems(x) * tn_dtype_bytes(tn_tensor_dtype(x));
	data = malloc(n + 1);
	if (data == NULL) {
		(void)tn_at_fail(file, line, c, TN_ENOMEM, "memory",
			"no memory for %zu bytes of a tensor", n);
		return NULL;
	}
	if (tn_at_read(file, line, x, data, n) >= 0) {
		y = tn_at_tensor_new(file, line, c, tn_tensor_dtype(x),
			tn_tensor_rank(x), tn_tensor_shape(x), data);
	} else if (c != from) {
		d = tn_context_diag(from);
		(void)tn_at_fail(file, line, c, d->status, d->rule, "%s",
			d->text);
	}
	free(data);
	return y;
}

void tn_context_device_stats(const tn_context *c, tn_device_stats *out)
{
	run_usage u = {0};

	if (c == NULL)
		return;
	if (c->device->usage != NULL)
		c->device->usage(c->device, &u);
	*out = (tn_device_stats){.name = c->o.device,
		.bytes_used = u.bytes_used,
		.bytes_reserved = u.bytes_reserved,
		.n_launches = u.n_launches,
		.n_graphs = u.n_graphs,
		.n_host = c->n_host,
		.host = c->host_row != NULL ? c->host_row : "",
		.bytes_to_peers = c->shard != NULL ? c->shard->bytes_carried : 0,
		.bytes_by_host = c->shard != NULL ? c->shard->bytes_by_host : 0,
		.peers = api_peers(c),
		.n_asked = c->n_asked,
		.asked = c->asked != NULL ? c->asked : ""};
}
