/*
 * Reads cards that may be anybody's, in canonical JSON, and checks what they say. Pure.
 */
#include "proof/card/card.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/count.h"
#include "base/json_read.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"

/* --- canonical JSON --- */

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

		/* Texts that are equal up to here are cut at the same places. */
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

/* --- what a signature is over --- */

static bool is_unsigned(const char *key)
{
	return str_eq(key, "signatures") || str_starts(key, "x-");
}

int card_canonicalize_signed(const char *bytes, size_t n, struct buf *out, struct err *e)
{
	return card_canonicalize(bytes, n, is_unsigned, out, e);
}

void card_add_signed(const char *protected, const void *canonical, size_t n, struct buf *ret_signed)
{
	buf_puts(ret_signed, protected);
	buf_putc(ret_signed, '.');
	base64_add(ret_signed, canonical, n, true);
}

/* --- reading: members of the canonical form --- */

/* The value of a member of a map, whose bytes are canonical. */
static struct card_span read_find_member(struct card_span in, const char *name, size_t n)
{
	own(json_reader) struct json_reader r;
	const char *key;

	json_read_init(&r, in.bytes, in.size, in.size);
	if (in.bytes && json_peek(&r) == '{') {
		json_enter_map(&r);
		while (json_next_key(&r, &key)) {
			bool is_it = strlen(key) == n && memcmp(key, name, n) == 0;
			const char *start = r.at;

			if (json_skip(&r) && is_it)
				return (struct card_span){ start, (size_t)(r.at - start) };
		}
	}
	return (struct card_span){ 0 };
}

struct card_span card_find(struct card_span in, const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		in = read_find_member(in, path, n);
		path += n + (path[n] == '/');
	}
	return in;
}

static bool card_is(struct card_span span, const char *json)
{
	return span.bytes && strlen(json) == span.size && memcmp(span.bytes, json, span.size) == 0;
}

/* The parameters of the one extension that is ours. */
static int find_params(struct card_read *c, struct card_span card, struct err *e)
{
	struct card_span list = card_find(card, "capabilities/extensions");
	own(json_reader) struct json_reader r;
	size_t count = 0;

	json_read_init(&r, list.bytes, list.size, list.size);
	if (list.bytes && json_peek(&r) == '[')
		json_enter_list(&r);
	while (list.bytes && json_next_item(&r)) {
		const char *start = r.at;
		struct card_span item;

		if (!json_skip(&r))
			break;
		item = (struct card_span){ start, (size_t)(r.at - start) };
		if (!card_is(card_find(item, "uri"), "\"" CARD_EXTENSION "\""))
			continue;
		c->params = card_find(item, "params");
		count++;
	}
	if (count != 1 || !c->params.bytes || c->params.bytes[0] != '{')
		return err_set(e, ERR_SPEC, EBADMSG, "it has %s extension " CARD_EXTENSION,
			count > 1 ? "more than one" : "no");
	return 0;
}

/* --- reading: signatures --- */

/* A text without escapes, which is all that base64 and names of algorithms need. */
static const char *plain_text(struct card_span span, size_t *ret_size)
{
	if (span.size < 2 || span.bytes[0] != '"' || memchr(span.bytes, '\\', span.size))
		return NULL;
	*ret_size = span.size - 2;
	return span.bytes + 1;
}

/*
 * Is it a header as ours: Ed25519, over the bytes as they are? What a header calls critical must be
 * understood, and nothing of the kind is here.
 */
static bool card_read_read_header(const char *text, size_t n, char ret_id[static SIGN_ID_SIZE])
{
	own_free uint8_t *bytes = malloc(n / 4 * 3 + 3);
	own(buf) struct buf form = { .max = 4096 };
	struct card_span head, alg, kid;
	const char *id;
	size_t id_size = 0;
	ssize_t size = bytes ? base64_read(text, n, bytes) : -ENOMEM;

	if (size < 0 || card_canonicalize((const char *)bytes, (size_t)size, NULL, &form, NULL) < 0)
		return false;
	head = (struct card_span){ buf_text(&form), form.len };
	alg = card_find(head, "alg");
	kid = card_find(head, "kid");
	if (!(card_is(alg, "\"EdDSA\"") || card_is(alg, "\"Ed25519\"")) ||
		card_find(head, "crit").bytes || card_find(head, "b64").bytes)
		return false;
	id = plain_text(kid, &id_size);
	if (!id || id_size >= SIGN_ID_SIZE)
		return false;
	memcpy(ret_id, id, id_size);
	ret_id[id_size] = '\0';
	return true;
}

