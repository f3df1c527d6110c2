/*
 * export.c: `tenon export PROGRAM.tn -o MODEL.onnx`: writes a program as an
 * ONNX model; with --c DIR as C (export_c.c). export_gpt.c handles checkpoints of
 * tenon train.
 */
#include "cli/train_net.h"

#include <stdlib.h>
#include <string.h>

static int write_model(const char *file, const char *out, const cli_list *dims,
	const cli_export_c *to_c)
{
	const cli_list *inputs = to_c != NULL ? &to_c->input : NULL;
	tn_context *c = NULL;
	cli_model m = {0};
	int code = CLI_FAILED;

	if (cli_export_c_context(to_c, &c) < 0)
		return cli_no_context();
	if (!cli_model_open(&m, c, file, dims, inputs, false)) {
		cli_close(c);
		return CLI_FAILED;
	}
	if (to_c != NULL)
		code = cli_export_c_write(to_c, c, &m) ? CLI_OK : CLI_FAILED;
	else if (tn_onnx_export(m.program, out) == TN_OK)
		code = CLI_OK;
	else
		cli_diag(tn_context_diag(c));
	cli_model_close(&m);
	cli_close(c);
	return code;
}

/* Options of --train, and whether it was given. */
typedef struct learning {
	train_net net;
	bool is_on;
} learning;

static bool says_how(const learning *l)
{
	const train_net init = TRAIN_NET_INIT;
	const train_words *w = &l->net.words;

	return l->net.loss != init.loss || l->net.optimizer != init.optimizer ||
		l->net.freeze.n > 0 || l->net.fresh || w->lr != NULL ||
		w->decay != NULL || w->clip != NULL || w->batch != NULL;
}

static int check_learning(
	const cli_command *self, learning *l, const char *file,
	const cli_export_c *e)
{
	bool limited = e->limit_text != NULL;

	if (!l->is_on)
		return !says_how(l) && !limited
			? -1
			: cli_usage(self, "--loss, --optimizer, --batch, --lr, "
				"--decay, --clip, --freeze, --fresh and "
				"--memory-limit belong to --train");
	if (e->dir == NULL)
		return cli_usage(self, "--train takes --c DIR");
	l->net.file = file;
	return train_net_read(self, &l->net);
}

/* Which of the two was asked for, and is all given? -1: yes. */
static int check(const cli_command *self, cli_export_c *e, const char *file,
	const char *out)
{
	if (file == NULL || (out == NULL) == (e->dir == NULL))
		return cli_usage(self, "give PROGRAM.tn, and either -o "
			"MODEL.onnx or --c DIR");
	if (e->dir != NULL)
		return cli_export_c_read(self, e, file);
	if (e->name != NULL || e->weights != NULL || e->threads != NULL ||
		e->test != NULL || e->seed != NULL || e->input.n > 0 ||
		e->lanes != NULL || e->no_fma || e->dialect != NULL ||
		e->small || e->int_size != NULL || e->isa != NULL)
		return cli_usage(self, "--name, --weights, --threads, --lanes, "
			"--isa, --int-size, --no-fma, --dialect, --small, "
			"--test, --seed and --input belong to --c DIR");
	return -1;
}

static int write_file(const char *file, const char *out, const cli_list *dims,
	const cli_export_c *e, train_net *learn)
{
	const cli_export_c *to_c = e->dir != NULL ? e : NULL;

	if (cli_ends_with(file, ".safetensors"))
		return cli_export_gpt(file, out, dims, to_c, learn);
	if (learn != NULL)
		return cli_export_train(learn, e, dims);
	return write_model(file, out, dims, to_c);
}

static int run(const cli_command *self, int argc, char **argv)
{
	const char *out = NULL, *file = NULL;
	size_t room = (size_t)argc + 1;
	cli_list dims = {cli_alloc(room, sizeof *dims.at), 0};
	cli_export_c e = {
		.input = {cli_alloc(room, sizeof *e.input.at), 0}};
	learning l = {.net = TRAIN_NET_INIT};
	char **arg = cli_alloc(room, sizeof *arg);
	char long_name[] = "--out";
	const cli_option options[] = {
		{"out", .value = &out},
		{"dim", .list = &dims},
		{"c", .value = &e.dir},
		{"name", .value = &e.name},
		{"weights", .value = &e.weights},
		{"threads", .value = &e.threads},
		{"test", .value = &e.test},
		{"seed", .value = &e.seed},
		{"lanes", .value = &e.lanes},
		{"isa", .value = &e.isa},
		{"int-size", .value = &e.int_size},
		{"no-fma", .flag = &e.no_fma},
		{"dialect", .value = &e.dialect},
		{"small", .flag = &e.small},
		{"input", .list = &e.input},
		{"train", .flag = &l.is_on},
		{"loss", .value = &l.net.loss},
		{"optimizer", .value = &l.net.optimizer},
		{"freeze", .list = &l.net.freeze},
		{"lr", .value = &l.net.words.lr},
		{"decay", .value = &l.net.words.decay},
		{"clip", .value = &l.net.words.clip},
		{"batch", .value = &l.net.words.batch},
		{"fresh", .flag = &l.net.fresh},
		{"memory-limit", .value = &e.limit_text},
		{0},
	};
	int code = CLI_FAILED;

	l.net.freeze.at = cli_alloc(room, sizeof *l.net.freeze.at);
	if (dims.at == NULL || e.input.at == NULL || arg == NULL ||
		l.net.freeze.at == NULL)
		goto out;
	for (int i = 0; i < argc; i++)
		arg[i] = !strcmp(argv[i], "-o") ? long_name : argv[i];
	code = cli_args(self, argc, arg, options, &file, 1);
	if (code < 0)
		code = check(self, &e, file, out);
	if (code < 0)
		code = check_learning(self, &l, file, &e);
	if (code < 0)
		code = write_file(file, out, &dims, &e, l.is_on ? &l.net : NULL);
out:
	free(l.net.freeze.at);
	free(dims.at);
	free(e.input.at);
	free(arg);
	return code;
}

