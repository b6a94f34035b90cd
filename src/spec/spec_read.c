/* Reads the values of the table's keys from texts and YAML. Errors have their place. */
#include "spec/spec_read.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/num.h"
#include "base/str.h"
#include "spec/spec_grammar.h"

/* --- values: what to write instead of one that is refused --- */

/* Returns what to write instead of a value that is not a choice, or not a list; or NULL. */
static const char *spec_hint_choice(
	struct arena *arena, const struct spec_key_def *def, const char *text)
{
	size_t n = 0;
	const char *near;

	while (def->choices[n])
		n++;
	near = str_nearest(text, def->choices, n);
	return near ? arena_printf(arena, "did you mean '%s'?", near) : NULL;
}

static const char *spec_hint_list(
	struct arena *arena, const struct spec_key_def *def, const struct yaml_node *node)
{
	bool is_host = def == &spec_keys[SPEC_NETWORK_ALLOW];

	if (node->kind != YAML_SCALAR || node->type == YAML_NULL || def->type == SPEC_TYPE_SECRETS)
		return NULL;
	if (def == &spec_keys[SPEC_COMMAND] && strchr(node->text, ' '))
		return "write one entry per word, or [sh, -c, \"…\"] for a line of shell";
	return arena_printf(arena, "write it as a list: [%.60s%s]", node->text,
		is_host && !strchr(node->text, ':') ? ":443" : "");
}

/* A value under way: where it goes and what it is called. */
struct slot {
	struct spec *s;
	struct spec_value *v;
	const struct spec_key_def *def;
	const char *prefix;
};

/* Adds an error about `text` without what follows a '=' in it, which may be a key. */
#define SAY_OF(slot, pos, hint, text, ...)                                                         \
	do {                                                                                       \
		char said_[ERR_TEXT_SIZE];                                                         \
		snprintf(said_, sizeof(said_), __VA_ARGS__);                                       \
		str_hide_value(said_, sizeof(said_), (text));                                      \
		SAY((slot), (pos), (hint), "%s", said_);                                           \
	} while (0)

