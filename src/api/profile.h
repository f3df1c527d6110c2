/* profile.h: the programs that a profile knows; private to api/. */
#ifndef API_PROFILE_H
#define API_PROFILE_H

#include "api/api.h"

typedef struct profile_entry {
	struct profile_entry *next;
	struct api_profile *of; /* NULL: it is in no list */
	compilation *m;
	const plan_times *t; /* NULL: it never ran */
	double compiled;     /* when, in seconds */
} profile_entry;

struct api_profile {
	profile_entry *first, **last;
	double began;
};

#endif
