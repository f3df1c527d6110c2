/*
 * words.c: words of the exported C: types, names, texts from templates.
 */
#include "export/templates.h"

const char *export_c_type(tn_dtype t)
{
	static const char *const of_bytes[] = {[1] = "uint8_t",
		[2] = "uint16_t",
		[4] = "uint32_t",
		[8] = "uint64_t"};
	static const char *const signed_of[] = {[1] = "int8_t",
		[2] = "int16_t",
		[4] = "int32_t",
		[8] = "int64_t"};

	if (t == TN_F32)
		return "float";
	if (t == TN_F64)
		return "double";
	/* floats of fewer bits are what memory holds of them */
	return dtype_is_int(t) && !dtype_is_unsigned(t)
		? signed_of[dtype_size(t)]
		: of_bytes[dtype_size(t)];
}

const char *export_upper(arena *a, const char *s)
{
	char *out = arena_strdup(a, s);

	for (char *p = out; *p != '\0'; p++)
		if (*p >= 'a' && *p <= 'z')
			*p = (char)(*p - 'a' + 'A');
	return out;
}

const char *export_verb(const export_net *x)
{
	return x->state_bytes > 0 ? "step" : "run";
}

uint64_t export_hash(const void *data, size_t n)
{
	const uint8_t *at = data;
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i++)
		h = (h ^ at[i]) * UINT64_C(0x100000001b3);
	return h;
}

void export_fill(str *out, const export_net *x, const char *const *lines)
{
	const char *name = x->job->name, *upper = export_upper(out->a, name);

	for (; *lines != NULL; lines++)
		for (const char *s = *lines; *s != '\0';) {
			bool word = strncmp(s, "NET", 3) == 0;

			if (word && s[3] == 'U') {
				str_add(out, upper);
				s += 4;
			} else if (word) {
				str_add(out, name);
				s += 3;
			} else {
				str_addc(out, *s++);
			}
		}
}
