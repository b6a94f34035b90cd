/*
 * cgroup_scope - a delegated cgroup from the user's systemd manager.
 *
 * Runs as:     the keeper, or a probe of the host; what the manager says is parsed by a child that
 * can only read, write and exit (seccomp's strict mode). Enters with: a place that may not be
 * divided, such as a login's session-N.scope. Leaves:      this process in the cgroup `keeper` of a
 * scope that is ours. Must not:    ask a manager of another user's, or of another process
 * namespace: a number there would be another process.
 *
 * The manager listens at systemd/private in the user's runtime folder, with or without a D-Bus
 * daemon for the session. Moving the process out of its login takes the system's manager: the
 * user's asks it.
 */
#include "cgroup/cgroup_scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/call.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cgroup/cgroup_bus.h"
#include "cgroup/cgroup_inside.h"
#include "cgroup/cgroup_place.h"

#define PATIENCE_MS   10000
#define MAX_LOGIN     256 /* bytes of the line that answers the login */
#define KEEPERS_GROUP "keeper"

/* --- the manager --- */

static int connect_in(const char *runtime)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	int n = snprintf(at.sun_path, sizeof(at.sun_path), "%s/systemd/private", runtime);
	own_fd int fd = -1;

	if (n < 0 || (size_t)n >= sizeof(at.sun_path) || runtime[0] != '/')
		return -ENOENT;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return -errno;
	return take_fd(&fd);
}

/* A socket of this user's manager, and its process; -errno. */
static int connect_to_manager(pid_t *ret_pid)
{
	const char *named = getenv("XDG_RUNTIME_DIR");
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);
	own_fd int fd = -ENOENT;
	char usual[40];

	if (named)
		fd = connect_in(named);
	snprintf(usual, sizeof(usual), "/run/user/%u", geteuid());
	if (fd < 0)
		fd = connect_in(usual);
	if (fd < 0)
		return fd;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	/* Of another process namespace it has the number 0 here. */
	if (peer.uid != geteuid() || peer.pid <= 0)
		return -EPERM;
	*ret_pid = peer.pid;
	return take_fd(&fd);
}

int cgroup_scope_offers(bool ret[static CGROUP_COUNT])
{
	struct cgroup_places places;
	pid_t manager = 0;
	own_fd int bus = connect_to_manager(&manager), folder = -1;
	char *slash, has[256];

	if (bus < 0)
		return bus;
	cgroup_place_find_of(manager, &places);
	/* The manager is in init.scope of what it divides. */
	slash = strrchr(places.v2.dir, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	folder = cgroup_place_open(places.v2.dir, CGROUP2_SUPER_MAGIC);
	if (folder < 0)
		return folder;
	if (cgroup_read(folder, "cgroup.controllers", has, sizeof(has)) < 0)
		return -EIO;
	for (int i = 0; i < CGROUP_COUNT; i++)
		ret[i] = cgroup_has_word(has, cgroup_controller_names[i]);
	return 0;
}

/* --- the child that listens --- */

static bool read_whole(int fd, uint8_t *bytes, size_t n)
{
	while (n > 0) {
		long got = call(SYS_read, fd, (long)bytes, (long)n, 0, 0, 0);

		if (got == -EINTR)
			continue;
		if (got <= 0)
			return false;
		bytes += got;
		n -= (size_t)got;
	}
	return true;
}

static bool scope_skip(int fd, size_t n)
{
	uint8_t bytes[4096];

	for (; n > sizeof(bytes); n -= sizeof(bytes))
		if (!read_whole(fd, bytes, sizeof(bytes)))
			return false;
	return read_whole(fd, bytes, n);
}

static bool is_let_in(int fd)
{
	char line[MAX_LOGIN] = "";

	for (size_t n = 0; n < sizeof(line) - 1; n++) {
		if (!read_whole(fd, (uint8_t *)line + n, 1))
			return false;
		if (line[n] == '\n')
			return str_starts(line, "OK ");
	}
	return false;
}

/* Until the scope is there, or refused. */
static int listen_to(int fd, const char *unit, struct err *e)
{
	static uint8_t message[CGROUP_BUS_MAX_SIZE];

	if (!is_let_in(fd))
		return err_set(e, ERR_REFUSED, EPERM, "it does not let us in");
	for (;;) {
		size_t size =
			read_whole(fd, message, CGROUP_BUS_HEAD) ? cgroup_bus_size(message) : 0;
		bool is_read;
		int r;

		if (size < CGROUP_BUS_HEAD)
			return err_set(e, ERR_REFUSED, EPROTO, "it ended the conversation");
		/* What is larger is about many units, and not about ours. */
		is_read = size <= sizeof(message);
		if (is_read ? !read_whole(fd, message + CGROUP_BUS_HEAD, size - CGROUP_BUS_HEAD)
			    : !scope_skip(fd, size - CGROUP_BUS_HEAD))
			return err_set(e, ERR_REFUSED, EPROTO, "it ended the conversation");
		r = is_read ? cgroup_bus_read(message, size, unit, e) : 0;
		if (r == -EPROTO)
			return err_set(e, ERR_REFUSED, EPROTO, "it does not speak D-Bus");
		if (r != 0)
			return r;
	}
}

_Noreturn static void listen_and_end(int bus, int answer, const char *unit)
{
	struct err said = { 0 };
	int r = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) < 0 ? -errno : 0;

	if (r == 0)
		r = listen_to(bus, unit, &said);
	else
		err_set(&said, ERR_REFUSED, -r, "cannot confine the listener: %s", strerror(-r));
	if (r > 0)
		said = (struct err){ 0 };
	call(SYS_write, answer, (long)&said, sizeof(said), 0, 0, 0);
	for (;;)
		call(SYS_exit, 0, 0, 0, 0, 0, 0);
}

