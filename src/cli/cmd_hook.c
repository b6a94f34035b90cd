/*
 * cmd_hook - what an agent asks before it calls a tool.
 *
 * Runs as:  the agent, in the cage, which holds without it.
 * Reads:    one JSON object from its input, what the cage says of itself, links.
 * Leaves:   an answer, or nothing, which is no opinion; a word to the keeper for each path.
 * Must not: approve anything; wait for anybody; fail in a way that an agent takes for an answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/hook/hook.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/commands.h"
#include "wire/wire.h"

#define PATIENCE_NS ((uint64_t)2000000000)

/* 2 would be taken for a refusal of the call. */
#define NOT_UNDERSTOOD 1

/* All of the input, or what there was in time. */
static void hook_read_input(struct buf *in)
{
	uint64_t began = clock_ns(), gone;
	char piece[65536];
	ssize_t n = 1;

	while (n && (gone = clock_ns() - began) < PATIENCE_NS) {
		struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

		if (poll(&input, 1, (int)((PATIENCE_NS - gone) / 1000000) + 1) <= 0)
			continue;
		n = read(STDIN_FILENO, piece, sizeof(piece));
		if (n < 0 && errno != EINTR)
			return;
		if (n > 0)
			buf_add(in, piece, (size_t)n);
	}
}

static long cmd_hook_read_link(void *of, const char *path, char *ret, size_t size)
{
	ssize_t n = readlink(path, ret, size);

	(void)of;
	return n < 0 ? -errno : n;
}

/* The keeper, where it hears. Nobody waits for it. */
static void cmd_hook_tell(const struct hook_call *c, const struct hook_answer *a)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = HOOK_TOLD_FILE };
	own_fd int fd = wire_socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	struct wire_report told;

	for (size_t i = 0; fd >= 0 && i < a->count; i++) {
		hook_tell(c, &a->denials[i], &told);
		(void)sendto(fd, &told, sizeof(told), MSG_NOSIGNAL,
			(const struct sockaddr *)&address, sizeof(address));
	}
}

static void cmd_hook_answer(
	enum wire_agent agent, const struct tool_cage *wall, const struct buf *in, struct buf *out)
{
	struct hook_answer a;
	struct hook_call c;

	if (hook_call_read(&c, agent, wall, buf_text(in), in->len)) {
		hook_judge(&c, wall, cmd_hook_read_link, NULL, &a);
		hook_print_answer(&c, wall, &a, out);
		cmd_hook_tell(&c, &a);
	}
	hook_call_done(&c);
}

static enum wire_agent find_agent(const struct cli *cli)
{
	enum wire_agent agent = 0;

	while (agent < WIRE_AGENT_COUNT &&
		(cli->word_count != 1 || !str_eq(wire_agent_names[agent], cli->words[0])))
		agent++;
	return agent;
}

int cmd_hook(struct cli *cli)
{
	own(buf) struct buf in = { .max = HOOK_MAX_INPUT + 1 }, out = { .max = 65536 };
	enum wire_agent agent = find_agent(cli);
	own_free char *cage = NULL;
	struct tool_cage wall;
	size_t n = 0;

	if (agent == WIRE_AGENT_COUNT) {
		cli_complain("bawn hook is for claude, codex or gemini, and says which");
		return NOT_UNDERSTOOD;
	}
	hook_read_input(&in);
	if (in.failed || file_read_path(TOOL_CAGE_FILE, TOOL_CAGE_MAX, &cage, &n) < 0)
		return CLI_OK;
	if (hook_wall_read(&wall, cage, n))
		cmd_hook_answer(agent, &wall, &in, &out);
	tool_cage_done(&wall);
	(void)file_write_all(STDOUT_FILENO, buf_text(&out), out.len);
	return CLI_OK;
}
