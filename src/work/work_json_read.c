/*
 * Reads effects.json. The file is the operator's own, but what it says moves files: it is believed
 * only where it could have been written by work_json.c, and where its digest is that of its
 * effects.
 */
#include "work/work_json_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "work/work_git.h"
#include "work/work_json.h"

static void work_reader_done(struct work_reader *r)
{
	json_reader_done(&r->json);
	free(r->items);
}

/* A path as a walk makes it: names and single slashes, and never up. */
static bool is_path(const char *path)
{
	if (!path || strlen(path) > WORK_MAX_PATH)
		return false;
	for (;;) {
		size_t n = strcspn(path, "/");

		if (n == 0 || (n == 1 && path[0] == '.') || (n == 2 && str_starts(path, "..")))
			return false;
		if (!path[n])
			return true;
		path += n + 1;
	}
}

/* --- a state --- */

static bool read_type(void *reader, void *into)
{
	struct work_reader *r = reader;
	static const char *const words[WORK_MAX_WORDS] = { "nothing", "file", "folder", "link",
		"special" };
	unsigned type = 0;
	bool is_good = work_read_word(r, words, &type);

	*(enum work_type *)into = type;
	return is_good;
}

static bool read_mode(void *reader, void *into)
{
	struct work_reader *r = reader;
	const char *text;
	unsigned mode = 0;

	if (!json_read_text(&r->json, &text))
		return false;
	if (strlen(text) != 4 || strspn(text, "01234567") != 4)
		return json_wrong(&r->json, "four octal digits");
	for (size_t i = 0; i < 4; i++)
		mode = mode << 3 | (unsigned)(text[i] - '0');
	*(uint16_t *)into = (uint16_t)mode;
	return true;
}

static bool read_size(void *reader, void *into)
{
	struct work_reader *r = reader;
	int64_t size;

	if (!json_read_int(&r->json, &size) || size < 0)
		return json_wrong(&r->json, "a size");
	*(uint64_t *)into = (uint64_t)size;
	return true;
}

static bool read_content(void *reader, void *into)
{
	struct work_reader *r = reader;
	struct work_state *s = into;

	s->has_hash = true;
	return work_read_hash(r, s->hash);
}

static bool read_state(void *reader, void *into)
{
	struct work_reader *r = reader;
	static const struct json_field fields[] = {
		{ "type", read_type, offsetof(struct work_state, type) },
		{ "mode", read_mode, offsetof(struct work_state, mode) },
		{ "size", read_size, offsetof(struct work_state, size) },
		{ "sha256", read_content, 0 },
	};
	struct work_state *s = into;
	bool has_content;

	if (!JSON_READ_FIELDS(r, fields, s))
		return false;
	has_content = s->type == WORK_FILE || s->type == WORK_LINK;
	if (s->type == WORK_NOTHING || (!has_content && (s->size || s->has_hash)))
		return json_wrong(&r->json, "a state that can be");
	return true;
}

/* --- attributes --- */

static bool read_attribute(struct work_reader *r, struct work_attribute *a)
{
	static const struct json_field fields[] = {
		{ "name", work_read_name, offsetof(struct work_attribute, name) },
		{ "name_hex", work_read_hex_name, offsetof(struct work_attribute, name) },
		{ "change", work_read_change, offsetof(struct work_attribute, change) },
		{ "sha256", work_read_hash, offsetof(struct work_attribute, hash) },
	};

	if (!JSON_READ_FIELDS(r, fields, a))
		return false;
	if (!a->name || !str_starts(a->name, "user.") || str_starts(a->name, "user.overlay.") ||
		a->change == WORK_RENAMED)
		return json_wrong(&r->json, "an attribute of users");
	if (a->change == WORK_DELETED)
		memset(a->hash, 0, sizeof(a->hash));
	return true;
}

/* More than any file can have: the kernel's list of names is not longer. */
#define MAX_ATTRIBUTES 16384

