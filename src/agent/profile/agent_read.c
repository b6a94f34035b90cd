#include <string.h>

#include "agent/profile/agent.h"
#include "base/count.h"
#include "base/str.h"
#include "spec/spec_grammar.h"
#include "spec/spec_read.h"
#include "spec/yaml.h"

/* --- the built-in profiles --- */

/* data/agents/NAME.yaml, as they are. */
#define EACH_PROFILE(X)                                                                            \
	X(any)                                                                                     \
	X(claude)                                                                                  \
	X(codex)                                                                                   \
	X(gemini)                                                                                  \
	X(opencode)                                                                                \
	X(shell)

#define DECLARE(name) extern const char agent_text_##name[];
#define ROW(name)     { #name, agent_text_##name },

EACH_PROFILE(DECLARE)

const struct agent_builtin agent_builtins[] = { EACH_PROFILE(ROW){ NULL, NULL } };

const char *agent_builtin_text(const char *name)
{
	for (const struct agent_builtin *b = agent_builtins; b->name; b++)
		if (str_eq(b->name, name))
			return b->text;
	return NULL;
}

/* --- reading --- */

/* A profile under way. */
struct reading {
	struct spec *s;
	struct agent_profile *p;
};

static bool read_is_text(struct reading *r, const struct yaml_node *node, const char *what)
{
	if (node->kind == YAML_SCALAR && node->type == YAML_TEXT)
		return true;
	diags_error(&r->s->diags, node->at, NULL, "%s: expected text, not %s", what,
		yaml_describe(node));
	return false;
}

/* One text of a map: where it goes, and by which grammar it is judged. */
struct member {
	const char *name;
	size_t at;
	enum spec_grammar grammar;
	bool is_needed;
};

#define ENDS_MEMBERS                                                                               \
	{                                                                                          \
		0                                                                                  \
	}

static const struct member *agent_read_find_member(const struct member *members, const char *name)
{
	for (; members->name; members++)
		if (str_eq(members->name, name))
			return members;
	return NULL;
}

static void agent_read_say_unknown(struct reading *r, const struct yaml_node *node, const char *in)
{
	diags_error(
		&r->s->diags, node->key->at, NULL, "unknown key '%s' in %s", yaml_key(node), in);
}

static void agent_read_read_member(
	struct reading *r, const struct yaml_node *node, const struct member *m, void *into)
{
	struct spec_item item = { 0 };
	struct err e = { 0 };

	if (!read_is_text(r, node, m->name))
		return;
	if (spec_parse(m->grammar, &r->s->arena, node->text, &item, &e) < 0) {
		diags_error(&r->s->diags, node->at, NULL, "%s: %s", m->name, e.text);
		return;
	}
	*(const char **)(void *)((char *)into + m->at) = item.text;
}

static void check_needed(struct reading *r, struct diag_pos at, const struct member *members,
	const void *from, const char *in)
{
	for (; members->name; members++)
		if (members->is_needed &&
			!*(const char *const *)(const void *)((const char *)from + members->at))
			diags_error(&r->s->diags, at, NULL, "%s does not say its '%s'", in,
				members->name);
}

static bool agent_read_read_members(struct reading *r, const struct yaml_node *map,
	const struct member *members, void *into, const char *in)
{
	size_t before = r->s->diags.errors;

	if (map->kind != YAML_MAP) {
		diags_error(&r->s->diags, map->at, NULL, "%s: expected a map, not %s", in,
			yaml_describe(map));
		return false;
	}
	for (const struct yaml_node *node = map->first; node; node = node->next) {
		const struct member *m = agent_read_find_member(members, yaml_key(node));

		if (m)
			agent_read_read_member(r, node, m, into);
		else
			agent_read_say_unknown(r, node, in);
	}
	check_needed(r, map->at, members, into, in);
	return r->s->diags.errors == before;
}

/* --- parts of a profile --- */

#define OF(type, member) offsetof(struct type, member)

static void read_program(struct reading *r, const struct yaml_node *node)
{
	static const struct member members[] = {
		{ "name", OF(agent_profile, program), SPEC_GRAMMAR_NAME, false },
		{ "package", OF(agent_profile, package), SPEC_GRAMMAR_ANY, false },
		{ "native", OF(agent_profile, native), SPEC_GRAMMAR_INSIDE, false },
		{ "native_run", OF(agent_profile, native_run), SPEC_GRAMMAR_INSIDE, false },
		ENDS_MEMBERS,
	};

	/* The word that says: whichever the command names. */
	if (node->kind == YAML_SCALAR && str_eq(node->text, "any"))
		r->p->takes_any = true;
	else
		agent_read_read_members(r, node, members, r->p, "program");
}

