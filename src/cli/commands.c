#include "cli/commands.h"

const struct cli_command cli_commands[] = {
	{ "run", "[options] [--] command…", "run a command in a cage", cmd_run_options, true,
		cmd_run, true },
	{ "plan", "[options] [--] [command…]", "what a cage would be made of; nothing is done",
		cmd_plan_options, true, cmd_plan },
	{ "check", "[options]", "validate and lint a spec", cmd_check_options, true, cmd_check },
	{ "diff", "[RUN] [options] [path…]", "what a run did to the project", cmd_diff_options,
		false, cmd_diff, .takes_words = true },
	{ "apply", "[RUN] [options] [path…]", "put what a run did on the host, or some of it",
		cmd_apply_options, false, cmd_apply, .takes_words = true },
	{ "discard", "[RUN] [options]", "drop what a run wrote", cmd_discard_options, false,
		cmd_discard, .takes_words = true },
	{ "log", "[RUN] [options]", "what happened in a run, and what was denied to it",
		cmd_log_options, false, cmd_log, .takes_words = true },
	{ "overlay", "init|reset|prune|digest PATH [options]",
		"make, empty, tidy up or digest an overlay of the root", cmd_overlay_options, false,
		cmd_overlay, .takes_words = true },
	{ "doctor", "[options]", "what this host can guarantee, and the remedy for what it cannot",
		cmd_doctor_options, false, cmd_doctor },
	{ "version", "", "the version, and what it was built with", NULL, false, cmd_version },
	{ 0 },
};