#define SAY(slot, pos, hint, fmt, ...)                                                             \
	diags_error(&(slot)->s->diags, (pos), (hint), "%s%s: " fmt, (slot)->prefix,                \
		(slot)->def->path, ##__VA_ARGS__)

static void say_bad_choice(const struct slot *slot, struct diag_pos at, const char *text)
{
	char all[160] = "";
	size_t n = 0;

	for (const char *const *c = slot->def->choices; *c && n < sizeof(all); c++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s",
			c == slot->def->choices ? ""
			: c[1]                  ? ", "
						: " or ",
			*c);
	SAY_OF(slot, at, spec_hint_choice(&slot->s->arena, slot->def, text), text, "'%s' is not %s",
		text, all);
}

static void set_choice(struct slot *slot, const char *text, struct diag_pos at)
{
	for (unsigned i = 0; slot->def->choices[i]; i++) {
		if (str_eq(slot->def->choices[i], text)) {
			slot->v->choice = i;
			slot->v->is_set = true;
			return;
		}
	}
	say_bad_choice(slot, at, text);
}

static void set_bool(struct slot *slot, const char *text, struct diag_pos at)
{
	static const char *const slips[][2] = { { "yes", "true" }, { "on", "true" },
		{ "y", "true" }, { "no", "false" }, { "off", "false" }, { "n", "false" },
		{ "1", "true" }, { "0", "false" } };
	const char *hint = NULL;

	slot->v->yes = str_eq(text, "true");
	slot->v->is_set = slot->v->yes || str_eq(text, "false");
	if (slot->v->is_set)
		return;
	for (size_t i = 0; i < COUNT_OF(slips); i++)
		if (str_distance(text, slips[i][0]) == 0)
			hint = arena_printf(&slot->s->arena, "did you mean %s?", slips[i][1]);
	if (!hint && (str_distance(text, "true") == 0 || str_distance(text, "false") == 0))
		hint = "write it in small letters, without quotes";
	SAY_OF(slot, at, hint, text, "'%s' is not true or false", text);
}

static void value_set_number(struct slot *slot, const char *text, struct diag_pos at)
{
	struct err e = { 0 };
	int64_t whole = 0;
	int r;

	if (slot->def == &spec_keys[SPEC_ROOT_OVERLAY_SIZE])
		r = num_parse_large_size(text, &slot->v->number, &e);
	else if (slot->def->type == SPEC_TYPE_SIZE)
		r = num_parse_size(text, &slot->v->number, &e);
	else if (slot->def->type == SPEC_TYPE_DURATION)
		r = num_parse_duration(text, &slot->v->number, &e);
	else if (slot->def->type == SPEC_TYPE_CPUS)
		r = num_parse_cpus(text, &slot->v->number, &e);
	else {
		r = num_parse_int(text, 1, INT32_MAX, &whole, &e);
		slot->v->number = (uint64_t)whole;
	}
	if (r == 0 && slot->v->number == 0)
		r = err_set(&e, ERR_SPEC, 0, "'%s' would let nothing run", text);
	slot->v->is_set = r == 0;
	/* No program starts in so few bytes: a unit was forgotten. */
	if (r == 0 && slot->def->type == SPEC_TYPE_SIZE && slot->v->number < 1 << 12 &&
		!text[strspn(text, "0123456789")])
		diags_warn(&slot->s->diags, at, "write a unit behind it, such as M or G",
			"%s%s: '%s' is %" PRIu64 " byte%s", slot->prefix, slot->def->path, text,
			slot->v->number, slot->v->number == 1 ? "" : "s");
	if (r < 0)
		SAY_OF(slot, at, NULL, text, "%s", e.text);
}

static void set_version(struct slot *slot, const char *text, struct diag_pos at)
{
	slot->v->is_set = true;
	slot->v->number = 1;
	if (!str_eq(text, "1"))
		SAY(slot, at, NULL, "this bawn understands version 1, not %s", text);
}

static bool fill_item(
	const struct slot *slot, struct spec_item *item, const char *text, struct diag_pos at)
{
	struct arena *arena = &slot->s->arena;
	struct err e = { 0 };

	item->at = at;
	if (spec_parse(slot->def->grammar, arena, text, item, &e) == 0)
		return true;
	SAY_OF(slot, at,
		slot->def == &spec_keys[SPEC_NETWORK_ALLOW]
			? spec_hint_destination(arena, text, item, at.line == 0)
			: NULL,
		text, "%s", e.text);
	return false;
}

static void set_text(struct slot *slot, const char *text, struct diag_pos at)
{
	struct spec_item item = { 0 };

	if (fill_item(slot, &item, text, at)) {
		slot->v->text = item.text;
		slot->v->is_set = true;
	}
}

static void set_scalar(struct slot *slot, const char *text, struct diag_pos at)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a slot has a value */
	slot->v->at = at;
	switch (slot->def->type) {
	case SPEC_TYPE_VERSION:
		set_version(slot, text, at);
		break;
	case SPEC_TYPE_BOOL:
		set_bool(slot, text, at);
		break;
	case SPEC_TYPE_CHOICE:
		set_choice(slot, text, at);
		break;
	case SPEC_TYPE_INT:
	case SPEC_TYPE_SIZE:
	case SPEC_TYPE_DURATION:
	case SPEC_TYPE_CPUS:
		value_set_number(slot, text, at);
		break;
	case SPEC_TYPE_TEXT:
		set_text(slot, text, at);
		break;
	case SPEC_TYPE_LIST:
	case SPEC_TYPE_SET:
	case SPEC_TYPE_PORTS:
	case SPEC_TYPE_BINDS:
	case SPEC_TYPE_VARS:
	case SPEC_TYPE_SECRETS:
		break;
	}
}

