#include <string.h>

#include "base/base64.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/card/card.h"

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

void card_sign(const struct sign_key *key, const struct buf *canonical, struct json *j)
{
	own(buf) struct buf head = { .max = 512 }, protected = { .max = 1024 },
			    to_sign = { .max = 2 * CARD_MAX_SIZE }, text = { .max = 512 };
	uint8_t signature[SIGN_SIGNATURE_SIZE];
	struct json h;

	json_init(&h, &head, 0);
	json_open_map(&h, NULL);
	json_text(&h, "alg", "EdDSA");
	json_text(&h, "kid", key->public.id);
	json_text(&h, "typ", "JOSE");
	json_close_map(&h);
	base64_add(&protected, buf_text(&head), head.len, true);
	card_add_signed(buf_text(&protected), buf_text(canonical), canonical->len, &to_sign);
	sign_bytes(key, buf_text(&to_sign), to_sign.len, signature);
	base64_add(&text, signature, sizeof(signature), true);
	if (head.failed || protected.failed || to_sign.failed || text.failed)
		j->out->failed = true;
	json_open_map(j, NULL);
	json_text(j, "protected", buf_text(&protected));
	json_text(j, "signature", buf_text(&text));
	json_close_map(j);
}
