/*
 * proptest.c: seeded random programs, compiled against interpreted.
 *
 *   proptest --seed S --count N [--first I] [--jobs J] [--asan-share PERCENT]
 *            [--batch B] [--keep DIR] [--verbose] [--contract | --casts | --warpgroups]
 *            [--front]
 *
 * --contract: programs around sums of products (draw_contract.c). --casts:
 * casts between all types (draw_cast.c). --front: texts and verifiers of all
 * levels alone, nothing is compiled or run. Program I of seed S is the same
 * anywhere. Programs run in batches, each in a process of its own (this program
 * again, with --child), so that a crash costs one program; some batches run
 * under ASan and UBSan. A failure prints
 * its seed and number, the program made small, and the first element that
 * differs. Last line: N passed, N failed, N skipped; exit status 0 if none
 * failed.
 */
#include "prop.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_JOBS = 16, MAX_SHRINKS = 2, MAX_ROWS = 1024, MAX_RESTS = 64 };

/* ---- in the process of a batch ----------------------------------------- */

typedef struct child {
	const prop_options *o;
	arena *a;
	ir_table *t;
	prop_result r;
	int32_t shrinks;
	row_count count[MAX_ROWS];
	batch *b;
	int64_t n;
	prop_case **c;
	job **j;
} child;

static void say(const char *what, uint64_t index)
{
	printf("@%s %" PRIu64 "\n", what, index);
	fflush(stdout);
}

static void keep_text(const child *k, uint64_t index, const char *program)
{
	char path[512];
	FILE *f;

	if (k->o->keep == NULL)
		return;
	snprintf(path, sizeof path, "%s/%" PRIu64 "_%" PRIu64 ".tn",
		k->o->keep, k->o->seed, index);
	f = fopen(path, "w");
	if (f == NULL)
		return;
	fputs(program, f);
	fclose(f);
}

static void report(child *k, prop_case *c, const char *message)
{
	static const char *const styles[] = {"exact", "general", "special"};
	str s = str_new(k->a);

	k->r.failed++;
	if (k->shrinks++ < MAX_SHRINKS) {
		prop_case *small = shrink_case(
			k->a, k->t, k->o, c, &message);

		ir_program_print(&s, small->p);
	} else {
		ir_program_print(&s, c->p);
	}
	say("fail", c->index);
	printf("FAILED --seed %" PRIu64 " --first %" PRIu64
	       " --count 1%s (%s data)\n%s%s\n\n",
		k->o->seed, c->index,
		k->o->asan ? " --asan-share 100" : "", styles[c->style], s.at,
		message);
	fflush(stdout);
	keep_text(k, c->index, s.at);
}

static prop_case *draw_program(child *k, uint64_t index)
{
	if (k->o->warpgroups)
		return draw_warpgroups(k->a, k->o->seed, index);
	if (k->o->contract)
		return draw_contract(k->a, k->o->seed, index);
	if (k->o->casts)
		return draw_cast(k->a, k->t, k->o->seed, index);
	return draw_case(k->a, k->t, k->o->seed, index, k->count);
}

static void front_ends(child *k)
{
	for (int64_t i = 0; i < k->n; i++) {
		const char *message = NULL;

		say("front", (uint64_t)(k->o->first + i));
		k->c[i] = draw_program(k, (uint64_t)(k->o->first + i));
		if (k->c[i]->p->output.n == 0) {
			k->r.skipped++;
			continue;
		}
		k->j[i] = job_new(k->a, k->t, k->o, k->c[i], &message);
		if (k->j[i] == NULL || !job_add(k->j[i], k->b, &message)) {
			k->j[i] = NULL;
			report(k, k->c[i], message);
		}
	}
}

/* The batch does not compile: find out whose fault it is. */
static void one_by_one(child *k, const char *message)
{
	bool found = false;

	for (int64_t i = 0; i < k->n; i++) {
		const char *m = NULL;

		if (k->j[i] == NULL)
			continue;
		say("run", k->c[i]->index);
		m = try_case(k->a, k->t, k->o, k->c[i], &k->r);
		if (m != NULL) {
			report(k, k->c[i], m);
			found = true;
		} else {
			k->r.passed++;
		}
	}
	if (!found) {
		say("fail", (uint64_t)k->o->first);
		printf("FAILED: together the programs do not compile\n%s\n",
			message);
		k->r.failed++;
	}
}

