#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/json_read.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli_log.h"

struct reader {
	struct json_reader json;
	struct cli_log *log;
};

static const struct {
	const char *key;
	size_t at;
	int64_t most; /* of a number; 0: it is a text */
} fields[] = {
	{ "type", offsetof(struct cli_event, type) },
	{ "name", offsetof(struct cli_event, name) },
	{ "reason", offsetof(struct cli_event, reason) },
	{ "address", offsetof(struct cli_event, other) },
	{ "other", offsetof(struct cli_event, other) },
	{ "text", offsetof(struct cli_event, text) },
	{ "port", offsetof(struct cli_event, port), UINT16_MAX },
	{ "times", offsetof(struct cli_event, times), INT64_MAX },
	{ "bytes_out", offsetof(struct cli_event, bytes_out), INT64_MAX },
	{ "bytes_in", offsetof(struct cli_event, bytes_in), INT64_MAX },
};

static bool read_text(struct reader *r, const char **ret)
{
	const char *text;

	if (!json_read_text(&r->json, &text))
		return false;
	*ret = arena_copy(&r->log->arena, text, strlen(text));
	return *ret ? true : json_wrong(&r->json, "less text");
}

static bool read_field(struct reader *r, const char *key, struct cli_event *event)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		void *into = (char *)event + fields[i].at;
		int64_t n;

		if (!str_eq(fields[i].key, key))
			continue;
		if (!fields[i].most)
			return read_text(r, into);
		if (!json_read_int(&r->json, &n))
			return false;
		if (n < 0 || n > fields[i].most)
			return json_wrong(&r->json, "a number that can be");
		memcpy(into, &n, sizeof(n));
		return true;
	}
	return json_skip(&r->json);
}

static struct cli_event *add_event(struct cli_log *log)
{
	if (log->count == log->room) {
		size_t room = log->room ? 2 * log->room : 64;
		struct cli_event *grown = arena_array(&log->arena, room, sizeof(*grown));

		if (!grown)
			return NULL;
		if (log->count)
			memcpy(grown, log->events, log->count * sizeof(*grown));
		log->events = grown;
		log->room = room;
	}
	log->events[log->count] =
		(struct cli_event){ .type = "", .name = "", .reason = "", .other = "", .text = "" };
	return &log->events[log->count++];
}

static bool read_events(struct reader *r)
{
	if (!json_enter_list(&r->json))
		return false;
	while (json_next_item(&r->json)) {
		struct cli_event *event = add_event(r->log);
		const char *key;

		if (!event)
			return json_wrong(&r->json, "fewer events");
		if (!json_enter_map(&r->json))
			return false;
		event->bytes = r->json.at - 1; /* its bracket */
		while (json_next_key(&r->json, &key))
			if (!read_field(r, key, event))
				return false;
		event->size = (size_t)(r->json.at - event->bytes);
		if (!event->type[0])
			return json_wrong(&r->json, "a type");
	}
	return !r->json.wrong;
}

int cli_log_read(const char *bytes, size_t n, struct cli_log *log, struct err *e)
{
	struct reader r = { .log = log };
	bool has_events = false, is_good;
	const char *key;
	int ret = 0;

	json_read_init(&r.json, bytes, n, RECORD_MAX_SIZE);
	/* A path in a sentence may be any bytes. */
	r.json.takes_bytes = true;
	is_good = json_enter_map(&r.json);
	while (is_good && json_next_key(&r.json, &key)) {
		if (str_eq(key, "outcome"))
			is_good = read_text(&r, &log->outcome);
		else if (str_eq(key, "events") && !has_events)
			is_good = has_events = read_events(&r);
		else
			is_good = json_skip(&r.json);
	}
	if (json_read_end(&r.json) && !(has_events && log->outcome[0]))
		json_wrong(&r.json, has_events ? "an outcome" : "events");
	if (r.json.wrong)
		ret = err_set(e, ERR_SYS, EBADMSG, "it is not a record: expected %s", r.json.wrong);
	json_reader_done(&r.json);
	return ret;
}
