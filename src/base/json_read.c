#include "base/json_read.h"

#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

void json_read_init(struct json_reader *r, const char *bytes, size_t n, size_t max)
{
	*r = (struct json_reader){ .bytes = bytes, .at = bytes, .end = bytes + n };
	buf_init(&r->text, max);
}

void json_reader_done(struct json_reader *r)
{
	buf_done(&r->text);
}

bool json_wrong(struct json_reader *r, const char *what)
{
	if (!r->wrong)
		r->wrong = what;
	r->at = r->end; /* nothing is left to be read */
	return false;
}

/* --- characters --- */

/* The next one that is not white space; NUL at the end, which no JSON has in it. */
static char next(struct json_reader *r)
{
	while (r->at < r->end &&
		(*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
		r->at++;
	return r->at < r->end ? *r->at : '\0';
}

static bool json_read_take(struct json_reader *r, char c)
{
	if (r->wrong || next(r) != c)
		return false;
	r->at++;
	return true;
}

static bool json_read_take_word(struct json_reader *r, const char *word)
{
	size_t n = strlen(word);

	next(r);
	if (r->wrong || (size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
		return false;
	r->at += n;
	return true;
}

/* --- strings --- */

static bool read_hex4(struct json_reader *r, uint32_t *ret)
{
	*ret = 0;
	if (r->end - r->at < 4)
		return false;
	for (int i = 0; i < 4; i++, r->at++) {
		int digit = str_hex_digit(str_lower(*r->at));

		if (digit < 0)
			return false;
		*ret = *ret << 4 | (uint32_t)digit;
	}
	return true;
}

/* Reads what follows \u: a character, or a surrogate pair. */
static bool read_unicode(struct json_reader *r, uint32_t *ret)
{
	uint32_t low;

	if (!read_hex4(r, ret))
		return false;
	if (*ret < 0xd800 || *ret > 0xdbff)
		return true;
	if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
		return false;
	r->at += 2;
	if (!read_hex4(r, &low) || low < 0xdc00 || low > 0xdfff)
		return false;
	*ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
	return true;
}

/* Reads what follows a backslash. */
static bool json_read_escape(struct json_reader *r)
{
	static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *name = r->at < r->end && *r->at ? strchr(names, *r->at) : NULL;
	char bytes[4];
	uint32_t c;
	size_t n;

	if (name) {
		buf_putc(&r->text, meant[name - names]);
		r->at++;
		return true;
	}
	if (r->at >= r->end || *r->at++ != 'u' || !read_unicode(r, &c) || c == 0)
		return false;
	n = utf8_encode(c, bytes);
	if (r->takes_bytes && c >= 0xdc80 && c <= 0xdcff)
		bytes[n++] = (char)(c & 0xff);
	buf_add(&r->text, bytes, n);
	return n > 0;
}

/* Printable ASCII that stands for itself: nearly everything. */
static bool json_read_is_plain(char c)
{
	return (unsigned char)c >= ' ' && (unsigned char)c < 0x7f && c != '"' && c != '\\';
}

/* The rest of a string, behind its first quote, into r->text. */
static bool read_string(struct json_reader *r)
{
	r->text.len = 0;
	buf_add(&r->text, "", 0);
	while (r->at < r->end) {
		const char *start = r->at;
		uint32_t c;

		while (r->at < r->end && json_read_is_plain(*r->at))
			r->at++;
		buf_add(&r->text, start, (size_t)(r->at - start));
		if (r->at == r->end)
			break;
		if (*r->at == '"') {
			r->at++;
			return r->text.failed ? json_wrong(r, "a shorter text") : true;
		}
		if (*r->at == '\\') {
			r->at++;
			if (!json_read_escape(r))
				return json_wrong(r, "a known escape");
		} else {
			size_t width = utf8_decode(r->at, (size_t)(r->end - r->at), &c);

			if (width == 0 || c < ' ')
				return json_wrong(r, "UTF-8");
			buf_add(&r->text, r->at, width);
			r->at += width;
		}
	}
	return json_wrong(r, "the end of a text");
}

bool json_read_text(struct json_reader *r, const char **ret)
{
	if (!json_read_take(r, '"'))
		return json_wrong(r, "a text");
	if (!read_string(r))
		return false;
	*ret = buf_text(&r->text);
	return true;
}

/* --- maps and lists --- */

static bool json_read_enter(struct json_reader *r, char bracket, const char *what)
{
	if (!json_read_take(r, bracket))
		return json_wrong(r, what);
	if (r->depth == JSON_READ_DEPTH)
		return json_wrong(r, "fewer levels");
	r->has_items[++r->depth] = false;
	return true;
}

bool json_enter_map(struct json_reader *r)
{
	return json_read_enter(r, '{', "a map");
}

bool json_enter_list(struct json_reader *r)
{
	return json_read_enter(r, '[', "a list");
}

/* True if there is another item. Reads the comma before it, or the closing bracket. */
static bool json_read_go_on(struct json_reader *r, char bracket)
{
	bool is_first = !r->has_items[r->depth];

	if (r->wrong)
		return false;
	if (json_read_take(r, bracket)) {
		r->depth--;
		return false;
	}
	r->has_items[r->depth] = true;
	return is_first || json_read_take(r, ',') ? true : json_wrong(r, "a comma");
}

bool json_next_item(struct json_reader *r)
{
	return json_read_go_on(r, ']');
}

bool json_next_key(struct json_reader *r, const char **ret)
{
	if (!json_read_go_on(r, '}') || !json_read_text(r, ret))
		return false;
	return json_read_take(r, ':') ? true : json_wrong(r, "a colon");
}

/* --- the rest --- */

char json_peek(struct json_reader *r)
{
	return r->wrong ? '\0' : next(r);
}

bool json_read_bool(struct json_reader *r, bool *ret)
{
	*ret = json_read_take_word(r, "true");
	return *ret || json_read_take_word(r, "false") ? true : json_wrong(r, "true or false");
}

static bool json_read_take_digits(struct json_reader *r)
{
	const char *start = r->at;

	while (r->at < r->end && str_is_digit(*r->at))
		r->at++;
	return r->at > start;
}

/* The digits before a fraction: one zero, or no zero first. */
static bool take_integer(struct json_reader *r)
{
	if (r->wrong)
		return false;
	next(r);
	r->at += r->at < r->end && *r->at == '-';
	if (r->at < r->end && *r->at == '0') {
		r->at++;
		return r->at == r->end || !str_is_digit(*r->at);
	}
	return json_read_take_digits(r);
}

bool json_read_int(struct json_reader *r, int64_t *ret)
{
	const char *digit;
	int64_t value = 0;
	bool is_negative, is_good;

	next(r);
	digit = r->at;
	is_good = take_integer(r);
	is_negative = is_good && *digit == '-';
	/* Downwards, where one number more fits. */
	for (digit += is_negative; is_good && digit < r->at; digit++)
		is_good = !__builtin_mul_overflow(value, 10, &value) &&
			  !__builtin_sub_overflow(value, *digit - '0', &value);
	if (is_good && !is_negative)
		is_good = !__builtin_sub_overflow(0, value, &value);
	if (r->at < r->end && (*r->at == '.' || *r->at == 'e' || *r->at == 'E'))
		is_good = false;
	*ret = is_good ? value : 0;
	return is_good ? true : json_wrong(r, "an integer");
}

static bool skip_number(struct json_reader *r)
{
	bool is_good = take_integer(r);

	if (is_good && r->at < r->end && *r->at == '.') {
		r->at++;
		is_good = json_read_take_digits(r);
	}
	if (is_good && r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
		r->at++;
		r->at += r->at < r->end && (*r->at == '+' || *r->at == '-');
		is_good = json_read_take_digits(r);
	}
	return is_good ? true : json_wrong(r, "a value");
}

bool json_take_null(struct json_reader *r)
{
	return json_read_take_word(r, "null");
}

/* Depth is limited, and with it how deep this calls itself. */
bool json_skip(struct json_reader *r)
{
	const char *text;

	if (r->wrong)
		return false;
	switch (next(r)) {
	case '{':
		json_enter_map(r);
		while (json_next_key(r, &text))
			json_skip(r);
		return !r->wrong;
	case '[':
		json_enter_list(r);
		while (json_next_item(r))
			json_skip(r);
		return !r->wrong;
	case '"':
		return json_read_text(r, &text);
	case 't':
	case 'f':
	case 'n':
		if (json_read_take_word(r, "true") || json_read_take_word(r, "false") ||
			json_read_take_word(r, "null"))
			return true;
		return json_wrong(r, "a value");
	default:
		return skip_number(r);
	}
}

bool json_read_end(struct json_reader *r)
{
	if (!r->wrong && (next(r) || r->at < r->end))
		json_wrong(r, "the end");
	return !r->wrong;
}
