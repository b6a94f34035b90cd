/*
 * cmd_prune - removes runs and logs that are above the operator's limits.
 *
 * Runs as:  the operator.
 * Leaves:   a signed line in the log of all runs for whatever it removes.
 * Must not: remove anything on a terminal before somebody has said so.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/commands.h"
#include "run/run_prune.h"
#include "run/run_sessions.h"
#include "run/run_spec.h"

const struct cli_option cmd_prune_options[] = {
	CLI_OWN("keep-runs", 0, "N", "keep the N newest runs, 0: any number [10000]"),
	CLI_OWN("keep-age", 0, "TIME", "keep what is younger, 0: any age [365d]"),
	CLI_OWN("keep-size", 0, "SIZE", "keep that much of the newest runs, 0: any size [10G]"),
	CLI_OWN("dry-run", 'n', NULL,
		"print what would be removed, and do nothing [on a terminal]"),
	CLI_OWN("yes", 'y', NULL, "remove it, also on a terminal"),
	{ 0 },
};

struct pruning {
	const struct cli *cli;
	bool is_dry;
	struct buf out;
	struct json json;
};

/* --- limits --- */

static int parse_runs(const char *text, uint64_t *ret, struct err *e)
{
	int64_t n;
	int r = num_parse_int(text, 0, INT32_MAX, &n, e);

	if (r == 0)
		*ret = (uint64_t)n;
	return r;
}

/* "0" has no unit. */
static int parse_age(const char *text, uint64_t *ret, struct err *e)
{
	*ret = 0;
	return str_eq(text, "0") ? 0 : num_parse_duration(text, ret, e);
}

static int parse_size(const char *text, uint64_t *ret, struct err *e)
{
	*ret = 0;
	return str_eq(text, "0") ? 0 : num_parse_size(text, ret, e);
}

/* A status, after it was said what is wrong. */
static int prune_read_policies(const struct cli *cli, struct spec *s)
{
	struct err e = { 0 };

	if (run_load_policies(s, &e) == 0)
		return CLI_OK;
	if (e.kind == ERR_SPEC)
		cli_print_diags(cli, s);
	else
		cli_complain_err(&e);
	return CLI_FAILED;
}

/* The options stand above the policies. A status, after it was said what is wrong. */
static int prune_read_limits(const struct cli *cli, struct run_retention *ret)
{
	const struct {
		enum cli_name option;
		int (*parse)(const char *text, uint64_t *ret, struct err *e);
		uint64_t *limit;
	} rows[] = {
		{ CLI_OPT_KEEP_RUNS, parse_runs, &ret->runs },
		{ CLI_OPT_KEEP_AGE, parse_age, &ret->age_ms },
		{ CLI_OPT_KEEP_SIZE, parse_size, &ret->bytes },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *text = cli_value(cli, rows[i].option);
		struct err e = { 0 };

		if (!text || rows[i].parse(text, rows[i].limit, &e) == 0)
			continue;
		cli_complain("cannot use --%s '%s': %s", cli_names[rows[i].option], text, e.text);
		return CLI_MISUSE;
	}
	return CLI_OK;
}

/* --- what is removed --- */

static void prune_print_json(struct json *j, const struct run_prunable *x, const struct err *e)
{
	char began[CLOCK_TEXT_SIZE];

	clock_print(&x->began, began);
	json_open_map(j, NULL);
	json_text(j, x->is_log ? "log" : "run", x->name);
	json_text(j, "began", began);
	json_int(j, "bytes", (int64_t)x->bytes);
	json_text(j, "limit", x->limit);
	json_text(j, "spared", x->spared);
	json_text(j, "error", e->kind == ERR_NONE ? NULL : e->text);
	json_close_map(j);
}

static void prune_tell(void *of, const struct run_prunable *x, const struct err *e)
{
	struct pruning *p = of;

	if (p->cli->is_json) {
		prune_print_json(&p->json, x, e);
		return;
	}
	if (e->kind != ERR_NONE) {
		cli_complain_err(e);
	} else if (x->spared && !p->cli->is_quiet) {
		cli_complain("run %s is above %s and stays: %s", x->name, x->limit, x->spared);
	} else if (p->is_dry && !x->spared) {
		buf_printf(&p->out, "%s  %" PRIu64 " bytes  %s\n", x->name, x->bytes, x->limit);
	}
}

static void prune_print_sum(struct pruning *p, const struct run_prune *x)
{

	if (p->cli->is_json) {
		json_close_list(&p->json);
		json_bool(&p->json, "dry_run", x->is_dry);
		json_int(&p->json, "runs", (int64_t)x->runs);
		json_int(&p->json, "logs", (int64_t)x->logs);
		json_int(&p->json, "bytes", (int64_t)x->bytes);
		json_int(&p->json, "rows", (int64_t)x->rows);
		json_int(&p->json, "spared", (int64_t)x->spared);
		json_int(&p->json, "failed", (int64_t)x->failed);
		json_bool(&p->json, "other_prune", x->is_other);
		cli_json_end(&p->json);
		return;
	}
	if (x->is_other)
		buf_puts(&p->out, "another bawn prunes at this moment\n");
	else if (!p->cli->is_quiet)
		buf_printf(&p->out,
			"%s %" PRIu64 " run%s and %" PRIu64 " file%s of the log, %" PRIu64
			" bytes\n",
			x->is_dry ? "would remove" : "removed", x->runs, x->runs == 1 ? "" : "s",
			x->logs, x->logs == 1 ? "" : "s", x->bytes);
}

static int prune_state(
	struct pruning *p, const struct run_sessions *at, const struct run_retention *keep)
{
	struct run_prune x = {
		.keep = *keep, .is_dry = p->is_dry, .store = at->store, .see = prune_tell, .of = p
	};
	struct err e = { 0 };
	int r = 0;

	if (p->cli->is_json) {
		cli_json_begin(&p->json, &p->out);
		json_open_list(&p->json, "items");
	}
	if (at->state >= 0)
		r = run_prune(at->state, &x, &e);
	if (r < 0) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	prune_print_sum(p, &x);
	r = cli_write(&p->out, x.failed ? CLI_NO : CLI_OK);
	if (r == CLI_OK && x.is_dry && (x.runs || x.logs) && !p->cli->is_quiet &&
		!cli_value(p->cli, CLI_OPT_DRY_RUN))
		cli_hint("bawn prune --yes removes them");
	return r;
}

int cmd_prune(struct cli *cli)
{
	struct pruning p = { .cli = cli, .out.max = (size_t)256 << 20 };
	struct run_retention keep = { 0 };
	struct err e = { 0 };
	own(run_sessions) struct run_sessions at = { .state = -1, .root = -1 };
	struct spec policies;
	int status;

	p.is_dry = cli_value(cli, CLI_OPT_DRY_RUN) ||
		   (!cli_value(cli, CLI_OPT_YES) && isatty(STDOUT_FILENO));
	status = prune_read_policies(cli, &policies);
	if (status == CLI_OK)
		keep = run_find_retention(&policies);
	spec_done(&policies);
	if (status == CLI_OK)
		status = prune_read_limits(cli, &keep);
	if (status != CLI_OK)
		return status;
	if (run_sessions_open(&at, false, &e) < 0) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	status = prune_state(&p, &at, &keep);
	buf_done(&p.out);
	return status;
}
