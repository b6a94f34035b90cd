#include "proof/record/record_read_values.h"

#include <errno.h>
#include <string.h>

#include "base/sha256.h"
#include "base/str.h"

void record_reader_begin(struct record_reader *r, const char *bytes, size_t n, struct arena *arena)
{
	*r = (struct record_reader){ .arena = arena };
	json_read_init(&r->json, bytes, n, RECORD_MAX_SIZE);
	/* A path in a sentence may be any bytes. */
	r->json.takes_bytes = true;
	if (n > RECORD_MAX_STATEMENT)
		json_wrong(&r->json, "fewer bytes");
}

void record_reader_done(struct record_reader *r)
{
	json_reader_done(&r->json);
}

int record_reader_end(struct record_reader *r, const char *what, struct err *e)
{
	if (json_read_end(&r->json))
		return 0;
	return err_set(e, ERR_SYS, EBADMSG, "%s cannot be read: expected %s", what, r->json.wrong);
}

static const char *read_values_copy(struct record_reader *r, const char *text, size_t n)
{
	const char *kept = arena_copy(r->arena, text, n);

	if (!kept)
		json_wrong(&r->json, "less text");
	return kept;
}

bool record_read_text(void *reader, void *into)
{
	struct record_reader *r = reader;
	const char **ret = into, *text;

	if (json_take_null(&r->json))
		return true;
	if (!json_read_text(&r->json, &text))
		return false;
	*ret = read_values_copy(r, text, r->json.text.len);
	return *ret != NULL;
}

bool record_read_sha256(void *reader, void *into)
{
	struct record_reader *r = reader;
	const char **ret = into;
	uint8_t bytes[SHA256_SIZE];

	if (!record_read_text(reader, into))
		return false;
	return !*ret || sha256_parse(*ret, bytes) == 0 ? true : json_wrong(&r->json, "a SHA-256");
}

bool record_read_digest(void *reader, void *into)
{
	static const struct json_field fields[] = { { "sha256", record_read_sha256, 0 } };
	struct record_reader *r = reader;

	return json_take_null(&r->json) || JSON_READ_FIELDS(reader, fields, into);
}

bool record_read_bool(void *reader, void *into)
{
	struct record_reader *r = reader;

	return json_take_null(&r->json) || json_read_bool(&r->json, into);
}

bool record_read_count(void *reader, void *into)
{
	struct record_reader *r = reader;
	int64_t *ret = into;

	if (json_take_null(&r->json))
		return true;
	if (!json_read_int(&r->json, ret))
		return false;
	return *ret >= 0 ? true : json_wrong(&r->json, "a number that is not negative");
}

bool record_read_word(
	struct record_reader *r, const char *const *words, size_t count, unsigned *ret)
{
	const char *text;

	if (!json_read_text(&r->json, &text))
		return false;
	for (unsigned i = 0; i < count; i++)
		if (str_eq(text, words[i])) {
			*ret = i;
			return true;
		}
	return json_wrong(&r->json, "a known word");
}

/* --- lists --- */

void *record_grow(struct record_reader *r, void **items, size_t *count, size_t size)
{
	size_t n = *count;

	/* Room for 0, 4, 8, 16 …: full when it is a power of two. */
	if (n == 0 || (n >= 4 && (n & (n - 1)) == 0)) {
		void *grown =
			n < RECORD_MAX_ITEMS ? arena_array(r->arena, n ? 2 * n : 4, size) : NULL;

		if (!grown) {
			json_wrong(&r->json, "fewer of them");
			return NULL;
		}
		if (*items)
			memcpy(grown, *items, n * size);
		*items = grown;
	}
	++*count;
	return (char *)*items + n * size;
}

bool record_read_texts(void *reader, void *into)
{
	struct record_reader *r = reader;
	struct record_texts *ret = into;
	void *items = NULL;

	if (json_take_null(&r->json))
		return true;
	if (!json_enter_list(&r->json))
		return false;
	while (json_next_item(&r->json)) {
		const char **text = record_grow(r, &items, &ret->count, sizeof(*text));

		if (!text || !record_read_text(reader, text))
			return false;
		if (!*text)
			return json_wrong(&r->json, "a text");
	}
	ret->items = items;
	return !r->json.wrong;
}

bool record_read_artifacts(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "name", record_read_text, offsetof(struct record_artifact, name) },
		{ "digest", record_read_digest, offsetof(struct record_artifact, sha256) },
	};
	struct record_reader *r = reader;
	struct record_artifacts *ret = into;
	void *items = NULL;

	if (json_take_null(&r->json))
		return true;
	if (!json_enter_list(&r->json))
		return false;
	while (json_next_item(&r->json)) {
		struct record_artifact *one = record_grow(r, &items, &ret->count, sizeof(*one));

		if (!one || !JSON_READ_FIELDS(reader, fields, one))
			return false;
	}
	ret->items = items;
	return !r->json.wrong;
}
