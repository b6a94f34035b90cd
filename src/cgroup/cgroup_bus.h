#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * The little of D-Bus that it takes to ask a systemd manager for a scope: one call is written, and
 * what comes back is read until the scope is there or refused. Pure: bytes in, bytes out.
 */

#define CGROUP_BUS_MAX 1024 /* of what is written */

/*
 * The login and the call StartTransientUnit for scope `unit`, delegated, with process `pid` in it;
 * how many bytes, 0 if they do not fit.
 */
size_t cgroup_bus_request(
	uid_t uid, const char *unit, pid_t pid, uint8_t ret[static CGROUP_BUS_MAX]);

#define CGROUP_BUS_HEAD     16           /* bytes of a message that say how long it is */
#define CGROUP_BUS_MAX_SIZE (128 * 1024) /* of a message that is read whole */

/* The length of the message that begins with these bytes; 0: this is no message. */
size_t cgroup_bus_size(const uint8_t head[static CGROUP_BUS_HEAD]);

/*
 * What a whole message says about `unit`: 0 nothing, 1 the scope is there, -EPERM it is refused,
 * with the manager's reason in `e`; -EPROTO: this is no message.
 */
int cgroup_bus_read(const uint8_t *message, size_t size, const char *unit, struct err *e);
