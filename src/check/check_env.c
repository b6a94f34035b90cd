#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "check/check_lints.h"

/* Variables by name, sorted, and why they should not come from the operator. */
static const struct variable {
	const char *name;
	enum reason {
		REASON_PATHS,
		REASON_DOOR,
	} reason;
} variables[] = {
	{ "BASH_ENV", REASON_PATHS },
	{ "CARGO_HOME", REASON_PATHS },
	{ "CLASSPATH", REASON_PATHS },
	{ "CONDA_PREFIX", REASON_PATHS },
	{ "DBUS_SESSION_BUS_ADDRESS", REASON_DOOR },
	{ "DBUS_SYSTEM_BUS_ADDRESS", REASON_DOOR },
	{ "DISPLAY", REASON_DOOR },
	{ "DOCKER_HOST", REASON_DOOR },
	{ "ENV", REASON_PATHS },
	{ "GIT_CONFIG_GLOBAL", REASON_PATHS },
	{ "GIT_SSH_COMMAND", REASON_PATHS },
	{ "GOPATH", REASON_PATHS },
	{ "GPG_AGENT_INFO", REASON_DOOR },
	{ "JAVA_HOME", REASON_PATHS },
	{ "JAVA_TOOL_OPTIONS", REASON_PATHS },
	{ "KUBECONFIG", REASON_DOOR },
	{ "LD_AUDIT", REASON_PATHS },
	{ "LD_LIBRARY_PATH", REASON_PATHS },
	{ "LD_PRELOAD", REASON_PATHS },
	{ "NODE_OPTIONS", REASON_PATHS },
	{ "NODE_PATH", REASON_PATHS },
	{ "OLDPWD", REASON_PATHS },
	{ "PATH", REASON_PATHS },
	{ "PERL5LIB", REASON_PATHS },
	{ "PERL5OPT", REASON_PATHS },
	{ "PWD", REASON_PATHS },
	{ "PYTHONHOME", REASON_PATHS },
	{ "PYTHONPATH", REASON_PATHS },
	{ "PYTHONSTARTUP", REASON_PATHS },
	{ "RUBYLIB", REASON_PATHS },
	{ "RUBYOPT", REASON_PATHS },
	{ "SSH_AUTH_SOCK", REASON_DOOR },
	{ "VIRTUAL_ENV", REASON_PATHS },
	{ "WAYLAND_DISPLAY", REASON_DOOR },
	{ "XAUTHORITY", REASON_DOOR },
	{ "XDG_CONFIG_HOME", REASON_PATHS },
	{ "XDG_RUNTIME_DIR", REASON_DOOR },
};

static int env_compare_names(const void *name, const void *row)
{
	return strcmp(name, ((const struct variable *)row)->name);
}

/* Does one part of NAME_OF_IT end with the word? A plural counts. */
static bool env_has_word(const char *name, const char *word)
{
	size_t m = strlen(word);

	for (const char *part = name; *part; part += strspn(part, "_")) {
		size_t n = strcspn(part, "_");
		bool is_plural = n > m && str_lower(part[n - 1]) == 's';

		if ((n >= m && strncasecmp(part + n - m, word, m) == 0) ||
			(is_plural && strncasecmp(part + n - 1 - m, word, m) == 0))
			return true;
		part += n;
	}
	return false;
}

static bool looks_secret(const char *name)
{
	static const char *const prefixes[] = { "AWS_", "AZURE_", "GCP_", "GOOGLE_" };
	static const char *const words[] = { "TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD",
		"PASSPHRASE", "CREDENTIAL" };

	if (str_ends(name, "_REGION"))
		return false;
	for (size_t i = 0; i < COUNT_OF(prefixes); i++)
		if (str_starts(name, prefixes[i]))
			return true;
	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (env_has_word(name, words[i]))
			return true;
	return false;
}

static void check_passed(struct spec *s, const struct spec_item *item)
{
	const char *name = item->text;
	const struct variable *v = bsearch(
		name, variables, COUNT_OF(variables), sizeof(variables[0]), env_compare_names);

	if (v && v->reason == REASON_DOOR)
		diags_warn(&s->diags, item->at, "remove it, unless the agent is meant to use it",
			"env.pass: %s tells the cage of a door into the operator's session", name);
	else if (v)
		diags_warn(&s->diags, item->at,
			"set it in env.set, with paths as they are in the cage",
			"env.pass: %s brings paths of the host, which are other places in the cage",
			name);
	else if (looks_secret(name))
		diags_warn(&s->diags, item->at,
			"keep it out of the cage with secrets:, or pass one made for this agent that "
			"can do little else",
			"env.pass: %.100s looks like a secret of the operator, and everything in "
			"the cage could read it",
			name);
}

static int compare_variables(const void *a, const void *b)
{
	const struct spec_item *x = *(const struct spec_item *const *)a;
	const struct spec_item *y = *(const struct spec_item *const *)b;

	return strcmp(x->var.name, y->var.name);
}

/* Set and passed: the operator's value is put after the set one and replaces it. */
static void check_both(struct spec *s)
{
	const struct spec_value *pass = spec_list(s, SPEC_ENV_PASS);
	size_t count = spec_list(s, SPEC_ENV_SET)->count;
	const struct spec_item **set = check_list_items(s, SPEC_ENV_SET);

	if (!set)
		return;
	qsort(set, count, sizeof(set[0]), compare_variables);
	for (size_t i = 0; i < pass->count; i++) {
		struct spec_item wanted = { .var.name = pass->items[i].text };
		const struct spec_item *key = &wanted;
		const struct spec_item **found =
			bsearch(&key, set, count, sizeof(set[0]), compare_variables);

		if (found)
			diags_warn(&s->diags, pass->items[i].at, "keep one of the two",
				"env.pass: %.100s is also set at %s; the operator's value wins "
				"where there is one",
				pass->items[i].text, diags_where(&s->diags, (*found)->at));
	}
}

void check_env(struct spec *s)
{
	const struct spec_value *pass = spec_list(s, SPEC_ENV_PASS);

	for (size_t i = 0; i < pass->count; i++)
		check_passed(s, &pass->items[i]);
	check_both(s);
}