/* True if the key takes a plain scalar of this type. Quoted scalars are text. */
static bool takes(enum spec_type type, enum yaml_type scalar)
{
	switch (type) {
	case SPEC_TYPE_VERSION:
	case SPEC_TYPE_INT:
	case SPEC_TYPE_PORTS:
		return scalar == YAML_INT;
	case SPEC_TYPE_BOOL:
		return scalar == YAML_BOOL;
	case SPEC_TYPE_CPUS:
		return scalar == YAML_INT || scalar == YAML_FLOAT;
	case SPEC_TYPE_SIZE:
	case SPEC_TYPE_DURATION:
		return scalar == YAML_TEXT || scalar == YAML_INT || scalar == YAML_FLOAT;
	case SPEC_TYPE_CHOICE:
	case SPEC_TYPE_TEXT:
	case SPEC_TYPE_LIST:
	case SPEC_TYPE_SET:
	case SPEC_TYPE_BINDS:
	case SPEC_TYPE_VARS:
	case SPEC_TYPE_SECRETS:
		return scalar == YAML_TEXT;
	}
	return false;
}

static const char *wanted(enum spec_type type)
{
	static const char *const words[] = {
		[SPEC_TYPE_VERSION] = "the number 1",
		[SPEC_TYPE_BOOL] = "true or false",
		[SPEC_TYPE_CHOICE] = "a word",
		[SPEC_TYPE_INT] = "a whole number",
		[SPEC_TYPE_SIZE] = "a size such as 2G",
		[SPEC_TYPE_DURATION] = "a duration such as 30m",
		[SPEC_TYPE_CPUS] = "a number such as 1.5",
		[SPEC_TYPE_TEXT] = "text",
		[SPEC_TYPE_LIST] = "a list of texts",
		[SPEC_TYPE_SET] = "a list of texts",
		[SPEC_TYPE_PORTS] = "a list of port numbers",
		[SPEC_TYPE_BINDS] = "a list of binds",
		[SPEC_TYPE_VARS] = "a map of names to texts",
		[SPEC_TYPE_SECRETS] = "a list of secrets",
	};

	return words[type];
}

/* True when `node` is a scalar that the key takes; otherwise says what it should be. */
static bool value_check_scalar(const struct slot *slot, const struct yaml_node *node)
{
	enum spec_type type = slot->def->type;
	const char *hint = NULL;

	if (node->kind == YAML_SCALAR && takes(type, node->type))
		return true;
	if (node->kind == YAML_SCALAR && type == SPEC_TYPE_BOOL && node->type == YAML_TEXT) {
		/* "no" and its kin are text; set_bool knows the usual slips. */
		struct slot scratch = *slot;
		struct spec_value unused = { 0 };

		scratch.v = &unused;
		set_bool(&scratch, node->text, node->at);
		if (unused.is_set)
			SAY(slot, node->at, "remove the quotes",
				"expected true or false, not text");
		return false;
	}
	if (node->kind == YAML_SCALAR && node->type != YAML_NULL && takes(type, YAML_TEXT) &&
		type != SPEC_TYPE_CHOICE && type != SPEC_TYPE_SIZE && type != SPEC_TYPE_DURATION)
		/* In a secret, the value may be the key. */
		hint = type == SPEC_TYPE_SECRETS
			       ? "put it in quotes"
			       : arena_printf(&slot->s->arena, "put it in quotes: \"%.60s\"",
					 node->text);
	else if (node->kind == YAML_SCALAR && node->type == YAML_TEXT &&
		 str_is_digit(node->text[0]) &&
		 node->text[strspn(node->text, "0123456789.")] == '\0' && node->text[0] != '0')
		hint = "remove the quotes";
	else if (node->kind == YAML_SCALAR && node->type == YAML_NULL)
		hint = "remove the key, or give it a value";
	SAY(slot, node->at, hint, "expected %s, not %s",
		spec_is_list(type) && type != SPEC_TYPE_PORTS ? "text"
		: type == SPEC_TYPE_PORTS                     ? "a port number"
							      : wanted(type),
		yaml_describe(node));
	return false;
}

