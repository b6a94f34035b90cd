#pragma once

#include "cli/cli.h"
#include "result/result.h"

/* What the commands on a run's result share. Each returns a status, after it was said what is
 * wrong. */

/* Says it: CLI_MISUSE, CLI_NO for what is not there, ambiguous or locked, or CLI_FAILED. */
int cli_fail(const struct err *e);

/* The run or session that is meant, with no folder where there is none, which is said. */
int cli_choose_result(const struct cli *cli, struct result *k, struct result_words *ret);
void cli_say_no_result(const struct cli *cli, const struct result_words *w);

/* Its effects. */
int cli_load_result(const struct cli *cli, struct result *k);

/* CLI_NO where one of the paths has no effect. */
int cli_check_paths(const struct result *k);

/* The folder of a run by its word, or with NULL of the newest; CLI_OK with -1 where there is none.
 */
int cli_open_run(
	const struct cli *cli, const char *word, char ret[static RECORD_RUN_SIZE], int *ret_folder);
