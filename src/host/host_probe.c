/*
 * host_probe - looks at this machine once, by trying what a cage will do.
 *
 * Runs as:     the operator, in the process that asked.
 * Leaves:      a struct host; no process, mount, cgroup, descriptor or file. A cgroup that it makes
 *              is empty and removed at once.
 * Must not:    decide anything, believe the environment or a /proc that is not the kernel's,
 * compare versions, change a cgroup that exists or a process's place in one, ask the name service:
 * bawn is linked statically, and a name service is other people's code. /etc/passwd is read as a
 * file; a user who is not in it counts by number.
 *
 * The children that try namespaces take most of the time, much of it in the kernel that takes them
 * down again. They run while the facts that need no namespace are gathered here.
 *
 * A scope of the user's manager counts as a cgroup: it is made when a run needs it. With version 1
 * each controller has a tree of its own, and a new cgroup has its controller's files always. With
 * version 2 it has those that its parent hands down.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/lines.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cgroup/cgroup_place.h"
#include "host/host_probe.h"

/* --- rules --- */

/* The first digit of a setting; -1 where the kernel does not have it. */
static int probe_rules_read_setting(const char *path)
{
	char text[32];

	return file_read_small(path, text, sizeof(text)) > 0 && str_is_digit(text[0])
		       ? text[0] - '0'
		       : -1;
}

/*
 * Is the root something that pivot_root cannot leave? The list shows only mounts that can be
 * reached: in a chroot none of them is "/", unless the tree was mounted there.
 */
static bool has_fixed_root(void)
{
	own(lines) struct lines l = { .fd = -1 };
	bool has_root = false, is_ram_disk = false;
	char *line;

	if (lines_open(&l, "/proc/self/mountinfo") < 0)
		return false;
	while ((line = lines_next(&l))) {
		char *rest = strstr(line, " - ");

		for (int i = 0; i < 4; i++)
			lines_field(&line, ' ');
		if (!line || !rest || !str_starts(line, "/ "))
			continue;
		has_root = true;
		is_ram_disk = str_starts(rest, " - rootfs ");
	}
	return !has_root || is_ram_disk;
}

/* Capabilities that root needs to give other ids: CAP_SETGID, CAP_SETUID, CAP_SETFCAP. */
#define ROOT_CAPABILITIES (1ULL << 6 | 1ULL << 7 | 1ULL << 31)

static void probe_rules_read_status(struct host_rules *ret)
{
	own(lines) struct lines l = { .fd = -1 };
	char *line;

	lines_open(&l, "/proc/self/status");
	while ((line = lines_next(&l))) {
		const char *name = lines_field(&line, ':');

		if (line && str_eq(name, "Seccomp"))
			ret->filter = strtol(line, NULL, 10) == 2;
		if (line && str_eq(name, "CapEff"))
			ret->weak_root = (~strtoull(line, NULL, 16) & ROOT_CAPABILITIES) != 0;
	}
}

