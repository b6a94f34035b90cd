#include <errno.h>
#include <string.h>

#include "agent/profile/agent.h"
#include "base/buf.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"
#include "spec/spec_grammar.h"

/*
 * What a file that is the project's word cannot say once the operator has named an agent: the
 * settings that agree with the wall, the variables that name them and the key are the profile's,
 * and whoever wrote the project wrote none of them. What agents read beside their settings is in
 * the same folders. It is no wall inside of the cage: what a project starts there, by
 * startup_commands or when the agent runs its tests, may write what the agent may.
 */

static bool agent_is_projects(const struct spec *s, enum spec_key key)
{
	return s->set_by[key] == SPEC_LAYER_FILE && !s->is_file_trusted && !s->is_narrowing;
}

/* True if the project's file set this entry of a list. */
static bool agent_is_projects_item(
	const struct spec *s, enum spec_key key, const struct spec_item *item)
{
	const struct spec_value *said = &s->layers[SPEC_LAYER_FILE].v[key];

	return !s->is_file_trusted && !s->is_narrowing && said->is_set &&
	       item->at.source == said->at.source;
}

/* The part of a file's path that is the agent's: its folder, unless that is everybody's. */
static size_t own_part(const char *path)
{
	static const char *const shared[] = { "/etc", "/home/agent", "/opt", "/run" };
	size_t n = (size_t)(strrchr(path, '/') - path);

	for (size_t i = 0; i < COUNT_OF(shared); i++)
		if (strlen(shared[i]) == n && memcmp(path, shared[i], n) == 0)
			return strlen(path);
	return n;
}

/* True if one of the paths is in the other. Only `n` bytes of the second count. */
static bool meets(const char *path, const char *place, size_t n)
{
	size_t shorter = strlen(path) < n ? strlen(path) : n;

	return strncmp(path, place, shorter) == 0 && (path[shorter] == '/' || !path[shorter]) &&
	       (shorter == n || place[shorter] == '/');
}

/* True if a path belongs to the agent, or is above one that does. */
static bool is_place(const struct agent_profile *p, const char *path)
{
	static const enum spec_key keys[] = { SPEC_FILES, SPEC_INITIAL_FILES };
	const struct spec_value *state = &p->values.v[SPEC_STATE];

	for (size_t k = 0; k < COUNT_OF(keys); k++) {
		for (size_t i = 0; i < p->values.v[keys[k]].count; i++) {
			const char *file = p->values.v[keys[k]].items[i].var.name;

			if (meets(path, file, own_part(file)))
				return true;
		}
	}
	for (size_t i = 0; i < state->count; i++)
		if (meets(path, state->items[i].text, strlen(state->items[i].text)))
			return true;
	return meets(path, AGENT_PLACE, strlen(AGENT_PLACE)) ||
	       (p->prompts && meets(path, p->prompts, own_part(p->prompts)));
}

static bool project_is_variable(const struct agent_profile *p, const char *name)
{
	const struct spec_value *set = &p->values.v[SPEC_ENV_SET];

	for (size_t i = 0; i < set->count; i++)
		if (str_eq(set->items[i].var.name, name))
			return true;
	for (size_t i = 0; i < p->key_count; i++)
		if (str_eq(p->keys[i].variable, name) ||
			(p->keys[i].base_url && str_eq(p->keys[i].base_url, name)))
			return true;
	return (p->program || p->takes_any) && str_eq(name, "PATH");
}

#define AGENTS_HINT "remove it, or run with --trust if the file is yours"

static const struct diag_list agents_list = {
	"this file says what only the agent's profile may say", AGENTS_HINT
};

static void say_agents(struct spec *s, const struct agent_profile *p, enum spec_key key,
	const char *what, struct diag_pos at)
{
	struct diag *said = diags_error(&s->diags, at, AGENTS_HINT,
		"%s: '%s' is for the profile '%s' to say, not for the project", spec_keys[key].path,
		what, p->name);

	if (!said)
		return;
	said->brief = arena_printf(&s->arena, "%s: '%s'", spec_keys[key].path, what);
	said->list = said->brief ? &agents_list : NULL;
}

/* Reports the entries of a list that the project's file set and that belong to the agent. */
static void project_check(struct spec *s, const struct agent_profile *p, enum spec_key key,
	bool (*is_agents)(const struct agent_profile *p, const char *name))
{
	const struct spec_value *v = spec_list(s, key);

	for (size_t i = 0; i < v->count; i++) {
		const struct spec_item *item = &v->items[i];
		const char *name = key == SPEC_BINDS ? item->bind.to : item->var.name;

		if (agent_is_projects_item(s, key, item) && is_agents(p, name))
			say_agents(s, p, key, name, item->at);
	}
}

