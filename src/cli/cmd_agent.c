/*
 * cmd_agent - the profiles of agents: lists them, shows one, forgets what was kept for them.
 *
 * Runs as: the operator.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/profile/agent.h"
#include "base/count.h"
#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/commands.h"
#include "proof/record/record.h"
#include "run/run_home.h"

const struct cli_option cmd_agent_options[] = {
	CLI_OWN("all", 0, NULL, "forget: delete what is kept of all agents"),
	CLI_OWN("project", 0, "DIR",
		"forget: choose a project, which may be gone [the current directory]"),
	CLI_YES,
	{ 0 },
};

/* The question, and all that the answer is made of. */
struct agent_job {
	const struct cli *cli;
	const char *home;
	struct spec spec; /* whose arena and diagnostics profiles are read into */
	struct buf out;
};

/* --- one --- */

static const char *cmd_agent_find_program(struct agent_job *job, const struct agent_profile *p)
{
	char here[PATH_MAX];
	struct agent_search where = { getenv("PATH"), job->home, true, NULL,
		getcwd(here, sizeof(here)) };
	struct agent_found found;
	struct err e = { 0 };

	if (!p->program)
		return NULL;
	return agent_find(&job->spec.arena, p, p->program, &where, &found, &e) == 0 ? found.path
										    : NULL;
}

/* CLI_OK, or a status after it was said what is wrong. */
static int agent_load(struct agent_job *job, const char *name, struct agent_profile **ret)
{
	struct err e = { 0 };
	int status = run_load_agent(&job->spec, name, job->home, ret, &e) == 0 ? CLI_OK
		     : e.kind == ERR_SPEC                                      ? CLI_NO
									       : CLI_FAILED;

	if (status == CLI_NO)
		cli_print_diags(job->cli, &job->spec);
	if (status == CLI_FAILED)
		cli_complain_err(&e);
	if (status == CLI_OK && !*ret) {
		cli_complain("there is no profile '%s'; see: bawn agent list", name);
		status = CLI_NO;
	}
	return status;
}

static void print_values(
	const struct agent_job *job, const struct agent_profile *p, struct json *j, struct buf *out)
{
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		own(buf) struct buf text = { .max = (size_t)1 << 20 };

		if (!p->values.v[k].is_set)
			continue;
		if (job->cli->is_json && spec_is_list(spec_keys[k].type)) {
			json_open_list(j, spec_keys[k].path);
			for (size_t i = 0; i < p->values.v[k].count; i++)
				json_text(j, NULL, p->values.v[k].items[i].text);
			json_close_list(j);
			continue;
		}
		if (spec_keys[k].type == SPEC_TYPE_VARS && !job->cli->is_json) {
			for (size_t i = 0; i < p->values.v[k].count; i++) {
				const struct spec_item *item = &p->values.v[k].items[i];

				buf_printf(out, "%-15s ", spec_keys[k].path);
				buf_add_visible(out,
					k == SPEC_ENV_SET ? item->text : item->var.name,
					strlen(k == SPEC_ENV_SET ? item->text : item->var.name));
				buf_putc(out, '\n');
			}
			continue;
		}
		spec_print_value(k, &p->values.v[k], &text);
		if (job->cli->is_json)
			json_text(j, spec_keys[k].path, buf_text(&text));
		else
			buf_printf(out, "%-15s %s\n", spec_keys[k].path, buf_text(&text));
	}
}

static int agent_show(struct agent_job *job, const char *name)
{
	struct agent_profile *p;
	const char *program;
	struct json j;
	int status = name ? agent_load(job, name, &p) : CLI_MISUSE;

	if (!name)
		cli_complain("say which profile to show; see: bawn agent list");
	if (status != CLI_OK)
		return status;
	program = cmd_agent_find_program(job, p);
	if (!job->cli->is_json) {
		buf_printf(&job->out, "%-15s %s\n", p->name, p->title);
		if (p->program)
			buf_printf(&job->out, "%-15s %s\n", "program",
				program ? program : "not installed here");
		for (size_t i = 0; i < p->key_count; i++)
			buf_printf(&job->out, "%-15s %s, for %s\n", "key", p->keys[i].variable,
				p->keys[i].host);
		print_values(job, p, NULL, &job->out);
		return CLI_OK;
	}
	cli_json_begin(&j, &job->out);
	json_text(&j, "name", p->name);
	json_text(&j, "title", p->title);
	json_text(&j, "program", p->program);
	json_text(&j, "path", program);
	json_open_list(&j, "keys");
	for (size_t i = 0; i < p->key_count; i++)
		json_text(&j, NULL, p->keys[i].variable);
	json_close_list(&j);
	json_open_map(&j, "spec");
	print_values(job, p, &j, NULL);
	json_close_map(&j);
	cli_json_end(&j);
	return CLI_OK;
}

