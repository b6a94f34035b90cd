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
