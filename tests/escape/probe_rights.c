/* Identity: capabilities, groups, ids, programs that give more of them, names. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CAPABILITY_MAX 64

/* The five sets as the kernel shows them. */
static int attack_capabilities(char **args)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	char status[TEXT_MAX];

	(void)args;
	if (read_text(AT_FDCWD, "/proc/self/status", status, sizeof(status)) <= 0)
		return untried("/proc/self/status: %s", error_name(errno));
	for (size_t i = 0; i < ELEMENTS(sets); i++) {
		const char *line = strstr(status, sets[i]);

		if (line && strtoull(line + strlen("CapXxx:"), NULL, 16))
			return worked("%.*s", (int)strcspn(line, "\n"), line);
	}
	for (int c = 0; c < CAPABILITY_MAX; c++)
		if (prctl(PR_CAPBSET_READ, c, 0, 0, 0) == 1 ||
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, c, 0, 0) == 1)
			return worked("capability %d can be had", c);
	return refused("all five sets are empty");
}

static int attack_groups(char **args)
{
	gid_t groups[64];
	int count = getgroups((int)ELEMENTS(groups), groups);

	for (int i = 0; i < count; i++)
		if (!args[0] || groups[i] == (gid_t)atol(args[0]))
			return worked("%d groups, one of them %u", count, groups[i]);
	return refused("%d supplementary groups", count);
}

static int attack_new_privileges(char **args)
{
	(void)args;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0
		       ? worked("a program may still give privileges")
		       : refused("no_new_privs is set");
}

/* Whether the host's root is behind any id of ours. */
static int attack_host_root(char **args)
{
	static const char *const maps[] = { "/proc/self/uid_map", "/proc/self/gid_map" };

	(void)args;
	for (size_t i = 0; i < ELEMENTS(maps); i++) {
		FILE *map = fopen(maps[i], "re");
		unsigned long inside, outside, count;

		while (map && fscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3)
			if (outside == 0)
				return worked("%s: %lu %lu %lu", maps[i], inside, outside, count);
		if (map)
			fclose(map);
	}
	return refused("the host's root is behind no id");
}

/* Started by attack_setuid, from a file that belongs to root and has the setuid bit. */
static int report_ids(char **args)
{
	return outcome(geteuid() != (uid_t)atol(args[0]), "another user");
}

static int attack_setuid(char **args)
{
	char id[16];

	snprintf(id, sizeof(id), "%u", getuid());
	char *command[] = { args[0], (char[]){ "ids" }, id, NULL };
	int status = run_command(command);

	return status == 0 ? worked("it ran as another user") : refused("status %d", status);
}

static int attack_become_root(char **args)
{
	(void)args;
	if (setgroups(0, NULL) == 0)
		return worked("setgroups");
	return outcome(setresuid(0, 0, 0) == 0 && getuid() == 0, "become uid 0");
}

static int attack_host_name(char **args)
{
	struct utsname names;

	return uname(&names) == 0 && strcmp(names.nodename, args[0]) == 0
		       ? worked("the host is called %s", names.nodename)
		       : refused("we are called %s", names.nodename);
}

static int attack_cgroup(char **args)
{
	char text[TEXT_MAX];

	if (read_text(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) < 0)
		return refused("/proc/self/cgroup: %s", error_name(errno));
	const char *found = strstr(text, args[0]);

	return found ? worked("%.*s", (int)strcspn(found, "\n"), found)
		     : refused("the host's names are hidden");
}

/* The kernel hands a crash to the host's handler, as root, unless the limit is exactly 1. */
static int attack_core_limit(char **args)
{
	static const rlim_t others[] = { 0, 2, RLIM_INFINITY };
	struct rlimit limit = { 0, 0 };

	(void)args;
	for (size_t i = 0; i < ELEMENTS(others); i++) {
		struct rlimit other = { others[i], 1 };

		setrlimit(RLIMIT_CORE, &other);
		prlimit(0, RLIMIT_CORE, &other, NULL);
		syscall(SYS_setrlimit, RLIMIT_CORE, &other);
		if (getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur != 1)
			return worked("a crash would be handed over: the limit is %lu",
				(unsigned long)limit.rlim_cur);
	}
	return refused("the limit stays 1");
}

/* A listener decides about the calls of whoever runs below it; this one about a call nobody needs.
 */
static int attack_listener(char **args)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_vhangup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ELEMENTS(rules), rules };

	(void)args;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return outcome(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			       SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) >= 0,
		"a seccomp listener of our own");
}

const struct attack attacks_rights[] = {
	{ "capabilities", "", attack_capabilities, "finds one in any of the five sets" },
	{ "groups", "[GID]", attack_groups, "finds a supplementary group" },
	{ "new-privileges", "", attack_new_privileges, "finds no_new_privs unset" },
	{ "host-root", "", attack_host_root, "finds the host's root behind an id" },
	{ "setuid", "FILE", attack_setuid, "runs a copy of this program that is setuid root" },
	{ "ids", "UID", report_ids, "whether we are another user than UID" },
	{ "become-root", "", attack_become_root, "setgroups, setresuid" },
	{ "host-name", "NAME", attack_host_name, "sees the name of the host" },
	{ "cgroup", "PART", attack_cgroup, "sees the name of a cgroup of the host" },
	{ "core-limit", "", attack_core_limit, "lets the host's handler have a crash" },
	{ "listener", "", attack_listener, "a seccomp listener of our own" },
	{ 0 },
};
