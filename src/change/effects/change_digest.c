#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "change/change.h"

/*
 * The digest is the SHA-256 of fields that each end with a NUL, which no field has in it:
 *
 *   bawn-effects-1
 *   for each effect, by path: its path, the old path or nothing, change, type, mode in octal,
 *     size, hash in hex or nothing, how many attributes;
 *     for each attribute, by name: its name, change, hash in hex or nothing
 *
 * Type, mode, size and hash are those the run left. docs/effects.md says the same for people who
 * compute it themselves. No time, inode or place is in it.
 */

static void digest_add_text(struct sha256 *s, const char *text)
{
	sha256_add(s, text, strlen(text) + 1);
}

static void add_hash(struct sha256 *s, const uint8_t *hash)
{
	char hex[SHA256_HEX_SIZE] = "";

	if (hash)
		sha256_print(hash, hex);
	digest_add_text(s, hex);
}

static void add_number(struct sha256 *s, uint64_t n, bool is_octal)
{
	char text[32];

	if (is_octal)
		snprintf(text, sizeof(text), "%04" PRIo64, n);
	else
		snprintf(text, sizeof(text), "%" PRIu64, n);
	digest_add_text(s, text);
}

static void add_effect(struct sha256 *s, const struct change_effect *x)
{
	digest_add_text(s, x->path);
	digest_add_text(s, x->from ? x->from : "");
	digest_add_text(s, change_change_word(x->change));
	digest_add_text(s, change_type_word(x->after.type));
	add_number(s, x->after.mode, true);
	add_number(s, x->after.size, false);
	add_hash(s, x->after.has_hash ? x->after.hash : NULL);
	add_number(s, x->attribute_count, false);
	for (size_t i = 0; i < x->attribute_count; i++) {
		const struct change_attribute *a = &x->attributes[i];

		digest_add_text(s, a->name);
		digest_add_text(s, change_change_word(a->change));
		add_hash(s, a->change == CHANGE_DELETED ? NULL : a->hash);
	}
}

void change_digest(const struct change_effects *x, char ret[static SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	digest_add_text(&s, "bawn-effects-1");
	for (size_t i = 0; i < x->count; i++)
		add_effect(&s, &x->items[i]);
	sha256_finish(&s, digest);
	sha256_print(digest, ret);
}
