/*
 * cli_session_list - which sessions there are.
 *
 * Runs as: the operator.
 * Reads:   the store, and whether the folders are there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/own.h"
#include "cli/cli_session.h"
#include "cli/cli_show.h"

#define MOST_LIST ((size_t)256 << 20)

const char *session_state_word(const struct run_sessions *x, const struct store_session *s)
{
	own_fd int workspace = -1;

	if (s->state == STORE_REMOVING)
		return store_session_words[s->state];
	if (!run_sessions_is_here(x, s))
		return "elsewhere";
	workspace = session_open_present(x->root, s, NULL);
	if (workspace == -ENOENT)
		return "no folder";
	if (workspace < 0)
		return "unusable";
	return s->is_expired ? "expired" : store_session_words[s->state];
}

static void session_list_print_time(struct json *j, const char *key, int64_t ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	char text[CLOCK_TEXT_SIZE];

	clock_print(&t, text);
	json_text(j, key, ms ? text : NULL);
}

void session_print_json(const struct run_sessions *x, const struct store_session *s, struct json *j)
{
	json_text(j, "session", s->id);
	json_text(j, "name", s->name[0] ? s->name : NULL);
	json_text(j, "state", session_state_word(x, s));
	json_text(j, "project", s->project);
	session_list_print_time(j, "created", s->created_ms);
	session_list_print_time(j, "used", s->used_ms);
	session_list_print_time(j, "expires", s->ttl_ms ? s->used_ms + s->ttl_ms : 0);
	json_text(j, "worker", s->worker[0] && !s->is_lease_over ? s->worker : NULL);
	json_text(j, "place", s->place);
	json_int(j, "queued", (int64_t)s->queued);
	json_int(j, "running", (int64_t)s->running);
}

struct listing {
	const struct cli *cli;
	struct run_sessions at;
	struct cli_show show;
	struct buf out; /* JSON */
	struct json json;
	int64_t now_ms;
	size_t count;
};

/* Adds the time that is left until an unused session expires. */
static void print_left(
	const struct listing *l, const struct store_session *s, char ret[static NUM_TEXT_SIZE])
{
	int64_t left_s = (s->used_ms + s->ttl_ms - l->now_ms) / 1000;

	if (!s->ttl_ms)
		snprintf(ret, NUM_TEXT_SIZE, "-");
	else
		num_print_duration(left_s > 0 ? (uint64_t)left_s * 1000 : 0, ret);
}

#define ROW_FORM "%-*.*s  %-16s  %-9s  %-8s  %s"
#define SHORT_ID 12 /* digits on a terminal: the beginning names a session too */

static void session_list_show_row(struct listing *l, enum cli_ink ink, const char *id,
	const char *name, const char *state, const char *left, const char *project)
{
	own(buf) struct buf line = { .max = (size_t)64 << 10 },
			    visible = { .max = (size_t)256 << 10 };
	int width = l->show.for_person ? SHORT_ID : STORE_ID_SIZE - 1;

	buf_printf(&line, ROW_FORM, width, width, id, name, state, left, project);
	buf_add_visible(&visible, buf_text(&line), line.len);
	cli_show_cut(&l->show, ink, buf_text(&visible));
}

static int session_list_see_text(void *of, const struct store_session *s)
{
	struct listing *l = of;
	char left[NUM_TEXT_SIZE];

	if (!l->count++ && l->show.for_person)
		session_list_show_row(
			l, CLI_INK_HEAD, "session", "name", "state", "kept for", "project");
	print_left(l, s, left);
	session_list_show_row(l, CLI_INK_PLAIN, s->id, s->name[0] ? s->name : "-",
		session_state_word(&l->at, s), left, s->project);
	return 0;
}

static int see_json(void *of, const struct store_session *s)
{
	struct listing *l = of;

	json_open_map(&l->json, NULL);
	session_print_json(&l->at, s, &l->json);
	json_close_map(&l->json);
	return 0;
}

static int do_session_list(struct listing *l, struct err *e)
{
	bool is_json = l->cli->is_json;
	int r = run_sessions_open(&l->at, false, e);

	if (r == 0 && l->at.store)
		r = store_now(l->at.store, &l->now_ms, e);
	json_init(&l->json, &l->out, 0);
	if (is_json) {
		json_open_map(&l->json, NULL);
		json_int(&l->json, "version", 1);
		json_open_list(&l->json, "sessions");
	} else
		cli_show_open(&l->show, l->cli, true);
	if (r == 0 && l->at.store)
		r = store_each_session(
			l->at.store, is_json ? see_json : session_list_see_text, l, e);
	if (is_json) {
		json_close_list(&l->json);
		json_close_map(&l->json);
		buf_putc(&l->out, '\n');
	}
	return r;
}

int session_list(struct cli *cli)
{
	struct listing l = { .cli = cli, .out.max = MOST_LIST };
	struct err e = { 0 };
	int r = do_session_list(&l, &e), status = r < 0 ? CLI_FAILED : CLI_OK;

	if (!cli->is_json)
		status = cli_show_close(&l.show, status);
	else if (r == 0)
		status = cli_write(&l.out, status);
	if (r < 0)
		cli_complain_err(&e);
	else if (!cli->is_json && !cli->is_quiet && !l.count)
		cli_complain("there is no session");
	run_sessions_done(&l.at);
	buf_done(&l.out);
	return status;
}

int cli_sessions_find(struct run_sessions *x, const char *word, struct store_session *ret)
{
	struct err e = { 0 };
	int r = run_sessions_look_up(x, word, ret, &e);

	if (r == 1)
		return CLI_OK;
	if (r == 0)
		err_hint(&e, err_set(&e, ERR_USE, ENOENT, "cannot find session '%s'", word),
			"bawn session list");
	cli_complain_err(&e);
	return r == 0 || r == -ENOTUNIQ ? CLI_NO : CLI_FAILED;
}
