/*
 * fake_nvrtc.c: libnvrtc.so without CUDA: see fake_cuda.h.
 *
 * A text begins with the prelude of target/cuda. The one of target/simt replaces
 * it, and the C compiler compiles the rest.
 */
#define _GNU_SOURCE
#include "fake_cuda.h"

#include "target/cuda/prelude.h"
#include "target/simt/prelude.h"

#include <ctype.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define EXPORT __attribute__((visibility("default")))
enum { OK, BAD_INPUT = 3, BAD_OPTION = 5, FAILED = 6 };

typedef struct program {
	char *text, *code;
	size_t n_code;
	bool is_part; /* it is to be linked */
	char log[4096];
} program;

typedef struct buffer {
	char *at;
	size_t n, room;
} buffer;

static void add(buffer *t, const char *s, size_t n)
{
	if (t->n + n + 1 > t->room) {
		t->room = 2 * (t->n + n + 1);
		t->at = realloc(t->at, t->room);
		if (t->at == NULL)
			abort();
	}
	memcpy(t->at + t->n, s, n);
	t->n += n;
	t->at[t->n] = '\0';
}

static void say(buffer *t, const char *s)
{
	add(t, s, strlen(s));
}

/* The grid, of which one block runs at a time; and the memory that this needs. */
static const char grid[] =
	"static struct simt_index fake_at, fake_grid;\n"
	"#define blockIdx fake_at\n"
	"#define gridDim fake_grid\n"
	"#undef FAIL\n"
	"#define FAIL(err, n) fake_fail((err), (n))\n"
	"SIMT_USED static void fake_fail(simt_int *err, simt_int n)\n"
	"{ if ((simt_word)n < (simt_word)*err) *err = n; }\n"
	"unsigned long fake_memory(unsigned long warps, unsigned long shared)\n{\n"
	"	const unsigned long words = (shared + 7) / 8;\n"
	"	unsigned long n = SIMT_STACK + warps * (32 * SIMT_STACK + 2048 +\n"
	"		SIMT_CELLS * sizeof(struct simt_cell));\n"
	"	if (warps > 1)\n"
	"		n += SIMT_BLOCK_CELLS * sizeof(struct simt_cell);\n"
	"	if (shared > 0)\n"
	"		n += (shared + 63) / 64 * 64 + words * (sizeof(struct simt_cell)\n"
	"			+ 2) + warps * 32 * SIMT_COPIES * sizeof(struct simt_copy);\n"
	"	return n;\n}\n";

/* One block of a kernel, from `KERNEL(name)(` on: its params by their types. */
static void add_kernel(buffer *t, const char *head)
{
	const char *end = strchr(head, ')');
	const char *p = strchr(end, '(') + 1, *close = strstr(p, ")\n{");
	int n = 0, name = (int)(end - head);
	char line[1024];
	buffer bytes = {0};

	snprintf(line, sizeof line,
		"static void fake_%.*s(const struct simt_call *c)\n{\n"
		"	void *const *a = c->p;\n	%.*s_lane(", name, head,
		name, head);
	say(t, line);
	while (p < close) {
		const char *comma = memchr(p, ',', (size_t)(close - p));
		const char *last = comma != NULL ? comma : close, *type = last;

		while (isalnum((unsigned char)type[-1]) || type[-1] == '_')
			type--;
		snprintf(line, sizeof line, "%s*(%.*s *)a[%d]",
			n > 0 ? ", " : "", (int)(type - p), p, n);
		say(t, line);
		snprintf(line, sizeof line, "sizeof(%.*s), ", (int)(type - p), p);
		say(&bytes, line);
		n++;
		p = last + 1;
	}
	snprintf(line, sizeof line,
		");\n}\nconst int fake_n_%.*s = %d;\nconst int fake_bytes_%.*s[] = { ",
		name, head, n, name, head);
	say(t, line);
	say(t, bytes.at != NULL ? bytes.at : "0");
	free(bytes.at);
	snprintf(line, sizeof line,
		" };\n"
		"simt_int %.*s(unsigned grid, unsigned warps, unsigned at, "
		"unsigned shared, void **params, char *memory)\n{\n"
		"	simt_int failed = 0;\n"
		"	struct simt_call c = { params, 0, 0, at, &failed };\n"
		"	fake_grid.x = grid, fake_at.x = at;\n"
		"	simt_run_block(fake_%.*s, &c, memory, (int)warps, shared);\n"
		"	return failed;\n}\n",
		name, head, name, head);
	say(t, line);
}

