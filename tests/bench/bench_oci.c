/*
 * Bundles for runc and crun: a root of empty folders and links, over which the host's are bound.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/own.h"
#include "bench_tools.h"

static void add_mount(struct json *j, const char *where, const char *type, const char *from,
	const char *const *options)
{
	json_open_map(j, NULL);
	json_text(j, "destination", where);
	json_text(j, "type", type);
	json_text(j, "source", from);
	json_open_list(j, "options");
	for (; *options; options++)
		json_text(j, NULL, *options);
	json_close_list(j);
	json_close_map(j);
}

static void add_mounts(struct json *j, const char *project)
{
	static const char *const shown[] = { "bind", "ro", "nosuid", "nodev", NULL };
	static const char *const work[] = { "bind", "nosuid", "nodev", NULL };
	static const char *const empty[] = { "nosuid", "nodev", NULL };
	static const char *const dev[] = { "nosuid", "mode=755", NULL };
	static const char *const pts[] = { "nosuid", "noexec", "newinstance", "ptmxmode=0666",
		NULL };
	static const char *const none[] = { NULL };

	json_open_list(j, "mounts");
	add_mount(j, "/usr", "bind", "/usr", shown);
	for (const char *const *path = bench_etc; *path; path++)
		if (access(*path, F_OK) == 0)
			add_mount(j, *path, "bind", *path, shown);
	add_mount(j, "/proc", "proc", "proc", none);
	add_mount(j, "/dev", "tmpfs", "tmpfs", dev);
	add_mount(j, "/dev/pts", "devpts", "devpts", pts);
	add_mount(j, "/tmp", "tmpfs", "tmpfs", empty);
	add_mount(j, "/run", "tmpfs", "tmpfs", empty);
	add_mount(j, "/var", "tmpfs", "tmpfs", empty);
	add_mount(j, "/work", "bind", project, work);
	json_close_list(j);
}

/* Root may map a range; a user has one id to give, and the runtimes want a 0 inside. */
static void add_map(struct json *j, const char *key, const struct bench_who *who)
{
	json_open_list(j, key);
	json_open_map(j, NULL);
	json_int(j, "containerID", 0);
	json_int(j, "hostID", who->id == 0 ? 100000 : (int64_t)who->id);
	json_int(j, "size", who->id == 0 ? 65536 : 1);
	json_close_map(j);
	json_close_list(j);
}

static void add_linux(struct json *j, const struct bench_who *who)
{
	static const char *const kinds[] = { "user", "pid", "network", "ipc", "uts", "mount",
		"cgroup", NULL };

	json_open_map(j, "linux");
	json_open_list(j, "namespaces");
	for (const char *const *kind = kinds; *kind; kind++) {
		json_open_map(j, NULL);
		json_text(j, "type", *kind);
		json_close_map(j);
	}
	json_close_list(j);
	add_map(j, "uidMappings", who);
	add_map(j, "gidMappings", who);
	json_close_map(j);
}

static void add_process(struct json *j, const struct bench_who *who)
{
	json_open_map(j, "process");
	json_bool(j, "terminal", false);
	json_open_map(j, "user");
	json_int(j, "uid", who->id == 0 ? 1000 : 0);
	json_int(j, "gid", who->id == 0 ? 1000 : 0);
	json_close_map(j);
	json_open_list(j, "args");
	json_text(j, NULL, "/bin/true");
	json_close_list(j);
	json_open_list(j, "env");
	json_text(j, NULL, "PATH=/usr/bin:/bin");
	json_close_list(j);
	json_text(j, "cwd", "/work");
	json_open_map(j, "capabilities");
	json_close_map(j);
	json_bool(j, "noNewPrivileges", true);
	json_close_map(j);
}

static void write_config(const char *path, const struct bench_who *who)
{
	own(buf) struct buf out = { .max = 1 << 16 };
	own_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	struct json j;

	json_init(&j, &out, 0);
	json_open_map(&j, NULL);
	json_text(&j, "ociVersion", "1.0.0");
	add_process(&j, who);
	json_open_map(&j, "root");
	json_text(&j, "path", "rootfs");
	json_bool(&j, "readonly", true);
	json_close_map(&j);
	json_text(&j, "hostname", "bawn");
	add_mounts(&j, who->project);
	add_linux(&j, who);
	json_close_map(&j);
	if (out.failed || fd < 0 || file_write_all(fd, out.data, out.len) < 0)
		bench_fail("cannot write %s", path);
}

static void make_dir(int at, const char *path)
{
	if (mkdirat(at, path, 0755) < 0)
		bench_fail("cannot make the folder %s of a bundle: %s", path, strerror(errno));
}

/* The places that are mounted on; the root itself is read-only. */
static void make_rootfs(const char *bundle)
{
	static const char *const folders[] = { "rootfs", "rootfs/usr", "rootfs/etc", "rootfs/proc",
		"rootfs/dev", "rootfs/tmp", "rootfs/run", "rootfs/var", "rootfs/work", NULL };
	static const char *const links[] = { "bin", "sbin", "lib", "lib64", NULL };
	own_fd int at = open(bundle, O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (const char *const *path = folders; *path; path++)
		make_dir(at, *path);
	for (const char *const *name = links; *name; name++) {
		char to[32], from[32];

		snprintf(to, sizeof(to), "usr/%s", *name);
		snprintf(from, sizeof(from), "rootfs/%s", *name);
		if (symlinkat(to, at, from) < 0)
			bench_fail("cannot make the link %s of a bundle", from);
	}
	for (const char *const *path = bench_etc; *path; path++) {
		char place[64];
		struct stat st;

		snprintf(place, sizeof(place), "rootfs%s", *path);
		if (stat(*path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			make_dir(at, place);
		else if (mknodat(at, place, S_IFREG | 0644, 0) < 0)
			bench_fail("cannot make %s of a bundle", place);
	}
}

int bench_hide_cgroups(void)
{
	char path[64];
	int made[2], fd = -1;
	char byte;
	pid_t pid;

	if (geteuid() != 0 || access("/sys/fs/cgroup/unified", F_OK) < 0 || pipe(made) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) == 0 &&
			mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
			mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL) == 0 &&
			write(made[1], "1", 1) == 1)
			pause();
		_exit(1);
	}
	close(made[1]);
	if (pid > 0 && read(made[0], &byte, 1) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
		fd = file_open(path, O_RDONLY);
	}
	close(made[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return fd;
}

void bench_make_oci(struct bench_command *ret, const struct bench_who *who, const char *name)
{
	const char *path = bench_find_program(name);
	char *bundle = bench_print("%s/%s", who->home, name);
	bool is_crun = strcmp(name, "crun") == 0;

	*ret = (struct bench_command){ .name = name, .who = who, .mount_ns = -1 };
	if (!path) {
		ret->missing = "not installed";
		return;
	}
	make_dir(AT_FDCWD, bundle);
	make_rootfs(bundle);
	write_config(bench_print("%s/config.json", bundle), who);
	bench_add_args(ret, (const char *const[]){ path, "--root",
				    bench_print("%s/%s", who->runtime, name), NULL });
	/* crun gives up where both versions of cgroups have controllers. */
	if (is_crun) {
		bench_add_arg(ret, "--cgroup-manager=disabled");
		ret->mount_ns = bench_hide_cgroups();
	}
	bench_add_args(ret, (const char *const[]){ "run", "--bundle", bundle,
				    bench_print("bench-%s-%d", who->name, (int)getpid()), NULL });
}
