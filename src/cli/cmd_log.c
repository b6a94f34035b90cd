/*
 * cmd_log - shows what happened in a run or in all of them, now and as it happens, and what would
 * allow what was denied.
 *
 * Runs as: the operator.
 * Reads:   events.jsonl of a run, or those of the state.
 *
 * Events are looked at twice: what is said again with a higher number is shown where it is said
 * last, and of the last ten it must be known which they are. Streams are written at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/str.h"
#include "cli/cli_kept.h"
#include "cli/cli_log.h"
#include "cli/cli_session.h"
#include "cli/commands.h"

/* --- log rows --- */

#define FIRST_ROOM 1024              /* powers of two */
#define MOST_ROOM  ((size_t)1 << 21) /* with more rows than half of that, some are shown again */

/* `last` is counted from 1: 0 is a slot that is free. */
struct cli_log_row {
	uint8_t key[SHA256_SIZE];
	uint64_t last;
};

static void cli_log_rows_done(struct cli_log_rows *r)
{
	free(r->slots);
	*r = (struct cli_log_rows){ 0 };
}

static struct cli_log_row *log_rows_find(
	const struct cli_log_rows *r, const uint8_t key[static SHA256_SIZE])
{
	uint64_t at;

	memcpy(&at, key, sizeof(at));
	for (;; at++) {
		struct cli_log_row *slot = &r->slots[at & (r->room - 1)];

		if (!slot->last || memcmp(slot->key, key, SHA256_SIZE) == 0)
			return slot;
	}
}

/* Half of the slots stay free. */
static bool log_rows_grow(struct cli_log_rows *r)
{
	struct cli_log_rows grown = { .room = r->room ? 2 * r->room : FIRST_ROOM,
		.count = r->count };

	if (2 * r->count < r->room)
		return true;
	if (grown.room > MOST_ROOM)
		return false;
	grown.slots = calloc(grown.room, sizeof(*grown.slots));
	if (!grown.slots)
		return false;
	for (size_t i = 0; i < r->room; i++)
		if (r->slots[i].last)
			*log_rows_find(&grown, r->slots[i].key) = r->slots[i];
	free(r->slots);
	*r = grown;
	return true;
}

/* Notes that the line of this number is the last of its row, so far; true: the row is new. */
static bool cli_log_rows_add(struct cli_log_rows *r, const struct log_event *x, uint64_t number)
{
	uint8_t key[SHA256_SIZE];
	struct cli_log_row *slot;
	bool is_new;

	if (!log_event_row(x, key) || !log_rows_grow(r))
		return true;
	slot = log_rows_find(r, key);
	is_new = !slot->last;
	memcpy(slot->key, key, SHA256_SIZE);
	slot->last = number;
	r->count += is_new;
	return is_new;
}

/* Is it said again, in a later line? */
static bool cli_log_rows_is_old(
	const struct cli_log_rows *r, const struct log_event *x, uint64_t number)
{
	uint8_t key[SHA256_SIZE];

	return r->count && log_event_row(x, key) && log_rows_find(r, key)->last > number;
}

/*
 * cli_log_wait - waits until more is written to a log.
 *
 * Runs as:  the operator.
 * Must not: lock what it waits for, or go on when nobody reads.
 */

#define MOMENT 200 /* ms: the end of a run is no change of a file */

/* An inotify descriptor that says when something in the folder changes; -1: none to be had. */
static int cli_log_watch(int folder)
{
	own_fd int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", folder);
	if (watch < 0 || inotify_add_watch(watch, path, IN_MODIFY | IN_CREATE | IN_MOVE) < 0)
		return -1;
	return take_fd(&watch);
}

