/*
 * keeper_team - gives a user's cage the group of the project, where the operator is in that group.
 *
 * Runs as:  the keeper of an ordinary user, while the cage's first process waits for its maps.
 * Leaves:   the map of groups written, by a program that lives for one system call.
 * Must not: leave a file with a set-group-id bit that has a name.
 *
 * An overlay copies a file up only if its owner and its group have numbers in the user namespace
 * that mounted it. A user's namespace has one group, and the kernel takes the effective one of who
 * writes the map. A file that belongs to the operator, has the group and its set-group-id bit gives
 * that to the process that executes it: who is in the group may make one. The cage's processes get
 * no right by that which they had not already by the operator's supplementary groups.
 */
#include "keeper/start/keeper_team.h"

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
#include "base/own.h"

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

int keeper_team_owner(const struct cage_ids *ids, int below, struct stat *ret)
{
	if (fstat(below, ret) < 0)
		return -errno;
	/* What is made in it has the group, as in the project. */
	ret->st_mode &= ids->is_team && ret->st_gid == ids->gid ? S_ISGID | 0777 : 0777;
	if (geteuid() != 0) {
		ret->st_uid = (uid_t)-1;
		ret->st_gid = ids->is_team ? ids->gid : (gid_t)-1;
	}
	return 0;
}