static void run_child(void *arg)
{
	child *k = arg;
	const char *message = NULL;

	k->t = ir_table_new(k->a);
	k->n = k->o->count;
	k->c = arena_array(k->a, prop_case *, k->n + 1);
	k->j = arena_array(k->a, job *, k->n + 1);
	k->b = batch_new(k->a, k->o);
	front_ends(k);
	for (int64_t i = 0; k->o->front && i < k->n; i++)
		k->r.passed += k->j[i] != NULL;
	if (k->o->front)
		return;
	if (!batch_compile(k->b, &message)) {
		one_by_one(k, message);
		return;
	}
	for (int64_t i = 0; i < k->n; i++) {
		if (k->j[i] == NULL)
			continue;
		say("run", k->c[i]->index);
		if (job_run(k->j[i], k->b, &message, &k->r))
			k->r.passed++;
		else
			report(k, k->c[i], message);
	}
}

static void make_arena(void *arg)
{
	child *k = arg;

	k->a = arena_new(env_new());
}

static int child_main(const prop_options *o)
{
	static child k;
	env *e = env_new(), *inner;
	tn_status s;

	unsetenv("LD_PRELOAD"); /* the compiler is to run as it is */
	k.o = o;
	if (e == NULL || env_run(e, make_arena, &k) != TN_OK)
		return 1;
	inner = arena_env(k.a);
	s = env_run(inner, run_child, &k);
	if (s != TN_OK) {
		const tn_diag *d = env_diag(inner);

		printf("[%s] %s\n", d->rule, d->text);
		return 1;
	}
	printf("@done %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
	       " %" PRId64 " %" PRId64 " %" PRId64 "\n",
		k.r.passed, k.r.failed, k.r.skipped, k.r.exact, k.r.bounded,
		k.r.free, k.r.ranges, k.r.kernels);
	for (int32_t i = 0; i < ir_table_n(k.t) && i < MAX_ROWS; i++)
		if (k.count[i].tried > 0)
			printf("@row %d %" PRId64 " %" PRId64 "\n", i,
				k.count[i].tried, k.count[i].made);
	arena_free(k.a);
	env_free(inner);
	env_free(e);
	return 0;
}

/* ---- in the process that starts them ----------------------------------- */

typedef struct process {
	pid_t pid;
	int fd;
	int64_t first, count;
	bool asan;
	char *text;
	size_t n, cap;
} process;

typedef struct parent {
	const prop_options *o;
	const char *libasan;
	process p[MAX_JOBS];
	int32_t n;
	int64_t next; /* program that is not yet in a batch */
	int32_t n_rest; /* what a crash left undone */
	struct rest {
		int64_t first, count;
		bool asan;
	} rest[MAX_RESTS];
	prop_result r;
	row_count count[MAX_ROWS];
} parent;

