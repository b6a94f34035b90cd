#include "spec/spec.h"

#include <string.h>

#include "base/str.h"
#include "spec/spec_layers.h"
#include "spec/spec_read.h"
#include "spec/spec_value.h"

#define ARENA_MAX ((size_t)48 * 1024 * 1024)

void spec_init(struct spec *s)
{
	struct diag_pos at = { 0 };

	memset(s, 0, sizeof(*s));
	arena_init(&s->arena, ARENA_MAX);
	diags_init(&s->diags, &s->arena);
	at.source = diags_add_source(&s->diags, "built-in", NULL, 0);
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		if (spec_keys[k].def)
			spec_value_from_text(
				s, &s->layers[SPEC_LAYER_BUILTIN], k, spec_keys[k].def, at);
}

void spec_done(struct spec *s)
{
	arena_done(&s->arena);
}

/* The tree of a file whose version is said; NULL after an error that leaves nothing to read. */
static const struct yaml_node *read_versioned(
	struct spec *s, const char *name, const char *bytes, size_t n)
{
	unsigned source = diags_add_source(&s->diags, name, bytes, n);
	const struct yaml_node *map = yaml_read(&s->arena, &s->diags, source, bytes, n);
	struct diag_pos top = { .line = 1, .column = 1, .width = 1, .source = source };

	if (map && !yaml_get(map, "version"))
		diags_error(&s->diags, top, "write as its first line: version: 1",
			"the file does not say its version");
	return map;
}

void spec_add_policy(
	struct spec *s, enum spec_layer layer, const char *name, const char *bytes, size_t n)
{
	const struct yaml_node *map = read_versioned(s, name, bytes, n);

	if (map)
		spec_read_policy(s, &s->layers[layer], map);
}

void spec_add_file(struct spec *s, const char *name, const char *bytes, size_t n, bool is_trusted)
{
	const struct yaml_node *map = read_versioned(s, name, bytes, n);

	s->is_file_trusted = is_trusted;
	if (map)
		spec_read_map(s, &s->layers[SPEC_LAYER_FILE], map, "");
}

void spec_add_option(struct spec *s, enum spec_key key, const char *option, const char *text)
{
	struct diag_pos at = { .source = diags_add_source(&s->diags, option, NULL, 0) };

	s->layers[SPEC_LAYER_OPTIONS].v[key].adds = true;
	spec_value_from_text(s, &s->layers[SPEC_LAYER_OPTIONS], key, text, at);
}

void spec_add_option_list(struct spec *s, enum spec_key key, const char *option,
	const char *const *texts, size_t count)
{
	struct diag_pos at = { .source = diags_add_source(&s->diags, option, NULL, 0) };
	struct spec_value *v = &s->layers[SPEC_LAYER_OPTIONS].v[key];

	v->is_set = true;
	v->adds = false;
	v->at = at;
	v->count = 0;
	for (size_t i = 0; i < count; i++)
		spec_value_from_text(s, &s->layers[SPEC_LAYER_OPTIONS], key, texts[i], at);
}

bool spec_bool(const struct spec *s, enum spec_key key)
{
	return s->settled.v[key].yes;
}

unsigned spec_choice(const struct spec *s, enum spec_key key)
{
	return s->settled.v[key].choice;
}

uint64_t spec_number(const struct spec *s, enum spec_key key)
{
	return s->settled.v[key].number;
}

const char *spec_text(const struct spec *s, enum spec_key key)
{
	return s->settled.v[key].text;
}

const struct spec_value *spec_list(const struct spec *s, enum spec_key key)
{
	return &s->settled.v[key];
}

bool spec_is_declared(const struct spec *s, enum spec_key key)
{
	return s->settled.v[key].is_set && s->set_by[key] != SPEC_LAYER_BUILTIN;
}

struct diag_pos spec_where(const struct spec *s, enum spec_key key)
{
	return s->settled.v[key].at;
}
