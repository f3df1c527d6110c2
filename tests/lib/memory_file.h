/*
 * memory_file.h: files that are in no folder, for readers of files.
 */
#ifndef TEST_MEMORY_FILE_H
#define TEST_MEMORY_FILE_H

#include "base/base.h"

/* The path of a new file of these bytes, which lives as long as the arena. */
const char *memory_file(arena *a, const void *bytes, size_t n_bytes);

#endif
