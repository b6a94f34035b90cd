/*
 * log_ocsf - events in the words of the Open Cybersecurity Schema Framework, release 1.8.0. Pure.
 *
 * A row of the table says what class of event a type is; the function of that class writes the
 * attributes which only it has, and takes the members it wrote. Whatever nobody took is under
 * `unmapped`, so that nothing is lost, and no attribute is made up.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/log/log_event.h"
#include "proof/log/log_ocsf.h"

#define SCHEMA_VERSION "1.8.0"

static const struct log_ocsf_row rows[] = {
	/* type, class, activity; severity, status, action, disposition; print */
	{ "run_start", 1007, 1, 1, 1, 1, 1, log_ocsf_print_process },
	{ "refused", 1007, 1, 3, 2, 2, 2, log_ocsf_print_process },
	{ "run_end", 1007, 2, 1, 0, 0, 0, log_ocsf_print_end },
	{ "preflight", 2003, 1, 1, 1, 0, 0, log_ocsf_print_compliance },
	{ "guarantee", 2003, 1, 1, 1, 0, 0, log_ocsf_print_compliance },
	{ "degraded", 2003, 1, 3, 1, 0, 0, log_ocsf_print_compliance },
	{ "net_allowed", 4001, 1, 1, 1, 1, 1, log_ocsf_print_network },
	{ "net_denied", 4001, 5, 2, 2, 2, 2, log_ocsf_print_network },
	{ "net_failed", 4001, 4, 1, 2, 1, 1, log_ocsf_print_network },
	{ "published", 4001, 1, 1, 1, 1, 1, log_ocsf_print_network },
	{ "name_denied", 4003, 6, 2, 2, 2, 2, log_ocsf_print_name },
	{ "syscall_denied", 1003, 4, 2, 2, 2, 2, log_ocsf_print_call },
	{ "write_denied", 1001, 3, 3, 2, 2, 2, log_ocsf_print_file },
	{ "sandbox_read_blocked", 1001, 2, 2, 2, 2, 2, log_ocsf_print_file },
	{ "sandbox_write_blocked", 1001, 3, 2, 2, 2, 2, log_ocsf_print_file },
	{ "write_held", 1001, 3, 3, 1, 3, 3, log_ocsf_print_file },
	{ "limit_hit", 2004, 1, 3, 1, 0, 0, log_ocsf_print_limit },
	{ "network_closed", 6008, 1, 3, 2, 0, 0, NULL },
	{ "interrupted", 6008, 1, 3, 2, 0, 0, NULL },
	{ "session_created", 3004, 1, 1, 1, 0, 0, log_ocsf_print_session },
	{ "session_removed", 3004, 4, 1, 1, 0, 0, log_ocsf_print_session },
	{ "lease_lost", 6008, 1, 3, 2, 0, 0, NULL },
	{ "result_refused", 6008, 1, 3, 2, 0, 0, NULL },
	{ "key_made", 3004, 1, 1, 1, 0, 0, log_ocsf_print_key },
};

/* All others: the class that says nothing but that something happened. */
static const struct log_ocsf_row any = { "", 0, 99, 1, 0, 0, 0, NULL };

static const struct log_ocsf_row *find_row(const char *type)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (str_eq(rows[i].type, type))
			return &rows[i];
	return &any;
}

/* --- what every event has --- */

static void print_metadata(struct log_ocsf *o)
{
	struct json *j = &o->json;
	const struct log_event *x = o->event;

	json_open_map(j, "metadata");
	json_text(j, "version", SCHEMA_VERSION);
	json_open_map(j, "product");
	json_text(j, "name", "bawn");
	json_text(j, "vendor_name", "bawn");
	json_text(j, "version", o->from->version);
	json_close_map(j);
	json_text(j, "uid", o->uid);
	json_int(j, "sequence", log_find_number(x, "seq"));
	json_text(j, "event_code", x->type);
	if (x->time[0])
		json_text(j, "original_time", x->time);
	if (x->run[0])
		json_text(j, "correlation_uid", x->run);
	json_open_list(j, "profiles");
	/* The classes of category 1 know the device by themselves. */
	if (o->row->class_uid / 1000 != 1)
		json_text(j, NULL, "host");
	if (o->row->action)
		json_text(j, NULL, "security_control");
	json_close_list(j);
	json_close_map(j);
}

