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

/*
 * The part of a pinned text that is about the program, or about the body t->body;
 * false: there is none. The rest of the text becomes blanks, so that lines keep
 * their numbers.
 */
bool compile_text_part(arena *a, const compile_text *t, compile_text *part);
/* [LEVEL.body] if the text has a body that no loop of this program has. */
void compile_check_bodies(
	compilation *c, const char *level, const compile_text *t);
/* The name of a loop: its first result. */
const char *compile_loop_name(const compilation *c, const ir_loop *l);

/* dump.c: the passes that TENON_DUMP names. */
compile_dump compile_dump_of(arena *a, const char *(*name)(int32_t i));
/* Prints the result of pass i, if TENON_DUMP names it. */
void compile_dump_text(
	compilation *c, int32_t i, const char *name, compile_print *print);

#endif