static void card_read_read_signature(struct card_read *c, struct card_span item)
{
	size_t i = c->signature_count, n = 0, head_size = 0;
	const char *text = plain_text(card_find(item, "signature"), &n);
	const char *head = plain_text(card_find(item, "protected"), &head_size);
	uint8_t bytes[SIGN_SIGNATURE_SIZE + 6];

	if (!text || !head || i == CARD_MOST_SIGNATURES || n > 88 || head_size > 2048 ||
		base64_read(text, n, bytes) != SIGN_SIGNATURE_SIZE ||
		!card_read_read_header(head, head_size, c->signatures[i].key_id))
		return;
	memcpy(c->signatures[i].bytes, bytes, SIGN_SIGNATURE_SIZE);
	c->signatures[i].protected = strndup(head, head_size);
	if (c->signatures[i].protected)
		c->signature_count++;
}

static void card_read_read_signatures(struct card_read *c, struct card_span list)
{
	own(json_reader) struct json_reader r;

	json_read_init(&r, list.bytes, list.size, list.size);
	if (!list.bytes || json_peek(&r) != '[')
		return;
	json_enter_list(&r);
	while (json_next_item(&r)) {
		const char *start = r.at;

		if (json_skip(&r))
			card_read_read_signature(
				c, (struct card_span){ start, (size_t)(r.at - start) });
	}
}

/* --- reading: the whole card --- */

int card_read(const char *bytes, size_t n, struct card_read *ret, struct err *e)
{
	struct card_span card;
	int r;

	*ret = (struct card_read){ .canonical.max = CARD_MAX_SIZE, .is_signed.max = CARD_MAX_SIZE };
	r = card_canonicalize(bytes, n, NULL, &ret->canonical, e);
	if (r == 0)
		r = card_canonicalize_signed(bytes, n, &ret->is_signed, e);
	if (r < 0)
		return r;
	card = (struct card_span){ buf_text(&ret->canonical), ret->canonical.len };
	ret->legacy = card_find(card, CARD_LEGACY);
	card_read_read_signatures(ret, card_find(card, "signatures"));
	return find_params(ret, card, e);
}

void card_read_done(struct card_read *c)
{
	for (size_t i = 0; i < c->signature_count; i++)
		free(c->signatures[i].protected);
	buf_done(&c->canonical);
	buf_done(&c->is_signed);
}

