/*
 * cage_landlock - the second wall, of another make: what the rules do not open is closed, whatever
 * the mounts say.
 *
 * Runs as:     the first process, in the finished tree.
 * Leaves:      the process and all it starts in a Landlock domain: files by path, devices' ioctls,
 *              signals and abstract sockets to nobody outside of the cage.
 *
 * TCP is left to the network namespace, which has no way out: rules would close the cage's own
 * loopback, and Landlock has no way to open all of its ports.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "cage/cage_inside.h"

/* Newer than the headers this is built with. */
#define FS_REFER               (1ULL << 13) /* ABI 2 */
#define FS_TRUNCATE            (1ULL << 14) /* ABI 3 */
#define FS_IOCTL_DEV           (1ULL << 15) /* ABI 5 */
#define SCOPE_ABSTRACT_SOCKETS (1ULL << 0)  /* ABI 6 */
#define SCOPE_SIGNALS          (1ULL << 1)

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

#define READ    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define EXECUTE LANDLOCK_ACCESS_FS_EXECUTE
#define WRITE                                                                                      \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                           \
		LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                     \
		LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                       \
		LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | FS_REFER |            \
		FS_TRUNCATE | FS_IOCTL_DEV)
#define DEVICES (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK) /* never given */
#define OF_FILES                                                                                   \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |                              \
		LANDLOCK_ACCESS_FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

/* The rights that a kernel of this ABI knows. */
static uint64_t cage_landlock_known_rights(int abi)
{
	uint64_t rights = READ | EXECUTE | WRITE | DEVICES;

	if (abi < 2)
		rights &= ~FS_REFER;
	if (abi < 3)
		rights &= ~FS_TRUNCATE;
	if (abi < 5)
		rights &= ~FS_IOCTL_DEV;
	return rights;
}

static int landlock_add_rule(const struct cage *c, int fd, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = { .parent_fd = fd };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	rule.allowed_access = rights & cage_landlock_known_rights(c->abi);
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= OF_FILES;
	if (syscall(SYS_landlock_add_rule, c->rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

int cage_make_ruleset(struct cage *c, const struct plan_op *op, struct err *e)
{
	struct ruleset_attr attr = { .fs = cage_landlock_known_rights((int)op->n) };
	size_t size = op->n >= 6 ? sizeof(attr) : sizeof(attr.fs);
	bool has_own_network = plan_find(c->start->plan, PLAN_NAMESPACE, "net") != NULL;

	c->abi = (int)op->n;
	if (op->n >= 6)
		attr.scoped = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
	/* Every command of a session has a domain of its own, and they are to reach each other:
	 * that nobody else is reached rests on the namespaces. */
	if (op->flags & PLAN_SHARED)
		attr.scoped &=
			~(has_own_network ? SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS : SCOPE_SIGNALS);
	c->rules = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (c->rules < 0)
		return err_sys(e, errno, "cannot make a Landlock ruleset of ABI %d", c->abi);
	return 0;
}

int cage_add_rule(struct cage *c, const struct plan_op *op, struct err *e)
{
	char path[CAGE_PATH_SIZE], text[PLAN_TEXT_SIZE];
	uint64_t rights = READ;
	own_fd int fd = -1;
	int r;

	if (!(op->flags & (PLAN_NO_EXEC | PLAN_LIST)))
		rights |= EXECUTE;
	if (!(op->flags & (PLAN_READ_ONLY | PLAN_LIST)))
		rights |= WRITE;
	if (op->flags & PLAN_LIST)
		rights = LANDLOCK_ACCESS_FS_READ_DIR;
	if (!cage_fill_in_place(c->start, op, path, sizeof(path)))
		return err_set(e, ERR_SYS, ENAMETOOLONG,
			"cannot open '%s' in Landlock: its path is too long",
			plan_root_text(op->b_root, cage_b(c, op), text));
	/* Others that run in the cage already may have put a link on the way. */
	fd = c->start->join ? file_open_real(path, O_PATH) : file_open(path, O_PATH | O_NOFOLLOW);
	r = fd < 0 ? fd : landlock_add_rule(c, fd, rights);
	if (r < 0)
		return err_sys(e, -r, "cannot open '%s' in Landlock", path);
	return 0;
}

int cage_confine(struct cage *c, const struct plan_op *op, struct err *e)
{
	char nowhere[64];

	(void)op;
	/* A name that an image does not have. */
	snprintf(nowhere, sizeof(nowhere), "/.bawn-%.40s", c->start->run);
	if (syscall(SYS_landlock_restrict_self, c->rules, 0) < 0)
		return err_sys(e, errno, "cannot enter the Landlock domain");
	/* No rule lets devices be made, and without Landlock anybody may make this one, which is
	 * none: so it shows that the domain holds. */
	if (mknod(nowhere, S_IFCHR, 0) == 0 || errno != EACCES)
		return err_set(e, ERR_SYS, EINVAL,
			"cannot rely on Landlock: it is on and refuses nothing");
	c->is_confined = true;
	return 0;
}
