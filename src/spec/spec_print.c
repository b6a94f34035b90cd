#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "spec/spec.h"
#include "spec/spec_layers.h"

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

static void spec_print_print_number(
	enum spec_type type, uint64_t number, char text[static NUM_TEXT_SIZE])
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
		spec_print_print_number(def->type, v->number, number);
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

void spec_print_canonical(const struct spec *s, struct buf *out)
{
	static const bool none[SPEC_KEY_COUNT];

	spec_print_without(s, none, out);
}

void spec_print_without(
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

static void spec_print_print_line(
	const char *what, const char *value, const char *where, struct buf *out)
{
	buf_printf(out, "  %-11s ", what);
	buf_add_visible(out, value, strlen(value));
	if (where) {
		buf_puts(out, "  (");
		buf_add_visible(out, where, strlen(where));
		buf_putc(out, ')');
	}
	buf_putc(out, '\n');
}

static const char *where_set(
	const struct spec *s, enum spec_layer layer, const struct spec_value *v)
{
	if (layer == SPEC_LAYER_BUILTIN)
		return "built-in default";
	return arena_printf(
		s->diags.arena, "%s, %s", spec_layer_name(layer), diags_where(&s->diags, v->at));
}

/* Do the layers' lists add up? */
static bool print_is_added(const struct spec *s, enum spec_key key)
{
	return spec_keys[key].tighten == SPEC_ADD || s->layers[s->set_by[key]].v[key].adds;
}

/* One value as text that stays, or NULL without memory. */
static const char *keep_value(const struct spec *s, enum spec_key key, const struct spec_value *v)
{
	struct buf value = { .max = (size_t)1 << 20 };
	const char *kept;

	spec_print_value(key, v, &value);
	kept = value.failed ? NULL : arena_copy(s->diags.arena, buf_text(&value), value.len);
	buf_done(&value);
	return kept;
}

static struct spec_account account_of_project(const struct spec *s, enum spec_key key)
{
	const char *where = NULL;
	const struct spec_value *most = spec_ceiling(s, key, &where);
	enum spec_tighten tighten = spec_keys[key].tighten;

	if (tighten == SPEC_FREE || tighten == SPEC_ADD)
		return (struct spec_account){ "project may", "set it freely", NULL };
	if (tighten == SPEC_OPERATOR_ONLY)
		return (struct spec_account){ "project may", "not set it: it is a key of policies",
			NULL };
	if (tighten == SPEC_AT_MOST && !most->is_set)
		return (struct spec_account){ "project may", "any", where };
	return (struct spec_account){ "project may", keep_value(s, key, most), where };
}

size_t spec_account(
	const struct spec *s, enum spec_key key, struct spec_account ret[static SPEC_ACCOUNT_MAX])
{
	size_t n = 0;

	for (int i = SPEC_LAYER_OPTIONS; i >= SPEC_LAYER_BUILTIN; i--) {
		enum spec_layer layer = (enum spec_layer)i;
		const struct spec_value *v = &s->layers[layer].v[key];
		bool is_it = layer == s->set_by[key];

		if (!v->is_set && !is_it)
			continue;
		/* It followed from another key of that layer. */
		if (!v->is_set && layer != SPEC_LAYER_BUILTIN)
			v = &s->settled.v[key];
		ret[n++] = (struct spec_account){ is_it                    ? "value"
						  : print_is_added(s, key) ? "and"
									   : "overrides",
			keep_value(s, key, v), where_set(s, layer, v) };
	}
	ret[n++] = account_of_project(s, key);
	return n;
}

void spec_explain(const struct spec *s, enum spec_key key, struct buf *out)
{
	struct spec_account rows[SPEC_ACCOUNT_MAX];
	size_t n = spec_account(s, key, rows);

	buf_printf(out, "%s\n", spec_keys[key].path);
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].value)
			out->failed = true;
		else
			spec_print_print_line(rows[i].role, rows[i].value, rows[i].where, out);
	}
}