/* --- all --- */

static int agent_list(struct agent_job *job, const char *name)
{
	struct run_agents all;
	struct json j;
	int status = CLI_OK;

	if (name) {
		cli_complain("agent list takes no '%s'; see: bawn agent show %s", name, name);
		return CLI_MISUSE;
	}
	run_list_agents(job->home, &job->spec.arena, &all);
	json_init(&j, &job->out, 0);
	if (job->cli->is_json) {
		json_open_map(&j, NULL);
		json_int(&j, "version", 1);
		json_open_list(&j, "agents");
	}
	for (size_t i = 0; i < all.count; i++) {
		struct agent_profile *p = NULL;
		const char *program;

		/* One that is wrong is said, and the others are listed all the same. */
		if (agent_load(job, all.names[i], &p) != CLI_OK) {
			status = CLI_NO;
			continue;
		}
		program = cmd_agent_find_program(job, p);
		if (job->cli->is_json) {
			json_open_map(&j, NULL);
			json_text(&j, "name", p->name);
			json_text(&j, "title", p->title);
			json_text(&j, "path", program);
			json_close_map(&j);
			continue;
		}
		buf_printf(&job->out, "%-12s %-36s %s\n", p->name, p->title,
			!p->program ? ""
			: program   ? program
				    : "not installed here");
	}
	if (job->cli->is_json) {
		json_close_list(&j);
		cli_json_end(&j);
	}
	return status;
}

/* --- what was kept --- */

/* The state to forget. */
struct forgetting {
	int state;
	char project[PATH_MAX];
	const struct spec_value *places; /* of the agent, in the cage; NULL: all that is kept */
	const char *whose;               /* the agent's name; or NULL */
	struct run_home_kept kept;
};

/* A folder of the private home, as run_home_kept has it. */
static const char *place_name(const struct spec_item *place)
{
	return place->text + strlen("/home/agent/");
}

static bool agent_is_wanted(const struct forgetting *f, const char *name)
{
	for (size_t i = 0; f->places && i < f->places->count; i++)
		if (str_eq(place_name(&f->places->items[i]), name))
			return true;
	return !f->places;
}

/* The kept folders that are meant, as "~/.claude, ~/.codex"; of all if all is meant. */
static size_t name_wanted(const struct forgetting *f, struct buf *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < f->kept.count; i++)
		if (agent_is_wanted(f, f->kept.names[i]))
			buf_printf(ret, "%s~/%s", n++ ? ", " : "", f->kept.names[i]);
	return n;
}

/* Without an agent or --all, lists what there is. */
static int say_which(const struct forgetting *f)
{
	own(buf) struct buf names = { .max = 4096 };

	cli_complain("cannot forget: say which agent's conversations, or --all");
	if (name_wanted(f, &names))
		cli_hint("kept for '%s': %s", f->project, buf_text(&names));
	else
		cli_hint("nothing is kept for '%s'", f->project);
	return CLI_MISUSE;
}

