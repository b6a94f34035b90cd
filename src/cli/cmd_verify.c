/*
 * cmd_verify - is a record true, and is what it tells good enough?
 *
 * Runs as:  whoever wants to know; needs no bawn that ran anything, only the key.
 * Must not: change anything; say yes to what was not checked.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli_run.h"
#include "cli/commands.h"
#include "proof/verify/verify_policy.h"
#include "result/result_record.h"

struct verifier {
	const struct cli *cli;
	struct result_verifier is;
};

static void verifier_done(struct verifier *x)
{
	result_verifier_done(&x->is);
}

/* The keys of --key, or the operator's own. */
static int take_keys(struct verifier *x, struct err *e)
{
	for (size_t i = 0; i < x->cli->given_count; i++) {
		const struct cli_given *given = &x->cli->given[i];

		if (cli_is(given, CLI_OPT_KEY) &&
			verify_add_key(&x->is.keys, given->value, &x->is.arena, e) < 0) {
			cli_complain_err(e);
			return CLI_NO;
		}
	}
	result_verifier_open(&x->is);
	return CLI_OK;
}

/* CLI_NO, after it was said, where there is no record, whyever. */
static int load_record(const struct verifier *x, const char *word, struct result_found *found,
	struct verify_record *ret, struct verify_report *report, struct err *e)
{
	if (result_load_record(&x->is, word, found, ret, report, e) == 0)
		return CLI_OK;
	cli_complain_err(e);
	return CLI_NO;
}

static int judge_card(const struct verifier *x, const struct verify_record *v,
	struct verify_report *report, struct err *e)
{
	if (result_judge_card(&x->is, cli_value(x->cli, CLI_OPT_CARD), v, report, e) == 0)
		return CLI_OK;
	cli_complain_err(e);
	return CLI_NO;
}

/* A card by itself, told. */
static int verify_card_alone(struct verifier *x)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };
	struct verify_report report = { .arena = &x->is.arena };
	struct err e = { 0 };
	bool is_good = judge_card(x, NULL, &report, &e) == CLI_OK && !report.has_failed;
	int status = is_good ? CLI_OK : CLI_NO;
	struct json j;

	cli_hide_values(e.text, sizeof(e.text));
	if (x->cli->is_json) {
		cli_json_begin(&j, &out);
		json_bool(&j, "good", is_good);
		if (e.text[0])
			json_text(&j, "error", e.text);
		verify_print_json(&report, &j);
		cli_json_end(&j);
		return cli_write(&out, status);
	}
	if (e.text[0] || (x->cli->is_quiet && is_good))
		return status;
	verify_print(&report, x->cli->has_color, &out);
	buf_puts(&out, is_good ? "good\n" : "not good\n");
	return cli_write(&out, status);
}

#define MOST_OUTPUT ((size_t)16 << 20)

const struct cli_option cmd_verify_options[] = {
	CLI_OWN("key", 'k', "FILE", "accept this public key (PEM); may be repeated [yours]"),
	CLI_OWN("policy", 0, "FILE", "check the requirements in FILE too"),
	CLI_OWN("same", 0, NULL,
		"compare two records: 0 if spec, plan, image and effects are the same"),
	CLI_OWN("card", 0, "FILE", "verify an agent card too, and that it is the record's"),
	CLI_OWN("attest", 0, NULL, "print the result as a statement signed with your key"),
	CLI_OWN("quick", 0, NULL, "do not hash image and overlay again"),
	{ 0 },
};

/* With --json, prints the object of a verification that failed; the error is printed already. */
static int fail_json(const struct cli *cli, int status, const struct err *e)
{
	own(buf) struct buf out = { .max = MOST_OUTPUT };
	struct err shown = *e;
	struct json j;

	if (!cli->is_json)
		return status;
	cli_hide_values(shown.text, sizeof(shown.text));
	cli_json_begin(&j, &out);
	json_bool(&j, "good", false);
	json_text(&j, "error", shown.text[0] ? shown.text : "there is no record to verify");
	cli_json_end(&j);
	return cli_write(&out, status);
}