/* Finds the members of an entry that is a map; a missing one is NULL. False after an error. */
static bool find_parts(const struct slot *slot, const struct yaml_node *node, const char *what,
	const char *const *names, size_t count, const struct yaml_node **ret)
{
	for (const struct yaml_node *v = node->first; v; v = v->next) {
		size_t i = 0;

		while (i < count && !str_eq(v->key->text, names[i]))
			i++;
		if (i == count) {
			const char *near = str_nearest(v->key->text, names, count);

			SAY(slot, v->key->at,
				near ? arena_printf(&slot->s->arena, "did you mean '%s'?", near)
				     : NULL,
				"unknown key '%s' in a %s", v->key->text, what);
			return false;
		}
		if (!value_check_scalar(slot, v))
			return false;
		ret[i] = v;
	}
	return true;
}

/* True if a member of a secret's map cannot be the key. */
static bool is_no_key(const struct yaml_node *part)
{
	size_t i = 0;

	while (i < SPEC_SECRET_PARTS && !str_eq(part->key->text, spec_secret_parts[i]))
		i++;
	if (i == SPEC_SECRET_FROM)
		return part->kind == YAML_SCALAR &&
		       (str_starts(part->text, "env:") || str_starts(part->text, "file:"));
	return i < SPEC_SECRET_PARTS;
}

/* A key that somebody wrote into a spec must not get into a log too. */
static void hide_keys(const struct slot *slot, const struct yaml_node *node)
{
	if (node->kind != YAML_MAP)
		diags_hide(&slot->s->diags, node->at);
	for (const struct yaml_node *part = node->kind == YAML_MAP ? node->first : NULL; part;
		part = part->next)
		if (!is_no_key(part))
			diags_hide(&slot->s->diags, part->at);
}

static bool read_secret_map(
	const struct slot *slot, const struct yaml_node *node, struct spec_item *item)
{
	const struct yaml_node *part[SPEC_SECRET_PARTS] = { NULL };
	const char *texts[SPEC_SECRET_PARTS] = { NULL };
	enum spec_secret_part wrong = SPEC_SECRET_PARTS;
	struct err e = { 0 };

	if (!find_parts(slot, node, "secret", spec_secret_parts, SPEC_SECRET_PARTS, part))
		return false;
	item->at = node->at;
	for (size_t i = 0; i < SPEC_SECRET_PARTS; i++)
		texts[i] = part[i] ? part[i]->text : NULL;
	if (spec_make_secret(&slot->s->arena, texts, item, &wrong, &e) == 0)
		return true;
	SAY(slot, wrong < SPEC_SECRET_PARTS ? part[wrong]->at : node->at, NULL, "%s", e.text);
	return false;
}

static bool read_bind_map(
	const struct slot *slot, const struct yaml_node *node, struct spec_item *item)
{
	static const char *const names[] = { "from", "to", "mode" };
	const struct yaml_node *part[3] = { NULL };
	struct spec_item from = { 0 }, to = { 0 };
	struct arena *arena = &slot->s->arena;
	struct err e = { 0 };
	const char *mode;

	if (!find_parts(slot, node, "bind", names, 3, part))
		return false;
	item->at = node->at;
	if (!part[0] || !part[1]) {
		SAY(slot, node->at, NULL, "a bind needs both 'from' and 'to'");
		return false;
	}
	mode = part[2] ? part[2]->text : "ro";
	if (part[2] && !str_eq(mode, "ro") && !str_eq(mode, "rw")) {
		SAY(slot, part[2]->at, NULL, "the mode of a bind is ro or rw, not '%.40s'", mode);
		return false;
	}
	if (spec_parse(SPEC_GRAMMAR_SOURCE, arena, part[0]->text, &from, &e) < 0) {
		SAY(slot, part[0]->at, NULL, "%s", e.text);
		return false;
	}
	if (spec_parse(SPEC_GRAMMAR_TARGET, arena, part[1]->text, &to, &e) < 0) {
		SAY(slot, part[1]->at, NULL, "%s", e.text);
		return false;
	}
	return spec_join_bind(arena, &from, &to, str_eq(mode, "rw"), item);
}

