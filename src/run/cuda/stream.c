/*
 * stream.c: the order of what the device does here and of what other libraries have
 * it do: by an event that one stream records and the other one waits for. The host
 * waits for neither.
 */
#include "run/cuda/local.h"

void *cuda_stream(run_device *base)
{
	cuda_device *d = (cuda_device *)base;

	cuda_enter(d); /* it is made when the device is first used */
	cuda_leave(d);
	return d->stream;
}

/* What `then` is given from now on waits for what `first` has to do. */
static void put_in_order(cuda_device *d, cu_stream first, cu_stream then)
{
	cu_result r = d->l.event_record(d->order, first);

	if (r == CU_OK)
		r = d->l.stream_after(then, d->order, 0);
	cuda_check(d, r, "cannot wait for a stream", "");
	cuda_leave(d);
}

void cuda_follow(run_device *base, void *stream)
{
	cuda_device *d = (cuda_device *)base;

	cuda_flush(d);
	cuda_enter(d);
	put_in_order(d, stream, d->stream);
}

void cuda_lead(run_device *base, void *stream)
{
	cuda_device *d = (cuda_device *)base;

	cuda_flush(d);
	cuda_enter(d);
	put_in_order(d, d->stream, stream);
}
