/*
 * log_ocsf - events in the words of the Open Cybersecurity Schema Framework, release 1.8.0. Pure.
 *
 * A row of the table says what class of event a type is; the function of that class writes the
 * attributes which only it has, and takes the members it wrote. Whatever nobody took is under
 * `unmapped`, so that nothing is lost, and no attribute is made up.
 */
#include <arpa/inet.h>
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

/* --- ocsf classes --- */

/* Writes a member as an attribute, where it is there and of that kind, and takes it. */
static bool log_ocsf_take_text(struct log_ocsf *o, const char *key, const char *attribute)
{
	const struct log_member *m = log_find(o->event, key);

	if (!m || m->kind != LOG_TEXT || !m->text[0])
		return false;
	json_text(&o->json, attribute, log_take(o->event, key)->text);
	return true;
}

static bool log_ocsf_take_number(struct log_ocsf *o, const char *key, const char *attribute)
{
	const struct log_member *m = log_find(o->event, key);

	if (!m || m->kind != LOG_NUMBER)
		return false;
	json_int(&o->json, attribute, log_take(o->event, key)->number);
	return true;
}

/* --- what is different for some --- */

static bool is_false(const struct log_event *x, const char *key)
{
	const struct log_member *m = log_find(x, key);

	return m && m->kind == LOG_BOOL && !m->number;
}

static void judge_inspection(struct log_ocsf *o)
{
	own(log_guarantees) struct log_guarantees g;
	bool is_known = log_count_guarantees(o->event, &g);

	o->severity = !is_known || g.must_missing ? 4 : g.missing ? 3 : 1;
}

/* What an event says that its type does not: that it failed, that a file was made and not changed.
 */
static void log_ocsf_judge(struct log_ocsf *o)
{
	static const struct {
		const char *change;
		int activity;
	} changes[] = { { "added", 1 }, { "changed", 3 }, { "deleted", 4 }, { "renamed", 5 } };
	const char *change = log_find_text(o->event, "change");

	if (str_eq(o->event->type, "inspected"))
		judge_inspection(o);
	if (is_false(o->event, "holds") || is_false(o->event, "passed") ||
		is_false(o->event, "preflight_passed"))
		o->severity = 4;
	if (str_eq(o->event->type, "run_end"))
		o->status = str_eq(log_find_text(o->event, "outcome"), "exited") ? 1 : 2;
	for (size_t i = 0; i < COUNT_OF(changes); i++)
		if (str_eq(o->event->type, "write_held") && str_eq(changes[i].change, change))
			o->activity = changes[i].activity;
}

/* --- System Activity --- */

static const char *run_of(const struct log_ocsf *o)
{
	return o->event->run[0] ? o->event->run : "unknown";
}

/* The cage as a process: its run is its name among all. */
static void log_ocsf_print_process(struct log_ocsf *o)
{
	struct json *j = &o->json;
	const struct log_member *uid = log_find(o->event, "uid");
	char text[32];

	json_open_map(j, "actor");
	json_text(j, "app_name", "bawn");
	json_close_map(j);
	json_open_map(j, "process");
	json_text(j, "uid", run_of(o));
	json_text(j, "sandbox", "bawn");
	log_ocsf_take_text(o, "command", "name");
	if (uid && uid->kind == LOG_NUMBER) {
		snprintf(text, sizeof(text), "%" PRId64, log_take(o->event, "uid")->number);
		json_open_map(j, "user");
		json_text(j, "uid", text);
		json_close_map(j);
	}
	json_close_map(j);
	log_ocsf_take_text(o, "error", "status_detail");
}

static void log_ocsf_print_end(struct log_ocsf *o)
{
	log_ocsf_take_number(o, "status", "exit_code");
	log_ocsf_take_text(o, "outcome", "status_code");
	log_ocsf_print_process(o);
}

