#pragma once

#include "cgroup/cgroup.h"

/*
 * A cgroup from systemd: where a login's own is not delegated, the user's manager makes a scope
 * that is, and moves this process into it. As podman does.
 */

/* Which controllers a scope would have; -errno where no manager of this user's can be asked. */
int cgroup_scope_offers(bool ret[static CGROUP_COUNT]);

/*
 * Moves this process into a new scope NAME.scope, in a cgroup of its own below it, and hands the
 * controllers in `wanted` down from the scope: folders can be made there. The scope ends with
 * the last process in it.
 */
int cgroup_scope_enter(const char *name, unsigned wanted, struct err *e);

/* Part of it, for tests: asks a manager at the socket `bus` for a scope with process `pid`. */
int cgroup_scope_ask(int bus, const char *unit, pid_t pid, struct err *e);
