/*
 * cmd_discard - drops what a run wrote.
 *
 * Runs as:  the operator, who has locked the run.
 * Leaves:   of the run its record, and effects.json that says what it did.
 * Must not: touch the project, but for drafts that an interrupted apply left there.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/cli_result.h"
#include "cli/commands.h"
#include "session/folder/session.h"

const struct cli_option cmd_discard_options[] = {
	CLI_OWN("all", 0, NULL, "discard all runs of this project that have ended"),
	CLI_OWN("run", 0, "RUN", "choose a run [the newest with changes]"),
	CLI_YES,
	{ 0 },
};

struct discard {
	const struct cli *cli;
	struct buf output;
	struct json json;
	bool is_all;
	int status; /* the worst of all */
};

/* Files, and folders that are more than where files are; without those that were applied. */
static size_t count_files(const struct result *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->effects.count; i++)
		n += !k->effects.items[i].is_implied;
	return n - result_count_there(k);
}

static void discard_tell(struct discard *d, const struct result *k)
{
	size_t n = count_files(k), there = result_count_there(k);

	if (d->cli->is_json) {
		json_open_map(&d->json, NULL);
		json_text(&d->json, k->what, k->id);
		/* A layer that could not be read is not one without files. */
		if (n || there)
			json_int(&d->json, "files", (int64_t)n);
		json_close_map(&d->json);
	} else if (!d->cli->is_quiet) {
		buf_printf(&d->output, "discarded what %s %s wrote", k->what, k->id);
		if (n)
			buf_printf(&d->output, ": %zu file%s", n, n == 1 ? "" : "s");
		if (there)
			buf_printf(&d->output, "; %zu stay%s in the project, as applied", there,
				there == 1 ? "s" : "");
		buf_putc(&d->output, '\n');
	}
}

/*
 * What nobody has seen yet may be hours of work. Which run is meant is certain where it was named,
 * and where it is the only one.
 */
static int discard_ask(const struct discard *d, const struct result *k, size_t others)
{
	size_t n = count_files(k);
	char files[64] = "";

	if (n)
		snprintf(files, sizeof(files), " (%zu file%s)", n, n == 1 ? "" : "s");
	if (others && !cli_value(d->cli, CLI_OPT_YES))
		cli_complain("%zu more run%s in '%s' wait%s to be applied or discarded", others,
			others == 1 ? "" : "s", k->project, others == 1 ? "s" : "");
	return cli_confirm(d->cli, !others, "discard what %s %s wrote to '%s'%s", k->what, k->id,
		k->project, files);
}

static int discard(struct discard *d, struct result *k, size_t others)
{
	struct result_there found = { 0 };
	struct err e = { 0 }, unlogged = { 0 };
	bool has_layer = result_has_layer(k);

	if (result_lock(k, cli_command_word(d->cli->command), &e) < 0)
		return cli_fail(&e);
	/*
	 * What it did stays known, if that can be found out; a layer that cannot be read goes too.
	 */
	if (has_layer && k->below >= 0)
		cli_load_result(d->cli, k);
	if (k->layer >= 0 && k->below >= 0 && k->effects.count)
		result_find_there(k, &found);
	if (has_layer && !d->is_all && discard_ask(d, k, others) != CLI_OK)
		return CLI_NO;
	if (result_discard(k, &unlogged, &e) < 0) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	if (unlogged.kind != ERR_NONE)
		cli_complain_err(&unlogged);
	if (has_layer)
		discard_tell(d, k);
	else if (!d->is_all && !d->cli->is_quiet)
		cli_complain("nothing that %s %s wrote is kept any more", k->what, k->id);
	return CLI_OK;
}

static int count_each(void *of, struct result *k)
{
	size_t *n = of;

	*n += result_has_layer(k);
	return 0;
}

static int discard_each(void *of, struct result *k)
{
	struct discard *d = of;
	int status = discard(d, k, 0);

	/* The others go all the same; one that still runs is said to, and is none of them. */
	if (status == CLI_FAILED)
		d->status = status;
	return 0;
}

static int each(struct discard *d, int (*see)(void *of, struct result *k), void *of)
{
	struct result_words where = { 0 };
	struct err e = { 0 };
	size_t n;

	if (result_each(see, of, &where, &n, &e) < 0)
		return cli_fail(&e);
	if (!n)
		cli_say_no_result(d->cli, &where);
	return CLI_OK;
}

static int discard_all(struct discard *d)
{
	size_t n = 0;
	int status = CLI_OK;

	if (!cli_value(d->cli, CLI_OPT_YES) && isatty(STDIN_FILENO))
		status = each(d, count_each, &n);
	if (status == CLI_OK && n)
		status = cli_confirm(d->cli, true, "discard what %zu run%s of this project wrote",
			n, n == 1 ? "" : "s");
	return status == CLI_OK ? each(d, discard_each, d) : status;
}

/* All of a run goes, or nothing: what is wanted of it is applied before. */
static void discard_say_all(const char *word)
{
	cli_complain("cannot discard single files: '%s' is neither a run nor a session", word);
	cli_hint("apply those you want (bawn apply PATH), then: bawn discard");
}

static int discard_one(struct discard *d)
{
	own(result) struct result k;
	struct result_words words;
	int status;

	result_init(&k);
	status = cli_choose_result(d->cli, &k, &words);
	if (status != CLI_OK)
		return status;
	if (d->cli->word_count && !words.is_named) {
		discard_say_all(d->cli->words[0]);
		return CLI_MISUSE;
	}
	return k.folder < 0 ? CLI_OK : discard(d, &k, words.others);
}

/* True if the word can name a run or a session. */
static bool discard_is_name(const char *word)
{
	return record_is_run(word, false) || session_is_id(word, false) ||
	       !session_check_name(word);
}

static int discard_check_words(const struct cli *cli)
{
	size_t most = cli_value(cli, CLI_OPT_RUN) || cli_value(cli, CLI_OPT_ALL) ? 0 : 1;
	const char *word = cli->word_count ? cli->words[most && cli->word_count > 1] : "";

	if (cli_value(cli, CLI_OPT_RUN) && cli_value(cli, CLI_OPT_ALL)) {
		cli_complain("discard takes one run with --run, or --all");
		return CLI_MISUSE;
	}
	if (cli->word_count <= most && (!*word || discard_is_name(word)))
		return CLI_OK;
	if (most)
		discard_say_all(word);
	else
		cli_complain("discard --%s takes no '%s'",
			cli_value(cli, CLI_OPT_ALL) ? "all" : "run", word);
	return CLI_MISUSE;
}

int cmd_discard(struct cli *cli)
{
	struct discard d = { .cli = cli, .is_all = cli_value(cli, CLI_OPT_ALL) != NULL };
	int status = discard_check_words(cli);

	if (status != CLI_OK)
		return status;
	buf_init(&d.output, (size_t)16 << 20);
	if (cli->is_json) {
		cli_json_begin(&d.json, &d.output);
		json_open_list(&d.json, "discarded");
	}
	status = d.is_all ? discard_all(&d) : discard_one(&d);
	if (d.status != CLI_OK)
		status = d.status;
	if (cli->is_json) {
		json_close_list(&d.json);
		cli_json_end(&d.json);
	}
	status = cli_write(&d.output, status);
	buf_done(&d.output);
	return status;
}
