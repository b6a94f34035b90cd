/*
 * change_effects - the effects of a run: their words, their digest, and effects.json.
 *
 * The file is the operator's own, but what it says moves files: it is believed only where it could
 * have been written here, and where its digest is that of its effects.
 */
#include "change/change.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_fields.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"
#include "change/effects/change_json.h"
#include "change/git/change_git.h"

/* What reads effects.json value by value: words, hashes, names. Maps are read by tables. */
struct change_reader {
	struct json_reader json;
	struct change_effects *ret;
	struct change_effect *items; /* until their number is known */
	size_t count, room;
};

/* One of the words, as its number. */
#define CHANGE_MAX_WORDS 8

/* --- words and sums --- */

void change_effects_init(struct change_effects *x)
{
	memset(x, 0, sizeof(*x));
	arena_init(&x->arena, CHANGE_MAX_MEMORY);
}

void change_effects_done(struct change_effects *x)
{
	arena_done(&x->arena);
	x->items = NULL;
	x->count = 0;
}

static const char *change_type_word(enum change_type t)
{
	static const char *const words[] = { "nothing", "file", "folder", "link", "special" };

	return words[t];
}

const char *change_change_word(enum change_change c)
{
	static const char *const words[] = { "added", "changed", "deleted", "renamed" };

	return words[c];
}

const char *change_mark_word(enum change_mark m)
{
	static const char *const words[] = { "plain", "runs", "held", "lock" };

	return words[m];
}

void change_sum_up(const struct change_effects *x, struct change_sum *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < x->count; i++) {
		const struct change_effect *effect = &x->items[i];

		if (effect->is_implied)
			continue;
		ret->added += effect->change == CHANGE_ADDED;
		ret->changed += effect->change == CHANGE_CHANGED;
		ret->deleted += effect->change == CHANGE_DELETED;
		ret->renamed += effect->change == CHANGE_RENAMED;
		ret->held += effect->mark == CHANGE_HELD;
		ret->runs += effect->mark == CHANGE_RUNS;
	}
}

/* --- digest --- */

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

/* --- writing --- */

/* What is false, nothing or zero is left out. */

static bool json_is_utf8(const char *text)
{
	size_t n = strlen(text);
	uint32_t c;

	for (size_t i = 0, width; i < n; i += width) {
		width = utf8_decode(text + i, n - i, &c);
		if (width == 0)
			return false;
	}
	return true;
}

void change_json_name(struct json *j, const char *key, const char *hex_key, const char *name)
{
	own(buf) struct buf hex = { .max = CHANGE_MAX_PATH * 2 };

	if (json_is_utf8(name)) {
		json_text(j, key, name);
		return;
	}
	for (; *name; name++)
		buf_printf(&hex, "%02x", (unsigned char)*name);
	json_text(j, hex_key, buf_text(&hex));
	j->out->failed |= hex.failed;
}

static void json_print_hash(struct json *j, const uint8_t hash[static SHA256_SIZE])
{
	char hex[SHA256_HEX_SIZE];

	sha256_print(hash, hex);
	json_text(j, "sha256", hex);
}

static void print_flag(struct json *j, const char *key, bool is_so)
{
	if (is_so)
		json_bool(j, key, true);
}

static void print_state(struct json *j, const char *key, const struct change_state *s)
{
	char mode[16];

	if (s->type == CHANGE_NOTHING)
		return;
	snprintf(mode, sizeof(mode), "%04o", s->mode);
	json_open_map(j, key);
	json_text(j, "type", change_type_word(s->type));
	json_text(j, "mode", mode);
	if (s->type == CHANGE_FILE || s->type == CHANGE_LINK)
		json_int(j, "size", (int64_t)s->size);
	if (s->has_hash)
		json_print_hash(j, s->hash);
	json_close_map(j);
}

static void print_attributes(struct json *j, const struct change_effect *x)
{
	if (!x->attribute_count)
		return;
	json_open_list(j, "attributes");
	for (size_t i = 0; i < x->attribute_count; i++) {
		const struct change_attribute *a = &x->attributes[i];

		json_open_map(j, NULL);
		change_json_name(j, "name", "name_hex", a->name);
		json_text(j, "change", change_change_word(a->change));
		if (a->change != CHANGE_DELETED)
			json_print_hash(j, a->hash);
		json_close_map(j);
	}
	json_close_list(j);
}

