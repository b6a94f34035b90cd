#include "cli/cli_session.h"

const struct cli_option session_exec_options[] = { { 0 } };

int session_exec(struct cli *cli)
{
	(void)cli;
	cli_complain("session exec is not there yet");
	return CLI_FAILED;
}

int session_stop(struct cli *cli)
{
	(void)cli;
	cli_complain("session stop is not there yet");
	return CLI_FAILED;
}