/* A process of the cage, as the kernel named it. */
static void print_actor(struct log_ocsf *o)
{
	struct json *j = &o->json;

	json_open_map(j, "actor");
	json_open_map(j, "process");
	json_text(j, "uid", run_of(o));
	json_text(j, "sandbox", "bawn");
	log_ocsf_take_number(o, "pid", "pid");
	log_ocsf_take_text(o, "program", "name");
	json_close_map(j);
	json_close_map(j);
	log_ocsf_take_text(o, "error", "status_code");
}

static void log_ocsf_print_call(struct log_ocsf *o)
{
	struct json *j = &o->json;

	print_actor(o);
	json_open_map(j, "kernel");
	if (!log_ocsf_take_text(o, "call", "name"))
		json_text(j, "name", "unknown");
	json_int(j, "type_id", 2);
	json_close_map(j);
}

static void log_ocsf_print_file(struct log_ocsf *o)
{
	struct json *j = &o->json;
	const char *path = log_find_text(o->event, "path"), *slash = strrchr(path, '/');
	const char *name = slash && slash[1] ? slash + 1 : path;

	print_actor(o);
	json_open_map(j, "file");
	json_text(j, "name", name[0] ? name : "unknown");
	json_int(j, "type_id", 0);
	log_ocsf_take_text(o, "path", "path");
	json_close_map(j);
}

/* --- Network Activity --- */

static bool is_address(const char *text)
{
	struct in6_addr any;

	return inet_pton(AF_INET, text, &any) == 1 || inet_pton(AF_INET6, text, &any) == 1;
}

/* The other side: a host by its name, or an address. */
static void print_destination(struct log_ocsf *o)
{
	struct json *j = &o->json;
	const char *name = log_find_text(o->event, "name");
	int64_t port = log_find_number(o->event, "port");

	json_open_map(j, "dst_endpoint");
	if (is_address(name))
		log_ocsf_take_text(o, "name", "ip");
	else if (!log_ocsf_take_text(o, "name", "hostname"))
		json_text(j, "name", "unknown");
	if (!is_address(name) && is_address(log_find_text(o->event, "address")))
		log_ocsf_take_text(o, "address", "ip");
	if (port > 0 && port <= UINT16_MAX)
		log_ocsf_take_number(o, "port", "port");
	json_close_map(j);
}

static void print_cage(struct log_ocsf *o)
{
	json_open_map(&o->json, "src_endpoint");
	json_text(&o->json, "uid", run_of(o));
	json_close_map(&o->json);
}

static void print_traffic(struct log_ocsf *o)
{
	if (!log_find(o->event, "bytes_out") || !log_find(o->event, "bytes_in"))
		return;
	json_open_map(&o->json, "cumulative_traffic");
	log_ocsf_take_number(o, "bytes_out", "bytes_out");
	log_ocsf_take_number(o, "bytes_in", "bytes_in");
	json_close_map(&o->json);
}

static void log_ocsf_print_network(struct log_ocsf *o)
{
	struct json *j = &o->json;
	const char *protocol = log_find_text(o->event, "protocol");
	bool is_udp = str_eq(protocol, "udp"), is_inwards = str_eq(o->event->type, "published");

	print_destination(o);
	if (!is_inwards)
		print_cage(o);
	json_open_map(j, "connection_info");
	json_int(j, "direction_id", is_inwards ? 1 : 2);
	if (protocol[0]) {
		json_text(j, "protocol_name", is_udp ? "udp" : "tcp");
		json_int(j, "protocol_num", is_udp ? 17 : 6);
	}
	json_close_map(j);
	if (str_eq(protocol, "tls") || str_eq(protocol, "http"))
		log_ocsf_take_text(o, "protocol", "app_protocol_name");
	else
		log_take(o->event, "protocol");
	print_traffic(o);
	log_ocsf_take_text(o, "reason", "status_code");
}

/* The name server of the cage answered that there is no such name. */
static void log_ocsf_print_name(struct log_ocsf *o)
{
	struct json *j = &o->json;

	print_cage(o);
	if (log_find_text(o->event, "name")[0]) {
		json_open_map(j, "query");
		log_ocsf_take_text(o, "name", "hostname");
		json_close_map(j);
	}
	json_int(j, "rcode_id", 3);
	log_ocsf_take_text(o, "reason", "status_code");
}

