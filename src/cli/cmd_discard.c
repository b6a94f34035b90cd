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
#include "change/apply/change_apply.h"
#include "cli/cli_kept.h"
#include "cli/commands.h"
#include "session/folder/session.h"

const struct cli_option cmd_discard_options[] = {
	{ "all", 0, NULL, SPEC_KEY_COUNT, NULL,
		"discard all runs of this project that have ended" },
	{ "run", 0, "RUN", SPEC_KEY_COUNT, NULL, "choose a run [the newest with changes]" },
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

/* Drafts in the project, and what else an interrupted apply left. */
static int discard_clean(struct cli_kept *k)
{
	struct err e = { 0 };

	if (k->below < 0 ||
		change_apply_clean(k->folder, k->below, cli_kept_git(k), k->id, &e) == 0)
		return CLI_OK;
	cli_complain_about(&e, "cannot clean up after %s %s: %s", k->what, k->id, e.text);
	return CLI_FAILED;
}

/* Files, and folders that are more than where files are; without those that were applied. */
static size_t count_files(const struct cli_kept *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->effects.count; i++)
		n += !k->effects.items[i].is_implied;
	return n - cli_kept_count_there(k);
}

static void discard_tell(struct discard *d, const struct cli_kept *k)
{
	size_t n = count_files(k), there = cli_kept_count_there(k);

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
static int discard_ask(const struct discard *d, const struct cli_kept *k)
{
	size_t n = count_files(k);
	char files[64] = "";

	if (n)
		snprintf(files, sizeof(files), " (%zu file%s)", n, n == 1 ? "" : "s");
	if (k->other_count && !cli_value(d->cli, CLI_OPT_YES))
		cli_complain("%zu more run%s in '%s' wait%s to be applied or discarded",
			k->other_count, k->other_count == 1 ? "" : "s", k->project,
			k->other_count == 1 ? "s" : "");
	return cli_confirm(d->cli, !k->other_count, "discard what %s %s wrote to '%s'%s", k->what,
		k->id, k->project, files);
}

static int discard(struct discard *d, struct cli_kept *k)
{
	struct cli_there found = { .k = k };
	bool has_layer = cli_kept_has_layer(k);
	int status = cli_kept_lock(k);

	if (status != CLI_OK)
		return status;
	/* What it did stays known, if that can be found out; a layer that cannot be read goes too.
	 */
	if (has_layer && k->below >= 0)
		cli_kept_load(k);
	if (k->layer >= 0 && k->below >= 0 && k->effects.count)
		cli_kept_find_there(&found);
	if (has_layer && !d->is_all)
		status = discard_ask(d, k);
	if (status == CLI_OK)
		status = discard_clean(k);
	if (status == CLI_OK)
		status = cli_kept_remove(k);
	if (status == CLI_OK && has_layer)
		cli_kept_log_discarded(k);
	if (status == CLI_OK && has_layer)
		discard_tell(d, k);
	else if (status == CLI_OK && !d->is_all && !d->cli->is_quiet)
		cli_complain("nothing that %s %s wrote is kept any more", k->what, k->id);
	return status;
}

static int count_each(void *of, struct cli_kept *k)
{
	size_t *n = of;

	*n += cli_kept_has_layer(k);
	return CLI_OK;
}

static int discard_each(void *of, struct cli_kept *k)
{
	struct discard *d = of;
	int status = discard(d, k);

	/* The others go all the same; one that still runs is said to, and is none of them. */
	if (status == CLI_FAILED)
		d->status = status;
	return CLI_OK;
}

static int discard_all(struct discard *d)
{
	size_t n = 0;
	int status = CLI_OK;

	if (!cli_value(d->cli, CLI_OPT_YES) && isatty(STDIN_FILENO))
		status = cli_kept_each(d->cli, count_each, &n);
	if (status == CLI_OK && n)
		status = cli_confirm(d->cli, true, "discard what %zu run%s of this project wrote",
			n, n == 1 ? "" : "s");
	return status == CLI_OK ? cli_kept_each(d->cli, discard_each, d) : status;
}

/* All of a run goes, or nothing: what is wanted of it is applied before. */
static void discard_say_all(const char *word)
{
	cli_complain("cannot discard single files: '%s' is neither a run nor a session", word);
	cli_hint("apply those you want (bawn apply PATH), then: bawn discard");
}

static int discard_one(struct discard *d)
{
	own(cli_kept) struct cli_kept k;
	int status;

	cli_kept_init(&k, d->cli);
	status = cli_kept_choose(&k);
	if (status != CLI_OK)
		return status;
	if (d->cli->word_count && !k.has_named_run) {
		discard_say_all(d->cli->words[0]);
		return CLI_MISUSE;
	}
	return k.folder < 0 ? CLI_OK : discard(d, &k);
}

/* May it be a run, or a session? */
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
		json_init(&d.json, &d.output, 0);
		json_open_map(&d.json, NULL);
		json_int(&d.json, "version", 1);
		json_open_list(&d.json, "discarded");
	}
	status = d.is_all ? discard_all(&d) : discard_one(&d);
	if (d.status != CLI_OK)
		status = d.status;
	if (cli->is_json) {
		json_close_list(&d.json);
		json_close_map(&d.json);
		buf_putc(&d.output, '\n');
	}
	status = cli_write(&d.output, status);
	buf_done(&d.output);
	return status;
}
