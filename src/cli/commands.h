#pragma once

#include "change/change.h"
#include "cli/cli.h"
#include "keeper/keeper.h"
#include "proof/sign/sign.h"

/* The commands, for the table in commands.c, and their options. */

extern const struct cli_option cmd_run_options[], cmd_plan_options[], cmd_check_options[],
	cmd_doctor_options[], cmd_diff_options[], cmd_apply_options[], cmd_discard_options[],
	cmd_overlay_options[], cmd_log_options[], cmd_key_options[], cmd_card_options[],
	cmd_record_options[], cmd_verify_options[], cmd_worker_options[], cmd_mcp_options[],
	cmd_agent_options[], cmd_prune_options[];

extern const struct cli_command cmd_session_commands[], cmd_tool_commands[];

int cmd_run(struct cli *cli);
int cmd_plan(struct cli *cli);
int cmd_check(struct cli *cli);
int cmd_doctor(struct cli *cli);
int cmd_overlay(struct cli *cli);
int cmd_preflight(struct cli *cli);
int cmd_version(struct cli *cli);
int cmd_agent(struct cli *cli);
int cmd_worker(struct cli *cli);
int cmd_mcp(struct cli *cli);
int cmd_hook(struct cli *cli);
int cmd_diff(struct cli *cli);
int cmd_apply(struct cli *cli);
int cmd_discard(struct cli *cli);
int cmd_log(struct cli *cli);
int cmd_key(struct cli *cli);
int cmd_card(struct cli *cli);
int cmd_prune(struct cli *cli);
int cmd_record(struct cli *cli);
int cmd_verify(struct cli *cli);
