/*
 * bawn card - says what tasks are isolated by, signed, for those who would hand one over.
 *
 * Runs as: the operator.
 * Reads:   the spec and what this host can do; or the record of a run and its spec.
 * Leaves:  a signing key, where there was none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "cli/cli_result.h"
#include "cli/commands.h"
#include "proof/card/card.h"
#include "result/result_record.h"
#include "run/run.h"

const struct cli_option cmd_card_options[] = {
	CLI_OWN("url", 0, "URL", "name the URL at which others reach this agent"),
	CLI_OWN("unsigned", 0, NULL, "print the card without a signature"),
	{ 0 },
};

static int card_fail(const struct err *e)
{
	cli_complain_err(e);
	return e->kind == ERR_SYS ? CLI_FAILED : CLI_NO;
}

/* --- signing and printing --- */

/* The operator's key, made where there is none. */
static int take_key(struct sign_key *ret, struct err *e)
{
	own_fd int state = record_open_state(run_home(), true, e);

	struct err unlogged = { 0 };
	int r = state < 0 ? state : run_take_key(state, ret, &unlogged, e);

	if (unlogged.kind != ERR_NONE)
		cli_complain_err(&unlogged);
	return r;
}

static int cmd_card_print(const struct cli *cli, struct card *c)
{
	own(sign_key) struct sign_key key = { 0 };
	own(buf) struct buf out = { .max = CARD_MAX_SIZE };
	bool is_signed = !cli_value(cli, CLI_OPT_UNSIGNED);
	const char *url = cli_value(cli, CLI_OPT_URL);
	struct err e = { 0 };

	if (url)
		c->url = url;
	if (is_signed && take_key(&key, &e) < 0)
		return card_fail(&e);
	if (card_print(c, is_signed ? &key : NULL, isatty(STDOUT_FILENO) && !cli->is_json ? 2 : 0,
		    &out, &e) < 0)
		return card_fail(&e);
	buf_putc(&out, '\n');
	return cli_write(&out, CLI_OK);
}

/* --- of a spec --- */

static int plan_card(const struct cli *cli, struct spec *s, const struct run_place *place)
{
	own_free struct plan *p = NULL;
	char digest[SHA256_HEX_SIZE];
	struct plan_choice choice;
	struct err e = { 0 };
	struct card c;
	struct host h;
	int status = cli_probe(cli, &h);

	if (status != CLI_OK)
		return status;
	run_tell_host(place, &h);
	if (!cli_value(cli, CLI_OPT_HOST))
		run_look_at_project(&h, place);
	if (plan_build(s, &h, &p, &choice, &e) < 0 || plan_digest(p, digest) < 0) {
		own(buf) struct buf why = { .max = (size_t)1 << 20 };

		cli_print_diags(cli, s);
		if (e.kind == ERR_REFUSED)
			plan_print_refusal(&choice, &h, &why);
		status = card_fail(&e);
		file_write_all(STDERR_FILENO, buf_text(&why), why.len);
		return status;
	}
	cli_print_diags(cli, s);
	card_from_plan(s, p, digest, &c);
	return cmd_card_print(cli, &c);
}

static int show_spec(const struct cli *cli)
{
	struct run_place place;
	struct spec s;
	int status = cli_load_spec(cli, &s, &place);

	if (status == CLI_OK)
		status = plan_card(cli, &s, &place);
	else
		cli_print_diags(cli, &s);
	spec_done(&s);
	return status;
}

/* --- of a run --- */

static int card_show_run(const struct cli *cli, const char *word)
{
	char id[RECORD_RUN_SIZE];
	own_fd int folder = -1;
	own(result_card) struct result_card c = { .arena.max = 1 };
	struct err e = { 0 };
	int status = cli_open_run(cli, word, id, &folder);

	if (status != CLI_OK)
		return status;
	if (result_make_card(folder, &c, &e) == 0)
		return cmd_card_print(cli, &c.card);
	err_prefix(&e, "cannot make the card of run %s", id);
	return card_fail(&e);
}

/* --- the command --- */

/* Options of a spec say nothing about a run that was. */
static const char *given_for_spec(const struct cli *cli)
{
	for (size_t i = 0; i < cli->given_count; i++)
		for (const struct cli_option *o = cli_spec_options; o->name; o++)
			if (cli->given[i].option == o)
				return o->name;
	return NULL;
}

int cmd_card(struct cli *cli)
{
	const char *url = cli_value(cli, CLI_OPT_URL), *option = given_for_spec(cli);

	if (url && !card_is_url(url)) {
		cli_complain("cannot use --url '%s': it must look like http://HOST:PORT/PATH", url);
		return CLI_MISUSE;
	}
	if (!cli->open_count)
		return show_spec(cli);
	if (cli->word_count > 1) {
		cli_complain("cannot use '%s': a card is of one run", cli->words[1]);
		return CLI_MISUSE;
	}
	if (option) {
		cli_complain(
			"cannot use --%s: a card of a run is about the spec that it had", option);
		return CLI_MISUSE;
	}
	return card_show_run(cli, cli->words[0]);
}