static int forget_wanted(struct forgetting *f, struct err *e)
{
	int r = 0;

	if (!f->places)
		return run_home_forget(f->state, f->project, NULL, e);
	for (size_t i = 0; r == 0 && i < f->places->count; i++) {
		r = run_home_forget(f->state, f->project, place_name(&f->places->items[i]), e);
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

static void tell_forgotten_json(struct agent_job *job, const struct forgetting *f)
{
	struct json j;

	cli_json_begin(&j, &job->out);
	json_text(&j, "agent", f->whose);
	json_text(&j, "project", f->project);
	json_open_list(&j, "forgotten");
	for (size_t i = 0; i < f->kept.count; i++)
		if (agent_is_wanted(f, f->kept.names[i]))
			json_text(&j, NULL, f->kept.names[i]);
	json_close_list(&j);
	cli_json_end(&j);
}

static int forget_kept(struct agent_job *job, struct forgetting *f)
{
	own(buf) struct buf names = { .max = 4096 };
	size_t n = name_wanted(f, &names);
	const char *whose = f->whose ? f->whose : "all agents";
	struct err e = { 0 };
	int status = CLI_OK;

	if (n)
		status = cli_confirm(job->cli, !f->places,
			"forget the conversations and settings of %s for '%s' (%s)", whose,
			f->project, buf_text(&names));
	if (status != CLI_OK)
		return status;
	if (n && forget_wanted(f, &e) < 0) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	if (job->cli->is_json)
		tell_forgotten_json(job, f);
	else if (!job->cli->is_quiet) {
		buf_printf(&job->out,
			n ? "forgot what was kept of %s for the runs of "
			  : "nothing is kept of %s for the runs of ",
			whose);
		buf_add_visible(&job->out, f->project, strlen(f->project));
		if (n)
			buf_printf(&job->out, ": %s", buf_text(&names));
		buf_putc(&job->out, '\n');
	}
	return CLI_OK;
}

static int find_forgotten(struct agent_job *job, const char *name, struct forgetting *f)
{
	struct agent_profile *p;
	int status;

	if (name && cli_value(job->cli, CLI_OPT_ALL)) {
		cli_complain("cannot forget '%s': --all is of all agents; give one of them", name);
		return CLI_MISUSE;
	}
	if (!name)
		return cli_value(job->cli, CLI_OPT_ALL) ? CLI_OK : say_which(f);
	if (strchr(name, '/') || str_eq(name, ".") || str_eq(name, "..")) {
		cli_complain("cannot forget '%s': it is a folder, and no agent", name);
		cli_hint("bawn agent forget --all --project '%s'", name);
		return CLI_MISUSE;
	}
	status = agent_load(job, name, &p);
	if (status != CLI_OK)
		return status;
	f->places = &p->values.v[SPEC_STATE];
	f->whose = p->name;
	return CLI_OK;
}

static int agent_forget(struct agent_job *job, const char *name)
{
	const char *project = cli_value(job->cli, CLI_OPT_PROJECT);
	struct err e = { 0 };
	struct forgetting f = { .state = record_open_state(job->home, false, &e) };
	int status = CLI_FAILED, r;

	project = project ? project : ".";
	if (!run_home_resolve(project, f.project)) {
		cli_complain("cannot use the project '%s': %s", project, strerror(errno));
	} else {
		r = f.state < 0 ? -ENOENT : run_home_list(f.state, f.project, &f.kept);
		status = r < 0 && r != -ENOENT ? CLI_FAILED : find_forgotten(job, name, &f);
		if (r < 0 && r != -ENOENT)
			cli_complain(
				"cannot list what is kept for '%s': %s", f.project, strerror(-r));
	}
	if (status == CLI_OK)
		status = forget_kept(job, &f);
	run_home_kept_done(&f.kept);
	if (f.state >= 0)
		close(f.state);
	return status;
}

/* --- the command --- */

static const struct {
	const char *name;
	int (*run)(struct agent_job *job, const char *name);
} verbs[] = {
	{ "list", agent_list },
	{ "show", agent_show },
	{ "forget", agent_forget },
};

int cmd_agent(struct cli *cli)
{
	struct agent_job job = { .cli = cli, .out = { .max = (size_t)1 << 20 } };
	const char *home = run_home(), *verb = cli->word_count ? cli_habit_verb(cli) : NULL;
	int status = CLI_MISUSE;
	size_t i = 0;

	while (verb && i < COUNT_OF(verbs) && !str_eq(verbs[i].name, verb))
		i++;
	if (!verb || i == COUNT_OF(verbs)) {
		cli_complain(verb ? "agent knows list, show and forget, not '%s'"
				  : "say what to do about agents: list, show or forget",
			verb);
		return CLI_MISUSE;
	}
	if (cli->word_count > 2) {
		cli_complain("agent %s takes no '%s'", verb, cli->words[2]);
		return CLI_MISUSE;
	}
	job.home = home;
	spec_init(&job.spec);
	status = verbs[i].run(&job, cli->word_count > 1 ? cli->words[1] : NULL);
	if (job.out.len)
		status = cli_write(&job.out, status);
	buf_done(&job.out);
	spec_done(&job.spec);
	return status;
}
