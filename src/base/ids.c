#include "base/ids.h"

#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

static gid_t groups[NGROUPS_MAX];

uid_t ids_user(void)
{
	static uid_t user = (uid_t)-1;

	if (user == (uid_t)-1)
		user = geteuid();
	return user;
}

gid_t ids_group(void)
{
	static gid_t group = (gid_t)-1;

	if (group == (gid_t)-1)
		group = getegid();
	return group;
}

int ids_count_groups(gid_t own)
{
	long n = syscall(SYS_getgroups, NGROUPS_MAX, groups);
	int count = n < 0 ? -1 : 0;

	for (long i = 0; i < n; i++)
		count += groups[i] != own;
	return count;
}

bool ids_has_group(gid_t group)
{
	long n = syscall(SYS_getgroups, NGROUPS_MAX, groups);

	for (long i = 0; i < n; i++)
		if (groups[i] == group)
			return true;
	return false;
}
