/*
 * cage_kernel - shows what the kernel itself provides: /proc, devices, terminals.
 *
 * Runs as:     the first process, while the tree is built.
 * Enters with: the root of the tree; the pool, over the host's /proc.
 * Leaves:      /proc with its covers, the planned devices, and a devpts of the cage's own.
 * Must not:    show an entry of /proc that the plan does not keep; show what is no device.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "cage/cage_inside.h"
#include "wire/wire.h"

/* The keeper asks whether it is a device, before anything runs. */
static int cage_mount_device(struct cage *c, const struct plan_op *op, struct err *e)
{
	const char *path = cage_b(c, op);
	cage_fd int tree =
		cage_clone_name(AT_FDCWD, path, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, e);

	if (tree < 0)
		return err_set(e, ERR_SYS, ENODEV,
			"cannot show '%s' in the cage: it is not a device of this host", path);
	return cage_show(c, tree, path, false, e);
}

/* --- /proc --- */

/*
 * A fresh /proc for the cage's pid namespace, with an empty read-only file or folder over every
 * entry that is neither a process nor kept by the plan. Whatever the kernel lists is covered, so
 * that the new entries of later kernels are covered too.
 */
#define COVER (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY)

/* Their place in the pool, and with it: the pool is over the host's /proc until the tree is
 * entered. */
#define COVERS       "covers"
#define POOLS_COVERS "/proc/" COVERS

/*
 * An empty file and an empty folder in a mount that has a cover's restrictions. It is attached,
 * because a bind must be of a mount with a place; every bind of it has the same restrictions.
 */
static int make_covers(struct cage *c, struct err *e)
{
	cage_fd int tree = -1;

	if (mkdirat(c->pool, COVERS, 0755) < 0 || mkdirat(c->pool, COVERS "/empty", 0755) < 0 ||
		mknodat(c->pool, COVERS "/blank", S_IFREG | 0444, 0) < 0)
		return err_sys(e, errno, "cannot make the cage's own files");
	tree = cage_clone_name(c->pool, COVERS, COVER, e);
	return tree < 0 ? tree : cage_put_in_pool(c, tree, COVERS, e);
}

