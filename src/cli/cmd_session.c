/* bawn session: what can be done with one. Each group of commands has a file of its own. */
#include "cli/cli_session.h"
#include "cli/commands.h"

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