static const char kernel[] = "\nextern \"C\" __global__ void ";

/* C of a text that has no prelude, but sets conditions; NULL: it is not that. */
static char *translated_plain(const char *cuda)
{
	buffer t = {0};
	const char *at = strstr(cuda, "extern \"C\" __device__ void "
				      "cudaGraphSetConditional("), *end;

	if (at == NULL)
		return NULL;
	for (int i = 0; simt_prelude[i] != NULL; i++)
		say(&t, simt_prelude[i]);
	say(&t, grid);
	say(&t, "void (*fake_set_condition)(unsigned long long, unsigned);\n"
		"#define cudaGraphSetConditional fake_set_condition\n");
	add(&t, cuda, (size_t)(at - cuda));
	cuda = strchr(at, ';') + 1;
	for (at = cuda; (end = strstr(at, kernel)) != NULL;
		at = strchr(end + strlen(kernel), '(')) {
		const char *name = end + strlen(kernel);

		add(&t, at, (size_t)(end - at));
		say(&t, "\nKERNEL(");
		add(&t, name, strcspn(name, "("));
		say(&t, ")");
	}
	say(&t, at);
	at = cuda = strdup(t.at);
	while ((at = strstr(at, "\nKERNEL(")) != NULL) {
		at += strlen("\nKERNEL(");
		add_kernel(&t, at);
	}
	free((char *)(uintptr_t)cuda);
	return t.at;
}

/* C of CUDA C; NULL: it does not begin with the prelude. */
static char *translated(const char *cuda)
{
	buffer t = {0};
	const char *at = cuda;

	for (int i = 0; cuda_prelude[i] != NULL; i++) {
		size_t n = strlen(cuda_prelude[i]);

		if (strncmp(at, cuda_prelude[i], n) != 0)
			return NULL;
		at += n;
	}
	for (int i = 0; simt_prelude[i] != NULL; i++)
		say(&t, simt_prelude[i]);
	say(&t, grid);
	say(&t, at);
	at--; /* the end of the prelude's last line */
	while ((at = strstr(at, "\nKERNEL(")) != NULL) {
		at += strlen("\nKERNEL(");
		add_kernel(&t, at);
	}
	return t.at;
}

static char *read_all(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *data;
	long size;

	if (f == NULL)
		return NULL;
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	data = malloc((size_t)size + 1);
	*n = fread(data, 1, (size_t)size, f);
	data[*n] = '\0';
	fclose(f);
	return data;
}

