/*
 * tenon.h: the entire public interface of Tenon, a tensor compiler and runtime.
 *
 * Ownership, once for all: nothing consumes its arguments; what came from
 * *_new or through **out you free with the matching *_free; every other
 * pointer is borrowed and lives as long as argument 0.
 * Nothing here exits, aborts or prints. A context and what belongs to it are
 * used by one thread at a time.
 */
#ifndef TENON_H
#define TENON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TN_API
#else
#define TN_API __attribute__((visibility("default")))
#endif
#define TN_MUST_USE __attribute__((warn_unused_result))

#define TN_VERSION_MAJOR 0
#define TN_VERSION_MINOR 1
#define TN_VERSION_PATCH 0

/** Largest number of axes of a tensor. */
#define TN_MAX_RANK 8

/** Result of every call that can fail: 0, or one of the negative values. */
typedef enum tn_status {
	TN_OK = 0,
	TN_EINVAL = -1,	  /* what was handed in is wrong: text, shape, dtype */
	TN_ENOMEM = -2,	  /* memory, or a size beyond what is accepted */
	TN_EIO = -3,	  /* a file cannot be read or written */
	TN_ECOMPILE = -4, /* no C compiler, or it failed */
	TN_ERANGE = -5,	  /* an index read from data is outside its tensor */
	TN_EINTERNAL = -6 /* a verifier of the library failed: report it */
} tn_status;

typedef enum tn_dtype {
	TN_F32,
	TN_F64,
	TN_F16,
	TN_BF16,
	TN_I8,
	TN_I16,
	TN_I32,
	TN_I64,
	TN_U8,
	TN_BOOL
} tn_dtype;
#define TN_N_DTYPES 10

/**
 * What went wrong, where, and what would be accepted. Fixed size: it can be
 * copied, and needs no freeing. Empty strings and 0 mean "not known".
 */
typedef struct tn_diag {
	tn_status status;
	char rule[64];	 /* stable id, such as matmul.k or tn.syntax */
	char file[256];	 /* where the user must look */
	int32_t line;	 /* 1 is the first */
	int32_t column;	 /* 1 is the first */
	char text[1024]; /* one sentence, no newline at its end */
	char extra[1024]; /* source line with a caret, or empty */
} tn_diag;

#ifdef __cplusplus
}
#endif
#endif
