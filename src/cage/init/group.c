/*
 * group - maps a group of the operator's into the user namespace of a cage.
 *
 * Runs as: the operator, from a file of the operator's that has the group and its set-group-id bit:
 *          so the group is the effective one here.
 * Enters:  with an empty environment and two descriptors: 3 is the folder of the cage's first
 *          process in /proc, 4 has the map.
 * Leaves:  the map written, or an errno as status.
 * Must not: do anything else. It is started where bawn's own program cannot have that group.
 *
 * The kernel lets everybody map one group, the effective one. Whoever is in a group by the list of
 * supplementary groups may do all that the group may do, but cannot make it the effective one
 * without such a program.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "base/call.h"

#define PROCESS 3
#define MAP     4

/* Called by the few instructions below, which the kernel starts. */
__attribute__((noreturn)) void group_main(void);

void group_main(void)
{
	char map[64];
	long fd = call(__NR_openat, PROCESS, (long)"gid_map", O_WRONLY | O_CLOEXEC, 0, 0, 0);
	long n = call(__NR_read, MAP, (long)map, sizeof(map), 0, 0, 0);
	long r = fd < 0 ? fd : n <= 0 ? -EIO : call(__NR_write, fd, (long)map, n, 0, 0, 0);

	for (;;)
		call(__NR_exit_group, r < 0 ? -r : 0, 0, 0, 0, 0, 0);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n\tcall group_main\n");
#else
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tb group_main\n");
#endif
