/*
 * cli_session_show - what is known of one session, or of a run that was queued in one.
 *
 * Runs as:  the operator.
 * Must not: let what a stranger's command printed command the operator's terminal.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/own.h"
#include "cli/cli_record.h"
#include "cli/cli_session.h"
#include "proof/record/record.h"
#include "run/run_stay.h"

#define MOST_SHOWN ((size_t)256 << 20)

static const char *session_show_print_time(int64_t ms, char ret[static CLOCK_TEXT_SIZE])
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	if (!ms)
		return NULL;
	clock_print(&t, ret);
	return ret;
}

/* For people: to the second. */
static const char *print_second(int64_t ms, char ret[static CLOCK_TEXT_SIZE])
{
	char *fraction = session_show_print_time(ms, ret) ? strchr(ret, '.') : NULL;

	if (fraction)
		memcpy(fraction, "Z", sizeof("Z"));
	return ms ? ret : NULL;
}

static void session_show_row(struct cli_show *out, const char *name, const char *value)
{
	if (value && value[0])
		cli_show_text(out, CLI_INK_PLAIN, "%-9s %s", name, value);
}

/* --- a run --- */

static void print_run_json(const struct store_run *x, struct json *j)
{
	char text[CLOCK_TEXT_SIZE];

	json_text(j, "run", x->id);
	json_text(j, "session", x->session);
	json_text(j, "state", store_run_words[x->state]);
	if (x->state == STORE_ENDED || x->state == STORE_FAILED)
		json_int(j, "status", x->status);
	json_text(j, "error", x->error && x->error[0] ? x->error : NULL);
	json_text(j, "worker", x->worker[0] ? x->worker : NULL);
	json_text(j, "queued", session_show_print_time(x->queued_ms, text));
	json_text(j, "taken", session_show_print_time(x->taken_ms, text));
	json_text(j, "ended", session_show_print_time(x->ended_ms, text));
}

/* A NUL, which no text of ours has, becomes the character that stands for what cannot be shown. */
static void print_bytes(struct json *j, const char *key, const char *bytes, size_t n)
{
	own(buf) struct buf text = { .max = 4 * STORE_MAX_OUTPUT };

	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			buf_putc(&text, bytes[i]);
		else
			buf_puts(&text, "\xef\xbf\xbd");
	json_text(j, key, buf_text(&text));
}

static void session_show_lines(
	struct cli_show *out, const char *heading, const char *bytes, size_t n)
{
	if (n)
		cli_show_text(out, CLI_INK_HEAD, "%s", heading);
	while (n && !cli_show_is_over(out)) {
		const char *end = memchr(bytes, '\n', n);
		size_t line = end ? (size_t)(end - bytes) : n;

		cli_show_line(out, CLI_INK_PLAIN, bytes, line);
		line += end != NULL;
		bytes += line;
		n -= line;
	}
}

static int show_run_json(const struct store_run *x)
{
	own(buf) struct buf out = { .max = MOST_SHOWN };
	struct json j;

	json_init(&j, &out, 0);
	json_open_map(&j, NULL);
	json_int(&j, "version", 1);
	print_run_json(x, &j);
	print_bytes(&j, "stdout", x->out, x->out_size);
	print_bytes(&j, "stderr", x->err, x->err_size);
	json_close_map(&j);
	buf_putc(&out, '\n');
	return cli_write(&out, CLI_OK);
}