static bool value_read_variable(
	const struct slot *slot, const struct yaml_node *node, struct spec_item *item)
{
	const char *name = node->key->text;
	const char *text = arena_printf(&slot->s->arena, "%s=%s", name, node->text);

	if (!value_check_scalar(slot, node))
		return false;
	if (strchr(name, '=')) {
		SAY(slot, node->key->at, NULL, "'%.60s' has a '=' in its name", name);
		return false;
	}
	if (text)
		return fill_item(slot, item, text, node->key->at);
	SAY(slot, node->key->at, NULL, "not enough memory for '%.60s'", name);
	return false;
}

static void read_list(struct slot *slot, const struct yaml_node *node)
{
	bool is_map = slot->def->type == SPEC_TYPE_VARS;
	struct spec_value *v = slot->v;

	if (node->kind != (is_map ? YAML_MAP : YAML_LIST)) {
		SAY(slot, node->at,
			is_map ? NULL : spec_hint_list(&slot->s->arena, slot->def, node),
			"expected %s, not %s", wanted(slot->def->type), yaml_describe(node));
		if (slot->def->type == SPEC_TYPE_SECRETS)
			hide_keys(slot, node);
		return;
	}
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a slot has a value */
	v->count = 0;
	v->items = arena_array(&slot->s->arena, node->count, sizeof(*v->items));
	v->is_set = v->items != NULL;
	v->at = node->at;
	if (!v->items) {
		SAY(slot, node->at, NULL, "not enough memory for the list");
		return;
	}
	for (const struct yaml_node *n = node->first; n; n = n->next) {
		struct spec_item *item = &v->items[v->count];
		bool is_good;

		if (is_map)
			is_good = value_read_variable(slot, n, item);
		else if (slot->def->type == SPEC_TYPE_BINDS && n->kind == YAML_MAP)
			is_good = read_bind_map(slot, n, item);
		else if (slot->def->type == SPEC_TYPE_SECRETS && n->kind == YAML_MAP)
			is_good = read_secret_map(slot, n, item);
		else
			is_good = value_check_scalar(slot, n) &&
				  fill_item(slot, item, n->text, n->at);
		if (!is_good && slot->def->type == SPEC_TYPE_SECRETS)
			hide_keys(slot, n);
		v->count += is_good;
	}
}

static void spec_value_from_yaml(struct spec *s, struct spec_layer_values *values,
	enum spec_key key, const struct yaml_node *node, const char *prefix)
{
	struct slot slot = { s, &values->v[key], &spec_keys[key], prefix };

	if (spec_is_list(slot.def->type))
		read_list(&slot, node);
	else if (value_check_scalar(&slot, node))
		set_scalar(&slot, node->text, node->at);
}

/* Room for one more entry; doubles, so that many options cost no more than they should. */
static bool value_grow(struct arena *arena, struct spec_value *v)
{
	struct spec_item *grown;

	if (v->count & (v->count - 1))
		return true;
	grown = arena_array(arena, v->count ? v->count * 2 : 1, sizeof(*grown));
	if (!grown)
		return false;
	if (v->count)
		memcpy(grown, v->items, v->count * sizeof(*grown));
	v->items = grown;
	return true;
}

void spec_value_from_text(struct spec *s, struct spec_layer_values *values, enum spec_key key,
	const char *text, struct diag_pos at)
{
	struct slot slot = { s, &values->v[key], &spec_keys[key], "" };
	struct spec_value *v = slot.v;

	if (!spec_is_list(slot.def->type)) {
		set_scalar(&slot, text, at);
		return;
	}
	if (!value_grow(&s->arena, v)) {
		SAY(&slot, at, NULL, "not enough memory for the list");
		return;
	}
	v->is_set = true;
	v->at = at;
	if (!fill_item(&slot, &v->items[v->count], text, at))
		return;
	/* If a variable is set twice, the last one counts. */
	for (size_t i = 0; slot.def->type == SPEC_TYPE_VARS && i < v->count; i++) {
		if (str_eq(v->items[i].var.name, v->items[v->count].var.name)) {
			v->items[i] = v->items[v->count];
			return;
		}
	}
	v->count++;
}

