/*
 * export_loop.c: a program that was exported as C, in a loop as a game has it: in
 * each frame it computes for a short while, and the frame goes on. Needs neither
 * Tenon nor any other library:
 *
 *     tenon export --c blur examples/blur.tn
 *     make -C blur
 *     cc -O2 -Iblur examples/export_loop.c blur/libblur.a -o loop && ./loop
 */
#include "blur.h"

#include <stdio.h>

enum { CHUNKS_A_FRAME = 2 };

static unsigned char arena[BLUR_ARENA_BYTES] __attribute__((aligned(64)));
static float image[BLUR_IN_IMAGE_ELEMS], edges[BLUR_OUT_EDGES_ELEMS];
static float brightest[1];

static int failed(int code)
{
	fprintf(stderr, "blur: %s\n", blur_error(code));
	return 1;
}

int main(void)
{
	int code, frames = 0;
	blur_net net;

	for (int i = 0; i < BLUR_IN_IMAGE_ELEMS; i++)
		image[i] = (float)(i % 16) / 16;

	code = blur_init(&net, arena, sizeof arena, NULL, 0);
	if (code != BLUR_OK)
		return failed(code);
	/* the arrays belong to the program until it is done */
	code = blur_start(&net, image, edges, brightest);
	if (code != BLUR_OK)
		return failed(code);
	do {
		code = blur_run_some(&net, CHUNKS_A_FRAME);
		frames++; /* here the game reads its input, draws, and waits */
	} while (code == BLUR_MORE);
	if (code != BLUR_OK)
		return failed(code);

	printf("done after %d frames; the strongest edge is %.3f\n", frames,
		(double)brightest[0]);
	return 0;
}