/* Compiles dir/k.c to dir/k.so; what the compiler says is in dir/log. */
static bool run_compiler(const char *dir, const char *source, size_t n)
{
	char c[64], so[64], log[64];
	char *argv[] = {"cc", "-std=gnu11", "-O1", "-w", "-shared", "-fPIC",
		"-ffp-contract=off", "-fno-math-errno", "-march=native", "-o",
		so, c, "-lm", NULL};
	posix_spawn_file_actions_t files;
	pid_t pid;
	int status = -1;
	FILE *f;

	snprintf(c, sizeof c, "%s/k.c", dir);
	snprintf(so, sizeof so, "%s/k.so", dir);
	snprintf(log, sizeof log, "%s/log", dir);
	f = fopen(c, "wb");
	if (f == NULL)
		return false;
	fwrite(source, 1, n, f);
	fclose(f);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(
		&files, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (posix_spawnp(&pid, argv[0], &files, NULL, argv, environ) == 0)
		waitpid(pid, &status, 0);
	posix_spawn_file_actions_destroy(&files);
	return status == 0;
}

static int compile(program *p)
{
	char dir[] = "/tmp/fake-nvrtc-XXXXXX", path[64];
	char *c = p->is_part ? translated_plain(p->text) : translated(p->text);
	static const char *const names[] = {"k.c", "k.so", "log"};
	size_t n = 0;
	bool ok;

	if (c == NULL) {
		snprintf(p->log, sizeof p->log,
			"kernels.cu(1): error: another prelude\n");
		return FAILED;
	}
	if (mkdtemp(dir) == NULL)
		abort();
	ok = run_compiler(dir, c, strlen(c));
	free(c);
	snprintf(path, sizeof path, "%s/%s", dir, ok ? "k.so" : "log");
	c = read_all(path, &n);
	if (!ok)
		snprintf(p->log, sizeof p->log, "%s", c != NULL ? c : "error");
	if (ok) {
		uint64_t size = n;

		p->n_code = n + 16;
		p->code = malloc(p->n_code);
		memcpy(p->code, p->is_part ? FAKE_PART : FAKE_MAGIC, 8);
		memcpy(p->code + 8, &size, 8);
		memcpy(p->code + 16, c, n);
	}
	free(c);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
	return ok ? OK : FAILED;
}

/* ---- nvrtc.h ----------------------------------------------------------- */

EXPORT int nvrtcVersion(int *major, int *minor)
{
	const char *v = getenv("FAKE_NVRTC_VERSION");

	*major = 12;
	*minor = 4;
	if (v != NULL)
		sscanf(v, "%d.%d", major, minor);
	return OK;
}

static const int archs[] = {75, 80, 86, 89, 90};

EXPORT int nvrtcGetNumSupportedArchs(int *n)
{
	*n = (int)(sizeof archs / sizeof *archs);
	return OK;
}

EXPORT int nvrtcGetSupportedArchs(int *arch)
{
	memcpy(arch, archs, sizeof archs);
	return OK;
}

EXPORT int nvrtcCreateProgram(program **p, const char *text, const char *name,
	int n, const char *const *header, const char *const *header_name)
{
	(void)name, (void)header, (void)header_name;
	if (n != 0)
		return BAD_INPUT;
	*p = calloc(1, sizeof **p);
	(*p)->text = strdup(text);
	return OK;
}

EXPORT int nvrtcDestroyProgram(program **p)
{
	free((*p)->text);
	free((*p)->code);
	free(*p);
	*p = NULL;
	return OK;
}

EXPORT int nvrtcCompileProgram(program *p, int n, const char *const *option)
{
	bool has_arch = false, is_exact = false;

	for (int i = 0; i < n; i++) {
		has_arch = has_arch || !strncmp(option[i], "--gpu-arch", 10);
		is_exact = is_exact || !strcmp(option[i], "--fmad=false");
		p->is_part = p->is_part ||
			!strcmp(option[i], "--relocatable-device-code=true");
	}
	if (!has_arch || !is_exact)
		return BAD_OPTION;
	if (getenv("FAKE_NVRTC_FAIL") != NULL) {
		snprintf(p->log, sizeof p->log,
			"some words\nkernels.cu(7): error: planted\nmore\n");
		return FAILED;
	}
	return compile(p);
}

EXPORT int nvrtcGetProgramLogSize(program *p, size_t *n)
{
	*n = strlen(p->log) + 1;
	return OK;
}

EXPORT int nvrtcGetProgramLog(program *p, char *log)
{
	memcpy(log, p->log, strlen(p->log) + 1);
	return OK;
}

EXPORT int nvrtcGetCUBINSize(program *p, size_t *n)
{
	*n = p->n_code;
	return OK;
}

EXPORT int nvrtcGetCUBIN(program *p, char *code)
{
	memcpy(code, p->code, p->n_code);
	return OK;
}

#ifndef FAKE_LACKS
EXPORT int nvrtcGetPTXSize(program *p, size_t *n)
{
	return nvrtcGetCUBINSize(p, n);
}

EXPORT int nvrtcGetPTX(program *p, char *code)
{
	return nvrtcGetCUBIN(p, code);
}
#endif
