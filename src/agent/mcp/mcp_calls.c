/*
 * mcp_calls - the calls that are being done, each by a process of its own.
 *
 * Runs as:  the operator, in the server.
 * Must not: leave a process behind, or let one of them have the protocol's streams.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/mcp/mcp_server.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "proof/record/record.h"
#include "run/run_session.h"

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

/*
 * Runs as:     the operator; a process of its own, which ends with the server.
 * Enters with: the session's root, and a file in memory for the answer; standard streams that are
 *              none of the protocol's.
 * Leaves:      the answer, whole or not at all; the run's record.
 *
 * bash is a shell in the cage; the file tools are bawn's own program, in the cage. What they may do
 * is for the cage to say: here is no policy, and so there are no two.
 */

/* A shell that is there finds out whether a better one is. */
static const char shell_script[] =
	"if command -v bash >/dev/null 2>&1; then exec bash -c -- \"$1\"; fi; exec sh -c -- \"$1\"";

struct doing {
	const struct mcp_request *request;
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
	set_command(
		d, (const char *const[]){ "sh", "-c", shell_script, "bash", d->shell.command }, 5);
	return set_time(s, d, d->shell.timeout_ms, e);
}

/* Puts the arguments where standard input is: nobody can change them any more. */
static int give_input(const struct mcp_slice *arguments, struct err *e)
{
	own_fd int fd = memfd_create("arguments", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : file_write_all(fd, arguments->bytes, arguments->size);

	if (r == 0 && (fcntl(fd, F_ADD_SEALS,
			       F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0 ||
			      lseek(fd, 0, SEEK_SET) < 0 || dup2(fd, STDIN_FILENO) < 0))
		r = -errno;
	return r == 0 ? 0 : err_sys(e, -r, "cannot pass the arguments on");
}

static int ask_tool(const struct mcp_server *s, struct doing *d, struct err *e)
{
	int r = set_time(s, d, MCP_USUAL_TIMEOUT, e);

	set_command(d,
		(const char *const[]){ "/run/bawn/bawn", "tool", mcp_tool_names[d->request->tool] },
		3);
	return r == 0 ? give_input(&d->request->arguments, e) : r;
}

/*
 * A writable project is an overlay for each run, and none knows of the locks of another, or sees at
 * once what another has replaced. So runs that change a file there come one after the other. The
 * lock is out of the cage's reach, and ends with this process.
 */
static int take_turn(const struct mcp_server *s, enum mcp_tool tool, int *ret, struct err *e)
{
	if (!s->takes_turns || (tool != MCP_WRITE && tool != MCP_EDIT))
		return 0;
	*ret = file_open_name(s->root, s->serving->session->id, O_RDONLY | O_DIRECTORY);
	/* Without a session there is no run: that will say it. */
	while (*ret >= 0 && flock(*ret, LOCK_EX) < 0)
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

static void mcp_run_write_answer(const struct mcp_server *s, const struct doing *d,
	const struct run_result *done, int answer)
{
	own(buf) struct buf text = { .max = MCP_MAX_ANSWER }, line = { .max = MCP_MAX_ANSWER };
	struct mcp_result result = { .is_error = done->status != 0,
		.session = s->serving->session->id,
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
	if (!text.failed && !line.failed)
		(void)file_write_all(answer, buf_text(&line), line.len);
}

/* What is wrong with the arguments is the model's to mend: it is told as a result. */
static void write_refusal(
	const struct mcp_server *s, const struct doing *d, const struct err *e, int answer)
{
	own(buf) struct buf line = { .max = MCP_MAX_ANSWER };
	const struct mcp_result result = { e->text, true, s->serving->session->id, NULL, 0 };

	mcp_print_result(d->request, &result, &line);
	if (!line.failed)
		(void)file_write_all(answer, buf_text(&line), line.len);
}

/* In a process of its own: does the call, and writes the answer. */
static void mcp_run(const struct mcp_server *s, const struct mcp_request *q, int answer)
{
	struct doing d = { .request = q, .notes.max = (size_t)64 << 10 };
	struct run_job job = { .session = s->serving->session,
		.command_line = s->serving->command_line,
		.command_line_size = s->serving->command_line_size,
		.sink = s->serving->sink,
		.root = s->root,
		.kill_signal = MCP_KILL_SIGNAL,
		.printed = { &d.printed, &d.printed },
		.request = &d.asked,
		.look = mcp_run_look,
		.of = &d };
	struct run_result done;
	struct err e = { 0 };
	own_fd int turn = -1;
	int r;

	run_request_init(&d.asked);
	tail_init(&d.printed, MCP_MOST_OUTPUT);
	r = q->tool == MCP_BASH ? ask_shell(s, &d, &e) : ask_tool(s, &d, &e);
	if (r == 0)
		r = take_turn(s, q->tool, &turn, &e);
	if (r < 0) {
		write_refusal(s, &d, &e, answer);
	} else {
		run_in_session(&job, &done);
		mcp_run_write_answer(s, &d, &done, answer);
		buf_done(&done.record);
	}
	mcp_shell_done(&d.shell);
	run_request_done(&d.asked);
	buf_done(&d.notes);
	tail_done(&d.printed);
}

#define SIGN_MS 3000 /* for a call whose command was killed to put that on record */

struct mcp_call *mcp_calls_find(struct mcp_server *s, const struct mcp_slice *id)
{
	for (size_t i = 0; i < MCP_MOST_CALLS; i++)
		if (mcp_is_same_id(
			    &(struct mcp_slice){ s->calls[i].id, strlen(s->calls[i].id) }, id))
			return &s->calls[i];
	return NULL;
}

/* --- starting --- */

/*
 * Nothing of the server's stays open but these two, which get new numbers, and where it complains.
 */
static int mcp_calls_let_go(int *root, int *answer)
{
	int null = file_open("/dev/null", O_RDWR);
	int *const kept[] = { root, answer };

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -1;
	return file_keep_only(STDERR_FILENO + 1, kept, 2);
}

static _Noreturn void be_call(
	struct mcp_server *s, const struct mcp_request *q, int answer, pid_t server)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* A keeper does not hear what it was told to ignore. */
	signal(SIGTERM, SIG_DFL);
	signal(MCP_KILL_SIGNAL, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != server || mcp_calls_let_go(&s->root, &answer) < 0)
		_exit(1);
	mcp_run(s, q, answer);
	_exit(0);
}

static int fork_call(struct mcp_server *s, struct mcp_call *c, const struct mcp_request *q)
{
	own_fd int answer = memfd_create("answer", MFD_CLOEXEC);
	pid_t server = getpid();
	pid_t pid = answer < 0 ? -1 : fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		be_call(s, q, answer, server);
	*c = (struct mcp_call){ .is_modern = q->is_modern, .pid = pid };
	c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (c->pidfd < 0) {
		int failure = -errno;

		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return failure;
	}
	memcpy(c->id, q->id.bytes, q->id.size);
	c->answer = take_fd(&answer);
	return 0;
}

static struct mcp_call *mcp_calls_find_place(struct mcp_server *s)
{
	for (size_t i = 0; i < MCP_MOST_CALLS; i++)
		if (!s->calls[i].id[0])
			return &s->calls[i];
	return NULL;
}

void mcp_calls_start(struct mcp_server *s, const struct mcp_request *q)
{
	struct mcp_call *place = mcp_calls_find_place(s);
	char sentence[128];
	int r = 0;

	if (mcp_calls_find(s, &q->id))
		snprintf(sentence, sizeof(sentence), "a call with this id is being done");
	else if (!place)
		snprintf(sentence, sizeof(sentence),
			"%d calls are being done: wait until one has ended", MCP_MOST_CALLS);
	else if ((r = fork_call(s, place, q)) < 0)
		snprintf(sentence, sizeof(sentence), "cannot start the call: %s", strerror(-r));
	else
		return;
	mcp_print_failure(&q->id, sentence, &s->out);
}

/* --- ending --- */

void mcp_calls_stop(struct mcp_call *c, unsigned patience_ms)
{
	uint64_t when = clock_ns() + (uint64_t)patience_ms * 1000000;

	if (!c->kill_ns)
		syscall(SYS_pidfd_send_signal, c->pidfd, SIGTERM, NULL, 0);
	if (!c->kill_ns || (when < c->kill_ns && !c->is_killed))
		c->kill_ns = when;
}

/* Killed itself, it could not say what became of its command. */
void mcp_calls_kill_late(struct mcp_call *c)
{
	uint64_t now = clock_ns();

	if (!c->kill_ns || now < c->kill_ns)
		return;
	syscall(SYS_pidfd_send_signal, c->pidfd, c->is_killed ? SIGKILL : MCP_KILL_SIGNAL, NULL, 0);
	c->is_killed = true;
	c->kill_ns = now + (uint64_t)SIGN_MS * 1000000;
}

static void add_answer(struct mcp_server *s, const struct mcp_call *c)
{
	own_free char *line = NULL;
	size_t n = 0;
	int r = lseek(c->answer, 0, SEEK_SET) < 0
			? -errno
			: file_read_all(c->answer, MCP_MAX_ANSWER, &line, &n);

	if (r == 0 && n && line[n - 1] == '\n')
		buf_add(&s->out, line, n);
	else
		mcp_print_failure(&(struct mcp_slice){ c->id, strlen(c->id) },
			"the run of this call was ended before it could say how it went", &s->out);
}

void mcp_calls_end(struct mcp_server *s, struct mcp_call *c)
{
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (!c->is_cancelled && !s->is_mute)
		add_answer(s, c);
	close(c->pidfd);
	close(c->answer);
	*c = (struct mcp_call){ 0 };
}
