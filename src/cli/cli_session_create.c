/*
 * cli_session_create - makes a session.
 *
 * Runs as:  the operator.
 * Leaves:   the session's folder, and then its row in the store: whoever finds the row finds the
 *           folder, and a folder that never got a row is removed by a sweep.
 * Must not: make a session whose commands could not be caged as its spec says.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "cli/cli_session.h"
#include "cli/commands.h"
#include "keep/keep.h"

#define MOST_SPEC ((size_t)4 << 20)

const struct cli_option session_create_options[] = {
	{ "name", 0, "NAME", SPEC_KEY_COUNT, NULL, "name the session" },
	{ "ttl", 0, "DURATION", SPEC_SESSION_TTL, NULL,
		"keep it so long after its last use [session.ttl, 1h]" },
	{ 0 },
};

struct creation {
	const struct cli *cli;
	const struct session_wish *wish;
	struct spec spec;
	struct run_place place;
	struct host host;
	struct plan_choice choice;
	struct cli_sessions *at;
};

/* --- can it be done? --- */

static int refuse_json(const struct creation *c, bool is_planned, const struct err *e)
{
	const char *nested = cli_find_nested(&c->choice, e);
	own(buf) struct buf out = { .max = (size_t)1 << 20 };
	struct json j;

	json_init(&j, &out, 0);
	json_open_map(&j, NULL);
	json_int(&j, "version", 1);
	json_text(&j, "error", nested ? nested : e->text);
	if (is_planned && e->kind == ERR_REFUSED)
		plan_print_refusal_json(&c->choice, &c->host, &j);
	diags_print_json(&c->spec.diags, &j);
	json_close_map(&j);
	buf_putc(&out, '\n');
	return cli_write(&out, CLI_FAILED);
}

static int refuse(const struct creation *c, bool is_planned, const struct err *e)
{
	const char *nested = cli_find_nested(&c->choice, e);
	own(buf) struct buf out = { .max = (size_t)1 << 20 };

	if (c->cli->is_json)
		return refuse_json(c, is_planned, e);
	cli_print_diags(c->cli, &c->spec);
	if (nested) {
		cli_complain("%s", nested);
		cli_hint(CLI_NESTED_HINT);
		return CLI_FAILED;
	}
	cli_complain_err(e);
	if (is_planned && e->kind == ERR_REFUSED) {
		plan_print_refusal(&c->choice, &c->host, &out);
		file_write_all(STDERR_FILENO, buf_text(&out), out.len);
	}
	return CLI_FAILED;
}

static int build(struct creation *c, struct err *e)
{
	own_free struct plan *plan = NULL;
	struct record notes = { 0 };
	int r;

	run_tell_host(&c->place, &c->host);
	run_look_at_project(&c->host, &c->place);
	r = plan_build(&c->spec, &c->host, &plan, &c->choice, e);
	/* Each run has a command of its own. */
	return r == 0 ? keep_check_plan(plan, false, &notes, e) : r;
}

/* For a host that can do everything, as `bawn run` does; why not is for the real one to say. */
static int check_plan(struct creation *c)
{
	struct err e = { 0 }, probing = { 0 };
	int r;

	/* In a cage there is no need to try. */
	host_assume(&c->host);
	r = cli_is_in_cage() ? err_set(&e, ERR_REFUSED, EOPNOTSUPP, "cannot make a cage in a cage")
			     : build(c, &e);
	if (r < 0 && e.kind == ERR_REFUSED && host_probe(&c->host, &probing) == 0) {
		e = (struct err){ 0 };
		r = build(c, &e);
	}
	return r < 0 ? refuse(c, true, &e) : CLI_OK;
}

static int check_words(const struct cli *cli)
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

static int load(struct creation *c)
{
	struct err e = { .kind = ERR_SPEC, .text = "the spec has errors" };
	int status = cli_load_spec(c->cli, &c->spec, &c->place);

	if (status == CLI_NO)
		return refuse(c, false, &e);
	if (status == CLI_OK)
		status = check_plan(c);
	if (status == CLI_OK)
		cli_print_diags(c->cli, &c->spec);
	return status;
}

/* --- making it --- */

/* How long it is kept: what somebody said, or what is usual for who makes it. */
static int64_t choose_ttl(const struct creation *c)
{
	for (enum spec_layer i = SPEC_LAYER_SYSTEM; i <= SPEC_LAYER_OPTIONS; i++)
		if (c->spec.layers[i].v[SPEC_SESSION_TTL].is_set)
			return (int64_t)spec_number(&c->spec, SPEC_SESSION_TTL);
	return c->wish->usual_ttl_ms ? c->wish->usual_ttl_ms
				     : (int64_t)spec_number(&c->spec, SPEC_SESSION_TTL);
}

static int describe(struct creation *c, struct store_session *x, struct err *e)
{
	const char *name = c->wish->name;
	own(buf) struct buf spec = { .max = MOST_SPEC }, project = { .max = PATH_MAX };

	snprintf(x->name, sizeof(x->name), "%s", name ? name : "");
	memcpy(x->place, c->at->place, sizeof(x->place));
	x->workspace = 1;
	x->state = STORE_OPEN;
	x->ttl_ms = choose_ttl(c);
	spec_print_canonical(&c->spec, &spec);
	buf_puts(&project, c->place.project);
	if (spec.failed || project.failed)
		return err_set(e, ERR_SYS, ENOMEM, "cannot keep the spec: it is too large");
	x->spec = take_ptr(spec.data);
	x->project = take_ptr(project.data);
	return session_make_id(x->id, e);
}

static int make(struct creation *c, struct store_session *x, struct err *e)
{
	struct err undoing = { 0 };
	int r = session_make_folder(c->at->root, x->id, x->spec, e);

	if (r < 0)
		return r;
	r = store_add_session(c->at->store, x, e);
	if (r == 0)
		return session_confirm_folder(c->at->root, x->id, e);
	if (r == -EEXIST)
		err_set(e, ERR_REFUSED, EEXIST,
			"cannot create session '%s': there is one of that name", x->name);
	session_remove_folder(c->at->root, x->id, &undoing);
	return r;
}

static int tell(const struct cli *cli, const struct cli_sessions *at, const struct store_session *x)
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

static int create(struct creation *c, struct store_session *x)
{
	struct err e = { 0 };
	int r = cli_sessions_open(c->at, true, &e);

	if (r == 0)
		r = describe(c, x, &e);
	if (r == 0)
		r = make(c, x, &e);
	if (r < 0) {
		cli_complain_err(&e);
		return r == -EEXIST ? CLI_NO : CLI_FAILED;
	}
	cli_sessions_log(c->at->state, "session_created", x->id, x->name, NULL);
	return CLI_OK;
}

int session_make(const struct cli *cli, const struct session_wish *wish, struct cli_sessions *at,
	struct store_session *ret)
{
	struct creation c = { .cli = cli, .wish = wish, .at = at };
	int status = load(&c);

	if (status == CLI_OK)
		status = create(&c, ret);
	spec_done(&c.spec);
	return status;
}

int session_create(struct cli *cli)
{
	own(cli_sessions) struct cli_sessions at = { .state = -1, .root = -1 };
	own(store_session) struct store_session x = { 0 };
	const struct session_wish wish = { .name = cli_value(cli, CLI_OPT_NAME) };
	int status = check_words(cli);

	if (status == CLI_OK)
		status = cli_add_settings(cli);
	if (status == CLI_OK)
		status = session_make(cli, &wish, &at, &x);
	return status == CLI_OK ? tell(cli, &at, &x) : status;
}
