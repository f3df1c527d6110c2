/*
 * merges.c: `tenon bench merges [MODEL...]`: measures whether each merge of
 * fusion makes its program faster.
 *
 * Each program is measured as it is and, for each of its merges, with the two
 * equations of the merge kept apart (tn_program_set_apart), in turn. The time
 * of the kernels in which the two versions differ is compared, each the least of
 * its runs: other work on the machine only adds to it. A merge of kernels with
 * equal C is measured once. A merge that seems slower by more than
 * a tenth is measured again, longer, before it is reported as a loser. What it does
 * to the whole program is told, too: by all its kernels, with these and with those.
 *
 *     fused 61 us, apart 40 us (predicted 35, 52), the program 1.01
 *     net.onnx: conv_3, mean_4
 */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

enum { AGAIN = 3, N_BINS = 7 };
#define MOST_LOST 1.1
#define LARGE_PART (1 - 1 / MOST_LOST) /* of a program's time */

typedef struct outcome {
	char subject[64], first[64], then[64], kernel[64];
	const char *term;
	double fused, apart, predicted_fused, predicted_apart;
	double ratio;	/* fused over apart */
	double program; /* .. of all kernels of the program */
} outcome;

typedef struct merges {
	int repeat;
	bool json;
	bool begun;   /* a program was opened */
	double until; /* cli_now: no merge is started after it; 0: no limit */
	uint64_t *seen;
	int n_seen, room_seen;
	outcome *at;
	int n, room;
	/* merges; known from equal kernels; not measured */
	int n_all, n_known, n_late;
	int n_late_large; /* .. whose kernel takes so much of its program's time that
			   * the program may be slower by more than a tenth */
} merges;

/* ---- lists ---- */

/* Makes room for one more element after n; NULL: out of memory. */
static void *more(void *at, int n, int *room, size_t size)
{
	int next = *room > 0 ? 2 * *room : 256;
	void *made;

	if (n < *room)
		return at;
	made = realloc(at, (size_t)next * size);
	if (made != NULL)
		*room = next;
	return made;
}

static bool is_seen(const merges *w, uint64_t what)
{
	for (int i = 0; i < w->n_seen; i++)
		if (w->seen[i] == what)
			return true;
	return false;
}

static bool see(merges *w, uint64_t what)
{
	uint64_t *at = more(w->seen, w->n_seen, &w->room_seen, sizeof *w->seen);

	if (at == NULL)
		return false;
	w->seen = at;
	w->seen[w->n_seen++] = what;
	return true;
}

/* ---- kernels that differ ---- */

/* For each kernel of two programs: does the other program not have it? */
typedef struct differ {
	bool *base, *apart;
} differ;

static bool same(const tn_kernel *a, const tn_kernel *b, bool by_name)
{
	if (by_name && strcmp(a->name, b->name) != 0)
		return false;
	return a->code == NULL ? b->code == NULL
			       : b->code != NULL && !strcmp(a->code, b->code);
}

static bool find_difference(
	const bench_kernels *base, const bench_kernels *apart, differ *d)
{
	d->base = cli_alloc((size_t)base->n + 1, sizeof *d->base);
	d->apart = cli_alloc((size_t)apart->n + 1, sizeof *d->apart);
	if (d->base == NULL || d->apart == NULL)
		return false;
	for (int32_t i = 0; i < base->n; i++)
		d->base[i] = true;
	for (int32_t k = 0; k < apart->n; k++)
		d->apart[k] = true;
	/* match kernels by equal names first, then by equal code */
	for (int pass = 0; pass < 2; pass++)
		for (int32_t i = 0; i < base->n; i++)
			for (int32_t k = 0; k < apart->n && d->base[i]; k++)
				if (d->apart[k] &&
					same(&base->at[i], &apart->at[k],
						pass == 0))
					d->base[i] = d->apart[k] = false;
	return true;
}

/* The predicted times of these kernels. */
static double predicted(const bench_kernels *k, const bool *which)
{
	double sum = 0;

	for (int32_t i = 0; i < k->n; i++)
		sum += which[i] ? k->at[i].predicted : 0;
	return sum;
}

/* The times of these kernels, each the least of its samples; NULL: of all. */
static double measured(const bench_kernels *k, const bool *which)
{
	double sum = 0;

	for (int32_t i = 0; i < k->n; i++)
		sum += which == NULL || which[i] ? bench_kernels_least(k, i)
						 : 0;
	return sum;
}

/* ---- one merge ---- */

