#pragma once

#include "cli/cli.h"
#include "result/result.h"

/* For commands on the result of a run. Functions that return a status have printed the error. */

/* Prints an error. Returns CLI_MISUSE; CLI_NO: not found, ambiguous or locked; or CLI_FAILED. */
int cli_fail(const struct err *e);

/* Opens the run or session that the command means. If there is none, says so; k->folder is -1. */
int cli_choose_result(const struct cli *cli, struct result *k, struct result_words *ret);
void cli_say_no_result(const struct cli *cli, const struct result_words *w);

/* Loads its effects. */
int cli_load_result(const struct cli *cli, struct result *k);

/* Returns CLI_NO if a chosen path has no effect. */
int cli_check_paths(const struct result *k);

/*
 * Opens the folder of the run that a word names, or with NULL of the newest; -1: there is no run.
 */
int cli_open_run(
	const struct cli *cli, const char *word, char ret[static RECORD_RUN_SIZE], int *ret_folder);
