/*
 * host_probe_rules - what on this machine may refuse things, and what it is inside of.
 *
 * Runs as:     the operator, in the process that asked.
 * Leaves:      nothing but its answers.
 * Must not:    believe the environment, or a /proc that is not the kernel's.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/own.h"
#include "base/str.h"
#include "host/host_probe.h"

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

/* What root needs to give a process other ids, by number: CAP_SETGID, CAP_SETUID, CAP_SETFCAP. */
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

void host_probe_rules(struct host_rules *ret, const struct host *h)
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

void host_probe_container(struct host *h)
{
	if (!find_container(h->container, sizeof(h->container)) && !host_maps_is_initial())
		snprintf(h->container, sizeof(h->container), "userns");
}
