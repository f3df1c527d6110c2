/*
 * export_isa.c: which processors an export has kernels for: "sse,avx2".
 */
#include "api/export.h"

#include "export/export.h"

static const export_isa *find(const char *name, size_t n)
{
	const export_isa *isa;

	for (int32_t i = 0; (isa = export_isa_at(i)) != NULL; i++)
		if (strlen(isa->name) == n && memcmp(isa->name, name, n) == 0)
			return isa;
	return NULL;
}

static _Noreturn void refuse(const api_export *k)
{
	str s = str_new(k->c->a);

	for (int32_t i = 0; export_isa_at(i) != NULL; i++)
		str_printf(&s, "%s%s", i > 0 ? ", " : "",
			export_isa_at(i)->name);
	env_fail(k->c->e, TN_EINVAL, "export.options", (loc){0},
		"instructions \"%.60s\": give two or more of %s, separated by "
		"commas, in this order; the first one is there on every "
		"processor, and must be given",
		k->o.isas, s.at);
}

void api_export_isas(api_export *k)
{
	const export_isa *last = NULL;

	k->n_variants = 0;
	if (k->o.isas == NULL)
		return;
	for (const char *s = k->o.isas;;) {
		size_t n = strcspn(s, ",");
		const export_isa *isa = find(s, n);

		if (isa == NULL || k->n_variants == API_EXPORT_VARIANTS ||
			(last == NULL ? isa != export_isa_at(0) : isa <= last))
			refuse(k);
		k->variant[k->n_variants++].isa = last = isa;
		if (s[n] == '\0')
			break;
		s += n + 1;
	}
	if (k->n_variants < 2)
		refuse(k);
	if (k->o.dialect == TN_EXPORT_C99 || k->o.small)
		env_fail(k->c->e, TN_EINVAL, "export.options", (loc){0},
			"C99 without extensions and small code have no "
			"vectors, so there is one variant of their kernels: "
			"leave instructions out");
}
