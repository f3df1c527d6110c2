/* prelude.h: private to target/simt/: the lines of prelude.c, matrix.c and bulk.c. */
#ifndef TARGET_SIMT_PRELUDE_H
#define TARGET_SIMT_PRELUDE_H

extern const char *const simt_prelude[]; /* ends with NULL */

#endif
