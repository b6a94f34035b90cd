#include "spec/yaml_text.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"

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
static bool yaml_text_read_mark(const char *bytes, size_t start, bool *ret_keeps_end)
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

static bool yaml_text_read_block(
	const char *bytes, size_t n, size_t start, size_t least, struct buf *out)
{
	struct line l = line_at(bytes, n, start);
	size_t indent = indent_of(l), blank = 0;
	bool keeps_end = false;

	if (!yaml_text_read_mark(bytes, start, &keeps_end) || indent == l.size || indent < least)
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
		buf_repeat(out, '\n', blank + (at > start ? 1 : 0));
		buf_add(out, l.text + indent, l.size - indent);
		blank = 0;
	}
	if (keeps_end)
		buf_putc(out, '\n');
	return true;
}

/* Two quotes stand for one. */
static bool read_single(const char *p, const char *end, struct buf *out)
{
	for (; p < end; p++) {
		if (*p == '\'' && (++p == end || *p != '\''))
			return false;
		buf_putc(out, *p);
	}
	return true;
}

/* The number behind \x, \u or \U; false where it has not as many digits. */
static bool read_code(const char **p, const char *end, int digits, uint32_t *ret)
{
	uint32_t c = 0;

	for (int i = 0; i < digits; i++, ++*p) {
		const char *hex = "0123456789abcdef", *at;

		at = *p < end && **p ? strchr(hex, str_lower(**p)) : NULL;
		if (!at)
			return false;
		c = c << 4 | (uint32_t)(at - hex);
	}
	*ret = c;
	return true;
}

static const struct {
	char letter;
	uint32_t code;
} escapes[] = {
	{ 'a', 7 },
	{ 'b', 8 },
	{ 't', 9 },
	{ 'n', 10 },
	{ 'v', 11 },
	{ 'f', 12 },
	{ 'r', 13 },
	{ 'e', 27 },
	{ ' ', ' ' },
	{ '"', '"' },
	{ '/', '/' },
	{ '\\', '\\' },
	{ 'N', 0x85 },
	{ '_', 0xa0 },
	{ 'L', 0x2028 },
	{ 'P', 0x2029 },
};

static bool yaml_text_read_escape(const char **p, const char *end, uint32_t *ret)
{
	char letter = *p < end ? *(*p)++ : '\0';

	if (letter == 'x' || letter == 'u' || letter == 'U')
		return read_code(p, end, letter == 'x' ? 2 : letter == 'u' ? 4 : 8, ret);
	for (size_t i = 0; i < COUNT_OF(escapes); i++) {
		if (escapes[i].letter == letter) {
			*ret = escapes[i].code;
			return true;
		}
	}
	return false;
}

static bool read_double(const char *p, const char *end, struct buf *out)
{
	while (p < end) {
		char character[4];
		uint32_t c = 0;

		if (*p == '"')
			return false;
		if (*p != '\\') {
			buf_putc(out, *p++);
			continue;
		}
		p++;
		if (!yaml_text_read_escape(&p, end, &c) || utf8_encode(c, character) == 0)
			return false;
		buf_add(out, character, utf8_encode(c, character));
	}
	return true;
}

bool yaml_text_is_sure(const struct yaml_place *p, const char *text, size_t len)
{
	own(buf) struct buf sure = { .max = p->size + 1 };
	const char *start = p->bytes + p->start, *end = p->bytes + p->end;
	bool is_read = true;

	if (p->start > p->end || p->end > p->size)
		return false;
	if (p->quote == YAML_BLOCK)
		is_read = yaml_text_read_block(p->bytes, p->size, p->start, p->least, &sure);
	else if (p->quote == YAML_SINGLE)
		is_read = read_single(start, end, &sure);
	else if (p->quote == YAML_DOUBLE)
		is_read = read_double(start, end, &sure);
	else
		buf_add(&sure, start, p->end - p->start);
	return is_read && !sure.failed && sure.len == len &&
	       memcmp(buf_text(&sure), text, len) == 0;
}
