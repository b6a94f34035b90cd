#include "agent/tool/tool_edit.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"

/* The text to find, and its replacement. */
struct change {
	const char *from, *to;
	size_t from_size, to_size;
};

static const char *edit_find(const struct tool_edit *edit, const struct change *c, const char *at)
{
	size_t left = (size_t)(edit->text + edit->size - at);

	return left ? memmem(at, left, c->from, c->from_size) : NULL;
}

/* Notes a place; *at and *line say how far lines have been counted. */
static void edit_note(struct tool_edit *edit, const char *found, const char **at, uint64_t *line)
{
	if (edit->count < TOOL_EDIT_SHOWN) {
		for (; *at < found; (*at)++)
			*line += **at == '\n';
		edit->lines[edit->count] = *line;
	}
	edit->count++;
}

/* Places where the text begins, which may lie in each other, up to TOOL_EDIT_MOST. */
static void edit_count_places(struct tool_edit *edit, const struct change *c)
{
	const char *at = edit->text, *found = at;
	uint64_t line = 1;

	edit->count = 0;
	while (edit->count < TOOL_EDIT_MOST && (found = edit_find(edit, c, found))) {
		edit_note(edit, found, &at, &line);
		found++;
	}
}

static void replace_all(struct tool_edit *edit, const struct change *c, struct buf *out)
{
	const char *from = edit->text, *at = edit->text, *found;
	uint64_t line = 1;

	edit->count = 0;
	while (!out->failed && (found = edit_find(edit, c, from))) {
		edit_note(edit, found, &at, &line);
		buf_add(out, from, (size_t)(found - from));
		buf_add(out, c->to, c->to_size);
		from = found + c->from_size;
	}
	buf_add(out, from, (size_t)(edit->text + edit->size - from));
}

static void replace_first(struct tool_edit *edit, const struct change *c, struct buf *out)
{
	const char *found = edit_find(edit, c, edit->text);
	size_t before = (size_t)(found - edit->text);

	buf_add(out, edit->text, before);
	buf_add(out, c->to, c->to_size);
	buf_add(out, found + c->from_size, edit->size - before - c->from_size);
}

/* --- what was meant --- */

static void put_with_crlf(struct buf *out, const char *text)
{
	for (char before = '\0'; *text; before = *text++) {
		if (*text == '\n' && before != '\r')
			buf_putc(out, '\r');
		buf_putc(out, *text);
	}
}

/* True if a text begins like a line of the tool `read`: blanks, digits, a tab. */
static bool has_line_number(const char *text)
{
	text += strspn(text, " ");
	return str_is_digit(*text) && text[strspn(text, "0123456789")] == '\t';
}

static int edit_say_none(const struct tool_edit *edit, struct err *e)
{
	const char *advice = "read it again, and copy the text exactly, with its blanks";

	if (has_line_number(edit->old_text))
		advice = "the line numbers that read prints are not part of the file";
	else if (edit->size == 0)
		advice = "it is empty; the tool write gives it a content";
	return err_set(e, ERR_SYS, ENOENT, "old_string is not in it; %s", advice);
}

static int say_several(const struct tool_edit *edit, struct err *e)
{
	own(buf) struct buf lines = { .max = 256 };
	size_t shown = edit->count < TOOL_EDIT_SHOWN ? edit->count : TOOL_EDIT_SHOWN;

	for (size_t i = 0; i < shown; i++)
		buf_printf(&lines, "%s%" PRIu64, i ? ", " : "", edit->lines[i]);
	return err_set(e, ERR_SYS, EEXIST,
		"old_string is in it %s%zu times, at lines %s%s; make it longer, so that it is there "
		"once, or set replace_all",
		edit->count == TOOL_EDIT_MOST ? "at least " : "", edit->count, buf_text(&lines),
		shown < edit->count ? " …" : "");
}

static int edit_apply(
	struct tool_edit *edit, const struct change *c, struct buf *out, struct err *e)
{
	if (!edit->replaces_all && edit->count > 1)
		return say_several(edit, e);
	if (edit->replaces_all)
		replace_all(edit, c, out);
	else
		replace_first(edit, c, out);
	if (out->failed)
		return err_set(
			e, ERR_SYS, EFBIG, "it would be larger than %zu MiB", out->max >> 20);
	return 0;
}

int tool_edit_apply(struct tool_edit *edit, struct buf *out, struct err *e)
{
	own(buf) struct buf from = { .max = (size_t)64 << 20 }, to = { .max = (size_t)64 << 20 };
	struct change c = { edit->old_text, edit->new_text, strlen(edit->old_text),
		strlen(edit->new_text) };

	edit_count_places(edit, &c);
	if (edit->count == 0 && strchr(edit->old_text, '\n') && !strchr(edit->old_text, '\r')) {
		put_with_crlf(&from, edit->old_text);
		put_with_crlf(&to, edit->new_text);
		if (from.failed || to.failed)
			return err_set(e, ERR_SYS, ENOMEM, "there is no memory for it");
		c = (struct change){ buf_text(&from), buf_text(&to), from.len, to.len };
		edit_count_places(edit, &c);
	}
	return edit->count ? edit_apply(edit, &c, out, e) : edit_say_none(edit, e);
}
