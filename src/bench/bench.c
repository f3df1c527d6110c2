/*
 * bench.c: `tenon bench`: measures speed as a ratio to a reference on the same
 * machine; each pair is measured in turn, in one run.
 *
 *     tenon bench fused --json | jq .ratio
 */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

/* Reads a number from 1 to 1000; 0: invalid. */
static int count(const char *text)
{
	char *end;
	long v = strtol(text, &end, 10);

	return *text != '\0' && *end == '\0' && v >= 1 && v <= 1000 ? (int)v
								     : 0;
}

struct choice {
	const char *const *what; /* ends with NULL */
	const char *only, *repeat, *batch, *seconds, *schedule,
		*device;
	bool json, train, small;
};

/*
 * Starts a bench of kernels, which takes files, and runs whole programs several
 * times.
 */
static int start_kernels(
	const cli_command *self, const struct choice *o, int repeat)
{
	char *end = NULL;
	double seconds = o->seconds != NULL ? strtod(o->seconds, &end) : 0;

	if (o->seconds != NULL && (*end != '\0' || !(seconds > 0)))
		return cli_usage(self, "--seconds takes a number above 0");
	if (o->repeat == NULL)
		repeat = 5;
	return strcmp(o->what[0], "merges") == 0
		? bench_merges(o->what + 1, o->only, repeat, seconds, o->json)
		: bench_estimate(o->what + 1, o->only, repeat, o->json);
}

static int start(const cli_command *self, const struct choice *o)
{
	const char *what = o->what[0];
	int repeat = o->repeat != NULL ? count(o->repeat) : 15;
	int batch = o->batch != NULL ? count(o->batch) : 0;
	tn_context *c = NULL;
	int code;

	if (what == NULL)
		return cli_usage(self,
			"name what to measure: fused, compile, api, step, "
			"contract, train, generate, shard, nets, gpu, "
			"merges, estimate or machine");
	if (repeat == 0 || (batch == 0 && o->batch != NULL))
		return cli_usage(self, "--repeat and --batch must be 1 to 1000");
	if (!strcmp(what, "nets") && o->train && o->what[1] != NULL)
		return bench_nets_train(o->what + 1, repeat, batch, o->json);
	if (!strcmp(what, "nets"))
		return o->what[1] != NULL
			? bench_nets(o->what + 1, repeat, batch, o->json)
			: cli_usage(self, "nets needs a MODEL.onnx");
	if (!strcmp(what, "merges") || !strcmp(what, "estimate"))
		return start_kernels(self, o, repeat);
	if ((o->device != NULL || o->small) && strcmp(what, "gpu") != 0)
		return cli_usage(self, "--device and --small are for gpu");
	if (o->what[1] != NULL)
		return cli_usage(self, "too many arguments: %s", o->what[1]);
	if (!strcmp(what, "gpu"))
		return bench_gpu_cases(o->device != NULL ? o->device : "cuda",
			o->only, o->small, repeat, o->json);
	if (!strcmp(what, "compile"))
		return bench_compile(repeat, o->json);
	if (!strcmp(what, "step"))
		return bench_step(o->only, repeat, o->json);
	if (!strcmp(what, "train"))
		return bench_train(o->only, repeat, o->json);
	if (!strcmp(what, "generate"))
		return bench_generate(o->only, repeat, o->json);
	if (!strcmp(what, "shard"))
		return bench_shard(o->only, repeat, o->json);
	if (!strcmp(what, "contract"))
		return bench_contract(o->only, repeat, o->json);
	if (strcmp(what, "fused") != 0 && strcmp(what, "api") != 0 &&
		strcmp(what, "machine") != 0)
		return cli_usage(self, "\"%s\" cannot be measured: name fused, "
			"compile, api, step, contract, train, generate, shard, "
			"gpu or nets", what);
	if (cli_context_new(&c, NULL) < 0)
		return cli_no_context();
	if (strcmp(what, "machine") == 0)
		code = bench_machine_costs(c, o->only, repeat, o->json);
	else if (strcmp(what, "api") == 0)
		code = bench_api(c, repeat, o->json);
	else
		code = bench_fused(c, o->only, repeat, o->json);
	cli_context_free(c);
	return code;
}

/* Can a context be made? Reports the reason if not. */
static bool can_have_context(void)
{
	tn_context *c = NULL;
	bool can = cli_context_new(&c, NULL) >= 0;

	if (!can)
		(void)cli_no_context();
	cli_context_free(c);
	return can;
}

