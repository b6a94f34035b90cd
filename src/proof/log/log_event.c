#include "proof/log/log_event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/json_read.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/utf8.h"

/* --- reading --- */

/* No text is longer decoded than it stands in the line, where it has two quotes besides. */
static const char *event_keeper_text(struct log_event *x, size_t *used, const char *text)
{
	size_t n = strlen(text) + 1;
	char *kept = x->texts + *used;

	if (n > sizeof(x->texts) - *used)
		return NULL;
	memcpy(kept, text, n);
	*used += n;
	return kept;
}

static void event_read_number(struct log_member *m)
{
	char *end;

	/* It ends in the line: an object's bracket comes behind it. */
	errno = 0;
	m->number = strtoll(m->bytes, &end, 10);
	if (errno == 0 && end == m->bytes + m->size)
		m->kind = LOG_NUMBER;
	else
		m->number = 0;
}

static bool event_read_value(
	struct json_reader *r, struct log_event *x, struct log_member *m, size_t *used)
{
	while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at)
		r->at++;
	m->bytes = r->at;
	m->text = "";
	if (!json_skip(r))
		return false;
	m->size = (size_t)(r->at - m->bytes);
	m->kind = LOG_OTHER;
	if (m->bytes[0] == '"') {
		m->kind = LOG_TEXT;
		m->text = event_keeper_text(x, used, buf_text(&r->text));
	} else if (m->bytes[0] == 't' || m->bytes[0] == 'f') {
		m->kind = LOG_BOOL;
		m->number = m->bytes[0] == 't';
	} else if (m->bytes[0] == 'n') {
		m->kind = LOG_NULL;
	} else if (m->bytes[0] != '{' && m->bytes[0] != '[') {
		event_read_number(m);
	}
	return m->text ? true : json_wrong(r, "less text");
}

static void event_read_members(struct json_reader *r, struct log_event *x)
{
	const char *key;
	size_t used = 0;

	json_enter_map(r);
	while (json_next_key(r, &key)) {
		struct log_member *m = &x->members[x->count];

		if (x->count == LOG_MOST_MEMBERS) {
			json_wrong(r, "fewer members");
			return;
		}
		*m = (struct log_member){ .key = event_keeper_text(x, &used, key) };
		if (!m->key) {
			json_wrong(r, "less text");
			return;
		}
		if (event_read_value(r, x, m, &used))
			x->count++;
	}
}

int log_event_read(struct log_event *x, const char *line, size_t size, struct err *e)
{
	struct json_reader r;
	int ret = 0;

	x->line = line;
	x->size = size;
	x->count = 0;
	json_read_init(&r, line, size, LOG_LINE_SIZE);
	r.takes_bytes = true;
	event_read_members(&r, x);
	json_read_end(&r);
	x->type = log_find_text(x, "type");
	x->time = log_find_text(x, "time");
	x->run = log_find_text(x, "run");
	x->session = log_find_text(x, "session");
	if (!x->type[0])
		json_wrong(&r, "a type");
	if (r.wrong)
		ret = err_set(e, ERR_SYS, EBADMSG, "it is not an event: expected %s", r.wrong);
	json_reader_done(&r);
	return ret;
}

/* --- asking --- */

const struct log_member *log_find(const struct log_event *x, const char *key)
{
	for (size_t i = 0; i < x->count; i++)
		if (str_eq(x->members[i].key, key))
			return x->members[i].kind == LOG_NULL ? NULL : &x->members[i];
	return NULL;
}

const struct log_member *log_take(struct log_event *x, const char *key)
{
	for (size_t i = 0; i < x->count; i++)
		if (str_eq(x->members[i].key, key)) {
			x->members[i].is_taken = true;
			return x->members[i].kind == LOG_NULL ? NULL : &x->members[i];
		}
	return NULL;
}

const char *log_find_text(const struct log_event *x, const char *key)
{
	const struct log_member *m = log_find(x, key);

	return m ? m->text : "";
}

int64_t log_find_number(const struct log_event *x, const char *key)
{
	const struct log_member *m = log_find(x, key);

	return m && m->kind == LOG_NUMBER ? m->number : 0;
}

bool log_is_denial(const struct log_event *x)
{
	return str_ends(x->type, "_denied") || str_ends(x->type, "_blocked") ||
	       str_eq(x->type, "syscalls_untold") || str_eq(x->type, "blocked_untold");
}

/* What differs between two sayings of the same; pid and arguments are those of the first time. */
static bool event_is_variable(const char *key)
{
	static const char *const keys[] = { "seq", "time", "prev", "times", "bytes_out", "bytes_in",
		"text" };

	for (size_t i = 0; i < COUNT_OF(keys); i++)
		if (str_eq(keys[i], key))
			return true;
	return false;
}

bool log_event_row(const struct log_event *x, uint8_t ret[static SHA256_SIZE])
{
	struct sha256 s;

	if (!log_find(x, "times"))
		return false;
	sha256_init(&s);
	for (size_t i = 0; i < x->count; i++) {
		const struct log_member *m = &x->members[i];

		if (event_is_variable(m->key))
			continue;
		sha256_add(&s, m->key, strlen(m->key) + 1);
		sha256_add(&s, m->bytes, m->size);
		sha256_add(&s, "", 1);
	}
	sha256_finish(&s, ret);
	return true;
}

/* --- passing on --- */

static void add_escape(struct buf *out, uint32_t c)
{
	if (c <= 0xffff)
		buf_printf(out, "\\u%04x", (unsigned)c);
	else
		buf_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
			(unsigned)(0xdc00 + (c & 0x3ff)));
}

/* Which half of a character \uXXXX is: 'd' is followed by 8 to b in a first one, c to f in a
 * second. */
static bool is_half(const char *escape, size_t n, bool is_second)
{
	return n >= 6 && escape[1] == 'u' && str_lower(escape[2]) == 'd' &&
	       strchr(is_second ? "cdef" : "89ab", str_lower(escape[3])) && escape[3];
}

/* A backslash and what belongs to it; how many bytes that is. */
static size_t add_escaped(struct buf *out, const char *bytes, size_t n, bool is_strict)
{
	size_t width = n < 2                      ? n
		       : bytes[1] != 'u'          ? 2
		       : n < 6                    ? n
		       : is_half(bytes, n, false) ? 12
						  : 6;

	if (width > n)
		width = n; /* never: it was read */
	if (is_strict && is_half(bytes, n, true))
		buf_puts(out, "\\ufffd");
	else
		buf_add(out, bytes, width);
	return width;
}

void log_add_harmless(struct buf *out, const char *bytes, size_t n, bool is_strict)
{
	for (size_t at = 0, width; at < n; at += width) {
		uint32_t c = (unsigned char)bytes[at];

		if (c == '\\') {
			width = add_escaped(out, bytes + at, n - at, is_strict);
			continue;
		}
		width = c < 0x80 ? 1 : utf8_decode(bytes + at, n - at, &c);
		if (width == 0)
			break; /* never: it was read */
		if (c < ' ')
			continue; /* white space between values: texts have none of these */
		if (utf8_is_hidden(c))
			add_escape(out, c);
		else
			buf_add(out, bytes + at, width);
	}
}