/* One call for each of about 45. The kernel listed the name, which is no link. */
static int proc_cover(const struct file_entry *entry, const char *place, struct err *e)
{
	const char *cover = entry->type == DT_DIR ? POOLS_COVERS "/empty" : POOLS_COVERS "/blank";
	char path[NAME_MAX + sizeof("proc/")];

	snprintf(path, sizeof(path), "%s/%s", place, entry->name);
	if (mount(cover, path, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
		return err_sys(e, errno, "cannot cover '/proc/%s'", entry->name);
	return 0;
}

static int cover_all(struct cage *c, const struct plan_op *op, int proc, struct err *e)
{
	struct file_entries entries = { .fd = proc };
	const struct file_entry *entry;
	int r = make_covers(c, e);

	if (r == 0 && !c->is_in_root)
		r = cage_enter_root(c, e);
	/* Links in /proc lead into the reader's own process. */
	while (r == 0 && (entry = file_next_entry(&entries)))
		if (entry->type != DT_LNK && !plan_keeps_in_proc(c->start->plan, op, entry->name))
			r = proc_cover(entry, cage_b(c, op) + 1, e);
	if (r == 0 && entries.failure)
		return err_sys(e, entries.failure, "cannot list the cage's /proc");
	return r;
}

/* --- new file systems in the root --- */

static_assert(MOUNT_ATTR_RDONLY == MS_RDONLY && MOUNT_ATTR_NOSUID == MS_NOSUID &&
		      MOUNT_ATTR_NODEV == MS_NODEV && MOUNT_ATTR_NOEXEC == MS_NOEXEC,
	"the restrictions of both ways to mount are the same bits");

/*
 * Mounts a new file system in a folder that is new below a known one, by one call where the other
 * way takes four or more. 0; 1: the place is not like this.
 */
static int mount_at_known(struct cage *c, const char *type, const char *const *options,
	uint64_t attributes, const char *path, struct err *e)
{
	const char *name;
	int base = cage_find_known(c, path, &name);
	char text[64] = "";
	size_t n = 0;

	if (base < 0 || mkdirat(base, name, 0755) < 0)
		return 1;
	for (; options && *options && n < sizeof(text); options += 2)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%s%s", n ? "," : "",
			options[0], options[1] ? "=" : "", options[1] ? options[1] : "");
	if (n >= sizeof(text))
		return err_set(e, ERR_SYS, E2BIG, "cannot mount a file system of type %s", type);
	if (!c->is_in_root) {
		int r = cage_enter_root(c, e);

		if (r < 0)
			return r;
	}
	if (mount("none", path + 1, type, (unsigned long)attributes, text) < 0)
		return err_sys(e, errno, "cannot mount a file system of type %s", type);
	return 0;
}

/* Shows a new file system, and opens its root for reading. Returns a descriptor or -errno. */
static int show_new(struct cage *c, const char *type, const char *const *options,
	uint64_t attributes, const char *path, struct err *e)
{
	int r = mount_at_known(c, type, options, attributes, path, e), fd;

	if (r > 0) {
		cage_fd int tree = cage_new_mount(type, options, attributes, e);

		r = tree < 0 ? tree : cage_put(c, tree, path, true, e);
	}
	if (r < 0)
		return r;
	fd = file_open_beneath(c->root, path + 1, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return err_sys(e, -fd, "cannot open '%s' in the cage", path);
	cage_remember(c, fd, path, true);
	return fd;
}

/* In the test build without a pid namespace, a cage has the host's /proc. */
static int show_hosts_proc(struct cage *c, const struct plan_op *op, struct err *e)
{
	cage_fd int tree = cage_clone_name(AT_FDCWD, "/proc", cage_restrictions(op->flags), e);

	return tree < 0 ? tree : cage_put(c, tree, cage_b(c, op), true, e);
}

static int cage_mount_proc(struct cage *c, const struct plan_op *op, struct err *e)
{
	static const char *const subset[] = { "subset", "pid", NULL };
	bool is_subset = op->flags & PLAN_SUBSET;
	cage_fd int proc = -1;

	if (cage_is_broken("namespace:pid"))
		return show_hosts_proc(c, op, e);
	proc = show_new(c, "proc", is_subset ? subset : NULL, cage_restrictions(op->flags),
		cage_b(c, op), e);
	/* The subset has processes only. */
	if (proc < 0 || is_subset || cage_is_broken("proc"))
		return proc < 0 ? proc : 0;
	return cover_all(c, op, proc, e);
}

/* --- terminals --- */

/*
 * A terminal of the cage's own devpts: the far end becomes the command's standard streams and its
 * controlling terminal, the near end goes to the keeper. The operator's terminal stays outside.
 */
/* Opens the far end by descriptor, without a path. */
static int open_far_end(int near)
{
	int unlocked = 0;

	if (ioctl(near, TIOCSPTLCK, &unlocked) < 0)
		return -1;
	return ioctl(near, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static int take_streams(const struct cage *c, int far)
{
	for (int i = 0; i < 3; i++)
		if (c->start->terminal_streams & 1U << i && dup2(far, i) < 0)
			return -1;
	/* In that test the process still has the operator's controlling terminal. */
	return cage_is_broken("session") ? 0 : ioctl(far, TIOCSCTTY, 0);
}

int cage_take_terminal(struct cage *c, int devpts, struct err *e)
{
	own_fd int near = openat(devpts, "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	own_fd int far = near < 0 ? -1 : open_far_end(near);
	int r;

	if (far < 0 || take_streams(c, far) < 0)
		return err_sys(e, errno, "cannot make a terminal for the cage");
	r = wire_send_fd(c->channel, WIRE_TERMINAL, near);
	return r < 0 ? err_sys(e, -r, "cannot hand the cage's terminal over") : 0;
}

static int cage_mount_devpts(struct cage *c, const struct plan_op *op, struct err *e)
{
	static const char *const options[] = { "ptmxmode", "0666", "mode", "0600", NULL };
	cage_fd int tree =
		show_new(c, "devpts", options, cage_restrictions(op->flags), cage_b(c, op), e);

	if (tree < 0)
		return tree;
	return c->start->terminal_streams ? cage_take_terminal(c, tree, e) : 0;
}

cage_step *const cage_kernel_steps[PLAN_OP_KIND_COUNT] = {
	[PLAN_PROC] = cage_mount_proc,
	[PLAN_DEVICE] = cage_mount_device,
	[PLAN_DEVPTS] = cage_mount_devpts,
};
