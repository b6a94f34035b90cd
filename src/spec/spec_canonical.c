/* The canonical form of a spec: printed, and read back from bytes that may be anybody's. */
#include "spec/spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_read.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "spec/spec_grammar.h"
#include "spec/spec_read.h"

static int print_compare_items(const void *a, const void *b)
{
	const struct spec_item *x = *(const struct spec_item *const *)a;
	const struct spec_item *y = *(const struct spec_item *const *)b;

	return strcmp(x->text, y->text);
}

const struct spec_item **spec_ordered(
	enum spec_key key, const struct spec_value *v, size_t *ret_count)
{
	const struct spec_item **items = calloc(v->count + 1, sizeof(const struct spec_item *));
	size_t n = 0;

	*ret_count = 0;
	if (!items)
		return NULL;
	for (size_t i = 0; i < v->count; i++)
		items[i] = &v->items[i];
	if (spec_keys[key].type == SPEC_TYPE_LIST) {
		*ret_count = v->count;
		return items;
	}
	qsort(items, v->count, sizeof(const struct spec_item *), print_compare_items);
	for (size_t i = 0; i < v->count; i++)
		if (n == 0 || !str_eq(items[n - 1]->text, items[i]->text))
			items[n++] = items[i];
	*ret_count = n;
	return items;
}

static void print_number(enum spec_type type, uint64_t number, char text[static NUM_TEXT_SIZE])
{
	if (type == SPEC_TYPE_SIZE)
		num_print_size(number, text);
	else if (type == SPEC_TYPE_DURATION)
		num_print_duration(number, text);
	else if (type == SPEC_TYPE_CPUS)
		num_print_cpus(number, text);
	else
		snprintf(text, NUM_TEXT_SIZE, "%" PRIu64, number);
}

void spec_print_value(enum spec_key key, const struct spec_value *v, struct buf *out)
{
	const struct spec_key_def *def = &spec_keys[key];
	char number[NUM_TEXT_SIZE];

	if (spec_is_list(def->type)) {
		size_t n = 0;
		const struct spec_item **items = spec_ordered(key, v, &n);

		buf_putc(out, '[');
		for (size_t i = 0; items && i < n; i++)
			buf_printf(out, "%s%s", i ? ", " : "", items[i]->text);
		buf_putc(out, ']');
		free(items);
	} else if (!v->is_set) {
		buf_puts(out, "none");
	} else if (def->type == SPEC_TYPE_BOOL) {
		buf_puts(out, v->yes ? "true" : "false");
	} else if (def->type == SPEC_TYPE_CHOICE) {
		buf_puts(out, def->choices[v->choice]);
	} else if (def->type == SPEC_TYPE_TEXT) {
		buf_puts(out, v->text);
	} else {
		print_number(def->type, v->number, number);
		buf_puts(out, number);
	}
}

static void print_json_list(enum spec_key key, const struct spec_value *v, struct json *j)
{
	size_t n = 0;
	const struct spec_item **items = spec_ordered(key, v, &n);

	if (!items)
		j->out->failed = true;
	json_open_list(j, spec_keys[key].path);
	for (size_t i = 0; items && i < n; i++)
		json_text(j, NULL, items[i]->text);
	json_close_list(j);
	free(items);
}

static void print_json_value(enum spec_key key, const struct spec_value *v, struct json *j)
{
	const struct spec_key_def *def = &spec_keys[key];

	if (spec_is_list(def->type))
		print_json_list(key, v, j);
	else if (!v->is_set)
		json_text(j, def->path, NULL);
	else if (def->type == SPEC_TYPE_BOOL)
		json_bool(j, def->path, v->yes);
	else if (def->type == SPEC_TYPE_CHOICE)
		json_text(j, def->path, def->choices[v->choice]);
	else if (def->type == SPEC_TYPE_TEXT)
		json_text(j, def->path, v->text);
	else
		json_int(j, def->path, (int64_t)v->number);
}

/* A limit that somebody declared must hold; the same number as a mere default need not. */
static bool is_meant(const struct spec *s, enum spec_key key)
{
	return !str_starts(spec_keys[key].path, "limits.") || spec_is_declared(s, key);
}

