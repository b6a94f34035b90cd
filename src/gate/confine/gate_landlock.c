/*
 * gate_landlock - no files but those that are named, no TCP but to the ports that are.
 *
 * Runs as: the gate and the dialer, after their last change of ids.
 * Leaves:  a Landlock domain with every right that the kernel's ABI knows and bawn can name.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "gate/confine/gate_wall.h"

/* Newer than the headers this is built with. */
#define RULE_NET_PORT 2 /* ABI 4 */
#define NET_BIND      (1ULL << 0)
#define NET_CONNECT   (1ULL << 1)
#define SCOPES        3ULL /* ABI 6: abstract sockets, signals */

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

struct net_port_attr {
	uint64_t allowed, port;
};

/* The rights of files: each ABI added its own at the end. */
static uint64_t landlock_known_rights(int abi)
{
	static const unsigned counts[] = { 0, 13, 14, 15, 15, 16 };
	const int last = COUNT_OF(counts) - 1;

	return (1ULL << counts[abi < last ? abi : last]) - 1;
}

static int make_ruleset(int abi)
{
	struct ruleset_attr attr = { landlock_known_rights(abi), NET_BIND | NET_CONNECT, SCOPES };
	size_t size = sizeof(attr.fs);
	long fd;

	if (abi >= 4)
		size += sizeof(attr.net);
	if (abi >= 6)
		size += sizeof(attr.scoped);
	fd = syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	return fd < 0 ? -errno : (int)fd;
}

/* A file that is not there now is none later either. */
static int add_file(int ruleset, const char *path)
{
	own_fd int fd = file_open(path, O_PATH);
	struct landlock_path_beneath_attr rule = {
		.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
		.parent_fd = fd,
	};

	if (fd < 0)
		return 0;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

static int landlock_add_port(int ruleset, uint16_t port)
{
	struct net_port_attr rule = { NET_CONNECT, port };

	return syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0) < 0 ? -errno : 0;
}

static int landlock_add_rules(const struct gate_wall *wall, int ruleset, int abi)
{
	int r = 0;

	for (size_t i = 0; !r && wall->readable && wall->readable[i]; i++)
		r = add_file(ruleset, wall->readable[i]);
	for (size_t i = 0; !r && abi >= 4 && i < wall->port_count; i++)
		r = landlock_add_port(ruleset, wall->ports[i]);
	return r;
}

/* No rule opens a folder. */
static bool landlock_is_held(void)
{
	own_fd int fd = file_open("/", O_RDONLY | O_DIRECTORY);

	return fd == -EACCES;
}

int gate_landlock(const struct gate_wall *wall, struct err *e)
{
	int abi =
		(int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	own_fd int ruleset = abi < 1 ? -ENOSYS : make_ruleset(abi);
	int r = ruleset < 0 ? ruleset : landlock_add_rules(wall, ruleset, abi);

	if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(e, -r, "cannot enter a Landlock domain");
	if (!landlock_is_held())
		return err_set(e, ERR_SYS, EINVAL,
			"cannot rely on Landlock: it is on and refuses nothing");
	return 0;
}
