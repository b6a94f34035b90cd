/* cli_record - runs as rows of a list, and in words, as their records tell of them. */
#include "cli/cli_record.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"

void cli_record_add_end(struct buf *out, const struct record_read *r)
{
	if (r->outcome == RECORD_EXITED)
		buf_printf(out, "exit %" PRId64, r->status);
	else if (r->outcome == RECORD_SIGNALED)
		buf_printf(out, "signal %" PRId64, r->signal);
	else
		buf_puts(out, record_outcome_words[r->outcome]);
}

void cli_record_add_changes(struct buf *out, const struct record_read *r)
{
	if (r->effects.sha256)
		buf_printf(out, "+%" PRId64 " ~%" PRId64 " -%" PRId64, r->effects.added,
			r->effects.changed + r->effects.renamed, r->effects.deleted);
	else
		buf_putc(out, '-');
}

void cli_record_add_took(struct buf *out, int64_t us)
{
	int64_t s = us / 1000000;

	if (us < 0)
		buf_putc(out, '-');
	else if (s < 1)
		buf_printf(out, "%" PRId64 "ms", us / 1000);
	else if (s < 60)
		buf_printf(out, "%" PRId64 ".%" PRId64 "s", s, us / 100000 % 10);
	else if (s < 3600)
		buf_printf(out, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
	else
		buf_printf(out, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
}

#define ROW_FORM "%-24s  %-12s  %6s  %-10s  %s"

void cli_record_head(struct cli_show *show)
{
	if (show->for_person)
		cli_show_text(show, CLI_INK_HEAD, ROW_FORM, "run", "result", "took", "changes",
			"command");
}

static void row_text(const struct cli_record_rows *l, const char *id, const struct result_record *k,
	const char *command, const char *project)
{
	own(buf) struct buf line = { .max = 8 * PATH_MAX }, end = { .max = 64 };
	own(buf) struct buf took = { .max = 32 }, changes = { .max = 128 };
	const struct record_read *r = &k->record;

	if (!k->state) {
		cli_record_add_end(&end, r);
		cli_record_add_took(&took, r->outcome == RECORD_REFUSED ? -1 : r->run_us);
		cli_record_add_changes(&changes, r);
	}
	buf_printf(&line, ROW_FORM, id, k->state ? k->state : buf_text(&end),
		k->state ? "-" : buf_text(&took), k->state ? "-" : buf_text(&changes), command);
	if (!k->state && !r->is_hardened)
		buf_printf(&line, "  [%s]", r->level);
	if (project[0])
		buf_printf(&line, "  in %s", project);
	cli_show_cut(l->show, CLI_INK_PLAIN, buf_text(&line));
}

static void row_json(const struct cli_record_rows *l, const char *id, const struct result_record *k,
	const char *command, const char *project)
{
	const struct record_read *r = &k->record;

	json_open_map(l->json, NULL);
	json_text(l->json, "run", id);
	json_text(l->json, "command", command[0] ? command : NULL);
	json_text(l->json, "project", project[0] ? project : NULL);
	json_text(l->json, "state", k->state ? k->state : "signed");
	if (!k->state) {
		json_text(l->json, "session", r->session);
		json_text(l->json, "level", r->level);
		json_bool(l->json, "in_chain", r->in_chain);
		json_text(l->json, "outcome", record_outcome_words[r->outcome]);
		if (r->outcome == RECORD_EXITED)
			json_int(l->json, "status", r->status);
		json_text(l->json, "began", r->began);
		json_text(l->json, "ended", r->ended);
		json_int(l->json, "run_us", r->run_us);
		json_text(l->json, "effects", r->effects.sha256);
		if (r->effects.sha256) {
			json_int(l->json, "added", r->effects.added);
			json_int(l->json, "changed", r->effects.changed);
			json_int(l->json, "renamed", r->effects.renamed);
			json_int(l->json, "deleted", r->effects.deleted);
		}
	}
	json_close_map(l->json);
}

int cli_record_row(const struct cli_record_rows *l, const char *id)
{
	own(result_record) struct result_record k = { 0 };
	struct err e = { 0 };
	own_fd int folder = record_open_folder(l->runs, id, &e);
	own(buf) struct buf command = { .max = CLI_MOST_COMMAND };
	char project[PATH_MAX];

	if (folder < 0 || result_record_load(&k, folder, &e) < 0) {
		cli_complain_about(&e, "cannot use the record of run %s: %s", id, e.text);
		return CLI_FAILED;
	}
	result_read_project(folder, project);
	record_read_command(folder, k.state ? NULL : k.record.plan_sha256, &command);
	if (l->json)
		row_json(l, id, &k, buf_text(&command), project);
	else
		row_text(l, id, &k, buf_text(&command), project);
	return CLI_OK;
}