/* The canonical form without some keys, as it was before there were these. */
static void print_canonical_without(
	const struct spec *s, const bool left_out[static SPEC_KEY_COUNT], struct buf *out)
{
	static const struct spec_value unsaid;
	struct spec_value version = { .is_set = true, .number = 1 };
	struct json j;

	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	print_json_value(SPEC_VERSION, &version, &j);
	for (enum spec_key k = SPEC_VERSION + 1; k < SPEC_KEY_COUNT; k++)
		if (spec_keys[k].tighten != SPEC_OPERATOR_ONLY && !left_out[k])
			print_json_value(k, is_meant(s, k) ? &s->settled.v[k] : &unsaid, &j);
	json_close_map(&j);
	buf_putc(out, '\n');
}

void spec_print_canonical(const struct spec *s, struct buf *out)
{
	static const bool none[SPEC_KEY_COUNT];

	print_canonical_without(s, none, out);
}

/* --- reading it back: entries whose canonical form nobody may write --- */

/* A spec has as a relative path what the canonical form writes with $PROJECT. */
static const char *relative(struct arena *arena, const char *path)
{
	if (str_eq(path, "$PROJECT"))
		return ".";
	if (!str_starts(path, "$PROJECT/"))
		return path;
	return arena_printf(arena, "./%s", path + strlen("$PROJECT/"));
}

/* A path of the host, or the name of an image with one behind its kind. */
static const char *relative_of(struct arena *arena, enum spec_key key, const char *text)
{
	const char *path = key == SPEC_ROOT_IMAGE ? strchr(text, ':') : NULL, *rest;

	if (!path)
		return key == SPEC_ROOT_IMAGE ? text : relative(arena, text);
	rest = relative(arena, path + 1);
	return rest ? arena_printf(arena, "%.*s%s", (int)(path + 1 - text), text, rest) : NULL;
}

/* One path of a bind, without the backslashes that kept its colons from splitting it. */
static const char *unescape_colons(struct arena *arena, const char *path, size_t n)
{
	char *out = arena_copy(arena, path, n);
	size_t kept = 0;

	if (!out || !strstr(out, "\\:"))
		return out;
	for (size_t i = 0; i < n; i++) {
		i += path[i] == '\\' && i + 1 < n;
		out[kept++] = path[i];
	}
	out[kept] = '\0';
	return out;
}

/* The bind that is written like this when it is split here; false: there is none. */
static bool split_bind(struct arena *arena, const char *text, const char *at, const char *mode,
	struct spec_item *ret)
{
	const char *from = unescape_colons(arena, text, (size_t)(at - text));
	const char *to = unescape_colons(arena, at + 1, (size_t)(mode - at - 1));
	struct spec_item source = { 0 }, target = { 0 };

	from = from ? relative(arena, from) : NULL;
	return from && to && spec_parse(SPEC_GRAMMAR_SOURCE, arena, from, &source, NULL) == 0 &&
	       spec_parse(SPEC_GRAMMAR_TARGET, arena, to, &target, NULL) == 0 &&
	       spec_join_bind(arena, &source, &target, str_eq(mode, ":rw"), ret) &&
	       str_eq(ret->text, text);
}

static bool read_bind(struct arena *arena, const char *text, struct spec_item *ret)
{
	const char *mode = strrchr(text, ':');

	for (const char *at = text; mode && (at = strchr(at, ':')) && at < mode; at++)
		if (split_bind(arena, text, at, mode, ret))
			return true;
	return false;
}

/* --- reading it back: values --- */

/* The layer of a spec that a canonical form is read into. */
struct target {
	struct spec *s;
	struct spec_layer_values *layer;
	struct diag_pos at;
	bool is_seen[SPEC_KEY_COUNT];
};

