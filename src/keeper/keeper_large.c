/*
 * keeper_large - the end of a cage that has looked at a large project.
 *
 * Runs as: the keeper.
 * Leaves:  the cage's mounts to the kernel, which takes them down when the run is over.
 *
 * An overlay keeps an entry in memory for each name that was looked up in it. When its last user
 * ends, the kernel frees all of them first: after `git status` over 78,000 files that is a quarter
 * of the run's time, in which nothing of the run is left to be done. So whoever has to wait for it
 * should not be the operator.
 *
 * The keeper holds the cage's mount namespace when the first process ends, and gives it to a socket
 * that is sent over itself. Nobody can receive it: the kernel collects such a cycle as soon as it
 * is closed, in a thread of its own since Linux 6.9, otherwise at once, as if there were none.
 *
 * A run of a tenth of a second costs two system calls more, a shorter one none.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "keeper/keeper_inside.h"

#define LOOK_MS   100       /* of a shorter run, the end is short too */
#define MIN_INDEX (1 << 20) /* bytes of git's index: some ten thousand files */

static void large_init(struct keeper *k)
{
	k->large.mounts = -1;
}

static bool large_is_asked(const struct keeper *k)
{
	const struct keeper_layer *l = &k->layer;

	return k->mode == KEEPER_FRESH && k->state == KEEPER_RUNNING && !k->large.was_asked &&
	       l->trees[CAGE_LAYER_PROJECT].below >= 0 && !l->trees[CAGE_LAYER_PROJECT].is_copied;
}

static int large_wait(const struct keeper *k)
{
	int64_t left = (int64_t)(k->clock.started_ns - clock_ns()) + LOOK_MS * (int64_t)1000000;

	return !large_is_asked(k) ? -1 : left > 0 ? (int)(left / 1000000) + 1 : 0;
}

/* Has its git so many files that looking at them all shows at the end? */
static bool has_large_index(const struct keeper *k)
{
	int git = k->layer.trees[CAGE_LAYER_GIT].below;
	own_fd int inner = -1;
	struct stat st;

	if (git < 0) {
		inner = file_open_beneath(
			k->layer.trees[CAGE_LAYER_PROJECT].below, ".git", O_PATH | O_DIRECTORY, 0);
		git = inner;
	}
	return git >= 0 && fstatat(git, "index", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && st.st_size >= MIN_INDEX;
}

static int large_hear(struct keeper *k, const struct pollfd *seen, struct err *e)
{
	char path[32];

	(void)seen, (void)e;
	if (large_wait(k) != 0)
		return 0;
	k->large.was_asked = true;
	if (!has_large_index(k))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", k->process.pid);
	k->large.mounts = file_open(path, O_RDONLY);
	return 0;
}

/* Where it fails, closing the descriptor takes the mounts down, as it would have been. */
static void large_hand_over(int fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = { .bytes = "" };
	struct iovec one = { .iov_base = (char[1]){ 0 }, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &one,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	int ends[2], both[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) < 0)
		return;
	both[0] = fd;
	both[1] = ends[1]; /* to which it is sent: the cycle */
	control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(both)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.head), both, sizeof(both));
	(void)!sendmsg(ends[0], &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(ends[0]);
	close(ends[1]);
}

static void large_done(struct keeper *k)
{
	if (k->large.mounts < 0)
		return;
	large_hand_over(k->large.mounts);
	close(take_fd(&k->large.mounts));
}

const struct keeper_part keeper_large_part = {
	.init = large_init,
	.wait = large_wait,
	.hear = large_hear,
	.done = large_done,
};
