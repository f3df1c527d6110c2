/*
 * device.c: the device of a context, and the machine that its kernels are made
 * for.
 */
#include "api/api.h"

#include <stdlib.h>

static const struct device {
	const char *name;
	const char *family;  /* of the machines that it can run */
	const char *machine; /* NULL: that of the C compiler */
	const c_target *target;
} devices[] = {
	{"cpu", "c/", NULL, &c_gnu},
	{"simt", "cuda/", "cuda/sm_90", &simt_warps},
};
enum { N_DEVICES = sizeof devices / sizeof *devices };

static const struct device *find(tn_context *c)
{
	const char *name = c->o.device;

	if (name == NULL)
		name = getenv("TENON_DEVICE");
	if (name == NULL || name[0] == '\0')
		return &devices[0];
	for (int32_t i = 0; i < N_DEVICES; i++)
		if (strcmp(devices[i].name, name) == 0)
			return &devices[i];
	env_fail(c->e, TN_EINVAL, "device.name", (loc){0},
		"there is no device \"%.60s\": accepted are cpu and simt (warps "
		"of a GPU, emulated)",
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
	const struct device *d = find(c);

	c->o.device = d->name;
	c->target = d->target;
	if (d->machine != NULL)
		c->machine = machine_find(d->machine);
	if (c->o.target == NULL)
		return;
	c->machine = machine_named(c, c->o.target);
	c->o.target = c->machine->name; /* not the caller's text */
	c->foreign = !is_of(c->machine->name, d->family);
	if (c->foreign)
		c->target = printer_of(c->machine->name);
}

const char *api_device_name(const tn_context *c)
{
	return c->o.device;
}
