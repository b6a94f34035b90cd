#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gate/dns/gate_dns.h"

/* A process that reads a cage's questions for the keeper, and has no rights: from the first on. */
struct keeper_reader {
	int fd; /* or -1: there is none yet */
	pid_t pid;
};
