/* templates.h: private to export/: files *.in of this folder, embedded. In them
 * NET stands for the program's name, NETU for the same in capitals. */
#ifndef EXPORT_TEMPLATES_H
#define EXPORT_TEMPLATES_H

#include "export/local.h"

/* Each ends with NULL. */
extern const char *const export_run_c[], *const export_check_c[],
	*const export_state_c[], *const export_test_state_c[],
	*const export_test_c[], *const export_threads_c[],
	*const export_threads_h[], *const export_rows_c[],
	*const export_strings_c[],
	*const export_make[],
	*const export_cmake[], *const export_pc[];

/* Adds the text with its words replaced. */
void export_fill(str *out, const export_net *x, const char *const *lines);

#endif