static int run(const cli_command *self, int argc, char **argv)
{
	struct choice o = {0};
	const cli_option options[] = {
		{"json", .flag = &o.json},
		{"case", .value = &o.only},
		{"repeat", .value = &o.repeat},
		{"batch", .value = &o.batch},
		{"seconds", .value = &o.seconds},
		{"train", .flag = &o.train},
		{"device", .value = &o.device},
		{"small", .flag = &o.small},
		{"schedule", .value = &o.schedule},
		{0},
	};
	const char **what = cli_alloc((size_t)argc + 2, sizeof *what);
	int code = CLI_FAILED;

	if (what == NULL)
		return code;
	o.what = what;
	code = cli_args(self, argc, argv, options, what, argc);
	if (code < 0)
		code = cli_pin(self, o.schedule);
	if (code < 0)
		code = can_have_context() ? cli_pin_end(start(self, &o))
					  : CLI_FAILED;
	free(what);
	return code;
}

const cli_command cli_bench = {
	"bench",
	"measure speed, compared with other libraries",
	"usage: tenon bench fused|compile|api|step|contract|train|generate|shard|machine\n"
	"                   [--case NAME] [--repeat N] [--schedule FILE] [--json]\n"
	"       tenon bench nets MODEL.onnx... [--train] [--batch N] [--repeat N]\n"
	"                   [--schedule FILE] [--json]\n"
	"       tenon bench gpu [--device DEVICE] [--small] [--case NAME]\n"
	"                   [--repeat N] [--json]\n"
	"       tenon bench merges|estimate [FILE.tn|MODEL.onnx]... [--case NAME]\n"
	"                   [--repeat N] [--seconds N] [--schedule FILE] [--json]\n"
	"\n"
	"Measures parts of Tenon, and prints a table. \"ratio\" is the speed of\n"
	"Tenon divided by the speed that it is compared with, measured in turns.\n"
	"\n"
	"  fused        kernels of 16 million elements, compared with the best\n"
	"               hand-written loop of the same memory traffic\n"
	"  compile      compiling a program of 50 operations with an empty cache\n"
	"               and from the cache; the passes on 100, 1,000 and 10,000\n"
	"               operations, compared with the time that is allowed\n"
	"  step         a training step as one compiled function, compared with\n"
	"               the same calls; its overhead; its memory\n"
	"  api          recording a call, finding its program, and a training\n"
	"               step of a network of three layers; memory\n"
	"  contract     matrix products, compared with OpenBLAS, oneDNN and BLIS\n"
	"               if they are installed; convolutions; attention\n"
	"  train        training steps of GPTs of 1 and 10 million parameters,\n"
	"               or with --case 124m of GPT-2 small; time to the first\n"
	"               step with an empty cache and a full one; memory; ratio\n"
	"               of flops per second to the best library\n"
	"  generate     GPTs of 85 and 124 million drawn weights: tokens of a\n"
	"               prompt a second, and tokens written a second, compared\n"
	"               with the rates of a library's products and of memory\n"
	"  shard        moves between the processes of mpirun, or between two\n"
	"               threads: bytes, compared with the least that must be\n"
	"               sent, and time, compared with the MPI call; a step of a\n"
	"               GPT, compared with one process\n"
	"  nets         for each model: time to read it, to compile it with an\n"
	"               empty cache and from the cache, and to run it, at\n"
	"               batches of 1 and 4, or N; memory\n"
	"  gpu          kernels with all tensors in the memory of a device,\n"
	"               compared with the driver's copy of as many bytes and\n"
	"               with cuBLAS if it is installed; T: 10^12 floating-point\n"
	"               operations a second\n"
	"  merges       each merge of fusion, in the programs of fused, contract\n"
	"               and step or in files: the program, compared with the\n"
	"               same program in which the two equations are kept apart;\n"
	"               lists merges that make kernels slower by over a tenth\n"
	"  estimate     the predicted time of each kernel of these programs,\n"
	"               compared with the measured time\n"
	"  machine      each constant of the machine that costs and schedules\n"
	"               depend on, compared with a value measured here; --case:\n"
	"               those whose names contain NAME\n"
	"  --seconds N  merges: begin no measurement after so many seconds\n"
	"  --train      nets: measure a training step instead, at batch 4, or N\n"
	"  --batch N    nets: the batch\n"
	"  --device D   gpu: the device (cuda)\n"
	"  --small      gpu: small extents, for warps that are emulated\n"
	"  --case NAME  measure only the cases whose names contain NAME\n"
	"  --repeat N   measurements per case (15; merges, estimate: 5); the\n"
	"               median is printed\n"
	"  --schedule FILE  use the schedules in FILE, such as tenon tune writes, for\n"
	"               each program that has their kernels; if there is none, the\n"
	"               exit status is 1\n"
	"  --json       print one JSON object per line\n"
	"  --help       print this text\n",
	run,
};
