#include <errno.h>
#include <string.h>

#include "agent/profile/agent_inside.h"
#include "base/str.h"
#include "spec/spec_grammar.h"

#define PATH_IN_CAGE AGENT_PLACE "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

void agent_say_no_memory(struct spec *s)
{
	diags_error(&s->diags, (struct diag_pos){ 0 }, NULL,
		"not enough memory for the profile of the agent");
}

/* Do two entries of a list speak of the same: a variable, a file, a place in the cage? */
static bool apply_is_same(enum spec_key key, const struct spec_item *a, const struct spec_item *b)
{
	if (spec_keys[key].type == SPEC_TYPE_VARS)
		return str_eq(a->var.name, b->var.name);
	if (key == SPEC_SECRETS)
		return str_eq(a->secret.name, b->secret.name);
	return key == SPEC_BINDS ? str_eq(a->bind.to, b->bind.to) : str_eq(a->text, b->text);
}

void agent_add_item(struct spec *s, enum spec_key key, const struct spec_item *item)
{
	struct spec_value *v = &s->settled.v[key];
	struct spec_item *items;

	for (size_t i = 0; i < v->count; i++)
		if (apply_is_same(key, &v->items[i], item))
			return;
	/* The list may be a layer's own, which stays as it is. */
	items = arena_array(&s->arena, v->count + 1, sizeof(*items));
	if (!items || !item->text) {
		agent_say_no_memory(s);
		return;
	}
	if (v->count)
		memcpy(items, v->items, v->count * sizeof(*items));
	items[v->count++] = *item;
	v->items = items;
	if (!v->is_set)
		v->at = item->at;
	v->is_set = true;
}

void agent_add_var(
	struct spec *s, enum spec_key key, const char *name, const char *value, struct diag_pos at)
{
	struct spec_item item = { .at = at, .var = { name, value } };

	item.text = value ? arena_printf(&s->arena, "%s=%s", name, value) : NULL;
	agent_add_item(s, key, &item);
}

/* /bin/sh, and neither "/review" nor "/etc/hosts is wrong". */
static bool is_whole_path(const char *word)
{
	return word[0] == '/' && strchr(word + 1, '/') && !strpbrk(word, " \t\n");
}

/*
 * What follows -- is for the agent: its options, its prompt. Only a whole path, or its own name, is
 * a command of its own.
 */
static void add_words(struct spec *s, const struct agent_profile *p)
{
	struct spec_value *words = &s->settled.v[SPEC_COMMAND];
	const struct spec_value *command = &p->values.v[SPEC_COMMAND];
	struct spec_item *items;

	if (s->set_by[SPEC_COMMAND] != SPEC_LAYER_OPTIONS || !words->count || !command->count ||
		is_whole_path(words->items[0].text) ||
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

/* The launcher is for who calls the agent by its name; starting it directly spares a shell. */
static void start_directly(struct spec *s, const char *program, const struct agent_found *found)
{
	struct spec_value *command = &s->settled.v[SPEC_COMMAND];
	size_t more = found->words[1] ? 1 : 0;
	struct spec_item *items;

	if (!program || !command->count || !str_eq(command->items[0].text, program))
		return;
	items = arena_array(&s->arena, command->count + more, sizeof(*items));
	if (!items) {
		agent_say_no_memory(s);
		return;
	}
	memcpy(items + more, command->items, command->count * sizeof(*items));
	items[0] = command->items[0];
	for (size_t i = 0; i <= more; i++)
		items[i].text = found->words[i];
	command->items = items;
	command->count += more;
}

static void add_program(
	struct spec *s, const struct agent_profile *p, const struct agent_found *found)
{
	struct diag_pos at = { .source = p->source };

	for (size_t i = 0; i < found->bind_count; i++) {
		struct spec_item from = { .text = found->binds[i].from };
		struct spec_item to = { .text = found->binds[i].to };
		struct spec_item bind = { .at = at };

		if (spec_join_bind(&s->arena, &from, &to, false, &bind))
			agent_add_item(s, SPEC_BINDS, &bind);
		else
			agent_say_no_memory(s);
	}
	if (found->launcher) {
		const char *program = agent_program(s, p);
		const char *path = arena_printf(&s->arena, AGENT_PLACE "/bin/%s", program);
		const struct spec_item *file;

		if (path)
			agent_add_var(s, SPEC_FILES, path, found->launcher, at);
		else
			agent_say_no_memory(s);
		file = path ? agent_find_var(s, SPEC_FILES, path) : NULL;
		/* What the operator wrote there is run as it is. */
		if (file && file->var.value == found->launcher)
			start_directly(s, program, found);
	}
	if (found->bind_count || found->launcher)
		agent_add_var(s, SPEC_ENV_SET, "PATH", PATH_IN_CAGE, at);
}

const char *agent_program(const struct spec *s, const struct agent_profile *p)
{
	const struct spec_value *command = spec_list(s, SPEC_COMMAND);

	if (!p->takes_any)
		return p->program;
	/* A project does not choose which of the operator's programs it sees. */
	if (agent_is_projects(s, SPEC_COMMAND))
		return NULL;
	return command->count ? command->items[0].text : NULL;
}

/* Who names an agent on the command line wants that, whatever the project's file would run. */
static bool is_open(const struct spec *s, enum spec_key key)
{
	return !spec_is_declared(s, key) || (key == SPEC_COMMAND && agent_is_projects(s, key) &&
						    s->set_by[SPEC_AGENT] == SPEC_LAYER_OPTIONS);
}

void agent_apply(struct spec *s, const struct agent_profile *p, const struct agent_found *found)
{
	agent_check_project(s, p);
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		const struct spec_value *v = &p->values.v[k];
		bool is_whole = !spec_is_list(spec_keys[k].type) || k == SPEC_COMMAND;

		if (!v->is_set)
			continue;
		/* Who wants no network, or all of it, needs no list. Its mode comes before it. */
		if (k == SPEC_NETWORK_ALLOW &&
			spec_choice(s, SPEC_NETWORK_MODE) != SPEC_NET_ALLOWLIST)
			continue;
		for (size_t i = 0; !is_whole && i < v->count; i++)
			agent_add_item(s, k, &v->items[i]);
		if (is_whole && is_open(s, k)) {
			s->settled.v[k] = *v;
			s->set_by[k] = s->set_by[SPEC_AGENT];
		}
	}
	add_words(s, p);
	add_program(s, p, found);
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
				       : err_set(e, ERR_SYS, ENOMEM,
						 "cannot use a key of the agent: out of memory");
}

bool agent_add_secret(struct spec *s, const struct agent_profile *p, const char *variable)
{
	for (size_t i = 0; i < p->key_count; i++) {
		struct spec_item item = { .at = p->keys[i].at };
		struct err e = { 0 };

		if (!str_eq(p->keys[i].variable, variable))
			continue;
		if (agent_make_secret(s, &p->keys[i], &item, &e) == 0)
			agent_add_item(s, SPEC_SECRETS, &item);
		else
			diags_error(&s->diags, item.at, NULL, "keys: %s", e.text);
		return true;
	}
	return false;
}
