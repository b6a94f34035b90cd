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
#include <sys/inotify.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli_log.h"
#include "cli/cli_result.h"
#include "cli/cli_session.h"
#include "cli/commands.h"
#include "run/run_prune.h"

/* --- waiting for more --- */

#define MOMENT 200 /* ms: the end of a run is no change of a file */

/* An inotify descriptor that says when something in the folder changes; -1: none to be had. */
static int log_watch(int folder)
{
	own_fd int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", folder);
	if (watch < 0 || inotify_add_watch(watch, path, IN_MODIFY | IN_CREATE | IN_MOVE) < 0)
		return -1;
	return take_fd(&watch);
}

/* Waits for a change, or a moment; false: nobody reads standard output any more. */
static bool log_wait(int watch)
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

const struct cli_option cmd_log_options[] = {
	CLI_OWN("all", 'a', NULL, "show all runs, or every event of the one named"),
	CLI_OWN("denials", 0, NULL, "show denials only, and what would allow them"),
	CLI_OWN("type", 't', "TYPE", "show events of this type only; may be repeated"),
	CLI_OWN("since", 0, "TIME", "show events since a time, or so long ago: 1h30m"),
	CLI_OWN("session", 0, "SESSION", "show the runs of this session only"),
	CLI_OWN("lines", 'n', "NUMBER", "show the last NUMBER only"),
	CLI_OWN("follow", 'f', NULL, "wait for more, until the run ends"),
	CLI_OWN("format", 0, "FORM", "choose text, json, jsonl, cloudevents or ocsf [text]"),
	{ 0 },
};

/* --- what is wished for --- */

struct log_wish {
	struct log_filter filter;
	bool has_most;
	int64_t most; /* the last so many */
	bool is_followed;
};

static int add_type(struct log_wish *w, const char *type)
{
	const char *names[LOG_MOST_TYPES], *near;
	size_t n = 0;

	for (const char *name; n < LOG_MOST_TYPES && (name = log_type_name(n)); n++) {
		names[n] = name;
		if (!str_eq(name, type))
			continue;
		if (w->filter.type_count < LOG_MOST_TYPES)
			w->filter.types[w->filter.type_count++] = name;
		return CLI_OK;
	}
	near = str_nearest(type, names, n);
	if (near)
		cli_complain("there is no type '%s' of events; did you mean %s?", type, near);
	else
		cli_complain("there is no type '%s' of events; bawn(1) lists them", type);
	return CLI_MISUSE;
}

/* Reads a time as in events, or shorter: a blank may replace the T, and missing parts are zero. */
static bool log_wish_read_time(const char *text, struct timespec *ret)
{
	static const char *const ends[] = { "", "Z", ":00Z", "T00:00:00Z" };
	char whole[CLOCK_TEXT_SIZE];

	for (size_t i = 0; i < COUNT_OF(ends); i++) {
		if (snprintf(whole, sizeof(whole), "%s%s", text, ends[i]) >= (int)sizeof(whole))
			return false;
		if (strlen(whole) > 10 && whole[10] == ' ')
			whole[10] = 'T';
		if (clock_parse(whole, ret) == 0)
			return true;
	}
	return false;
}

/* A moment, or how long ago it was. */
static int read_since(struct log_wish *w, const char *text)
{
	uint64_t ms;

	w->filter.has_since = true;
	if (log_wish_read_time(text, &w->filter.since))
		return CLI_OK;
	if (num_parse_duration(text, &ms, NULL) < 0) {
		cli_complain(
			"--since takes a time, such as 2026-11-15T22:45, or how long ago, such "
			"as 1h30m; not '%s'",
			text);
		return CLI_MISUSE;
	}
	clock_gettime(CLOCK_REALTIME, &w->filter.since);
	w->filter.since.tv_sec -= (time_t)((ms + 999) / 1000);
	return CLI_OK;
}

static int read_most(struct log_wish *w, const char *text)
{
	w->has_most = true;
	if (num_parse_int(text, 0, INT64_MAX, &w->most, NULL) == 0)
		return CLI_OK;
	cli_complain("--lines takes a number, not '%s'", text);
	return CLI_MISUSE;
}

