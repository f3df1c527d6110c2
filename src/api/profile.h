/* profile.h: the programs of a profile; private to api/. */
#ifndef API_PROFILE_H
#define API_PROFILE_H

#include "api/api.h"

typedef struct profile_entry {
	struct profile_entry *next;
	struct api_profile *of; /* the profile that lists it, or NULL */
	compilation *m;
	const plan_times *t; /* NULL: it never ran */
	double compiled;     /* time at which it was compiled, in seconds */
} profile_entry;

struct api_profile {
	profile_entry *first, **last;
	double began;
};

#endif
