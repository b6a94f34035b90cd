/*
 * cmd_worker - does what was queued for sessions.
 *
 * Runs as: the operator, until it is told to end.
 *
 * What a worker is made of, and who of it may do what, is in src/worker.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/cli_result.h"
#include "cli/cli_run.h"
#include "cli/cli_session.h"
#include "cli/commands.h"
#include "proof/record/record.h"
#include "run/run_sessions.h"
#include "session/folder/session.h"
#include "session/worker/worker.h"

/* --- worker list --- */

#define MOST_LIST ((size_t)16 << 20)

struct listing {
	struct buf out;
	int64_t now_ms;
	size_t count;
};

/* Workers that went without a word are left out: nobody is connected there. */
static int worker_list_see_text(void *of, const struct store_worker *x)
{
	struct listing *l = of;
	own(buf) struct buf line = { .max = 4096 };

	if (!x->is_alive)
		return 0;
	buf_printf(&line,
		"%-32s  %-16s  slots %-4u  sessions %-4llu  runs %-4llu  heard of %llus ago",
		x->name, x->host, x->slots, (unsigned long long)x->sessions,
		(unsigned long long)x->runs, (unsigned long long)(l->now_ms - x->seen_ms) / 1000);
	buf_add_visible(&l->out, buf_text(&line), line.len);
	buf_putc(&l->out, '\n');
	l->count++;
	return 0;
}

static int worker_list_print_text(struct listing *l, struct store *s, struct err *e)
{
	int r = s ? store_now(s, &l->now_ms, e) : 0;

	return r == 0 && s ? store_each_worker(s, worker_list_see_text, l, e) : r;
}

/* bawn worker --list: prints the workers that are connected to the store. */
static int worker_list(const struct cli *cli)
{
	struct listing l = { .out.max = MOST_LIST };
	struct store *s = NULL;
	struct err e = { 0 };
	int status = CLI_FAILED, r = run_open_store(false, &s, &e);

	/* Without a store no worker is connected. */
	if (r == 0 || e.kind == ERR_NONE)
		r = worker_list_print_text(&l, s, &e);
	if (r < 0)
		cli_complain_err(&e);
	else
		status = cli_write(&l.out, CLI_OK);
	if (r == 0 && !cli->is_quiet && !l.count)
		cli_complain("no worker is connected to %s%s",
			s ? "the store " : "a store: there is none yet", s ? store_name(s) : "");
	if (s)
		store_close(s);
	buf_done(&l.out);
	return status;
}

const struct cli_option cmd_worker_options[] = {
	CLI_OWN("slots", 0, "NUMBER", "run so many at one time [2 per processor]"),
	CLI_OWN("name", 0, "NAME", "begin the worker's name with NAME [the host's]"),
	CLI_OWN("lease", 0, "DURATION", "lease sessions for so long between heartbeats [15s]"),
	CLI_OWN("idle", 0, "DURATION", "let go of a session unused for so long [60s]"),
	CLI_OWN("drain", 0, "DURATION", "let runs finish for so long at SIGTERM [30s]"),
	CLI_OWN("sweep", 0, "DURATION", "remove expired sessions so often, 0s for never [60s]"),
	CLI_OWN("discard", 0, NULL,
		"also remove expired sessions with changes that were not applied"),
	CLI_OWN("metrics", 0, "FILE", "write metrics to FILE, for Prometheus"),
	CLI_OWN("list", 0, NULL, "list the workers of the store, and end"),
	CLI_OWN("once", 0, NULL, "exit when nothing is queued"),
	CLI_OWN("verbose", 'v', NULL, "print each step"),
	{ 0 },
};

/* The command line; what the worker calls has no other way to it. */
static struct cli *program;

static void cmd_worker_tell(const char *text, bool is_detail)
{
	if (!program->is_quiet && (!is_detail || cli_value(program, CLI_OPT_VERBOSE)))
		cli_complain("%s", text);
}

static int worker_open_store(struct store **ret, struct err *e)
{
	return run_open_store(true, ret, e);
}

/* --- settings --- */