static int read_wish(const struct cli *cli, struct log_wish *ret)
{
	const char *since = cli_value(cli, CLI_OPT_SINCE), *most = cli_value(cli, CLI_OPT_LINES);
	int status = CLI_OK;

	*ret = (struct log_wish){
		.filter.session = cli_value(cli, CLI_OPT_SESSION),
		.filter.is_denials = cli_value(cli, CLI_OPT_DENIALS) != NULL,
		.is_followed = cli_value(cli, CLI_OPT_FOLLOW) != NULL,
	};
	for (size_t i = 0; i < cli->given_count && status == CLI_OK; i++)
		if (cli_is(&cli->given[i], CLI_OPT_TYPE))
			status = add_type(ret, cli->given[i].value);
	if (status == CLI_OK && since)
		status = read_since(ret, since);
	if (status == CLI_OK && most)
		status = read_most(ret, most);
	return status;
}

/* Everything that one call of the command holds. Large. */
struct look {
	struct log_wish wish;
	struct log_source source;
	struct cli_log_out out;
	struct log_rows rows;
	struct log_event event;
	struct result_seen seen;
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
	log_source_done(&(*look)->source);
	log_rows_done(&(*look)->rows);
	free(*look);
}

/* Prints a warning about the log as soon as it is found. */
static void say_notice(void *of, const char *text, const char *hint)
{
	(void)of;
	cli_complain("%s", text);
	if (hint[0])
		cli_hint("%s", hint);
}

static bool is_pruned(void *of, const struct log_line *first)
{
	struct err e = { 0 };
	own_fd int state = record_open_state(run_home(), false, &e);

	(void)of;
	return state >= 0 && run_check_log_start(state, first, &e) == 0;
}

/* The next line: 1, 0 where there is none yet, -errno after it was said why. */
static int next_line(struct look *l, struct log_line *ret)
{
	int r = log_source_next(&l->source, ret);

	if (r < 0)
		cli_complain_err(&l->source.failure);
	return r;
}

static void say_seen(const struct look *l)
{
	own(buf) struct buf seen = { .max = 1024 }, unseen = { .max = 2048 };

	result_seen_print(&l->seen, &seen, &unseen);
	if (seen.len)
		cli_complain("%s", buf_text(&seen));
	cli_complain("%s", buf_text(&unseen));
}

/* --- what there is --- */

/* An id as a whole is taken as it is: the log has sessions too that were removed. */
static int log_find_session(struct look *l)
{
	own(run_sessions) struct run_sessions at = { .state = -1, .root = -1 };
	own(store_session) struct store_session s = { 0 };
	struct err e = { 0 };
	int status;

	if (!l->wish.filter.session || session_is_id(l->wish.filter.session, true))
		return CLI_OK;
	if (run_sessions_open(&at, false, &e) < 0) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	status = cli_sessions_find(&at, l->wish.filter.session, &s);
	snprintf(l->session, sizeof(l->session), "%s", s.id);
	l->wish.filter.session = l->session;
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
	log_source_init(&l->source, folder < 0 ? -1 : folder, true, l->whose);
	return CLI_OK;
}

static int open_run(struct look *l, const char *word)
{
	int folder, status = cli_open_run(l->out.cli, word, l->out.id, &folder);

	if (status == CLI_NO && word && !record_is_run(word, false))
		cli_hint("of a session: bawn log --session SESSION");
	snprintf(l->whose, sizeof(l->whose), "run %s", l->out.id);
	log_source_init(&l->source, folder, false, l->whose);
	if (folder >= 0)
		l->out.is_going_on = result_is_going_on(folder);
	return status;
}

/* A run, all of them, or what all of them have about one. */
static int log_open_source(struct look *l)
{
	const struct cli *cli = l->out.cli;
	const char *word = cli->word_count ? cli->words[0] : NULL;
	int status;

	if (!cli_value(cli, CLI_OPT_ALL) && (word || !l->wish.filter.session))
		return open_run(l, word);
	if (word && !record_is_run(word, true)) {
		status = open_run(l, word);
		if (status != CLI_OK || l->source.folder < 0)
			return status;
		log_source_done(&l->source);
		l->out.is_going_on = false;
		word = l->out.id;
	}
	if (word) {
		snprintf(l->out.id, sizeof(l->out.id), "%s", word);
		l->wish.filter.run = l->out.id;
	}
	return open_state(l);
}

/* --- what is shown --- */

