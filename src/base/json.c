#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/count.h"
#include "base/utf8.h"

void json_init(struct json *j, struct buf *out, int indent)
{
	*j = (struct json){ .out = out, .indent = indent };
}

static void json_break(struct json *j)
{
	if (j->indent <= 0)
		return;
	buf_putc(j->out, '\n');
	buf_repeat(j->out, ' ', (size_t)j->indent * (size_t)j->depth);
}

void json_put_character(struct buf *out, uint32_t c, const char *bytes, size_t width)
{
	if (c == '"' || c == '\\')
		buf_printf(out, "\\%c", (char)c);
	else if (c == '\n')
		buf_puts(out, "\\n");
	else if (c == '\t')
		buf_puts(out, "\\t");
	else if (c < 0x20 || c == 0x7f)
		buf_printf(out, "\\u%04x", (unsigned)c);
	else
		buf_add(out, bytes, width);
}

/* Returns how many of the next bytes need no escaping. */
static size_t plain_size(const char *text)
{
	size_t n = 0;

	while (text[n] >= ' ' && text[n] < 0x7f && text[n] != '"' && text[n] != '\\')
		n++;
	return n;
}

static void json_string(struct json *j, const char *text)
{
	struct buf *out = j->out;
	const char *end = text + strlen(text);

	buf_putc(out, '"');
	while (text < end) {
		size_t plain = plain_size(text), width;
		uint32_t c = 0;

		buf_add(out, text, plain);
		text += plain;
		if (text == end)
			break;
		width = utf8_decode(text, (size_t)(end - text), &c);
		if (width == 0)
			buf_printf(out, "\\udc%02x", (unsigned char)*text);
		else
			json_put_character(out, c, text, width);
		text += width ? width : 1;
	}
	buf_putc(out, '"');
}

/* Everything that comes before a value: the comma, the line, the key. */
static void json_start(struct json *j, const char *key)
{
	if (j->depth > 0) {
		if (j->has_members[j->depth])
			buf_putc(j->out, ',');
		j->has_members[j->depth] = true;
		json_break(j);
	}
	if (key) {
		json_string(j, key);
		buf_puts(j->out, j->indent > 0 ? ": " : ":");
	}
}

static void json_open(struct json *j, const char *key, char bracket)
{
	json_start(j, key);
	buf_putc(j->out, bracket);
	j->depth++;
	assert(j->depth < (int)COUNT_OF(j->has_members));
	j->has_members[j->depth] = false;
}

static void json_close(struct json *j, char bracket)
{
	bool had_members = j->has_members[j->depth];

	j->depth--;
	if (had_members)
		json_break(j);
	buf_putc(j->out, bracket);
}

void json_open_map(struct json *j, const char *key)
{
	json_open(j, key, '{');
}

void json_close_map(struct json *j)
{
	json_close(j, '}');
}

void json_open_list(struct json *j, const char *key)
{
	json_open(j, key, '[');
}

void json_close_list(struct json *j)
{
	json_close(j, ']');
}

void json_text(struct json *j, const char *key, const char *text)
{
	json_start(j, key);
	if (text)
		json_string(j, text);
	else
		buf_puts(j->out, "null");
}

void json_bool(struct json *j, const char *key, bool value)
{
	json_start(j, key);
	buf_puts(j->out, value ? "true" : "false");
}

void json_int(struct json *j, const char *key, int64_t value)
{
	json_start(j, key);
	buf_printf(j->out, "%" PRId64, value);
}

void json_raw(struct json *j, const char *key, const char *number)
{
	json_start(j, key);
	buf_puts(j->out, number);
}
