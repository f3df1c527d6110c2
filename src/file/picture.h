/*
 * picture.h: private to file/: how a picture is decoded, by whom.
 */
#ifndef FILE_PICTURE_H
#define FILE_PICTURE_H

#include "file/file.h"

typedef struct picture {
	arena *a;
	const uint8_t *at; /* the file */
	size_t n;
	void *lib;	   /* of the format, NULL without one */
	const char *lib_name;
	int64_t w, h;
	uint8_t *rgba; /* [h, w, 4]; NULL: only w and h are asked for */
} picture;

/*
 * Called twice: with rgba NULL it says w and h, then it writes rgba. false: the
 * file is damaged, or a kind that is not known. Holds nothing when it returns, and
 * throws only while it looks for functions of its library.
 */
typedef bool picture_decoder(picture *p);

picture_decoder picture_bmp, picture_pnm;
picture_decoder picture_jpeg, picture_jpeg2000, picture_png, picture_tiff,
	picture_webp;

/* Throws TN_EINVAL [picture.library]: it is not installed. It stays loaded. */
void *picture_library(arena *a, const char *name);

#endif
