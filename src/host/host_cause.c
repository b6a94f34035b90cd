#include <errno.h>

#include "host/host_probe.h"

/* Refused with EPERM or EACCES: by whom? The hooks of AppArmor say EACCES, filters mostly EPERM. */
static enum host_cause refused_by(const struct host_rules *rules, int num)
{
	if (rules->apparmor && (num == EACCES || !rules->filter))
		return HOST_CAUSE_APPARMOR;
	if (rules->in_container && (num == EACCES || rules->filter))
		return HOST_CAUSE_CONTAINER_FILTER;
	return rules->filter ? HOST_CAUSE_FILTER : HOST_CAUSE_DENIED;
}

/* A system call that is not there: hidden by a filter, which answers like an old kernel? */
static enum host_cause absent_by(const struct host_rules *rules)
{
	if (!rules->filter)
		return HOST_CAUSE_KERNEL;
	return rules->in_container ? HOST_CAUSE_CONTAINER_FILTER : HOST_CAUSE_FILTER;
}

static enum host_cause cause_of_namespace(
	const struct host_rules *rules, enum host_ability ability, int num)
{
	if (num == ENOSPC || num == EUSERS)
		return HOST_CAUSE_USERNS_MAX;
	if (num == EINVAL)
		return HOST_CAUSE_KERNEL;
	if (ability == HOST_NS_USER && rules->no_proc)
		return HOST_CAUSE_NO_PROC;
	if (num != EPERM && num != EACCES)
		return HOST_CAUSE_DENIED;
	if (ability == HOST_NS_USER && rules->userns_off)
		return HOST_CAUSE_USERNS_OFF;
	if (ability == HOST_NS_USER && rules->fixed_root)
		return HOST_CAUSE_FIXED_ROOT;
	if (ability == HOST_NS_USER && rules->weak_root)
		return HOST_CAUSE_WEAK_ROOT;
	return refused_by(rules, num);
}

/* Of mounts in the new namespaces. What no mount can do is no fault of proc or overlay. */
static enum host_cause cause_of_mount(
	const struct host *h, const struct host_rules *rules, enum host_ability ability, int num)
{
	bool is_refusal = num == EPERM || num == EACCES;
	bool is_proc = ability == HOST_PROC || ability == HOST_PROC_SUBSET;

	if (!host_can(h, HOST_NS_MOUNT))
		return h->abilities[HOST_NS_MOUNT].cause;
	if (is_proc && !host_can(h, HOST_NS_PID))
		return h->abilities[HOST_NS_PID].cause;
	if (ability == HOST_MOUNT_API && num == EINVAL && rules->fixed_root)
		return HOST_CAUSE_FIXED_ROOT;
	if (ability != HOST_MOUNT_API && is_refusal && host_can(h, HOST_MOUNT_API))
		return is_proc ? HOST_CAUSE_CONTAINER_PROC : HOST_CAUSE_KERNEL;
	if (is_refusal)
		return refused_by(rules, num);
	return num == EINVAL || num == ENODEV ? HOST_CAUSE_KERNEL : HOST_CAUSE_DENIED;
}

static enum host_cause cause_of_kvm(const struct host_rules *rules, int num)
{
	if (num == ENOENT || num == ENXIO || num == ENODEV)
		return HOST_CAUSE_NO_DEVICE;
	return num == EACCES ? HOST_CAUSE_DEVICE_GROUP : refused_by(rules, num);
}

/* The first process too many: counted outside as well. One too many let through: not counted. */
static enum host_cause cause_of_pids(const struct host *h, int num)
{
	if (num == EOPNOTSUPP && h->is_root)
		return HOST_CAUSE_FEW_IDS; /* the kernel counts nothing of the real root */
	return num == EAGAIN || num == EOPNOTSUPP ? HOST_CAUSE_KERNEL : HOST_CAUSE_DENIED;
}

static enum host_cause cause_of_other(const struct host_rules *rules, int num)
{
	if (num == EPERM || num == EACCES)
		return refused_by(rules, num);
	return num == EINVAL || num == EOPNOTSUPP ? HOST_CAUSE_KERNEL : HOST_CAUSE_DENIED;
}

enum host_cause host_cause_of(
	const struct host *h, const struct host_rules *rules, enum host_ability ability, int num)
{
	if (num == 0)
		return HOST_CAUSE_NONE;
	if (num == HOST_UNTRIED)
		return HOST_CAUSE_NEEDS_USERNS;
	if (num == ENOSYS)
		return absent_by(rules);
	if (ability <= HOST_NS_TIME)
		return cause_of_namespace(rules, ability, num);
	if (ability == HOST_IDMAP && (num == EPERM || num == EACCES))
		return HOST_CAUSE_NOT_ROOT;
	if (ability >= HOST_MOUNT_API && ability <= HOST_PROC_SUBSET)
		return cause_of_mount(h, rules, ability, num);
	if (ability == HOST_LANDLOCK && num == EOPNOTSUPP)
		return HOST_CAUSE_LANDLOCK_OFF;
	if (ability == HOST_USERNS_PIDS)
		return cause_of_pids(h, num);
	if (ability == HOST_SUBIDS && num == EPERM && rules->weak_root)
		return HOST_CAUSE_WEAK_ROOT;
	if (ability == HOST_KVM)
		return cause_of_kvm(rules, num);
	return cause_of_other(rules, num);
}

void host_set_tried(
	struct host *h, const struct host_rules *rules, enum host_ability ability, int num)
{
	enum host_cause cause = host_cause_of(h, rules, ability, num);

	host_set(h, ability, cause, num == HOST_UNTRIED ? 0 : num);
}