/* --- the policy --- */

struct demands {
	struct verify_policy policy;
	struct diags diags;
	char *bytes;
};

static void demands_done(struct demands *d)
{
	free(d->bytes);
}

/* Prints the errors of a policy as `bawn check` prints those of a spec. */
static int refuse_policy(const struct cli *cli, const struct diags *diags)
{
	own(buf) struct buf out = { .max = MOST_OUTPUT };
	struct json j;

	if (!cli->is_json) {
		diags_print(diags, &out, cli->has_color);
		file_write_all(STDERR_FILENO, buf_text(&out), out.len);
		return CLI_NO;
	}
	cli_json_begin(&j, &out);
	json_bool(&j, "good", false);
	json_text(&j, "error", "the policy has errors");
	diags_print_json(diags, &j);
	cli_json_end(&j);
	return cli_write(&out, CLI_NO);
}

static int read_policy(struct verifier *x, const char *path, struct demands *ret)
{
	struct err e = { 0 };
	size_t n = 0;
	int r = file_read_path(path, YAML_MAX_SIZE, &ret->bytes, &n);

	if (r < 0) {
		err_set(&e, ERR_USE, -r, "cannot read the policy '%s': %s", path, strerror(-r));
		cli_complain_err(&e);
		return fail_json(x->cli, CLI_NO, &e);
	}
	diags_init(&ret->diags, &x->is.arena);
	if (verify_read_policy(&ret->policy, path, ret->bytes, n, &x->is.arena, &ret->diags) < 0)
		return refuse_policy(x->cli, &ret->diags);
	if (verify_take_policy_keys(&ret->policy, &x->is.keys, &x->is.arena, &e) == 0)
		return CLI_OK;
	cli_complain_err(&e);
	return fail_json(x->cli, CLI_NO, &e);
}

/* --- what is told --- */

static void list_unchecked(const struct verify_report *report, struct buf *out)
{
	size_t count = 0;

	for (size_t i = 0; i < report->count; i++)
		if (report->items[i].result == VERIFY_ABSENT)
			buf_printf(out, "%s%s",
				count++ ? ", " : "; not checked: ", report->items[i].name);
}

static int verify_tell(
	const struct cli *cli, const struct verify_record *v, const struct verify_report *report)
{
	own(buf) struct buf out = { .max = MOST_OUTPUT };
	bool is_good = !report->has_failed;

	if (v->is_signed)
		buf_printf(&out, "# run %s, begun %s\n", v->record.run, v->record.began);
	verify_print(report, cli->has_color, &out);
	if (!v->is_signed)
		buf_puts(&out,
			"not good: nothing else was checked, because no key that counts signed it\n");
	else if (!is_good)
		buf_puts(&out, "not good\n");
	else {
		buf_puts(&out, "good");
		list_unchecked(report, &out);
		buf_putc(&out, '\n');
	}
	if (cli->is_quiet && is_good)
		return CLI_OK;
	return cli_write(&out, is_good ? CLI_OK : CLI_NO);
}

static int verify_tell_json(const struct cli *cli, const struct verify_record *v,
	const struct verify_options *o, const struct verify_report *report)
{
	own(buf) struct buf out = { .max = MOST_OUTPUT };
	struct json j;

	(void)cli;
	cli_json_begin(&j, &out);
	json_bool(&j, "good", !report->has_failed);
	json_text(&j, "record_sha256", v->sha256);
	json_text(&j, "key", v->is_signed ? v->key.id : NULL);
	json_text(&j, "run", v->is_signed ? v->record.run : NULL);
	json_text(&j, "policy_sha256", o->policy ? o->policy->sha256 : NULL);
	verify_print_json(report, &j);
	cli_json_end(&j);
	return cli_write(&out, report->has_failed ? CLI_NO : CLI_OK);
}

/* --- the statement --- */

