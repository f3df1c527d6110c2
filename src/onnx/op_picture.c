/*
 * op_picture.c: ImageDecoder: the bytes of a file as the pixels of its picture.
 * They are decoded when a program is built, as shapes depend on them: a model whose
 * input is a file becomes a program in parts.
 */
#include "onnx/ops.h"

#include "file/file.h"

enum { RED = 19595, GREEN = 38470, BLUE = 7471 }; /* of 65536: ITU-R BT.601 */

typedef struct pixels {
	int64_t red; /* where red stands, and blue at 2 - red; -1: grey */
	int64_t n;   /* channels */
} pixels;

static pixels pixels_of(node *d)
{
	const char *format = on_text(d, "pixel_format", "RGB");

	if (strcmp(format, "RGB") == 0)
		return (pixels){0, 3};
	if (strcmp(format, "BGR") == 0)
		return (pixels){2, 3};
	if (strcmp(format, "Grayscale") != 0)
		on_fail(d, "onnx.attr", "pixel_format is \"%.40s\"; accepted are "
			"RGB, BGR and Grayscale", format);
	return (pixels){-1, 1};
}

static void put_pixel(uint8_t *to, const uint8_t *rgba, pixels as)
{
	if (as.red < 0) {
		to[0] = (uint8_t)((rgba[0] * RED + rgba[1] * GREEN +
					  rgba[2] * BLUE + (1 << 15)) >> 16);
		return;
	}
	to[as.red] = rgba[0];
	to[1] = rgba[1];
	to[2 - as.red] = rgba[2];
}

void onnx_image_decoder(node *d)
{
	int32_t x = on_in(d, 0);
	pixels as = pixels_of(d);
	file_picture p = {0};
	arena *tmp;
	uint8_t *out;
	int64_t n;

	if (on_dt(d, x) != TN_U8 || on_rank_of(d, x) != 1)
		on_fail(d, "onnx.type", "the bytes of a picture must be uint8 "
			"with one axis");
	tmp = arena_child(d->x->a);
	if (!file_picture_parse(tmp, onnx_host(d->x, x), (size_t)on_numel(d, x),
		    &p))
		p = (file_picture){0}; /* what cannot be decoded is empty */
	n = p.width * p.height;
	out = arena_array(d->x->a, uint8_t, n * as.n + 1);
	for (int64_t i = 0; i < n; i++)
		put_pixel(out + i * as.n, p.rgba + 4 * i, as);
	on_set(d, 0, on_constant(d, TN_U8, LIST(d, p.height, p.width, as.n), out));
	arena_free(tmp);
}
