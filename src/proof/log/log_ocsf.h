#pragma once

#include "base/json.h"
#include "proof/log/log_event.h"

/* What the files of the mapping to OCSF share. Nobody else includes it. */

struct log_ocsf;

struct log_ocsf_row {
	const char *type; /* of our event */
	int class_uid, activity;
	int severity; /* 1 informational, 2 low, 3 medium, 4 high */
	int status;   /* 1 success (of a finding: new), 2 failure, 0 not said */
	int action,
		disposition; /* 1, 1 allowed; 2, 2 denied and blocked; 3, 3 seen and set aside */
	void (*print)(struct log_ocsf *o);
};

struct log_ocsf {
	struct log_event *event;
	const struct log_origin *from;
	const struct log_ocsf_row *row;
	int activity, severity, status; /* the row's, unless the event says more */
	char uid[128];                  /* of the event, among all */
	struct json json;
};

/* Writes a member as an attribute, where it is there and of that kind, and takes it. */
bool log_ocsf_take_text(struct log_ocsf *o, const char *key, const char *attribute);
bool log_ocsf_take_number(struct log_ocsf *o, const char *key, const char *attribute);

/* --- log_ocsf_classes.c --- */

/* What an event says that its type does not: that it failed, that a file was made and not changed.
 */
void log_ocsf_judge(struct log_ocsf *o);

void log_ocsf_print_process(struct log_ocsf *o);
void log_ocsf_print_end(struct log_ocsf *o);
void log_ocsf_print_compliance(struct log_ocsf *o);
void log_ocsf_print_network(struct log_ocsf *o);
void log_ocsf_print_name(struct log_ocsf *o);
void log_ocsf_print_call(struct log_ocsf *o);
void log_ocsf_print_file(struct log_ocsf *o);
void log_ocsf_print_limit(struct log_ocsf *o);
void log_ocsf_print_session(struct log_ocsf *o);
void log_ocsf_print_key(struct log_ocsf *o);
