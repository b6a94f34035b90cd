/* cmd_run - runs a command in a cage. */
#include "base/own.h"
#include "check/check.h"
#include "cli/cli_run.h"
#include "cli/commands.h"
#include "result/result_record.h"

const struct cli_option cmd_run_options[] = {
	CLI_OWN("again", 0, "RECORD", "repeat a recorded run, and compare the results"),
	CLI_OWN("same", 0, NULL, "with --again: exit 0 if the results are the same, else 1"),
	CLI_OWN("key", 'k', "FILE", "with --again: accept this signer's public key [yours]"),
	CLI_RUN_OPTIONS,
	{ 0 },
};

/* A status, after it was said what is wrong, which `e` has too; r->spec is initialised. */
static int load_again(struct result_again *a, struct run *r, struct err *e)
{
	bool is_spec = false;
	int ret = run_check_again_request(r->asked, e);

	spec_init(&r->spec);
	r->place.home = run_home();
	if (ret == 0)
		ret = result_find_again(a, r->asked, e);
	if (ret == 0) {
		r->again = &a->run;
		ret = run_load_again(r, &is_spec, e);
	}
	if (ret < 0 && !is_spec)
		cli_complain_err(e);
	return ret == 0 ? CLI_OK : is_spec ? CLI_NO : CLI_FAILED;
}

static int load_run(const struct cli *cli, struct result_again *a, struct run *r, struct err *e)
{
	int status;

	if (r->asked->here.again) {
		*e = (struct err){ 0 };
		status = load_again(a, r, e);
	} else {
		status = cli_load_spec(cli, &r->spec, &r->place);
	}
	if (status == CLI_NO)
		cli_print_diags(cli, &r->spec);
	return status;
}

int cmd_run(struct cli *cli)
{
	const struct run_request_here *here = &cli->request.here;
	own(cli_printer) struct cli_printer told;
	const struct run_sink sink = cli_sink(&told, cli);
	own(result_again) struct result_again again;
	struct run r;
	struct err e = { .kind = ERR_SPEC, .text = "the spec has errors" }, unfit = { 0 };
	int status;

	result_again_init(&again);
	run_init(&r, &sink, &cli->request, cli->command_line, cli->command_line_size);
	if (!here->again && (here->is_same || here->keys.count)) {
		cli_complain("cannot use --same or --key without --again");
		return CLI_FAILED;
	}
	if (run_open_status(&r, &unfit) < 0) {
		cli_complain_err(&unfit);
		return CLI_FAILED;
	}
	status = load_run(cli, &again, &r, &e);
	if (status == CLI_OK) {
		check_pointless(&r.spec);
	} else {
		run_open_log(&r);
		run_record_refusal(&r, &e);
		keeper_say_failed(&r.request, &e, CLI_FAILED);
	}
	status = status == CLI_OK ? run_to_end(&r) : CLI_FAILED;
	run_done(&r);
	return status;
}
