/*
 * wire.c: reads the fields of protobuf messages from untrusted bytes.
 *
 *     08 96 01   ->  number 1, varint 150
 *     12 02 68 69  ->  number 2, bytes "hi"
 *
 * Varints have at most ten bytes. Groups (wire types 3 and 4), which ONNX files
 * never contain, are refused, because skipping them would need recursion.
 */
#include "onnx/wire.h"

static _Noreturn void bad(const wire *w, const char *what)
{
	env_fail(arena_env(w->a), TN_EINVAL, "onnx.wire",
		(loc){.file = w->file},
		"byte %zu of a message of %zu bytes: %s",
		(size_t)(w->at - w->start), (size_t)(w->end - w->start), what);
}

wire wire_of(arena *a, const char *file, onnx_bytes b)
{
	static const uint8_t none[1] = {0};
	const uint8_t *at = b.n > 0 ? b.at : none;

	return (wire){a, file, at, at + b.n, at};
}

static uint64_t varint(wire *w)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t byte;

		if (w->at == w->end)
			bad(w, "a number is incomplete: the file is truncated");
		byte = *w->at++;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return v;
	}
	bad(w, "a number has more than ten bytes");
}

static uint64_t fixed(wire *w, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(w->end - w->at) < n)
		bad(w, "a number is incomplete: the file is truncated");
	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)w->at[i] << (8 * i);
	w->at += n;
	return v;
}

bool wire_next(wire *w, wire_field *f)
{
	uint64_t tag;

	if (w->at == w->end)
		return false;
	tag = varint(w);
	*f = (wire_field){.type = (uint32_t)(tag & 7)};
	if (tag >> 3 == 0 || tag >> 3 >= 1u << 29)
		bad(w, "a field has an impossible number");
	f->number = (uint32_t)(tag >> 3);
	if (f->type == 0) {
		f->value = varint(w);
	} else if (f->type == 1) {
		f->value = fixed(w, 8);
	} else if (f->type == 5) {
		f->value = fixed(w, 4);
	} else if (f->type == 2) {
		uint64_t n = varint(w);

		if (n > (uint64_t)(w->end - w->at))
			bad(w, "a part is longer than the rest of the file: "
			       "the file is truncated");
		f->bytes = (onnx_bytes){w->at, (size_t)n};
		w->at += n;
	} else {
		bad(w, "a field has a wire type that does not exist");
	}
	return true;
}

/* ---- values ---- */

static void want(const wire *w, const wire_field *f, uint32_t type)
{
	if (f->type != type)
		env_fail(arena_env(w->a), TN_EINVAL, "onnx.wire",
			(loc){.file = w->file},
			"field %u has wire type %u where the schema has %u",
			(unsigned)f->number, (unsigned)f->type, (unsigned)type);
}

onnx_bytes wire_bytes(const wire *w, const wire_field *f)
{
	want(w, f, 2);
	return f->bytes;
}

const char *wire_text(const wire *w, const wire_field *f)
{
	want(w, f, 2);
	if (f->bytes.n > 0 && memchr(f->bytes.at, 0, f->bytes.n) != NULL)
		env_fail(arena_env(w->a), TN_EINVAL, "onnx.text",
			(loc){.file = w->file},
			"a name contains a byte 0");
	return arena_strndup(w->a, (const char *)f->bytes.at, f->bytes.n);
}

int64_t wire_int(const wire *w, const wire_field *f)
{
	want(w, f, 0);
	return (int64_t)f->value;
}

int32_t wire_int32(const wire *w, const wire_field *f)
{
	int64_t v = wire_int(w, f);

	if (v < INT32_MIN || v > INT32_MAX)
		env_fail(arena_env(w->a), TN_EINVAL, "onnx.wire",
			(loc){.file = w->file},
			"field %u is %lld, which does not fit 32 bits",
			(unsigned)f->number, (long long)v);
	return (int32_t)v;
}

static float float_of(uint32_t bits)
{
	float v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

static double double_of(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

float wire_float(const wire *w, const wire_field *f)
{
	want(w, f, 5);
	return float_of((uint32_t)f->value);
}

void wire_add_ints(const wire *w, const wire_field *f, wire_ints *to)
{
	wire p;

	if (f->type == 0) {
		*vec_push(w->a, &to->v) = (int64_t)f->value;
		return;
	}
	p = wire_of(w->a, w->file, wire_bytes(w, f));
	while (p.at != p.end)
		*vec_push(w->a, &to->v) = (int64_t)varint(&p);
}

void wire_add_floats(const wire *w, const wire_field *f, wire_floats *to)
{
	wire p;

	if (f->type == 5) {
		*vec_push(w->a, &to->v) = float_of((uint32_t)f->value);
		return;
	}
	p = wire_of(w->a, w->file, wire_bytes(w, f));
	while (p.at != p.end)
		*vec_push(w->a, &to->v) = float_of((uint32_t)fixed(&p, 4));
}

void wire_add_doubles(const wire *w, const wire_field *f, wire_doubles *to)
{
	wire p;

	if (f->type == 1) {
		*vec_push(w->a, &to->v) = double_of(f->value);
		return;
	}
	p = wire_of(w->a, w->file, wire_bytes(w, f));
	while (p.at != p.end)
		*vec_push(w->a, &to->v) = double_of(fixed(&p, 8));
}
