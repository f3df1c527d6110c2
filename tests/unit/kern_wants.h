/*
 * kern_wants.h: what the kernels of kern_texts.h compute, from drawn data: written
 * out once more, in doubles.
 */
#ifndef UNIT_KERN_WANTS_H
#define UNIT_KERN_WANTS_H

#include <stdint.h>

enum { MOST = 6400 };

/* What each kernel is said to compute, from drawn data. */
struct data {
	double in[3][MOST], out[MOST];
	int64_t id[32];
};

static void want_relu(struct data *d)
{
	for (int i = 0; i < 1000; i++)
		d->out[i] = d->in[1][i] > 0 ? d->in[1][i] : 0;
}

static void want_tile(struct data *d)
{
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 40; j++)
			for (int l = 0; l < 16; l++)
				d->out[40 * i + j] += d->in[1][16 * i + l] *
						      d->in[2][40 * l + j];
}

static void want_stencil(struct data *d)
{
	for (int i = 0; i < 61; i++)
		d->out[i] = (i > 0 ? d->in[1][i - 1] : 0) +
			    (i < 60 ? d->in[1][i + 1] : 0);
}

static void want_split(struct data *d)
{
	for (int i = 0; i < 1024; i++)
		d->out[0] += d->in[1][i];
}

static void want_gather(struct data *d)
{
	for (int i = 0; i < 7; i++)
		for (int j = 0; j < 160; j++)
			d->out[160 * i + j] = d->in[1][160 * d->id[i] + j];
}

static void want_scan(struct data *d)
{
	for (int i = 0; i < 6400; i++)
		d->out[i] = d->in[1][i] + (i % 100 > 0 ? d->out[i - 1] : 0);
}

static void want_turn(struct data *d)
{
	for (int i = 0; i < 32; i++)
		for (int j = 0; j < 48; j++)
			d->out[32 * j + i] = d->in[1][48 * i + j];
}

static void want_step(struct data *d)
{
	for (int i = 0; i < 64; i++)
		d->out[i] = d->in[1][i] - 0.5 * d->in[2][i];
}

static void want_blocks(struct data *d)
{
	for (int i = 0; i < 64; i++)
		d->out[i] = d->in[1][48 - i / 16 * 16 + i % 16];
}

/* Factors whose rows and columns are so far apart. */
static void product(struct data *d, int terms, int ri, int ci, int rk, int ck)
{
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 32; j++)
			for (int k = 0; k < terms; k++)
				d->out[32 * i + j] += d->in[1][ri * i + ci * k] *
						      d->in[2][rk * k + ck * j];
}

static void want_mma(struct data *d)
{
	product(d, 32, 32, 1, 32, 1);
}

static void want_turned(struct data *d)
{
	product(d, 32, 1, 16, 1, 32);
}

static void want_parts(struct data *d)
{
	product(d, 29, 1, 16, 1, 32);
}

static void want_bytes(struct data *d)
{
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 32; j++)
			for (int k = 0; k < 32; k++)
				d->out[32 * i + j] += d->in[1][32 * i + k] *
						      d->in[2][32 * j + k] *
						      (k < 29 ? 2 : 1);
}

static void want_tail(struct data *d)
{
	for (int i = 0; i < 13; i++)
		for (int j = 0; j < 32; j++)
			for (int k = 0; k < (j % 16 < 15 ? 21 : 16); k++)
				d->out[32 * i + j] += d->in[1][21 * i + k] *
						      d->in[2][32 * k + j];
}

static void want_stages(struct data *d)
{
	for (int i = 0; i < 64; i++)
		d->out[i] = d->in[1][i / 16 * 16 + (i % 16 + 8) % 16];
}

static void want_kept(struct data *d)
{
	for (int i = 0; i < 24; i++)
		d->out[i % 6] += d->in[1][i];
}

static void want_digits(struct data *d)
{
	for (int i = 0; i < 64; i++)
		d->out[i] = d->in[1][i / 2] * (1 + i % 2);
}

static void want_dealt(struct data *d)
{
	for (int i = 0; i < 32; i++)
		d->out[i] = d->in[1][d->id[i]];
}

static void want_dots(struct data *d)
{
	for (int j = 0; j < 16; j++)
		for (int k = 0; k < 15; k++)
			d->out[j] += d->in[1][k] * d->in[2][16 * k + j];
}

/* Five terms twice, then the first four of them. */
static void want_tiled(struct data *d)
{
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 16; j++)
			for (int k = 0; k < 5; k++)
				d->out[16 * i + j] += (k < 4 ? 3 : 2) *
						      d->in[1][6 * i + k] *
						      d->in[2][16 * k + j];
}

static void want_pairs(struct data *d)
{
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++)
			for (int c = 0; c < 2; c++)
				d->out[8 * i + 2 * j + c] =
					d->in[1][8 * j + 2 * i + c];
}

#endif