static int attest(const struct verifier *x, const struct verify_record *v,
	const struct verify_options *o, const struct verify_report *report)
{
	own(buf) struct buf text = { .max = MOST_OUTPUT }, out = { .max = MOST_OUTPUT };
	own(sign_key) struct sign_key key = { 0 };
	struct err e = { 0 };
	int r = x->is.state < 0 ? -ENOENT : sign_load_key(x->is.state, &key, &e);

	if (r < 0) {
		cli_complain_about(&e, "%s",
			r == -ENOENT ? "there is no key of yours to sign the result with: "
				       "bawn key init makes one"
				     : e.text);
		return CLI_NO;
	}
	verify_print_result(v, o, report, &text);
	if (text.failed)
		out.failed = true;
	else
		sign_print_envelope(&key, text.data, text.len, &out);
	return cli_write(&out, CLI_OK);
}

/* Failures go to stderr, where they cannot be taken for the attestation. */
static int refuse_attest(
	const struct cli *cli, const struct verify_record *v, const struct verify_report *report)
{
	for (size_t i = 0; i < report->count; i++)
		if (report->items[i].result == VERIFY_NO)
			cli_complain("%s: %s", report->items[i].name, report->items[i].text);
	(void)v;
	(void)cli;
	cli_complain("cannot attest the record: it did not verify");
	return CLI_NO;
}

/* --- one record --- */

static int cmd_verify_judge(struct verifier *x, struct verify_record *v, struct verify_options *o,
	struct verify_report *report)
{
	struct cli_progress progress = cli_progress_begin(x->cli);
	struct err e = { 0 };
	char project[PATH_MAX];

	o->home = run_home();
	result_read_project(v->folder, project);
	o->project = project[0] == '/' ? project : NULL;
	o->progress = cli_progress_of(&progress);
	clock_gettime(CLOCK_REALTIME, &o->now);
	if (v->is_signed)
		verify_judge(v, o, report);
	cli_progress_done(&progress);
	if (cli_value(x->cli, CLI_OPT_CARD) && judge_card(x, v, report, &e) != CLI_OK)
		return fail_json(x->cli, CLI_NO, &e);
	if (cli_value(x->cli, CLI_OPT_ATTEST))
		return report->has_failed ? refuse_attest(x->cli, v, report)
					  : attest(x, v, o, report);
	return x->cli->is_json ? verify_tell_json(x->cli, v, o, report)
			       : verify_tell(x->cli, v, report);
}

static int verify_one(struct verifier *x)
{
	const char *path = cli_value(x->cli, CLI_OPT_POLICY);
	const char *word = x->cli->word_count ? x->cli->words[0] : NULL;
	own(demands) struct demands demands = { 0 };
	own(result_found) struct result_found found = { .folder = -1 };
	own(verify_record) struct verify_record v = { 0 };
	struct verify_report report = { .arena = &x->is.arena };
	struct verify_options o = { .is_quick = cli_value(x->cli, CLI_OPT_QUICK) != NULL };
	struct err e = { 0 };
	int status = path ? read_policy(x, path, &demands) : CLI_OK;

	if (status != CLI_OK)
		return status;
	if (path)
		o.policy = &demands.policy;
	status = load_record(x, word, &found, &v, &report, &e);
	status = status == CLI_OK ? cmd_verify_judge(x, &v, &o, &report)
				  : fail_json(x->cli, status, &e);
	if (v.is_strange && !x->cli->is_json)
		cli_hint("get the signer's public key (there: bawn key show --pem >FILE), then: "
			 "bawn verify --key FILE%s%s",
			word ? " " : "", word ? word : "");
	return status;
}

/* --- two --- */

static int tell_same(const struct cli *cli, const struct verify_record v[static 2],
	const struct verify_report *report, bool is_same)
{
	own(buf) struct buf out = { .max = MOST_OUTPUT };
	int status = is_same ? CLI_OK : CLI_NO;
	struct json j;

	if (!cli->is_json) {
		verify_print(report, cli->has_color, &out);
		buf_puts(&out, is_same ? "the same\n" : "not the same, or not known to be\n");
		return cli->is_quiet && is_same ? status : cli_write(&out, status);
	}
	cli_json_begin(&j, &out);
	json_bool(&j, "same", is_same);
	json_open_list(&j, "runs");
	for (size_t i = 0; i < 2; i++)
		json_text(&j, NULL, v[i].is_signed ? v[i].record.run : NULL);
	json_close_list(&j);
	verify_print_json(report, &j);
	cli_json_end(&j);
	return cli_write(&out, status);
}

