/*
 * keep_told - hears what bawn's own program tells from inside of the cage.
 *
 * Runs as:  the keeper.
 * Leaves:   nothing: the socket is removed when the cage has ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own.h"
#include "keep/keep_inside.h"
#include "wire/wire.h"

void keep_told_init(struct keep_told *t)
{
	*t = (struct keep_told){ .socket = -1, .folder = -1 };
}

/* Root's cages run as another id; the folder is closed to everybody else. */
static int listen_in(int folder)
{
	own_fd int fd = wire_socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (fd < 0)
		return fd;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" KEEP_TOLD, folder);
	/* Another attempt at the same run may have left one. */
	unlinkat(folder, KEEP_TOLD, 0);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		fchmodat(folder, KEEP_TOLD, 0666, 0) < 0)
		return -errno;
	return take_fd(&fd);
}

int keep_told_make(struct keeper *k, struct err *e)
{
	struct keep_told *t = &k->told;

	if (!plan_find(k->q->plan, PLAN_BIND, "$TOLD"))
		return 0;
	t->folder = k->q->open_folder(k->q->of, e);
	if (t->folder < 0)
		return t->folder;
	t->socket = listen_in(t->folder);
	if (t->socket < 0)
		return err_set(e, ERR_SYS, -t->socket,
			"cannot make a socket in the run's folder: %s", strerror(-t->socket));
	return 0;
}

void keep_told_end(struct keeper *k)
{
	struct keep_told *t = &k->told;

	if (t->socket < 0)
		return;
	unlinkat(t->folder, KEEP_TOLD, 0);
	close(t->socket);
	keep_told_init(t);
}
