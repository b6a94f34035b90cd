/*
 * host_probe_cgroup - which limits a cgroup of our own could have.
 *
 * Runs as:     the operator, in the process that asked.
 * Enters with: a place in a cgroup of each hierarchy.
 * Leaves:      no cgroup: each one it makes is empty and removed at once.
 * Must not:    change a cgroup that exists, a file in one, or a process's place.
 *
 * With version 1 each controller has a tree of its own, and a new cgroup has its controller's files
 * always. With version 2 it has those its parent hands down, and a parent that holds processes
 * hands down none: so we go up from where we are to the nearest one that we may divide and that
 * does.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/lines.h"
#include "base/own.h"
#include "base/str.h"
#include "host/host_probe.h"

#define CONTROLLERS 3
#define PATH_SIZE   1024

static const struct {
	enum host_ability ability;
	const char *name, *file_v1, *file_v2;
} controllers[CONTROLLERS] = {
	{ HOST_CGROUP_MEMORY, "memory", "memory.limit_in_bytes", "memory.max" },
	{ HOST_CGROUP_CPU, "cpu", "cpu.cfs_quota_us", "cpu.max" },
	{ HOST_CGROUP_PIDS, "pids", "pids.max", "pids.max" },
};

/* Where this process is in one hierarchy: "" for not at all. */
struct place {
	char path[PATH_SIZE];  /* as /proc/self/cgroup says it */
	char mount[PATH_SIZE]; /* where the hierarchy is mounted */
	char dir[PATH_SIZE];   /* path below mount */
};

struct places {
	struct place v1[CONTROLLERS], v2;
};

/* Is `word` one of a list, as in "rw,cpu,cpuacct" or "cpuset cpu io"? */
static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += n) {
		bool starts = p == list || strchr(" ,\n", p[-1]);

		if (starts && (p[n] == '\0' || strchr(" ,\n", p[n])))
			return true;
	}
	return false;
}

static void copy_path(char ret[static PATH_SIZE], const char *path)
{
	size_t n = strlen(path);

	if (n < PATH_SIZE)
		memcpy(ret, path, n + 1);
}

/* Lines such as 4:memory:/some/where and 0::/some/where. */
static void read_own_paths(struct places *p)
{
	own(lines) struct lines l = { .fd = -1 };
	char *line;

	lines_open(&l, "/proc/self/cgroup");
	while ((line = lines_next(&l))) {
		const char *id = lines_field(&line, ':');
		const char *names = lines_field(&line, ':');

		if (!line)
			continue;
		if (str_eq(id, "0") && names[0] == '\0')
			copy_path(p->v2.path, line);
		for (int i = 0; i < CONTROLLERS; i++)
			if (has_word(names, controllers[i].name))
				copy_path(p->v1[i].path, line);
	}
}

/* A mount shows the part of its hierarchy below `root`; is our place in that part? */
static void place_in_mount(struct place *p, const char *root, const char *mount)
{
	const char *rest = p->path;

	if (p->dir[0] || rest[0] != '/' || str_starts(rest, "/..") || !str_path_within(rest, root))
		return;
	rest += str_eq(root, "/") ? 0 : strlen(root);
	if (str_eq(rest, "/"))
		rest = "";
	if (strlen(mount) + strlen(rest) >= PATH_SIZE)
		return;
	copy_path(p->mount, mount);
	snprintf(p->dir, PATH_SIZE, "%s%s", mount, rest);
}

/* Lines such as 35 31 0:32 ROOT MOUNT rw,relatime - cgroup cgroup rw,memory. */
static void read_mounts(struct places *p)
{
	own(lines) struct lines l = { .fd = -1 };
	char *line;

	lines_open(&l, "/proc/self/mountinfo");
	while ((line = lines_next(&l))) {
		char *rest = strstr(line, " - cgroup"), *fields[5], *options;

		if (!rest)
			continue;
		for (int i = 0; i < 5; i++)
			fields[i] = lines_field(&line, ' ');
		rest += strlen(" - ");
		if (!fields[4])
			continue;
		str_unescape_octal(fields[3]);
		str_unescape_octal(fields[4]);
		if (str_starts(rest, "cgroup2 "))
			place_in_mount(&p->v2, fields[3], fields[4]);
		options = strrchr(rest, ' ');
		if (!options || !str_starts(rest, "cgroup "))
			continue;
		for (int i = 0; i < CONTROLLERS; i++)
			if (has_word(options, controllers[i].name))
				place_in_mount(&p->v1[i], fields[3], fields[4]);
	}
}

/* Opens a directory that is really a cgroup; a descriptor or -errno. */
static int open_cgroup(const char *path, long magic)
{
	own_fd int fd = file_open(path, O_RDONLY | O_DIRECTORY);
	struct statfs fs;

	if (fd < 0)
		return fd;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	return (long)fs.f_type == magic ? take_fd(&fd) : -ENOENT;
}

/*
 * Makes a cgroup below dir_fd; ret[i] says whether it has files[i]; removes it. Where nothing is to
 * be tried, it is taken to have them if it could be made. 0 or an errno.
 */
