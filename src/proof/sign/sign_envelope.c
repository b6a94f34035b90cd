/* Envelopes of DSSE 1.0. Those that are read may be anybody's. */
#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/json_read.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/sign/sign.h"

/* --- writing --- */

void sign_print_pae(const char *type, const void *payload, size_t n, struct buf *out)
{
	buf_printf(out, "DSSEv1 %zu %s %zu ", strlen(type), type, n);
	buf_add(out, payload, n);
}

void sign_print_envelope(const struct sign_key *key, const void *payload, size_t n, struct buf *out)
{
	own(buf) struct buf pae = { .max = SIZE_MAX / 4 };
	uint8_t signature[SIGN_SIGNATURE_SIZE];

	sign_print_pae(SIGN_PAYLOAD_TYPE, payload, n, &pae);
	if (pae.failed) {
		out->failed = true;
		return;
	}
	sign_bytes(key, pae.data, pae.len, signature);
	buf_puts(out, "{\"payloadType\":\"" SIGN_PAYLOAD_TYPE "\",\"payload\":\"");
	base64_add(out, payload, n, false);
	buf_printf(out, "\",\"signatures\":[{\"keyid\":\"%s\",\"sig\":\"", key->public.id);
	base64_add(out, signature, sizeof(signature), false);
	buf_puts(out, "\"}]}\n");
}

/* --- reading --- */

struct reader {
	struct json_reader json;
	struct arena *arena;
	struct sign_envelope *ret;
	bool is_full; /* the arena is */
};

/* Notes that a member is there; false: it was already, and readers would differ about which holds.
 */
static bool envelope_is_first(struct reader *r, bool *seen)
{
	if (*seen)
		return json_wrong(&r->json, "every member once");
	*seen = true;
	return true;
}

static bool note_full(struct reader *r)
{
	r->is_full = true;
	return json_wrong(&r->json, "less");
}

static bool read_copy(struct reader *r, const char **ret)
{
	const char *text;

	if (!json_read_text(&r->json, &text))
		return false;
	*ret = arena_copy(r->arena, text, r->json.text.len);
	return *ret ? true : note_full(r);
}

/* A text of base64 as bytes of the arena's. */
static bool envelope_read_bytes(struct reader *r, const uint8_t **ret, size_t *ret_size)
{
	const char *text;
	uint8_t *bytes;
	ssize_t n;

	if (!json_read_text(&r->json, &text))
		return false;
	bytes = arena_alloc(r->arena, r->json.text.len / 4 * 3 + 3);
	if (!bytes)
		return note_full(r);
	n = base64_read(text, r->json.text.len, bytes);
	if (n < 0)
		return json_wrong(&r->json, "base64");
	*ret = bytes;
	*ret_size = (size_t)n;
	return true;
}

static void envelope_read_signature(struct reader *r)
{
	bool has_id = false, has_bytes = false;
	const char *key, *id = "";
	const uint8_t *bytes = NULL;
	size_t size = 0;

	json_enter_map(&r->json);
	while (json_next_key(&r->json, &key))
		if (str_eq(key, "keyid"))
			(void)(envelope_is_first(r, &has_id) && read_copy(r, &id));
		else if (str_eq(key, "sig"))
			(void)(envelope_is_first(r, &has_bytes) &&
				envelope_read_bytes(r, &bytes, &size));
		else
			json_skip(&r->json);
	if (!has_bytes)
		json_wrong(&r->json, "a signature");
	/* Another length is of another kind of key. */
	if (r->json.wrong || size != SIGN_SIGNATURE_SIZE)
		return;
	r->ret->signatures[r->ret->count].key_id = id;
	memcpy(r->ret->signatures[r->ret->count++].bytes, bytes, size);
}

static void envelope_read_signatures(struct reader *r)
{
	size_t count = 0;

	json_enter_list(&r->json);
	while (json_next_item(&r->json))
		if (count++ < SIGN_MOST_SIGNATURES)
			envelope_read_signature(r);
		else
			json_wrong(&r->json, "fewer signatures");
	if (!count)
		json_wrong(&r->json, "a signature");
}

static void envelope_read_members(struct reader *r)
{
	bool has_type = false, has_payload = false, has_signatures = false;
	const char *key;

	json_enter_map(&r->json);
	while (json_next_key(&r->json, &key))
		if (str_eq(key, "payloadType"))
			(void)(envelope_is_first(r, &has_type) && read_copy(r, &r->ret->type));
		else if (str_eq(key, "payload"))
			(void)(envelope_is_first(r, &has_payload) &&
				envelope_read_bytes(r, &r->ret->payload, &r->ret->size));
		else if (str_eq(key, "signatures")) {
			if (envelope_is_first(r, &has_signatures))
				envelope_read_signatures(r);
		} else
			json_skip(&r->json);
	if (!has_type || !has_payload || !has_signatures)
		json_wrong(&r->json, "payloadType, payload and signatures");
	json_read_end(&r->json);
}

int sign_read_envelope(
	const char *line, size_t n, struct arena *arena, struct sign_envelope *ret, struct err *e)
{
	struct reader r = { .arena = arena, .ret = ret };
	const char *wrong;

	*ret = (struct sign_envelope){ 0 };
	json_read_init(&r.json, line, n, n);
	envelope_read_members(&r);
	wrong = r.json.wrong;
	r.is_full = r.is_full || (wrong && r.json.text.failed);
	json_reader_done(&r.json);
	if (!wrong)
		return 0;
	*ret = (struct sign_envelope){ 0 };
	if (r.is_full)
		return err_set(e, ERR_SYS, ENOMEM, "there is no memory for the envelope");
	return err_set(e, ERR_REFUSED, EBADMSG, "this is no DSSE envelope: expected %s", wrong);
}

bool sign_is_by(const struct sign_envelope *x, const struct sign_public *key)
{
	own(buf) struct buf pae = { .max = SIZE_MAX / 4 };

	sign_print_pae(x->type, x->payload, x->size, &pae);
	for (size_t i = 0; !pae.failed && i < x->count; i++)
		if (sign_check(key, pae.data, pae.len, x->signatures[i].bytes))
			return true;
	return false;
}
