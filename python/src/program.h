/*
 * program.h: what tenon.Program is, for its two files.
 */
#ifndef TENON_PYTHON_PROGRAM_H
#define TENON_PYTHON_PROGRAM_H

#include "python.h"

typedef struct program {
	PyObject_HEAD
	context *c;
	tn_onnx *model; /* or NULL; ends after the program */
	tn_program *p;
	tn_tensor **param; /* of a model, once it has been called */
	int n_params;
} program;

PyObject *arrays_run(PyObject *self, PyObject *args);
PyObject *arrays_compile(PyObject *self, PyObject *unused);

#endif
