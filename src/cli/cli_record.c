/*
 * cli_record - a record as it lies in a run's folder, and its row in a list of runs.
 *
 * Runs as:  the operator.
 * Must not: say that a record is good: bawn verify does that.
 */
#include "cli/cli_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "cli/cli_words.h"
#include "proof/sign/sign.h"

void cli_record_done(struct cli_record *k)
{
	free(k->bytes);
	arena_done(&k->arena);
}

/* A run has its folder locked while it lasts. */
static bool is_going_on(int folder)
{
	bool is_locked = flock(folder, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	if (!is_locked)
		flock(folder, LOCK_UN);
	return is_locked;
}

int cli_record_load(struct cli_record *ret, int folder, struct err *e)
{
	own_fd int fd = file_open_name(folder, RECORD_FILE, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	struct sign_envelope envelope;
	const char *end;
	size_t n = 0;
	int r = fd < 0 ? fd : file_read_all(fd, CLI_RECORD_MOST, &ret->bytes, &n);

	arena_init(&ret->arena, RECORD_READ_MEMORY + CLI_RECORD_MOST);
	if (r == -ENOENT) {
		ret->state = is_going_on(folder) ? "goes on" : "has no record";
		return 0;
	}
	if (r < 0)
		return err_set(e, ERR_SYS, -r, "%s", strerror(-r));
	end = memchr(ret->bytes, '\n', n);
	r = sign_read_envelope(
		ret->bytes, end ? (size_t)(end - ret->bytes) : n, &ret->arena, &envelope, e);
	return r < 0 ? r
		     : record_read((const char *)envelope.payload, envelope.size, &ret->arena,
			       &ret->statement, &ret->record, e);
}

void cli_record_add_end(struct buf *out, const struct record_read *r)
{
	if (r->outcome == RECORD_EXITED)
		buf_printf(out, "exit %" PRId64, r->status);
	else if (r->outcome == RECORD_SIGNALED)
		buf_printf(out, "signal %" PRId64, r->signal);
	else
		buf_puts(out, record_outcome_words[r->outcome]);
}

void cli_record_read_project(int folder, char ret[static PATH_MAX])
{
	ssize_t n = readlinkat(folder, RECORD_PROJECT_LINK, ret, PATH_MAX - 1);

	ret[n > 0 ? n : 0] = '\0';
}

void cli_record_add_changes(struct buf *out, const struct record_read *r)
{
	if (r->effects.sha256)
		buf_printf(out, "+%" PRId64 " ~%" PRId64 " -%" PRId64, r->effects.added,
			r->effects.changed + r->effects.renamed, r->effects.deleted);
	else
		buf_putc(out, '-');
}

#define ROW_FORM "%-24s  %-12s  %6s  %-10s  %s"

void cli_record_head(struct cli_show *show)
{
	if (show->for_person)
		cli_show_text(show, CLI_INK_HEAD, ROW_FORM, "run", "result", "took", "changes",
			"command");
}

static void row_text(const struct cli_record_rows *l, const char *id, const struct cli_record *k,
	const char *command, const char *project)
{
	own(buf) struct buf line = { .max = 8 * PATH_MAX }, end = { .max = 64 };
	own(buf) struct buf took = { .max = 32 }, changes = { .max = 128 };
	const struct record_read *r = &k->record;

	if (!k->state) {
		cli_record_add_end(&end, r);
		cli_print_took(&took, r->outcome == RECORD_REFUSED ? -1 : r->run_us);
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

static void row_json(const struct cli_record_rows *l, const char *id, const struct cli_record *k,
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
	own(cli_record) struct cli_record k = { 0 };
	struct err e = { 0 };
	own_fd int folder = record_open_folder(l->runs, id, &e);
	own(buf) struct buf command = { .max = CLI_MOST_COMMAND };
	char project[PATH_MAX];

	if (folder < 0 || cli_record_load(&k, folder, &e) < 0) {
		cli_complain_about(&e, "cannot use the record of run %s: %s", id, e.text);
		return CLI_FAILED;
	}
	cli_record_read_project(folder, project);
	cli_read_command(folder, k.state ? NULL : k.record.plan_sha256, &command);
	if (l->json)
		row_json(l, id, &k, buf_text(&command), project);
	else
		row_text(l, id, &k, buf_text(&command), project);
	return CLI_OK;
}
