/*
 * mcp_run - does the calls of bawn mcp, one after the other, each as one run in the server's
 * session.
 *
 * Runs as:     the operator; a process of its own, which ends with the server.
 * Enters with: the session's root, and a channel to the server; standard streams that are none of
 *              the protocol's.
 * Leaves:      of each call an answer, whole or not at all, and the run's record; between calls a
 *              cage in which nothing of the session is, ready for the next one.
 * Must not:    keep the session's workspace mounted: that is for the server, which hears when the
 *              session is stopped.
 *
 * bash is a shell in the cage; the file tools are bawn's own program, in the cage. What they may do
 * is for the cage to say: here is no policy, and so there are no two.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/mcp/mcp_server.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "proof/record/record.h"
#include "run/run_session.h"
#include "wire/wire.h"

/* --- what the wall said to a command, for the model that asked for it --- */

#define MOST_TOLD 5

/* A line of bawn's own, in which anybody's bytes do no harm. */
static void mcp_add_note(const char *sentence, struct buf *out)
{
	buf_puts(out, "[bawn: ");
	buf_add_visible(out, sentence, strlen(sentence));
	buf_puts(out, "]\n");
}

static void mcp_add_error(const struct err *e, struct buf *out)
{
	struct err whole = *e;

	err_join_hint(&whole);
	mcp_add_note(whole.text, out);
}

static void add_more(struct buf *out, size_t count)
{
	if (count > MOST_TOLD)
		buf_printf(out, "[bawn: and %zu more of this kind]\n", count - MOST_TOLD);
}

static void mcp_notes_add_limits(const struct record *r, struct buf *out)
{
	for (enum plan_guarantee g = 0; r->plan && g < PLAN_GUARANTEE_COUNT; g++) {
		own(buf) struct buf text = { .max = 512 };

		record_print_reached(r, g, &text);
		if (text.len)
			mcp_add_note(buf_text(&text), out);
	}
}

static void add_net(const struct record *r, struct buf *out)
{
	size_t count = 0;

	for (size_t i = 0; i < r->decision_count; i++) {
		const struct wire_decision *d = &r->decisions[i];
		char sentence[1024];

		if (d->kind != WIRE_NET_DENIED && d->kind != WIRE_NAME_DENIED &&
			d->kind != WIRE_NET_FAILED)
			continue;
		wire_print_decision(d, sentence, sizeof(sentence));
		if (count++ < MOST_TOLD)
			buf_printf(out, "[bawn: network: %s]\n", sentence);
	}
	add_more(out, count);
	if (r->gate.kind != ERR_NONE)
		mcp_add_error(&r->gate, out);
}

static void add_denials(const struct record *r, struct buf *out)
{
	size_t count = 0;

	for (size_t i = 0; i < r->denial_count; i++) {
		char sentence[RECORD_PATH_SIZE + 512];

		if (record_is_tried_only(&r->denials[i]))
			continue;
		record_say_denial(&r->denials[i], sentence, sizeof(sentence));
		if (count++ < MOST_TOLD)
			mcp_add_note(sentence, out);
	}
	add_more(out, count);
}

/* What a model should know of how a run went, a line for each. */
static void mcp_add_notes(const struct record *r, struct buf *out)
{
	if (r->outcome == RECORD_REFUSED)
		mcp_add_note("the command was not run", out);
	if (r->error.kind != ERR_NONE)
		mcp_add_error(&r->error, out);
	mcp_notes_add_limits(r, out);
	add_net(r, out);
	add_denials(r, out);
}

/* --- one call: one run in the server's session --- */

/* A shell that is there finds out whether a better one is. */
static const char shell_script[] =
	"if command -v bash >/dev/null 2>&1; then exec bash -c -- \"$1\"; fi; exec sh -c -- \"$1\"";

/* The process, between calls. */
struct runner {
	const struct mcp_server *server;
	int channel;
	int null;             /* /dev/null */
	struct run_pool pool; /* cages that wait for the next call */
};

struct doing {
	const struct runner *runner;
	const struct mcp_request *request;
	int arguments;       /* the file in memory that they are in */
	int turn;            /* to change files, or -1 */
	int hold;            /* what keeps the workspace mounted, for the server; or -1 */
	struct tail printed; /* output and error in the order in which they came */
	struct buf notes;
	struct mcp_shell shell; /* of bash */
	struct run_request asked;
	char time[32];
	const char *words[8]; /* the command */
};

/* --- what is run --- */

