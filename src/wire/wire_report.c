#include "wire/wire_report.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

static_assert(sizeof(struct wire_report) == 1088, "a message has no padding");

const char *const wire_agent_names[WIRE_AGENT_COUNT] = {
	[WIRE_CLAUDE] = "claude",
	[WIRE_CODEX] = "codex",
	[WIRE_GEMINI] = "gemini",
};

const char *const wire_report_names[WIRE_REPORT_KIND_COUNT] = {
	[WIRE_READ_BLOCKED] = "sandbox_read_blocked",
	[WIRE_WRITE_BLOCKED] = "sandbox_write_blocked",
};

/* Returns the length of a text that ends with NUL and has only zeros behind it; otherwise 0. */
static size_t report_measure(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	for (size_t i = n; i < size; i++)
		if (text[i])
			return 0;
	return n < size ? n : 0;
}

static bool is_tool(const char *text)
{
	for (; *text; text++)
		if (!str_is_letter(*text) && !str_is_digit(*text) && *text != '_')
			return false;
	return true;
}

static bool report_is_shown(const char *text, size_t n)
{
	while (n) {
		uint32_t character = 0;
		size_t width = utf8_decode(text, n, &character);

		if (width == 0 || utf8_is_hidden(character))
			return false;
		text += width;
		n -= width;
	}
	return true;
}

bool wire_is_report(const struct wire_report *report)
{
	size_t path = report_measure(report->path, sizeof(report->path));

	return report->kind < WIRE_REPORT_KIND_COUNT && report->agent < WIRE_AGENT_COUNT &&
	       report_measure(report->tool, sizeof(report->tool)) && is_tool(report->tool) &&
	       path && report->path[0] == '/' && report_is_shown(report->path, path);
}