/* In order: inode, size, mtime and ctime in nanoseconds. */
static void print_signature(struct json *j, const struct change_signature *s)
{
	if (!s->modified_ns && !s->changed_ns)
		return;
	json_open_list(j, "below");
	json_int(j, NULL, (int64_t)s->inode);
	json_int(j, NULL, (int64_t)s->size);
	json_int(j, NULL, s->modified_ns);
	json_int(j, NULL, s->changed_ns);
	json_close_list(j);
}

static void print_mark(struct json *j, const struct change_effect *x)
{
	const char *reason;

	if (x->mark == CHANGE_PLAIN)
		return;
	json_text(j, "mark", change_mark_word(x->mark));
	reason = change_mark_reason(x->path);
	if (!reason && x->from)
		reason = change_mark_reason(x->from);
	if (reason)
		json_text(j, "why", reason);
}

static void print_effect(struct json *j, const struct change_effect *x)
{
	json_open_map(j, NULL);
	change_json_name(j, "path", "path_hex", x->path);
	if (x->from)
		change_json_name(j, "from", "from_hex", x->from);
	json_text(j, "change", change_change_word(x->change));
	print_mark(j, x);
	print_state(j, "before", &x->before);
	print_state(j, "after", &x->after);
	print_attributes(j, x);
	if (x->is_text) {
		json_open_list(j, "lines");
		json_int(j, NULL, x->lines_added);
		json_int(j, NULL, x->lines_removed);
		json_close_list(j);
	}
	print_flag(j, "implied", x->is_implied);
	print_flag(j, "moved", x->has_moved);
	print_flag(j, "base", x->has_base);
	print_signature(j, &x->below);
	if (x->note)
		json_text(j, "note", x->note);
	json_close_map(j);
}

void change_effects_print(const struct change_effects *x,
	bool (*only)(void *of, const struct change_effect *), void *of, struct buf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	json_int(&j, "version", CHANGE_JSON_VERSION);
	json_text(&j, "digest", x->digest);
	json_open_list(&j, "effects");
	for (size_t i = 0; i < x->count; i++)
		if (!only || only(of, &x->items[i]))
			print_effect(&j, &x->items[i]);
	json_close_list(&j);
	json_close_map(&j);
	buf_putc(out, '\n');
}

/* --- reading: json values --- */

