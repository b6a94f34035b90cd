/*
 * cli_run - tells a person how a run goes, on standard error.
 *
 * Runs as: the operator.
 */
#include "cli/cli_run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/commands.h"
#include "plan/plan_ops.h"

/* --- timing --- */

static void say_step(const char *name, uint64_t ns)
{
	fprintf(stderr, "  %-24s %8.1f µs\n", name, (double)ns / 1000);
}

/* Where the time of a start went; nothing where it was not taken. */
static void cli_say_times(const struct cage_times *t, const struct record *record, uint64_t began)
{
	if (!t || !t->started)
		return;
	fprintf(stderr, "bawn: the start of run %s\n", record->run);
	say_step("plan and clone", t->born - began);
	say_step("ids", t->mapped - t->born);
	for (int kind = 0; kind < PLAN_OP_KIND_COUNT; kind++)
		if (t->spent[kind] && kind != PLAN_IDS)
			say_step(plan_op_defs[kind].name, t->spent[kind]);
	say_step("= until the wall stands", t->ready - t->born);
	say_step("look from outside", t->told - t->ready);
	say_step("init and preflight", t->checked - t->told);
	say_step("startup", t->started - t->checked);
	say_step("= until the command", t->started - began);
	say_step("command and its end", record->run_ns);
}

static void run_say(void *of, const char *text, const char *hint)
{
	struct cli_told *told = of;

	cli_progress_clear(&told->progress);
	if (text)
		cli_complain("%s", text);
	if (hint)
		cli_hint("%s", hint);
}

static void say_diags(void *of, const struct spec *s)
{
	struct cli_told *told = of;

	cli_print_diags(told->cli, s);
}

static void say_refused(void *of, const struct run *r, const struct err *e)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };
	struct cli_told *told = of;
	bool is_unplannable = e->kind == ERR_REFUSED && e->num == EOPNOTSUPP &&
			      r->choice.engine == SPEC_ENGINE_AUTO;
	const char *nested = cli_find_nested(&r->choice, e);

	cli_progress_clear(&told->progress);
	if (nested) {
		cli_complain("%s", nested);
		cli_hint(CLI_NESTED_HINT);
		return;
	}
	cli_complain_err(e);
	if (is_unplannable)
		plan_print_refusal(&r->choice, &r->host, &out);
	file_write_all(STDERR_FILENO, buf_text(&out), out.len);
}

/* --- the command has ended --- */

static void say_reached(const struct run *r)
{
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		own(buf) struct buf text = { .max = 512 };

		record_print_reached(&r->record, g, &text);
		if (text.len)
			cli_complain("%s", buf_text(&text));
	}
}

/* May it be why a program aborted? Only a cgroup counts the threads that it refuses. */
static bool is_pids_uncounted(const struct run *r)
{
	const struct plan_op *op = plan_find(r->plan, PLAN_LIMIT, "limits.pids");

	return op && spec_is_declared(&r->spec, SPEC_LIMITS_PIDS) &&
	       !str_starts(plan_str(r->plan, op->b), "cgroup");
}

/* For a person, as a shell would say it; who typed ^C knows. */
static void say_signal(const struct cli *cli, const struct run *r)
{
	int number = r->record.status;
	const char *name = sigabbrev_np(number);

	if (r->record.outcome == RECORD_SIGNALED && number != SIGINT && !cli->is_quiet &&
		isatty(STDERR_FILENO))
		cli_complain("the command was ended by signal %d (SIG%s)%s", number,
			name ? name : "RT",
			number == SIGABRT && is_pids_uncounted(r)
				? "; limits.pids may be why: what it refuses is not counted here"
				: "");
}

static void say_ended(void *of, const struct run *r, const struct err *e)
{
	struct cli_told *told = of;

	cli_progress_clear(&told->progress);
	if (e->kind != ERR_NONE)
		cli_complain_err(e);
	say_signal(told->cli, r);
	say_reached(r);
	cli_say_missing(told->cli, &r->spec, &r->record);
	cli_say_denied(told->cli, &r->record);
	cli_say_net(told->cli, &r->record);
	cli_say_effects(told->cli, &r->record, r->place.project);
	cli_say_times(r->request.times, &r->record, r->began_ns);
}

struct run_sink cli_sink(struct cli_told *told, const struct cli *cli)
{
	*told = (struct cli_told){ .cli = cli, .progress = cli_progress_begin(cli) };
	return (struct run_sink){ .of = told,
		.is_quiet = cli->is_quiet,
		.progress = cli_progress_of(&told->progress),
		.say = run_say,
		.diags = say_diags,
		.refused = say_refused,
		.ended = say_ended };
}

void cli_told_done(struct cli_told *told)
{
	cli_progress_done(&told->progress);
}
