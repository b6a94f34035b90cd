/*
 * keeper_ids - who a cage's processes are on the host.
 *
 * Runs as: the keeper.
 *
 * A user's cage runs as the user, with the group of the project where that is another group of the
 * user's. Root's cage gets an id that belongs to nobody: a reserved base plus the keeper's pid, so
 * that two runs at one time never share an id and nothing has to be stored. Another pid namespace
 * begins its pids anew, so its inode is mixed in. Runs of a session share files with later ones,
 * and get the base itself, which is no pid's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage_break.h"
#include "keeper/start/keeper_sources.h"

/* Above what systemd, useradd and newuidmap give away, below the sign bit; pids end at 2^22. */
#define RESERVED_BASE 2130706432U
#define RESERVED_SIZE (1U << 22)

/*
 * An id of this user namespace that is nobody's: from the reserved range, or where a container has
 * fewer ids, from the upper half of its largest range; 0 if there is none.
 */
static uint32_t ids_pick_id(const char *path, uint32_t chance)
{
	char text[4096];
	uint64_t best = 0, best_size = 1;

	if (file_read_small(path, text, sizeof(text)) <= 0)
		return 0;
	for (char *line = text; line && *line; line = strchr(line, '\n')) {
		uint64_t range[3]; /* from, outside, how many */

		line += *line == '\n';
		if (!num_scan(line, 10, range, 3))
			break;
		if (range[0] <= RESERVED_BASE &&
			range[0] + range[2] >= (uint64_t)RESERVED_BASE + RESERVED_SIZE)
			return RESERVED_BASE + chance % RESERVED_SIZE;
		if (range[2] > best_size) {
			best = range[0] + range[2] / 2;
			best_size = range[2];
		}
	}
	return best ? (uint32_t)(best + chance % (best_size / 2)) : 0;
}

/* The group of the project, which is one of the operator's others. */
static int choose_team(const char *project, struct cage_ids *ret, struct err *e)
{
	struct stat st;

	if (stat(project, &st) < 0 || st.st_gid == 0 || !ids_has_group(st.st_gid))
		return err_set(e, ERR_REFUSED, EPERM,
			"cannot give the cage the group of '%s': it is not one of yours any more",
			project);
	ret->gid = st.st_gid;
	ret->is_team = true;
	return 0;
}

int keeper_choose_ids(const struct keeper_request *q, struct cage_ids *ret, struct err *e)
{
	bool in_session = q->workspace >= 0 || plan_find(q->plan, PLAN_AWAIT, NULL);
	uint32_t chance;
	struct stat pids;

	*ret = (struct cage_ids){ .uid = ids_user(), .gid = ids_group() };
	if (plan_find(q->plan, PLAN_IDS, "team"))
		return choose_team(q->project, ret, e);
	if (!plan_find(q->plan, PLAN_IDS, "reserved"))
		return 0;
	ret->is_given = true;
	if (cage_is_broken("ids"))
		return 0;
	chance = in_session ? 0 : (uint32_t)getpid();
	if (stat("/proc/self/ns/pid", &pids) == 0)
		chance += (uint32_t)pids.st_ino * 2654435761U;
	ret->uid = ids_pick_id("/proc/self/uid_map", chance);
	ret->gid = ids_pick_id("/proc/self/gid_map", chance);
	if (!ret->uid || !ret->gid)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EPERM,
				"cannot run as root here: a cage of root needs an id of its own, "
				"and this container has none"),
			"run bawn as an ordinary user");
	return 0;
}

/* --- a team's group --- */

/*
 * Runs while the cage's first process waits for its maps; the map of groups is written by a program
 * that makes one system call. Must not leave a file with a set-group-id bit that has a name.
 *
 * An overlay copies a file up only if its owner and its group have numbers in the user namespace
 * that mounted it. A user's namespace has one group, and the kernel takes the effective group of
 * the process that writes the map. A file that belongs to the operator, has the group and its
 * set-group-id bit gives that group to the process that executes it; every member of the group may
 * make such a file. The cage's processes gain no right that the operator's supplementary groups
 * did not give them already.
 */

#define PROCESS 3 /* what the program finds open: a folder of /proc */
#define MAP     4 /* and the map */

extern const unsigned char keeper_group_program[];
extern const unsigned keeper_group_program_size;

/* A program without a name that has the group. A descriptor for execution, or -errno. */
static int make_program(int folder, gid_t group)
{
	own_fd int made = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0700);
	struct statvfs fs;
	char link[64];
	int r = made < 0 ? -errno
			 : file_write_all(made, keeper_group_program, keeper_group_program_size);

	if (r == 0 && fstatvfs(made, &fs) < 0)
		r = -errno;
	if (r == 0 && fs.f_flag & (ST_NOSUID | ST_NOEXEC))
		r = -EPERM;
	if (r == 0 && (fchown(made, (uid_t)-1, group) < 0 || fchmod(made, S_ISGID | 0510) < 0))
		r = -errno;
	if (r < 0)
		return r;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", made);
	r = file_open(link, O_PATH);
	/* What is open for writing cannot be executed. */
	close(take_fd(&made));
	return r;
}

static _Noreturn void be_program(int program, int process, int map)
{
	const char *const name[] = { "bawn-group", NULL }, *const nothing[] = { NULL };

	/* Out of the way of the two numbers. */
	program = fcntl(program, F_DUPFD_CLOEXEC, MAP + 1);
	process = fcntl(process, F_DUPFD_CLOEXEC, MAP + 1);
	map = fcntl(map, F_DUPFD_CLOEXEC, MAP + 1);
	if (dup2(process, PROCESS) == PROCESS && dup2(map, MAP) == MAP)
		syscall(SYS_execveat, program, "", name, nothing, AT_EMPTY_PATH);
	_exit(errno);
}

/* 0 or -errno. */
static int run_program(int program, int process, int map)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		be_program(program, process, map);
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int map_group(pid_t pid, gid_t group, unsigned inside, int folder)
{
	own_fd int program = make_program(folder, group);
	own_fd int process = -1, ours = -1, theirs = -1;
	char path[32], text[48];
	int ends[2], n;

	if (program < 0)
		return program;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	process = file_open(path, O_PATH | O_DIRECTORY);
	if (process < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return process < 0 ? process : -errno;
	theirs = ends[0];
	ours = ends[1];
	n = snprintf(text, sizeof(text), "%u %u 1\n", inside, group);
	if (write(ours, text, (size_t)n) != n)
		return -EIO;
	return run_program(program, process, theirs);
}

int keeper_team_map(pid_t pid, gid_t group, unsigned inside, int folder, struct err *e)
{
	int r = map_group(pid, group, inside, folder);

	if (r == 0)
		return 0;
	return err_set(e, ERR_SYS, -r,
		"cannot give the cage the group %u of the project, which takes a file system that "
		"is not mounted nosuid or noexec: %s; XDG_STATE_HOME can name another place",
		group, strerror(-r));
}
