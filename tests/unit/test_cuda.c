/*
 * CUDA devices, on a driver and a compiler that need no GPU (tests/fake): what is
 * missing is said; what runs there gives what emulated warps give, late and early;
 * what fails leaves everything as it was, and nothing behind.
 */
#include "cuda.h"

/* ---- what is missing --------------------------------------------------- */

static const struct missing {
	const char *variable, *value, *device;
	tn_status status;
	const char *rule, *text;
} missing[] = {
	{"TENON_CUDA_DRIVER", "/nowhere/libcuda.so.1", "cuda", TN_EINVAL,
		"cuda.driver", "/nowhere/libcuda.so.1 cannot be loaded"},
	{"TENON_CUDA_DRIVER", FAKE_DRIVER_LACKS, "cuda", TN_EINVAL,
		"cuda.driver", "has no function cuLaunchKernel"},
	{"FAKE_CUDA_VERSION", "11080", "cuda", TN_EINVAL, "cuda.version",
		"is of CUDA 11.8: accepted is 12.0 or later"},
	{"FAKE_CUDA_DEVICES", "0", "cuda", TN_EINVAL, "cuda.device",
		"finds no NVIDIA GPU"},
	{"FAKE_CUDA_DEVICES", "1", "cuda:1", TN_EINVAL, "cuda.device",
		"no device cuda:1: the driver finds 1, so accepted is cuda:0"},
	{"FAKE_CUDA_DEVICES", "3", "cuda:7", TN_EINVAL, "cuda.device",
		"accepted is cuda:0 .. cuda:2"},
	{"FAKE_CUDA_COMPUTE", "75", "cuda:0", TN_EINVAL, "cuda.compute",
		"its compute capability is 7.5, and accepted is 8.0 or later"},
	{"TENON_NVRTC", "/nowhere/libnvrtc.so", "cuda", TN_ECOMPILE,
		"cuda.nvrtc", "/nowhere/libnvrtc.so (not there)"},
	{"TENON_NVRTC", FAKE_NVRTC_LACKS, "cuda", TN_ECOMPILE, "cuda.nvrtc",
		"has no nvrtcGetPTXSize"},
	{"FAKE_NVRTC_VERSION", "11.8", "cuda", TN_ECOMPILE, "cuda.nvrtc",
		"version 11.8 is too old"},
	{"FAKE_NVRTC_VERSION", "13.0", "cuda", TN_ECOMPILE, "cuda.nvrtc",
		"version 13.0 makes code that the driver, of CUDA 12.8, "
		"cannot load"},
	{"TENON_DEVICE", "cuda:x", NULL, TN_EINVAL, "device.name",
		"no device \"cuda:x\""},
	{"TENON_DEVICE", "cuda:", NULL, TN_EINVAL, "device.name",
		"cuda or cuda:N"},
	{"TENON_DEVICE", "cpu:0", NULL, TN_EINVAL, "device.name",
		"accepted are cpu, simt"},
	{"TENON_DEVICE", "cuda:99999999999", NULL, TN_EINVAL, "device.name",
		"there is no device"},
};

static void test_missing(void **state)
{
	for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
		const struct missing *m = &missing[i];
		tn_options o = TN_OPTIONS_INIT;
		tn_context *c = NULL;
		const tn_diag *d;

		assert_int_equal(begin(state), 0);
		setenv(m->variable, m->value, 1);
		o.device = m->device;
		assert_int_equal(tn_context_new(&c, &o), m->status);
		assert_null(c);
		d = tn_context_diag(NULL);
		assert_string_equal(d->rule, m->rule);
		if (strstr(d->text, m->text) == NULL)
			fail_msg("%s=%s: %s", m->variable, m->value, d->text);
	}
}

static void test_list(void **state)
{
	tn_context *c = context_on("cpu");
	char *text;

	(void)state;
	setenv("FAKE_CUDA_DEVICES", "2", 1);
	assert_int_equal(tn_devices_text(&text, c, false), TN_OK);
	assert_non_null(strstr(text, "cuda:1   Emulated GPU 1: compute "
				     "capability 9.0, 2 multiprocessors"));
	assert_non_null(strstr(text, "version 12.4"));
	assert_null(strstr(text, "not usable"));
	tn_text_free(text);
	setenv("FAKE_CUDA_COMPUTE", "61", 1);
	assert_int_equal(tn_devices_text(&text, c, true), TN_OK);
	assert_non_null(strstr(text, "{\"name\":\"cuda:0\",\"card\":\"Emulated "
				     "GPU 0\",\"compute\":\"6.1\""));
	assert_non_null(strstr(text, "\"refused\":\"its compute capability"));
	tn_text_free(text);
	setenv("TENON_CUDA_DRIVER", "/nowhere", 1);
	assert_int_equal(tn_devices_text(&text, c, true), TN_OK);
	assert_non_null(strstr(text, "\"missing\":\"the driver of NVIDIA GPUs is "
				     "not found: /nowhere"));
	tn_text_free(text);
	tn_context_free(c);
}

/* ---- programs ---------------------------------------------------------- */

