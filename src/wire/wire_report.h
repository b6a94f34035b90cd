#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * What bawn's program in a cage tells the keeper: that it refused a path to an agent. Anybody in
 * the cage can send one; so it is a claim, and is recorded as one.
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

/* As events. */
extern const char *const wire_report_names[WIRE_REPORT_KIND_COUNT];

#define WIRE_TOOL_SIZE   64
#define WIRE_REPORT_PATH 1016

struct wire_report {
	uint32_t kind;               /* enum wire_report_kind */
	uint32_t agent;              /* enum wire_agent */
	char tool[WIRE_TOOL_SIZE];   /* as the agent calls it: letters, digits and _ */
	char path[WIRE_REPORT_PATH]; /* absolute; of characters that show */
};

/* Is it one, whoever sent it? What follows the end of a text is zero. */
bool wire_is_told(const struct wire_report *told);
