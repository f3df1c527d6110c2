/*
 * current.c: the context of the driver, which is the thread's current one only
 * during a call, and what is said when a call fails.
 *
 * It is the primary context, which other libraries of the process share.
 */
#include "run/cuda/local.h"

/* ---- current or not ---------------------------------------------------- */

static _Noreturn void fail_lost(const cuda_device *d)
{
	env_fail(arena_env(d->a), TN_EIO, "device.lost", (loc){0}, "%s",
		d->lost);
}

bool cuda_note_lost(cuda_device *d, cu_result r)
{
	/* those after which the driver refuses every call: of the device's
	 * hardware, of a kernel that broke off, of a context that is gone */
	bool lost = r == 4 || r == 46 || r == 214 || r == 220 || r == 226 ||
		r == 700 || r == 702 || r == 709 || r == 710 ||
		(r >= 714 && r <= 719) || r == 999;

	if (!lost || d->lost != NULL)
		return lost;
	if (d->n_launched == 0)
		d->lost = arena_printf(d->s.tmp, "the device %s stopped: %s; "
			"what its memory contained is lost: free the context",
			d->base.name, cuda_error(&d->l, d->s.tmp, r));
	else
		d->lost = arena_printf(d->s.tmp, "the device %s stopped: %s; "
			"it had to run %s%s%s (%lld in all) since it was last "
			"waited for; what its memory contained is lost: free "
			"the context",
			d->base.name, cuda_error(&d->l, d->s.tmp, r),
			d->first_launch, d->n_launched > 1 ? " .. " : "",
			d->n_launched > 1 ? d->last_launch : "",
			(long long)d->n_launched);
	d->lost = arena_strdup(d->a, d->lost);
	return true;
}

void cuda_leave(cuda_device *d)
{
	cu_context was;

	(void)d->l.pop(&was);
}

void cuda_check(
	cuda_device *d, cu_result r, const char *what, const char *which)
{
	if (r == CU_OK)
		return;
	cuda_leave(d);
	if (cuda_note_lost(d, r))
		fail_lost(d);
	env_fail(arena_env(d->a), r == CU_NO_MEMORY ? TN_ENOMEM : TN_EIO,
		r == CU_NO_MEMORY ? "device.memory" : "device.launch", (loc){0},
		"%s: %s%s%s: %s", d->base.name, what, which[0] != '\0' ? " " : "",
		which, cuda_error(&d->l, d->s.tmp, r));
}

static cu_result begin(cuda_device *d)
{
	cu_result r = d->l.stream_new(&d->stream, CU_OWN_STREAM);
	void *stage = NULL;

	if (r == CU_OK)
		r = d->l.pin(&stage, (size_t)CUDA_SLOTS * CUDA_SLOT_BYTES, 0);
	d->stage = stage;
	for (int32_t i = 0; r == CU_OK && i < CUDA_SLOTS; i++)
		r = d->l.event_new(&d->idle[i], CU_NO_TIMES);
	if (r == CU_OK)
		r = d->l.event_new(&d->order, CU_NO_TIMES);
	return r;
}

void cuda_end(cuda_device *d)
{
	for (int32_t i = 0; i < CUDA_SLOTS; i++) {
		if (d->idle[i] != NULL)
			d->l.event_free(d->idle[i]);
		d->idle[i] = NULL;
	}
	if (d->order != NULL)
		d->l.event_free(d->order);
	d->order = NULL;
	if (d->stage != NULL)
		d->l.unpin(d->stage);
	d->stage = NULL;
	if (d->stream != NULL)
		d->l.stream_free(d->stream);
	d->stream = NULL;
}

static void start(cuda_device *d)
{
	cu_context context = NULL;
	cu_result r = d->l.retain(&context, d->id);

	if (r == CU_OK) {
		r = d->l.push(context);
		if (r == CU_OK) {
			r = begin(d);
			if (r != CU_OK)
				cuda_end(d);
			cuda_leave(d);
		}
		if (r != CU_OK)
			d->l.release(d->id);
	}
	if (r != CU_OK)
		env_fail(arena_env(d->a),
			r == CU_NO_MEMORY ? TN_ENOMEM : TN_EIO,
			r == CU_NO_MEMORY ? "device.memory" : "device.start",
			(loc){0}, "%s cannot be used: %s", d->base.name,
			cuda_error(&d->l, d->s.tmp, r));
	d->context = context;
}

void cuda_enter(cuda_device *d)
{
	cu_result r;

	if (d->lost != NULL)
		fail_lost(d);
	if (d->context == NULL)
		start(d);
	r = d->l.push(d->context);
	if (r == CU_OK)
		return;
	if (cuda_note_lost(d, r))
		fail_lost(d);
	env_fail(arena_env(d->a), TN_EIO, "device.start", (loc){0},
		"%s cannot be used: %s", d->base.name,
		cuda_error(&d->l, d->s.tmp, r));
}