static const char *const programs[] = {
	"program {\n  x: f32[7,33]\n  y: f32[33]\n  s = add(x, y)\n"
	"  m = softmax(s)\n  return m\n}\n",
	"program {\n  a: f32[19,40]\n  b: f32[40,24]\n  c = matmul(a, b)\n"
	"  r = relu(c)\n  t = reduce_sum(r, axes=[0])\n  return t, r\n}\n",
	/* blocks of warps, which share more than 48 KB */
	"program {\n  a: f32[128,64]\n  b: f32[64,128]\n  c = matmul(a, b)\n"
	"  d = gelu(c)\n  return d\n}\n",
	"program {\n  x: f32[5000]\n  y = cumsum(x, axis=0)\n  return y\n}\n",
	"program {\n  x: f32[6,50]\n  v, i = topk(x, axis=1, count=3)\n  e = exp(v)\n"
	"  return e, i\n}\n",
};
enum { ROOM = 8192, MOST = 3 };

static void run_program(const char *device, const char *text, float in[][ROOM],
	unsigned char out[][8 * ROOM])
{
	tn_context *c = context_on(device);
	const void *from[MOST];
	void *to[MOST];
	tn_program *p;

	if (tn_program_parse(&p, c, text, strlen(text), "t.tn") < 0)
		fail_msg("%s", tn_context_diag(c)->text);
	for (int32_t i = 0; i < MOST; i++) {
		from[i] = in[i];
		to[i] = out[i];
	}
	for (int32_t i = 0; i < 2; i++) { /* the second time all is there */
		memset(out, 0, MOST * sizeof *out);
		if (tn_program_run(p, from, to) < 0)
			fail_msg("%s: %s", device, tn_context_diag(c)->text);
	}
	tn_program_free(p);
	tn_context_free(c);
}

static void test_programs(void **state)
{
	static float in[MOST][ROOM];
	static unsigned char simt[MOST][8 * ROOM], cuda[MOST][8 * ROOM];

	(void)state;
	for (int32_t i = 0; i < MOST * ROOM; i++)
		in[i / ROOM][i % ROOM] = (float)((i * 37 + 11) % 101) / 50 - 1;
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		run_program("simt", programs[i], in, simt);
		for (int32_t early = 0; early < 2; early++) {
			fake->early = early;
			run_program("cuda", programs[i], in, cuda);
			assert_memory_equal(simt, cuda, sizeof simt);
		}
	}
	assert_true(fake->n_launches > 0);
}

/* ---- compiling --------------------------------------------------------- */

static tn_status compile_in(const char *dir, tn_stats *s, char *text, size_t room)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	tn_program *p = NULL;
	tn_status status;

	o.device = "cuda";
	o.cache_dir = dir;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	assert_int_equal(tn_program_parse(&p, c, programs[0],
				 strlen(programs[0]), "t.tn"),
		TN_OK);
	status = tn_program_compile(p);
	snprintf(text, room, "%.60s: %.1023s", tn_context_diag(c)->rule,
		tn_context_diag(c)->text);
	tn_context_stats(c, s);
	tn_program_free(p);
	tn_context_free(c);
	return status;
}

/* What NVRTC rejects is kept; machine code is found again, by GPU and version. */
static void test_compile(void **state)
{
	char dir[] = "/tmp/test-cuda-XXXXXX", text[1200], command[64], *path;
	tn_stats s;

	(void)state;
	assert_non_null(mkdtemp(dir));
	setenv("FAKE_NVRTC_FAIL", "1", 1);
	assert_int_equal(compile_in(dir, &s, text, sizeof text), TN_ECOMPILE);
	assert_non_null(strstr(text, "cuda.compile: "));
	assert_non_null(strstr(text, "kernels.cu(7): error: planted / more"));
	path = strstr(text, "the text is kept in ");
	assert_non_null(path);
	assert_int_equal(access(path + strlen("the text is kept in "), R_OK), 0);
	unsetenv("FAKE_NVRTC_FAIL");
	assert_int_equal(compile_in(dir, &s, text, sizeof text), TN_OK);
	assert_int_equal(s.n_compiled, 1);
	assert_int_equal(compile_in(dir, &s, text, sizeof text), TN_OK);
	assert_int_equal(s.n_compiled, 0);
	assert_int_equal(s.n_disk_hits, 1);
	setenv("FAKE_NVRTC_VERSION", "12.6", 1);
	assert_int_equal(compile_in(dir, &s, text, sizeof text), TN_OK);
	assert_int_equal(s.n_compiled, 1);
	/* PTX for a GPU that this version does not know */
	setenv("FAKE_CUDA_COMPUTE", "120", 1);
	assert_int_equal(compile_in(dir, &s, text, sizeof text), TN_OK);
	assert_int_equal(s.n_compiled, 1);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_missing, begin, end),
		cmocka_unit_test_setup_teardown(test_list, begin, end),
		cmocka_unit_test_setup_teardown(test_programs, begin, end),
		cmocka_unit_test_setup_teardown(test_compile, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
