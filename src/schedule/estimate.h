/*
 * estimate.h: what a scheduled kernel costs on a machine.
 *
 * Consumes the trees of the phases, as they will be printed; produces cycles
 * by class, bytes by level of memory, chunks, and from these seconds. Nothing
 * is guessed about what the schedule might have done: what it did not put into
 * lanes is priced element by element, because the tree says so.
 */
#ifndef SCHEDULE_ESTIMATE_H
#define SCHEDULE_ESTIMATE_H

#include "loop/loop.h"

/* Of one phase, all chunks together, on one core. */
typedef struct loop_phase_cost {
	double vector_cycles; /* arithmetic in lanes */
	double scalar_cycles; /* arithmetic, loops and guards of one element */
	double access_cycles; /* loads and stores */
	double tile_cycles;   /* products in tiles */
	double load[MACHINE_N_ACCESSES], store[MACHINE_N_ACCESSES]; /* times */
	double bytes[MACHINE_N_LEVELS]; /* that come from there, or go there */
	double chunks;
} loop_phase_cost;

typedef struct loop_estimate {
	const machine *machine;
	int32_t n_phases;
	loop_phase_cost phase[LOOP_MAX_PHASES];
	bool serial; /* too small to be shared by threads */
} loop_estimate;

/* k: scheduled. */
void loop_estimate_of(loop_kernel *k, loop_estimate *out);
/* On so many threads; 0: as many as partition counts on. */
double loop_estimate_seconds(const loop_estimate *e, int32_t threads);

/* The largest of its parts, on one core. */
typedef enum loop_term {
	LOOP_TERM_VECTOR, /* arithmetic in lanes */
	LOOP_TERM_SCALAR, /* arithmetic and loops without lanes */
	LOOP_TERM_ACCESS, /* loads and stores */
	LOOP_TERM_TILE,	  /* products in tiles */
	LOOP_TERM_MEMORY, /* bytes from beyond the nearest memory */
	LOOP_TERM_LAUNCH,
	LOOP_N_TERMS
} loop_term;
loop_term loop_estimate_term(const loop_estimate *e);
const char *loop_term_name(loop_term t);
/* Seconds of one part, on one core. */
double loop_estimate_part(const loop_estimate *e, loop_term t);

#endif
