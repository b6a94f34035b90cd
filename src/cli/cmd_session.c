/* bawn session: what can be done with one. Each group of commands has a file of its own. */
#include "cli/cli_session.h"

#include <inttypes.h>

#include "base/own.h"
#include "cli/commands.h"
#include "run/run_prune.h"

/* cli_session_sweep - session sweep: what a sweep did, told. */

const struct cli_option session_sweep_options[] = {
	CLI_OWN("dry-run", 'n', NULL, "print what would be removed, and do nothing"),
	CLI_OWN("discard", 0, NULL, "also remove sessions with changes that were not applied"),
	{ 0 },
};

/* The output: a map for each in an open JSON list, or lines for people. */
struct telling {
	struct buf *out;
	struct json json;
	bool is_json, is_dry;
};

static void session_sweep_tell_json(
	struct json *j, const struct store_session *s, const char *why, const struct err *e)
{
	json_open_map(j, NULL);
	json_text(j, "session", s->id);
	json_text(j, "name", s->name[0] ? s->name : NULL);
	json_text(j, "why", why);
	if (e)
		json_text(j, "error", e->kind != ERR_NONE ? e->text : NULL);
	json_close_map(j);
}

static void tell_swept(
	void *of, const struct store_session *s, const char *why, const struct err *e)
{
	struct telling *t = of;

	if (e->kind != ERR_NONE)
		cli_complain_about(e, "cannot remove session %s: %s", s->id, e->text);
	if (t->is_json)
		session_sweep_tell_json(&t->json, s, why, e);
	else if (t->is_dry && e->kind == ERR_NONE)
		buf_printf(t->out, "%s  %s  %s\n", s->id, why, s->name[0] ? s->name : "-");
}

static void tell_spared(void *of, const struct store_session *s, const struct buf *names)
{
	struct telling *t = of;

	if (t->is_json)
		session_sweep_tell_json(&t->json, s, "kept", NULL);
	else
		cli_complain("session %.8s%s%s has expired, and is kept: it has changes that were "
			     "not applied: %s%s",
			s->id, s->name[0] ? " " : "", s->name, buf_text(names),
			names->failed ? " …" : "");
}

static int session_sweep_print_json(const struct run_swept *x, struct buf *out, struct json *j)
{
	json_close_list(j);
	json_int(j, x->is_dry ? "would_remove" : "removed", (int64_t)x->removed);
	json_int(j, "kept", (int64_t)x->kept);
	json_int(j, "failed", (int64_t)x->failed);
	json_bool(j, "other_sweep", x->is_other);
	cli_json_end(j);
	return cli_write(out, x->failed ? CLI_NO : CLI_OK);
}

static int session_sweep_print_text(const struct run_swept *x, bool is_quiet, struct buf *out)
{
	if (x->is_other)
		buf_puts(out, "another sweep is at work\n");
	else
		buf_printf(out, "%s %" PRIu64 " session%s, %" PRIu64 " failed\n",
			x->is_dry ? "would remove" : "removed", x->removed,
			x->removed == 1 ? "" : "s", x->failed);
	return is_quiet ? (x->failed ? CLI_NO : CLI_OK)
			: cli_write(out, x->failed ? CLI_NO : CLI_OK);
}

/* Runs of sessions that are gone are runs like any others: the policies say how many stay. */
static void prune_runs(const struct run_sessions *at)
{
	struct run_prune x = { .store = at->store };
	struct err e = { 0 };
	struct spec policies;
	int r = run_load_policies(&policies, &e);

	x.keep = run_find_retention(&policies);
	spec_done(&policies);
	if (at->state >= 0 && r == 0)
		r = run_prune(at->state, &x, &e);
	if (r < 0 && e.kind != ERR_NONE)
		cli_complain_err(&e);
}

static int session_sweep(struct cli *cli)
{
	own(run_sessions) struct run_sessions at = { .state = -1, .root = -1 };
	own(buf) struct buf out = { .max = (size_t)256 << 20 };
	struct telling t = { .out = &out, .is_json = cli->is_json };
	struct run_swept x = { .is_dry = cli_value(cli, CLI_OPT_DRY_RUN) != NULL,
		.discards = cli_value(cli, CLI_OPT_DISCARD) != NULL,
		.swept = tell_swept,
		.spared = tell_spared,
		.of = &t };
	struct err e = { 0 };

	t.is_dry = x.is_dry;
	json_init(&t.json, &out, 0);
	if (cli->is_json) {
		json_open_map(&t.json, NULL);
		json_int(&t.json, "version", 1);
		json_open_list(&t.json, "sessions");
	}
	if (run_sessions_open(&at, false, &e) < 0 || run_sweep(&at, &x, &e) < 0) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	if (!x.is_dry)
		prune_runs(&at);
	if (x.kept && !cli->is_json)
		cli_complain("hint: bawn session diff SESSION shows them; bawn session apply, "
			     "discard or rm SESSION, or bawn session sweep --discard for all");
	if (x.unlogged.kind != ERR_NONE)
		cli_complain_about(
			&x.unlogged, "what was removed is not in the log: %s", x.unlogged.text);
	if (x.is_cut)
		cli_complain("not enough memory to see all sessions: sweep again");
	return cli->is_json ? session_sweep_print_json(&x, &out, &t.json)
			    : session_sweep_print_text(&x, cli->is_quiet, &out);
}

const struct cli_command cmd_session_commands[] = {
	{ "session create", "[options]", "create a session, and print its id",
		session_create_options, true, session_create, .purpose = RUN_TO_MAKE_SESSION },
	{ "session exec", "SESSION [options] [--] command…", "run a command in a session",
		session_exec_options, true, session_exec, .returns_another = true,
		.no_json =
			"it prints what the command prints; --record and --status-fd give JSON" },
	{ "session list", "[options]", "list sessions", NULL, false, session_list },
	{ "session show", "SESSION|RUN [options]", "show a session and its runs, or a queued run",
		NULL, false, session_show, .takes_words = true },
	{ "session diff", "SESSION [options] [path…]", "show what a session changed in the project",
		cmd_diff_options + 1, false, cmd_diff, .takes_words = true, .names_session = true },
	{ "session apply", "SESSION [options] [path…]",
		"write a session's changes to the project, all or some", cmd_apply_options + 1,
		false, cmd_apply, .takes_words = true, .names_session = true },
	{ "session discard", "SESSION [options]",
		"throw away a session's changes, and keep its home", cmd_discard_options + 2, false,
		cmd_discard, .takes_words = true, .names_session = true },
	{ "session wait", "RUN [options]", "wait for a queued run, and print its output", NULL,
		false, session_wait, .returns_another = true, .takes_words = true,
		.no_json = "it prints what the command printed; see bawn session show RUN --json" },
	{ "session stop", "SESSION [options]", "stop the commands of a session", NULL, false,
		session_stop, .takes_words = true },
	{ "session rm", "SESSION… [options]", "remove sessions with all their files",
		session_rm_options, false, session_rm, .takes_words = true },
	{ "session sweep", "[options]", "remove expired sessions", session_sweep_options, false,
		session_sweep },
	{ 0 },
};
