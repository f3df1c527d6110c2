/*
 * kern_run.h: the interpreter of kern, with which tests compare what schedules
 * and printers make.
 */
#ifndef KERN_RUN_H
#define KERN_RUN_H

#include "kern/kern.h"

/*
 * Runs the kernel: param[i] is the data of param i. The seed determines the
 * order of the chunks. Returns the number of a check that failed, or 0. Throws
 * kern.run (TN_EINTERNAL) if it accesses an element outside an array, one that
 * is not written yet, or one that another chunk accesses.
 */
int64_t kern_run(arena *a, kern_kernel *k, void *const *param, uint64_t seed);

#endif
