/* cmd_run - runs a command in a cage. */
#include <fcntl.h>

#include "base/num.h"
#include "cli/cli_run.h"
#include "cli/commands.h"

const struct cli_option cmd_run_options[] = {
	{ "record", 0, "FILE", SPEC_KEY_COUNT, NULL, "write the record to this file too" },
	{ "subject", 0, "PATH", SPEC_KEY_COUNT, NULL,
		"a file of the project the record is about too, as the run leaves it" },
	{ "again", 0, "RECORD", SPEC_KEY_COUNT, NULL,
		"repeat a recorded run, and say whether it came out the same" },
	{ "same", 0, NULL, SPEC_KEY_COUNT, NULL,
		"with --again: the status is 0 if it did, and 1 if not" },
	{ "key", 'k', "FILE", SPEC_KEY_COUNT, NULL,
		"with --again: a public key that may have signed the record; yours" },
	{ "sync", 0, NULL, SPEC_KEY_COUNT, NULL, "what is on record survives a power cut too" },
	{ "status-fd", 0, "N", SPEC_KEY_COUNT, NULL, "events as lines of JSON on this descriptor" },
	{ "tty", 't', NULL, SPEC_KEY_COUNT, NULL, "a terminal in any case, not only from one" },
	{ "no-tty", 0, NULL, SPEC_KEY_COUNT, NULL, "pipes, also from a terminal" },
	{ "raw", 0, NULL, SPEC_KEY_COUNT, NULL, "show what reaches out of the screen too" },
	{ "cast", 0, "FILE", SPEC_KEY_COUNT, NULL, "write what is printed here, as asciicast" },
	{ "timing", 0, NULL, SPEC_KEY_COUNT, NULL, "say where the time of the start went" },
	{ 0 },
};

int run_open_status(struct run *r)
{
	const char *text = cli_value(r->cli, "status-fd");
	struct err e = { 0 };
	int64_t fd;

	r->request.status_fd = -1;
	if (!text)
		return CLI_OK;
	if (num_parse_int(text, 0, 1 << 20, &fd, &e) < 0 || fcntl((int)fd, F_GETFD) < 0) {
		cli_complain("--status-fd wants the number of an open descriptor, not '%s'", text);
		return CLI_FAILED;
	}
	r->request.status_fd = (int)fd;
	r->patience_ms = KEEP_PATIENCE_MS;
	r->request.patience_ms = &r->patience_ms;
	return CLI_OK;
}

int cmd_run(struct cli *cli)
{
	struct run r;
	struct err e = { .kind = ERR_SPEC, .text = "the spec has errors" };
	int status;

	run_init(&r, cli);
	if (cli->is_json) {
		cli_complain(
			"run prints what the command prints; --record and --status-fd give JSON");
		return CLI_FAILED;
	}
	if (!cli_value(cli, "again") && (cli_value(cli, "same") || cli_value(cli, "key"))) {
		cli_complain("--same and --key are for --again");
		return CLI_FAILED;
	}
	status = run_open_status(&r);
	if (status != CLI_OK)
		return status;
	status = cli_value(cli, "again") ? run_load_again(&r, &e)
					 : cli_load_spec(cli, &r.spec, &r.place);
	if (status == CLI_NO)
		cli_print_diags(cli, &r.spec);
	if (status != CLI_OK) {
		run_open_log(&r);
		run_record_refusal(&r, &e);
		keep_say_failed(&r.request, &e, CLI_FAILED);
	}
	status = status == CLI_OK ? run_to_end(&r) : CLI_FAILED;
	run_done(&r);
	return status;
}
