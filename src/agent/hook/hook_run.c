/*
 * hook_run - answers one call of an agent's hook.
 *
 * Runs as:  the agent, in the cage, which holds without it.
 * Reads:    one JSON object, what the cage says of itself, links.
 * Leaves:   an answer, or nothing, which is no opinion; a word to the keeper for each path.
 * Must not: approve anything; wait for anybody.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/hook/hook.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "wire/wire.h"

#define PATIENCE_NS ((uint64_t)2000000000)

/* All of the input, or what there was in time. */
static void read_input(int fd, struct buf *in)
{
	uint64_t began = clock_ns(), gone;
	char piece[65536];
	ssize_t n = 1;

	while (n && (gone = clock_ns() - began) < PATIENCE_NS) {
		struct pollfd input = { .fd = fd, .events = POLLIN };

		if (poll(&input, 1, (int)((PATIENCE_NS - gone) / 1000000) + 1) <= 0)
			continue;
		n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno != EINTR)
			return;
		if (n > 0)
			buf_add(in, piece, (size_t)n);
	}
}

static long read_link(void *of, const char *path, char *ret, size_t size)
{
	ssize_t n = readlink(path, ret, size);

	(void)of;
	return n < 0 ? -errno : n;
}

/* The keeper, where it hears. Nobody waits for it. */
static void tell_keeper(const struct hook_call *c, const struct hook_answer *a)
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

static void answer(
	enum wire_agent agent, const struct tool_cage *wall, const struct buf *in, struct buf *out)
{
	struct hook_answer a;
	struct hook_call c;

	if (hook_call_read(&c, agent, wall, buf_text(in), in->len)) {
		hook_judge(&c, wall, read_link, NULL, &a);
		hook_print_answer(&c, wall, &a, out);
		tell_keeper(&c, &a);
	}
	hook_call_done(&c);
}

void hook_run(enum wire_agent agent, int input, struct buf *out)
{
	own(buf) struct buf in = { .max = HOOK_MAX_INPUT + 1 };
	own_free char *cage = NULL;
	struct tool_cage wall;
	size_t n = 0;

	read_input(input, &in);
	if (in.failed || file_read_path(TOOL_CAGE_FILE, TOOL_CAGE_MAX, &cage, &n) < 0)
		return;
	if (hook_wall_read(&wall, cage, n))
		answer(agent, &wall, &in, out);
	tool_cage_done(&wall);
}
