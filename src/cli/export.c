/*
 * export.c: `tenon export PROGRAM.tn -o MODEL.onnx`: writes a program as an
 * ONNX model. export_gpt.c handles checkpoints of tenon train.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

static int write_model(const char *file, const char *out, const cli_list *dims)
{
	tn_context *c = NULL;
	cli_model m = {0};
	int code = CLI_FAILED;

	if (tn_context_new(&c, NULL) < 0)
		return cli_no_context();
	if (cli_model_open(&m, c, file, dims, NULL, false)) {
		if (tn_onnx_export(m.program, out) == TN_OK)
			code = CLI_OK;
		else
			cli_diag(tn_context_diag(c));
		cli_model_close(&m);
	}
	cli_close(c);
	return code;
}

static bool is_checkpoint(const char *file)
{
	static const char end[] = ".safetensors";
	size_t n = strlen(file);

	return n >= sizeof end - 1 && !strcmp(file + n - (sizeof end - 1), end);
}

static int run(const cli_command *self, int argc, char **argv)
{
	const char *out = NULL, *file = NULL;
	cli_list dims = {cli_alloc((size_t)argc + 1, sizeof *dims.at), 0};
	char **arg = cli_alloc((size_t)argc + 1, sizeof *arg);
	char long_name[] = "--out";
	const cli_option options[] = {
		{"out", .value = &out},
		{"dim", .list = &dims},
		{0},
	};
	int code = CLI_FAILED;

	if (dims.at == NULL || arg == NULL)
		goto out;
	for (int i = 0; i < argc; i++)
		arg[i] = !strcmp(argv[i], "-o") ? long_name : argv[i];
	code = cli_args(self, argc, arg, options, &file, 1);
	if (code < 0 && (file == NULL || out == NULL))
		code = cli_usage(self, "give PROGRAM.tn and -o MODEL.onnx");
	if (code < 0)
		code = is_checkpoint(file) ? cli_export_gpt(file, out, &dims)
					   : write_model(file, out, &dims);
out:
	free(dims.at);
	free(arg);
	return code;
}

const cli_command cli_export = {
	"export",
	"write a program as an ONNX model",
	"usage: tenon export PROGRAM.tn|MODEL.onnx|CHECKPOINT.safetensors\n"
	"                    -o MODEL.onnx [--dim NAME=SIZE]...\n"
	"\n"
	"Writes a model of opset 20. It is an error if the program has operations\n"
	"that ONNX does not have, or writes in place. An ONNX model is written as\n"
	"the program that it becomes, with fixed sizes. A checkpoint of tenon\n"
	"train (best.safetensors) becomes a model ids[1,t] -> logits[1,t,vocab],\n"
	"whose parameters keep their names.\n"
	"\n"
	"  -o, --out FILE   the model to write\n"
	"  --dim NAME=SIZE  size of a named dimension of an ONNX model; batch (1)\n"
	"                   or length (the context) of a checkpoint's ids\n"
	"  --help           print this text\n",
	run,
};
