/*
 * witness - the command of a cage that is being tried: looks which layers are around it.
 *
 *     witness CANARY NAMESPACE...     a file of the host's, and the host's namespaces as in /proc
 *     witness --names                 prints the names of the layers, in order
 *
 * Prints a line "LAYER yes" or "LAYER no" for each, and "end"; the status is 0 when all are yes.
 * It tries what it can and looks where it cannot try. Static, so that any cage can run it.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "witness.h"

struct host {
	const char *canary;
	char **namespaces;
	int count;
};

/* A namespace of this kind that the host named, and that is not the host's. */
static bool is_apart(const struct host *h, const char *kind)
{
	size_t len = strlen(kind);
	char path[64], here[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	n = readlink(path, here, sizeof(here) - 1);
	if (n <= 0)
		return false;
	here[n] = '\0';
	for (int i = 0; i < h->count; i++)
		if (strncmp(h->namespaces[i], kind, len) == 0 && h->namespaces[i][len] == ':')
			return strcmp(h->namespaces[i], here) != 0;
	return false;
}

static bool has_user(const struct host *h)
{
	return is_apart(h, "user");
}

static bool has_mounts(const struct host *h)
{
	return is_apart(h, "mnt");
}

static bool has_pids(const struct host *h)
{
	return is_apart(h, "pid");
}

static bool has_net(const struct host *h)
{
	return is_apart(h, "net");
}

static bool has_ipc(const struct host *h)
{
	return is_apart(h, "ipc");
}

static bool has_uts(const struct host *h)
{
	return is_apart(h, "uts");
}

static bool has_cgroup(const struct host *h)
{
	return is_apart(h, "cgroup");
}

/* Is `key` of /proc/self/status there, as often as it must be, and always this? */
static bool status_is(const char *key, const char *wanted, int times)
{
	FILE *f = fopen("/proc/self/status", "re");
	size_t len = strlen(key);
	char line[4096];
	int seen = 0;

	while (f && fgets(line, sizeof(line), f)) {
		char *value = line + len;

		if (strncmp(line, key, len) != 0)
			continue;
		value = strchr(line, ':');
		if (!value)
			continue;
		value += 1 + strspn(value + 1, " \t");
		value[strcspn(value, "\n")] = '\0';
		/* An empty list of groups is shown as a space. */
		while (*value && value[strlen(value) - 1] == ' ')
			value[strlen(value) - 1] = '\0';
		seen = strcmp(value, wanted) == 0 ? seen + 1 : -100;
	}
	if (f)
		fclose(f);
	return seen == times;
}

static bool has_no_new_privs(const struct host *h)
{
	(void)h;
	return status_is("NoNewPrivs:", "1", 1);
}

static bool has_filter(const struct host *h)
{
	(void)h;
	return status_is("Seccomp:", "2", 1);
}

/* All five sets. */
static bool has_no_capability(const struct host *h)
{
	(void)h;
	return status_is("Cap", "0000000000000000", 5);
}

/* A login puts the own group into the list: that gives no right which the gid does not. */
static bool has_no_groups(const struct host *h)
{
	char own[16];

	(void)h;
	snprintf(own, sizeof(own), "%u", getegid());
	return status_is("Groups:", "", 1) || status_is("Groups:", own, 1);
}

/* Keyrings are not of any namespace that a cage has, so only the filter refuses this. */
static bool is_filtered(const struct host *h)
{
	(void)h;
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) < 0 &&
	       (errno == EPERM || errno == ENOSYS);
}

/* No id in here is root's outside. */
static bool is_nobody_outside(const struct host *h)
{
	FILE *f = fopen("/proc/self/uid_map", "re");
	unsigned inside, outside, count;
	bool is_good = f && getuid() != 0 && geteuid() != 0;
	int lines = 0;

	(void)h;
	while (f && fscanf(f, "%u %u %u", &inside, &outside, &count) == 3) {
		is_good = is_good && outside != 0;
		lines++;
	}
	if (f)
		fclose(f);
	return is_good && lines > 0;
}

/* The root's file system is writable to its owner; that nothing new can be made is Landlock. */
static bool has_landlock(const struct host *h)
{
	(void)h;
	if (mkdir("/bawn-witness", 0700) == 0) {
		rmdir("/bawn-witness");
		return false;
	}
	return errno == EACCES;
}