static int session_show_run(const struct cli *cli, const struct store_run *x)
{
	struct cli_show out;
	char text[CLOCK_TEXT_SIZE], status[16];

	if (cli->is_json)
		return show_run_json(x);
	snprintf(status, sizeof(status), "%d", x->status);
	cli_show_open(&out, cli, true);
	cli_show_text(&out, CLI_INK_HEAD, "# run %s", x->id);
	session_show_row(&out, "session", x->session);
	session_show_row(&out, "state", store_run_words[x->state]);
	if (x->state == STORE_ENDED || x->state == STORE_FAILED)
		session_show_row(&out, "status", status);
	session_show_row(&out, "error", x->error);
	session_show_row(&out, "worker", x->worker);
	session_show_row(&out, "queued", print_second(x->queued_ms, text));
	session_show_row(&out, "taken", print_second(x->taken_ms, text));
	session_show_row(&out, "ended", print_second(x->ended_ms, text));
	session_show_lines(&out, "# it printed", x->out, x->out_size);
	session_show_lines(&out, "# and on standard error", x->err, x->err_size);
	return cli_show_close(&out, CLI_OK);
}

/* --- a session --- */

/* Its runs: those whose records are here, and those that are only in the queue. */
struct runs {
	int folder; /* of all runs, or negative */
	struct cli_show *show;
	struct json *json;
	struct record_run *found; /* the newest first */
	size_t count;
	size_t queued;
};

static void runs_done(struct runs *r)
{
	if (r->folder >= 0)
		close(r->folder);
	free(r->found);
}

static int find_runs(struct runs *r, const char *session, struct err *e)
{
	int failure;

	r->folder = record_open_runs(run_home(), e);
	if (r->folder < 0)
		return e->kind == ERR_NONE ? 0 : r->folder;
	failure = record_list_runs(r->folder, session, &r->found, &r->count);
	return failure < 0 ? err_sys(e, -failure, "cannot list the runs") : 0;
}

static int show_runs(const struct runs *r)
{
	const struct cli_record_rows rows = { r->folder, r->show, r->json };
	int status = CLI_OK;

	if (r->show && r->count) {
		cli_show_text(r->show, CLI_INK_HEAD, "# runs");
		cli_record_head(r->show);
	}
	for (size_t i = 0; i < r->count; i++) {
		int one = cli_record_row(&rows, r->found[i].id);

		status = one != CLI_OK ? one : status;
	}
	return status;
}

static bool session_show_is_found(const struct runs *r, const char *id)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->found[i].id, id) == 0)
			return true;
	return false;
}

static int see_run_text(void *of, const struct store_run *x)
{
	struct runs *r = of;

	/* Its record says more. */
	if (x->state == STORE_ENDED && session_show_is_found(r, x->id))
		return 0;
	if (r->queued++ == 0)
		cli_show_text(r->show, CLI_INK_HEAD, "# queued runs");
	cli_show_text(r->show, CLI_INK_PLAIN, "%s  %s%s%s", x->id, store_run_words[x->state],
		x->error && x->error[0] ? ": " : "", x->error ? x->error : "");
	return 0;
}

static int see_run_json(void *of, const struct store_run *x)
{
	struct runs *r = of;

	json_open_map(r->json, NULL);
	print_run_json(x, r->json);
	json_close_map(r->json);
	return 0;
}

/* Who stays for its next command: text for people, or NULL. */
static const char *session_show_print_stay(
	const struct run_sessions *at, const struct store_session *s, char ret[static 64])
{
	pid_t pid = at->root < 0 ? 0 : run_stay_find(at->root, s->id);

	snprintf(ret, 64, "process %d stays for the next command", (int)pid);
	return pid ? ret : NULL;
}

static void print_stay_json(
	const struct run_sessions *at, const struct store_session *s, struct json *j)
{
	pid_t pid = at->root < 0 ? 0 : run_stay_find(at->root, s->id);

	if (pid)
		json_int(j, "stay", pid);
	else
		json_text(j, "stay", NULL);
}

