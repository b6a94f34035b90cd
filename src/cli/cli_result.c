/*
 * cli_result - the run or session that a command line means: which it is, and what is said of it.
 */
#include <errno.h>

#include "base/own.h"
#include "cli/cli_result.h"
#include "cli/cli_run.h"

int cli_fail(const struct err *e)
{
	bool is_no = e->kind == ERR_REFUSED &&
		     (e->num == ENOENT || e->num == ENOTUNIQ || e->num == EWOULDBLOCK);

	cli_complain_err(e);
	return e->kind == ERR_USE ? CLI_MISUSE : is_no ? CLI_NO : CLI_FAILED;
}

void cli_say_no_result(const struct cli *cli, const struct result_words *w)
{
	char session[RESULT_NAME_SIZE];

	if (cli->is_quiet)
		return;
	cli_complain("no changes of a run are waiting in '%s'", w->where);
	if (result_find_session(w->here, session))
		cli_hint("session %s has changes: bawn session diff %s", session, session);
}

int cli_choose_result(const struct cli *cli, struct result *k, struct result_words *ret)
{
	struct err e = { 0 };

	*ret = (struct result_words){ .run = cli_value(cli, CLI_OPT_RUN),
		.words = (const char *const *)cli->words,
		.count = cli->word_count,
		.open_count = cli->open_count,
		.is_session = cli->command->names_session };
	if (ret->is_session && !cli->open_count) {
		cli_complain("%s wants a session", cli->command->name);
		cli_hint("bawn session list");
		return CLI_MISUSE;
	}
	if (result_choose(k, ret, &e) < 0)
		return cli_fail(&e);
	if (k->folder < 0)
		cli_say_no_result(cli, ret);
	return CLI_OK;
}

int cli_load_result(const struct cli *cli, struct result *k)
{
	own(cli_progress) struct cli_progress progress = cli_progress_begin(cli);
	const struct change_progress tell = cli_progress_of(&progress);
	struct err e = { 0 };

	if (result_load(k, &tell, &e) == 0)
		return CLI_OK;
	cli_progress_clear(&progress);
	return cli_fail(&e);
}

int cli_check_paths(const struct result *k)
{
	int status = CLI_OK;
	const char *path;
	size_t at = 0;

	while ((path = result_find_unchanged(k, &at))) {
		cli_complain("%s %s did not change '%s'", k->what, k->id, path);
		status = CLI_NO;
	}
	return status;
}

int cli_open_run(
	const struct cli *cli, const char *word, char ret[static RECORD_RUN_SIZE], int *ret_folder)
{
	struct err e = { 0 };

	if (result_open_run(word, ret, ret_folder, &e) < 0)
		return cli_fail(&e);
	if (*ret_folder < 0 && !cli->is_quiet)
		cli_complain("there is no run yet");
	return CLI_OK;
}
