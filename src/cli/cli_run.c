/*
 * cli_run - tells a person how a run goes, on standard error.
 *
 * Runs as: the operator.
 */
#include "cli/cli_run.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/commands.h"
#include "plan/plan_ops.h"
#include "session/store/store.h"

/* --- how far it is --- */

#define FIRST_NS ((uint64_t)500 * 1000 * 1000) /* what is shorter needs no line */
#define EVERY_NS ((uint64_t)100 * 1000 * 1000)

struct cli_progress cli_progress_begin(const struct cli *cli)
{
	return (struct cli_progress){
		.is_shown = !cli->is_quiet,
		.next = clock_ns() + FIRST_NS,
	};
}

void cli_progress_clear(struct cli_progress *p)
{
	if (p->has_line)
		file_write_all(STDERR_FILENO, "\r\x1b[K", strlen("\r\x1b[K"));
	p->has_line = false;
}

void cli_progress_done(struct cli_progress *p)
{
	cli_progress_clear(p);
}

static void progress_tell(void *of, const char *what, uint64_t done, uint64_t total)
{
	own(buf) struct buf line = { .max = 4096 };
	struct cli_progress *p = of;
	uint64_t now;

	if (!p->is_shown)
		return;
	now = clock_ns();
	if (!what) {
		cli_progress_clear(p);
		p->next = now + FIRST_NS;
		return;
	}
	if (now < p->next)
		return;
	/* Most runs never come this far. */
	if (!p->is_terminal)
		p->is_shown = p->is_terminal = isatty(STDERR_FILENO) == 1;
	if (!p->is_shown)
		return;
	p->next = now + EVERY_NS;
	buf_puts(&line, "\r\x1b[Kbawn: ");
	buf_add_visible(&line, what, strnlen(what, 40));
	buf_printf(&line, ": %" PRIu64, done);
	if (total)
		buf_printf(&line, " of %" PRIu64 ", %" PRIu64 " %%", total, done * 100 / total);
	file_write_all(STDERR_FILENO, buf_text(&line), line.len);
	p->has_line = true;
}

struct change_progress cli_progress_of(struct cli_progress *p)
{
	return (struct change_progress){ .tell = progress_tell, .of = p };
}

/* --- its effects --- */

static void add_count(struct buf *out, size_t n, const char *what)
{
	if (n)
		buf_printf(out, "%s%zu %s", out->len ? ", " : "", n, what);
}

/* "1 added, 2 changed; …"; nothing where there is none. */
static void add_sum(struct buf *line, const struct record_effects *x)
{
	add_count(line, x->changed, "changed");
	add_count(line, x->added, "added");
	add_count(line, x->deleted, "deleted");
	add_count(line, x->renamed, "renamed");
}

static void effects_add_held(struct buf *line, const struct record_effects *x)
{
	if (x->held)
		buf_printf(line, "; %zu of them run%s on the host by %s", (size_t)x->held,
			x->held == 1 ? "s" : "", x->held == 1 ? "itself" : "themselves");
}

static void say_sum(
	const struct cli *cli, const struct record_effects *x, const char *run, const char *project)
{
	own(buf) struct buf line = { .max = 1024 };
	char here[PATH_MAX];
	bool is_here;

	add_sum(&line, x);
	if (cli->is_quiet || !line.len)
		return;
	/* Here the newest run is meant by itself. */
	is_here = getcwd(here, sizeof(here)) && str_path_within(here, project);
	effects_add_held(&line, x);
	cli_complain("files: %s; see: bawn diff%s%s, then: bawn apply%s%s or bawn discard%s%s",
		buf_text(&line), is_here ? "" : " ", is_here ? "" : run, is_here ? "" : " ",
		is_here ? "" : run, is_here ? "" : " ", is_here ? "" : run);
}

void cli_say_session_effects(const struct record *record, const struct store_session *s)
{
	own(buf) struct buf line = { .max = 1024 };
	const char *name = s->name[0] ? s->name : s->id;

	add_sum(&line, &record->effects);
	if (!line.len)
		return;
	buf_printf(&line, " in session %s", name);
	effects_add_held(&line, &record->effects);
	cli_complain("files: %s; see: bawn session diff %s, then: bawn session apply %s",
		buf_text(&line), name, name);
}

static void say_effects(const struct cli *cli, const struct record *record, const char *project)
{
	const struct record_effects *x = &record->effects;

	/* The session's commands print this: cli_say_session_effects. */
	if (record->session)
		return;
	if (x->error.kind != ERR_NONE) {
		cli_complain_about(&x->error, "%s%s",
			str_starts(x->error.text, "cannot find out")
				? ""
				: "cannot find out what the run changed: ",
			x->error.text);
		if (!x->error.hint[0])
			cli_hint("bawn diff tries again");
	} else if (x->is_known) {
		say_sum(cli, x, record->run, project);
	}
}

/* --- timing --- */

/* A line, and what the lines so far add up to. */
static void say_step(const char *name, uint64_t from, uint64_t to)
{
	fprintf(stderr, "  %-26s %8.1f µs\n", name, to > from ? (double)(to - from) / 1000 : 0);
}

