/*
 * cage_terminal - a terminal of the cage's own.
 *
 * Runs as:     the first process, while the tree is built.
 * Enters with: a devpts nobody else has, and a session without a terminal.
 * Leaves:      the far end as the command's standard streams and the session's terminal; the near
 *              end with the keeper, and nowhere else.
 *
 * The operator's terminal stays outside: what the command does to its own, the keeper does not do
 * to the operator's.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/own.h"
#include "cage/cage_inside.h"
#include "wire/wire.h"

/* The far end, by descriptor: no name is looked up. */
static int open_far_end(int near)
{
	int unlocked = 0;

	if (ioctl(near, TIOCSPTLCK, &unlocked) < 0)
		return -1;
	return ioctl(near, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static int take_streams(const struct cage *c, int far)
{
	for (int i = 0; i < 3; i++)
		if (c->start->terminal_streams & 1U << i && dup2(far, i) < 0)
			return -1;
	/* Who is still in the operator's session has a terminal, which is what the test is for. */
	return cage_is_broken("session") ? 0 : ioctl(far, TIOCSCTTY, 0);
}

int cage_take_terminal(struct cage *c, int devpts, struct err *e)
{
	own_fd int near = openat(devpts, "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	own_fd int far = near < 0 ? -1 : open_far_end(near);
	int r;

	if (far < 0 || take_streams(c, far) < 0)
		return err_sys(e, errno, "cannot make a terminal for the cage");
	r = wire_send_fd(c->channel, WIRE_TERMINAL, near);
	return r < 0 ? err_sys(e, -r, "cannot hand the cage's terminal over") : 0;
}