/* Reports keys of the project's file that belong to the agent. Runs before anything is added. */
static void agent_check_project(struct spec *s, const struct agent_profile *p)
{
	const char *place = spec_text(s, SPEC_PROJECT_AT);

	project_check(s, p, SPEC_FILES, is_place);
	project_check(s, p, SPEC_INITIAL_FILES, is_place);
	project_check(s, p, SPEC_BINDS, is_place);
	project_check(s, p, SPEC_ENV_SET, project_is_variable);
	if (agent_is_projects(s, SPEC_PROJECT_AT) && is_place(p, place))
		say_agents(s, p, SPEC_PROJECT_AT, place, spec_where(s, SPEC_PROJECT_AT));
	/* Without them there are no hooks. */
	if (agent_is_projects(s, SPEC_TOOLS) && p->values.v[SPEC_TOOLS].yes &&
		!spec_bool(s, SPEC_TOOLS))
		say_agents(s, p, SPEC_TOOLS, "false", spec_where(s, SPEC_TOOLS));
}

/* --- what a profile adds --- */

#define PATH_IN_CAGE AGENT_PLACE "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* The entry of a name, of those that are settled; or NULL. */
static const struct spec_item *agent_find_var(
	const struct spec *s, enum spec_key key, const char *name)
{
	const struct spec_value *v = spec_list(s, key);

	for (size_t i = 0; i < v->count; i++)
		if (str_eq(key == SPEC_ENV_PASS ? v->items[i].text : v->items[i].var.name, name))
			return &v->items[i];
	return NULL;
}

static void agent_say_no_memory(struct spec *s)
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
		/* A command that the operator gave is run as it is. */
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

/* True if the profile may set a key: not if it is set, unless the project's file set the command.
 */
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
		/* With no network or the host's, no list is needed. The mode is settled before the
		 * list. */
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

/* --- what needs the others to be settled --- */

/* Agents believe what stands in their settings, or is said there, more than what a project says. */
static const char projects_word[] = "From the project's own file, not from the operator:\n\n";

/* All of them as one text; "" where there are none, NULL without memory. */
static const char *join_prompts(struct spec *s)
{
	const struct spec_value *prompts = spec_list(s, SPEC_STARTUP_PROMPTS);
	own(buf) struct buf text = { .max = (size_t)1 << 20 };

	for (size_t i = 0; i < prompts->count; i++) {
		bool is_projects =
			agent_is_projects_item(s, SPEC_STARTUP_PROMPTS, &prompts->items[i]);

		buf_printf(&text, "%s%s%s\n", i ? "\n" : "", is_projects ? projects_word : "",
			prompts->items[i].text);
	}
	return text.failed ? NULL : arena_copy(&s->arena, buf_text(&text), text.len);
}

/* True if the profile has a text with a placeholder for them. */
static bool has_place_for_prompts(const struct agent_profile *p)
{
	const struct spec_value *files = &p->values.v[SPEC_FILES];

	for (size_t i = 0; i < files->count; i++)
		if (strstr(files->items[i].var.value, "@PROMPTS@"))
			return true;
	return false;
}

static void add_prompts(struct spec *s, const struct agent_profile *p, const char *text)
{
	struct diag_pos at = spec_where(s, SPEC_STARTUP_PROMPTS);

	if (!*text)
		return;
	if (p->prompts)
		agent_add_var(s, SPEC_FILES, p->prompts, text, at);
	else if (!has_place_for_prompts(p))
		diags_error(&s->diags, at, "remove them, or put them on its command line",
			"startup_prompts: the profile '%s' says no way to hand them over", p->name);
}

/* --- where the model is --- */

/* The secret that a key was declared as, by whatever name. */
static const struct spec_secret *find_secret(const struct spec *s, const struct agent_key *key)
{
	const struct spec_value *secrets = spec_list(s, SPEC_SECRETS);

	for (size_t i = 0; i < secrets->count; i++) {
		const struct spec_secret *secret = &secrets->items[i].secret;

		if (str_eq(secret->name, key->name))
			return secret;
	}
	return NULL;
}

/*
 * The address for a key's requests: what the operator set, bawn's own where the key is a secret, or
 * its maker's. NULL without memory.
 */
