#include <errno.h>
#include <string.h>

#include "agent/agent_inside.h"
#include "base/str.h"
#include "spec/spec_grammar.h"

#define PATH_IN_CAGE AGENT_PLACE "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

void agent_say_no_memory(struct spec *s)
{
	diags_error(&s->diags, (struct diag_pos){ 0 }, NULL,
		"not enough memory for the profile of the agent");
}

/* --- before the layers are merged --- */

static bool is_said(const struct spec *s, enum spec_key key)
{
	for (enum spec_layer i = SPEC_LAYER_SYSTEM; i < SPEC_LAYER_COUNT; i++)
		if (s->layers[i].v[key].is_set)
			return true;
	return false;
}

/* Do two entries of a list speak of the same: a variable, a file, a place in the cage? */
static bool is_same(enum spec_key key, const struct spec_item *a, const struct spec_item *b)
{
	if (spec_keys[key].type == SPEC_TYPE_VARS)
		return str_eq(a->var.name, b->var.name);
	if (key == SPEC_SECRETS)
		return str_eq(a->secret.name, b->secret.name);
	return key == SPEC_BINDS ? str_eq(a->bind.to, b->bind.to) : str_eq(a->text, b->text);
}

/* Adds an entry in front of the layer's own, which win against it. */
static void add_item(struct spec *s, enum spec_layer layer, enum spec_key key,
	const struct spec_item *item, struct diag_pos at)
{
	struct spec_value *v = &s->layers[layer].v[key];
	struct spec_item *items;

	for (size_t i = 0; i < v->count; i++)
		if (is_same(key, &v->items[i], item))
			return;
	items = arena_array(&s->arena, v->count + 1, sizeof(*items));
	if (!items) {
		agent_say_no_memory(s);
		return;
	}
	items[0] = *item;
	if (v->count)
		memcpy(items + 1, v->items, v->count * sizeof(*items));
	/* Where the layer itself says nothing, those below it still count. */
	if (!v->is_set) {
		v->adds = v->is_set = true;
		v->at = at;
	}
	v->items = items;
	v->count++;
}

static void add_list(
	struct spec *s, enum spec_layer layer, enum spec_key key, const struct spec_value *more)
{
	for (size_t i = more->count; i > 0; i--)
		add_item(s, layer, key, &more->items[i - 1], more->at);
}

static void add_var(struct spec *s, enum spec_layer layer, enum spec_key key, const char *name,
	const char *value, struct diag_pos at)
{
	struct spec_item item = { .at = at, .var = { name, value } };

	item.text = arena_printf(&s->arena, "%s=%s", name, value);
	if (item.text)
		add_item(s, layer, key, &item, at);
	else
		agent_say_no_memory(s);
}

/*
 * What follows -- is for the agent: its options, its prompt. Only a whole path, or its own name, is
 * a command of its own.
 */
static void add_words(struct spec *s, const struct agent_profile *p)
{
	struct spec_value *words = &s->layers[SPEC_LAYER_OPTIONS].v[SPEC_COMMAND];
	const struct spec_value *command = &p->values.v[SPEC_COMMAND];
	struct spec_item *items;

	if (!words->count || !command->count || strchr(words->items[0].text, '/') ||
		str_eq(words->items[0].text, command->items[0].text))
		return;
	items = arena_array(&s->arena, command->count + words->count, sizeof(*items));
	if (!items) {
		agent_say_no_memory(s);
		return;
	}
	memcpy(items, command->items, command->count * sizeof(*items));
	memcpy(items + command->count, words->items, words->count * sizeof(*items));
	words->items = items;
	words->count += command->count;
}

static void add_program(struct spec *s, enum spec_layer layer, const struct agent_profile *p,
	const struct agent_found *found)
{
	struct diag_pos at = { .source = p->source };

	for (size_t i = 0; i < found->bind_count; i++) {
		struct spec_item from = { .text = found->binds[i].from };
		struct spec_item to = { .text = found->binds[i].to };
		struct spec_item bind = { .at = at };

		if (spec_join_bind(&s->arena, &from, &to, false, &bind))
			add_item(s, layer, SPEC_BINDS, &bind, at);
		else
			agent_say_no_memory(s);
	}
	if (found->launcher) {
		const char *path =
			arena_printf(&s->arena, AGENT_PLACE "/bin/%s", agent_program(s, p));

		if (path)
			add_var(s, layer, SPEC_FILES, path, found->launcher, at);
		else
			agent_say_no_memory(s);
	}
	if (found->bind_count || found->launcher)
		add_var(s, layer, SPEC_ENV_SET, "PATH", PATH_IN_CAGE, at);
}

const char *agent_program(const struct spec *s, const struct agent_profile *p)
{
	if (!p->takes_any)
		return p->program;
	for (int i = SPEC_LAYER_OPTIONS; i > SPEC_LAYER_BUILTIN; i--)
		if (s->layers[i].v[SPEC_COMMAND].count)
			return s->layers[i].v[SPEC_COMMAND].items[0].text;
	return NULL;
}

void agent_apply(struct spec *s, enum spec_layer layer, const struct agent_profile *p,
	const struct agent_found *found)
{
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		const struct spec_value *v = &p->values.v[k];
		bool is_whole = !spec_is_list(spec_keys[k].type) || k == SPEC_COMMAND;

		if (!v->is_set)
			continue;
		/* Who wants no network, or all of it, needs no list. */
		if (k == SPEC_NETWORK_ALLOW && is_said(s, SPEC_NETWORK_MODE) &&
			s->layers[layer].v[SPEC_NETWORK_MODE].choice != SPEC_NET_ALLOWLIST)
			continue;
		if (!is_whole)
			add_list(s, layer, k, v);
		else if (!is_said(s, k))
			s->layers[layer].v[k] = *v;
	}
	add_words(s, p);
	add_program(s, layer, p, found);
}

/* --- keys that stay outside --- */

int agent_make_secret(
	struct spec *s, const struct agent_key *key, struct spec_item *ret, struct err *e)
{
	const char *parts[SPEC_SECRET_PARTS] = { [SPEC_SECRET_NAME] = key->name,
		[SPEC_SECRET_HOST] = key->host,
		[SPEC_SECRET_HEADER] = key->header,
		[SPEC_SECRET_SCHEME] = key->scheme,
		[SPEC_SECRET_FROM] = arena_printf(&s->arena, "env:%s", key->variable) };
	enum spec_secret_part wrong;

	return parts[SPEC_SECRET_FROM] ? spec_make_secret(&s->arena, parts, ret, &wrong, e)
				       : err_set(e, ERR_SYS, ENOMEM, "not enough memory for a key");
}

bool agent_add_secret(
	struct spec *s, enum spec_layer layer, const struct agent_profile *p, const char *variable)
{
	for (size_t i = 0; i < p->key_count; i++) {
		struct spec_item item = { .at = p->keys[i].at };
		struct err e = { 0 };

		if (!str_eq(p->keys[i].variable, variable))
			continue;
		if (agent_make_secret(s, &p->keys[i], &item, &e) == 0)
			add_item(s, layer, SPEC_SECRETS, &item, item.at);
		else
			diags_error(&s->diags, item.at, NULL, "keys: %s", e.text);
		return true;
	}
	return false;
}
