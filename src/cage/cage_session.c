/*
 * cage_session - what a session brings into a cage that stands already.
 *
 * Runs as:     the first process, in the finished root; it still has the capabilities of its own
 *              user namespace, to mount with, and drops them next.
 * Enters with: nothing of any session, and no way to the host.
 * Leaves:      the workspace in its places.
 *
 * The trees come as descriptors, detached, from the process that has them mounted. A cage may wait
 * here until somebody needs one.
 */
#include <errno.h>
#include <unistd.h>

#include "base/own.h"
#include "cage/cage_inside.h"
#include "wire/wire.h"

int cage_await(struct cage *c, const struct plan_op *op, struct err *e)
{
	(void)op;
	if (c->start->is_warm && !c->has_image)
		cage_preflight(c);
	if (wire_send(c->channel, WIRE_AWAITS, 0, NULL) < 0)
		_exit(125);
	for (;;) {
		struct wire_message m = { 0 };
		own_fd int tree = -1;

		/* The end of the channel is the end of the keeper. */
		if (wire_receive(c->channel, &m, &tree) < 0)
			_exit(125);
		if (m.kind == WIRE_JOINED)
			break;
		if (m.kind != WIRE_TREE || m.n < 0 || m.n >= CAGE_TREE_COUNT || tree < 0)
			return err_set(e, ERR_SYS, EPROTO,
				"cannot use the session's workspace: an unknown folder came from "
				"it");
		c->late[m.n] = take_fd(&tree);
	}
	c->has_session = true;
	return 0;
}

int cage_attach_late(
	struct cage *c, const struct plan_op *op, unsigned which, const char *path, struct err *e)
{
	own_fd int place = -1;
	int r;

	if (c->late[which] < 0)
		return err_set(e, ERR_SYS, ENOENT,
			"cannot use the session's workspace: '%s' did not come from it", path);
	r = cage_restrict_tree(c->late[which], cage_restrictions(op->flags), e);
	if (r < 0)
		return r;
	place = cage_open_place(c, c->root, path, true, e);
	return place < 0 ? place : cage_attach(c->late[which], place, path, e);
}
