/* What the event `inspected` says of guarantees: how many hold, and which do not. Pure. */
#include "base/json_read.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/log/log_event.h"

static void count_list(struct json_reader *r, struct log_guarantees *ret)
{
	json_enter_list(r);
	while (json_next_item(r)) {
		json_skip(r);
		ret->holding++;
	}
}

static void count_missing(struct json_reader *r, bool is_must, struct log_guarantees *ret)
{
	const char *name;

	json_enter_map(r);
	while (json_next_key(r, &name)) {
		buf_printf(&ret->names, "%s%s", ret->missing++ ? ", " : "", name);
		ret->must_missing += is_must;
		json_skip(r);
	}
}

static void count_group(struct json_reader *r, bool is_must, struct log_guarantees *ret)
{
	const char *key;

	json_enter_map(r);
	while (json_next_key(r, &key))
		if (str_eq(key, "missing"))
			count_missing(r, is_must, ret);
		else
			count_list(r, ret);
}

bool log_count_guarantees(const struct log_event *x, struct log_guarantees *ret)
{
	const struct log_member *m = log_find(x, "guarantees");
	struct json_reader r;
	const char *key;
	bool is_read;

	*ret = (struct log_guarantees){ .names.max = LOG_LINE_SIZE };
	if (!m || m->kind != LOG_OTHER)
		return false;
	json_read_init(&r, m->bytes, m->size, LOG_LINE_SIZE);
	json_enter_map(&r);
	while (json_next_key(&r, &key))
		if (str_eq(key, "must") || str_eq(key, "may"))
			count_group(&r, str_eq(key, "must"), ret);
		else
			json_skip(&r);
	is_read = !r.wrong && !ret->names.failed;
	json_reader_done(&r);
	return is_read;
}

void log_guarantees_done(struct log_guarantees *x)
{
	buf_done(&x->names);
}