/* What the child says; it is ended after a while. */
static int await_answer(int answer, pid_t child, struct err *e)
{
	struct pollfd p = { .fd = answer, .events = POLLIN };
	struct err said;
	ssize_t n = 0;
	int r;

	while ((r = poll(&p, 1, PATIENCE_MS)) < 0 && errno == EINTR)
		;
	if (r > 0)
		n = read(answer, &said, sizeof(said));
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	if (n != sizeof(said))
		return err_set(e, ERR_REFUSED, ETIMEDOUT, "it does not answer");
	said.text[sizeof(said.text) - 1] = '\0';
	if (said.kind == ERR_NONE)
		return 0;
	return err_set(e, ERR_REFUSED, EPERM, "%s", said.text);
}

int cgroup_scope_ask(int bus, const char *unit, pid_t pid, struct err *e)
{
	uint8_t request[CGROUP_BUS_MAX];
	size_t size = cgroup_bus_request(geteuid(), unit, pid, request);
	int ends[2];
	pid_t child;

	if (send(bus, request, size, MSG_NOSIGNAL) != (ssize_t)size)
		return err_set(e, ERR_REFUSED, errno, "it cannot be asked: %s", strerror(errno));
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "no pipe");
	child = fork();
	if (child == 0)
		listen_and_end(bus, ends[1], unit);
	close(ends[1]);
	if (child < 0) {
		close(ends[0]);
		return err_sys(e, errno, "no process to listen");
	}
	await_answer(ends[0], child, e);
	close(ends[0]);
	return e->kind == ERR_NONE ? 0 : -EPERM;
}

/* --- the scope --- */

/* A cgroup with processes hands nothing down, so this one goes into a cgroup of its own first. */
static int divide(const char *unit, unsigned wanted, struct err *e)
{
	struct cgroup_places places;
	own_fd int scope = -1, ours = -1;
	const char *name;
	int r;

	cgroup_place_find(&places);
	name = strrchr(places.v2.dir, '/');
	if (!name || !str_eq(name + 1, unit))
		return err_set(
			e, ERR_REFUSED, ENOENT, "%s was made, and this process is not in it", unit);
	scope = cgroup_place_open(places.v2.dir, CGROUP2_SUPER_MAGIC);
	r = scope < 0 ? scope : mkdirat(scope, KEEPERS_GROUP, 0755) < 0 ? -errno : 0;
	if (r == 0)
		r = ours = file_open_name(scope, KEEPERS_GROUP, O_RDONLY | O_DIRECTORY);
	if (r >= 0)
		r = cgroup_write(ours, "cgroup.procs", "0");
	if (r < 0)
		return err_set(e, ERR_REFUSED, -r, "%s cannot be divided: %s", unit, strerror(-r));
	for (unsigned i = 0; i < CGROUP_COUNT; i++) {
		char word[16];

		snprintf(word, sizeof(word), "+%s", cgroup_controller_names[i]);
		/* One that it does not have is told by cgroup_limit. */
		if (wanted & 1U << i)
			cgroup_write(scope, "cgroup.subtree_control", word);
	}
	return 0;
}

int cgroup_scope_enter(const char *name, unsigned wanted, struct err *e)
{
	char unit[CGROUP_NAME_SIZE + 8];
	pid_t manager = 0;
	own_fd int bus = connect_to_manager(&manager);
	struct err why = { 0 };

	if (bus < 0)
		return err_set(e, ERR_REFUSED, -bus, "no systemd manager of this user's answers");
	snprintf(unit, sizeof(unit), "%s.scope", name);
	if (cgroup_scope_ask(bus, unit, getpid(), &why) < 0 || divide(unit, wanted, &why) < 0)
		return err_set(e, ERR_REFUSED, why.num ? why.num : EPERM,
			"the systemd manager of this user gives no scope: %s", why.text);
	return 0;
}
