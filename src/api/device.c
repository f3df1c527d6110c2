/*
 * device.c: the device of a context, and the machine that its kernels are made
 * for.
 */
#include "api/api.h"

#include "run/cuda/cuda.h"

#include <inttypes.h>
#include <stdlib.h>

/* A device with memory of its own, and what its kernels are made for. */
typedef struct opened {
	run_device *d;
	const char *machine;
} opened;

static opened open_cuda(tn_context *c, int32_t number)
{
	run_device *d = cuda_open(c->a, number, c->o.cache_dir);

	return (opened){
		d, cuda_compute(d) >= 90 ? "cuda/sm_90" : "cuda/sm_80"};
}

static const struct device {
	const char *name;
	const char *family;  /* of the machines that it can run */
	const char *machine; /* NULL: that of the C compiler, or of `open` */
	const c_target *target;
	opened (*open)(tn_context *c, int32_t number); /* NULL: the CPU runs it */
} devices[] = {
	{"cpu", "c/", NULL, &c_gnu, NULL},
	{"simt", "cuda/", "cuda/sm_90", &simt_warps, NULL},
	{"cuda", "cuda/", NULL, &cuda_nvrtc, open_cuda},
};
enum { N_DEVICES = sizeof devices / sizeof *devices, MOST_NUMBER = 1024 };

/* The number behind "cuda:"; 0 without one; -1: there is no such name. */
static int32_t number_of(const struct device *d, const char *name)
{
	size_t n = strlen(d->name);
	int32_t number = 0;

	if (strncmp(name, d->name, n) != 0)
		return -1;
	if (name[n] == '\0')
		return 0;
	if (d->open == NULL || name[n] != ':' || name[n + 1] == '\0')
		return -1;
	for (const char *p = name + n + 1; *p != '\0'; p++) {
		if (*p < '0' || *p > '9' || number > MOST_NUMBER)
			return -1;
		number = 10 * number + (*p - '0');
	}
	return number;
}

static const struct device *find(tn_context *c, int32_t *number)
{
	const char *name = c->o.device;

	*number = 0;
	if (name == NULL)
		name = getenv("TENON_DEVICE");
	if (name == NULL || name[0] == '\0')
		return &devices[0];
	for (int32_t i = 0; i < N_DEVICES; i++) {
		*number = number_of(&devices[i], name);
		if (*number >= 0)
			return &devices[i];
	}
	env_fail(c->e, TN_EINVAL, "device.name", (loc){0},
		"there is no device \"%.60s\": accepted are cpu, simt (warps "
		"of a GPU, emulated), and cuda or cuda:N (an NVIDIA GPU, from "
		"cuda:0 on)",
		name);
}

static const machine *machine_named(tn_context *c, const char *name)
{
	const machine *m = machine_find(name);
	str s;

	if (m != NULL)
		return m;
	s = str_new(c->a);
	for (int32_t i = 0; machine_at(i) != NULL; i++)
		str_printf(&s, "%s%s", i > 0 ? ", " : "", machine_at(i)->name);
	env_fail(c->e, TN_EINVAL, "device.target", (loc){0},
		"there is no machine \"%.60s\": accepted are %s", name, s.at);
}

static bool is_of(const char *name, const char *family)
{
	return strncmp(name, family, strlen(family)) == 0;
}

/* What prints kernels for a machine that the device cannot run. */
static const c_target *printer_of(const char *name)
{
	return is_of(name, "cuda/") ? &cuda_nvrtc : &c_gnu;
}

void api_device_open(tn_context *c)
{
	int32_t number, compute = 0;
	const struct device *d = find(c, &number);
	const char *made_for = d->machine, *named = getenv("TENON_MACHINE");

	c->o.device = d->name;
	c->target = d->target;
	c->device = &run_cpu;
	/* the interpreter computes with the memory of the host */
	if (d->open != NULL && !c->o.interp) {
		opened o = d->open(c, number);

		c->device = o.d;
		c->o.device = o.d->name;
		made_for = o.machine;
		compute = cuda_compute(o.d);
	}
	if (made_for != NULL)
		c->machine = machine_find(made_for);
	if (c->o.target == NULL && named != NULL && named[0] != '\0')
		c->o.target = named;
	if (c->o.target == NULL)
		return;
	c->machine = machine_named(c, c->o.target);
	c->o.target = c->machine->name; /* not the caller's text */
	if (compute > 0 && compute != CUDA_WARPGROUPS && c->machine->matrix.warps > 0)
		env_fail(c->e, TN_EINVAL, "device.target", (loc){0},
			"%s has compute capability %d.%d: kernels for %s run on those of 9.0 alone",
			c->o.device, compute / 10, compute % 10, c->o.target);
	c->foreign = !is_of(c->machine->name, d->family);
	if (c->foreign)
		c->target = printer_of(c->machine->name);
}

const char *api_device_name(const tn_context *c)
{
	return c->o.device;
}

/* ---- what there is ----------------------------------------------------- */