/* --- Findings --- */

static void print_finding(struct log_ocsf *o, const char *title)
{
	json_open_map(&o->json, "finding_info");
	json_text(&o->json, "uid", o->uid);
	json_text(&o->json, "title", title);
	json_close_map(&o->json);
}

/* Does a guarantee hold? Did the preflight pass? */
static void log_ocsf_print_compliance(struct log_ocsf *o)
{
	static const char *const names[] = { "", "Pass", "Warning", "Fail" };
	struct log_event *x = o->event;
	bool is_missing = str_eq(x->type, "degraded");
	int status = is_missing ? 2 : o->severity == 4 ? 3 : 1;
	const char *control = log_find_text(x, "name");
	struct json *j = &o->json;

	print_finding(o, control[0] ? control : x->type);
	json_open_map(j, "compliance");
	if (!log_ocsf_take_text(o, "name", "control"))
		json_text(j, "control", x->type);
	json_int(j, "status_id", status);
	json_text(j, "status", names[status]);
	if (log_find_text(x, "seen")[0]) {
		json_open_list(j, "status_details");
		log_ocsf_take_text(o, "seen", NULL);
		json_close_list(j);
	}
	json_close_map(j);
	if (!is_missing)
		log_take(x, str_eq(x->type, "preflight") ? "passed" : "holds");
	log_take(x, "preflight_passed");
}

/* All of them at once. */
static void log_ocsf_print_inspection(struct log_ocsf *o)
{
	static const char *const names[] = { "", "Pass", "Warning", "Fail" };
	own(log_guarantees) struct log_guarantees g;
	bool is_known = log_count_guarantees(o->event, &g);
	int status = !is_known || o->severity == 4 ? 3 : g.missing ? 2 : 1;
	struct json *j = &o->json;

	print_finding(o, "guarantees");
	json_open_map(j, "compliance");
	json_text(j, "control", "guarantees");
	json_int(j, "status_id", status);
	json_text(j, "status", names[status]);
	if (g.missing) {
		json_open_list(j, "status_details");
		json_text(j, NULL, buf_text(&g.names));
		json_close_list(j);
	}
	json_close_map(j);
}

static void log_ocsf_print_limit(struct log_ocsf *o)
{
	const char *limit = log_find_text(o->event, "limit");

	print_finding(o, limit[0] ? limit : o->event->type);
	log_take(o->event, "limit");
}

/* --- Identity & Access Management --- */

static void log_ocsf_print_session(struct log_ocsf *o)
{
	struct json *j = &o->json;

	json_open_map(j, "entity");
	json_int(j, "type_id", 99);
	json_text(j, "type", "Session");
	if (!log_ocsf_take_text(o, "session", "uid"))
		json_text(j, "uid", "unknown");
	log_ocsf_take_text(o, "name", "name");
	json_close_map(j);
}

static void log_ocsf_print_key(struct log_ocsf *o)
{
	struct json *j = &o->json;

	json_open_map(j, "entity");
	json_int(j, "type_id", 99);
	json_text(j, "type", "Signing Key");
	if (!log_ocsf_take_text(o, "key", "uid"))
		json_text(j, "name", "unknown");
	json_close_map(j);
}

#define SCHEMA_VERSION "1.8.0"

static const struct log_ocsf_row rows[] = {
	/* type, class, activity; severity, status, action, disposition; print */
	{ "run_start", 1007, 1, 1, 1, 1, 1, log_ocsf_print_process },
	{ "refused", 1007, 1, 3, 2, 2, 2, log_ocsf_print_process },
	{ "run_end", 1007, 2, 1, 0, 0, 0, log_ocsf_print_end },
	{ "preflight", 2003, 1, 1, 1, 0, 0, log_ocsf_print_compliance },
	{ "inspected", 2003, 1, 1, 1, 0, 0, log_ocsf_print_inspection },
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
