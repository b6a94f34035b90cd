/* Side doors of one machine: keyrings, System V and POSIX objects, unix sockets. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* --- keys --- */

static bool key_has_canary(long key, const char *end)
{
	char bytes[256];
	long size = syscall(SYS_keyctl, KEYCTL_READ, key, bytes, sizeof(bytes), 0);

	return size > 0 && has_canary(bytes, (size_t)size, end);
}

static int attack_keyring(char **args)
{
	static const int rings[] = { KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_SESSION_KEYRING,
		KEY_SPEC_USER_KEYRING, KEY_SPEC_PROCESS_KEYRING };
	char name[64];

	snprintf(name, sizeof(name), "bawn-escape-%s", args[0]);
	for (size_t i = 0; i < ELEMENTS(rings); i++) {
		long key = syscall(SYS_keyctl, KEYCTL_SEARCH, rings[i], "user", name, 0);

		if (key > 0 && key_has_canary(key, args[0]))
			return worked("read the key %s", name);
	}
	long key = syscall(SYS_request_key, "user", name, NULL, 0);

	return outcome(
		key > 0 && key_has_canary(key, args[0]), "read a key of the operator's session");
}

/* --- System V and POSIX objects, all under one number; see attack_with_ipc --- */

static int attack_shm(char **args)
{
	int id = shmget((key_t)strtol(args[0], NULL, 16), 0, 0);
	const char *memory = id < 0 ? (void *)-1 : shmat(id, NULL, SHM_RDONLY);

	if (memory == (void *)-1)
		return refused("shared memory: %s", error_name(errno));
	return has_canary(memory, TEXT_MAX, args[0]) ? worked("read the host's shared memory")
						     : refused("there is something else in it");
}

static int attack_semaphore(char **args)
{
	return outcome(
		semget((key_t)strtol(args[0], NULL, 16), 0, 0) >= 0, "a semaphore of the host");
}

static int attack_message(char **args)
{
	int id = msgget((key_t)strtol(args[0], NULL, 16), 0);
	struct {
		long type;
		char text[256];
	} message;
	ssize_t size = id < 0 ? -1 : msgrcv(id, &message, sizeof(message.text), 0, IPC_NOWAIT);

	return outcome(size > 0 && has_canary(message.text, (size_t)size, args[0]),
		"read the host's message queue");
}

static int attack_mq(char **args)
{
	char name[64], text[8192];

	snprintf(name, sizeof(name), "/bawn-escape-%s", args[0]);
	mqd_t queue = mq_open(name, O_RDONLY | O_NONBLOCK);
	ssize_t size = queue < 0 ? -1 : mq_receive(queue, text, sizeof(text), NULL);

	return outcome(size > 0 && has_canary(text, (size_t)size, args[0]),
		"read the host's POSIX message queue");
}

/* --- unix sockets: a path, or @name for an abstract one --- */

static socklen_t unix_address(const char *name, struct sockaddr_un *ret)
{
	size_t length = strlen(name);

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (length >= sizeof(ret->sun_path))
		length = sizeof(ret->sun_path) - 1;
	memcpy(ret->sun_path, name, length);
	if (name[0] != '@')
		return sizeof(*ret);
	ret->sun_path[0] = 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

/* The server greets with the canary. */
static bool is_greeted(const char *name, int type, const char *end)
{
	struct sockaddr_un address;
	socklen_t length = unix_address(name, &address);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	bool is_there = fd >= 0 && connect(fd, (struct sockaddr *)&address, length) == 0 &&
			fd_has_canary(fd, end);

	if (fd >= 0)
		close(fd);
	return is_there;
}

static int attack_connect(char **args)
{
	for (char **name = args + 1; *name; name++)
		if (is_greeted(*name, SOCK_STREAM, args[0]))
			return worked("connected to %s", *name);
	return refused("none of them: %s", error_name(errno));
}

static int attack_seqpacket(char **args)
{
	return outcome(is_greeted(args[1], SOCK_SEQPACKET, args[0]), "connect");
}

static bool send_by_sendto(int fd, const struct sockaddr_un *to, socklen_t length)
{
	return sendto(fd, "hello", 5, 0, (const struct sockaddr *)to, length) == 5;
}

static bool send_by_sendmsg(int fd, struct sockaddr_un *to, socklen_t length, bool is_many)
{
	struct iovec data = { (char[]){ "hello" }, 5 };
	struct mmsghdr messages[1] = { { .msg_hdr = { .msg_name = to,
						 .msg_namelen = length,
						 .msg_iov = &data,
						 .msg_iovlen = 1 } } };

	return is_many ? sendmmsg(fd, messages, 1, 0) == 1
		       : sendmsg(fd, &messages[0].msg_hdr, 0) == 5;
}

/* One end of a pair may be connected elsewhere. */
static bool send_by_pair(const struct sockaddr_un *to, socklen_t length)
{
	int ends[2];

	return socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0 &&
	       connect(ends[0], (const struct sockaddr *)to, length) == 0 &&
	       send(ends[0], "hello", 5, 0) == 5;
}

static int attack_datagram(char **args)
{
	struct sockaddr_un address;
	socklen_t length = unix_address(args[0], &address);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (send_by_sendto(fd, &address, length))
		return worked("sendto");
	if (send_by_sendmsg(fd, &address, length, false))
		return worked("sendmsg");
	if (send_by_sendmsg(fd, &address, length, true))
		return worked("sendmmsg");
	if (connect(fd, (struct sockaddr *)&address, length) == 0 && send(fd, "hello", 5, 0) == 5)
		return worked("connect");
	return outcome(send_by_pair(&address, length), "send, in five ways");
}

const struct attack attacks_ipc[] = {
	{ "keyring", "END", attack_keyring, "reads a key of the operator's session" },
	{ "shm", "END", attack_shm, "attaches System V shared memory" },
	{ "semaphore", "END", attack_semaphore, "finds a System V semaphore" },
	{ "message", "END", attack_message, "reads a System V message queue" },
	{ "mq", "END", attack_mq, "reads a POSIX message queue" },
	{ "connect", "END PATH|@NAME …", attack_connect, "connects to unix sockets" },
	{ "seqpacket", "END PATH|@NAME", attack_seqpacket, "the same with SOCK_SEQPACKET" },
	{ "datagram", "PATH|@NAME", attack_datagram, "sends to a unix socket, in five ways" },
	{ 0 },
};
