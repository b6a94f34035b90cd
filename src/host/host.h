#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "spec/yaml.h"

/*
 * Facts about this machine, read once, as plain data: a plan depends on them and on nothing else of
 * the machine. bawn finds a fact by trying, never by comparing versions.
 */

/* What this user can do on this machine. host_ability_defs has names and meanings. */
enum host_ability {
	HOST_NS_USER,
	HOST_NS_MOUNT,
	HOST_NS_PID,
	HOST_NS_NET, /* … whose loopback can be brought up */
	HOST_NS_IPC,
	HOST_NS_UTS,
	HOST_NS_CGROUP,
	HOST_NS_TIME,
	HOST_OPENAT2,
	HOST_MOUNT_API,   /* fsopen, open_tree, mount_setattr, move_mount, pivot_root in there */
	HOST_IDMAP,       /* id-mapped mounts; matters to root only */
	HOST_OVERLAY,     /* overlay with userxattr in a user namespace */
	HOST_PROC,        /* a fresh /proc in a new pid namespace */
	HOST_PROC_SUBSET, /* … with subset=pid */
	HOST_LANDLOCK,    /* any ABI; host.landlock_abi says which */
	HOST_SECCOMP,
	HOST_SECCOMP_NOTIFY,
	HOST_CGROUP_MEMORY, /* a child cgroup with this controller can be made */
	HOST_CGROUP_CPU,
	HOST_CGROUP_PIDS,
	HOST_USERNS_PIDS, /* RLIMIT_NPROC counts per user namespace */
	HOST_SUBIDS, /* other ids can be mapped: by root, or newuidmap with ranges for the user */
	HOST_NO_GROUPS, /* there are no supplementary groups, or they can be dropped */
	HOST_BWRAP,
	HOST_CRUN,
	HOST_RUNC,
	HOST_PODMAN,
	HOST_QEMU,
	HOST_KVM,
	HOST_ABILITY_COUNT,
};

/* Why an ability is missing. host_cause_defs has a sentence and a remedy for each. */
enum host_cause {
	HOST_CAUSE_NONE,             /* it is not missing */
	HOST_CAUSE_KERNEL,           /* the kernel does not have it */
	HOST_CAUSE_USERNS_OFF,       /* kernel.unprivileged_userns_clone=0 */
	HOST_CAUSE_USERNS_MAX,       /* user.max_…_namespaces=0, or used up */
	HOST_CAUSE_APPARMOR,         /* kernel.apparmor_restrict_unprivileged_userns=1 */
	HOST_CAUSE_CONTAINER_FILTER, /* a container's system-call filter or AppArmor profile */
	HOST_CAUSE_CONTAINER_PROC,   /* a container's masked /proc forbids a fresh one */
	HOST_CAUSE_FILTER,           /* a system-call filter outside a container, as of a service */
	HOST_CAUSE_FIXED_ROOT,       /* a chroot or the first ram disk: the root stays */
	HOST_CAUSE_NO_PROC,          /* no /proc to write id maps to */
	HOST_CAUSE_LANDLOCK_OFF,     /* in the kernel, not enabled at boot */
	HOST_CAUSE_NO_DELEGATION,    /* no cgroup is delegated to this user */
	HOST_CAUSE_NO_MANAGER,       /* … and the user has no systemd manager to ask for one */
	HOST_CAUSE_MANAGER_LACKS,    /* … and the manager does not have the controller */
	HOST_CAUSE_CGROUP_V1,        /* version 1, which is never delegated */
	HOST_CAUSE_UNDIVIDED,        /* the cgroup does not enable the controller for children */
	HOST_CAUSE_NO_CGROUP,        /* the controller is not mounted or not enabled */
	HOST_CAUSE_NO_SUBIDS,        /* no range in /etc/subuid and /etc/subgid, or no newuidmap */
	HOST_CAUSE_NO_SETUID,        /* no_new_privs or nosuid: newuidmap gets no privileges */
	HOST_CAUSE_FEW_IDS,          /* root of a user namespace without another id to map */
	HOST_CAUSE_WEAK_ROOT,        /* root without the capabilities to map ids */
	HOST_CAUSE_NOT_INSTALLED,    /* a program is missing */
	HOST_CAUSE_NO_DEVICE,        /* no /dev/kvm */
	HOST_CAUSE_DEVICE_GROUP,     /* /dev/kvm belongs to a group this user is not in */
	HOST_CAUSE_NOT_ROOT,         /* only root may */
	HOST_CAUSE_NEEDS_USERNS,     /* could not be tried without a user namespace */
	HOST_CAUSE_DENIED,           /* it failed for an unknown reason */
	HOST_CAUSE_COUNT,
};

