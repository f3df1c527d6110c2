/* mpi.h: functions of MPI that a link calls; private to comm/. */
#ifndef COMM_MPI_H
#define COMM_MPI_H

#include "comm/comm.h"

typedef union mpi_handle {
	void *p; /* Open MPI */
	int i;	 /* MPICH */
} mpi_handle;

/* Functions of both libraries; only those of the library found are set. */
typedef struct mpi_api {
	bool mpich;
	mpi_handle world, byte;
	int (*init)(int *, char ***);
	int (*initialized)(int *);
	int (*init_thread)(int *, char ***, int, int *);
	int (*query_thread)(int *);
	int (*finalize)(void), (*finalized)(int *);
	int (*rank_p)(void *, int *), (*rank_i)(int, int *);
	int (*size_p)(void *, int *), (*size_i)(int, int *);
	int (*isend_p)(const void *, int, void *, int, int, void *, void **);
	int (*isend_i)(const void *, int, int, int, int, int, int *);
	int (*irecv_p)(void *, int, void *, int, int, void *, void **);
	int (*irecv_i)(void *, int, int, int, int, int, int *);
	int (*test_p)(void **, int *, void *), (*test_i)(int *, int *, void *);
	int (*iprobe_p)(int, int, void *, int *, void *);
	int (*iprobe_i)(int, int, int, int *, void *);
	int (*quit_p)(void *, int), (*quit_i)(int, int);
	/* by SHARD_RAW_*: functions with two signatures; for floats */
	mpi_handle real, sum;
	int (*move_p[4])(const void *, int, void *, void *, int, void *, void *);
	int (*move_i[4])(const void *, int, int, void *, int, int, int);
	int (*sum_p[4])(const void *, void *, int, void *, void *, void *);
	int (*sum_i[4])(const void *, void *, int, int, int, int);
} mpi_api;

/* Throws [shard.mpi] if no library is installed, or it lacks a function. */
void mpi_load(env *e, mpi_api *f);
/* The number of this process, and the number of processes. */
void mpi_place(const mpi_api *f, int64_t *rank, int64_t *size);
/* Start to send and to receive; complete when mpi_is_done(r). */
void mpi_post(const mpi_api *f, const void *data, size_t n, int64_t to,
	int tag, mpi_handle *r);
void mpi_expect(const mpi_api *f, void *data, size_t n, int64_t from, int tag,
	mpi_handle *r);
bool mpi_is_done(const mpi_api *f, mpi_handle *r);
/* Has a message with this tag arrived? */
bool mpi_is_there(const mpi_api *f, int64_t from, int tag);
int64_t mpi_any(const mpi_api *f); /* `from` of any process */
/* SHARD_RAW_*: k floats of each process; ALL_TO_ALL: for each process */
void mpi_raw(const mpi_api *f, int32_t which, const void *in, void *out, int k);
void mpi_quit(const mpi_api *f); /* MPI_Abort */

#endif
