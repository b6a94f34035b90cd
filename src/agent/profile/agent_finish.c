#include <string.h>

#include "agent/profile/agent_inside.h"
#include "base/buf.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"

const struct spec_item *agent_find_var(const struct spec *s, enum spec_key key, const char *name)
{
	const struct spec_value *v = spec_list(s, key);

	for (size_t i = 0; i < v->count; i++)
		if (str_eq(key == SPEC_ENV_PASS ? v->items[i].text : v->items[i].var.name, name))
			return &v->items[i];
	return NULL;
}

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

/* Has the profile a text with a place for them? */
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

/* As it stands between the quotes of a JSON or TOML string. */
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

/* What texts of a profile name. */
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
