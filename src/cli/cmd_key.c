/*
 * cmd_key - the operator's signing key: makes it, and shows its public half.
 *
 * Runs as:  the operator.
 * Leaves:   a key in the operator's state, whole or not at all, and in the state's log that it was
 *           made.
 * Must not: print anything of the private half.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/commands.h"
#include "proof/record/record.h"
#include "proof/sign/sign.h"
#include "run/run.h"

const struct cli_option cmd_key_options[] = {
	CLI_OWN("new", 0, NULL, "init: replace the key; keep the old public half"),
	CLI_OWN("pem", 0, NULL, "show: print the public half only, as PEM"),
	{ 0 },
};

/* The request, and where the key is. */
struct key_job {
	const struct cli *cli;
	struct sign_key key;
	const char *home;
	char path[PATH_MAX]; /* of the state */
	int state;           /* open, or -1 */
	char former[SIGN_ID_SIZE];
	struct buf out;
};

/* Prints an error and, if it is about the state, the path of that. */
static int key_fail(const struct key_job *job, const struct err *e)
{
	if (job->state < 0)
		cli_complain_about(e, "cannot use a signing key: %s", e->text);
	else
		cli_complain_about(
			e, "%s; keys are in '%s/" SIGN_KEY_FOLDER "'", e->text, job->path);
	return err_exit_status(e->kind);
}

static void key_print_json(struct key_job *job)
{
	own(buf) struct buf path = { .max = PATH_MAX * 2 }, pem = { .max = 1000 };
	struct json j;

	cli_json_begin(&j, &job->out);
	json_text(&j, "id", job->key.public.id);
	buf_printf(&path, "%s/" SIGN_KEY_FOLDER "/" SIGN_KEY_FILE, job->path);
	json_text(&j, "private", buf_text(&path));
	path.len = 0;
	buf_printf(&path, "%s/" SIGN_KEY_FOLDER "/" SIGN_PUBLIC_FILE, job->path);
	json_text(&j, "public", buf_text(&path));
	sign_print_public(&job->key.public, &pem);
	json_text(&j, "pem", buf_text(&pem));
	if (job->former[0])
		json_text(&j, "former", job->former);
	cli_json_end(&j);
}

/* A line that begins with a word and ends with a file of the folder. */
static void key_print_file(struct key_job *job, const char *word, const char *name)
{
	buf_puts(&job->out, word);
	buf_add_visible(&job->out, job->path, strlen(job->path));
	buf_printf(&job->out, "/" SIGN_KEY_FOLDER "/%s\n", name);
}

/* --- init --- */

static void print_made(struct key_job *job)
{
	buf_printf(&job->out, "made the signing key %s\n", job->key.public.id);
	key_print_file(job, "its public half, for those who verify: ", SIGN_PUBLIC_FILE);
	if (job->former[0])
		buf_printf(&job->out, "what %s signed stays verifiable: its public half is kept\n",
			job->former);
}

static int init_key(struct key_job *job)
{
	bool replaces = cli_value(job->cli, CLI_OPT_NEW) != NULL;
	struct sign_public former;
	struct err e = { 0 }, unlogged = { 0 };
	int r;

	job->state = record_open_state(job->home, true, &e);
	if (job->state < 0)
		return key_fail(job, &e);
	if (replaces && sign_load_public(job->state, &former, NULL) == 0)
		memcpy(job->former, former.id, sizeof(former.id));
	r = sign_make_key(job->state, replaces, &job->key, &e);
	if (r == -EEXIST) {
		cli_complain("cannot create a signing key: there is one already, %s",
			job->key.public.id);
		cli_hint("bawn key init --new replaces it");
		return CLI_NO;
	}
	if (r < 0)
		return key_fail(job, &e);
	if (run_note_key(job->state, &job->key, job->former[0] ? job->former : NULL, &unlogged) < 0)
		cli_complain_err(&unlogged);
	if (job->cli->is_json)
		key_print_json(job);
	else if (!job->cli->is_quiet)
		print_made(job);
	return CLI_OK;
}

/* --- show --- */

static int show_key(struct key_job *job)
{
	struct err e = { 0 };
	int r;

	job->state = record_open_state(job->home, false, &e);
	r = job->state < 0 ? job->state : sign_load_key(job->state, &job->key, &e);
	if (r == -ENOENT && !e.text[0]) {
		cli_complain("cannot show a signing key: there is none in '%s'", job->path);
		cli_hint("bawn key init creates one");
		return CLI_NO;
	}
	if (r < 0)
		return key_fail(job, &e);
	if (job->cli->is_json) {
		key_print_json(job);
		return CLI_OK;
	}
	if (!cli_value(job->cli, CLI_OPT_PEM)) {
		buf_printf(&job->out, "id       %s\n", job->key.public.id);
		key_print_file(job, "private  ", SIGN_KEY_FILE);
		key_print_file(job, "public   ", SIGN_PUBLIC_FILE);
	}
	sign_print_public(&job->key.public, &job->out);
	return CLI_OK;
}

/* --- the command --- */

static const struct verb {
	const char *name;
	int (*run)(struct key_job *job);
	enum cli_name not_taken; /* the option that is the other's */
} verbs[] = {
	{ "init", init_key, CLI_OPT_PEM },
	{ "show", show_key, CLI_OPT_NEW },
};

#define VERB_COUNT COUNT_OF(verbs)

static const struct verb *key_choose_verb(const struct cli *cli)
{
	const char *word = cli->word_count ? cli->words[0] : NULL;

	if (!word) {
		cli_complain("cannot tell what to do: key needs init or show");
		return NULL;
	}
	for (size_t i = 0; i < VERB_COUNT; i++) {
		if (!str_eq(verbs[i].name, word))
			continue;
		if (cli->word_count > 1)
			cli_complain("key %s takes no '%s'", word, cli->words[1]);
		else if (cli_value(cli, verbs[i].not_taken))
			cli_complain("key %s takes no --%s", word, cli_names[verbs[i].not_taken]);
		else if (cli->is_json && cli_value(cli, CLI_OPT_PEM))
			cli_complain("cannot use --json together with --pem: the object has the "
				     "PEM in it");
		else
			return &verbs[i];
		return NULL;
	}
	cli_complain("cannot do '%s': key has init and show", word);
	return NULL;
}

int cmd_key(struct cli *cli)
{
	struct key_job job = { .cli = cli, .state = -1, .out = { .max = (size_t)1 << 16 } };
	const struct verb *verb = key_choose_verb(cli);
	int status;

	if (!verb)
		return CLI_MISUSE;
	job.home = run_home();
	if (record_find_state(job.home, job.path) < 0) {
		cli_complain("cannot find a place for the signing key: neither HOME nor "
			     "XDG_STATE_HOME is set");
		return CLI_FAILED;
	}
	status = verb->run(&job);
	if (job.out.len)
		status = cli_write(&job.out, status);
	buf_done(&job.out);
	own_fd_(&job.state);
	sign_key_done(&job.key);
	return status;
}
