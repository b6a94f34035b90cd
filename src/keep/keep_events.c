/*
 * keep_events - says what happens as lines of JSON, for programs that run bawn.
 *
 * Runs as:  the keeper.
 * Must not: wait for a reader for long: the run's own end matters more than who hears of it.
 */
#include <poll.h>

#include "base/file.h"
#include "base/json.h"
#include "base/own.h"
#include "keep/keep_inside.h"

#define MAX_LINE    4096
#define PATIENCE_MS 1000

static void begin(struct json *j, struct buf *line, const char *event)
{
	json_init(j, line, 0);
	json_open_map(j, NULL);
	json_text(j, "event", event);
}

static void end(const struct keep_request *q, struct json *j, struct buf *line)
{
	struct pollfd reader = { .fd = q->status_fd, .events = POLLOUT };

	json_close_map(j);
	buf_putc(line, '\n');
	/* A line is shorter than what a pipe takes in one piece once it takes anything. */
	if (q->status_fd >= 0 && !line->failed && poll(&reader, 1, PATIENCE_MS) == 1)
		(void)file_write_all(q->status_fd, line->data, line->len);
}

void keep_say_started(const struct keep_request *q, const struct record *record, pid_t pid)
{
	own(buf) struct buf line = { .max = MAX_LINE };
	struct json j;

	begin(&j, &line, "started");
	json_text(&j, "run", record->run);
	json_int(&j, "pid", pid);
	end(q, &j, &line);
}

void keep_say_failed(const struct keep_request *q, const struct err *e, int status)
{
	own(buf) struct buf line = { .max = MAX_LINE };
	struct json j;

	begin(&j, &line, "failed");
	json_int(&j, "status", status);
	json_text(&j, "error", e->text);
	end(q, &j, &line);
}

void keep_say_ended(const struct keep_request *q, const struct record *record, int status)
{
	own(buf) struct buf line = { .max = MAX_LINE };
	struct json j;

	begin(&j, &line, "exited");
	json_text(&j, "run", record->run);
	json_int(&j, "status", status);
	if (record->outcome == RECORD_SIGNALED)
		json_int(&j, "signal", record->status);
	if (record->outcome == RECORD_TIMED_OUT)
		json_bool(&j, "timed_out", true);
	end(q, &j, &line);
}

void keep_say_reached(
	const struct keep_request *q, const struct record *record, enum plan_guarantee limit)
{
	own(buf) struct buf line = { .max = MAX_LINE };
	struct json j;

	begin(&j, &line, "limit");
	json_text(&j, "run", record->run);
	json_text(&j, "limit", plan_guarantee_defs[limit].name);
	json_int(&j, "times", (int64_t)record->reached[limit]);
	end(q, &j, &line);
}
