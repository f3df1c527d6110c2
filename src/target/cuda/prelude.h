/* prelude.h: private to target/cuda/: the lines of prelude.cu, embedded. */
#ifndef TARGET_CUDA_PRELUDE_H
#define TARGET_CUDA_PRELUDE_H

extern const char *const cuda_prelude[]; /* ends with NULL */

#endif
