/*
 * estimate.h: estimates the cost of a scheduled kernel on a machine.
 *
 * Consumes the trees of the phases; produces cycles by class, bytes by level of
 * memory, the number of chunks, and seconds from these. It prices what the tree
 * says: a loop without lanes is priced element by element.
 */
#ifndef SCHEDULE_ESTIMATE_H
#define SCHEDULE_ESTIMATE_H

#include "loop/loop.h"

/* The cost of all chunks of one phase on one core. */
typedef struct loop_phase_cost {
	double vector_cycles; /* arithmetic in lanes */
	double scalar_cycles; /* arithmetic, loops and guards of one element */
	double access_cycles; /* loads and stores */
	double tile_cycles;   /* products in tiles */
	double wait_cycles;   /* for results, with nothing else to do */
	double load[MACHINE_N_ACCESSES], store[MACHINE_N_ACCESSES]; /* times */
	double bytes[MACHINE_N_LEVELS]; /* moved from or to each level */
	double chunks;
	double ahead; /* part of the traffic that goes on while warps compute */
} loop_phase_cost;

typedef struct loop_estimate {
	const machine *machine;
	int32_t n_phases;
	loop_phase_cost phase[LOOP_MAX_PHASES];
	bool serial; /* too small for several threads */
	bool in_rounds; /* in the body of a loop */
} loop_estimate;

/* k: scheduled. */
void loop_estimate_of(loop_kernel *k, loop_estimate *out);
/* The bytes of all inputs of the program, or of so many that L3 has no room. */
double loop_input_bytes(const loop_kernel *k);
/* threads 0: the number that partition assumes. */
double loop_estimate_seconds(const loop_estimate *e, int32_t threads);

/* The parts of an estimate. */
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