/* Records that are not signed are not compared: anybody can write two that are the same. */
static int verify_same(struct verifier *x)
{
	own(result_found) struct result_found first = { .folder = -1 }, second = { .folder = -1 };
	struct verify_record v[2] = { { .folder = -1 }, { .folder = -1 } };
	struct verify_report report = { .arena = &x->is.arena, .is_comparison = true };
	struct err e = { 0 };
	bool is_same = false;
	int status = load_record(x, x->cli->words[0], &first, &v[0], &report, &e);

	if (status == CLI_OK)
		status = load_record(x, x->cli->words[1], &second, &v[1], &report, &e);
	if (status == CLI_OK && v[0].is_signed && v[1].is_signed)
		is_same = verify_compare(&v[0], &v[1], &report);
	status = status == CLI_OK ? tell_same(x->cli, v, &report, is_same)
				  : fail_json(x->cli, status, &e);
	verify_record_done(&v[0]);
	verify_record_done(&v[1]);
	return status;
}

/* --- a card, with its record or without --- */

static int verify_card(struct verifier *x)
{
	static const enum cli_name of_records[] = { CLI_OPT_POLICY, CLI_OPT_ATTEST, CLI_OPT_QUICK };

	if (x->cli->word_count)
		return verify_one(x);
	for (size_t i = 0; i < COUNT_OF(of_records); i++)
		if (cli_value(x->cli, of_records[i])) {
			cli_complain(
				"cannot use --%s: no record is named", cli_names[of_records[i]]);
			return CLI_MISUSE;
		}
	return verify_card_alone(x);
}

/* --- the command --- */

/* The actions, by the option that selects them; the last needs none. */
static const struct mode {
	enum cli_name option; /* or none */
	size_t words, fewest;
	const char *usage; /* what has to be said */
	enum cli_name without[5];
	int (*run)(struct verifier *x);
} modes[] = {
	{ CLI_OPT_SAME, 2, 2, "say which two records: bawn verify --same A B, each a run or a file",
		{ CLI_OPT_POLICY, CLI_OPT_ATTEST, CLI_OPT_QUICK, CLI_OPT_CARD }, verify_same },
	{ CLI_OPT_CARD, 1, 0, "say which card, and of one record: bawn verify --card FILE [RUN]",
		{ CLI_OPT_NONE }, verify_card },
	{ CLI_OPT_NONE, 1, 0,
		"say which record: bawn verify RUN, or a file, or - for standard input",
		{ CLI_OPT_NONE }, verify_one },
};

static const struct mode *verify_choose_mode(const struct cli *cli)
{
	const struct mode *mode = modes;

	while (mode->option && !cli_value(cli, mode->option))
		mode++;
	if (cli->word_count > mode->words || cli->word_count < mode->fewest) {
		cli_complain("%s", mode->usage);
		return NULL;
	}
	for (size_t i = 0; mode->without[i]; i++)
		if (cli_value(cli, mode->without[i])) {
			cli_complain("cannot use --%s together with --%s", cli_names[mode->option],
				cli_names[mode->without[i]]);
			return NULL;
		}
	if (cli_value(cli, CLI_OPT_ATTEST) && cli->is_json) {
		cli_complain("cannot use --json together with --attest, which prints an envelope");
		return NULL;
	}
	return mode;
}

int cmd_verify(struct cli *cli)
{
	const struct mode *mode = verify_choose_mode(cli);
	own(verifier) struct verifier x = { .cli = cli };
	struct err e = { 0 };

	result_verifier_init(&x.is);
	if (!mode)
		return CLI_MISUSE;
	if (take_keys(&x, &e) == CLI_OK)
		return mode->run(&x);
	return fail_json(cli, CLI_NO, &e);
}