/* Prints the steps of the cage's first process, by parts of the plan. */
static void say_wall(const struct cage_times *t)
{
	uint64_t rest = t->ready - t->mapped;

	say_step("ids", t->born, t->mapped);
	for (int kind = 0; kind < PLAN_OP_KIND_COUNT; kind++) {
		if (!t->spent[kind] || kind == PLAN_IDS)
			continue;
		say_step(plan_op_defs[kind].name, 0, t->spent[kind]);
		rest -= t->spent[kind] < rest ? t->spent[kind] : rest;
	}
	say_step("the rest of the wall", 0, rest);
	say_step("= until the wall stands", t->born, t->ready);
}

/*
 * Where the time of a run went, from the start of our own process; nothing where the command was
 * not started. Lines add up to the next one with "=" of the same kind: the wall's to the wall, and
 * all of them to the run.
 */
static void say_times(void *of, const struct run *r)
{
	const struct cli *cli = ((struct cli_printer *)of)->cli;
	const struct cage_times *t = r->request.times;
	uint64_t now = clock_ns(), exec_ns;

	if (!t->started || !r->gone_ns)
		return;
	exec_ns = cli->began_ns - cli->cpu_before_ns;
	fprintf(stderr, "bawn: where the time of run %s went\n", r->record.run);
	say_step("exec and libc", exec_ns, cli->began_ns);
	say_step("spec", cli->began_ns, r->began_ns);
	say_step("plan and clone", r->began_ns, t->born);
	say_wall(t);
	say_step("look from outside", t->ready, t->told);
	say_step("init and preflight", t->told, t->checked);
	say_step("startup", t->checked, t->started);
	say_step("= until the command", exec_ns, t->started);
	say_step("command", t->started, r->ended_ns);
	say_step("effects and record", r->ended_ns, r->recorded_ns);
	say_step("the end of the cage", r->recorded_ns, r->gone_ns);
	say_step("what is left", r->gone_ns, now);
	say_step("= the whole run", exec_ns, now);
}

/* --- while it lasts --- */

static void run_say(void *of, const char *text, const char *hint)
{
	struct cli_printer *told = of;

	cli_progress_clear(&told->progress);
	if (text)
		cli_complain("%s", text);
	if (hint)
		cli_hint("%s", hint);
}

static void say_diags(void *of, const struct spec *s)
{
	struct cli_printer *told = of;

	cli_print_diags(told->cli, s);
}

static void say_refused(void *of, const struct run *r, const struct err *e)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };
	struct cli_printer *told = of;
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

/* True if a limit may be why a program aborted. Only a cgroup counts refused threads. */
static bool is_pids_uncounted(const struct run *r)
{
	const struct plan_op *op = plan_find(r->plan, PLAN_LIMIT, "limits.pids");

	return op && spec_is_declared(&r->spec, SPEC_LIMITS_PIDS) &&
	       !str_starts(plan_str(r->plan, op->b), "cgroup");
}

static void say_missing(const struct cli *cli, const struct spec *s, const struct record *r)
{
	own(buf) struct buf names = { .max = 4096 };
	uint64_t missing = record_degraded(r);
	char folder[PATH_MAX];

	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		if (missing >> g & 1 && !plan_may_be_missing(s, g))
			buf_printf(
				&names, "%s%s", names.len ? ", " : "", plan_guarantee_defs[g].name);
	/* For a person: a script asks the record. */
	if (names.len && !cli->is_quiet && isatty(STDERR_FILENO))
		cli_complain("not given on this machine: %s; why: bawn doctor; to accept it: "
			     "defaults: { allow_degraded: [%s] } in %s/policy.yaml",
			buf_text(&names), buf_text(&names),
			run_config_folder(run_home(), folder) == 0 ? folder : "/etc/bawn");
}

static void say_sentence(void *of, const char *sentence)
{
	(void)of;
	cli_complain("%s", sentence);
}

/* --quiet does not hide that the network is gone. */
static void say_network(const struct cli *cli, const struct record *r)
{
	if (!cli->is_quiet)
		record_say_network(r, say_sentence, NULL);
	if (r->gate.kind != ERR_NONE)
		cli_complain_about(
			&r->gate, "the network was closed before the end: %s", r->gate.text);
}

/* Prints the signal that ended the command, as a shell does; not after ^C. */
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
	struct cli_printer *told = of;

	cli_progress_clear(&told->progress);
	if (e->kind != ERR_NONE)
		cli_complain_err(e);
	say_signal(told->cli, r);
	say_reached(r);
	say_missing(told->cli, &r->spec, &r->record);
	if (!told->cli->is_quiet)
		record_say_denials(&r->record, say_sentence, NULL);
	say_network(told->cli, &r->record);
	say_effects(told->cli, &r->record, r->place.project);
}

struct run_sink cli_sink(struct cli_printer *told, const struct cli *cli)
{
	*told = (struct cli_printer){ .cli = cli, .progress = cli_progress_begin(cli) };
	return (struct run_sink){ .of = told,
		.is_quiet = cli->is_quiet,
		.progress = cli_progress_of(&told->progress),
		.say = run_say,
		.diags = say_diags,
		.refused = say_refused,
		.ended = say_ended,
		.timed = say_times };
}

void cli_printer_done(struct cli_printer *told)
{
	cli_progress_done(&told->progress);
}
