#include "wire/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int wire_pair(int ret[static 2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0 ? -errno : 0;
}

int wire_socket(int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);

	/* cppcheck-suppress resourceLeak ; it is the caller's */
	return fd < 0 ? -errno : fd;
}

/* Room for one descriptor that comes with a message. */
union passed {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

int wire_send_message(int fd, const void *message, size_t size, int passed)
{
	union passed control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
					 .cmsg_level = SOL_SOCKET,
					 .cmsg_type = SCM_RIGHTS } };
	struct msghdr h = { .msg_iovlen = 1 };
	struct iovec part = { .iov_len = size };
	ssize_t sent;

	/* sendmsg does not write to it, though its type is not const. */
	memcpy(&part.iov_base, &message, sizeof(part.iov_base));
	h.msg_iov = &part;
	if (passed >= 0) {
		memcpy(CMSG_DATA(&control.head), &passed, sizeof(passed));
		h.msg_control = &control;
		h.msg_controllen = sizeof(control);
	}
	do
		sent = sendmsg(fd, &h, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int wire_send(int fd, enum wire_kind kind, int n, const struct err *e)
{
	struct wire_message m = { .kind = kind, .n = n };

	if (e)
		m.err = *e;
	return wire_send_message(fd, &m, sizeof(m), -1);
}

int wire_send_fd(int fd, enum wire_kind kind, int passed)
{
	struct wire_message m = { .kind = kind };

	return wire_send_message(fd, &m, sizeof(m), passed);
}

/* Without a buffer for it, the kernel closes a descriptor that comes with the message. */
static int take_passed(struct msghdr *h)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(h);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
		c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

int wire_receive_message(int fd, void *ret, size_t size, int *ret_fd)
{
	union passed control = { 0 };
	struct iovec part = { ret, size };
	struct msghdr h = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = ret_fd ? &control : NULL,
		/*
		 * Room for one, and what the kernel adds for its own alignment would be another's.
		 */
		.msg_controllen = ret_fd ? CMSG_LEN(sizeof(int)) : 0,
	};
	ssize_t n;

	if (ret_fd)
		*ret_fd = -1;
	/* A side that ends with something unread resets the connection, which is told once, before
	 * what it said last. */
	do
		n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return -errno;
	if (ret_fd)
		*ret_fd = take_passed(&h);
	if (n == 0)
		return -EPIPE;
	/* If several descriptors came, the kernel has closed all but the first. */
	if (ret_fd && h.msg_flags & MSG_CTRUNC)
		return -EBADMSG;
	return n != (ssize_t)size || h.msg_flags & MSG_TRUNC ? -EBADMSG : 0;
}

int wire_receive(int fd, struct wire_message *ret, int *ret_fd)
{
	int r = wire_receive_message(fd, ret, sizeof(*ret), ret_fd);

	err_end_texts(&ret->err);
	return r;
}