static void print_device(struct log_ocsf *o)
{
	struct json *j = &o->json;

	json_open_map(j, "device");
	json_text(j, "hostname", o->from->host[0] ? o->from->host : "localhost");
	json_int(j, "type_id", 0);
	json_open_map(j, "os");
	json_text(j, "name", "Linux");
	json_int(j, "type_id", 200);
	log_ocsf_take_text(o, "kernel", "kernel_release");
	json_close_map(j);
	json_close_map(j);
}

static void print_base(struct log_ocsf *o)
{
	own(buf) struct buf sentence = { .max = 4 * LOG_LINE_SIZE };
	const struct log_ocsf_row *row = o->row;
	struct json *j = &o->json;
	char digest[SHA256_HEX_SIZE];
	struct timespec at = { 0 };

	clock_parse(o->event->time, &at);
	json_int(j, "class_uid", row->class_uid);
	json_int(j, "category_uid", row->class_uid / 1000);
	json_int(j, "activity_id", o->activity);
	if (o->activity == 99)
		json_text(j, "activity_name", o->event->type);
	json_int(j, "type_uid", (int64_t)row->class_uid * 100 + o->activity);
	json_int(j, "severity_id", o->severity);
	json_int(j, "time", (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000);
	if (o->status)
		json_int(j, "status_id", o->status);
	if (row->action) {
		json_int(j, "action_id", row->action);
		json_int(j, "disposition_id", row->disposition);
	}
	if (log_find_number(o->event, "times") > 0)
		log_ocsf_take_number(o, "times", "count");
	log_print_sentence(o->event, &sentence);
	json_text(j, "message", buf_text(&sentence));
	log_take(o->event, "text");
	sha256_hex(o->event->line, o->event->size, digest);
	json_open_map(j, "raw_data_hash");
	json_int(j, "algorithm_id", 3);
	json_text(j, "algorithm", "SHA-256");
	json_text(j, "value", digest);
	json_close_map(j);
	print_metadata(o);
	print_device(o);
	j->out->failed |= sentence.failed;
}

static void print_unmapped(struct log_ocsf *o)
{
	bool is_open = false;

	for (size_t i = 0; i < o->event->count; i++) {
		const struct log_member *m = &o->event->members[i];
		own(buf) struct buf value = { .max = LOG_LINE_SIZE };

		if (m->is_taken || m->kind == LOG_NULL)
			continue;
		if (!is_open)
			json_open_map(&o->json, "unmapped");
		is_open = true;
		buf_add(&value, m->bytes, m->size);
		json_raw(&o->json, m->key, buf_text(&value));
		o->json.out->failed |= value.failed;
	}
	if (is_open)
		json_close_map(&o->json);
}

void log_print_ocsf(struct log_event *x, const struct log_origin *from, struct buf *out)
{
	static const char *const told[] = { "seq", "time", "type", "run" };
	own(buf) struct buf text = { .max = 16 * LOG_LINE_SIZE };
	struct log_ocsf o = { .event = x, .from = from, .row = find_row(x->type) };

	snprintf(o.uid, sizeof(o.uid), "%s/%" PRId64, from->chain, log_find_number(x, "seq"));
	o.activity = o.row->activity;
	o.severity = o.row->severity;
	o.status = o.row->status;
	for (size_t i = 0; i < COUNT_OF(told); i++)
		log_take(x, told[i]);
	log_ocsf_judge(&o);
	json_init(&o.json, &text, 0);
	json_open_map(&o.json, NULL);
	print_base(&o);
	if (o.row->print)
		o.row->print(&o);
	print_unmapped(&o);
	json_close_map(&o.json);
	log_add_harmless(out, buf_text(&text), text.len, true);
	buf_putc(out, '\n');
	out->failed |= text.failed;
}
