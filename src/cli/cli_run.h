#pragma once

#include "cli/cli_progress.h"
#include "run/run.h"

/* Who tells a person how a run goes. */
struct cli_told {
	const struct cli *cli;
	struct cli_progress progress;
};

/* Says all of a run on standard error, as the command line wants it; borrows both. */
struct run_sink cli_sink(struct cli_told *told, const struct cli *cli);
void cli_told_done(struct cli_told *told);
