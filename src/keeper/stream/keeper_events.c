/*
 * keeper_events - says what happens as lines of JSON, for programs that run bawn.
 *
 * Runs as:  the keeper.
 * Must not: wait for a reader for long: the run's own end matters more than who hears of it.
 */
#include <poll.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/own.h"
#include "keeper/stream/keeper_log.h"

#define MAX_LINE 4096

static void events_begin(struct json *j, struct buf *line, const char *event)
{
	json_init(j, line, 0);
	json_open_map(j, NULL);
	json_text(j, "event", event);
}

static void end_within(
	const struct keeper_request *q, struct json *j, struct buf *line, int patience_ms)
{
	struct pollfd reader = { .fd = q->status_fd, .events = POLLOUT };

	json_close_map(j);
	buf_putc(line, '\n');
	/* A line is shorter than what a pipe takes in one piece once it takes anything. */
	if (q->status_fd >= 0 && !line->failed && poll(&reader, 1, patience_ms) == 1)
		(void)file_write_all(q->status_fd, line->data, line->len);
}

static void events_end(const struct keeper_request *q, struct json *j, struct buf *line)
{
	end_within(q, j, line, KEEPER_PATIENCE_MS);
}

void keeper_say_started(const struct keeper_request *q, const struct record *record, pid_t pid)
{
	own(buf) struct buf line = { .max = MAX_LINE };
	struct json j;

	events_begin(&j, &line, "started");
	json_text(&j, "run", record->run);
	json_int(&j, "pid", pid);
	events_end(q, &j, &line);
}

void keeper_say_failed(const struct keeper_request *q, const struct err *e, int status)
{
	own(buf) struct buf line = { .max = MAX_LINE };
	struct json j;

	events_begin(&j, &line, "failed");
	json_int(&j, "status", status);
	json_text(&j, "error", e->text);
	events_end(q, &j, &line);
}

void keeper_say_ended(const struct keeper_request *q, const struct record *record, int status)
{
	own(buf) struct buf line = { .max = MAX_LINE };
	struct json j;

	events_begin(&j, &line, "exited");
	json_text(&j, "run", record->run);
	json_int(&j, "status", status);
	if (record->outcome == RECORD_SIGNALED)
		json_int(&j, "signal", record->status);
	if (record->outcome == RECORD_TIMED_OUT)
		json_bool(&j, "timed_out", true);
	if (record->again.run[0]) {
		json_open_map(&j, "again");
		record_print_again(record, &j);
		json_close_map(&j);
	}
	events_end(q, &j, &line);
}

void keeper_say_reached(
	const struct keeper_request *q, const struct record *record, enum plan_guarantee limit)
{
	own(buf) struct buf line = { .max = MAX_LINE };
	struct json j;

	events_begin(&j, &line, "limit");
	json_text(&j, "run", record->run);
	json_text(&j, "limit", plan_guarantee_defs[limit].name);
	json_int(&j, "times", (int64_t)record->reached[limit]);
	events_end(q, &j, &line);
}

/* The cage decides how many there are, so that it is their sum that has a limit. */
static void end_patiently(const struct keeper_request *q, struct json *j, struct buf *line)
{
	int patience_ms = q->patience_ms ? *q->patience_ms : 0;
	uint64_t began = clock_ns(), waited_ms;

	end_within(q, j, line, patience_ms);
	waited_ms = (clock_ns() - began) / 1000000;
	if (q->patience_ms)
		*q->patience_ms =
			waited_ms < (uint64_t)patience_ms ? patience_ms - (int)waited_ms : 0;
}

void keeper_say_decided(
	const struct keeper_request *q, const struct record *record, const struct wire_decision *d)
{
	own(buf) struct buf line = { .max = MAX_LINE };
	struct json j;

	if (q->status_fd < 0)
		return;
	events_begin(&j, &line, wire_decision_names[d->kind]);
	json_text(&j, "run", record->run);
	record_print_decision(d, &j);
	end_patiently(q, &j, &line);
}

void keeper_say_denied(
	const struct keeper_request *q, const struct record *record, const struct record_denial *d)
{
	own(buf) struct buf line = { .max = MAX_LINE };
	struct json j;

	if (q->status_fd < 0)
		return;
	events_begin(&j, &line, record_denial_type(d));
	json_text(&j, "run", record->run);
	record_print_denial(d, &j);
	end_patiently(q, &j, &line);
}
