/* Changing the tree, and devices. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int attack_remount(char **args)
{
	return outcome(
		mount(NULL, args[0], NULL, MS_REMOUNT | MS_BIND, NULL) == 0, "remount it writable");
}

static int attack_unmount(char **args)
{
	return outcome(umount2(args[0], MNT_DETACH) == 0, "unmount");
}

static int attack_mount(char **args)
{
	return outcome(mount("none", args[0], "tmpfs", 0, NULL) == 0, "mount a tmpfs");
}

static int attack_mount_proc(char **args)
{
	return outcome(mount("none", args[0], "proc", 0, NULL) == 0, "mount a fresh /proc");
}

/* The old trick: a root below the current directory does not stop `..` */
static int attack_chroot(char **args)
{
	char up[64 * 3 + 1] = "";

	if (mkdir("/tmp/below", 0700) && errno != EEXIST)
		return untried("mkdir: %s", error_name(errno));
	if (chroot("/tmp/below"))
		return refused("chroot: %s", error_name(errno));
	for (size_t i = 0; i < 64; i++)
		memcpy(up + i * 3, "../", 4);
	if (chdir(up) || chroot("."))
		return refused("up and out: %s", error_name(errno));
	return file_has_canary(AT_FDCWD, args[0], args[1])
		       ? worked("chroot, and out of it to the host")
		       : worked("chroot is possible, but leads to the cage's root");
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return is_written;
}

/* A namespace of our own brings capabilities, and with them a large part of the kernel. */
static int attack_nested(char **args)
{
	char map[64];

	(void)args;
	snprintf(map, sizeof(map), "0 %u 1", geteuid());
	if (unshare(CLONE_NEWUSER))
		return refused("unshare: %s", error_name(errno));
	if (!write_file("/proc/self/setgroups", "deny") || !write_file("/proc/self/uid_map", map))
		return worked("a user namespace, but no map: %s", error_name(errno));
	if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC))
		return worked("a user namespace, but no others: %s", error_name(errno));
	if (mount("none", "/tmp", "tmpfs", 0, NULL) == 0)
		return worked("a user namespace with others, and a mount");
	return worked("a user namespace with others");
}

/* --- devices --- */

static int attack_mknod(char **args)
{
	if (mknod(args[0], S_IFCHR | 0666, makedev(1, 3)))
		return refused("mknod: %s", error_name(errno));
	int fd = open(args[0], O_WRONLY | O_CLOEXEC);

	unlink(args[0]);
	return outcome(fd >= 0, "make a device and open it");
}

static int attack_device(char **args)
{
	struct stat st;
	int fd = open(args[0], O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return refused("open: %s", error_name(errno));
	if (fstat(fd, &st) || !(S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
		return refused("it is no device");
	return worked("opened %u:%u", major(st.st_rdev), minor(st.st_rdev));
}

/* What a cage has: null, zero, full, random, urandom, tty, and terminals of its own. */
static bool is_expected(dev_t device)
{
	static const unsigned expected[][2] = { { 1, 3 }, { 1, 5 }, { 1, 7 }, { 1, 8 }, { 1, 9 },
		{ 5, 0 }, { 5, 2 } };

	for (size_t i = 0; i < ELEMENTS(expected); i++)
		if (device == makedev(expected[i][0], expected[i][1]))
			return true;
	return major(device) >= 136 && major(device) <= 143;
}

static char unexpected[PATH_MAX];

static void look_for_devices(const char *folder, int depth)
{
	DIR *dir = depth ? opendir(folder) : NULL;

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		char path[PATH_MAX];
		struct stat st;

		join(path, folder, entry->d_name);
		if (entry->d_name[0] == '.' || lstat(path, &st))
			continue;
		if (S_ISDIR(st.st_mode))
			look_for_devices(path, depth - 1);
		else if ((S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) && !is_expected(st.st_rdev))
			memcpy(unexpected, path, sizeof(path));
	}
	if (dir)
		closedir(dir);
}

static int attack_devices(char **args)
{
	(void)args;
	look_for_devices("/dev", 4);
	return unexpected[0] ? worked("there is %s", unexpected)
			     : refused("none but the harmless ones");
}

const struct attack attacks_mounts[] = {
	{ "remount", "PATH", attack_remount, "makes a mount writable" },
	{ "unmount", "PATH", attack_unmount, "takes a mount away" },
	{ "mount", "PATH", attack_mount, "mounts a tmpfs" },
	{ "mount-proc", "PATH", attack_mount_proc, "mounts a fresh /proc" },
	{ "chroot", "PATH END", attack_chroot, "chroot twice, up and out" },
	{ "nested", "", attack_nested, "a user namespace, others in it, and a mount" },
	{ "mknod", "PATH", attack_mknod, "makes a device" },
	{ "device", "PATH", attack_device, "opens a device that lies in a folder" },
	{ "devices", "", attack_devices, "looks for devices that are not harmless" },
	{ 0 },
};
