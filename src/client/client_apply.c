#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/str.h"
#include "client/client.h"
#include "spec/spec_grammar.h"

static const struct client_def *find_def(const char *name)
{
	for (const struct client_def *c = client_defs; c->name; c++)
		if (str_eq(c->name, name))
			return c;
	return NULL;
}

/* Says where the operator's client goes, so that the one in the cage goes there too. */
static void apply_tell(struct spec *s, const struct client_def *c, const struct client_found *found,
	struct diag_pos at)
{
	own(buf) struct buf text = { .max = (size_t)1 << 16 };
	bool is_said = false;

	for (size_t i = 0; i < found->setting_count; i++) {
		const struct client_setting *x = &found->settings[i];

		if (c->says_variables && x->value)
			agent_add_var(s, SPEC_ENV_SET, x->key, x->value, at);
		if (!c->file || !x->value)
			continue;
		buf_puts(&text, is_said ? "" : c->head);
		buf_printf(&text, "%s%s%s\n", x->key, c->between, x->value);
		is_said = true;
	}
	if (is_said)
		agent_add_var(s, SPEC_FILES, c->file,
			text.failed ? NULL : arena_copy(&s->arena, buf_text(&text), text.len), at);
}

static void apply_refuse(struct spec *s, const struct client_def *c, struct diag_pos at,
	const char *hint, const char *why)
{
	diags_error(&s->diags, at, hint, "network.allow: cannot find the hosts of '%s': %s",
		c->name, why);
}

/* One host of a client as an entry; false: it was said what is wrong with it. */
static bool make_item(struct spec *s, const struct client_def *c, const char *host,
	struct diag_pos at, struct spec_item *ret)
{
	struct err e = { 0 };

	*ret = (struct spec_item){ .at = at };
	if (str_starts(host, "localhost:")) {
		apply_refuse(s, c, at,
			"name its port: --host-port PORT, and use bawn-host:PORT in the cage",
			"it is on this machine itself");
		return false;
	}
	if (spec_grammar_egress(&s->arena, host, ret, &e) < 0) {
		apply_refuse(s, c, at, NULL, e.text);
		return false;
	}
	ret->egress.client = c->name;
	return true;
}

static bool has_text(const struct spec_item *items, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(items[i].text, text))
			return true;
	return false;
}

void client_apply(
	struct spec *s, struct spec_value *allow, const struct agent_search *where, const char *git)
{
	struct spec_item *items;
	size_t names = 0, n = 0;

	for (size_t i = 0; i < allow->count; i++)
		names += !allow->items[i].egress.port;
	if (!names)
		return;
	items = arena_array(&s->arena, allow->count + names * CLIENT_MAX_HOSTS, sizeof(*items));
	if (!items) {
		diags_error(&s->diags, allow->at, NULL, "not enough memory for the allow-list");
		return;
	}
	for (size_t i = 0; i < allow->count; i++)
		if (allow->items[i].egress.port)
			items[n++] = allow->items[i];
	for (size_t i = 0; i < allow->count; i++) {
		struct diag_pos at = allow->items[i].at;
		const struct client_def *c;
		struct client_found found;
		struct err e = { 0 };

		if (allow->items[i].egress.port)
			continue;
		c = find_def(allow->items[i].egress.client);
		/* The grammar takes no other names. */
		if (!c) {
			diags_error(&s->diags, at, NULL, "network.allow: '%s' is no client",
				allow->items[i].text);
			continue;
		}
		if (client_ask(&s->arena, c, where, git, &found, &e) < 0)
			apply_refuse(s, c, at, "name them: --allow HOST:PORT", e.text);
		else if (!found.host_count)
			apply_refuse(s, c, at, c->hint, c->nothing);
		for (size_t k = 0; k < found.host_count; k++)
			if (make_item(s, c, found.hosts[k], at, &items[n]) &&
				!has_text(items, n, items[n].text))
				n++;
		apply_tell(s, c, &found, at);
	}
	allow->items = items;
	allow->count = n;
}