static bool read_attributes(void *reader, void *into)
{
	struct work_reader *r = reader;
	struct work_effect *x = into;
	own_free struct work_attribute *items = NULL;
	struct work_attribute *kept;
	size_t n = 0, room = 0;

	if (!json_enter_list(&r->json))
		return false;
	while (json_next_item(&r->json)) {
		if (n == room) {
			struct work_attribute *grown;

			room = room ? room * 2 : 4;
			grown = n < MAX_ATTRIBUTES ? reallocarray(items, room, sizeof(*items))
						   : NULL;
			if (!grown)
				return json_wrong(&r->json, "fewer attributes");
			items = grown;
		}
		items[n] = (struct work_attribute){ 0 };
		if (!read_attribute(r, &items[n]) ||
			(n && strcmp(items[n - 1].name, items[n].name) >= 0))
			return json_wrong(&r->json, "attributes in their order");
		n++;
	}
	kept = n ? arena_array(&r->ret->arena, n, sizeof(*kept)) : NULL;
	if (!kept)
		return json_wrong(&r->json, "an attribute");
	memcpy(kept, items, n * sizeof(*kept));
	x->attributes = kept;
	x->attribute_count = n;
	return true;
}

/* --- an effect --- */

static bool read_mark(void *reader, void *into)
{
	struct work_reader *r = reader;
	static const char *const words[WORK_MAX_WORDS] = { "plain", "runs", "held", "lock" };
	unsigned mark = 0;
	bool is_good = work_read_word(r, words, &mark);

	*(enum work_mark *)into = mark;
	return is_good;
}

static bool read_lines(void *reader, void *into)
{
	struct work_reader *r = reader;
	struct work_effect *x = into;
	int64_t lines[2] = { 0 };

	if (!work_read_numbers(r, lines, 2))
		return false;
	for (size_t i = 0; i < 2; i++)
		if (lines[i] < 0 || lines[i] > UINT32_MAX)
			return json_wrong(&r->json, "a number of lines");
	x->is_text = true;
	x->lines_added = (uint32_t)lines[0];
	x->lines_removed = (uint32_t)lines[1];
	return true;
}

static bool read_flag(void *reader, void *into)
{
	struct work_reader *r = reader;
	return json_read_bool(&r->json, into);
}

static bool read_below(void *reader, void *into)
{
	struct work_reader *r = reader;
	int64_t n[4] = { 0 };

	if (!work_read_numbers(r, n, 4))
		return false;
	*(struct work_signature *)into =
		(struct work_signature){ (uint64_t)n[0], (uint64_t)n[1], n[2], n[3] };
	return true;
}

/* Do the parts make sense together? */
static bool is_sound(const struct work_effect *x)
{
	bool was = x->before.type != WORK_NOTHING, is = x->after.type != WORK_NOTHING;
	bool are_files = x->before.type == WORK_FILE && x->after.type == WORK_FILE;
	bool is_folder = x->before.type == WORK_FOLDER || x->after.type == WORK_FOLDER;
	bool comes_or_goes = x->change == WORK_ADDED || x->change == WORK_DELETED;

	if (was != (x->change != WORK_ADDED) || is != (x->change != WORK_DELETED))
		return false;
	if ((x->change == WORK_RENAMED) != (x->from != NULL) || (x->from && !are_files))
		return false;
	if (x->has_base && !(are_files && x->change == WORK_CHANGED &&
				   (x->is_text || work_git_place_of(x->path).is_index)))
		return false;
	return !x->is_implied || (is_folder && comes_or_goes);
}

