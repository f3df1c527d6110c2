/*
 * export_step.c: a net learns in plain C, and keeps what it has learned in a file.
 *
 *     tenon export --c net --name net --train --batch 4 --lr 0.02 SMALL.onnx
 *     make -C net libnet.a
 *     cc -Inet export_step.c net/libnet.a -lm && ./a.out
 *
 * SMALL.onnx is tests/golden/cli/data/train/small.onnx: pictures of 4 x 4, 3 classes.
 */
#include "net.h"

#include <stdio.h>

enum { BATCH = NET_IN_Y_ELEMS, PIXELS = NET_IN_X_ELEMS / BATCH };

static unsigned char arena[NET_ARENA_BYTES] __attribute__((aligned(64)));

/* A number from 0 to 1. */
static float noise(void)
{
	static uint32_t state = 1;

	state = state * 1664525 + 1013904223;
	return (float)(state >> 8) / 16777216;
}

/* A bright row, a bright column or a bright corner: classes 0, 1 and 2. */
static void draw(float *picture, int64_t kind)
{
	for (int i = 0; i < PIXELS; i++) {
		int row = i / 4, column = i % 4;
		int on = kind == 0 ? row == 1
			: kind == 1 ? column == 2
				    : row < 2 && column < 2;

		picture[i] = (float)on + 0.2f * noise();
	}
}

static int write_file(void *user, const void *data, size_t n)
{
	return fwrite(data, 1, n, user) == n ? 0 : 1;
}

static int read_file(void *user, void *data, size_t n)
{
	return fread(data, 1, n, user) == n ? 0 : 1;
}

static int failed(int code)
{
	fprintf(stderr, "net: %s\n", net_error(code));
	return 1;
}

/* Writes the state to a temporary file, forgets it, and reads it again. */
static int keep(net_net *net)
{
	FILE *f = tmpfile();
	int code = f != NULL ? net_save(net, write_file, f) : NET_EIO;

	if (code == NET_OK)
		code = net_reset(net);
	if (code == NET_OK) {
		rewind(f);
		code = net_load(net, read_file, f);
	}
	if (f != NULL)
		fclose(f);
	return code;
}

int main(void)
{
	float x[NET_IN_X_ELEMS], loss[1], first = 0;
	int64_t y[NET_IN_Y_ELEMS], key[1] = {0};
	net_net net;
	int code = net_init(&net, arena, sizeof arena, net_weights,
		NET_WEIGHTS_BYTES);

	for (int step = 0; code == NET_OK && step < 400; step++) {
		for (int i = 0; i < BATCH; i++) {
			y[i] = (step + i) % 3;
			draw(x + i * PIXELS, y[i]);
		}
		key[0]++; /* for dropout: other numbers in each step */
		code = net_step(&net, x, key, y, loss);
		if (step == 0)
			first = loss[0];
		if (code == NET_OK && step == 200)
			code = keep(&net);
		if (step == 300) /* smaller steps at the end */
			*NET_STATE_LR(&net) /= 10;
	}
	if (code != NET_OK)
		return failed(code);
	printf("loss %.3f, then %.3f after %.0f steps\n", (double)first,
		(double)loss[0], *NET_STATE_STEPS(&net));
	return loss[0] < first / 4 ? 0 : 1;
}
