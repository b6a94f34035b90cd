#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/utf8.h"
#include "change/change.h"
#include "change/effects/change_json.h"

/* What is false, nothing or zero is left out. change_json_read.c reads it back. */

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