static void card_verify_say(struct card_report *r, const char *name, enum card_result result,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void card_verify_say(
	struct card_report *r, const char *name, enum card_result result, const char *fmt, ...)
{
	struct card_property *x = r->count < CARD_MOST_PROPERTIES ? &r->items[r->count] : NULL;
	va_list args;

	/* One that has no room is no good one. */
	r->has_failed = r->has_failed || result == CARD_NO || !x;
	if (!x)
		return;
	*x = (struct card_property){ .name = name, .result = result };
	va_start(args, fmt);
	vsnprintf(x->text, sizeof(x->text), fmt, args);
	va_end(args);
	r->count++;
}

/* --- checking: the signature --- */

int card_find_signature(const struct card_read *c, const struct sign_public *key)
{
	for (size_t i = 0; i < c->signature_count; i++) {
		own(buf) struct buf bytes = { .max = 2 * CARD_MAX_SIZE };

		card_add_signed(c->signatures[i].protected, buf_text(&c->is_signed),
			c->is_signed.len, &bytes);
		if (!bytes.failed && str_eq(c->signatures[i].key_id, key->id) &&
			sign_check(key, buf_text(&bytes), bytes.len, c->signatures[i].bytes))
			return (int)i;
	}
	return -1;
}

static void verify_signature(
	const struct card_read *c, const struct sign_public *key, struct card_report *ret)
{
	if (!c->signature_count)
		card_verify_say(ret, "card.signature", CARD_NO, "the card is not signed");
	else if (!key)
		card_verify_say(ret, "card.signature", CARD_NO,
			"no key is known that could have signed the card: its header names %s",
			c->signatures[0].key_id);
	else if (card_find_signature(c, key) < 0)
		card_verify_say(ret, "card.signature", CARD_NO,
			"the card is not as the key %s has signed it", key->id);
	else
		card_verify_say(ret, "card.signature", CARD_YES, "the card is signed by the key %s",
			key->id);
}

/* --- checking: the block that is not signed --- */

static void verify_legacy(const struct card_read *c, struct card_report *ret)
{
	static const struct {
		const char *legacy, *params, *otherwise; /* what a member that is not there means */
	} pairs[] = {
		{ "isolation/level", "level", "" },
		{ "isolation/cleanenv", "cleanEnvironment", "" },
		{ "isolation/fakeroot", "fakeroot", "" },
		{ "isolation/home_canonical", "home", "" },
		{ "isolation/preflight_allowed", "preflight/allowed", "[]" },
		{ "isolation/binds_count", "binds/count", "" },
		{ "isolation/binds_writable_count", "binds/writable", "" },
	};

	if (!c->legacy.bytes)
		return;
	for (size_t i = 0; i < COUNT_OF(pairs); i++) {
		struct card_span said = card_find(c->legacy, pairs[i].legacy);
		struct card_span meant = card_find(c->params, pairs[i].params);

		if (!meant.bytes)
			meant = (struct card_span){ pairs[i].otherwise,
				strlen(pairs[i].otherwise) };
		if (said.size == meant.size && said.bytes &&
			memcmp(said.bytes, meant.bytes, said.size) == 0)
			continue;
		card_verify_say(ret, "card.older", CARD_NO, "%s is not what the signed block says",
			pairs[i].legacy);
		return;
	}
	card_verify_say(ret, "card.older", CARD_YES, "the block that is not signed says the same");
}

void card_verify(const struct card_read *c, const struct sign_public *key, struct card_report *ret)
{
	verify_signature(c, key, ret);
	verify_legacy(c, ret);
}

/* --- checking: against a record --- */

#define MOST_PATHS 32

/* Members that are one property: their names end with NULL. */
struct group {
	const char *name, *what;
	bool is_of_spec; /* the card of a spec has them too */
	const char *paths[MOST_PATHS];
};

static bool verify_is_same(struct card_span a, struct card_span b)
{
	return a.size == b.size && (!a.size || memcmp(a.bytes, b.bytes, a.size) == 0);
}

static void compare_group(const struct card_read *c, struct card_span meant, const struct group *g,
	struct card_report *ret)
{
	for (const char *const *path = g->paths; *path; path++) {
		if (verify_is_same(card_find(c->params, *path), card_find(meant, *path)))
			continue;
		card_verify_say(
			ret, g->name, CARD_NO, "%s on the card is not what the record says", *path);
		return;
	}
	card_verify_say(ret, g->name, CARD_YES, "%s as in the record", g->what);
}

static void compare_all(
	const struct card_read *c, struct card_span meant, bool is_of_run, struct card_report *ret)
{
	static const struct group groups[] = {
		{ "card.level", "level and engine", true, { "level", "engine" } },
		{ "card.digests", "spec and plan", true, { "specDigest", "planDigest" } },
		{ "card.run", "run, outcome and effects", false,
			{ "basis", "run/id", "run/outcome", "run/effects", "run/inChain",
				"run/record/key" } },
		{ "card.guarantees", "what was observed and what is degraded", false,
			{ "observed", "degraded" } },
		{ "card.preflight", "preflight", false,
			{ "preflight/sha256", "preflight/passed" } },
	};
	struct group mechanisms = { "card.mechanisms", "every mechanism", false,
		{ "networkNamespace", "landlockAbi" } };

	for (size_t i = 0; i < COUNT_OF(groups); i++)
		if (is_of_run || groups[i].is_of_spec)
			compare_group(c, meant, &groups[i], ret);
	for (size_t i = 0; card_mechanism(i) && i + 3 < MOST_PATHS; i++)
		mechanisms.paths[i + 2] = card_mechanism(i);
	if (is_of_run)
		compare_group(c, meant, &mechanisms, ret);
}

/* Adds whether the card names the record's file. */
static void compare_record(
	const struct card_read *c, const char *digest, bool is_of_run, struct card_report *ret)
{
	char wanted[SHA256_HEX_SIZE + 2];

	snprintf(wanted, sizeof(wanted), "\"%s\"", digest);
	if (!is_of_run)
		card_verify_say(ret, "card.record", CARD_ABSENT,
			"the card is of a spec, and names no record");
	else if (card_is(card_find(c->params, "run/record/sha256"), wanted))
		card_verify_say(ret, "card.record", CARD_YES, "the card names this record");
	else
		card_verify_say(ret, "card.record", CARD_NO, "the card is of another record");
}

void card_verify_record(const struct card_read *c, const struct record_read *r, const char *digest,
	const char *key, struct card_report *ret)
{
	bool is_of_run = !card_is(card_find(c->params, "basis"), "\"declared\"");
	own(buf) struct buf text = { .max = CARD_MAX_SIZE }, form = { .max = CARD_MAX_SIZE };
	struct card meant;
	struct err e = { 0 };
	struct json j;

	compare_record(c, digest, is_of_run, ret);
	if (card_from_record(NULL, r, digest, key, &meant, &e) < 0) {
		card_verify_say(ret, "card.level", CARD_NO, "%.200s", e.text);
		return;
	}
	json_init(&j, &text, 0);
	json_open_map(&j, NULL);
	card_print_isolation(&meant, &j);
	json_close_map(&j);
	if (card_canonicalize(buf_text(&text), text.len, NULL, &form, &e) < 0)
		card_verify_say(ret, "card.level", CARD_NO, "%.200s", e.text);
	else
		compare_all(c, (struct card_span){ buf_text(&form), form.len }, is_of_run, ret);
}