/* Measures base and apart in turn; false: a run failed. */
static bool pairs(const bench_subject *s, bench_kernels *base, tn_program *p,
	int repeat, outcome *o)
{
	bench_kernels apart;
	differ d = {0};
	double all;
	bool good = bench_kernels_new(&apart, p, repeat) &&
		    bench_kernels_run(&apart, s, -1);

	for (int i = 0; good && i < repeat; i++)
		good = bench_kernels_run(base, s, i) &&
		       bench_kernels_run(&apart, s, i);
	good = good && find_difference(base, &apart, &d);
	if (good) {
		o->fused = measured(base, d.base);
		o->apart = measured(&apart, d.apart);
		o->ratio = o->fused / (o->apart + 1e-12);
		all = measured(base, NULL);
		o->program = all / (all - o->fused + o->apart + 1e-12);
		o->predicted_fused = predicted(base, d.base);
		o->predicted_apart = predicted(&apart, d.apart);
	}
	bench_kernels_free(&apart);
	free(d.base);
	free(d.apart);
	return good;
}

static void say(const outcome *o, bool json)
{
	if (!json) {
		printf("%9.1f %9.1f %7.2f %7.2f %10.1f %10.1f  %s: %s, %s in "
		       "%s, mostly %s\n",
			1e6 * o->fused, 1e6 * o->apart, o->ratio, o->program,
			1e6 * o->predicted_fused, 1e6 * o->predicted_apart,
			o->subject, o->first, o->then, o->kernel, o->term);
		fflush(stdout);
		return;
	}
	printf("{\"bench\":\"merges\",\"program\":");
	cli_json_text(stdout, o->subject);
	printf(",\"first\":");
	cli_json_text(stdout, o->first);
	printf(",\"then\":");
	cli_json_text(stdout, o->then);
	printf(",\"kernel\":");
	cli_json_text(stdout, o->kernel);
	printf(",\"mostly\":");
	cli_json_text(stdout, o->term);
	printf(",\"fused\":");
	cli_json_number(stdout, o->fused);
	printf(",\"apart\":");
	cli_json_number(stdout, o->apart);
	printf(",\"predicted_fused\":");
	cli_json_number(stdout, o->predicted_fused);
	printf(",\"predicted_apart\":");
	cli_json_number(stdout, o->predicted_apart);
	printf(",\"ratio\":");
	cli_json_number(stdout, o->ratio);
	printf(",\"program_ratio\":");
	cli_json_number(stdout, o->program);
	printf("}\n");
	fflush(stdout);
}

static bool one(merges *w, const bench_subject *s, bench_kernels *base,
	const tn_merge *m)
{
	outcome *at = more(w->at, w->n, &w->room, sizeof *w->at);
	bench_kernels longer;
	tn_program *p = NULL;
	outcome o = {.term = base->at[m->kernel].term};
	bool good;

	if (at == NULL)
		return false;
	w->at = at;
	snprintf(o.subject, sizeof o.subject, "%s", s->name);
	snprintf(o.first, sizeof o.first, "%s", m->first);
	snprintf(o.then, sizeof o.then, "%s", m->then);
	snprintf(o.kernel, sizeof o.kernel, "%s", base->at[m->kernel].name);
	if (!bench_subject_program(s, &p))
		return false;
	good = tn_program_set_apart(p, m->first, m->then) >= 0 &&
	       tn_program_compile(p) >= 0;
	if (!good)
		cli_diag(tn_context_diag(s->c));
	good = good && pairs(s, base, p, w->repeat, &o);
	if (good && o.ratio > MOST_LOST) {
		good = bench_kernels_new(&longer, s->p, AGAIN * w->repeat) &&
		       bench_kernels_run(&longer, s, -1) &&
		       pairs(s, &longer, p, AGAIN * w->repeat, &o);
		bench_kernels_free(&longer);
	}
	tn_program_free(p);
	if (!good)
		return false;
	w->at[w->n++] = o;
	if (w->json || o.ratio > MOST_LOST)
		say(&o, w->json);
	return true;
}

/* ---- one program ---- */

static void begin(merges *w)
{
	if (!w->begun && !w->json)
		printf("%9s %9s %7s %7s %10s %10s  losers\n", "fused us",
			"apart us", "ratio", "program", "predicted", "apart");
	w->begun = true;
}

typedef struct todo {
	tn_merge m;
	double seconds; /* time of its kernel */
	uint64_t what;	/* equal for the same merge in an equal kernel */
} todo;

static int by_time(const void *a, const void *b)
{
	const todo *x = a, *y = b;

	return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : 0;
}

static uint64_t hash_of(const tn_kernel *k, const tn_merge *m)
{
	uint64_t h = bench_hash(k->code != NULL ? k->code : k->name);

	return ((h ^ (uint64_t)m->at[0]) * 0x100000001b3u ^
		       (uint64_t)m->at[1]) *
	       0x100000001b3u;
}

/*
 * Lists merges, those of the slowest kernels first, because the time is
 * limited.
 */
