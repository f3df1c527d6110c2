/* onnx.h: a model of the ONNX format behind tenon.h; private to api/. */
#ifndef API_ONNX_H
#define API_ONNX_H

#include "api/api.h"

#include "onnx/onnx.h"

struct tn_onnx {
	tn_context *c;
	arena *a;
	onnx_model *m;
	tn_onnx_port *in, *out;
	struct {
		bool is;
		int32_t n;
		onnx_array *at;
	} *given; /* (inputs) */
	VEC(const char *) dim_name;
	VEC(int64_t) dim;
	int64_t fold_from;
	bool training, logits;
};

struct api_onnx_build {
	tn_onnx *m;
	arena *a;
	tn_program *p;
};

/* What the importer made as a program of the caller's, in arena a. */
tn_program *api_onnx_program(tn_context *c, arena *a, const onnx_program *o);
/* A program whose shapes follow from data (of a struct api_onnx_build). */
void api_onnx_stage(void *build);

#endif
