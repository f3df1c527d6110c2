/*
 * mpi.c: functions of MPI that a link calls.
 *
 * The library is loaded when it is needed, so it need not be installed: Open MPI,
 * whose handles are pointers, or MPICH, whose handles are integers. Their symbols
 * tell which it is.
 */
#include "comm/mpi.h"

#include <dlfcn.h>
#include <stdlib.h>

enum { ANY_OPEN = -1, ANY_MPICH = -2 };

void mpi_post(const mpi_api *f, const void *data, size_t n, int64_t to,
	int tag, mpi_handle *r)
{
	if (f->mpich)
		f->isend_i(data, (int)n, f->byte.i, (int)to, tag, f->world.i,
			&r->i);
	else
		f->isend_p(data, (int)n, f->byte.p, (int)to, tag, f->world.p,
			&r->p);
}

void mpi_expect(const mpi_api *f, void *data, size_t n, int64_t from, int tag,
	mpi_handle *r)
{
	if (f->mpich)
		f->irecv_i(data, (int)n, f->byte.i, (int)from, tag, f->world.i,
			&r->i);
	else
		f->irecv_p(data, (int)n, f->byte.p, (int)from, tag, f->world.p,
			&r->p);
}

bool mpi_is_done(const mpi_api *f, mpi_handle *r)
{
	int done = 0;

	/* without a status: a null pointer, or MPICH's 1 */
	if (f->mpich)
		f->test_i(&r->i, &done, (void *)1);
	else
		f->test_p(&r->p, &done, NULL);
	return done != 0;
}

bool mpi_is_there(const mpi_api *f, int64_t from, int tag)
{
	int there = 0;

	if (f->mpich)
		f->iprobe_i((int)from, tag, f->world.i, &there, (void *)1);
	else
		f->iprobe_p((int)from, tag, f->world.p, &there, NULL);
	return there != 0;
}

int64_t mpi_any(const mpi_api *f)
{
	return f->mpich ? ANY_MPICH : ANY_OPEN;
}

void mpi_place(const mpi_api *f, int64_t *rank, int64_t *size)
{
	int r = 0, n = 1;

	if (f->mpich) {
		f->rank_i(f->world.i, &r);
		f->size_i(f->world.i, &n);
	} else {
		f->rank_p(f->world.p, &r);
		f->size_p(f->world.p, &n);
	}
	*rank = r;
	*size = n;
}

void mpi_raw(const mpi_api *f, int32_t which, const void *in, void *out, int k)
{
	if (f->mpich && f->sum_i[which] != NULL)
		f->sum_i[which](in, out, k, f->real.i, f->sum.i, f->world.i);
	else if (f->mpich)
		f->move_i[which](in, k, f->real.i, out, k, f->real.i,
			f->world.i);
	else if (f->sum_p[which] != NULL)
		f->sum_p[which](in, out, k, f->real.p, f->sum.p, f->world.p);
	else
		f->move_p[which](in, k, f->real.p, out, k, f->real.p,
			f->world.p);
}

void mpi_quit(const mpi_api *f)
{
	if (f->mpich)
		f->quit_i(f->world.i, 1);
	else
		f->quit_p(f->world.p, 1);
}

/* ---- loading ---- */

static void *symbol(env *e, void *lib, const char *name)
{
	void *p = dlsym(lib, name);

	if (p == NULL)
		env_fail(e, TN_EINVAL, "shard.mpi", (loc){0},
			"the MPI library has no %s", name);
	return p;
}

/* an object pointer as a pointer to a function, as POSIX wants dlsym used */
#define LOAD(field, name)                                                      \
	do {                                                                   \
		void *found = symbol(e, lib, name);                            \
		memcpy(&f->field, &found, sizeof found);                       \
	} while (0)

/* what only a measurement calls */
static void load_raw(env *e, void *lib, mpi_api *f)
{
	if (f->mpich) {
		f->real.i = 0x4c00040a;
		f->sum.i = 0x58000003;
		LOAD(move_i[SHARD_RAW_ALL_GATHER], "MPI_Allgather");
		LOAD(sum_i[SHARD_RAW_ALL_REDUCE], "MPI_Allreduce");
		LOAD(sum_i[SHARD_RAW_REDUCE_SCATTER],
			"MPI_Reduce_scatter_block");
		LOAD(move_i[SHARD_RAW_ALL_TO_ALL], "MPI_Alltoall");
		return;
	}
	f->real.p = symbol(e, lib, "ompi_mpi_float");
	f->sum.p = symbol(e, lib, "ompi_mpi_op_sum");
	LOAD(move_p[SHARD_RAW_ALL_GATHER], "MPI_Allgather");
	LOAD(sum_p[SHARD_RAW_ALL_REDUCE], "MPI_Allreduce");
	LOAD(sum_p[SHARD_RAW_REDUCE_SCATTER], "MPI_Reduce_scatter_block");
	LOAD(move_p[SHARD_RAW_ALL_TO_ALL], "MPI_Alltoall");
}

void mpi_load(env *e, mpi_api *f)
{
	static const char *const names[] = {"libmpi.so.40", "libmpi.so.12",
		"libmpich.so.12", "libmpi.so", "libmpich.so"};
	const size_t n = sizeof names / sizeof *names;
	/* the library of the launcher: Open MPI says its name */
	size_t first = getenv("OMPI_COMM_WORLD_SIZE") == NULL &&
			getenv("PMI_SIZE") != NULL
		? 1
		: 0;
	void *lib = NULL;

	for (size_t i = 0; i < n && lib == NULL; i++)
		lib = dlopen(names[(i + first) % n], RTLD_NOW | RTLD_GLOBAL);
	if (lib == NULL)
		env_fail(e, TN_EINVAL, "shard.mpi", (loc){0},
			"no MPI library is installed (Open MPI or MPICH)");
	f->mpich = dlsym(lib, "ompi_mpi_comm_world") == NULL;
	load_raw(e, lib, f);
	LOAD(init, "MPI_Init");
	LOAD(initialized, "MPI_Initialized");
	LOAD(init_thread, "MPI_Init_thread");
	LOAD(query_thread, "MPI_Query_thread");
	LOAD(finalize, "MPI_Finalize");
	LOAD(finalized, "MPI_Finalized");
	if (f->mpich) {
		f->world.i = 0x44000000;
		f->byte.i = 0x4c00010d;
		LOAD(rank_i, "MPI_Comm_rank");
		LOAD(size_i, "MPI_Comm_size");
		LOAD(isend_i, "MPI_Isend");
		LOAD(irecv_i, "MPI_Irecv");
		LOAD(test_i, "MPI_Test");
		LOAD(iprobe_i, "MPI_Iprobe");
		LOAD(quit_i, "MPI_Abort");
		return;
	}
	f->world.p = symbol(e, lib, "ompi_mpi_comm_world");
	f->byte.p = symbol(e, lib, "ompi_mpi_byte");
	LOAD(rank_p, "MPI_Comm_rank");
	LOAD(size_p, "MPI_Comm_size");
	LOAD(isend_p, "MPI_Isend");
	LOAD(irecv_p, "MPI_Irecv");
	LOAD(test_p, "MPI_Test");
	LOAD(iprobe_p, "MPI_Iprobe");
	LOAD(quit_p, "MPI_Abort");
}