/* A run may have less time than its session gives, never more. */
static int set_time(const struct mcp_server *s, struct doing *d, uint64_t ms, struct err *e)
{
	if (s->most_ms && ms >= s->most_ms)
		return 0;
	snprintf(d->time, sizeof(d->time), "%" PRIu64 "ms", ms);
	return run_request_set(&d->asked, SPEC_LIMITS_TIME, "--time", d->time, e);
}

static void set_command(struct doing *d, const char *const *words, size_t count)
{
	memcpy(d->words, words, count * sizeof(*words));
	d->asked.command = d->words;
	d->asked.command_count = count;
}

static int ask_shell(const struct mcp_server *s, struct doing *d, struct err *e)
{
	int r = mcp_read_shell(&d->request->arguments, &d->shell, e);

	if (r < 0)
		return r;
	if (s->has_bash)
		set_command(d, (const char *const[]){ "bash", "-c", "--", d->shell.command }, 4);
	else
		set_command(d,
			(const char *const[]){ "sh", "-c", shell_script, "bash", d->shell.command },
			5);
	return set_time(s, d, d->shell.timeout_ms, e);
}

static int ask_tool(const struct mcp_server *s, struct doing *d, struct err *e)
{
	int r = set_time(s, d, MCP_USUAL_TIMEOUT, e);

	set_command(d,
		(const char *const[]){ "/run/bawn/bawn", "tool", mcp_tool_names[d->request->tool] },
		3);
	/* Nobody can change what is there any more. */
	if (r == 0 && dup2(d->arguments, STDIN_FILENO) < 0)
		r = err_sys(e, errno, "cannot pass the arguments on");
	return r;
}

/*
 * A writable project is an overlay for each run, and none knows of the locks of another, or sees at
 * once what another has replaced. So runs that change a file there come one after the other. The
 * lock is out of the cage's reach, and ends with the call.
 */
