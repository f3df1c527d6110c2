/*
 * json.h: reads JSON a token at a time; private to file/.
 *
 * The reader knows what may stand where, and asks for it: nothing is built,
 * nothing recurses, nothing is read beyond the end. Throws TN_EINVAL
 * [FORMAT.json] with the byte at which it stopped.
 * Source: RFC 8259.
 */
#ifndef FILE_JSON_H
#define FILE_JSON_H

#include "base/base.h"

typedef struct json_text {
	arena *a;
	const char *rule; /* "safetensors.json" */
	const char *path;
	const char *inside; /* name for messages, or NULL */
	const char *from, *at, *end;
} json_text;

/* Throws: `what` does not stand where one belongs. */
_Noreturn void json_fail(const json_text *j, const char *what);
/* Skips space; takes the character if it is there. */
bool json_take(json_text *j, char c);
void json_want(json_text *j, char c);
/*
 * After an element of a list that `end` closes: is there another? Takes ',' or
 * end.
 */
bool json_more(json_text *j, char end);
/* A string, escapes undone, terminated; valid UTF-8 without NUL. */
char *json_string(json_text *j, const char *what);
/* A number of digits alone that fits int64_t. */
int64_t json_natural(json_text *j, const char *what);

/* n bytes of UTF-8: no overlong forms, no surrogates. */
bool json_is_utf8(const char *text, size_t n);

#endif
