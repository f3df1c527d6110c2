/*
 * test_rows.c: every row of the op table, interpreted, against values that do
 * not come from Tenon: recorded ones or straightforward C.
 */
#include "rows.h"

int main(void)
{
	return rows_main(false);
}
