#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/json_fields.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/log/log.h"
#include "proof/record/record_read_values.h"
#include "proof/verify/verify_inside.h"

/* What is written down of a run after its record was signed. */
static const char *const later_types[] = { "signed", "apply", "discard" };

struct event {
	const char *type, *run;
};

/* Is it an event of this run of a type that comes after the record? */
static bool events_is_later(const struct log_line *line, const char *run, struct arena *arena)
{
	static const struct json_field fields[] = {
		{ "type", record_read_text, offsetof(struct event, type), true },
		{ "run", record_read_text, offsetof(struct event, run), true },
	};
	own(record_reader) struct record_reader r;
	struct event event = { 0 };
	struct err e;

	record_reader_begin(&r, line->text, line->size, arena);
	JSON_READ_FIELDS(&r, fields, &event);
	if (record_reader_end(&r, "the event", &e) < 0 || !str_eq(event.run, run))
		return false;
	for (size_t i = 0; i < COUNT_OF(later_types); i++)
		if (str_eq(event.type, later_types[i]))
			return true;
	return false;
}

/* Those that the record covers; false where something was said. */
static bool read_covered(
	struct log_reader *log, const struct record_read *r, struct verify_report *report)
{
	struct log_line line;
	int got = 1;

	while (log->tail.count < (uint64_t)r->log.events && got > 0)
		got = log_read_line(log, &line);
	if (got < 0)
		verify_say(report, "events", VERIFY_NO, "%s", log->failure.text);
	else if (got == 0)
		verify_say(report, "events", VERIFY_NO,
			"events.jsonl has %" PRIu64
			" whole lines, and the record tells of %" PRId64,
			log->tail.count, r->log.events);
	else if (!str_eq(log->tail.last, r->log.last))
		verify_say(report, "events", VERIFY_NO,
			"line %" PRId64 " of events.jsonl is not the last one of the record",
			r->log.events);
	else
		return true;
	return false;
}

/* Those after it; false where something was said. */
static bool read_later(struct log_reader *log, const struct record_read *r,
	struct verify_report *report, uint64_t *ret_count)
{
	struct log_line line;
	int got;

	*ret_count = 0;
	while ((got = log_read_line(log, &line)) > 0) {
		own(arena) struct arena arena;

		arena_init(&arena, 4 * LOG_LINE_SIZE);
		if (!events_is_later(&line, r->run, &arena)) {
			verify_say(report, "events", VERIFY_NO,
				"line %" PRIu64
				" of events.jsonl is none that comes after a record",
				log->tail.count);
			return false;
		}
		++*ret_count;
	}
	if (got < 0)
		verify_say(report, "events", VERIFY_NO, "%s", log->failure.text);
	return got == 0;
}

/* Is the file, as far as it was read, the subject of that name, where there is one? */
static bool is_subject(int fd, const struct log_tail *tail, const struct record_artifacts *subjects)
{
	const char *sha256 = NULL;
	uint8_t digest[SHA256_SIZE];
	char bytes[16384], hex[SHA256_HEX_SIZE];
	struct sha256 sum;
	ssize_t n = 1;

	for (size_t i = 0; i < subjects->count; i++)
		if (str_eq(subjects->items[i].name, LOG_RUN_FILE))
			sha256 = subjects->items[i].sha256;
	if (!sha256)
		return true;
	sha256_init(&sum);
	for (uint64_t at = 0; at < tail->size && n > 0; at += (uint64_t)n) {
		uint64_t left = tail->size - at;

		n = pread(fd, bytes, left < sizeof(bytes) ? left : sizeof(bytes), (off_t)at);
		if (n > 0)
			sha256_add(&sum, bytes, (size_t)n);
	}
	sha256_finish(&sum, digest);
	sha256_print(digest, hex);
	return str_eq(hex, sha256);
}

void verify_events(const struct verify_record *v, struct verify_report *report)
{
	own_fd int fd = verify_open_file(v, "events", LOG_RUN_FILE, report);
	own(log_reader) struct log_reader log = { 0 };
	uint64_t later = 0;

	if (fd < 0)
		return;
	log_reader_init(&log, fd);
	if (!read_covered(&log, &v->record, report))
		return;
	if (!is_subject(fd, &log.tail, &v->statement.subjects)) {
		verify_say(report, "events", VERIFY_NO,
			"events.jsonl is not what the record is about: its digest is another one");
		return;
	}
	if (!read_later(&log, &v->record, report, &later))
		return;
	verify_say(report, "events", VERIFY_YES, "%" PRId64 " events, as the record has them",
		v->record.log.events);
	if (later)
		verify_say(report, "events.later", VERIFY_UNASKED,
			"%" PRIu64 " more, written after the record: no signature covers them",
			later);
}