bool spec_value_add(struct spec *s, struct spec_value *v, const struct spec_item *item)
{
	if (!value_grow(&s->arena, v))
		return false;
	v->items[v->count++] = *item;
	return true;
}

/* --- keys: what may have been meant by one that does not exist --- */

/* True if the schema has a key "name.…". */
static bool is_section(const char *name)
{
	char section[32];

	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		if (spec_key_section(k, section, sizeof(section)) && str_eq(section, name))
			return true;
	return false;
}

/* A key of that name in another place: exactly, or but for a slip. */
static const char *hint_elsewhere(
	struct spec *s, const char *section, const char *name, unsigned slips)
{
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		if (str_distance(name, spec_key_leaf(k)) <= slips &&
			spec_keys[k].tighten != SPEC_OPERATOR_ONLY &&
			(*section || strchr(spec_keys[k].path, '.')))
			return arena_printf(&s->arena, "did you mean '%s'?", spec_keys[k].path);
	return NULL;
}

static const char *hint_sibling(struct spec *s, const char *section, const char *name)
{
	const char *siblings[SPEC_KEY_COUNT];
	char sections[SPEC_KEY_COUNT][32];
	size_t n = 0;
	const char *near;

	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		bool is_nested = spec_key_section(k, sections[k], sizeof(sections[k]));

		if (spec_keys[k].tighten == SPEC_OPERATOR_ONLY)
			continue;
		if (*section ? is_nested && str_eq(sections[k], section) : !is_nested)
			siblings[n++] = spec_key_leaf(k);
		else if (!*section)
			siblings[n++] = sections[k];
	}
	near = str_nearest(name, siblings, n);
	return near ? arena_printf(&s->arena, "did you mean '%s'?", near) : NULL;
}

static bool is_policy_key(const char *name)
{
	enum spec_key key = spec_key_find(name);

	return (key < SPEC_KEY_COUNT && spec_keys[key].tighten == SPEC_OPERATOR_ONLY) ||
	       str_eq(name, "defaults") || str_eq(name, "project_may");
}

/* Names from compose files and the like, and the keys that they correspond to. */
static const char *hint_habit(const char *name)
{
	static const char *const habits[][2] = {
		{ "volumes", "write binds: [SOURCE:TARGET[:ro|:rw]]" },
		{ "mounts", "write binds: [SOURCE:TARGET[:ro|:rw]]" },
		{ "ports", "write network: { publish: [\"PORT:PORT\"] }" },
		{ "expose", "write network: { publish: [\"PORT:PORT\"] }" },
		{ "timeout", "write limits: { time: 30m }" },
		{ "image", "write root: { image: host }, or dir:PATH" },
		{ "environment", "write env: { set: { NAME: value } }" },
		{ "entrypoint", "write command: [program, argument]" },
		{ "cmd", "write command: [program, argument]" },
		{ "working_dir", "write workdir: DIR" },
		{ "mem_limit", "write limits: { memory: 2G }" },
		{ "pids_limit", "write limits: { pids: 256 }" },
		{ "cpus", "write limits: { cpu: 1.5 }" },
		{ "network_mode", "write network: { mode: none }" },
		{ "services", "a spec is of one cage: write its keys at the top" },
		{ "user", "the command has a user of its own; fakeroot: true makes it uid 0" },
		{ "privileged", "no cage has privileges" },
	};

	for (size_t i = 0; i < COUNT_OF(habits); i++)
		if (str_eq(name, habits[i][0]))
			return habits[i][1];
	return NULL;
}

/* Returns the key that an unknown key was probably meant to be. */
static const char *hint_key(
	struct spec *s, const char *prefix, const char *section, const char *name, bool is_map)
{
	const char *point = strchr(name, '.');
	const char *hint = *section ? NULL : hint_habit(name);