static void agent_read_read_keys(struct reading *r, const struct yaml_node *list)
{
	static const struct member members[] = {
		{ "name", OF(agent_key, name), SPEC_GRAMMAR_NAME, true },
		{ "variable", OF(agent_key, variable), SPEC_GRAMMAR_VARIABLE, true },
		{ "host", OF(agent_key, host), SPEC_GRAMMAR_ANY, true },
		{ "header", OF(agent_key, header), SPEC_GRAMMAR_NAME, true },
		{ "scheme", OF(agent_key, scheme), SPEC_GRAMMAR_NAME, false },
		{ "base_url", OF(agent_key, base_url), SPEC_GRAMMAR_VARIABLE, false },
		{ "path", OF(agent_key, path), SPEC_GRAMMAR_WORD, false },
		ENDS_MEMBERS,
	};

	if (list->kind != YAML_LIST || list->count > AGENT_MAX_KEYS) {
		diags_error(&r->s->diags, list->at, NULL,
			"keys: expected a list of at most %d maps", AGENT_MAX_KEYS);
		return;
	}
	for (const struct yaml_node *node = list->first; node; node = node->next) {
		struct agent_key *key = &r->p->keys[r->p->key_count++];
		struct spec_item item = { 0 };
		struct err e = { 0 };

		*key = (struct agent_key){ .path = "", .at = node->at };
		if (agent_read_read_members(r, node, members, key, "a key") &&
			agent_make_secret(r->s, key, &item, &e) < 0)
			diags_error(&r->s->diags, node->at, NULL, "keys: %s", e.text);
	}
}

static void read_values(struct reading *r, const struct yaml_node *node)
{
	if (node->kind != YAML_MAP)
		diags_error(&r->s->diags, node->at, NULL, "spec: expected a map of spec keys");
	else
		spec_read_map(r->s, &r->p->values, node, "spec.");
}

static void read_skip(struct reading *r, const struct yaml_node *node)
{
	if (node->kind != YAML_SCALAR || !str_eq(node->text, "1"))
		diags_error(&r->s->diags, node->at, NULL, "this bawn understands version 1");
}

/* Members that are maps and lists. */
static const struct {
	const char *name;
	void (*read)(struct reading *r, const struct yaml_node *node);
} parts[] = {
	{ "version", read_skip },
	{ "program", read_program },
	{ "keys", agent_read_read_keys },
	{ "spec", read_values },
};

#define PARTS COUNT_OF(parts)

static const struct member texts[] = {
	{ "name", OF(agent_profile, name), SPEC_GRAMMAR_NAME, true },
	{ "title", OF(agent_profile, title), SPEC_GRAMMAR_ANY, true },
	{ "prompts", OF(agent_profile, prompts), SPEC_GRAMMAR_TARGET, false },
	ENDS_MEMBERS,
};

/* Keys that a profile must not set, because it is added to other people's specs. */
static void check_values(struct reading *r)
{
	static const enum spec_key allowed[] = { SPEC_COMMAND, SPEC_FILES, SPEC_INITIAL_FILES,
		SPEC_STATE, SPEC_BINDS, SPEC_ENV_PASS, SPEC_ENV_SET, SPEC_NETWORK_MODE,
		SPEC_NETWORK_ALLOW, SPEC_STARTUP_COMMANDS, SPEC_TOOLS, SPEC_TOOLCHAINS };
	const struct spec_value *mode = &r->p->values.v[SPEC_NETWORK_MODE];
	const struct spec_value *binds = &r->p->values.v[SPEC_BINDS];

	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		bool is_allowed = false;

		for (size_t i = 0; i < COUNT_OF(allowed); i++)
			is_allowed |= allowed[i] == k;
		if (r->p->values.v[k].is_set && !is_allowed)
			diags_error(&r->s->diags, r->p->values.v[k].at, NULL,
				"spec.%s: a profile cannot say this", spec_keys[k].path);
	}
	if (mode->is_set && mode->choice == SPEC_NET_HOST)
		diags_error(&r->s->diags, mode->at, "say so in a spec, or by --network host",
			"spec.network.mode: a profile cannot give the host's network");
	for (size_t i = 0; i < binds->count; i++)
		if (binds->items[i].bind.is_writable)
			diags_error(&r->s->diags, binds->items[i].at, "say so in a spec, or by -v",
				"spec.binds: a profile cannot let '%s' be written",
				binds->items[i].bind.from);
}

static void read_part(struct reading *r, const struct yaml_node *node)
{
	const struct member *text = agent_read_find_member(texts, yaml_key(node));

	if (text) {
		agent_read_read_member(r, node, text, r->p);
		return;
	}
	for (size_t i = 0; i < PARTS; i++) {
		if (str_eq(parts[i].name, yaml_key(node))) {
			parts[i].read(r, node);
			return;
		}
	}
	agent_read_say_unknown(r, node, "a profile");
}

bool agent_read(
	struct spec *s, const char *from, const char *bytes, size_t n, struct agent_profile *ret)
{
	struct reading r = { s, ret };
	size_t before = s->diags.errors;
	const struct yaml_node *map;
	struct diag_pos top = { .line = 1, .column = 1, .width = 1 };

	*ret = (struct agent_profile){ .source = diags_add_source(&s->diags, from, bytes, n) };
	top.source = ret->source;
	map = yaml_read(&s->arena, &s->diags, ret->source, bytes, n);
	if (!map)
		return false;
	if (!yaml_get(map, "version"))
		diags_error(&s->diags, top, "write as its first line: version: 1",
			"the profile does not say its version");
	for (const struct yaml_node *node = map->first; node; node = node->next)
		read_part(&r, node);
	check_needed(&r, top, texts, ret, "the profile");
	check_values(&r);
	return s->diags.errors == before;
}