static bool read_effect(struct work_reader *r, struct work_effect *x)
{
	/* In the order in which they are written. */
	static const struct json_field fields[] = {
		{ "path", work_read_name, offsetof(struct work_effect, path) },
		{ "path_hex", work_read_hex_name, offsetof(struct work_effect, path) },
		{ "from", work_read_name, offsetof(struct work_effect, from) },
		{ "from_hex", work_read_hex_name, offsetof(struct work_effect, from) },
		{ "change", work_read_change, offsetof(struct work_effect, change) },
		{ "mark", read_mark, offsetof(struct work_effect, mark) },
		{ "before", read_state, offsetof(struct work_effect, before) },
		{ "after", read_state, offsetof(struct work_effect, after) },
		{ "attributes", read_attributes, 0 },
		{ "lines", read_lines, 0 },
		{ "implied", read_flag, offsetof(struct work_effect, is_implied) },
		{ "moved", read_flag, offsetof(struct work_effect, has_moved) },
		{ "base", read_flag, offsetof(struct work_effect, has_base) },
		{ "below", read_below, offsetof(struct work_effect, below) },
		{ "note", work_read_name, offsetof(struct work_effect, note) },
	};

	if (!JSON_READ_FIELDS(r, fields, x))
		return false;
	if (!is_path(x->path) || (x->from && !is_path(x->from)))
		return json_wrong(&r->json, "a path below the tree");
	return is_sound(x) ? true : json_wrong(&r->json, "a change that can be");
}

/* --- all of them --- */

static bool read_version(void *reader, void *into)
{
	struct work_reader *r = reader;
	int64_t version;

	(void)into;
	if (!json_read_int(&r->json, &version))
		return false;
	return version == WORK_JSON_VERSION ? true : json_wrong(&r->json, "version 1");
}

static bool read_digest(void *reader, void *into)
{
	struct work_reader *r = reader;
	uint8_t bytes[SHA256_SIZE];

	if (!work_read_hash(r, bytes))
		return false;
	sha256_print(bytes, into);
	return true;
}

static bool read_effects(void *reader, void *into)
{
	struct work_reader *r = reader;
	(void)into;
	if (!json_enter_list(&r->json))
		return false;
	for (; json_next_item(&r->json); r->count++) {
		if (r->count == r->room) {
			size_t room = r->room ? r->room * 2 : 64;
			struct work_effect *grown =
				r->count < WORK_MAX_EFFECTS
					? reallocarray(r->items, room, sizeof(*grown))
					: NULL;

			if (!grown)
				return json_wrong(&r->json, "fewer effects");
			r->items = grown;
			r->room = room;
		}
		r->items[r->count] = (struct work_effect){ 0 };
		if (!read_effect(r, &r->items[r->count]))
			return false;
		if (r->count && strcmp(r->items[r->count - 1].path, r->items[r->count].path) >= 0)
			return json_wrong(&r->json, "effects in their order");
	}
	return !r->json.wrong;
}

int work_effects_parse(const char *bytes, size_t n, struct work_effects *ret, struct err *e)
{
	static const struct json_field fields[] = {
		{ "version", read_version, 0 },
		{ "digest", read_digest, offsetof(struct work_effects, digest) },
		{ "effects", read_effects, 0 },
	};
	own(work_reader) struct work_reader r = { .ret = ret };

	json_read_init(&r.json, bytes, n, WORK_MAX_PATH * 2);
	ret->digest[0] = '\0';
	if (JSON_READ_FIELDS(&r, fields, ret) && json_read_end(&r.json) && !ret->digest[0])
		json_wrong(&r.json, "a digest");
	if (r.json.wrong)
		return err_set(e, ERR_SYS, EBADMSG,
			"cannot read the effects of the run: expected %s in number %zu",
			r.json.wrong, r.count + 1);
	ret->items = arena_array(&ret->arena, r.count, sizeof(*ret->items));
	if (!ret->items)
		return err_set(
			e, ERR_SYS, ENOMEM, "cannot read the effects of the run: out of memory");
	if (r.count)
		memcpy(ret->items, r.items, r.count * sizeof(*ret->items));
	ret->count = r.count;
	return 0;
}

int work_effects_read(const char *bytes, size_t n, struct work_effects *ret, struct err *e)
{
	char digest[SHA256_HEX_SIZE];
	int r = work_effects_parse(bytes, n, ret, e);

	if (r < 0)
		return r;
	work_digest(ret, digest);
	if (str_eq(digest, ret->digest))
		return 0;
	ret->count = 0;
	return err_set(e, ERR_SYS, EBADMSG,
		"cannot use the effects of the run: their digest is another one");
}
