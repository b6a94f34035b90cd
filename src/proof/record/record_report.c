#include <stdint.h>

#include "base/own.h"
#include "proof/record/record.h"

static void report_print_count(struct json *j, uint64_t n)
{
	json_int(j, "times", n > INT64_MAX ? INT64_MAX : (int64_t)n);
	json_text(j, "by", "hook");
}

void record_print_told(const struct wire_report *told, struct json *j)
{
	own(buf) struct buf text = { .max = 2048 };

	json_text(j, "path", told->path);
	json_text(j, "agent", wire_agent_names[told->agent]);
	json_text(j, "tool", told->tool);
	json_text(j, "by", "hook");
	buf_printf(&text, "%s was refused %s %s, by its hook (%s)", wire_agent_names[told->agent],
		told->kind == WIRE_READ_BLOCKED ? "reading" : "writing", told->path, told->tool);
	json_text(j, "text", buf_text(&text));
}

void record_print_blocked_untold(const struct record *r, struct json *j)
{
	report_print_count(j, r->told.untold);
	json_text(j, "text", "paths that a hook refused, of which only the number is known");
}

void record_print_blocked(const struct record *r, struct json *j)
{
	static const char *const texts[WIRE_REPORT_KIND_COUNT] = {
		[WIRE_READ_BLOCKED] = "paths that a hook in the cage refused to read",
		[WIRE_WRITE_BLOCKED] = "paths that a hook in the cage refused to write",
	};

	for (enum wire_report_kind i = 0; i < WIRE_REPORT_KIND_COUNT; i++) {
		if (!r->told.times[i])
			continue;
		json_open_map(j, NULL);
		json_text(j, "type", wire_report_names[i]);
		report_print_count(j, r->told.times[i]);
		json_text(j, "text", texts[i]);
		json_close_map(j);
	}
	if (!r->told.untold)
		return;
	json_open_map(j, NULL);
	json_text(j, "type", RECORD_BLOCKED_UNTOLD);
	record_print_blocked_untold(r, j);
	json_close_map(j);
}
