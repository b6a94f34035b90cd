#include "host/host.h"

#include <assert.h>

const struct host_ability_def host_ability_defs[HOST_ABILITY_COUNT] = {
	[HOST_NS_USER] = { "ns.user", "a user namespace with ids of its own" },
	[HOST_NS_MOUNT] = { "ns.mount", "a private tree of mounts" },
	[HOST_NS_PID] = { "ns.pid", "a process table of its own" },
	[HOST_NS_NET] = { "ns.net", "a network of its own, with loopback up" },
	[HOST_NS_IPC] = { "ns.ipc", "shared memory and message queues of its own" },
	[HOST_NS_UTS] = { "ns.uts", "a host name of its own" },
	[HOST_NS_CGROUP] = { "ns.cgroup", "a cgroup tree that starts at itself" },
	[HOST_NS_TIME] = { "ns.time", "monotonic clocks of its own" },
	[HOST_OPENAT2] = { "openat2", "paths opened without leaving a directory" },
	[HOST_MOUNT_API] = { "mount.api", "a new root built from detached mounts" },
	[HOST_IDMAP] = { "mount.idmap", "mounts of the root file system with other owners shown" },
	[HOST_OVERLAY] = { "mount.overlay", "writes captured by an overlay" },
	[HOST_PROC] = { "proc", "a fresh /proc that shows the cage's processes only" },
	[HOST_PROC_SUBSET] = { "proc.subset", "a /proc with processes and nothing else" },
	[HOST_LANDLOCK] = { "landlock", "file rules by Landlock" },
	[HOST_SECCOMP] = { "seccomp", "system calls filtered" },
	[HOST_SECCOMP_NOTIFY] = { "seccomp.notify",
		"filtered system calls reported to the keeper" },
	[HOST_CGROUP_MEMORY] = { "cgroup.memory", "a limit on memory by cgroup" },
	[HOST_CGROUP_CPU] = { "cgroup.cpu", "a limit on processor time by cgroup" },
	[HOST_CGROUP_PIDS] = { "cgroup.pids", "a limit on processes by cgroup" },
	[HOST_USERNS_PIDS] = { "rlimit.pids", "a limit on processes by user namespace" },
	[HOST_SUBIDS] = { "ids.other", "user and group ids other than one's own for the cage" },
	[HOST_NO_GROUPS] = { "ids.no-groups", "no supplementary groups in the cage" },
	[HOST_BWRAP] = { "bwrap", "bubblewrap" },
	[HOST_CRUN] = { "crun", "the OCI runtime crun" },
	[HOST_RUNC] = { "runc", "the OCI runtime runc" },
	[HOST_PODMAN] = { "podman", "podman" },
	[HOST_QEMU] = { "qemu", "the machine emulator QEMU" },
	[HOST_KVM] = { "kvm", "virtual machines by the processor" },
};