static bool change_read_word(
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

/* Into an enum change_change; into SHA256_SIZE bytes. */
static bool change_read_change(void *reader, void *into)
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

static bool change_read_hash(void *reader, void *into)
{
	struct change_reader *r = reader;
	const char *hex;

	if (!json_read_text(&r->json, &hex))
		return false;
	return sha256_parse(hex, into) == 0 ? true : json_wrong(&r->json, "a hash");
}

/* `count` integers, all there are. */
static bool change_read_numbers(struct change_reader *r, int64_t *ret, size_t count)
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

/* Into a const char *, which must be NULL; as text, or in hex. The copies are the arena's. */
static bool change_read_name(void *reader, void *into)
{
	struct change_reader *r = reader;
	const char **ret = into, *text;

	if (*ret || !json_read_text(&r->json, &text))
		return json_wrong(&r->json, "one name");
	*ret = arena_copy(&r->ret->arena, text, r->json.text.len);
	return *ret ? true : json_wrong(&r->json, "less memory");
}

static bool change_read_hex_name(void *reader, void *into)
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

static void change_reader_done(struct change_reader *r)
{
	json_reader_done(&r->json);
	free(r->items);
}

/* A path as a walk makes it: names and single slashes, and never up. */
static bool json_read_is_path(const char *path)
{
	if (!path || strlen(path) > CHANGE_MAX_PATH)
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
	struct change_reader *r = reader;
	static const char *const words[CHANGE_MAX_WORDS] = { "nothing", "file", "folder", "link",
		"special" };
	unsigned type = 0;
	bool is_good = change_read_word(r, words, &type);

	*(enum change_type *)into = type;
	return is_good;
}

static bool json_read_mode(void *reader, void *into)
{
	struct change_reader *r = reader;
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

static bool json_read_size(void *reader, void *into)
{
	struct change_reader *r = reader;
	int64_t size;

	if (!json_read_int(&r->json, &size) || size < 0)
		return json_wrong(&r->json, "a size");
	*(uint64_t *)into = (uint64_t)size;
	return true;
}

static bool json_read_content(void *reader, void *into)
{
	struct change_reader *r = reader;
	struct change_state *s = into;

	s->has_hash = true;
	return change_read_hash(r, s->hash);
}

static bool read_state(void *reader, void *into)
{
	struct change_reader *r = reader;
	static const struct json_field fields[] = {
		{ "type", read_type, offsetof(struct change_state, type) },
		{ "mode", json_read_mode, offsetof(struct change_state, mode) },
		{ "size", json_read_size, offsetof(struct change_state, size) },
		{ "sha256", json_read_content, 0 },
	};
	struct change_state *s = into;
	bool has_content;

	if (!JSON_READ_FIELDS(r, fields, s))
		return false;
	has_content = s->type == CHANGE_FILE || s->type == CHANGE_LINK;
	if (s->type == CHANGE_NOTHING || (!has_content && (s->size || s->has_hash)))
		return json_wrong(&r->json, "a state that can be");
	return true;
}

/* --- attributes --- */

static bool read_attribute(struct change_reader *r, struct change_attribute *a)
{
	static const struct json_field fields[] = {
		{ "name", change_read_name, offsetof(struct change_attribute, name) },
		{ "name_hex", change_read_hex_name, offsetof(struct change_attribute, name) },
		{ "change", change_read_change, offsetof(struct change_attribute, change) },
		{ "sha256", change_read_hash, offsetof(struct change_attribute, hash) },
	};

	if (!JSON_READ_FIELDS(r, fields, a))
		return false;
	if (!a->name || !str_starts(a->name, "user.") || str_starts(a->name, "user.overlay.") ||
		a->change == CHANGE_RENAMED)
		return json_wrong(&r->json, "an attribute of users");
	if (a->change == CHANGE_DELETED)
		memset(a->hash, 0, sizeof(a->hash));
	return true;
}

/* More than any file can have: the kernel's list of names is not longer. */
#define MAX_ATTRIBUTES 16384

static bool read_attributes(void *reader, void *into)
{
	struct change_reader *r = reader;
	struct change_effect *x = into;
	own_free struct change_attribute *items = NULL;
	struct change_attribute *kept;
	size_t n = 0, room = 0;

	if (!json_enter_list(&r->json))
		return false;
	while (json_next_item(&r->json)) {
		if (n == room) {
			struct change_attribute *grown;

			room = room ? room * 2 : 4;
			grown = n < MAX_ATTRIBUTES ? reallocarray(items, room, sizeof(*items))
						   : NULL;
			if (!grown)
				return json_wrong(&r->json, "fewer attributes");
			items = grown;
		}
		items[n] = (struct change_attribute){ 0 };
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

static bool json_read_mark(void *reader, void *into)
{
	struct change_reader *r = reader;
	static const char *const words[CHANGE_MAX_WORDS] = { "plain", "runs", "held", "lock" };
	unsigned mark = 0;
	bool is_good = change_read_word(r, words, &mark);

	*(enum change_mark *)into = mark;
	return is_good;
}

static bool read_lines(void *reader, void *into)
{
	struct change_reader *r = reader;
	struct change_effect *x = into;
	int64_t lines[2] = { 0 };

	if (!change_read_numbers(r, lines, 2))
		return false;
	for (size_t i = 0; i < 2; i++)
		if (lines[i] < 0 || lines[i] > UINT32_MAX)
			return json_wrong(&r->json, "a number of lines");
	x->is_text = true;
	x->lines_added = (uint32_t)lines[0];
	x->lines_removed = (uint32_t)lines[1];
	return true;
}

static bool json_read_flag(void *reader, void *into)
{
	struct change_reader *r = reader;
	return json_read_bool(&r->json, into);
}

static bool read_below(void *reader, void *into)
{
	struct change_reader *r = reader;
	int64_t n[4] = { 0 };

	if (!change_read_numbers(r, n, 4))
		return false;
	*(struct change_signature *)into =
		(struct change_signature){ (uint64_t)n[0], (uint64_t)n[1], n[2], n[3] };
	return true;
}

/* Do the parts make sense together? */
static bool json_read_is_sound(const struct change_effect *x)
{
	bool was = x->before.type != CHANGE_NOTHING, is = x->after.type != CHANGE_NOTHING;
	bool are_files = x->before.type == CHANGE_FILE && x->after.type == CHANGE_FILE;
	bool is_folder = x->before.type == CHANGE_FOLDER || x->after.type == CHANGE_FOLDER;
	bool comes_or_goes = x->change == CHANGE_ADDED || x->change == CHANGE_DELETED;

	if (was != (x->change != CHANGE_ADDED) || is != (x->change != CHANGE_DELETED))
		return false;
	if ((x->change == CHANGE_RENAMED) != (x->from != NULL) || (x->from && !are_files))
		return false;
	if (x->has_base && !(are_files && x->change == CHANGE_CHANGED &&
				   (x->is_text || change_git_place_of(x->path).is_index)))
		return false;
	return !x->is_implied || (is_folder && comes_or_goes);
}

static bool read_effect(struct change_reader *r, struct change_effect *x)
{
	/* In the order in which they are written. */
	static const struct json_field fields[] = {
		{ "path", change_read_name, offsetof(struct change_effect, path) },
		{ "path_hex", change_read_hex_name, offsetof(struct change_effect, path) },
		{ "from", change_read_name, offsetof(struct change_effect, from) },
		{ "from_hex", change_read_hex_name, offsetof(struct change_effect, from) },
		{ "change", change_read_change, offsetof(struct change_effect, change) },
		{ "mark", json_read_mark, offsetof(struct change_effect, mark) },
		{ "before", read_state, offsetof(struct change_effect, before) },
		{ "after", read_state, offsetof(struct change_effect, after) },
		{ "attributes", read_attributes, 0 },
		{ "lines", read_lines, 0 },
		{ "implied", json_read_flag, offsetof(struct change_effect, is_implied) },
		{ "moved", json_read_flag, offsetof(struct change_effect, has_moved) },
		{ "base", json_read_flag, offsetof(struct change_effect, has_base) },
		{ "below", read_below, offsetof(struct change_effect, below) },
		{ "note", change_read_name, offsetof(struct change_effect, note) },
	};

	if (!JSON_READ_FIELDS(r, fields, x))
		return false;
	if (!json_read_is_path(x->path) || (x->from && !json_read_is_path(x->from)))
		return json_wrong(&r->json, "a path below the tree");
	return json_read_is_sound(x) ? true : json_wrong(&r->json, "a change that can be");
}

/* --- all of them --- */

static bool json_read_version(void *reader, void *into)
{
	struct change_reader *r = reader;
	int64_t version;

	(void)into;
	if (!json_read_int(&r->json, &version))
		return false;
	return version == CHANGE_JSON_VERSION ? true : json_wrong(&r->json, "version 1");
}

static bool read_digest(void *reader, void *into)
{
	struct change_reader *r = reader;
	uint8_t bytes[SHA256_SIZE];

	if (!change_read_hash(r, bytes))
		return false;
	sha256_print(bytes, into);
	return true;
}

static bool json_read_effects(void *reader, void *into)
{
	struct change_reader *r = reader;
	(void)into;
	if (!json_enter_list(&r->json))
		return false;
	for (; json_next_item(&r->json); r->count++) {
		if (r->count == r->room) {
			size_t room = r->room ? r->room * 2 : 64;
			struct change_effect *grown =
				r->count < CHANGE_MAX_EFFECTS
					? reallocarray(r->items, room, sizeof(*grown))
					: NULL;

			if (!grown)
				return json_wrong(&r->json, "fewer effects");
			r->items = grown;
			r->room = room;
		}
		r->items[r->count] = (struct change_effect){ 0 };
		if (!read_effect(r, &r->items[r->count]))
			return false;
		if (r->count && strcmp(r->items[r->count - 1].path, r->items[r->count].path) >= 0)
			return json_wrong(&r->json, "effects in their order");
	}
	return !r->json.wrong;
}

int change_effects_parse(const char *bytes, size_t n, struct change_effects *ret, struct err *e)
{
	static const struct json_field fields[] = {
		{ "version", json_read_version, 0 },
		{ "digest", read_digest, offsetof(struct change_effects, digest) },
		{ "effects", json_read_effects, 0 },
	};
	own(change_reader) struct change_reader r = { .ret = ret };

	json_read_init(&r.json, bytes, n, CHANGE_MAX_PATH * 2);
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

int change_effects_read(const char *bytes, size_t n, struct change_effects *ret, struct err *e)
{
	char digest[SHA256_HEX_SIZE];
	int r = change_effects_parse(bytes, n, ret, e);

	if (r < 0)
		return r;
	change_digest(ret, digest);
	if (str_eq(digest, ret->digest))
		return 0;
	ret->count = 0;
	return err_set(e, ERR_SYS, EBADMSG,
		"cannot use the effects of the run: their digest is another one");
}
