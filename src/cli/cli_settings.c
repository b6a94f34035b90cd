/*
 * cli_settings - what a service says by its environment, where a person says it by options.
 *
 * Runs as:  the operator.
 * Reads:    the variables BAWN_SANDBOX_…, for the commands that ask for them and no other: a
 * variable that was left behind must not change the cage of a run. Must not: leave out a setting
 * without a word, be it misspelt or no setting at all.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"

#define PREFIX "BAWN_SANDBOX_"

const struct cli_setting cli_settings[] = {
	{ { PREFIX "MODE", 0, "ENGINE", SPEC_ENGINE, NULL, "choose the engine that builds cages" },
		"", NULL },
	{ { PREFIX "ROOT", 0, "DIR", SPEC_KEY_COUNT, NULL,
		  "keep the folders of sessions in DIR; all session commands read it" },
		"", NULL },
	{ { PREFIX "TTL_SECONDS", 0, "NUMBER", SPEC_SESSION_TTL, NULL,
		  "keep a session so long after its last use" },
		"s", "seconds" },
	{ { PREFIX "NETWORK", 0, "MODE", SPEC_NETWORK_MODE, NULL,
		  "choose none, allowlist or host [none]" },
		"", NULL },
	{ { PREFIX "CPU_LIMIT", 0, "NUMBER", SPEC_LIMITS_CPU, NULL,
		  "limit processor time, such as 1.5" },
		"", NULL },
	{ { PREFIX "MEMORY_LIMIT_MB", 0, "NUMBER", SPEC_LIMITS_MEMORY, NULL,
		  "limit the memory of a command's processes together" },
		"M", "megabytes" },
	{ .unit = NULL },
};

#define COUNT (COUNT_OF(cli_settings) - 1)

/* True if the part before "=" is one of the settings. */
static bool is_setting(const char *variable)
{
	for (size_t i = 0; i < COUNT; i++) {
		size_t n = strlen(cli_settings[i].option.name);

		if (str_starts(variable, cli_settings[i].option.name) && variable[n] == '=')
			return true;
	}
	return false;
}

/* One that is misspelt would leave a cage wider than somebody meant it to be. */
static int settings_check_names(void)
{
	const char *names[COUNT], *near;

	for (size_t i = 0; i < COUNT; i++)
		names[i] = cli_settings[i].option.name;
	for (char **v = environ; v && *v; v++) {
		own_free char *name = NULL;

		if (!str_starts(*v, PREFIX) || is_setting(*v))
			continue;
		name = strndup(*v, strcspn(*v, "="));
		near = name ? str_nearest(name, names, COUNT) : NULL;
		cli_complain("cannot use %s: there is no such setting", name ? name : PREFIX "...");
		if (near)
			cli_hint("did you mean %s?", near);
		else
			cli_hint("bawn(1) lists the settings");
		return CLI_MISUSE;
	}
	return CLI_OK;
}

/* Checks a value by the rules of its option. The error names the variable. */
static int check_value(const struct cli_setting *x, const char *value)
{
	const char *name = x->option.name, *text;
	int status = CLI_MISUSE;
	struct spec s;

	if (x->counts && value[strspn(value, "0123456789")]) {
		cli_complain("%s: '%s' is not a whole number of %s", name, value, x->counts);
		return CLI_MISUSE;
	}
	spec_init(&s);
	text = arena_printf(&s.arena, "%s%s", value, x->unit);
	if (text)
		spec_add_option(&s, x->option.key, name, text);
	if (!text || (s.diags.errors && !s.diags.count))
		cli_complain("%s: not enough memory", name);
	else if (s.diags.errors)
		cli_complain("%s: %s", name, s.diags.items[0].text);
	else
		status = CLI_OK;
	spec_done(&s);
	return status;
}

int cli_add_settings(struct cli *cli)
{
	struct cli_given found[COUNT], *given;
	int status = settings_check_names();
	size_t n = 0;

	for (size_t i = 0; i < COUNT && status == CLI_OK; i++) {
		const struct cli_setting *x = &cli_settings[i];
		const char *value = getenv(x->option.name);

		if (!value || !*value || x->option.key == SPEC_KEY_COUNT)
			continue;
		found[n++] = (struct cli_given){ &x->option, value, x->unit };
		status = check_value(x, value);
	}
	if (status != CLI_OK || !n)
		return status;
	given = calloc(n + cli->given_count + 1, sizeof(*given));
	if (!given) {
		cli_complain("not enough memory for the settings");
		return CLI_FAILED;
	}
	/* The command line comes later and wins. */
	memcpy(given, found, n * sizeof(*given));
	memcpy(given + n, cli->given, cli->given_count * sizeof(*given));
	free(cli->given);
	cli->given = given;
	cli->given_count += n;
	return cli->command->takes_spec ? cli_fill_request(cli) : CLI_OK;
}
