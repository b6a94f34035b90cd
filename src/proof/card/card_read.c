#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json_read.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/card/card.h"

/* --- finding --- */

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

bool card_is(struct card_span span, const char *json)
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

/* --- signatures --- */

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

/* --- the whole --- */

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
