/* text.h: texts of the results of passes, and dumps; private to engine/. */
#ifndef ENGINE_TEXT_H
#define ENGINE_TEXT_H

#include "engine/engine.h"

/* Print the result of a pass. */
typedef void compile_print(str *out, compilation *c);
compile_print compile_print_program;
compile_print compile_print_system;
compile_print compile_print_local;
compile_print compile_print_settled;
compile_print compile_print_groups;
compile_print compile_print_code;
compile_print compile_print_plan;
compile_print compile_print_loops;
compile_print compile_print_schedule;
/* The same, with decisions and their reasons. */
compile_print compile_print_decisions;
compile_print compile_print_kern;

/* dump.c: the passes that TENON_DUMP names. */
compile_dump compile_dump_of(arena *a, const char *(*name)(int32_t i));
/* Prints the result of pass i, if TENON_DUMP names it. */
void compile_dump_text(
	compilation *c, int32_t i, const char *name, compile_print *print);

#endif
