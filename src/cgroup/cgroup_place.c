/*
 * cgroup_place - where this process is in the trees of cgroups, and a delegated cgroup from the
 * user's systemd manager where that place may not be divided, as a login's session-N.scope.
 *
 * Runs as:     the operator: a probe of the host, or a keeper; both find the same. A child that can
 *              only read, write and exit (seccomp's strict mode) parses what the manager says.
 * Leaves:      with cgroup_scope_enter, this process in the cgroup `keeper` of a scope of ours.
 * Must not:    change anything else; ask a manager of another user's, or of another process
 *              namespace: a number there would be another process.
 *
 * The manager listens at systemd/private in the user's runtime folder, with or without a D-Bus
 * daemon for the session. Only the system's manager can move the process out of its login: the
 * user's asks it.
 */
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
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/call.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/own.h"
#include "base/str.h"
#include "cgroup/cgroup_bus.h"
#include "cgroup/cgroup_inside.h"
#include "cgroup/cgroup_place.h"

const char *const cgroup_controller_names[CGROUP_COUNT] = {
	[CGROUP_MEMORY] = "memory",
	[CGROUP_CPU] = "cpu",
	[CGROUP_PIDS] = "pids",
};

/* True if `word` is in a list such as "rw,cpu,cpuacct" or "cpuset cpu io". */
static bool cgroup_has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += n) {
		bool starts = p == list || strchr(" ,\n", p[-1]);

		if (starts && (p[n] == '\0' || strchr(" ,\n", p[n])))
			return true;
	}
	return false;
}

static void copy_path(char ret[static CGROUP_PATH_SIZE], const char *path)
{
	size_t n = strlen(path);

	if (n < CGROUP_PATH_SIZE)
		memcpy(ret, path, n + 1);
}

/* Lines such as 4:memory:/some/where and 0::/some/where. */
void cgroup_place_take_own(struct cgroup_places *p, char *line)
{
	const char *id = lines_field(&line, ':');
	const char *names = lines_field(&line, ':');

	if (!line)
		return;
	if (str_eq(id, "0") && names[0] == '\0')
		copy_path(p->v2.path, line);
	for (int i = 0; i < CGROUP_COUNT; i++)
		if (cgroup_has_word(names, cgroup_controller_names[i]))
			copy_path(p->v1[i].path, line);
}

/* A mount shows the part of its hierarchy below `root`; is our place in that part? */
static void place_in_mount(struct cgroup_place *p, const char *root, const char *mount)
{
	const char *rest = p->path;

	if (p->dir[0] || rest[0] != '/' || str_starts(rest, "/..") || !str_path_within(rest, root))
		return;
	rest += str_eq(root, "/") ? 0 : strlen(root);
	if (str_eq(rest, "/"))
		rest = "";
	if (strlen(mount) + strlen(rest) >= CGROUP_PATH_SIZE)
		return;
	copy_path(p->mount, mount);
	snprintf(p->dir, CGROUP_PATH_SIZE, "%s%s", mount, rest);
}

/* Lines such as 35 31 0:32 ROOT MOUNT rw,relatime - cgroup cgroup rw,memory. */
void cgroup_place_take_mount(struct cgroup_places *p, char *line)
{
	char *rest = strstr(line, " - cgroup"), *fields[5] = { NULL }, *options;

	if (!rest)
		return;
	for (int i = 0; i < 5; i++)
		fields[i] = lines_field(&line, ' ');
	rest += strlen(" - ");
	if (!fields[4])
		return;
	str_unescape_octal(fields[3]);
	str_unescape_octal(fields[4]);
	if (str_starts(rest, "cgroup2 "))
		place_in_mount(&p->v2, fields[3], fields[4]);
	options = strrchr(rest, ' ');
	if (!options || !str_starts(rest, "cgroup "))
		return;
	for (int i = 0; i < CGROUP_COUNT; i++)
		if (cgroup_has_word(options, cgroup_controller_names[i]))
			place_in_mount(&p->v1[i], fields[3], fields[4]);
}