static int try_child(int dir_fd, const char *const files[], bool ret[], int count, bool tries)
{
	char name[32], path[64];

	for (int i = 0; i < count && !tries; i++)
		ret[i] = true;
	if (!tries)
		return faccessat(dir_fd, ".", W_OK, AT_EACCESS) < 0 ? errno : 0;
	snprintf(name, sizeof(name), "bawn-probe-%d", getpid());
	if (mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
		return errno;
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", name, files[i]);
		ret[i] = faccessat(dir_fd, path, W_OK, AT_EACCESS) == 0;
	}
	return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? errno : 0;
}

static void try_v1(struct host *h, int i, const struct place *place, bool tries)
{
	own_fd int fd = open_cgroup(place->dir, CGROUP_SUPER_MAGIC);
	bool has_file = false;
	int num = fd < 0 ? -fd : try_child(fd, &controllers[i].file_v1, &has_file, 1, tries);
	enum host_cause missing = has_file ? HOST_CAUSE_NONE : HOST_CAUSE_NO_CGROUP;

	host_set(h, controllers[i].ability, num ? HOST_CAUSE_NO_DELEGATION : missing, num);
}

/* What is known of the version 2 tree, from our place up to the level looked at. */
struct climb {
	bool found[CONTROLLERS];
	bool undivided[CONTROLLERS]; /* a level that may be divided keeps it to itself */
	bool exists[CONTROLLERS];
	int refusal; /* the first errno */
	bool tries;  /* or only looks */
};

/* The words of a file of a cgroup, such as its controllers. */
static void read_words(const char *dir, const char *file, char *ret, size_t size)
{
	char path[PATH_SIZE + 32];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	file_read_small(path, ret, size);
}

/* Moving a process up and down again takes rights over the level's list of processes as well. */
static int may_divide(int dir_fd)
{
	if (faccessat(dir_fd, ".", W_OK, AT_EACCESS) < 0 ||
		faccessat(dir_fd, "cgroup.procs", W_OK, AT_EACCESS) < 0)
		return errno;
	return 0;
}

static void look_at_level(struct climb *climb, const char *dir, int dir_fd)
{
	const char *files[CONTROLLERS];
	bool has_file[CONTROLLERS] = { 0 }, hands_down = false;
	char has[256], handed[256];
	int num = may_divide(dir_fd);

	read_words(dir, "cgroup.controllers", has, sizeof(has));
	read_words(dir, "cgroup.subtree_control", handed, sizeof(handed));
	for (int i = 0; i < CONTROLLERS; i++) {
		files[i] = controllers[i].file_v2;
		hands_down |= !climb->found[i] && has_word(handed, controllers[i].name);
		climb->exists[i] |= has_word(has, controllers[i].name);
	}
	if (num == 0 && hands_down)
		num = try_child(dir_fd, files, has_file, CONTROLLERS, climb->tries);
	for (int i = 0; i < CONTROLLERS; i++) {
		climb->found[i] |= num == 0 && has_file[i];
		climb->undivided[i] |= num == 0 && has_word(has, controllers[i].name);
	}
	if (climb->refusal == 0)
		climb->refusal = num;
}

/* Looks at each level from our place to the top of the mount, until nothing is left to find. */
static void climb_v2(struct climb *climb, const struct place *place)
{
	char dir[PATH_SIZE];

	copy_path(dir, place->dir);
	for (;;) {
		own_fd int fd = open_cgroup(dir, CGROUP2_SUPER_MAGIC);
		char *slash = strrchr(dir, '/');

		if (fd < 0)
			return;
		look_at_level(climb, dir, fd);
		if (climb->found[0] && climb->found[1] && climb->found[2])
			return;
		if (strlen(dir) <= strlen(place->mount) || !slash)
			return;
		*slash = '\0';
	}
}

static void set_v2(struct host *h, int i, const struct climb *climb)
{
	enum host_ability ability = controllers[i].ability;

	if (climb->found[i])
		host_set(h, ability, HOST_CAUSE_NONE, 0);
	else if (climb->undivided[i])
		host_set(h, ability, HOST_CAUSE_UNDIVIDED, 0);
	else if (climb->exists[i])
		host_set(h, ability, HOST_CAUSE_NO_DELEGATION, climb->refusal);
	else
		host_set(h, ability, HOST_CAUSE_NO_CGROUP, 0);
}

void host_probe_cgroups(struct host *h, bool tries)
{
	struct places places = { 0 };
	struct climb climb = { .tries = tries };
	bool needs_v2 = false;

	read_own_paths(&places);
	read_mounts(&places);
	for (int i = 0; i < CONTROLLERS; i++) {
		bool has_v1 = places.v1[i].dir[0] != '\0';

		if (has_v1)
			try_v1(h, i, &places.v1[i], tries);
		h->cgroup_version |= has_v1;
		needs_v2 |= !has_v1;
	}
	if (needs_v2 && places.v2.dir[0])
		climb_v2(&climb, &places.v2);
	for (int i = 0; i < CONTROLLERS; i++)
		if (!places.v1[i].dir[0])
			set_v2(h, i, &climb);
	if (h->cgroup_version == 0 && places.v2.dir[0])
		h->cgroup_version = 2;
}