static void add_json(str *s, const cuda_found *f)
{
	str_add(s, "{\"devices\":[{\"name\":\"cpu\"},{\"name\":\"simt\","
		   "\"emulated\":true}");
	for (int32_t i = 0; i < f->n; i++) {
		const struct cuda_card *k = &f->card[i];

		str_printf(s, ",{\"name\":\"cuda:%d\",\"card\":", (int)i);
		str_json(s, k->name);
		str_printf(s,
			",\"compute\":\"%d.%d\",\"multiprocessors\":%d,"
			"\"bytes\":%zu",
			k->compute / 10, k->compute % 10, k->n_units, k->bytes);
		if (k->refused != NULL) {
			str_add(s, ",\"refused\":");
			str_json(s, k->refused);
		}
		str_add(s, "}");
	}
	str_add(s, "],\"cuda\":{\"driver\":");
	str_json(s, f->driver);
	str_printf(s, ",\"driver_version\":%d,\"nvrtc\":",
		(int)f->driver_version);
	str_json(s, f->nvrtc);
	str_printf(s, ",\"nvrtc_version\":%d", (int)f->nvrtc_version);
	str_add(s, ",\"nccl\":");
	str_json(s, f->nccl);
	str_printf(s, ",\"nccl_version\":%d", (int)f->nccl_version);
	if (f->no_nccl != NULL) {
		str_add(s, ",\"nccl_missing\":");
		str_json(s, f->no_nccl);
	}
	str_add(s, ",\"cudadevrt\":");
	str_json(s, f->devrt);
	if (f->no_devrt != NULL) {
		str_add(s, ",\"cudadevrt_missing\":");
		str_json(s, f->no_devrt);
	}
	if (f->missing != NULL) {
		str_add(s, ",\"missing\":");
		str_json(s, f->missing);
	}
	str_add(s, "}}\n");
}

static void add_lines(str *s, const cuda_found *f)
{
	str_add(s, "cpu      compiled C\n"
		   "simt     warps of a GPU, emulated on the CPU\n");
	for (int32_t i = 0; i < f->n; i++) {
		const struct cuda_card *k = &f->card[i];

		str_printf(s,
			"cuda:%-3d %s: compute capability %d.%d, %d "
			"multiprocessors, %.1f GB\n",
			(int)i, k->name, k->compute / 10, k->compute % 10,
			k->n_units, (double)k->bytes / 1e9);
		if (k->refused != NULL)
			str_printf(s, "         not accepted: %s\n",
				k->refused);
	}
	if (f->driver[0] != '\0')
		str_printf(s, "driver   %s, of CUDA %d.%d\n", f->driver,
			f->driver_version / 1000,
			f->driver_version % 1000 / 10);
	if (f->nvrtc[0] != '\0')
		str_printf(s, "NVRTC    %s, version %d.%d\n", f->nvrtc,
			f->nvrtc_version / 1000, f->nvrtc_version % 1000 / 10);
	if (f->nccl[0] != '\0')
		str_printf(s, "NCCL     %s, version %d.%d.%d\n", f->nccl,
			f->nccl_version / 10000, f->nccl_version / 100 % 100,
			f->nccl_version % 100);
	else if (f->no_nccl != NULL)
		str_printf(s,
			"NCCL     not there: processes of a mesh move tensors "
			"through the memory of their hosts: %s\n",
			f->no_nccl);
	if (f->devrt[0] != '\0')
		str_printf(s, "loops    the device reads their tests, by %s\n",
			f->devrt);
	else if (f->no_devrt != NULL)
		str_printf(s, "loops    the host reads their tests: %s\n",
			f->no_devrt);
	if (f->missing != NULL)
		str_printf(s, "cuda     not usable: %s\n", f->missing);
}

struct devices_call {
	tn_context *c;
	char **out;
	bool json;
};

static void list_devices(void *arg)
{
	struct devices_call *k = arg;
	arena *a = arena_child(k->c->a);
	cuda_found f;
	str s = str_new(a);

	cuda_look(a, &f);
	if (k->json)
		add_json(&s, &f);
	else
		add_lines(&s, &f);
	*k->out = api_text(k->c, &s);
	arena_free(a);
}

tn_status tn_devices_text(char **out, tn_context *c, bool json)
{
	struct devices_call k = {c, out, json};

	*out = NULL;
	return c == NULL ? api_null("the context")
			 : api_call(c, list_devices, &k);
}

static void wait(void *arg)
{
	tn_context *c = arg;

	c->device->sync(c->device);
}

struct stream_call {
	tn_context *c;
	void *stream;
};

static void find_stream(void *arg)
{
	struct stream_call *k = arg;

	if (k->c->device->stream != NULL)
		k->stream = k->c->device->stream(k->c->device);
}

void *tn_device_stream(tn_context *c)
{
	struct stream_call k = {c, NULL};

	return c != NULL && api_call(c, find_stream, &k) >= 0 ? k.stream : NULL;
}

static void follow(void *arg)
{
	const struct stream_call *k = arg;

	if (k->c->device->follow != NULL)
		k->c->device->follow(k->c->device, k->stream);
}

tn_status tn_device_follow(tn_context *c, void *stream)
{
	struct stream_call k = {c, stream};

	return c == NULL ? api_null("the context") : api_call(c, follow, &k);
}

static void lead(void *arg)
{
	const struct stream_call *k = arg;

	if (k->c->device->lead != NULL)
		k->c->device->lead(k->c->device, k->stream);
}

tn_status tn_device_lead(tn_context *c, void *stream)
{
	struct stream_call k = {c, stream};

	return c == NULL ? api_null("the context") : api_call(c, lead, &k);
}

tn_status tn_device_wait(tn_context *c)
{
	return c == NULL ? api_null("the context") : api_call(c, wait, c);
}
