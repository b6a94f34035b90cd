#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * The part of D-Bus that is needed to ask a systemd manager for a scope: one method call is
 * written, and messages are read until the scope exists or is refused. Pure: works on bytes.
 */

#define CGROUP_BUS_MAX 1024 /* bytes of the request */

/*
 * Writes the authentication and the call StartTransientUnit for a delegated scope `unit` with
 * process `pid` in it. Returns the number of bytes, or 0 if they do not fit.
 */
size_t cgroup_bus_request(
	uid_t uid, const char *unit, pid_t pid, uint8_t ret[static CGROUP_BUS_MAX]);

#define CGROUP_BUS_HEAD     16           /* the first bytes of a message, which give its length */
#define CGROUP_BUS_MAX_SIZE (128 * 1024) /* bytes of the longest message that is read */

/* Returns the length of the message that begins with these bytes; 0: not a message. */
size_t cgroup_bus_size(const uint8_t head[static CGROUP_BUS_HEAD]);

/*
 * Reads a whole message. Returns 1 if the scope `unit` exists now, 0 if the message is about
 * something else, -EPERM with the manager's reason in `e` if it refused, -EPROTO for other bytes.
 */
int cgroup_bus_read(const uint8_t *message, size_t size, const char *unit, struct err *e);