static const char *finish_address_of(struct spec *s, const struct agent_key *key)
{
	const struct spec_item *set =
		key->base_url ? agent_find_var(s, SPEC_ENV_SET, key->base_url) : NULL;
	const struct spec_secret *secret = find_secret(s, key);

	if (set)
		return set->var.value;
	if (secret)
		return arena_printf(&s->arena, "http://bawn-host/%s%s", secret->name, key->path);
	return arena_printf(&s->arena, "https://%.*s%s",
		(int)(str_ends(key->host, ":443") ? strlen(key->host) - 4 : strlen(key->host)),
		key->host, key->path);
}

/* Agents want a key, and an address; with a secret the one is a word, and the other bawn's. */
static void add_key(struct spec *s, const struct agent_key *key)
{
	const char *address = finish_address_of(s, key);

	if (!find_secret(s, key))
		return;
	if (key->base_url)
		agent_add_var(s, SPEC_ENV_SET, key->base_url, address, key->at);
	if (!agent_find_var(s, SPEC_ENV_PASS, key->variable))
		agent_add_var(s, SPEC_ENV_SET, key->variable, AGENT_NO_KEY, key->at);
}

/* --- texts that name places --- */

/* Escapes a text for a JSON or TOML string. */
static void put_escaped(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_printf(out, "\\%c", *text);
		else if ((unsigned char)*text < ' ' || *text == 0x7f)
			buf_printf(out, "\\u%04x", (unsigned)*text);
		else
			buf_putc(out, *text);
	}
}

static bool put_place(struct buf *out, const char **at, const char *name, const char *value)
{
	if (!value || !str_starts(*at, name))
		return false;
	put_escaped(out, value);
	*at += strlen(name);
	return true;
}

/* The placeholders in texts of a profile. */
struct places {
	const char *project, *address, *prompts;
};

static const char *fill_in(struct spec *s, const char *text, const struct places *places)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };

	if (!strchr(text, '@'))
		return text;
	while (*text)
		if (!put_place(&out, &text, "@PROJECT@", places->project) &&
			!put_place(&out, &text, "@BASE_URL@", places->address) &&
			!put_place(&out, &text, "@PROMPTS@", places->prompts))
			buf_putc(&out, *text++);
	return out.failed ? NULL : arena_copy(&s->arena, buf_text(&out), out.len);
}

/* Texts of the profile; what the operator wrote is as they wrote it. */
static void fill_in_all(struct spec *s, enum spec_key key, const struct agent_profile *p,
	const struct places *places)
{
	struct spec_value *v = &s->settled.v[key];
	struct spec_item *items = arena_array(&s->arena, v->count, sizeof(*items));

	if (!items) {
		agent_say_no_memory(s);
		return;
	}
	for (size_t i = 0; i < v->count; i++) {
		struct spec_item *item = &items[i];

		*item = v->items[i];
		if (item->at.source != p->source)
			continue;
		item->var.value = fill_in(s, item->var.value, places);
		item->text = item->var.value ? arena_printf(&s->arena, "%s=%s", item->var.name,
						       item->var.value)
					     : NULL;
		if (!item->text) {
			agent_say_no_memory(s);
			return;
		}
	}
	v->items = items;
}

/* JSON and TOML have no way to write other bytes. */
static bool finish_is_utf8(const char *text)
{
	uint32_t unused;

	for (size_t n; *text; text += n)
		if (!(n = utf8_decode(text, strlen(text), &unused)))
			return false;
	return true;
}

void agent_finish(struct spec *s, const struct agent_profile *p, const char *project)
{
	const struct places places = { .project = project,
		.address = p->key_count ? finish_address_of(s, &p->keys[0]) : NULL,
		.prompts = join_prompts(s) };

	if (!places.prompts) {
		agent_say_no_memory(s);
		return;
	}
	if (!finish_is_utf8(project)) {
		diags_error(&s->diags, spec_where(s, SPEC_PROJECT_PATH),
			"rename it, or use project.cage: full, where it has another path",
			"agent: settings cannot name the project's path, which is not UTF-8");
		return;
	}
	fill_in_all(s, SPEC_FILES, p, &places);
	fill_in_all(s, SPEC_INITIAL_FILES, p, &places);
	for (size_t i = 0; i < p->key_count; i++)
		add_key(s, &p->keys[i]);
	add_prompts(s, p, places.prompts);
}