/* Sets a key, or adds to its list, to what is written; copied, since the reader's text goes. */
static void set(const struct target *t, enum spec_key key, const char *text, struct json_reader *r)
{
	struct spec *s = t->s;
	struct spec_value *v = &t->layer->v[key];
	const char *kept = arena_copy(&s->arena, text, strlen(text));
	struct spec_item bind = { .at = t->at };

	if (kept && (key == SPEC_PREFLIGHT_ALLOW || key == SPEC_SYSCALLS ||
			    key == SPEC_ROOT_IMAGE || key == SPEC_ROOT_OVERLAY))
		kept = relative_of(&s->arena, key, kept);
	if (kept && key == SPEC_BINDS) {
		if (!read_bind(&s->arena, kept, &bind) || !spec_value_add(s, v, &bind))
			json_wrong(r, "a bind");
	} else if (kept)
		spec_value_from_text(s, t->layer, key, kept, t->at);
	else
		json_wrong(r, "more memory");
}

static void take_list(const struct target *t, enum spec_key key, struct json_reader *r)
{
	const char *text;

	t->layer->v[key].is_set = true;
	t->layer->v[key].at = t->at;
	json_enter_list(r);
	while (json_next_item(r) && json_read_text(r, &text))
		set(t, key, text, r);
}

static void take_scalar(const struct target *t, enum spec_key key, struct json_reader *r)
{
	enum spec_type type = spec_keys[key].type;
	char number[NUM_TEXT_SIZE] = "";
	const char *text = number;
	int64_t n = 0;
	bool yes = false;

	if (type == SPEC_TYPE_BOOL) {
		json_read_bool(r, &yes);
		text = yes ? "true" : "false";
	} else if (type == SPEC_TYPE_TEXT || type == SPEC_TYPE_CHOICE) {
		json_read_text(r, &text);
	} else {
		json_read_int(r, &n);
		print_number(type, (uint64_t)n, number);
	}
	if (!r->wrong)
		set(t, key, text, r);
}

static void take_member(struct target *t, const char *path, struct json_reader *r)
{
	enum spec_key key = spec_key_find(path);

	if (key < SPEC_KEY_COUNT)
		t->is_seen[key] = true;
	if (key == SPEC_KEY_COUNT)
		json_wrong(r, "a key of the spec");
	else if (key == SPEC_VERSION || json_peek(r) == 'n')
		json_skip(r);
	else if (spec_is_list(spec_keys[key].type))
		take_list(t, key, r);
	else
		take_scalar(t, key, r);
}

/* Reads all members. Returns NULL, or what the reader expected and did not find. */
static const char *read_into(struct target *t, const char *bytes, size_t n)
{
	own(json_reader) struct json_reader r;
	const char *path;

	json_read_init(&r, bytes, n, n);
	r.takes_bytes = true;
	json_enter_map(&r);
	while (json_next_key(&r, &path))
		take_member(t, path, &r);
	json_read_end(&r);
	return r.wrong;
}

int spec_read_canonical(struct spec *s, const char *bytes, size_t n, struct err *e)
{
	struct target t = { .s = s, .layer = &s->layers[SPEC_LAYER_OPTIONS] };
	own(buf) struct buf again = { .max = n + 1 };
	const char *wrong = read_into(&t, bytes, n);
	bool left_out[SPEC_KEY_COUNT];

	if (wrong)
		return err_set(e, ERR_SPEC, EBADMSG, "it is no spec: expected %s", wrong);
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		left_out[k] = spec_keys[k].is_later && !t.is_seen[k];
	/* One meaning has one form: whatever was misunderstood would be written otherwise. */
	if (spec_settle(s))
		print_canonical_without(s, left_out, &again);
	if (again.failed || again.len != n || memcmp(buf_text(&again), bytes, n) != 0)
		return err_set(e, ERR_SPEC, EBADMSG, "it is no spec in canonical form");
	return 0;
}

void spec_add_canonical(
	struct spec *s, const char *name, const char *bytes, size_t n, bool is_trusted)
{
	struct target t = { .s = s,
		.layer = &s->layers[SPEC_LAYER_FILE],
		.at = { .source = diags_add_source(&s->diags, name, NULL, 0) } };
	const char *wrong = read_into(&t, bytes, n);

	s->is_file_trusted = is_trusted;
	if (wrong)
		diags_error(&s->diags, t.at, NULL, "it is no spec: expected %s", wrong);
}
