/* Options are asked for by names that are in a table, and what was given becomes a request. */
#include "base/count.h"
#include "base/str.h"
#include "check.h"
#include "cli/cli.h"

/* --- names --- */

static bool has_name(const struct cli_option *options, const char *name)
{
	for (const struct cli_option *o = options; o && o->name; o++)
		if (str_eq(o->name, name))
			return true;
	return false;
}

static bool is_known(const struct cli_command *commands, const char *name)
{
	for (const struct cli_command *c = commands; c->name; c++)
		if (has_name(c->options, name) ||
			(c->subcommands && is_known(c->subcommands, name)))
			return true;
	return false;
}

static void test_names(void)
{
	for (enum cli_name i = CLI_OPT_NONE + 1; i < CLI_OPT_COUNT; i++) {
		const char *name = cli_names[i];
		bool is_there = has_name(cli_spec_options, name) ||
				has_name(cli_common_options, name) || is_known(cli_commands, name);

		if (!is_there)
			CHECK_STR(name, "the name of an option of some command");
	}
}

/* --- requests --- */

static const struct cli_option own_options[] = { CLI_RUN_OPTIONS, { 0 } };
static const struct cli_command command = { .name = "test",
	.usage = "",
	.options = own_options,
	.takes_spec = true,
	.purpose = RUN_TO_SHOW };

static void test_request(void)
{
	char words[][24] = { "-m1G", "--env-file", "vars", "--read-only", "--tty", "--no-tty",
		"--subject", "a", "--subject=b", "-f", "x.yaml", "--trust", "--sync", "--raw",
		"--net", "none", "--", "sh", "-c" };
	char *argv[COUNT_OF(words) + 1] = { 0 };
	const struct run_request *q;
	struct cli cli;

	for (size_t i = 0; i < COUNT_OF(words); i++)
		argv[i] = words[i];
	CHECK(cli_parse(&cli, &command, COUNT_OF(words), argv) == CLI_OK);
	q = &cli.request;
	CHECK(q->purpose == RUN_TO_SHOW && q->setting_count == 4 && q->command_count == 2);
	if (q->setting_count == 4) {
		CHECK_STR(q->settings[0].from, "--memory");
		CHECK_STR(q->settings[0].value, "1G");
		CHECK(q->settings[1].key == SPEC_KEY_COUNT);
		CHECK_STR(q->settings[1].value, "vars");
		CHECK_STR(q->settings[2].value, "read_only");
		CHECK(q->settings[3].key == SPEC_NETWORK_MODE);
		CHECK_STR(q->settings[3].from, "--net");
	}
	CHECK(q->here.tty == RUN_TTY_NEVER && q->here.is_trusted && q->here.is_unfiltered);
	CHECK(q->is_synced && q->subjects.count == 2 && !q->here.is_timed && !q->here.record);
	CHECK_STR(q->here.file, "x.yaml");
	CHECK_STR(q->command[1], "-c");
	cli_done(&cli);
}

/* Options may stand before and behind the session that a command names. */
static void test_rest(void)
{
	char words[][16] = { "-q", "--sync", "NAME", "-m", "1G", "--", "--sync" };
	char *argv[COUNT_OF(words) + 1] = { 0 };
	struct cli cli;

	for (size_t i = 0; i < COUNT_OF(words); i++)
		argv[i] = words[i];
	CHECK(cli_parse(&cli, &command, COUNT_OF(words), argv) == CLI_OK);
	CHECK_STR(cli.words[0], "NAME");
	CHECK(!cli.has_dashes && cli_parse_rest(&cli) == CLI_OK);
	CHECK(cli.has_dashes && cli.is_quiet && cli.request.is_synced);
	CHECK(cli.request.setting_count == 1 && cli.request.command_count == 1);
	CHECK_STR(cli.request.command[0], "--sync");
	cli_done(&cli);
}

int main(void)
{
	test_names();
	test_request();
	test_rest();
	return check_report();
}
