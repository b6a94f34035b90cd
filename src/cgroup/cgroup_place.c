/*
 * cgroup_place - where this process is in the trees of cgroups.
 *
 * Runs as:  the operator: a probe of the host, or a keeper; both find the same.
 * Must not: change anything.
 */
#include "cgroup/cgroup_place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/lines.h"
#include "base/own.h"
#include "base/str.h"
#include "cgroup/cgroup_inside.h"

const char *const cgroup_controller_names[CGROUP_COUNT] = {
	[CGROUP_MEMORY] = "memory",
	[CGROUP_CPU] = "cpu",
	[CGROUP_PIDS] = "pids",
};

bool cgroup_has_word(const char *list, const char *word)
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
	char *rest = strstr(line, " - cgroup"), *fields[5], *options;

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

static void find_of(const char *own, struct cgroup_places *ret)
{
	own(lines) struct lines own_paths = { .fd = -1 }, mounts = { .fd = -1 };
	char *line;

	memset(ret, 0, sizeof(*ret));
	lines_open(&own_paths, own);
	while ((line = lines_next(&own_paths)))
		cgroup_place_take_own(ret, line);
	lines_open(&mounts, "/proc/self/mountinfo");
	while ((line = lines_next(&mounts)))
		cgroup_place_take_mount(ret, line);
}

void cgroup_place_find(struct cgroup_places *ret)
{
	find_of("/proc/self/cgroup", ret);
}

void cgroup_place_find_of(pid_t pid, struct cgroup_places *ret)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	find_of(path, ret);
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
