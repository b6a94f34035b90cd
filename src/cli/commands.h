#pragma once

#include "cli/cli.h"

extern const struct cli_option cmd_run_options[], cmd_plan_options[], cmd_check_options[],
	cmd_doctor_options[];

int cmd_run(struct cli *cli);
int cmd_plan(struct cli *cli);
int cmd_check(struct cli *cli);
int cmd_doctor(struct cli *cli);
int cmd_version(struct cli *cli);