/* Notes how the run ended, if the event says so. */
static void note_outcome(struct look *l)
{
	const struct log_event *x = &l->event;

	if (str_eq(x->type, "run_end"))
		snprintf(l->out.outcome, sizeof(l->out.outcome), "%s", log_find_text(x, "outcome"));
	else if (str_eq(x->type, "refused") || str_eq(x->type, "interrupted"))
		snprintf(l->out.outcome, sizeof(l->out.outcome), "%s", x->type);
}

/* True if the line is an event that the filter takes. */
static bool is_wished(struct look *l, const struct log_line *line, bool *ret_is_odd)
{
	struct err e = { 0 };

	*ret_is_odd = log_event_read(&l->event, line->text, line->size, &e) < 0;
	if (!*ret_is_odd)
		return log_filter_takes(&l->wish.filter, &l->event);
	if (!l->is_odd)
		cli_complain_about(&e, "line %llu of the log of %s cannot be used: %s",
			(unsigned long long)l->source.count - 1, l->whose, e.text);
	l->is_odd = true;
	return false;
}

/* Counts what there is, and what of it is said again. */
static int log_look_ahead(struct look *l)
{
	bool collapses = !l->out.form->is_stream && !l->wish.is_followed;
	struct log_line line;
	bool is_odd;
	int r;

	while ((r = next_line(l, &line)) > 0) {
		bool is_one = is_wished(l, &line, &is_odd);

		if (!is_odd) {
			note_outcome(l);
			result_seen_note(&l->seen, &l->event);
		}
		if (is_one && collapses)
			is_one = log_rows_add(&l->rows, &l->event, l->source.count);
		l->total += is_one;
	}
	l->limit = l->wish.is_followed ? UINT64_MAX : l->source.count;
	log_source_rewind(&l->source);
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
		(r = next_line(l, &line)) > 0) {
		if (!is_wished(l, &line, &is_odd)) {
			if (is_odd)
				cli_log_show_line(&l->out, &line);
			continue;
		}
		if (log_rows_is_old(&l->rows, &l->event, l->source.count))
			continue;
		if ((*seen)++ >= first)
			cli_log_show(&l->out, &l->event);
	}
	return r < 0 ? r : 0;
}

static int log_follow(struct look *l, uint64_t *seen)
{
	own_fd int watch = log_watch(l->source.folder);
	bool is_run = !l->source.is_state;
	int r = 0;

	/* After the end is seen, one more round reads what was written before it. */
	for (bool goes_on = true; goes_on && r == 0;) {
		goes_on = !is_run || result_is_going_on(l->source.folder);
		l->source.is_growing = goes_on;
		l->source.is_silent = false;
		r = log_show_lines(l, seen);
		cli_show_flush(&l->out.show);
		if (cli_show_is_over(&l->out.show))
			break;
		if (goes_on && r == 0 && !log_wait(watch))
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
			"run %s was interrupted: what happened after this is not known", out->id);
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
	else if (out->cli->is_quiet || l->source.folder < 0 || out->form->is_object)
		return;
	else if (!out->count)
		cli_complain(l->wish.filter.is_denials ? "the log of %s has no denial"
						       : "nothing of the kind is in the log of %s",
			l->whose);
	if (l->wish.filter.is_denials && !l->wish.is_followed && !log_is_missing(l) &&
		!out->form->is_stream)
		say_seen(l);
}

static bool log_is_whole(const struct look *l)
{
	return !l->source.is_broken && !l->is_odd && !log_is_missing(l);
}

static int log_show(struct look *l)
{
	bool is_blind = l->out.form->is_stream && !l->wish.has_most;
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
	if (!l->total && !is_blind && !l->wish.is_followed && !l->out.form->is_object &&
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
	else if (l->wish.is_followed && l->out.form->is_object) {
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
	l->source.notice = say_notice;
	l->source.is_pruned = is_pruned;
	log_source_init(&l->source, -1, false, l->whose);
	l->out.cli = cli;
	status = read_wish(cli, &l->wish);
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
	l->out.is_denials = l->wish.filter.is_denials;
	l->out.folds = !l->wish.filter.type_count;
	uname(&l->host);
	l->out.from = (struct log_origin){ l->host.nodename, BAWN_VERSION,
		l->source.is_state ? LOG_STATE_DIR : l->out.id };
	return log_show(l);
}
