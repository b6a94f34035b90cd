#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The report that a hook in the cage sends to the keeper when it has refused a path to an agent.
 * Any process in the cage can send one, so the record has it as a claim.
 */

enum wire_agent {
	WIRE_CLAUDE,
	WIRE_CODEX,
	WIRE_GEMINI,
	WIRE_AGENT_COUNT,
};

extern const char *const wire_agent_names[WIRE_AGENT_COUNT];

enum wire_report_kind {
	WIRE_READ_BLOCKED,
	WIRE_WRITE_BLOCKED,
	WIRE_REPORT_KIND_COUNT,
};

/* The types of the events in the log. */
extern const char *const wire_report_names[WIRE_REPORT_KIND_COUNT];

#define WIRE_TOOL_SIZE   64
#define WIRE_REPORT_PATH 1016

struct wire_report {
	uint32_t kind;               /* enum wire_report_kind */
	uint32_t agent;              /* enum wire_agent */
	char tool[WIRE_TOOL_SIZE];   /* the agent's name for it: letters, digits and _ */
	char path[WIRE_REPORT_PATH]; /* absolute; of visible characters */
};

/* True if a report from the cage is valid: its texts are, and the bytes behind them are zero. */
bool wire_is_report(const struct wire_report *report);