static int take_turn(const struct mcp_server *s, struct doing *d, struct err *e)
{
	enum mcp_tool tool = d->request->tool;

	if (!s->takes_turns || (tool != MCP_WRITE && tool != MCP_EDIT))
		return 0;
	d->turn = file_open_name(s->root, s->serving->session->id, O_RDONLY | O_DIRECTORY);
	/* Without a session there is no run: that will say it. */
	while (d->turn >= 0 && flock(d->turn, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(e, errno, "cannot wait for other changes");
	return 0;
}

/* --- how it went --- */

static void mcp_run_look(void *of, const struct record *r)
{
	struct doing *d = of;

	mcp_add_notes(r, &d->notes);
}

static void add_printed(const struct tail *printed, struct buf *out)
{
	own(buf) struct buf bytes = { .max = MCP_MOST_OUTPUT };
	size_t at = 0;

	tail_print(printed, &bytes);
	if (printed->total > bytes.len) {
		/* Not from the middle of a character. */
		while (at < bytes.len && at < 4 && (bytes.data[at] & 0xC0) == 0x80)
			at++;
		buf_printf(out, "[bawn: the first %" PRIu64 " bytes of the output are left out]\n",
			(printed->total - bytes.len));
	}
	mcp_add_text(out, buf_text(&bytes) + at, bytes.len - at);
}

static void begin_line(struct buf *out)
{
	if (out->len && out->data[out->len - 1] != '\n')
		buf_putc(out, '\n');
}

/* Tells the server something, with a descriptor or -1; without a server there is nothing to do. */
static void mcp_run_tell(const struct runner *r, enum mcp_note_kind kind, int fd)
{
	const struct mcp_note note = { .kind = kind };

	if (wire_send_message(r->channel, &note, sizeof(note), fd) < 0)
		_exit(1);
}

/* A file in memory has room for any line, a message has not. */
static void mcp_run_answer(const struct runner *r, const struct buf *line)
{
	own_fd int answer = memfd_create("answer", MFD_CLOEXEC);

	/* Without a whole one the server says so itself. */
	if (answer >= 0 && (line->failed || file_write_all(answer, buf_text(line), line->len) < 0))
		(void)!ftruncate(answer, 0);
	mcp_run_tell(r, MCP_NOTE_DONE, answer);
}

/* Before a cage is made for the next call: it would have copies. */
static void mcp_run_let_go(struct doing *d)
{
	int *const fds[] = { &d->turn, &d->hold };

	for (size_t i = 0; i < COUNT_OF(fds); i++)
		if (*fds[i] >= 0)
			close(take_fd(fds[i]));
}

/* The run has ended, and its record is signed. */
static void mcp_run_end(void *of, struct run_result *done)
{
	struct doing *d = of;
	own(buf) struct buf text = { .max = MCP_MAX_ANSWER }, line = { .max = MCP_MAX_ANSWER };
	struct mcp_result result = { .is_error = done->status != 0,
		.session = d->runner->server->serving->session->id,
		.run = done->run,
		.status = done->status };

	add_printed(&d->printed, &text);
	if (d->notes.len || done->status) {
		begin_line(&text);
		buf_add(&text, buf_text(&d->notes), d->notes.len);
	}
	/* Where there is no run, no record says it. */
	if (!done->run[0] && done->error.kind != ERR_NONE)
		mcp_add_error(&done->error, &text);
	if (done->status)
		buf_printf(&text, "[exit status %d]\n", done->status);
	result.text = buf_text(&text);
	mcp_print_result(d->request, &result, &line);
	line.failed |= text.failed;
	/* Without it the session is mounted anew by its next run. */
	if (d->hold >= 0)
		mcp_run_tell(d->runner, MCP_NOTE_HOLD, d->hold);
	mcp_run_let_go(d);
	mcp_run_answer(d->runner, &line);
}

/* What is wrong with the arguments is the model's to mend: it is told as a result. */
static void mcp_run_refuse(const struct doing *d, const struct err *e)
{
	own(buf) struct buf line = { .max = MCP_MAX_ANSWER };
	const struct mcp_result result = { e->text, true, d->runner->server->serving->session->id,
		NULL, 0 };

	mcp_print_result(d->request, &result, &line);
	mcp_run_answer(d->runner, &line);
}

/* --- the process --- */

static void mcp_run_call(
	struct runner *r, const struct mcp_request *q, int arguments, bool wants_hold)
{
	const struct mcp_server *s = r->server;
	struct doing d = { .runner = r,
		.request = q,
		.arguments = arguments,
		.turn = -1,
		.hold = -1,
		.notes.max = (size_t)64 << 10 };
	struct run_job job = { .session = s->serving->session,
		.command_line = s->serving->command_line,
		.command_line_size = s->serving->command_line_size,
		.sink = s->serving->sink,
		.root = s->root,
		.kill_signal = MCP_KILL_SIGNAL,
		.printed = { &d.printed, &d.printed },
		.request = &d.asked,
		.look = mcp_run_look,
		.done = mcp_run_end,
		.of = &d,
		.pool = &r->pool,
		.hold = wants_hold ? &d.hold : NULL };
	struct run_result done;
	struct err e = { 0 };
	int failure;

	run_request_init(&d.asked);
	tail_init(&d.printed, MCP_MOST_OUTPUT);
	failure = q->tool == MCP_BASH ? ask_shell(s, &d, &e) : ask_tool(s, &d, &e);
	if (failure == 0)
		failure = take_turn(s, &d, &e);
	if (failure < 0) {
		mcp_run_refuse(&d, &e);
	} else {
		run_in_session(&job, &done);
		buf_done(&done.record);
	}
	mcp_run_let_go(&d);
	dup2(r->null, STDIN_FILENO);
	mcp_shell_done(&d.shell);
	run_request_done(&d.asked);
	buf_done(&d.notes);
	tail_done(&d.printed);
}

/* Waits for a call, and does it; false: the server has no more of them. */
static bool mcp_run_next(struct runner *r)
{
	struct mcp_note note = { 0 };
	own_fd int arguments = -1;
	own_free char *bytes = NULL;
	struct mcp_request q = { 0 };

	if (wire_receive_message(r->channel, &note, sizeof(note), &arguments) < 0 ||
		note.kind != MCP_NOTE_CALL || note.tool >= MCP_TOOL_COUNT)
		return false;
	if (file_read_all(arguments, MCP_MAX_LINE, &bytes, &q.arguments.size) < 0 ||
		lseek(arguments, 0, SEEK_SET) < 0)
		_exit(1);
	q.arguments.bytes = bytes;
	q.id = (struct mcp_slice){ note.id, strnlen(note.id, sizeof(note.id)) };
	q.is_modern = note.is_modern;
	q.tool = note.tool;
	mcp_run_call(r, &q, arguments, note.wants_hold);
	mcp_run_tell(r, MCP_NOTE_READY, -1);
	return true;
}

_Noreturn void mcp_run(const struct mcp_server *s, int channel)
{
	struct runner r = { .server = s,
		.channel = channel,
		.null = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) };

	if (r.null < 0)
		_exit(1);
	while (mcp_run_next(&r))
		continue;
	run_pool_done(&r.pool);
	_exit(0);
}
