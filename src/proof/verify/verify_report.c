#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "proof/verify/verify.h"

#define MOST_TEXT 4096

const char *verify_result_word(const struct verify_report *r, enum verify_result result)
{
	static const char *const words[] = { "yes", "no", "not there", "not asked" };

	return r->is_comparison && result == VERIFY_ABSENT ? "unknown" : words[result];
}

/* A copy that a terminal obeys nothing in. */
static const char *keep_visible(struct arena *arena, const char *text)
{
	own(buf) struct buf visible = { .max = 8 * MOST_TEXT };
	const char *kept;

	buf_add_visible(&visible, text, strlen(text));
	kept = visible.failed ? NULL : arena_copy(arena, visible.data, visible.len);
	return kept ? kept : "…";
}

void verify_say(
	struct verify_report *r, const char *name, enum verify_result result, const char *fmt, ...)
{
	char text[MOST_TEXT];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* What has no room counts all the same. */
	r->has_failed |= result == VERIFY_NO || r->count == VERIFY_MAX_PROPERTIES;
	if (r->count == VERIFY_MAX_PROPERTIES)
		return;
	r->items[r->count++] = (struct verify_property){
		.name = keep_visible(r->arena, name),
		.result = result,
		.text = keep_visible(r->arena, text),
	};
}

bool verify_is_yes(const struct verify_report *r, const char *name)
{
	for (size_t i = 0; i < r->count; i++)
		if (str_eq(r->items[i].name, name))
			return r->items[i].result == VERIFY_YES;
	return false;
}

void verify_print(const struct verify_report *r, bool has_color, struct buf *out)
{
	static const char *const inks[] = { "\x1b[32m", "\x1b[1;31m", "\x1b[33m", "\x1b[2m" };
	size_t width = 0;

	for (size_t i = 0; i < r->count; i++) {
		size_t n = strlen(r->items[i].name);

		width = n > width && n <= 24 ? n : width;
	}
	for (size_t i = 0; i < r->count; i++) {
		const struct verify_property *p = &r->items[i];

		buf_printf(out, "%-*s  %s%-9s%s  %s\n", (int)width, p->name,
			has_color ? inks[p->result] : "", verify_result_word(r, p->result),
			has_color ? "\x1b[0m" : "", p->text);
	}
}

void verify_print_json(const struct verify_report *r, struct json *j)
{
	json_open_list(j, "properties");
	for (size_t i = 0; i < r->count; i++) {
		json_open_map(j, NULL);
		json_text(j, "name", r->items[i].name);
		json_text(j, "result", verify_result_word(r, r->items[i].result));
		json_text(j, "text", r->items[i].text);
		json_close_map(j);
	}
	json_close_list(j);
}