static void start(parent *k, int64_t first, int64_t count, bool asan)
{
	process *p = &k->p[k->n];
	char number[5][32];
	int fd[2];

	if (pipe(fd) != 0) {
		perror("pipe");
		exit(1);
	}
	*p = (process){.fd = fd[0], .first = first, .count = count,
		.asan = asan};
	snprintf(number[0], 32, "%" PRIu64, k->o->seed);
	snprintf(number[1], 32, "%" PRId64, first);
	snprintf(number[2], 32, "%" PRId64, count);
	fflush(NULL);
	p->pid = fork();
	if (p->pid == 0) {
		const char *argv[] = {k->o->self, "--child", "--seed",
			number[0], "--first", number[1], "--count", number[2],
			"--keep", k->o->keep != NULL ? k->o->keep : "",
			(first / k->o->batch) % 3 == 0 ? "--O3" : "--O1",
			k->o->warpgroups ? "--warpgroups"
			: k->o->contract ? "--contract"
			: k->o->casts	 ? "--casts"
					 : "--rows",
			k->o->front ? "--front" : "--rows",
			k->o->simt ? "--simt" : "--rows",
			asan ? "--asan" : NULL, NULL};

		dup2(fd[1], 1);
		dup2(fd[1], 2);
		close(fd[0]);
		close(fd[1]);
		if (asan) {
			setenv("LD_PRELOAD", k->libasan, 1);
			setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
			setenv("UBSAN_OPTIONS", "print_stacktrace=1", 1);
		}
		execv(k->o->self, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(fd[1]);
	k->n++;
}

static void read_more(process *p)
{
	ssize_t n;

	if (p->cap - p->n < 8192) {
		p->cap = 2 * p->cap + 16384;
		p->text = realloc(p->text, p->cap);
		if (p->text == NULL)
			exit(1);
	}
	n = read(p->fd, p->text + p->n, p->cap - p->n - 1);
	if (n > 0)
		p->n += (size_t)n;
	p->text[p->n] = '\0';
	if (n <= 0 && !(n < 0 && errno == EINTR)) {
		close(p->fd);
		p->fd = -1;
	}
}

/* What a process wrote: its results; lines that are none are shown. */
static bool take(parent *k, const process *p, int64_t *last)
{
	bool done = false;
	char *save = NULL, *from = p->text;
	int32_t lines = 0;

	*last = p->first;
	if (strstr(p->text, "@done ") == NULL) {
		/* the rest will run again: only what belongs to the crash */
		for (char *l = p->text; l != NULL; l = strstr(l + 1, "\n@"))
			from = l;
	}
	for (char *l = strtok_r(p->text, "\n", &save); l != NULL;
		l = strtok_r(NULL, "\n", &save)) {
		int64_t v[8];
		int32_t row;

		if (sscanf(l, "@run %" SCNd64, last) == 1 ||
			sscanf(l, "@front %" SCNd64, last) == 1 ||
			sscanf(l, "@fail %" SCNd64, last) == 1)
			continue;
		if (sscanf(l, "@done %" SCNd64 " %" SCNd64 " %" SCNd64
			      " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
			      " %" SCNd64,
			    &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
			    &v[7]) == 8) {
			int64_t *to[] = {&k->r.passed, &k->r.failed,
				&k->r.skipped, &k->r.exact, &k->r.bounded,
				&k->r.free, &k->r.ranges, &k->r.kernels};

			for (int32_t i = 0; i < 8; i++)
				*to[i] += v[i];
			done = true;
		} else if (sscanf(l, "@row %d %" SCNd64 " %" SCNd64, &row,
				   &v[0], &v[1]) == 3 &&
			row >= 0 && row < MAX_ROWS) {
			k->count[row].tried += v[0];
			k->count[row].made += v[1];
		} else if (lines++ < 400) {
			if (l >= from)
				printf("%s\n", l);
		}
	}
	return done;
}

static void add_rest(parent *k, int64_t first, int64_t count, bool asan)
{
	if (count > 0 && k->n_rest < MAX_RESTS)
		k->rest[k->n_rest++] = (struct rest){first, count, asan};
}

static void finish(parent *k, int32_t i)
{
	process *p = &k->p[i];
	int status = 0;
	int64_t last;
	bool done;

	while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		;
	done = take(k, p, &last);
	if (!done) {
		printf("FAILED --seed %" PRIu64 " --first %" PRId64
		       " --count 1%s: the process ends with status %d\n\n",
			k->o->seed, last, p->asan ? " --asan-share 100" : "",
			status);
		k->r.failed++;
		/* the others of the batch run again, without it */
		add_rest(k, p->first, last - p->first, p->asan);
		add_rest(k, last + 1, p->first + p->count - last - 1, p->asan);
	}
	fflush(stdout);
	free(p->text);
	*p = k->p[--k->n];
}

static bool start_next(parent *k)
{
	int64_t end = k->o->first + k->o->count, n = k->o->batch, number;

	if (k->n_rest > 0) {
		const struct rest *r = &k->rest[--k->n_rest];

		start(k, r->first, r->count, r->asan);
		return true;
	}
	if (k->next >= end)
		return false;
	number = (k->next - k->o->first) / n;
	if (n > end - k->next)
		n = end - k->next;
	start(k, k->next, n, k->libasan != NULL &&
		(number * 37 + 5) % 100 < k->o->asan_share);
	k->next += n;
	return true;
}

static void wait_some(parent *k)
{
	struct pollfd f[MAX_JOBS];
	int32_t n = k->n < MAX_JOBS ? k->n : MAX_JOBS;

	for (int32_t i = 0; i < n; i++)
		f[i] = (struct pollfd){.fd = k->p[i].fd, .events = POLLIN};
	if (poll(f, (nfds_t)(n > 0 ? n : 0), -1) < 0 && errno != EINTR)
		exit(1);
	for (int32_t i = n - 1; i >= 0; i--) {
		if (f[i].revents == 0)
			continue;
		read_more(&k->p[i]);
		if (k->p[i].fd < 0)
			finish(k, i);
	}
}

static void print_rows(const parent *k)
{
	env *e = env_new();
	child c = {0};

	if (e == NULL || env_run(e, make_arena, &c) != TN_OK)
		return;
	c.t = ir_table_new(c.a);
	for (int32_t i = 0; i < ir_table_n(c.t) && i < MAX_ROWS; i++)
		printf("%8" PRId64 " of %8" PRId64 " %s%s\n", k->count[i].made,
			k->count[i].tried, ir_row_name(ir_table_at(c.t, i)),
			k->count[i].made == 0 ? "   NEVER" : "");
	arena_free(c.a);
}

static int parent_main(const prop_options *o)
{
	static parent k;

	k.o = o;
	k.next = o->first;
	k.libasan = o->asan_share > 0 ? getenv("PROPTEST_LIBASAN") : NULL;
	if (o->asan_share > 0 && (k.libasan == NULL || k.libasan[0] == '\0')) {
		printf("no libasan: nothing runs under the sanitizers\n");
		k.libasan = NULL;
	}
	for (;;) {
		while (k.n < o->jobs && start_next(&k))
			;
		if (k.n == 0)
			break;
		wait_some(&k);
	}
	if (o->verbose)
		print_rows(&k);
	printf("%" PRId64 " kernels; elements: %" PRId64 " equal, %" PRId64
	       " within their bound, %" PRId64 " without one; %" PRId64
	       " range errors\n",
		k.r.kernels, k.r.exact, k.r.bounded, k.r.free, k.r.ranges);
	printf("%" PRId64 " passed, %" PRId64 " failed, %" PRId64
	       " skipped\n",
		k.r.passed, k.r.failed, k.r.skipped);
	return k.r.failed > 0 || k.r.passed == 0;
}

/* ---- arguments --------------------------------------------------------- */

static bool number(const char *s, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(s, &end, 10);
	return errno == 0 && end != s && *end == '\0' && *out >= 0;
}

static bool parse_args(int argc, char **argv, prop_options *o)
{
	int64_t seed = 1, jobs = 2, share = 10, size = 50;
	struct {
		const char *name;
		int64_t *to;
	} numbers[] = {{"--seed", &seed}, {"--count", &o->count},
		{"--first", &o->first}, {"--jobs", &jobs},
		{"--asan-share", &share}, {"--batch", &size}};

	for (int i = 1; i < argc; i++) {
		bool known = false;

		for (size_t k = 0; k < 6 && !known; k++)
			if (strcmp(argv[i], numbers[k].name) == 0) {
				if (++i == argc ||
					!number(argv[i], numbers[k].to))
					return false;
				known = true;
			}
		if (known)
			continue;
		if (strcmp(argv[i], "--keep") == 0 && i + 1 < argc)
			o->keep = argv[++i][0] != '\0' ? argv[i] : NULL;
		else if (strcmp(argv[i], "--verbose") == 0)
			o->verbose = true;
		else if (strcmp(argv[i], "--contract") == 0)
			o->contract = true;
		else if (strcmp(argv[i], "--casts") == 0)
			o->casts = true;
		else if (strcmp(argv[i], "--front") == 0)
			o->front = true;
		else if (strcmp(argv[i], "--simt") == 0)
			o->simt = true;
		else if (strcmp(argv[i], "--warpgroups") == 0)
			o->warpgroups = o->simt = true;
		else if (strcmp(argv[i], "--child") == 0)
			o->child = true;
		else if (strcmp(argv[i], "--asan") == 0)
			o->asan = true;
		else if (strcmp(argv[i], "--O3") == 0)
			o->opt3 = true;
		else if (strcmp(argv[i], "--O1") != 0 &&
			strcmp(argv[i], "--rows") != 0)
			return false;
	}
	if (o->simt)
		share = 0; /* fibers are not what sanitizers know */
	o->seed = (uint64_t)seed;
	o->jobs = jobs < 1 ? 1 : jobs > MAX_JOBS ? MAX_JOBS : (int32_t)jobs;
	o->asan_share = (int32_t)(share > 100 ? 100 : share);
	o->batch = (int32_t)(size < 1 ? 1 : size > 1000 ? 1000 : size);
	return true;
}

int main(int argc, char **argv)
{
	prop_options o = {.count = 500, .self = "/proc/self/exe"};

	if (!parse_args(argc, argv, &o)) {
		fputs("usage: proptest [--seed S] [--count N] [--first I]"
		      " [--jobs J] [--asan-share PERCENT] [--batch B]"
		      " [--keep DIR] [--verbose]"
		      " [--contract | --casts | --warpgroups] [--simt]\n",
			stderr);
		return 2;
	}
	return o.child ? child_main(&o) : parent_main(&o);
}
