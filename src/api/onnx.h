/* onnx.h: ONNX models of the public interface; private to api/. */
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

/* The program of the importer as a tn_program, in arena a. */
tn_program *api_onnx_program(tn_context *c, arena *a, const onnx_program *o);
/* Builds a program whose shapes follow from data; build: struct api_onnx_build. */
void api_onnx_stage(void *build);

#endif
