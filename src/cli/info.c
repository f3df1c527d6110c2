/*
 * info.c: `tenon info MODEL.onnx`: inputs, outputs, operators, parameters, and
 * what is not supported, without building the model. `tenon info --devices`:
 * what can run kernels.
 */
#include "cli/cli.h"

static int run(const cli_command *self, int argc, char **argv)
{
	const char *file = NULL;
	bool json = false, ops = false, devices = false;
	const cli_option options[] = {
		{"json", .flag = &json},
		{"operators", .flag = &ops},
		{"devices", .flag = &devices},
		{0},
	};
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	tn_onnx *m = NULL;
	char *text = NULL;
	int code = cli_args(self, argc, argv, options, &file, 1);

	if (code >= 0)
		return code;
	if (file == NULL && !ops && !devices)
		return cli_usage(self, "no MODEL.onnx given");
	o.device = "cpu"; /* whatever TENON_DEVICE says: nothing runs */
	if (tn_context_new(&c, &o) < 0)
		return cli_no_context();
	if (devices ? tn_devices_text(&text, c, json) < 0
		: ops ? tn_onnx_ops_text(&text, c) < 0
		: tn_onnx_open(&m, c, file) < 0 ||
			tn_onnx_info(&text, m, json) < 0) {
		cli_diag(tn_context_diag(c));
		code = CLI_FAILED;
	} else {
		fputs(text, stdout);
		code = CLI_OK;
	}
	tn_text_free(text);
	tn_onnx_free(m);
	cli_close(c);
	return code;
}

const cli_command cli_info = {
	"info",
	"describe an ONNX model, or list devices",
	"usage: tenon info MODEL.onnx [--json]\n"
	"       tenon info --operators\n"
	"       tenon info --devices [--json]\n"
	"\n"
	"Prints the inputs, outputs, operators and parameters of a model, and says\n"
	"what cannot run: operators, types of elements, attributes and inputs of\n"
	"nodes. Sizes that the model leaves open count as 1 for this.\n"
	"\n"
	"  --json       print one JSON object\n"
	"  --operators  print the supported operators, as Markdown\n"
	"  --devices    print what can run kernels, or what is missing for it\n"
	"  --help       print this text\n",
	run,
};
