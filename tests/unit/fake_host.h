#pragma once

/*
 * A machine made by hand: it can do everything, until a test takes something away. Nothing of
 * the machine the test runs on is in it.
 */
#include <errno.h>
#include <string.h>

#include "host/host.h"

static inline void fake_host_init(struct host *ret)
{
	*ret = (struct host){
		.kernel = "6.1.0-fake",
		.arch = "x86_64",
		.has_bash = true,
		.landlock_abi = 4,
		.cgroup_version = 2,
	};
	for (int i = 0; i < HOST_SYSTEM_COUNT; i++)
		ret->system[i].kind = i == 0 ? HOST_PATH_DIR : HOST_PATH_ABSENT;
	/* /bin and /lib lead into /usr, as on most machines. */
	ret->system[1].kind = ret->system[3].kind = HOST_PATH_LINK;
	memcpy(ret->system[1].target, "usr/bin", sizeof("usr/bin"));
	memcpy(ret->system[3].target, "usr/lib", sizeof("usr/lib"));
}

static inline void fake_host_lose(struct host *h, enum host_ability ability)
{
	h->abilities[ability].cause = HOST_CAUSE_KERNEL;
	h->abilities[ability].num = ENOSYS;
	if (ability == HOST_LANDLOCK)
		h->landlock_abi = 0;
}
