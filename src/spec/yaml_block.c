#include "spec/yaml_block.h"

#include <string.h>

#include "base/buf.h"
#include "base/own.h"

struct line {
	const char *text;
	size_t size; /* without its end */
};

static struct line line_at(const char *bytes, size_t n, size_t at)
{
	struct line l = { bytes + at, 0 };

	while (at + l.size < n && l.text[l.size] != '\n')
		l.size++;
	if (l.size && l.text[l.size - 1] == '\r')
		l.size--;
	return l;
}

static size_t indent_of(struct line l)
{
	size_t i = 0;

	while (i < l.size && l.text[i] == ' ')
		i++;
	return i;
}

/* Does the line before the block end with its mark, and does that keep the last line's end? */
static bool read_mark(const char *bytes, size_t start, bool *ret_keeps_end)
{
	size_t end = start;

	while (end && (bytes[end - 1] == '\n' || bytes[end - 1] == '\r'))
		end--;
	/* One line's end only: an empty line in between is one of the corners. */
	if (start - end > 2 || (start - end == 2 && bytes[end] != '\r'))
		return false;
	*ret_keeps_end = end && bytes[end - 1] == '|';
	if (end && bytes[end - 1] == '-')
		end--;
	return end >= 2 && bytes[end - 1] == '|' && bytes[end - 2] == ' ';
}

bool yaml_block_is_sure(
	const char *bytes, size_t n, size_t start, size_t least, const char *text, size_t len)
{
	own(buf) struct buf sure = { .max = n + 1 };
	struct line l = line_at(bytes, n, start);
	size_t indent = indent_of(l), blank = 0;
	bool keeps_end = false;

	if (!read_mark(bytes, start, &keeps_end) || indent == l.size || indent < least)
		return false;
	for (size_t at = start; at < n; at = (size_t)(l.text - bytes) + strcspn(l.text, "\n") + 1) {
		l = line_at(bytes, n, at);
		if (indent_of(l) ==
			l.size) { /* empty, and only part of the block if more follows */
			if (l.size > indent)
				return false;
			blank++;
			continue;
		}
		if (indent_of(l) < indent)
			break;
		buf_repeat(&sure, '\n', blank + (at > start ? 1 : 0));
		buf_add(&sure, l.text + indent, l.size - indent);
		blank = 0;
	}
	if (keeps_end)
		buf_putc(&sure, '\n');
	return !sure.failed && sure.len == len && memcmp(buf_text(&sure), text, len) == 0;
}
