/*
 * test_cuda_mesh_mpi.c: the devices of four real processes, under mpirun: elements go
 * from one to another, and what fails or is missing on one process is known to all.
 * Skipped, with the reason, where there is no MPI.
 */
#include "cuda.h"

#include <signal.h>

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

enum { N = 4, ROWS = 11, COLUMNS = 6, ELEMS = ROWS * COLUMNS, SKIP = 77 };

static const tn_placement rows[1] = {TN_SHARDED(0)};
static const tn_placement columns[1] = {TN_SHARDED(1)};

/* ---- one of the four ---- */

static bool is_right(tn_tensor *x, float factor)
{
	float v[ELEMS];
	bool right = tn_read(x, v, sizeof v) >= 0;

	for (int32_t i = 0; i < ELEMS && right; i++)
		right = v[i] == factor * (float)(i - 20);
	return right;
}

/* Its rows, and what a program makes of its columns. */
static tn_tensor *turned(tn_context *c, tn_tensor **x)
{
	tn_mesh *m = tn_mesh_new(c, 1, NULL, SHAPE(N));
	float v[ELEMS];
	tn_tensor *y;

	for (int32_t i = 0; i < ELEMS; i++)
		v[i] = (float)(i - 20);
	*x = tn_tensor_new(c, TN_F32, 2, SHAPE(ROWS, COLUMNS), v);
	tn_shard(*x, m, rows);
	tn_eval(x, 1);
	y = tn_neg(tn_reshard(*x, m, columns));
	tn_eval(&y, 1);
	return y;
}

static bool moves(tn_context *c)
{
	tn_device_stats before, s;

	for (int32_t i = 0; i < 3; i++) {
		tn_tensor *x, *y;

		tn_context_device_stats(c, &before);
		y = turned(c, &x);
		tn_context_device_stats(c, &s);
		if (s.bytes_to_peers == before.bytes_to_peers ||
			s.bytes_by_host != before.bytes_by_host ||
			!is_right(x, 1) || !is_right(y, -1))
			return false;
	}
	return strcmp(s.peers, "NCCL 2.28.9") == 0;
}

static bool lacks(tn_context *c)
{
	tn_tensor *x, *y = turned(c, &x);
	tn_device_stats s;

	if (!is_right(x, 1) || !is_right(y, -1))
		return false;
	tn_context_device_stats(c, &s);
	return s.bytes_to_peers == 0 && s.bytes_by_host > 0 &&
	       strstr(s.peers, "process 2: NCCL is not found") != NULL;
}

static bool refused(tn_context *c)
{
	tn_tensor *x, *y = turned(c, &x);
	const tn_diag *d = tn_context_diag(c);

	if (strcmp(d->rule, "cuda.nccl") != 0 ||
		strstr(d->text, "process 1: cuda:0: NCCL cannot send: fake: "
				"system error: the cable is cut") == NULL)
		return false;
	tn_context_clear(c);
	return is_right(x, 1) && is_right(y, -1) && moves(c);
}

/* What it sends never arrives, and then it is stopped. */
static bool stopped(tn_context *c)
{
	tn_tensor *x, *y = turned(c, &x);

	if (tn_process(c) == 1)
		raise(SIGSTOP);
	if (is_right(y, -1))
		return false;
	fprintf(stderr, "told: %s: %s\n", tn_context_diag(c)->rule,
		tn_context_diag(c)->text);
	return false; /* the process that is stopped does not end */
}