/* Needs h->is_root and h->container. */
static void host_probe_rules(struct host_rules *ret, const struct host *h)
{
	struct statfs fs;

	*ret = (struct host_rules){ .in_container = h->container[0] != '\0' };
	ret->no_proc = statfs("/proc", &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC;
	if (ret->no_proc)
		return;
	ret->userns_off =
		probe_rules_read_setting("/proc/sys/kernel/unprivileged_userns_clone") == 0;
	ret->apparmor = probe_rules_read_setting(
				"/proc/sys/kernel/apparmor_restrict_unprivileged_userns") > 0;
	probe_rules_read_status(ret);
	ret->weak_root &= h->is_root;
	ret->fixed_root = has_fixed_root();
}

/*
 * Is any namespace not the kernel's first one? Their numbers are fixed. A machine whose disk was
 * made from a container's image still carries the container's marks, and is none.
 */
static bool has_own_namespaces(void)
{
	static const struct {
		const char *path, *first;
	} spaces[] = {
		{ "/proc/self/ns/pid", "pid:[4026531836]" },
		{ "/proc/self/ns/ipc", "ipc:[4026531839]" },
		{ "/proc/self/ns/uts", "uts:[4026531838]" },
		{ "/proc/self/ns/cgroup", "cgroup:[4026531835]" },
	};
	char link[64];

	for (size_t i = 0; i < COUNT_OF(spaces); i++) {
		ssize_t n = readlink(spaces[i].path, link, sizeof(link) - 1);

		link[n < 0 ? 0 : n] = '\0';
		if (n > 0 && !str_eq(link, spaces[i].first))
			return true;
	}
	return false;
}

/* systemd-nspawn, LXC and others leave their name here; a plain word, or it is not believed. */
static bool read_manager(char *ret, size_t size)
{
	char text[24];
	ssize_t n = file_read_small("/run/systemd/container", text, sizeof(text));
	size_t len = 0;

	while (str_is_letter(text[len]) || str_is_digit(text[len]) || text[len] == '-')
		len++;
	if (n <= 0 || len == 0 || (text[len] != '\0' && text[len] != '\n'))
		return false;
	snprintf(ret, size, "%.*s", (int)len, text);
	return true;
}

/* The container whose mark is here, if this is a container at all. */
static bool find_container(char *ret, size_t size)
{
	static const struct {
		const char *path, *name;
	} marks[] = {
		{ "/var/run/secrets/kubernetes.io", "kubernetes" },
		{ "/run/.containerenv", "podman" },
		{ "/.dockerenv", "docker" },
	};

	if (!has_own_namespaces())
		return false;
	for (size_t i = 0; i < COUNT_OF(marks); i++) {
		if (faccessat(AT_FDCWD, marks[i].path, F_OK, AT_EACCESS) == 0) {
			snprintf(ret, size, "%s", marks[i].name);
			return true;
		}
	}
	return read_manager(ret, size);
}

/* Names what we are inside of in h->container, "" outside. Files only; the environment may lie. */
static void host_probe_container(struct host *h)
{
	if (!find_container(h->container, sizeof(h->container)) && !host_maps_is_initial())
		snprintf(h->container, sizeof(h->container), "userns");
}

/* --- cgroups --- */

static const struct {
	enum host_ability ability;
	const char *file_v1, *file_v2;
} controllers[CGROUP_COUNT] = {
	[CGROUP_MEMORY] = { HOST_CGROUP_MEMORY, "memory.limit_in_bytes", "memory.max" },
	[CGROUP_CPU] = { HOST_CGROUP_CPU, "cpu.cfs_quota_us", "cpu.max" },
	[CGROUP_PIDS] = { HOST_CGROUP_PIDS, "pids.max", "pids.max" },
};

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

static void try_v1(struct host *h, int i, const struct cgroup_place *place, bool tries)
{
	/* One that may not be written to needs no closer look. */
	bool is_closed = faccessat(AT_FDCWD, place->dir, W_OK, AT_EACCESS) < 0 && errno == EACCES;
	own_fd int fd = is_closed ? -EACCES : cgroup_place_open(place->dir, CGROUP_SUPER_MAGIC);
	bool has_file = false;
	int num = fd < 0 ? -fd : try_child(fd, &controllers[i].file_v1, &has_file, 1, tries);
	enum host_cause missing = has_file ? HOST_CAUSE_NONE : HOST_CAUSE_NO_CGROUP;

	host_set(h, controllers[i].ability, num ? HOST_CAUSE_CGROUP_V1 : missing, num);
}

/* Facts of the version 2 tree, from our place up to the current level. */
struct climb {
	bool found[CGROUP_COUNT];
	bool undivided[CGROUP_COUNT]; /* a level that may be divided keeps it to itself */
	bool exists[CGROUP_COUNT];
	int refusal; /* the first errno */
	bool tries;  /* or only looks */
};

static void look_at_level(struct climb *climb, const struct cgroup_level *level)
{
	const char *files[CGROUP_COUNT];
	bool has_file[CGROUP_COUNT] = { 0 }, hands_down = false;
	int num = level->refusal;

	for (int i = 0; i < CGROUP_COUNT; i++) {
		files[i] = controllers[i].file_v2;
		hands_down |= !climb->found[i] && level->hands_down[i];
		climb->exists[i] |= level->has[i];
	}
	if (num == 0 && hands_down)
		num = try_child(level->fd, files, has_file, CGROUP_COUNT, climb->tries);
	for (int i = 0; i < CGROUP_COUNT; i++) {
		climb->found[i] |= num == 0 && level->hands_down[i] && has_file[i];
		climb->undivided[i] |= num == 0 && level->has[i];
	}
	if (climb->refusal == 0)
		climb->refusal = num;
}

/* Looks at each level from our place to the top of the mount, until nothing is left to find. */
static void climb_v2(struct climb *climb, const struct cgroup_place *place)
{
	own(cgroup_level) struct cgroup_level level;

	cgroup_level_init(&level, place);
	while (cgroup_level_next(&level)) {
		look_at_level(climb, &level);
		if (climb->found[0] && climb->found[1] && climb->found[2])
			return;
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

/* A scope of the user's manager may have the controllers that our own place may not hand down. */
static void ask_manager(struct host *h, const struct cgroup_places *places)
{
	bool offered[CGROUP_COUNT] = { 0 };
	int asked = 1;

	for (int i = 0; i < CGROUP_COUNT; i++) {
		enum host_ability ability = controllers[i].ability;
		enum host_cause cause = h->abilities[ability].cause;

		if (places->v1[i].dir[0] ||
			(cause != HOST_CAUSE_NO_DELEGATION && cause != HOST_CAUSE_UNDIVIDED))
			continue;
		if (asked > 0)
			asked = cgroup_scope_offers(offered);
		if (asked == 0)
			host_set(h, ability,
				offered[i] ? HOST_CAUSE_NONE : HOST_CAUSE_MANAGER_LACKS, 0);
		else if (cause == HOST_CAUSE_NO_DELEGATION &&
			 access("/run/systemd/system", F_OK) == 0)
			host_set(h, ability, HOST_CAUSE_NO_MANAGER, -asked);
	}
}

/* With `tries`, makes a cgroup to find out; otherwise only reads. */
static void host_probe_cgroups(struct host *h, bool tries, const char *mounts)
{
	struct cgroup_places places;
	struct climb climb = { .tries = tries };
	bool needs_v2 = false;

	cgroup_place_find(mounts, &places);
	for (int i = 0; i < CGROUP_COUNT; i++) {
		bool has_v1 = places.v1[i].dir[0] != '\0';

		if (has_v1)
			try_v1(h, i, &places.v1[i], tries);
		h->cgroup_version |= has_v1;
		needs_v2 |= !has_v1;
	}
	if (needs_v2 && places.v2.dir[0])
		climb_v2(&climb, &places.v2);
	for (int i = 0; i < CGROUP_COUNT; i++)
		if (!places.v1[i].dir[0])
			set_v2(h, i, &climb);
	ask_manager(h, &places);
	if (h->cgroup_version == 0 && places.v2.dir[0])
		h->cgroup_version = 2;
}

/* --- ids --- */

#define NAME_SIZE 256

/*
 * Of a user's cage the user's group is its own; root's cage has another one. Root's group counts
 * where it is a user's: it opens more than a group that belongs to the user alone.
 */
static void host_probe_groups(struct host *h)
{
	gid_t own = h->is_root ? (gid_t)-1 : ids_group();
	int n = ids_count_groups(own);

	h->groups = (n < 0 ? 1 : n) + (own == 0);
}

/* The name of our effective user id in /etc/passwd, or "". */
static void find_user_name(char ret[static NAME_SIZE])
{
	own(lines) struct lines l = { .fd = -1 };
	char uid[16], *line;

	ret[0] = '\0';
	snprintf(uid, sizeof(uid), "%u", geteuid());
	lines_open(&l, "/etc/passwd");
	while ((line = lines_next(&l))) {
		const char *name = lines_field(&line, ':');
		const char *number;

		lines_field(&line, ':');
		number = lines_field(&line, ':');
		if (name && number && str_eq(number, uid) && strlen(name) < NAME_SIZE) {
			snprintf(ret, NAME_SIZE, "%s", name);
			return;
		}
	}
}

/* True if the file has a line NAME:START:COUNT for the name or the id, with a count above 0. */
static bool has_range(const char *path, const char *name)
{
	own(lines) struct lines l = { .fd = -1 };
	char uid[16], *line;

	snprintf(uid, sizeof(uid), "%u", geteuid());
	lines_open(&l, path);
	while ((line = lines_next(&l))) {
		const char *owner = lines_field(&line, ':');
		const char *start = lines_field(&line, ':');
		const char *count = line;
		bool is_ours = str_eq(owner, uid) || (name[0] && str_eq(owner, name));

		if (is_ours && start && str_is_digit(start[0]) && count &&
			strtoul(count, NULL, 10) > 0)
			return true;
	}
	return false;
}

/* A program that gains rights when it is started: 0, ENOENT, or EPERM where it cannot gain any. */
static int find_gaining(const char *name)
{
	static const char *const dirs[] = { "/usr/bin", "/usr/local/bin", "/bin" };
	struct statvfs fs;
	struct stat st;
	char path[64];

	for (size_t i = 0; i < COUNT_OF(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", dirs[i], name);
		if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0)
			continue;
		if (!((st.st_mode & S_ISUID) && st.st_uid == 0) &&
			getxattr(path, "security.capability", NULL, 0) <= 0)
			continue;
		return statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOSUID) ? EPERM : 0;
	}
	return ENOENT;
}

static void host_probe_subids(struct host *h)
{
	char name[NAME_SIZE];
	int num = find_gaining("newuidmap");

	if (num == 0)
		num = find_gaining("newgidmap");
	find_user_name(name);
	if (num != ENOENT && !(has_range("/etc/subuid", name) && has_range("/etc/subgid", name)))
		num = ENOENT;
	if (num == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		num = EPERM;
	host_set(h, HOST_SUBIDS,
		num == 0        ? HOST_CAUSE_NONE
		: num == ENOENT ? HOST_CAUSE_NO_SUBIDS
				: HOST_CAUSE_NO_SETUID,
		num);
}

/* --- cause --- */

/* Refused with EPERM or EACCES: by whom? The hooks of AppArmor say EACCES, filters mostly EPERM. */
static enum host_cause refused_by(const struct host_rules *rules, int num)
{
	if (rules->apparmor && (num == EACCES || !rules->filter))
		return HOST_CAUSE_APPARMOR;
	if (rules->in_container && (num == EACCES || rules->filter))
		return HOST_CAUSE_CONTAINER_FILTER;
	return rules->filter ? HOST_CAUSE_FILTER : HOST_CAUSE_DENIED;
}

/* A system call that is not there: hidden by a filter, which answers like an old kernel? */
static enum host_cause absent_by(const struct host_rules *rules)
{
	if (!rules->filter)
		return HOST_CAUSE_KERNEL;
	return rules->in_container ? HOST_CAUSE_CONTAINER_FILTER : HOST_CAUSE_FILTER;
}

static enum host_cause cause_of_namespace(
	const struct host_rules *rules, enum host_ability ability, int num)
{
	if (num == ENOSPC || num == EUSERS)
		return HOST_CAUSE_USERNS_MAX;
	if (num == EINVAL)
		return HOST_CAUSE_KERNEL;
	if (ability == HOST_NS_USER && rules->no_proc)
		return HOST_CAUSE_NO_PROC;
	if (num != EPERM && num != EACCES)
		return HOST_CAUSE_DENIED;
	if (ability == HOST_NS_USER && rules->userns_off)
		return HOST_CAUSE_USERNS_OFF;
	if (ability == HOST_NS_USER && rules->fixed_root)
		return HOST_CAUSE_FIXED_ROOT;
	if (ability == HOST_NS_USER && rules->weak_root)
		return HOST_CAUSE_WEAK_ROOT;
	return refused_by(rules, num);
}

/* Returns why a mount failed. If no mount works at all, proc and overlay are not to blame. */
static enum host_cause cause_of_mount(
	const struct host *h, const struct host_rules *rules, enum host_ability ability, int num)
{
	bool is_refusal = num == EPERM || num == EACCES;
	bool is_proc = ability == HOST_PROC || ability == HOST_PROC_SUBSET;

	if (!host_can(h, HOST_NS_MOUNT))
		return h->abilities[HOST_NS_MOUNT].cause;
	if (is_proc && !host_can(h, HOST_NS_PID))
		return h->abilities[HOST_NS_PID].cause;
	if (ability == HOST_MOUNT_API && num == EINVAL && rules->fixed_root)
		return HOST_CAUSE_FIXED_ROOT;
	if (ability != HOST_MOUNT_API && is_refusal && host_can(h, HOST_MOUNT_API))
		return is_proc ? HOST_CAUSE_CONTAINER_PROC : HOST_CAUSE_KERNEL;
	if (is_refusal)
		return refused_by(rules, num);
	return num == EINVAL || num == ENODEV ? HOST_CAUSE_KERNEL : HOST_CAUSE_DENIED;
}

static enum host_cause cause_of_kvm(const struct host_rules *rules, int num)
{
	if (num == ENOENT || num == ENXIO || num == ENODEV)
		return HOST_CAUSE_NO_DEVICE;
	return num == EACCES ? HOST_CAUSE_DEVICE_GROUP : refused_by(rules, num);
}

/* The first process too many: counted outside as well. One too many let through: not counted. */
static enum host_cause cause_of_pids(const struct host *h, int num)
{
	if (num == EOPNOTSUPP && h->is_root)
		return HOST_CAUSE_FEW_IDS; /* the kernel counts nothing of the real root */
	return num == EAGAIN || num == EOPNOTSUPP ? HOST_CAUSE_KERNEL : HOST_CAUSE_DENIED;
}

static enum host_cause cause_of_other(const struct host_rules *rules, int num)
{
	if (num == EPERM || num == EACCES)
		return refused_by(rules, num);
	return num == EINVAL || num == EOPNOTSUPP ? HOST_CAUSE_KERNEL : HOST_CAUSE_DENIED;
}

enum host_cause host_cause_of(
	const struct host *h, const struct host_rules *rules, enum host_ability ability, int num)
{
	if (num == 0)
		return HOST_CAUSE_NONE;
	if (num == HOST_UNTRIED)
		return HOST_CAUSE_NEEDS_USERNS;
	if (num == ENOSYS)
		return absent_by(rules);
	if (ability <= HOST_NS_TIME)
		return cause_of_namespace(rules, ability, num);
	if (ability == HOST_IDMAP && (num == EPERM || num == EACCES))
		return HOST_CAUSE_NOT_ROOT;
	if (ability >= HOST_MOUNT_API && ability <= HOST_PROC_SUBSET)
		return cause_of_mount(h, rules, ability, num);
	if (ability == HOST_LANDLOCK && num == EOPNOTSUPP)
		return HOST_CAUSE_LANDLOCK_OFF;
	if (ability == HOST_USERNS_PIDS)
		return cause_of_pids(h, num);
	if (ability == HOST_SUBIDS && num == EPERM && rules->weak_root)
		return HOST_CAUSE_WEAK_ROOT;
	if (ability == HOST_KVM)
		return cause_of_kvm(rules, num);
	return cause_of_other(rules, num);
}

/* Sets an ability to a result, with the cause that follows from it. */
static void host_set_tried(
	struct host *h, const struct host_rules *rules, enum host_ability ability, int num)
{
	enum host_cause cause = host_cause_of(h, rules, ability, num);

	host_set(h, ability, cause, num == HOST_UNTRIED ? 0 : num);
}

/* True if a target can be printed and read back: complete, UTF-8, without hidden characters. */
static bool probe_is_plain_text(const char *text, size_t n)
{
	for (size_t i = 0; i < n;) {
		uint32_t c = 0;
		size_t width = utf8_decode(text + i, n - i, &c);

		if (width == 0 || utf8_is_hidden(c))
			return false;
		i += width;
	}
	return n > 0;
}

/* The target of a link; 0: there is nothing, or -1: it is no link, or nobody knows. */
static ssize_t read_system_link(const char *path, char *target, size_t size)
{
	ssize_t n = readlink(path, target, size);

	return n < 0 && errno == ENOENT ? 0 : n;
}

static void look_at_path(struct host *h, int i)
{
	const char *path = host_system_paths[i];
	char *target = h->system[i].target;
	size_t size = sizeof(h->system[i].target);
	/* With a merged /usr, the root has links, and one call says all of them. */
	bool is_of_root = i > 0 && !strchr(path + 1, '/');
	ssize_t n = is_of_root ? read_system_link(path, target, size) : -1;
	struct stat st;

	if (n == 0 || (n < 0 && lstat(path, &st) < 0))
		return;
	if (n < 0 && S_ISDIR(st.st_mode))
		h->system[i].kind = HOST_PATH_DIR;
	if (n < 0 && S_ISREG(st.st_mode))
		h->system[i].kind = HOST_PATH_FILE;
	if (n < 0 && S_ISLNK(st.st_mode))
		n = readlink(path, target, size);
	if (n > 0 && (size_t)n < size && probe_is_plain_text(target, (size_t)n))
		h->system[i].kind = HOST_PATH_LINK;
	else
		memset(target, 0, size);
}

static void look_at_system(struct host *h)
{
	for (int i = 0; i < HOST_SYSTEM_COUNT; i++)
		look_at_path(h, i);
}

#define PROGRAM_PATH_SIZE 128

static bool probe_is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

/* Searches only the system's directories: an attacker may have set $PATH. */
static bool probe_find_program(const char *name, char ret[static PROGRAM_PATH_SIZE])
{
	static const char *const dirs[] = { "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin",
		"/sbin" };

	for (size_t i = 0; i < COUNT_OF(dirs); i++) {
		snprintf(ret, PROGRAM_PATH_SIZE, "%s/%s", dirs[i], name);
		if (probe_is_program(ret))
			return true;
	}
	return false;
}

static void look_for_program(struct host *h, enum host_ability ability, const char *name)
{
	char path[PROGRAM_PATH_SIZE];

	if (!probe_find_program(name, path))
		host_set(h, ability, HOST_CAUSE_NOT_INSTALLED, ENOENT);
}

/* QEMU's name for the machine where it is not the kernel's. */
static const char *qemu_arch(const char *arch)
{
	static const char *const names[][2] = {
		{ "i686", "i386" },
		{ "armv7l", "arm" },
		{ "ppc64le", "ppc64" },
	};

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (str_eq(arch, names[i][0]))
			return names[i][1];
	return arch;
}

static void look_for_programs(struct host *h)
{
	char qemu[48];

	snprintf(qemu, sizeof(qemu), "qemu-system-%s", qemu_arch(h->arch));
	look_for_program(h, HOST_BWRAP, "bwrap");
	look_for_program(h, HOST_CRUN, "crun");
	look_for_program(h, HOST_RUNC, "runc");
	look_for_program(h, HOST_PODMAN, "podman");
	look_for_program(h, HOST_QEMU, qemu);
	h->has_bash = probe_is_program("/bin/bash");
}

static int try_kvm(void)
{
	own_fd int fd = file_open("/dev/kvm", O_RDWR);

	return fd < 0 ? -fd : 0;
}

/* Explains each result, in an order in which one may build on another. */
static void set_tried(struct host *h, const struct host_rules *rules, const int *tried)
{
	static const enum host_ability order[] = { HOST_NS_USER, HOST_NS_MOUNT, HOST_NS_PID,
		HOST_NS_NET, HOST_NS_IPC, HOST_NS_UTS, HOST_NS_CGROUP, HOST_NS_TIME, HOST_OPENAT2,
		HOST_MOUNT_API, HOST_OVERLAY, HOST_PROC, HOST_PROC_SUBSET, HOST_LANDLOCK,
		HOST_SECCOMP, HOST_SECCOMP_NOTIFY, HOST_USERNS_PIDS, HOST_KVM };

	for (size_t i = 0; i < COUNT_OF(order); i++)
		host_set_tried(h, rules, order[i], tried[order[i]]);
}

/* Root needs no newuidmap: it gave the child another id, had none to give, or was refused. */
static void set_root_ids(
	struct host *h, const struct host_rules *rules, const struct host_children *c)
{
	if (!host_can(h, HOST_NS_USER)) {
		host_set(h, HOST_IDMAP, HOST_CAUSE_NEEDS_USERNS, 0);
		host_set(h, HOST_SUBIDS, HOST_CAUSE_NEEDS_USERNS, 0);
	} else if (c->other_ids == HOST_UNTRIED) {
		host_set(h, HOST_IDMAP, HOST_CAUSE_FEW_IDS, 0);
		host_set(h, HOST_SUBIDS, HOST_CAUSE_FEW_IDS, 0);
	} else {
		host_set_tried(h, rules, HOST_SUBIDS, c->other_ids);
		host_set_tried(h, rules, HOST_IDMAP, c->other_ids ? c->other_ids : c->idmap);
	}
}

/*
 * Root drops them. A user could with newgidmap, which the cage does not use: it maps one id and
 * no more.
 */
static void set_groups(
	struct host *h, const struct host_rules *rules, const struct host_children *c)
{
	if (h->groups == 0)
		host_set(h, HOST_NO_GROUPS, HOST_CAUSE_NONE, 0);
	else if (h->is_root)
		host_set_tried(h, rules, HOST_NO_GROUPS, c->report->tried[HOST_NO_GROUPS]);
	else
		host_set(h, HOST_NO_GROUPS, HOST_CAUSE_NOT_ROOT, EPERM);
}

/* Everything that needs no namespace, done while the children are busy. */
static void look_around(struct host *h, int *tried)
{
	host_probe_container(h);
	host_probe_groups(h);
	if (!h->is_root) {
		host_set(h, HOST_IDMAP, HOST_CAUSE_NOT_ROOT, 0);
		host_probe_subids(h);
	}
	look_at_system(h);
	look_for_programs(h);
	tried[HOST_KVM] = try_kvm();
	host_probe_cgroups(h, true, NULL);
}

static void name_kernel(struct host *h)
{
	struct utsname name = { 0 };

	uname(&name);
	snprintf(h->kernel, sizeof(h->kernel), "%s", name.release);
	snprintf(h->arch, sizeof(h->arch), "%.15s", name.machine);
}

int host_probe(struct host *ret, struct err *e)
{
	own(host_children) struct host_children children = { .userns = -1 };
	struct host_rules rules;
	struct host h;
	int r;

	/* All bytes, the gaps between members too: the same machine gives the same bytes. */
	memset(&h, 0, sizeof(h));
	h.is_root = geteuid() == 0;
	r = host_children_start(&children, h.is_root, e);
	if (r < 0)
		return r;
	name_kernel(&h);
	look_around(&h, children.report->tried);
	host_children_finish(&children);
	/* Not earlier: while a child mounts, looking at mounts waits for it. */
	host_probe_rules(&rules, &h);
	rules.filter |= children.was_filtered;
	h.landlock_abi = children.report->landlock_abi;
	set_tried(&h, &rules, children.report->tried);
	if (h.is_root)
		set_root_ids(&h, &rules, &children);
	set_groups(&h, &rules, &children);
	memcpy(ret, &h, sizeof(h));
	return 0;
}

void host_assume(struct host *ret, const char *mounts)
{
	static const enum host_ability programs[] = { HOST_BWRAP, HOST_CRUN, HOST_RUNC, HOST_PODMAN,
		HOST_QEMU, HOST_KVM };
	struct host h;
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
	int num = abi < 0 ? errno : 0;

	memset(&h, 0, sizeof(h));
	h.is_root = ids_user() == 0;
	h.landlock_abi = abi > 0 ? (int)abi : 0;
	name_kernel(&h);
	look_at_system(&h);
	h.has_bash = probe_is_program("/bin/bash");
	host_probe_groups(&h);
	host_probe_cgroups(&h, false, mounts);
	if (abi < 0)
		host_set(&h, HOST_LANDLOCK, HOST_CAUSE_KERNEL, num);
	/* Other engines are looked for when this one cannot do it. */
	for (size_t i = 0; i < COUNT_OF(programs); i++)
		host_set(&h, programs[i], HOST_CAUSE_NOT_INSTALLED, ENOENT);
	if (!h.is_root)
		host_set(&h, HOST_IDMAP, HOST_CAUSE_NOT_ROOT, 0);
	if (h.groups && !h.is_root)
		host_set(&h, HOST_NO_GROUPS, HOST_CAUSE_NOT_ROOT, EPERM);
	memcpy(ret, &h, sizeof(h));
}
