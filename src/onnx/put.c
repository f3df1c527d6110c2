/*
 * put.c: writes the wire format of protocol buffers.
 */
#include "onnx/put.h"

static void varint(str *to, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		str_addc(to, (char)(uint8_t)(v | 0x80));
	str_addc(to, (char)v);
}

void put_int(str *to, uint32_t field, int64_t v)
{
	varint(to, (uint64_t)field << 3);
	varint(to, (uint64_t)v);
}

void put_float(str *to, uint32_t field, float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof bits);
	varint(to, (uint64_t)field << 3 | 5);
	for (int i = 0; i < 4; i++)
		str_addc(to, (char)(uint8_t)(bits >> (8 * i)));
}

void put_head(str *to, uint32_t field, size_t n)
{
	varint(to, (uint64_t)field << 3 | 2);
	varint(to, n);
}

void put_text(str *to, uint32_t field, const char *text)
{
	put_head(to, field, strlen(text));
	str_add(to, text);
}

void put_part(str *to, uint32_t field, const str *part)
{
	put_head(to, field, part->n);
	str_addn(to, part->at, part->n);
}

void put_port(str *to, uint32_t field, const char *name, int32_t elem,
	int32_t rank, const int64_t *shape)
{
	str dims = str_new(to->a), tensor = str_new(to->a);
	str type = str_new(to->a), port = str_new(to->a);

	for (int32_t i = 0; i < rank; i++) {
		str dim = str_new(to->a);

		put_int(&dim, 1, shape[i]);
		put_part(&dims, 1, &dim);
	}
	put_int(&tensor, 1, elem);
	put_part(&tensor, 2, &dims);
	put_part(&type, 1, &tensor);
	put_text(&port, 1, name);
	put_part(&port, 2, &type);
	put_part(to, field, &port);
}
