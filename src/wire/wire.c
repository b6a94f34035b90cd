#include "wire/wire.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

int wire_pair(int ret[static 2])
{
	int yes = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
		return -errno;
	if (setsockopt(ret[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0)
		return -errno;
	return 0;
}

int wire_send(int fd, enum wire_kind kind, int n, const struct err *e)
{
	struct wire_message m = { .kind = kind, .n = n };
	ssize_t sent;

	if (e)
		m.err = *e;
	do
		sent = send(fd, &m, sizeof(m), MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int wire_receive(int fd, struct wire_message *ret, pid_t *ret_pid)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec part = { ret, sizeof(*ret) };
	struct msghdr h = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	ssize_t n;

	/* A side that ends with something unread resets the connection, which is told once, before
	 * what it said last. */
	do
		n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return -errno;
	if (n == 0)
		return -EPIPE;
	if (n != (ssize_t)sizeof(*ret) || h.msg_flags & MSG_TRUNC)
		return -EBADMSG;
	ret->err.text[sizeof(ret->err.text) - 1] = '\0';
	c = CMSG_FIRSTHDR(&h);
	if (ret_pid && c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
		struct ucred who;

		memcpy(&who, CMSG_DATA(c), sizeof(who));
		*ret_pid = who.pid;
	}
	return 0;
}