const cli_command cli_export = {
	"export",
	"write a program as an ONNX model, or as C",
	"usage: tenon export PROGRAM.tn|MODEL.onnx|CHECKPOINT.safetensors\n"
	"                    -o MODEL.onnx [--dim NAME=SIZE]...\n"
	"       tenon export PROGRAM.tn|MODEL.onnx|CHECKPOINT.safetensors\n"
	"                    --c DIR [--name NAME] [--dim NAME=SIZE]...\n"
	"                    [--input NAME=FILE]... [--seed N]\n"
	"                    [--weights array|file|incbin]\n"
	"                    [--threads none|callback|pthread]\n"
	"                    [--lanes 1|4|8|16 | --isa LIST] [--no-fma]\n"
	"                    [--int-size 64|32]\n"
	"                    [--dialect gnu|c99] [--small]\n"
	"                    [--test interp|kernels|none]\n"
	"       tenon export PROGRAM.tn|MODEL.onnx|CHECKPOINT.safetensors\n"
	"                    --c DIR --train\n"
	"                    [--loss cross_entropy|mse|l1] [--optimizer NAME]\n"
	"                    [--batch N] [--lr X] [--decay X] [--clip X]\n"
	"                    [--freeze PATTERN]... [--fresh]\n"
	"                    [--memory-limit BYTES] [OPTION]...\n"
	"\n"
	"With -o: writes a model of opset 20. It is an error if the program has\n"
	"operations that ONNX does not have, or writes in place. An ONNX model is\n"
	"written as the program that it becomes, with fixed sizes. A checkpoint of\n"
	"tenon train (best.safetensors) becomes a model ids[1,t] ->\n"
	"logits[1,t,vocab], whose parameters keep their names.\n"
	"\n"
	"With --c: writes the compiled program as C, into a folder: NAME.c and\n"
	"NAME.h, its weights, NAME_test.c (`make -C DIR check` runs it), NAME.json\n"
	"with memory and work, a Makefile, CMakeLists.txt. The C needs no library,\n"
	"allocates nothing, and computes the bits of tenon run on this machine.\n"
	"\n"
	"With --train: writes a step of training, NAME_step, with parameters and\n"
	"moments in a state that the C keeps, saves and loads. The options are those\n"
	"of tenon train; of a checkpoint, those of its run are taken. Of a program in\n"
	"text, what it declares as param is trained, from --input NAME=FILE, or from\n"
	"random numbers (zeros, if it has fewer than two axes).\n"
	"\n"
	"  -o, --out FILE   the model to write\n"
	"  --dim NAME=SIZE  size of a named dimension of an ONNX model; batch (1)\n"
	"                   or length (the context) of a checkpoint's ids\n"
	"  --c DIR          the folder of the C files; it is made\n"
	"  --name NAME      of files and functions; else the name of the file\n"
	"  --weights HOW    a C array (if not given: up to 1 MB), a file that the\n"
	"                   caller reads, or one that the assembler includes\n"
	"  --threads HOW    none: only that of the caller; callback: those of your\n"
	"                   job system; pthread: the same with a pool beside it\n"
	"  --lanes N        floats in a vector, if not given those of this machine; 1:\n"
	"                   no vectors at all\n"
	"  --isa LIST       kernels for several processors in one file, of which\n"
	"                   NAME_init chooses: sse,avx2,avx512, or the first and\n"
	"                   another one\n"
	"  --int-size N     bits of the integers that address elements: 64 (if not\n"
	"                   given), or 32, where they suffice\n"
	"  --no-fma         products and sums are never fused: the same bits on all\n"
	"                   machines\n"
	"  --dialect NAME   gnu (if not given), or c99: C99 without any extension,\n"
	"                   one lane, no products fused\n"
	"  --small          plain loops of one lane: little code, slower\n"
	"  --input NAME=FILE  an input of the test, .npy or .pb; others are random\n"
	"  --seed N         of random inputs of the test, 0 if not given\n"
	"  --test BY        what computes the results that the test expects: the\n"
	"                   interpreter (if not given: up to 10^8 operations) or\n"
	"                   compiled kernels; none: there is no test\n"
	"  --loss, --optimizer, --batch (8), --lr, --decay, --clip, --freeze, --fresh\n"
	"                   of the step: as in tenon train MODEL.onnx\n"
	"  --memory-limit BYTES  that are kept from forward to backward; what does\n"
	"                   not fit is computed again. NAME.json tells sizes and work\n"
	"                   for four limits\n"
	"  --help           print this text\n",
	run,
};