static const struct {
	const char *name;
	bool (*fn)(tn_context *c);
	/* of one process */
	int32_t process;
	const char *variable, *value;
	const char *text; /* among what is printed; NULL: all is well */
	bool by_messages;
} jobs[] = {
	{"moves", moves, -1, NULL, NULL, NULL, false},
	{"moves_sent", moves, -1, NULL, NULL, NULL, true},
	{"lacks", lacks, 2, "TENON_NCCL", "/nowhere", NULL, false},
	{"refused", refused, 1, "FAKE_NCCL_FAIL", "send 1", NULL, false},
	{"refused_sent", refused, 1, "FAKE_NCCL_FAIL", "send 1", NULL, true},
	{"stopped", stopped, 1, "FAKE_NCCL_FAIL", "hold 1", "told: shard.link",
		false},
	{"stopped_sent", stopped, 1, "FAKE_NCCL_FAIL", "hold 1",
		"told: shard.link", true},
};
enum { N_JOBS = sizeof jobs / sizeof *jobs };

static int child(const char *name)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;
	int32_t job = 0;
	bool ok;

	rank = rank != NULL ? rank : getenv("PMI_RANK");
	while (job < N_JOBS && strcmp(jobs[job].name, name) != 0)
		job++;
	if (job == N_JOBS || rank == NULL)
		return 2;
	if (atoi(rank) == jobs[job].process)
		setenv(jobs[job].variable, jobs[job].value, 1);
	o.threads = 1;
	if (tn_context_new(&c, &o) < 0)
		return 2;
	tn_shard_patience(c, 2);
	if (tn_join_mpi(c) < 0 || tn_n_processes(c) != N)
		return 2;
	ok = jobs[job].fn(c);
	if (!ok)
		fprintf(stderr, "process %s: %s\n", rank,
			tn_context_diag(c)->text);
	fflush(stderr);
	tn_context_free(c);
	return ok ? 0 : 1;
}

/* ---- the test ---- */

static char self[4000];
static char folder[] =
	"/tmp/cuda-mesh-XXXXXX"; /* what is stopped leaves files */

static const char *launcher(void)
{
	const char *own = getenv("TENON_MPIRUN");

	return own != NULL ? own : "mpirun";
}

static void each_job(void **state)
{
	int32_t i = *(int32_t *)*state;
	static char out[100000];
	char command[5000];
	size_t n;
	FILE *f;
	int status;

	snprintf(command, sizeof command,
		"TENON_SHARD_MEMORY=%s timeout 50 %s -n %d %s %s 2>&1",
		jobs[i].by_messages ? "off" : "on", launcher(), N, self,
		jobs[i].name);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(out, 1, sizeof out - 1, f);
	out[n] = '\0';
	status = pclose(f);
	if ((status == 0) != (jobs[i].text == NULL))
		print_message("%s", out);
	assert_int_equal(status == 0, jobs[i].text == NULL);
	/* 124: the time was up, they hung */
	assert_int_not_equal(status >> 8, 124);
	if (jobs[i].text != NULL && strstr(out, jobs[i].text) == NULL)
		fail_msg("no \"%s\" in: %s", jobs[i].text, out);
}

static int drop_folder(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

int main(int argc, char **argv)
{
	static int32_t number[N_JOBS];
	struct CMUnitTest tests[N_JOBS];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (argc > 1)
		return child(argv[1]);
	if (n <= 0 ||
		(getenv("TENON_MPIRUN") == NULL &&
			system("command -v mpirun >/dev/null 2>&1") != 0)) {
		printf("skipped: mpirun is not installed\n");
		return SKIP;
	}
	/* as root in a container, with fewer processors than processes */
	setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
	setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
	setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
	setenv("TENON_DEVICE", "cuda", 1);
	setenv("TENON_CUDA_DRIVER", FAKE_DRIVER, 1);
	setenv("TENON_NVRTC", FAKE_NVRTC, 1);
	setenv("TENON_NCCL", FAKE_NCCL, 1);
	if (mkdtemp(folder) == NULL)
		return 1;
	setenv("FAKE_NCCL_FOLDER", folder, 1);
	for (int32_t i = 0; i < N_JOBS; i++) {
		number[i] = i;
		tests[i] = (struct CMUnitTest){.name = jobs[i].name,
			.test_func = each_job,
			.initial_state = &number[i]};
	}
	return cmocka_run_group_tests(tests, NULL, drop_folder);
}
