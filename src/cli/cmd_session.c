/* bawn session: what can be done with one. Each group of commands has a file of its own. */
#include "cli/cli_exec.h"
#include "cli/cli_session.h"
#include "cli/commands.h"

const struct cli_command cmd_session_commands[] = {
	{ "session create", "[options]", "make a session, and print its id", session_create_options,
		true, session_create },
	{ "session exec", "SESSION [options] [--] command…", "run a command in a session",
		exec_options, true, session_exec, .returns_another = true },
	{ "session list", "[options]", "the sessions there are", NULL, false, session_list },
	{ "session show", "SESSION|RUN [options]",
		"what is known of a session and its runs, or of a queued run", NULL, false,
		session_show, .takes_words = true },
	{ "session diff", "SESSION [options] [path…]", "what a session did to the project",
		cmd_diff_options + 1, false, cmd_diff, .takes_words = true, .names_session = true },
	{ "session apply", "SESSION [options] [path…]",
		"put what a session did on the host, or some of it", cmd_apply_options + 1, false,
		cmd_apply, .takes_words = true, .names_session = true },
	{ "session discard", "SESSION [options]",
		"drop what a session wrote to the project, and keep its home", NULL, false,
		cmd_discard, .takes_words = true, .names_session = true },
	{ "session wait", "RUN [options]",
		"wait until a queued run has ended, and print what it printed", NULL, false,
		session_wait, .returns_another = true, .takes_words = true },
	{ "session stop", "SESSION [options]", "end what runs in a session", NULL, false,
		session_stop, .takes_words = true },
	{ "session rm", "SESSION… [options]", "remove sessions with all that is in them", NULL,
		false, session_rm, .takes_words = true },
	{ "session sweep", "[options]", "remove the sessions whose time is over",
		session_sweep_options, false, session_sweep },
	{ 0 },
};
