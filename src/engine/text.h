/* text.h: texts of what passes have made, and dumps; private to engine/. */
#ifndef ENGINE_TEXT_H
#define ENGINE_TEXT_H

#include "engine/engine.h"

/* What is there behind each pass, named after what it has made. */
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
/* The same, with what was decided and why. */
compile_print compile_print_decisions;
compile_print compile_print_kern;

/* dump.c: what TENON_DUMP asks for, by the names of passes. */
compile_dump compile_dump_of(arena *a, const char *(*name)(int32_t i));
/* Prints what there is behind pass i, if that was asked for. */
void compile_dump_text(
	compilation *c, int32_t i, const char *name, compile_print *print);

#endif