static bool cannot_reach_host(const struct host *h)
{
	int fd = open(h->canary, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fd = open(h->canary, O_WRONLY | O_APPEND | O_CLOEXEC);
	return fd < 0;
}

static bool cannot_make(const char *dir)
{
	if (mkdir(dir, 0700) < 0)
		return errno == EROFS || errno == EACCES || errno == ENOENT;
	rmdir(dir);
	return false;
}

static bool cannot_write_system(const struct host *h)
{
	(void)h;
	return cannot_make("/usr/bawn-witness") && cannot_make("/etc/bawn-witness");
}

static bool has_clean_environment(const struct host *h)
{
	const char *home = getenv("HOME");

	(void)h;
	return !getenv("BAWN_CANARY") && home && strcmp(home, "/home/agent") == 0;
}

/* Nothing but the three, and the directory that is read for it. */
static bool has_no_descriptor(const struct host *h)
{
	DIR *d = opendir("/proc/self/fd");
	bool is_good = d != NULL;

	(void)h;
	for (struct dirent *e; d && (e = readdir(d));) {
		int fd = atoi(e->d_name);

		is_good = is_good && (fd <= STDERR_FILENO || fd == dirfd(d));
	}
	if (d)
		closedir(d);
	return is_good;
}

/* The first process and this one; the host would show dozens. */
static bool sees_no_process(const struct host *h)
{
	DIR *d = opendir("/proc");
	int count = 0;

	(void)h;
	for (struct dirent *e; d && (e = readdir(d));)
		count += e->d_name[0] >= '1' && e->d_name[0] <= '9';
	if (d)
		closedir(d);
	return count >= 1 && count <= 3;
}

static bool has_name(const struct host *h)
{
	char name[65] = "";

	(void)h;
	return gethostname(name, sizeof(name) - 1) == 0 && strcmp(name, "bawn") == 0;
}

/*
 * Captured: it can be written in here; whoever started this looks whether it was, outside. And what
 * is protected is tried in any case.
 */
static bool has_project(const struct host *h)
{
	int held = open("/work/.envrc", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int fd = open("/work/written", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	bool is_good = fd >= 0 && write(fd, "x", 1) == 1;

	(void)h;
	if (held >= 0)
		close(held);
	if (fd >= 0)
		close(fd);
	return is_good && access("/work/witness", R_OK) == 0;
}

static const struct {
	const char *name;
	bool (*holds)(const struct host *h);
} layers[] = {
	{ "ns.user", has_user },
	{ "ns.mount", has_mounts },
	{ "ns.pid", has_pids },
	{ "ns.net", has_net },
	{ "ns.ipc", has_ipc },
	{ "ns.uts", has_uts },
	{ "ns.cgroup", has_cgroup },
	{ "no-new-privs", has_no_new_privs },
	{ "seccomp", has_filter },
	{ "seccomp.rules", is_filtered },
	{ "capabilities", has_no_capability },
	{ "groups", has_no_groups },
	{ "ids", is_nobody_outside },
	{ "landlock", has_landlock },
	{ "canary", cannot_reach_host },
	{ "system", cannot_write_system },
	{ "environment", has_clean_environment },
	{ "descriptors", has_no_descriptor },
	{ "processes", sees_no_process },
	{ "hostname", has_name },
	{ "project", has_project },
};

#define LAYER_COUNT (int)(sizeof(layers) / sizeof(layers[0]))

static_assert(LAYER_COUNT <= WITNESS_LAYERS, "a tracer has room for them");

static void tell(int layer, bool answer)
{
	syscall(SYS_close, WITNESS_CALL | layer << 8 | (int)answer);
}

int main(int argc, char **argv)
{
	struct host h = { .canary = argv[1], .namespaces = argv + 2, .count = argc - 2 };
	bool is_good = true;

	tell(WITNESS_START, true);
	if (argc < 2) {
		fprintf(stderr, "usage: %s CANARY NAMESPACE... | --names\n", argv[0]);
		return 2;
	}
	if (strcmp(argv[1], "--names") == 0) {
		for (int i = 0; i < LAYER_COUNT; i++)
			puts(layers[i].name);
		return 0;
	}
	for (int i = 0; i < LAYER_COUNT; i++) {
		bool answer = layers[i].holds(&h);

		tell(i, answer);
		printf("%s %s\n", layers[i].name, answer ? "yes" : "no");
		is_good &= answer;
	}
	tell(WITNESS_END, is_good);
	puts("end");
	return is_good ? 0 : 1;
}
