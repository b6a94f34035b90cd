#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "proof/log/log_ocsf.h"

bool log_ocsf_take_text(struct log_ocsf *o, const char *key, const char *attribute)
{
	const struct log_member *m = log_find(o->event, key);

	if (!m || m->kind != LOG_TEXT || !m->text[0])
		return false;
	json_text(&o->json, attribute, log_take(o->event, key)->text);
	return true;
}

bool log_ocsf_take_number(struct log_ocsf *o, const char *key, const char *attribute)
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

void log_ocsf_judge(struct log_ocsf *o)
{
	static const struct {
		const char *change;
		int activity;
	} changes[] = { { "added", 1 }, { "changed", 3 }, { "deleted", 4 }, { "renamed", 5 } };
	const char *change = log_find_text(o->event, "change");

	if (is_false(o->event, "holds") || is_false(o->event, "passed"))
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
void log_ocsf_print_process(struct log_ocsf *o)
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

void log_ocsf_print_end(struct log_ocsf *o)
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

void log_ocsf_print_call(struct log_ocsf *o)
{
	struct json *j = &o->json;

	print_actor(o);
	json_open_map(j, "kernel");
	if (!log_ocsf_take_text(o, "call", "name"))
		json_text(j, "name", "unknown");
	json_int(j, "type_id", 2);
	json_close_map(j);
}

void log_ocsf_print_file(struct log_ocsf *o)
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

void log_ocsf_print_network(struct log_ocsf *o)
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
void log_ocsf_print_name(struct log_ocsf *o)
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
void log_ocsf_print_compliance(struct log_ocsf *o)
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
	log_take(x, is_missing ? "" : str_eq(x->type, "preflight") ? "passed" : "holds");
}

void log_ocsf_print_limit(struct log_ocsf *o)
{
	const char *limit = log_find_text(o->event, "limit");

	print_finding(o, limit[0] ? limit : o->event->type);
	log_take(o->event, "limit");
}

/* --- Identity & Access Management --- */

void log_ocsf_print_session(struct log_ocsf *o)
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

void log_ocsf_print_key(struct log_ocsf *o)
{
	struct json *j = &o->json;

	json_open_map(j, "entity");
	json_int(j, "type_id", 99);
	json_text(j, "type", "Signing Key");
	if (!log_ocsf_take_text(o, "key", "uid"))
		json_text(j, "name", "unknown");
	json_close_map(j);
}
