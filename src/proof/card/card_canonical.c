#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"
#include "proof/card/card.h"

#define MOST_EXACT ((int64_t)1 << 53) /* beyond, numbers of JavaScript have gaps */

/* Order of RFC 8785: by UTF-16 code units. It differs from that of bytes above U+FFFF only. */
static uint32_t canonical_order_of(uint32_t c)
{
	if (c >= 0x10000)
		return 0xd800;
	return c;
}

static int canonical_compare_keys(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b);

	while (na && nb) {
		uint32_t x = (unsigned char)*a, y = (unsigned char)*b;
		size_t width = utf8_decode(a, na, &x);

		/* What is equal up to here is cut at the same places. */
		utf8_decode(b, nb, &y);
		if (x != y && canonical_order_of(x) != canonical_order_of(y))
			return canonical_order_of(x) < canonical_order_of(y) ? -1 : 1;
		if (x != y)
			return x < y ? -1 : 1;
		width = width ? width : 1;
		a += width;
		b += width;
		na -= width;
		nb -= width;
	}
	return (na > 0) - (nb > 0);
}

static void put_string(struct buf *out, const char *text)
{
	static const char short_names[] = "btn_fr"; /* of 8 to 13; 11 has none */

	buf_putc(out, '"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c >= 8 && c <= 13 && c != 11)
			buf_printf(out, "\\%c", short_names[c - 8]);
		else if (c < ' ')
			buf_printf(out, "\\u%04x", c);
		else
			buf_putc(out, (char)c);
	}
	buf_putc(out, '"');
}

/* A member: its key and, behind that, its value, both canonical but for the key's escapes. */
struct member {
	struct buf key, value;
};

struct members {
	struct member *items;
	size_t count, room;
};

static void members_done(struct members *m)
{
	for (size_t i = 0; i < m->count; i++) {
		buf_done(&m->items[i].key);
		buf_done(&m->items[i].value);
	}
	free(m->items);
}

static struct member *add_member(struct members *m, const char *key)
{
	struct member *x;

	if (m->count == m->room) {
		size_t room = m->room ? 2 * m->room : 16;
		struct member *grown = reallocarray(m->items, room, sizeof(*grown));

		if (!grown)
			return NULL;
		m->items = grown;
		m->room = room;
	}
	x = &m->items[m->count];
	*x = (struct member){ .key.max = CARD_MAX_SIZE, .value.max = CARD_MAX_SIZE };
	m->count++;
	buf_puts(&x->key, key);
	return x->key.failed ? NULL : x;
}

static int compare_members(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	return canonical_compare_keys(buf_text(&x->key), buf_text(&y->key));
}

static void canonical_put_value(struct json_reader *r, struct buf *out);

static void put_map(struct json_reader *r, bool (*is_left_out)(const char *key), struct buf *out)
{
	own(members) struct members m = { 0 };
	const char *key;

	json_enter_map(r);
	while (json_next_key(r, &key)) {
		struct member *x;

		if (is_left_out && is_left_out(key)) {
			json_skip(r);
			continue;
		}
		x = add_member(&m, key);
		if (x)
			canonical_put_value(r, &x->value);
		else
			json_wrong(r, "more memory");
	}
	if (m.count)
		qsort(m.items, m.count, sizeof(*m.items), compare_members);
	buf_putc(out, '{');
	for (size_t i = 0; i < m.count; i++) {
		if (i && str_eq(buf_text(&m.items[i - 1].key), buf_text(&m.items[i].key)))
			json_wrong(r, "each member once");
		if (i)
			buf_putc(out, ',');
		put_string(out, buf_text(&m.items[i].key));
		buf_putc(out, ':');
		buf_add(out, buf_text(&m.items[i].value), m.items[i].value.len);
		out->failed = out->failed || m.items[i].value.failed;
	}
	buf_putc(out, '}');
}

static void put_list(struct json_reader *r, struct buf *out)
{
	bool is_first = true;

	json_enter_list(r);
	buf_putc(out, '[');
	while (json_next_item(r)) {
		if (!is_first)
			buf_putc(out, ',');
		is_first = false;
		canonical_put_value(r, out);
	}
	buf_putc(out, ']');
}

static void canonical_put_number(struct json_reader *r, struct buf *out)
{
	int64_t number = 0;

	if (!json_read_int(r, &number))
		return;
	if (number <= -MOST_EXACT || number >= MOST_EXACT)
		json_wrong(r, "an integer below 2^53");
	buf_printf(out, "%" PRId64, number);
}

/* Depth is limited by the reader, and with it how deep this calls itself. */
static void canonical_put_value(struct json_reader *r, struct buf *out)
{
	const char *text;
	bool yes;

	switch (json_peek(r)) {
	case '{':
		put_map(r, NULL, out);
		break;
	case '[':
		put_list(r, out);
		break;
	case '"':
		if (json_read_text(r, &text))
			put_string(out, text);
		break;
	case 't':
	case 'f':
		if (json_read_bool(r, &yes))
			buf_puts(out, yes ? "true" : "false");
		break;
	case 'n':
		if (json_skip(r))
			buf_puts(out, "null");
		break;
	default:
		canonical_put_number(r, out);
	}
}

int card_canonicalize(const char *bytes, size_t n, bool (*is_left_out)(const char *key),
	struct buf *out, struct err *e)
{
	own(json_reader) struct json_reader r;

	json_read_init(&r, bytes, n, CARD_MAX_SIZE);
	if (json_peek(&r) == '{')
		put_map(&r, is_left_out, out);
	else
		canonical_put_value(&r, out);
	json_read_end(&r);
	if (r.wrong)
		return err_set(e, ERR_SPEC, EBADMSG, "it is not JSON as cards have it: expected %s",
			r.wrong);
	if (out->failed)
		return err_set(e, ERR_SYS, ENOMEM, "it is too large for a card");
	return 0;
}