/* A line that does not fit is as far as it fits, as from a file. */
static void take_mounts(const char *mounts, struct cgroup_places *ret)
{
	char line[sizeof(((struct lines *)0)->bytes)];

	for (size_t n; *mounts; mounts += n + (mounts[n] == '\n')) {
		size_t fits;

		n = strcspn(mounts, "\n");
		fits = n < sizeof(line) ? n : sizeof(line) - 1;
		memcpy(line, mounts, fits);
		line[fits] = '\0';
		cgroup_place_take_mount(ret, line);
	}
}

static void find_of(const char *own, const char *known, struct cgroup_places *ret)
{
	own(lines) struct lines own_paths = { .fd = -1 }, mounts = { .fd = -1 };
	char *line;

	memset(ret, 0, sizeof(*ret));
	lines_open(&own_paths, own);
	while ((line = lines_next(&own_paths)))
		cgroup_place_take_own(ret, line);
	if (known) {
		take_mounts(known, ret);
		return;
	}
	lines_open(&mounts, "/proc/self/mountinfo");
	while ((line = lines_next(&mounts)))
		cgroup_place_take_mount(ret, line);
}

void cgroup_place_find(const char *mounts, struct cgroup_places *ret)
{
	find_of("/proc/self/cgroup", mounts, ret);
}

/* Finds the places of another process, in the mounts of this one. */
static void cgroup_place_find_of(pid_t pid, struct cgroup_places *ret)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	find_of(path, NULL, ret);
}

int cgroup_place_open(const char *dir, long magic)
{
	own_fd int fd = file_open(dir, O_RDONLY | O_DIRECTORY);
	struct statfs fs;

	if (fd < 0)
		return fd;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	return (long)fs.f_type == magic ? take_fd(&fd) : -ENOENT;
}

/* --- levels of version 2 --- */

void cgroup_level_init(struct cgroup_level *l, const struct cgroup_place *place)
{
	memset(l, 0, sizeof(*l));
	l->fd = -1;
	l->mount_len = strlen(place->mount);
	copy_path(l->dir, place->dir);
}

void cgroup_level_done(struct cgroup_level *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

/* Moving a process up and down again takes rights over the level's list of processes as well. */
static int may_divide(int dir_fd)
{
	if (faccessat(dir_fd, ".", W_OK, AT_EACCESS) < 0 ||
		faccessat(dir_fd, "cgroup.procs", W_OK, AT_EACCESS) < 0)
		return errno;
	return 0;
}

bool cgroup_level_next(struct cgroup_level *l)
{
	char has[256], handed[256], *slash = strrchr(l->dir, '/');

	if (l->fd >= 0) {
		cgroup_level_done(l);
		if (strlen(l->dir) <= l->mount_len || !slash)
			return false;
		*slash = '\0';
	}
	l->fd = cgroup_place_open(l->dir, CGROUP2_SUPER_MAGIC);
	if (l->fd < 0)
		return false;
	l->refusal = may_divide(l->fd);
	cgroup_read(l->fd, "cgroup.controllers", has, sizeof(has));
	cgroup_read(l->fd, "cgroup.subtree_control", handed, sizeof(handed));
	for (int i = 0; i < CGROUP_COUNT; i++) {
		l->has[i] = cgroup_has_word(has, cgroup_controller_names[i]);
		l->hands_down[i] = cgroup_has_word(handed, cgroup_controller_names[i]);
	}
	return true;
}

/* --- a scope of the user's manager --- */

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
	/* A process of another pid namespace has pid 0 here. */
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
		/* A larger message is about many units, not about ours. */
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

/* Reads the child's verdict; the child is killed at a deadline. */
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

	cgroup_place_find(NULL, &places);
	name = strrchr(places.v2.dir, '/');
	if (!name || !str_eq(name + 1, unit))
		return err_set(e, ERR_REFUSED, ENOENT,
			"%s was made, but this process was not moved into it", unit);
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
