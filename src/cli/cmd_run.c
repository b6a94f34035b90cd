/* cmd_run - runs a command in a cage. */
#include <errno.h>

#include "base/own.h"
#include "check/check.h"
#include "cli/cli_run.h"
#include "cli/cli_verify.h"
#include "cli/commands.h"

const struct cli_option cmd_run_options[] = {
	{ "again", 0, "RECORD", SPEC_KEY_COUNT, NULL,
		"repeat a recorded run, and compare the results" },
	{ "same", 0, NULL, SPEC_KEY_COUNT, NULL,
		"with --again: exit 0 if the results are the same, else 1" },
	{ "key", 'k', "FILE", SPEC_KEY_COUNT, NULL,
		"with --again: accept this signer's public key [yours]" },
	CLI_RUN_OPTIONS,
	{ 0 },
};

/* --- again --- */

/* The record that --again names, as it was found and verified. */
struct again {
	struct cli_verifier verifier;
	struct cli_found found;
	struct verify_record of;
	struct verify_report report;
	struct run_again run;
};

static void again_done(struct again *a)
{
	run_again_done(&a->run);
	verify_record_done(&a->of);
	cli_found_done(&a->found);
	cli_verifier_done(&a->verifier);
}

static void again_init(struct again *a, const struct cli *cli)
{
	*a = (struct again){ .found.folder = -1, .run.folder = -1 };
	verify_record_init(&a->of);
	cli_verifier_init(&a->verifier, cli);
	a->report.arena = &a->verifier.arena;
	a->run.of = &a->of;
	a->run.report = &a->report;
}

/* Finds and verifies it. 0 or -errno, after it was said what is wrong. */
static int find_again(struct again *a, const char *word, struct err *e)
{
	int r = 0;

	if (cli_verifier_take_keys(&a->verifier, e) != CLI_OK ||
		cli_load_record(&a->verifier, word, &a->found, &a->of, &a->report, e) != CLI_OK) {
		if (!a->found.bytes)
			cli_hint("bawn record list names the runs that can be repeated");
		return err_set(
			e, ERR_REFUSED, EBADMSG, "cannot repeat the run: there is no record");
	}
	a->run.folder = a->found.folder;
	if (!a->of.is_signed)
		r = err_set(e, ERR_REFUSED, EBADMSG, "cannot repeat the record '%.100s': %s", word,
			a->report.count ? a->report.items[0].text : "it is not signed");
	if (r < 0)
		cli_complain_err(e);
	return r;
}

/* A status, after it was said what is wrong, which `e` has too; r->spec is initialised. */
static int load_again(struct again *a, struct run *r, struct err *e)
{
	bool is_spec = false;
	int ret = run_check_again_request(r->asked, e);

	spec_init(&r->spec);
	r->place.home = run_home();
	if (ret < 0)
		cli_complain_err(e);
	else
		ret = find_again(a, r->asked->here.again, e);
	if (ret < 0)
		return CLI_FAILED;
	r->again = &a->run;
	ret = run_load_again(r, &is_spec, e);
	if (ret < 0 && !is_spec)
		cli_complain_err(e);
	return ret == 0 ? CLI_OK : is_spec ? CLI_NO : CLI_FAILED;
}

/* --- the command --- */

static int cmd_run_load(struct again *a, struct run *r, struct err *e)
{
	const struct cli *cli = a->verifier.cli;
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
	own(cli_told) struct cli_told told;
	const struct run_sink sink = cli_sink(&told, cli);
	own(again) struct again again;
	struct run r;
	struct err e = { .kind = ERR_SPEC, .text = "the spec has errors" }, unfit = { 0 };
	int status;

	again_init(&again, cli);
	run_init(&r, &sink, &cli->request, cli->command_line, cli->command_line_size);
	if (!here->again && (here->is_same || here->keys.count)) {
		cli_complain("cannot use --same or --key without --again");
		return CLI_FAILED;
	}
	if (run_open_status(&r, &unfit) < 0) {
		cli_complain_err(&unfit);
		return CLI_FAILED;
	}
	status = cmd_run_load(&again, &r, &e);
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