struct host_ability_def {
	const char *name;    /* "ns.user" */
	const char *meaning; /* half a sentence */
};

struct host_cause_def {
	const char *name;    /* "userns-off" */
	const char *because; /* half a sentence: why */
	const char *remedy;  /* a sentence: the supported way out; NULL for HOST_CAUSE_NONE */
};

extern const struct host_ability_def host_ability_defs[HOST_ABILITY_COUNT];
extern const struct host_cause_def host_cause_defs[HOST_CAUSE_COUNT];

/* Directories and files of the system that a cage may need, in the order of mounting. */
enum host_path_kind {
	HOST_PATH_ABSENT,
	HOST_PATH_DIR,
	HOST_PATH_FILE,
	HOST_PATH_LINK, /* a symlink to host.system[i].target; ABSENT if that does not fit */
};

#define HOST_SYSTEM_COUNT 21
extern const char *const host_system_paths[HOST_SYSTEM_COUNT];

/* Ways to capture writes to a project. Only trying one on that project shows whether it works. */
enum host_capture {
	HOST_CAPTURE_ON_DISK = 1, /* an overlay with its layer in the run's folder */
	HOST_CAPTURE_IN_POOL = 2, /* … in the cage's own file system, which has a quota */
	HOST_CAPTURE_BY_COPY = 4,
};

struct host {
	char kernel[72];    /* release */
	char arch[16];      /* x86_64 */
	bool is_root;       /* effective uid 0; HOST_SUBIDS says whether it can map other ids */
	bool has_bash;      /* /bin/bash */
	int landlock_abi;   /* 0: none */
	int cgroup_version; /* 0 none, 1, 2 */
	/*
	 * Facts about the project of this plan, not about the machine; host_print_json skips them.
	 */
	unsigned no_capture;      /* ways that failed for the project: HOST_CAPTURE_… */
	bool has_team;            /* the project's group is a supplementary one of the operator */
	bool no_team;             /* … and the kernel refused to map it */
	bool in_session;          /* it has a session's workspace */
	bool no_protect;          /* protecting paths in it failed */
	bool no_git_protect;      /* the same in the folder of its git, or it cannot be tried */
	bool has_outer_git;       /* the folder of its git is outside of it, and may be shown */
	const char *const *hooks; /* paths of the project that its git runs hooks from; borrowed */
	size_t hook_count;
	const char *const *git_others; /* paths .git/… that belong to other worktrees */
	size_t git_other_count;
	int groups;         /* supplementary groups that a cage would keep unless it drops them */
	char container[24]; /* the container that bawn runs in: docker, podman, lxc, userns, …; or
			       "" */
	struct {
		enum host_cause cause; /* HOST_CAUSE_NONE: this user can */
		int num;               /* the errno seen, or 0 */
	} abilities[HOST_ABILITY_COUNT];
	struct {
		enum host_path_kind kind;
		char target[64];
	} system[HOST_SYSTEM_COUNT];
};

static inline bool host_can(const struct host *h, enum host_ability ability)
{
	return h->abilities[ability].cause == HOST_CAUSE_NONE;
}

/*
 * Probes this machine as the current user. Forks two children and waits for them; leaves nothing
 * behind. Returns 0, or -errno if probing itself is impossible (no memory, no processes).
 */
int host_probe(struct host *ret, struct err *e);

/*
 * Probes only what takes no time, and assumes that namespaces, mounts and filters work. For callers
 * that are about to use them anyway and call host_probe if that fails. `mounts` is the text of this
 * process's mountinfo; NULL: read it.
 */
void host_assume(struct host *ret, const char *mounts);

/* Adds the facts as members of the open map. */
void host_print_json(const struct host *h, struct json *j);

/*
 * Reads the facts from such a map (JSON is YAML, so both work), which must be complete and have no
 * other members. Returns 0, or -EINVAL with the errors in `diags`; *ret is unchanged then.
 */
int host_from_yaml(struct host *ret, const struct yaml_node *map, struct diags *diags);