static int show_session_json(struct run_sessions *at, const struct store_session *s, struct err *e)
{
	own(buf) struct buf out = { .max = MOST_SHOWN }, spec = { .max = MOST_SHOWN };
	struct json j;
	own(runs) struct runs runs = { .folder = -1, .json = &j };
	int status, r = find_runs(&runs, s->id, e);

	json_init(&j, &out, 0);
	json_open_map(&j, NULL);
	json_int(&j, "version", 1);
	session_print_json(at, s, &j);
	print_stay_json(at, s, &j);
	json_open_list(&j, "records");
	status = show_runs(&runs);
	json_close_list(&j);
	json_open_list(&j, "runs");
	if (r == 0)
		r = store_each_run(at->store, s->id, see_run_json, &runs, e);
	json_close_list(&j);
	/* Canonical JSON since it was created, but for the end of its line. */
	buf_add(&spec, s->spec, strcspn(s->spec, "\n"));
	json_raw(&j, "spec", buf_text(&spec));
	json_close_map(&j);
	buf_putc(&out, '\n');
	return r < 0 ? CLI_FAILED : cli_write(&out, status);
}

static int show_session(const struct cli *cli, struct run_sessions *at,
	const struct store_session *s, struct err *e)
{
	struct cli_show out;
	own(runs) struct runs runs = { .folder = -1, .show = &out };
	char text[CLOCK_TEXT_SIZE], ttl[NUM_TEXT_SIZE], stay[64];
	int status, r = find_runs(&runs, s->id, e);

	num_print_duration((uint64_t)s->ttl_ms, ttl);
	cli_show_open(&out, cli, true);
	cli_show_text(&out, CLI_INK_HEAD, "# session %s", s->id);
	session_show_row(&out, "name", s->name);
	session_show_row(&out, "state", session_state_word(at, s));
	session_show_row(&out, "project", s->project);
	session_show_row(&out, "created", print_second(s->created_ms, text));
	session_show_row(&out, "used", print_second(s->used_ms, text));
	session_show_row(&out, "kept for", s->ttl_ms ? ttl : "ever");
	session_show_row(&out, "worker", s->is_lease_over ? "" : s->worker);
	session_show_row(&out, "stays", session_show_print_stay(at, s, stay));
	status = show_runs(&runs);
	if (r == 0)
		r = store_each_run(at->store, s->id, see_run_text, &runs, e);
	return cli_show_close(&out, r < 0 ? CLI_FAILED : status);
}

/* --- the command --- */

static int show_named_run(const struct cli *cli, struct run_sessions *at, const char *id)
{
	own(store_run) struct store_run x = { 0 };
	struct err e = { 0 };
	int r = at->store ? store_find_run(at->store, id, &x, &e) : -ENOENT;

	if (r == 0)
		return session_show_run(cli, &x);
	if (r == -ENOENT) {
		cli_complain("cannot show run %s: it was not queued", id);
		cli_hint("bawn record show %s", id);
	} else
		cli_complain_err(&e);
	return r == -ENOENT ? CLI_NO : CLI_FAILED;
}

static int show_named_session(const struct cli *cli, struct run_sessions *at, const char *word)
{
	own(store_session) struct store_session s = { 0 };
	struct err e = { 0 };
	int status = cli_sessions_find(at, word, &s);

	if (status != CLI_OK)
		return status;
	/* First signs the records of killed keepers, as `record list` does. */
	if (at->state >= 0 && record_sign_interrupted(at->state, &e) < 0)
		cli_complain_err(&e);
	e = (struct err){ 0 };
	status = cli->is_json ? show_session_json(at, &s, &e) : show_session(cli, at, &s, &e);
	if (e.kind != ERR_NONE)
		cli_complain_err(&e);
	return status;
}

int session_show(struct cli *cli)
{
	const char *word = cli->word_count == 1 ? cli->words[0] : NULL;
	own(run_sessions) struct run_sessions at = { .state = -1, .root = -1 };
	struct err e = { 0 };

	if (!word) {
		cli_complain("cannot show: name one session or one queued run");
		cli_hint("bawn session list");
		return CLI_MISUSE;
	}
	if (run_sessions_open(&at, false, &e) < 0) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	return record_is_run(word, true) ? show_named_run(cli, &at, word)
					 : show_named_session(cli, &at, word);
}
