/* cmd_run - runs a command in a cage. */
#include <fcntl.h>

#include "base/num.h"
#include "check/check.h"
#include "cli/cli_run.h"
#include "cli/commands.h"

const struct cli_option cmd_run_options[] = {
	{ "record", 0, "FILE", SPEC_KEY_COUNT, NULL, "write the record to FILE too" },
	{ "subject", 0, "PATH", SPEC_KEY_COUNT, NULL,
		"record the digest of a project file after the run" },
	{ "again", 0, "RECORD", SPEC_KEY_COUNT, NULL,
		"repeat a recorded run, and compare the results" },
	{ "same", 0, NULL, SPEC_KEY_COUNT, NULL,
		"with --again: exit 0 if the results are the same, else 1" },
	{ "key", 'k', "FILE", SPEC_KEY_COUNT, NULL,
		"with --again: accept this signer's public key [yours]" },
	{ "sync", 0, NULL, SPEC_KEY_COUNT, NULL, "fsync the log and the record" },
	{ "status-fd", 0, "N", SPEC_KEY_COUNT, NULL,
		"write events to descriptor N as lines of JSON" },
	{ "tty", 't', NULL, SPEC_KEY_COUNT, NULL, "always allocate a terminal" },
	{ "no-tty", 0, NULL, SPEC_KEY_COUNT, NULL, "never allocate a terminal" },
	{ "raw", 0, NULL, SPEC_KEY_COUNT, NULL, "do not filter escape sequences" },
	{ "cast", 0, "FILE", SPEC_KEY_COUNT, NULL, "write the output to FILE as an asciicast" },
	{ "timing", 0, NULL, SPEC_KEY_COUNT, NULL, "print how long each step of the start took" },
	{ 0 },
};

int run_open_status(struct run *r)
{
	const char *text = r->asked->here.status_fd;
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
	const struct run_request_here *here = &cli->request.here;
	struct run r;
	struct err e = { .kind = ERR_SPEC, .text = "the spec has errors" };
	int status;

	run_init(&r, cli, &cli->request);
	if (!here->again && (here->is_same || here->keys.count)) {
		cli_complain("cannot use --same or --key without --again");
		return CLI_FAILED;
	}
	status = run_open_status(&r);
	if (status != CLI_OK)
		return status;
	status = here->again ? run_load_again(&r, &e) : cli_load_spec(cli, &r.spec, &r.place);
	if (status == CLI_OK)
		check_pointless(&r.spec);
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