static int take_duration(
	const struct cli *cli, enum cli_name name, uint64_t least, uint64_t usual, uint64_t *ret)
{
	const char *text = cli_value(cli, name);
	struct err e = { 0 };

	*ret = usual;
	if (text && num_parse_duration(text, ret, &e) < 0) {
		cli_complain_about(&e, "--%s: %s", cli_names[name], e.text);
		return CLI_MISUSE;
	}
	/* A year is as good as forever, and can be added to. */
	if (*ret >= least && *ret <= (uint64_t)365 * 86400000)
		return CLI_OK;
	cli_complain("--%s is between %llus and a year, not '%s'", cli_names[name],
		(unsigned long long)(least / 1000), text);
	return CLI_MISUSE;
}

static int take_slots(const struct cli *cli, unsigned *ret)
{
	const char *text = cli_value(cli, CLI_OPT_SLOTS);
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	int64_t n = 2 * (processors > 0 ? processors : 1);
	struct err e = { 0 };

	if (text && num_parse_int(text, 1, WORKER_MAX_SLOTS, &n, &e) < 0) {
		cli_complain_about(&e, "--slots: %s", e.text);
		return CLI_MISUSE;
	}
	*ret = n < WORKER_MAX_SLOTS ? (unsigned)n : WORKER_MAX_SLOTS;
	return CLI_OK;
}

static int open_places(struct worker_settings *s, struct err *e)
{
	s->state = record_open_state(run_home(), true, e);
	if (s->state < 0)
		return s->state;
	s->root = session_open_root(s->state, true, e);
	return s->root < 0 ? s->root : 0;
}

int cmd_worker(struct cli *cli)
{
	static char words[][10] = { "bawn", "session", "sweep", "--json", "--discard" };
	char *sweep[] = { words[0], words[1], words[2], words[3],
		cli_value(cli, CLI_OPT_DISCARD) ? words[4] : NULL, NULL };
	char name[STORE_NAME_SIZE];
	/* The runs are told to whoever waits for them. */
	const struct cli quiet = { .is_quiet = true };
	own(cli_printer) struct cli_printer told;
	const struct run_sink sink = cli_sink(&told, &quiet);
	struct worker_settings s = { .name = name,
		.root = -1,
		.state = -1,
		.is_once = cli_value(cli, CLI_OPT_ONCE) != NULL,
		.metrics = cli_value(cli, CLI_OPT_METRICS),
		.sweep = sweep,
		.sink = &sink,
		.command_line = cli->command_line,
		.command_line_size = cli->command_line_size,
		.open_store = worker_open_store,
		.tell = cmd_worker_tell };
	struct err e = { 0 };
	/* A worker does not use these settings, but reports a misspelt one. */
	int status = cli_add_settings(cli);

	if (status == CLI_OK && cli_value(cli, CLI_OPT_LIST))
		return worker_list(cli);
	if (status == CLI_OK)
		status = take_slots(cli, &s.slots);
	if (status == CLI_OK && worker_make_name(cli_value(cli, CLI_OPT_NAME), name, &e) < 0)
		status = cli_fail(&e);
	if (status == CLI_OK)
		status = take_duration(
			cli, CLI_OPT_LEASE, WORKER_MIN_LEASE_MS, STORE_LEASE_MS, &s.lease_ms);
	if (status == CLI_OK)
		status = take_duration(cli, CLI_OPT_IDLE, 0, 60000, &s.idle_ms);
	if (status == CLI_OK)
		status = take_duration(cli, CLI_OPT_DRAIN, 0, 30000, &s.drain_ms);
	if (status == CLI_OK)
		status = take_duration(cli, CLI_OPT_SWEEP, 0, 60000, &s.sweep_ms);
	if (status != CLI_OK)
		return status;
	program = cli;
	if (open_places(&s, &e) < 0 || worker_run(&s, &e) < 0) {
		cli_complain_err(&e);
		status = CLI_FAILED;
	}
	if (s.root >= 0)
		close(s.root);
	if (s.state >= 0)
		close(s.state);
	return status;
}