const struct host_cause_def host_cause_defs[HOST_CAUSE_COUNT] = {
	[HOST_CAUSE_NONE] = { "none", "nothing is missing", NULL },
	[HOST_CAUSE_KERNEL] = { "kernel", "this kernel does not have it",
		"Use a newer kernel (6.1 or later has all that is needed), built with this "
		"feature." },
	[HOST_CAUSE_USERNS_OFF] = { "userns-off",
		"this system keeps user namespaces from ordinary users "
		"(kernel.unprivileged_userns_clone=0)",
		"Ask the administrator to start bawn as root, where the command still runs under "
		"an unprivileged id." },
	[HOST_CAUSE_USERNS_MAX] = { "userns-max",
		"the number of namespaces is limited (user.max_*_namespaces), and no more are left",
		"Raise the one limit that is used up, in a file of its own in /etc/sysctl.d "
		"(such as user.max_user_namespaces=1024), or end what holds the others." },
	[HOST_CAUSE_APPARMOR] = { "apparmor",
		"AppArmor gives user namespaces only to programs that have a profile for them "
		"(kernel.apparmor_restrict_unprivileged_userns=1)",
		"Give bawn its profile and leave the restriction on: put the lines `abi "
		"<abi/4.0>,`, `include <tunables/global>` and `profile bawn /usr/local/bin/bawn "
		"flags=(unconfined) { userns, }` into /etc/apparmor.d/bawn, with the path bawn is "
		"installed at, and load it with `apparmor_parser -r /etc/apparmor.d/bawn`." },
	[HOST_CAUSE_CONTAINER_FILTER] = { "container-filter",
		"the system-call filter or the profile of this container forbids it",
		"Start this one container with `--security-opt seccomp=FILE`, where FILE is the "
		"default profile that also allows clone, clone3, unshare, mount, umount2, "
		"pivot_root, fsopen, fsconfig, fsmount, move_mount, open_tree, mount_setattr, "
		"sethostname and the landlock calls, and with `--security-opt apparmor=unconfined` "
		"(in Kubernetes: seccompProfile and appArmorProfile of the container)." },
	[HOST_CAUSE_CONTAINER_PROC] = { "container-proc",
		"parts of /proc are hidden here, so the kernel refuses a /proc that would show "
		"them",
		"Start this one container with `--security-opt systempaths=unconfined` (Docker), "
		"`--security-opt unmask=ALL` (podman) or `procMount: Unmasked` (Kubernetes)." },
	[HOST_CAUSE_FILTER] = { "filter",
		"a system-call filter forbids it, as of a hardened service or another sandbox",
		"Allow it to this one service: `RestrictNamespaces=no` and "
		"`SystemCallFilter=@mount @sandbox` besides what it has now (systemctl edit UNIT), "
		"or start bawn outside the other sandbox." },
	[HOST_CAUSE_FIXED_ROOT] = { "fixed-root",
		"the root directory is a chroot or the initial ram disk, which cannot be replaced",
		"Start bawn outside the chroot, or enter the tree with a tool that changes the "
		"root properly (systemd-nspawn, podman); from a ram disk, switch to a real root "
		"first." },
	[HOST_CAUSE_NO_PROC] = { "no-proc", "/proc is not there or not the kernel's",
		"Mount it: `mount -t proc proc /proc`." },
	[HOST_CAUSE_LANDLOCK_OFF] = { "landlock-off",
		"Landlock is in the kernel but was not switched on at boot",
		"Add landlock to the lsm= list of the kernel's command line (the present list is "
		"in /sys/kernel/security/lsm) and restart." },
	[HOST_CAUSE_NO_DELEGATION] = { "no-delegation", "no cgroup is delegated to this user",
		"Start bawn in a cgroup of its own: for a service, add `Delegate=yes` (systemctl "
		"edit UNIT); in a container, mount /sys/fs/cgroup writable." },
	[HOST_CAUSE_NO_MANAGER] = { "no-manager",
		"no cgroup is delegated to this user, and no systemd manager runs for it that "
		"could be asked for one",
		"Log in as this user (a console, ssh, `machinectl shell USER@`; su and sudo start "
		"no manager), or have one run always: `loginctl enable-linger USER`; for a "
		"service, add `Delegate=yes` (systemctl edit UNIT)." },
	[HOST_CAUSE_MANAGER_LACKS] = { "manager-lacks",
		"the systemd manager of this user does not have the controller",
		"Ask the administrator to delegate it: `systemctl edit user@.service` with "
		"`Delegate=cpu memory pids` below [Service]; then log in again." },
	[HOST_CAUSE_CGROUP_V1] = { "cgroup-v1",
		"the cgroups of this machine are version 1, of which none is delegated to this "
		"user",
		"Start the machine with cgroup version 2 (systemd.unified_cgroup_hierarchy=1 on "
		"the kernel's command line), or start bawn as root; in a container, mount "
		"/sys/fs/cgroup writable." },
	[HOST_CAUSE_UNDIVIDED] = { "undivided",
		"a cgroup is delegated, but its controllers are not enabled for children",
		"Start bawn in a cgroup below it: `systemd-run --user --scope -p Delegate=yes "
		"bawn …`; for a service, add `DelegateSubgroup=main` beside `Delegate=yes` and "
		"enable the controllers in its cgroup.subtree_control." },
	[HOST_CAUSE_NO_CGROUP] = { "no-cgroup",
		"the cgroup controller is not mounted or not enabled",
		"Mount it (systemd does), or enable it at boot, as with cgroup_enable=memory on "
		"the kernel's command line." },
	[HOST_CAUSE_NO_SUBIDS] = { "no-subids",
		"newuidmap and newgidmap are missing, or this user has no range of ids",
		"Install them (`apt-get install uidmap`) and give the user ranges: `usermod "
		"--add-subuids 100000-165535 --add-subgids 100000-165535 USER`." },
	[HOST_CAUSE_NO_SETUID] = { "no-setuid",
		"programs cannot gain rights here (no_new_privs, or a file system mounted "
		"nosuid), so newuidmap cannot work",
		"Start bawn without `NoNewPrivileges=yes` (a service) or without "
		"`--security-opt no-new-privileges` (a container)." },
	[HOST_CAUSE_FEW_IDS] = { "few-ids",
		"this root is root of a user namespace that has no other id to give away",
		"Start the outer container with a range of ids (`podman run --userns=auto`), or "
		"start bawn as an ordinary user." },
	[HOST_CAUSE_WEAK_ROOT] = { "weak-root",
		"root was started here without the capabilities to give a process other ids",
		"Leave this one container CAP_SETUID, CAP_SETGID and CAP_SETFCAP (`--cap-add` "
		"after `--cap-drop=all`), or start bawn as an ordinary user, which needs none." },
	[HOST_CAUSE_NOT_INSTALLED] = { "not-installed", "the program is not installed",
		"Install it with the system's package manager; only /usr/local/bin, /usr/bin, "
		"/bin, /usr/sbin and /sbin are looked at." },
	[HOST_CAUSE_NO_DEVICE] = { "no-device", "there is no /dev/kvm",
		"Switch virtualisation on in the firmware, or nested virtualisation in the machine "
		"that carries this one; in a container, pass `--device /dev/kvm`." },
	[HOST_CAUSE_DEVICE_GROUP] = { "device-group",
		"/dev/kvm belongs to a group this user is not in",
		"Add the user to that group (`usermod -aG kvm USER`) and log in again." },
	[HOST_CAUSE_NOT_ROOT] = { "not-root", "only root of the whole machine may do it",
		"Start bawn as root if it is needed; the command still runs under an unprivileged "
		"id." },
	[HOST_CAUSE_NEEDS_USERNS] = { "needs-userns",
		"it could not be tried without a user namespace", "See to ns.user first." },
	[HOST_CAUSE_DENIED] = { "denied",
		"the kernel refused it, and what stands behind is not known",
		"Look into the kernel's log and the audit log for a line of the same moment, and "
		"at the security modules in use (/sys/kernel/security/lsm)." },
};

/* clang-format off */
#define SYSTEM_PATHS \
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", \
	"/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", \
	"/etc/java", "/etc/java-17-openjdk", "/etc/java-21-openjdk", "/etc/java-25-openjdk", \
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/pki", "/etc/ssl", \
	"/nix/store", "/gnu/store"
/* clang-format on */

const char *const host_system_paths[HOST_SYSTEM_COUNT] = { SYSTEM_PATHS };

static_assert(
	sizeof((const char *const[]){ SYSTEM_PATHS }) == HOST_SYSTEM_COUNT * sizeof(const char *),
	"host.h counts them");
