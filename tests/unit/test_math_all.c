/* Every float there is, through exp, log, tanh, erf, sin and cos. */
#define STRIDE 1
#include "test_math_ulp.c"
