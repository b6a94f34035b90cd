/*
 * host_probe - looks at this machine once, by trying what a cage will do.
 *
 * Runs as:     the operator, in the process that asked.
 * Leaves:      a struct host; no process, mount, cgroup, descriptor or file.
 * Must not:    decide anything, believe the environment, compare versions.
 *
 * The children that try namespaces take most of the time, much of it in the kernel that takes them
 * down again. They run while the facts that need no namespace are gathered here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"
#include "host/host_probe.h"

/* Can a target be written down and read back as it is: whole, UTF-8, and shown as it is? */
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

static void look_at_system(struct host *h)
{
	for (int i = 0; i < HOST_SYSTEM_COUNT; i++) {
		const char *path = host_system_paths[i];
		char *target = h->system[i].target;
		size_t size = sizeof(h->system[i].target);
		struct stat st;
		ssize_t n;

		if (lstat(path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			h->system[i].kind = HOST_PATH_DIR;
		if (S_ISREG(st.st_mode))
			h->system[i].kind = HOST_PATH_FILE;
		if (!S_ISLNK(st.st_mode))
			continue;
		n = readlink(path, target, size);
		if (n > 0 && (size_t)n < size && probe_is_plain_text(target, (size_t)n))
			h->system[i].kind = HOST_PATH_LINK;
		else
			memset(target, 0, size);
	}
}

#define PROGRAM_PATH_SIZE 128

static bool probe_is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

/* In the system's directories alone: what $PATH says is the user's business, or an attacker's. */
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
	host_probe_cgroups(h, true);
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

void host_assume(struct host *ret)
{
	static const enum host_ability programs[] = { HOST_BWRAP, HOST_CRUN, HOST_RUNC, HOST_PODMAN,
		HOST_QEMU, HOST_KVM };
	struct host h;
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
	int num = abi < 0 ? errno : 0;

	memset(&h, 0, sizeof(h));
	h.is_root = geteuid() == 0;
	h.landlock_abi = abi > 0 ? (int)abi : 0;
	name_kernel(&h);
	look_at_system(&h);
	h.has_bash = probe_is_program("/bin/bash");
	host_probe_groups(&h);
	host_probe_cgroups(&h, false);
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