	if (hint && !*prefix && !(str_eq(name, "environment") && !is_map))
		return hint;
	if (is_policy_key(name))
		return arena_printf(&s->arena,
			*prefix ? "'%s' stands at the top of a policy"
				: "'%s' belongs in the operator's policy.yaml",
			name);
	if (point && spec_key_find(name) < SPEC_KEY_COUNT)
		return arena_printf(
			&s->arena, "write %s below %.*s:", point + 1, (int)(point - name), name);
	hint = hint_elsewhere(s, section, name, 0);
	if (!hint)
		hint = hint_sibling(s, section, name);
	/* As compose files and the workflows of forges write them. */
	if (!hint && str_eq(section, "env"))
		return "write env: { set: { NAME: value } }, or pass: [NAME] for those set here";
	return hint || strlen(name) < 5 ? hint : hint_elsewhere(s, section, name, 1);
}

static void read_section(struct spec *s, struct spec_layer_values *values,
	const struct yaml_node *map, const char *prefix, const char *section)
{
	/*
	 * What will not be shown is not looked for: a file of slips costs no more than a hundred.
	 */
	for (const struct yaml_node *node = map->first; node && !diags_are_full(&s->diags);
		node = node->next) {
		const char *name = yaml_key(node);
		const char *path =
			*section ? arena_printf(&s->arena, "%s.%s", section, name) : name;
		enum spec_key key = path && !(!*section && strchr(name, '.')) ? spec_key_find(path)
									      : SPEC_KEY_COUNT;

		if (key < SPEC_KEY_COUNT && spec_keys[key].tighten != SPEC_OPERATOR_ONLY) {
			spec_value_from_yaml(s, values, key, node, prefix);
		} else if (!*section && is_section(name) && node->kind == YAML_MAP) {
			read_section(s, values, node, prefix, name);
		} else if (!*section && is_section(name)) {
			diags_error(&s->diags, node->at,
				str_eq(name, "network")
					? "write network: { mode: none }, or allowlist or host"
					: arena_printf(
						  &s->arena, "write the keys of %s below it", name),
				"%s%s: expected a map, not %s", prefix, name, yaml_describe(node));
		} else {
			diags_error(&s->diags, node->key->at,
				hint_key(s, prefix, section, name, node->kind != YAML_SCALAR),
				"unknown key '%s%s%s%s'", prefix, section, *section ? "." : "",
				name);
		}
	}
}

void spec_read_map(struct spec *s, struct spec_layer_values *values, const struct yaml_node *map,
	const char *prefix)
{
	read_section(s, values, map, prefix, "");
}

void spec_read_policy(struct spec *s, struct spec_layer_values *values, const struct yaml_node *map)
{
	static const char *const own[] = { "version", "environment", "trusted_projects",
		"self_governance", "keep_runs", "keep_age", "keep_size", "defaults",
		"project_may" };

	for (const struct yaml_node *node = map->first; node; node = node->next) {
		const char *name = node->key->text;
		struct spec_layer_values *below = str_eq(name, "defaults")      ? values
						  : str_eq(name, "project_may") ? &s->may
										: NULL;

		if (below && node->kind != YAML_MAP) {
			diags_error(&s->diags, node->at, NULL,
				"%s: expected a map of spec keys, not %s", name,
				yaml_describe(node));
		} else if (below) {
			spec_read_map(
				s, below, node, below == values ? "defaults." : "project_may.");
		} else if (is_policy_key(name) || str_eq(name, "version")) {
			spec_value_from_yaml(s, values, spec_key_find(name), node, "");
		} else {
			const char *near = str_nearest(name, own, COUNT_OF(own));
			const char *hint =
				near ? arena_printf(&s->arena, "did you mean '%s'?", near)
				     : "keys of a spec stand below defaults: or project_may: in a "
				       "policy";

			diags_error(&s->diags, node->key->at, hint, "unknown key '%s' in a policy",
				name);
		}
	}
}