/* Waits for a change, or a moment; false: nobody reads standard output any more. */
static bool cli_log_wait(int watch)
{
	struct pollfd fds[] = {
		{ .fd = STDOUT_FILENO, .events = 0 },
		{ .fd = watch, .events = POLLIN },
	};
	char events[4096];

	/* Without inotify a moment is all there is. */
	poll(fds, 2, MOMENT);
	while (watch >= 0 && read(watch, events, sizeof(events)) > 0)
		; /* what it was, reading tells */
	return !(fds[0].revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* Is a run going on? It has its folder locked. */
static bool cli_log_is_locked(int folder)
{
	if (flock(folder, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	flock(folder, LOCK_UN);
	return false;
}

const struct cli_option cmd_log_options[] = {
	{ "all", 'a', NULL, SPEC_KEY_COUNT, NULL,
		"show all runs, or every event of the one named" },
	{ "denials", 0, NULL, SPEC_KEY_COUNT, NULL,
		"show denials only, and what would allow them" },
	{ "type", 't', "TYPE", SPEC_KEY_COUNT, NULL,
		"show events of this type only; may be repeated" },
	{ "since", 0, "TIME", SPEC_KEY_COUNT, NULL,
		"show events since a time, or so long ago: 1h30m" },
	{ "session", 0, "SESSION", SPEC_KEY_COUNT, NULL, "show the runs of this session only" },
	{ "lines", 'n', "NUMBER", SPEC_KEY_COUNT, NULL, "show the last NUMBER only" },
	{ "follow", 'f', NULL, SPEC_KEY_COUNT, NULL, "wait for more, until the run ends" },
	{ "format", 0, "FORM", SPEC_KEY_COUNT, NULL,
		"choose text, json, jsonl, cloudevents or ocsf [text]" },
	{ 0 },
};

/* Everything that one call of the command holds. Large. */
struct look {
	struct cli_log_wish wish;
	struct cli_log_source source;
	struct cli_log_out out;
	struct cli_log_rows rows;
	struct log_event event;
	struct cli_log_seen seen;
	uint64_t total; /* of events to be shown, if it was counted */
	uint64_t limit; /* so many lines were looked at; UINT64_MAX: all that come */
	bool is_odd;    /* a line is no event */
	char whose[64];
	char session[STORE_ID_SIZE]; /* whose id --session begins or names */
	struct utsname host;
};

static void look_free(struct look **look)
{
	if (!*look)
		return;
	cli_log_source_done(&(*look)->source);
	cli_log_rows_done(&(*look)->rows);
	free(*look);
}

/* --- what there is --- */

/* An id as a whole is taken as it is: the log has sessions too that were removed. */
static int log_find_session(struct look *l)
{
	own(run_sessions) struct run_sessions at = { .state = -1, .root = -1 };
	own(store_session) struct store_session s = { 0 };
	struct err e = { 0 };
	int status;

	if (!l->wish.session || session_is_id(l->wish.session, true))
		return CLI_OK;
	if (run_sessions_open(&at, false, &e) < 0) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	status = cli_sessions_find(&at, l->wish.session, &s);
	snprintf(l->session, sizeof(l->session), "%s", s.id);
	l->wish.session = l->session;
	return status;
}

static int open_state(struct look *l)
{
	struct err e = { 0 };
	own_fd int state = record_open_state(run_home(), false, &e);
	int folder =
		state < 0 ? state : file_open_name(state, LOG_STATE_DIR, O_RDONLY | O_DIRECTORY);

	if (state < 0 && state != -ENOENT) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	if (folder < 0 && folder != -ENOENT) {
		cli_complain("cannot open the log of all runs: %s", strerror(-folder));
		return CLI_FAILED;
	}
	if (folder < 0 && !l->out.cli->is_quiet)
		cli_complain("there is no log yet");
	snprintf(l->whose, sizeof(l->whose), "all runs");
	cli_log_source_init(&l->source, folder < 0 ? -1 : folder, true, l->whose);
	return CLI_OK;
}

static int open_run(struct look *l, const char *word)
{
	int folder, status = cli_open_run(l->out.cli, word, l->out.id, &folder);

	if (status == CLI_NO && word && !record_is_run(word, false))
		cli_hint("of a session: bawn log --session SESSION");
	snprintf(l->whose, sizeof(l->whose), "run %s", l->out.id);
	cli_log_source_init(&l->source, folder, false, l->whose);
	if (folder >= 0)
		l->out.is_going_on = cli_log_is_locked(folder);
	return status;
}

/* A run, all of them, or what all of them have about one. */
static int log_open_source(struct look *l)
{
	const struct cli *cli = l->out.cli;
	const char *word = cli->word_count ? cli->words[0] : NULL;
	int status;

	if (!cli_value(cli, CLI_OPT_ALL) && (word || !l->wish.session))
		return open_run(l, word);
	if (word && !record_is_run(word, true)) {
		status = open_run(l, word);
		if (status != CLI_OK || l->source.folder < 0)
			return status;
		cli_log_source_done(&l->source);
		l->out.is_going_on = false;
		word = l->out.id;
	}
	if (word) {
		snprintf(l->out.id, sizeof(l->out.id), "%s", word);
		l->wish.run = l->out.id;
	}
	return open_state(l);
}

/* --- what is shown --- */

/* How it ended, as far as the events say. */
static void note_outcome(struct look *l)
{
	const struct log_event *x = &l->event;

	if (str_eq(x->type, "run_end"))
		snprintf(l->out.outcome, sizeof(l->out.outcome), "%s", log_find_text(x, "outcome"));
	else if (str_eq(x->type, "refused") || str_eq(x->type, "interrupted"))
		snprintf(l->out.outcome, sizeof(l->out.outcome), "%s", x->type);
}

/* Is the line an event, and wished for? */
static bool is_wished(struct look *l, const struct log_line *line, bool *ret_is_odd)
{
	struct err e = { 0 };

	*ret_is_odd = log_event_read(&l->event, line->text, line->size, &e) < 0;
	if (!*ret_is_odd)
		return cli_log_is_wished(&l->wish, &l->event);
	if (!l->is_odd)
		cli_complain_about(&e, "line %llu of the log of %s cannot be used: %s",
			(unsigned long long)l->source.count - 1, l->whose, e.text);
	l->is_odd = true;
	return false;
}

/* Counts what there is, and what of it is said again. */
static int log_look_ahead(struct look *l)
{
	bool collapses = !cli_log_is_stream(&l->out) && !l->wish.is_followed;
	struct log_line line;
	bool is_odd;
	int r;

	while ((r = cli_log_next(&l->source, &line)) > 0) {
		bool is_one = is_wished(l, &line, &is_odd);

		if (!is_odd) {
			note_outcome(l);
			cli_log_note_seen(&l->seen, &l->event);
		}
		if (is_one && collapses)
			is_one = cli_log_rows_add(&l->rows, &l->event, l->source.count);
		l->total += is_one;
	}
	l->limit = l->wish.is_followed ? UINT64_MAX : l->source.count;
	cli_log_rewind(&l->source);
	l->source.is_silent = true;
	return r;
}

/* Shows what there is until now; `seen` counts what could be shown. */
static int log_show_lines(struct look *l, uint64_t *seen)
{
	uint64_t most = l->wish.has_most ? (uint64_t)l->wish.most : UINT64_MAX;
	uint64_t first = l->total > most ? l->total - most : 0;
	struct log_line line;
	bool is_odd;
	int r = 0;

	while (!cli_show_is_over(&l->out.show) && l->source.count < l->limit &&
		(r = cli_log_next(&l->source, &line)) > 0) {
		if (!is_wished(l, &line, &is_odd)) {
			if (is_odd)
				cli_log_show_line(&l->out, &line);
			continue;
		}
		if (cli_log_rows_is_old(&l->rows, &l->event, l->source.count))
			continue;
		if ((*seen)++ >= first)
			cli_log_show(&l->out, &l->event);
	}
	return r < 0 ? r : 0;
}

static int log_follow(struct look *l, uint64_t *seen)
{
	own_fd int watch = cli_log_watch(l->source.folder);
	bool is_run = !l->source.is_state;
	int r = 0;

	/* What was written before it ended is read after it was seen to have ended. */
	for (bool goes_on = true; goes_on && r == 0;) {
		goes_on = !is_run || cli_log_is_locked(l->source.folder);
		l->source.is_growing = goes_on;
		l->source.is_silent = false;
		r = log_show_lines(l, seen);
		cli_show_flush(&l->out.show);
		if (cli_show_is_over(&l->out.show))
			break;
		if (goes_on && r == 0 && !cli_log_wait(watch))
			break;
	}
	return r;
}

/* --- the command --- */

static void say_state(const struct look *l)
{
	const struct cli_log_out *out = &l->out;

	if (out->cli->is_quiet || l->source.folder < 0 || l->wish.is_followed)
		return;
	if (out->is_going_on)
		cli_complain("run %s is still going on: this is what happened until now; "
			     "--follow shows what follows",
			out->id);
	else if (!l->source.is_state && l->limit && !out->outcome[0])
		cli_complain(
			"run %s was interrupted: what happened behind this is not known", out->id);
}

/* A run begins by writing it. */
static bool log_is_missing(const struct look *l)
{
	return l->source.folder >= 0 && !l->source.is_state && !l->source.is_there &&
	       !l->out.is_going_on;
}

static void say_empty(const struct look *l)
{
	const struct cli_log_out *out = &l->out;

	if (log_is_missing(l))
		cli_complain("%s has no log: its %s is not there", l->whose, LOG_RUN_FILE);
	else if (out->cli->is_quiet || l->source.folder < 0 || cli_log_is_object(out))
		return;
	else if (!out->count)
		cli_complain(l->wish.is_denials ? "the log of %s has no denial"
						: "nothing of the kind is in the log of %s",
			l->whose);
	if (l->wish.is_denials && !l->wish.is_followed && !log_is_missing(l) &&
		!cli_log_is_stream(out))
		cli_log_say_seen(&l->seen);
}

static bool log_is_whole(const struct look *l)
{
	return !l->source.is_broken && !l->is_odd && !log_is_missing(l);
}

static int log_show(struct look *l)
{
	bool is_blind = cli_log_is_stream(&l->out) && !l->wish.has_most;
	uint64_t seen = 0;
	int r = 0;

	l->limit = UINT64_MAX;
	l->source.is_growing = l->out.is_going_on;
	if (l->source.folder >= 0 && !is_blind)
		r = log_look_ahead(l);
	if (r < 0)
		return CLI_FAILED;
	if (!is_blind)
		say_state(l);
	/* Where nothing is to be shown there is no need for a heading. */
	if (!l->total && !is_blind && !l->wish.is_followed && !cli_log_is_object(&l->out) &&
		!l->is_odd) {
		say_empty(l);
		return log_is_whole(l) ? CLI_OK : CLI_NO;
	}
	cli_log_begin(&l->out, !l->wish.is_followed);
	if (l->wish.is_followed && l->source.folder >= 0)
		r = log_follow(l, &seen);
	else
		r = log_show_lines(l, &seen);
	r = cli_log_end(&l->out, &l->source, r < 0 ? CLI_FAILED : CLI_OK);
	say_empty(l);
	return r == CLI_OK && !log_is_whole(l) ? CLI_NO : r;
}

static int check_use(const struct look *l)
{
	const struct cli *cli = l->out.cli;

	if (cli->word_count > 1)
		cli_complain("log shows one run, and takes no '%s'", cli->words[1]);
	else if (l->wish.is_followed && cli_log_is_object(&l->out)) {
		cli_complain("--json cannot be combined with --follow");
		cli_hint("--format jsonl prints an object a line");
	} else
		return CLI_OK;
	return CLI_MISUSE;
}

int cmd_log(struct cli *cli)
{
	__attribute__((cleanup(look_free))) struct look *l = calloc(1, sizeof(*l));
	int status;

	if (!l) {
		cli_complain("not enough memory for the log");
		return CLI_FAILED;
	}
	cli_log_source_init(&l->source, -1, false, l->whose);
	l->out.cli = cli;
	status = cli_log_read_wish(cli, &l->wish);
	if (status == CLI_OK)
		status = cli_log_choose_form(cli, &l->out);
	if (status == CLI_OK)
		status = check_use(l);
	if (status == CLI_OK)
		status = log_find_session(l);
	if (status == CLI_OK)
		status = log_open_source(l);
	if (status != CLI_OK)
		return status;
	if (l->source.is_state && l->wish.is_followed && !l->wish.has_most) {
		l->wish.has_most = true;
		l->wish.most = 10;
	}
	l->out.is_denials = l->wish.is_denials;
	l->out.folds = !l->wish.type_count;
	uname(&l->host);
	l->out.from = (struct log_origin){ l->host.nodename, BAWN_VERSION,
		l->source.is_state ? LOG_STATE_DIR : l->out.id };
	return log_show(l);
}
