/*
 * host_probe_ids - the user's groups, and the ids besides the own that the user may give away.
 *
 * Runs as:     the operator, in the process that asked.
 * Leaves:      nothing but its answers.
 * Must not:    ask the name service: bawn is linked statically, and a name service is other
 * people's code. /etc/passwd is read as a file; a user who is not in it counts by number.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/count.h"
#include "base/ids.h"
#include "base/lines.h"
#include "base/own.h"
#include "base/str.h"
#include "host/host_probe.h"

#define NAME_SIZE 256

/*
 * Of a user's cage the user's group is its own; root's cage has another one. Root's group counts
 * where it is a user's: it opens more than a group that belongs to the user alone.
 */
void host_probe_groups(struct host *h)
{
	gid_t own = h->is_root ? (gid_t)-1 : getegid();
	int n = ids_count_groups(own);

	h->groups = (n < 0 ? 1 : n) + (own == 0);
}

/* The name of our effective user id in /etc/passwd, or "". */
static void find_user_name(char ret[static NAME_SIZE])
{
	own(lines) struct lines l = { .fd = -1 };
	char uid[16], *line;

	ret[0] = '\0';
	snprintf(uid, sizeof(uid), "%u", geteuid());
	lines_open(&l, "/etc/passwd");
	while ((line = lines_next(&l))) {
		const char *name = lines_field(&line, ':');
		const char *number;

		lines_field(&line, ':');
		number = lines_field(&line, ':');
		if (name && number && str_eq(number, uid) && strlen(name) < NAME_SIZE) {
			snprintf(ret, NAME_SIZE, "%s", name);
			return;
		}
	}
}

/* Has the file a line NAME:START:COUNT for the name or the number, with a count above 0? */
static bool has_range(const char *path, const char *name)
{
	own(lines) struct lines l = { .fd = -1 };
	char uid[16], *line;

	snprintf(uid, sizeof(uid), "%u", geteuid());
	lines_open(&l, path);
	while ((line = lines_next(&l))) {
		const char *owner = lines_field(&line, ':');
		const char *start = lines_field(&line, ':');
		const char *count = line;
		bool is_ours = str_eq(owner, uid) || (name[0] && str_eq(owner, name));

		if (is_ours && start && str_is_digit(start[0]) && count &&
			strtoul(count, NULL, 10) > 0)
			return true;
	}
	return false;
}

/* A program that gains rights when it is started: 0, ENOENT, or EPERM where it cannot gain any. */
static int find_gaining(const char *name)
{
	static const char *const dirs[] = { "/usr/bin", "/usr/local/bin", "/bin" };
	struct statvfs fs;
	struct stat st;
	char path[64];

	for (size_t i = 0; i < COUNT_OF(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", dirs[i], name);
		if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0)
			continue;
		if (!((st.st_mode & S_ISUID) && st.st_uid == 0) &&
			getxattr(path, "security.capability", NULL, 0) <= 0)
			continue;
		return statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOSUID) ? EPERM : 0;
	}
	return ENOENT;
}

void host_probe_subids(struct host *h)
{
	char name[NAME_SIZE];
	int num = find_gaining("newuidmap");

	if (num == 0)
		num = find_gaining("newgidmap");
	find_user_name(name);
	if (num != ENOENT && !(has_range("/etc/subuid", name) && has_range("/etc/subgid", name)))
		num = ENOENT;
	if (num == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		num = EPERM;
	host_set(h, HOST_SUBIDS,
		num == 0        ? HOST_CAUSE_NONE
		: num == ENOENT ? HOST_CAUSE_NO_SUBIDS
				: HOST_CAUSE_NO_SETUID,
		num);
}
