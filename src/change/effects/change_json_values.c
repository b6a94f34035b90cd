#include "change/effects/change_json_read.h"

#include <string.h>

#include "base/str.h"

bool change_read_word(
	struct change_reader *r, const char *const words[static CHANGE_MAX_WORDS], unsigned *ret)
{
	const char *text;

	if (!json_read_text(&r->json, &text))
		return false;
	for (unsigned i = 0; i < CHANGE_MAX_WORDS && words[i]; i++)
		if (str_eq(text, words[i])) {
			*ret = i;
			return true;
		}
	return json_wrong(&r->json, "a known word");
}

bool change_read_change(void *reader, void *into)
{
	struct change_reader *r = reader;
	static const char *const words[CHANGE_MAX_WORDS] = { "added", "changed", "deleted",
		"renamed" };
	enum change_change *ret = into;
	unsigned change = 0;
	bool is_good = change_read_word(r, words, &change);

	*ret = change;
	return is_good;
}

bool change_read_hash(void *reader, void *into)
{
	struct change_reader *r = reader;
	const char *hex;

	if (!json_read_text(&r->json, &hex))
		return false;
	return sha256_parse(hex, into) == 0 ? true : json_wrong(&r->json, "a hash");
}

bool change_read_numbers(struct change_reader *r, int64_t *ret, size_t count)
{
	size_t n = 0;

	if (!json_enter_list(&r->json))
		return false;
	while (json_next_item(&r->json)) {
		if (n == count)
			return json_wrong(&r->json, "fewer numbers");
		if (!json_read_int(&r->json, &ret[n++]))
			return false;
	}
	return n == count ? true : json_wrong(&r->json, "more numbers");
}

/* --- names: as text, or in hex where they are none --- */

bool change_read_name(void *reader, void *into)
{
	struct change_reader *r = reader;
	const char **ret = into, *text;

	if (*ret || !json_read_text(&r->json, &text))
		return json_wrong(&r->json, "one name");
	*ret = arena_copy(&r->ret->arena, text, r->json.text.len);
	return *ret ? true : json_wrong(&r->json, "less memory");
}

bool change_read_hex_name(void *reader, void *into)
{
	struct change_reader *r = reader;
	const char **ret = into, *hex;
	size_t n;
	char *name;

	if (*ret || !json_read_text(&r->json, &hex))
		return json_wrong(&r->json, "one name");
	n = r->json.text.len;
	name = n % 2 ? NULL : arena_alloc(&r->ret->arena, n / 2 + 1);
	for (size_t i = 0; name && i < n; i += 2) {
		int high = str_hex_digit(hex[i]), low = str_hex_digit(hex[i + 1]);

		if (high < 0 || low < 0 || high + low == 0) /* NUL ends names */
			return json_wrong(&r->json, "bytes in hex");
		name[i / 2] = (char)(high << 4 | low);
	}
	*ret = name;
	return name ? true : json_wrong(&r->json, "bytes in hex");
}
