#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "spec/spec.h"
#include "spec/spec_grammar.h"

static void open_list_of(struct json *j, const struct spec_key_def *def)
{
	json_text(j, "type", "array");
	json_open_map(j, "items");
	if (def->type == SPEC_TYPE_PORTS) {
		json_text(j, "type", "integer");
		json_int(j, "minimum", 1);
		json_int(j, "maximum", 65535);
	} else if (def->type != SPEC_TYPE_BINDS && def->type != SPEC_TYPE_SECRETS) {
		json_text(j, "type", "string");
		if (def->pattern)
			json_text(j, "pattern", def->pattern);
	}
}

/* The two forms of a bind. */
static void print_bind(struct json *j)
{
	static const char *const parts[] = { "from", "to" };

	json_open_list(j, "oneOf");
	json_open_map(j, NULL);
	json_text(j, "type", "string");
	json_text(j, "pattern", "^[^:]+:/[^:]+(:ro|:rw)?$");
	json_close_map(j);
	json_open_map(j, NULL);
	json_text(j, "type", "object");
	json_open_map(j, "properties");
	for (size_t i = 0; i < 2; i++) {
		json_open_map(j, parts[i]);
		json_text(j, "type", "string");
		json_close_map(j);
	}
	json_open_map(j, "mode");
	json_open_list(j, "enum");
	json_text(j, NULL, "ro");
	json_text(j, NULL, "rw");
	json_close_list(j);
	json_close_map(j);
	json_close_map(j);
	json_open_list(j, "required");
	json_text(j, NULL, "from");
	json_text(j, NULL, "to");
	json_close_list(j);
	json_bool(j, "additionalProperties", false);
	json_close_map(j);
	json_close_list(j);
}

/* The two forms of a secret; the line is for bawn itself, which prints it so. */
static void schema_print_secret(struct json *j)
{
	json_open_list(j, "oneOf");
	json_open_map(j, NULL);
	json_text(j, "type", "string");
	json_text(j, "pattern", "^name=[^ ]+ host=[^ ]+ header=[^ ]+ ");
	json_close_map(j);
	json_open_map(j, NULL);
	json_text(j, "type", "object");
	json_open_map(j, "properties");
	for (enum spec_secret_part i = 0; i < SPEC_SECRET_PARTS; i++) {
		json_open_map(j, spec_secret_parts[i]);
		json_text(j, "type", "string");
		if (i == SPEC_SECRET_FROM)
			json_text(j, "pattern", "^(env:[A-Za-z_][A-Za-z0-9_]*|file:[/~].*)$");
		json_close_map(j);
	}
	json_close_map(j);
	json_open_list(j, "required");
	for (enum spec_secret_part i = 0; i < SPEC_SECRET_PARTS; i++)
		if (i != SPEC_SECRET_SCHEME && i != SPEC_SECRET_CA)
			json_text(j, NULL, spec_secret_parts[i]);
	json_close_list(j);
	json_bool(j, "additionalProperties", false);
	json_close_map(j);
	json_close_list(j);
}

static void print_choices(struct json *j, const struct spec_key_def *def)
{
	json_open_list(j, "enum");
	for (const char *const *c = def->choices; *c; c++)
		json_text(j, NULL, *c);
	json_close_list(j);
}

static void print_default(struct json *j, const struct spec_key_def *def)
{
	if (!def->def)
		return;
	if (def->type == SPEC_TYPE_BOOL || def->type == SPEC_TYPE_INT)
		json_raw(j, "default", def->def);
	else if (!spec_is_list(def->type))
		json_text(j, "default", def->def);
	else {
		json_open_list(j, "default");
		json_text(j, NULL, def->def);
		json_close_list(j);
	}
}

/* A size in bytes may be a number; an overlay's is in megabytes and more, so it has a unit. */
static void print_size_type(struct json *j, const struct spec_key_def *def)
{
	if (def == &spec_keys[SPEC_ROOT_OVERLAY_SIZE]) {
		json_text(j, "type", "string");
	} else {
		json_open_list(j, "type");
		json_text(j, NULL, "string");
		json_text(j, NULL, "integer");
		json_close_list(j);
		json_int(j, "minimum", 1);
	}
	json_text(j, "pattern", def->pattern);
}

static void print_type(struct json *j, const struct spec_key_def *def)
{
	switch (def->type) {
	case SPEC_TYPE_VERSION:
		json_int(j, "const", 1);
		break;
	case SPEC_TYPE_BOOL:
		json_text(j, "type", "boolean");
		break;
	case SPEC_TYPE_CHOICE:
		print_choices(j, def);
		break;
	case SPEC_TYPE_INT:
		json_text(j, "type", "integer");
		json_int(j, "minimum", 1);
		break;
	case SPEC_TYPE_CPUS:
		json_text(j, "type", "number");
		json_raw(j, "exclusiveMinimum", "0");
		break;
	case SPEC_TYPE_SIZE:
		print_size_type(j, def);
		break;
	case SPEC_TYPE_DURATION:
		json_text(j, "type", "string");
		json_text(j, "pattern", "^([0-9]+(d|h|m|s|ms))+$");
		break;
	case SPEC_TYPE_TEXT:
		json_text(j, "type", "string");
		if (def->pattern)
			json_text(j, "pattern", def->pattern);
		break;
	case SPEC_TYPE_LIST:
	case SPEC_TYPE_SET:
	case SPEC_TYPE_PORTS:
	case SPEC_TYPE_BINDS:
	case SPEC_TYPE_SECRETS:
		open_list_of(j, def);
		if (def->type == SPEC_TYPE_BINDS)
			print_bind(j);
		if (def->type == SPEC_TYPE_SECRETS)
			schema_print_secret(j);
		json_close_map(j);
		break;
	case SPEC_TYPE_VARS:
		json_text(j, "type", "object");
		json_open_map(j, "additionalProperties");
		json_text(j, "type", "string");
		json_close_map(j);
		break;
	}
}

static void print_key(struct json *j, enum spec_key key)
{
	const struct spec_key_def *def = &spec_keys[key];

	json_open_map(j, spec_key_leaf(key));
	json_text(j, "description", def->doc);
	print_type(j, def);
	print_default(j, def);
	json_close_map(j);
}

static void close_section(struct json *j)
{
	json_close_map(j);
	json_bool(j, "additionalProperties", false);
	json_close_map(j);
}

void spec_print_schema(struct buf *out)
{
	char section[32] = "", next[32];
	struct json j;

	json_init(&j, out, 2);
	json_open_map(&j, NULL);
	json_text(&j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_text(&j, "title", "bawn.yaml");
	json_text(&j, "type", "object");
	json_open_list(&j, "required");
	json_text(&j, NULL, "version");
	json_close_list(&j);
	json_open_map(&j, "properties");
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		if (spec_keys[k].tighten == SPEC_OPERATOR_ONLY)
			continue;
		if (!spec_key_section(k, next, sizeof(next)))
			next[0] = '\0';
		if (!str_eq(section, next)) {
			if (section[0])
				close_section(&j);
			memcpy(section, next, sizeof(section));
			if (section[0]) {
				json_open_map(&j, section);
				json_text(&j, "type", "object");
				json_open_map(&j, "properties");
			}
		}
		print_key(&j, k);
	}
	if (section[0])
		close_section(&j);
	json_close_map(&j);
	json_bool(&j, "additionalProperties", false);
	json_close_map(&j);
	buf_putc(out, '\n');
}