static todo *list(const bench_subject *s, const bench_kernels *base, int32_t n)
{
	todo *t = cli_alloc((size_t)n + 1, sizeof *t);

	for (int32_t i = 0; t != NULL && i < n; i++) {
		if (tn_program_merge(&t[i].m, s->p, i) < 0) {
			cli_diag(tn_context_diag(s->c));
			free(t);
			return NULL;
		}
		t[i].seconds = base->before[t[i].m.kernel];
		t[i].what = hash_of(&base->at[t[i].m.kernel], &t[i].m);
	}
	if (t != NULL)
		qsort(t, (size_t)n, sizeof *t, by_time);
	return t;
}

static bool visit(void *arg, bench_subject *s)
{
	merges *w = arg;
	bench_kernels base;
	int32_t n = tn_program_n_merges(s->p);
	double total = 0;
	todo *t = NULL;
	bool good;

	begin(w);
	good = bench_kernels_new(&base, s->p, w->repeat) &&
	       bench_kernels_run(&base, s, -1) &&
	       bench_kernels_run(&base, s, -1);
	if (good)
		t = list(s, &base, n);
	good = t != NULL;
	for (int32_t i = 0; good && i < base.n; i++)
		total += base.before[i];
	for (int32_t i = 0; good && i < n; i++) {
		w->n_all++;
		if (is_seen(w, t[i].what)) {
			w->n_known++;
		} else if (w->until > 0 && cli_now() > w->until) {
			w->n_late++;
			w->n_late_large += t[i].seconds > total * LARGE_PART;
		} else {
			cli_progress("bench merges: %s, %d of %d", s->name,
				(int)i + 1, (int)n);
			good = see(w, t[i].what) && one(w, s, &base, &t[i].m);
		}
	}
	free(t);
	bench_kernels_free(&base);
	return good;
}

/* ---- all ---- */

static void say_bins(const merges *w)
{
	static const double edge[N_BINS + 1] = {
		0, 0.5, 0.8, 0.95, 1.05, MOST_LOST, 1.5, 1e9};

	printf("\nfused over apart:\n");
	for (int b = 0; b < N_BINS; b++) {
		int n = 0;

		for (int i = 0; i < w->n; i++)
			n += w->at[i].ratio > edge[b] &&
			     w->at[i].ratio <= edge[b + 1];
		if (b + 1 < N_BINS)
			printf("  %4.2f to %4.2f %6d\n", edge[b], edge[b + 1],
				n);
		else
			printf("  over %4.2f    %6d\n", edge[b], n);
	}
}

static void say_all(const merges *w)
{
	const outcome *worst = NULL, *all = NULL;
	int losers = 0, slower = 0;

	for (int i = 0; i < w->n; i++) {
		losers += w->at[i].ratio > MOST_LOST;
		if (worst == NULL || w->at[i].ratio > worst->ratio)
			worst = &w->at[i];
		slower += w->at[i].program > MOST_LOST;
		if (all == NULL || w->at[i].program > all->program)
			all = &w->at[i];
	}
	if (w->json) {
		printf("{\"bench\":\"merges\",\"merges\":%d,\"measured\":%d,"
		       "\"not_measured\":%d,\"not_measured_large\":%d,"
		       "\"losers\":%d,\"programs_slower\":%d,\"worst\":",
			w->n_all, w->n, w->n_late, w->n_late_large, losers,
			slower);
		cli_json_number(stdout, worst != NULL ? worst->ratio : 0);
		printf(",\"worst_program\":");
		cli_json_number(stdout, all != NULL ? all->program : 0);
		printf("}\n");
		return;
	}
	say_bins(w);
	printf("\none thread, its own time, the least of %d runs in turn (%d "
	       "where fused looked slower)\n"
	       "merges  %d: %d measured, %d the same as these, %d not reached "
	       "in time, of which %d are in kernels that take a tenth of their "
	       "program\n"
	       "losers  %d, slower than apart by more than %.0f %%; %d of them "
	       "make the whole program so much slower\n",
		w->repeat, AGAIN * w->repeat, w->n_all, w->n, w->n_known,
		w->n_late, w->n_late_large, losers, 100 * (MOST_LOST - 1),
		slower);
	if (worst != NULL)
		printf("worst   %.2f: %s and %s of %s\n", worst->ratio,
			worst->first, worst->then, worst->subject);
	if (all != NULL)
		printf("program %.2f: %s and %s of %s\n", all->program,
			all->first, all->then, all->subject);
}

int bench_merges(const char *const *files, const char *only, int repeat,
	double seconds, bool json)
{
	merges w = {.repeat = repeat,
		.json = json,
		.until = seconds > 0 ? cli_now() + seconds : 0};
	bool good;

	good = bench_each_subject(files, only, visit, &w);
	if (good || w.begun) /* else the error says it all */
		say_all(&w);
	free(w.seen);
	free(w.at);
	return good ? CLI_OK : CLI_FAILED;
}
