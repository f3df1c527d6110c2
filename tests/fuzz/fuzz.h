/*
 * fuzz.h: what a fuzz target defines. Linked with replay.c it is a test; with
 * clang -fsanitize=fuzzer instead of replay.c it is a libFuzzer target.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Gives the bytes to a reader. Returns 0; traps if the reader is wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

#endif
