#pragma once

#include "change/change.h"
#include "cli/cli.h"
#include "keeper/keeper.h"
#include "proof/sign/sign.h"

extern const struct cli_option cmd_run_options[], cmd_plan_options[], cmd_check_options[],
	cmd_doctor_options[], cmd_diff_options[], cmd_apply_options[], cmd_discard_options[],
	cmd_overlay_options[], cmd_log_options[], cmd_key_options[], cmd_card_options[],
	cmd_record_options[], cmd_verify_options[], cmd_worker_options[], cmd_mcp_options[],
	cmd_agent_options[];

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
int cmd_record(struct cli *cli);
int cmd_verify(struct cli *cli);

/*
 * Says in one line what a run did to the project, and what to type; nothing where it did nothing.
 * `project` is its real path.
 */
void cli_say_effects(const struct cli *cli, const struct record *record, const char *project);

struct store_session;

/* The same of a session so far, after one of its commands. */
void cli_say_session_effects(const struct record *record, const struct store_session *s);

/* Says in one line what of the network was denied, and in another why it closed, where it did. */
void cli_say_net(const struct cli *cli, const struct record *record);

/* And of system calls. */
void cli_say_denied(const struct cli *cli, const struct record *r);

/* Names in one line, at a terminal, what the run was without and the spec does not accept. */
void cli_say_missing(const struct cli *cli, const struct spec *s, const struct record *r);
