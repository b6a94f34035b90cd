/*
 * cmd_mcp - tools for an agent that runs on the host: what they do happens in one session.
 *
 * Runs as:  the operator, for as long as its standard input is open.
 * Leaves:   the session, if it changed the project; else only the records of its runs.
 * Must not: print anything on standard output but the protocol's lines.
 */
#include "agent/mcp/mcp_server.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli_result.h"
#include "cli/cli_run.h"
#include "cli/cli_session.h"
#include "cli/commands.h"
#include "run/run_sessions.h"

const struct cli_option cmd_mcp_options[] = {
	{ "session", 0, "SESSION", SPEC_KEY_COUNT, NULL, "use this session [a new one]" },
	{ "ttl", 0, "DURATION", SPEC_SESSION_TTL, NULL,
		"keep a new session so long [session.ttl, 7d]" },
	{ 0 },
};

#define USUAL_TTL_MS ((int64_t)7 * 86400000) /* somebody has to come and look at it */

/* --- which session --- */

static int mcp_check_options(struct cli *cli)
{
	bool has_session = cli_value(cli, CLI_OPT_SESSION) != NULL;

	if (cli->word_count) {
		cli_complain(
			"cannot run a command: the tools of bawn mcp run what the agent asks for");
		return CLI_MISUSE;
	}
	if (cli_value(cli, CLI_OPT_FILE) && str_eq(cli_value(cli, CLI_OPT_FILE), "-")) {
		cli_complain("cannot read the spec from standard input: it is the agent's");
		return CLI_MISUSE;
	}
	for (size_t i = 0; has_session && i < cli->given_count; i++) {
		const struct cli_option *o = cli->given[i].option;

		if (o->key == SPEC_KEY_COUNT && !str_eq(o->name, "file") &&
			!str_eq(o->name, "trust") && !str_eq(o->name, "host"))
			continue;
		cli_complain("cannot use --%s: it is fixed when a session is created", o->name);
		return CLI_MISUSE;
	}
	return CLI_OK;
}

static int mcp_find_session(
	const struct cli *cli, struct run_sessions *at, struct store_session *ret)
{
	struct err e = { 0 };
	int status;

	if (run_sessions_open(at, false, &e) < 0) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	status = cli_sessions_find(at, cli_value(cli, CLI_OPT_SESSION), ret);
	if (status == CLI_OK && run_use_session(at, ret, &e) < 0) {
		cli_complain_about(&e, "cannot use session %s: %s", ret->id, e.text);
		status = CLI_FAILED;
	}
	return status;
}

/* The file tools are bawn's own program, which is in the cage then. */
static int add_tools(struct cli *cli)
{
	struct err e = { 0 };

	if (run_request_set(&cli->request, SPEC_TOOLS, "--tools", "true", &e) == 0)
		return CLI_OK;
	cli_complain_err(&e);
	return CLI_FAILED;
}

static int make_session(struct cli *cli, struct run_sessions *at, struct store_session *ret)
{
	const struct session_wish wish = { .usual_ttl_ms = USUAL_TTL_MS };
	int status = cli_add_settings(cli);

	if (status == CLI_OK)
		status = add_tools(cli);
	return status == CLI_OK ? session_make(cli, &wish, at, ret) : status;
}

/* --- at the end --- */

/* True also where that cannot be found out. */
static bool has_changed(const char *session)
{
	own(result) struct result k;
	struct err e = { 0 };

	result_init(&k);
	if (result_choose_session(&k, session, &e) == 0 && result_load(&k, NULL, &e) == 0)
		return k.effects.count > 0;
	cli_complain_err(&e);
	return true;
}

static int put_away(const struct store_session *x)
{
	own(run_sessions) struct run_sessions at = { .state = -1, .root = -1 };
	struct err e = { 0 };

	if (run_sessions_open(&at, false, &e) < 0) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	/* Commands that share a cage may have left some running, and so may others who use the
	 * session: nothing is to be changed any more when it is asked whether something was. */
	(void)run_stop_session(at.root, x->id, 1000, &e);
	if (!has_changed(x->id))
		return session_remove(&at, x);
	cli_complain("what the tools changed is in session %.8s: see it with bawn session diff "
		     "%.8s, take it with bawn session apply %.8s",
		x->id, x->id, x->id);
	return CLI_OK;
}

static void mcp_diags(void *of, const struct spec *s)
{
	cli_print_diags(of, s);
}

static int serve_session(struct cli *cli, const struct store_session *x, int root)
{
	/* Messages about its runs go to the agent, in the answers. */
	const struct cli quiet = { .is_quiet = true };
	own(cli_printer) struct cli_printer told;
	const struct run_sink sink = cli_sink(&told, &quiet);
	const struct mcp_serving serving = { .session = x,
		.root = root,
		.version = BAWN_VERSION,
		.command_line = cli->command_line,
		.command_line_size = cli->command_line_size,
		.sink = &sink,
		.diags = mcp_diags,
		.of = cli };
	struct err e = { 0 };

	if (mcp_serve(&serving, &e) == 0)
		return CLI_OK;
	cli_complain_err(&e);
	return CLI_FAILED;
}

int cmd_mcp(struct cli *cli)
{
	own(run_sessions) struct run_sessions at = { .state = -1, .root = -1 };
	own(store_session) struct store_session x = { 0 };
	bool is_ours = cli_value(cli, CLI_OPT_SESSION) == NULL;
	int status = mcp_check_options(cli), after;

	/* Standard output is the protocol's. */
	cli->is_json = false;
	/* A session that is being made is removed too by who is told to end. */
	mcp_block_signals();
	if (status == CLI_OK)
		status = is_ours ? make_session(cli, &at, &x) : mcp_find_session(cli, &at, &x);
	if (status != CLI_OK)
		return status;
	/* Calls begin as copies of this process: they shall have nothing of the store. */
	store_close(at.store);
	at.store = NULL;
	status = serve_session(cli, &x, at.root);
	after = is_ours ? put_away(&x) : CLI_OK;
	return status == CLI_OK ? after : status;
}
