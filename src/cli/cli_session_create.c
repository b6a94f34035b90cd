/* cli_session_create - session create: options, and what is said. */
#include <errno.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "cli/cli_session.h"
#include "cli/commands.h"

const struct cli_option session_create_options[] = {
	{ "name", 0, "NAME", SPEC_KEY_COUNT, NULL, "name the session" },
	{ "ttl", 0, "DURATION", SPEC_SESSION_TTL, NULL,
		"keep it so long after its last use [session.ttl, 1h]" },
	{ 0 },
};

/* --- making it --- */

static int refuse_json(const struct run_creation *c, const struct err *e)
{
	const char *nested = cli_find_nested(&c->choice, e);
	own(buf) struct buf out = { .max = (size_t)1 << 20 };
	struct json j;

	json_init(&j, &out, 0);
	json_open_map(&j, NULL);
	json_int(&j, "version", 1);
	json_text(&j, "error", nested ? nested : c->is_loaded ? e->text : "the spec has errors");
	if (c->is_loaded && e->kind == ERR_REFUSED)
		plan_print_refusal_json(&c->choice, &c->host, &j);
	diags_print_json(&c->spec.diags, &j);
	json_close_map(&j);
	buf_putc(&out, '\n');
	return cli_write(&out, CLI_FAILED);
}

static int session_create_refuse(
	const struct cli *cli, const struct run_creation *c, const struct err *e)
{
	const char *nested = cli_find_nested(&c->choice, e);
	own(buf) struct buf out = { .max = (size_t)1 << 20 };

	if (cli->is_json)
		return refuse_json(c, e);
	cli_print_diags(cli, &c->spec);
	if (nested) {
		cli_complain("%s", nested);
		cli_hint(CLI_NESTED_HINT);
		return CLI_FAILED;
	}
	if (c->is_loaded)
		cli_complain_err(e);
	else
		cli_complain("the spec has errors");
	if (c->is_loaded && e->kind == ERR_REFUSED) {
		plan_print_refusal(&c->choice, &c->host, &out);
		file_write_all(STDERR_FILENO, buf_text(&out), out.len);
	}
	return CLI_FAILED;
}

static int session_create_check_words(const struct cli *cli)
{
	const char *name = cli_value(cli, CLI_OPT_NAME);
	const char *fault = name ? session_check_name(name) : NULL;

	if (cli->word_count) {
		cli_complain("cannot create a session with a command: bawn session exec runs it");
		cli_hint("bawn session create --name NAME; bawn session exec NAME -- COMMAND");
		return CLI_MISUSE;
	}
	if (fault) {
		cli_complain("cannot name a session '%.80s': %s", name, fault);
		return CLI_MISUSE;
	}
	return CLI_OK;
}

static int session_create_tell(
	const struct cli *cli, const struct run_sessions *at, const struct store_session *x)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };
	struct json j;

	if (!cli->is_json) {
		buf_printf(&out, "%s\n", x->id);
		return cli_write(&out, CLI_OK);
	}
	json_init(&j, &out, 0);
	json_open_map(&j, NULL);
	json_int(&j, "version", 1);
	session_print_json(at, x, &j);
	json_close_map(&j);
	buf_putc(&out, '\n');
	return cli_write(&out, CLI_OK);
}

int session_make(const struct cli *cli, const struct session_wish *wish, struct run_sessions *at,
	struct store_session *ret)
{
	own(run_creation) struct run_creation c = {
		.request = &cli->request, .name = wish->name, .usual_ttl_ms = wish->usual_ttl_ms
	};
	struct err e = { 0 };
	int r = run_prepare_session(&c, &e);

	if (r < 0 && !c.is_loaded && e.kind != ERR_SPEC) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	if (r < 0)
		return session_create_refuse(cli, &c, &e);
	cli_print_diags(cli, &c.spec);
	r = run_create_session(&c, at, ret, &e);
	if (r < 0) {
		cli_complain_err(&e);
		return r == -EEXIST ? CLI_NO : CLI_FAILED;
	}
	if (run_sessions_log(at->state, "session_created", ret, NULL, &e) < 0)
		cli_complain_err(&e);
	return CLI_OK;
}

int session_create(struct cli *cli)
{
	own(run_sessions) struct run_sessions at = { .state = -1, .root = -1 };
	own(store_session) struct store_session x = { 0 };
	const struct session_wish wish = { .name = cli_value(cli, CLI_OPT_NAME) };
	int status = session_create_check_words(cli);

	if (status == CLI_OK)
		status = cli_add_settings(cli);
	if (status == CLI_OK)
		status = session_make(cli, &wish, &at, &x);
	return status == CLI_OK ? session_create_tell(cli, &at, &x) : status;
}
