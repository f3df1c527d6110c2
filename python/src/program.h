/*
 * program.h: what tenon.Program is, for the files with its methods.
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

/* On meshes that need not be there (mesh.c). */
PyObject *mesh_explain(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *mesh_plan(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *arrays_run(PyObject *self, PyObject *args);
PyObject *arrays_compile(PyObject *self, PyObject *unused);

#endif
