/*
 * cli_mcp_run - one call of a tool: one run in the server's session.
 *
 * Runs as:     the operator; a process of its own, which ends with the server.
 * Enters with: the session's root, and a file in memory for the answer; standard streams that are
 *              none of the protocol's.
 * Leaves:      the answer, whole or not at all; the run's record.
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

#include "base/file.h"
#include "base/own.h"
#include "cli/cli_mcp.h"
#include "cli/cli_run.h"
#include "run/run_session.h"

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
	*ret = file_open_name(s->root, s->session->id, O_RDONLY | O_DIRECTORY);
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
		.session = s->session->id,
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
	const struct mcp_result result = { e->text, true, s->session->id, NULL, 0 };

	mcp_print_result(d->request, &result, &line);
	if (!line.failed)
		(void)file_write_all(answer, buf_text(&line), line.len);
}

void mcp_run(const struct mcp_server *s, const struct mcp_request *q, int answer)
{
	struct doing d = { .request = q, .notes.max = (size_t)64 << 10 };
	const struct cli quiet = { .is_quiet = true };
	own(cli_told) struct cli_told told;
	const struct run_sink sink = cli_sink(&told, &quiet);
	struct run_job job = { .session = s->session,
		.command_line = s->cli->command_line,
		.command_line_size = s->cli->command_line_size,
		.sink = &sink,
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
