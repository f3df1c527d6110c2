/* fuzz_onnx_text.c: fuzz_onnx.c on texts of models instead of their bytes. */
#define FUZZ_TEXT
#include "fuzz_onnx.c"
