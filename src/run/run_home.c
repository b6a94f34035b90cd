/*
 * run_home - what is kept of the private home, between the runs of a project.
 *
 * Runs as:  the operator.
 * Leaves:   STATE/home/PROJECT, where PROJECT is a digest of the project's path: folders that the
 *           cages of that project write to, and nobody else reads.
 * Must not: follow a link; what is below such a folder is a stranger's.
 */
#include "run/run_home.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/tree.h"

#define MOST_NAMES 65536 /* bytes */
#define MOST_KEPT  (sizeof((struct run_home_kept){ 0 }.names) / sizeof(char *))
#define ID_SIZE    33 /* half of a digest, and what ends it */

static void name_project(const char *project, char ret[static ID_SIZE])
{
	char digest[SHA256_HEX_SIZE];

	sha256_hex(project, strlen(project), digest);
	memcpy(ret, digest, ID_SIZE - 1);
	ret[ID_SIZE - 1] = '\0';
}

static int home_open_made(int at, const char *name, struct err *e)
{
	int fd = mkdirat(at, name, 0700) == 0 || errno == EEXIST
			 ? file_open_name(at, name, O_RDONLY | O_DIRECTORY)
			 : -errno;

	return fd >= 0 ? fd
		       : err_set(e, ERR_REFUSED, -fd,
				 "cannot keep the private home in bawn's state ('%s'): %s", name,
				 strerror(-fd));
}

/* For who looks at the folder: which project it is of. */
static int note_project(int folder, const char *project, struct err *e)
{
	own_fd int fd = openat(folder, "project", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : file_write_all(fd, project, strlen(project));

	if (r == 0 || r == -EEXIST)
		return 0;
	return err_set(e, ERR_REFUSED, -r, "cannot note whose home is kept: %s", strerror(-r));
}

/* Its own open file for each run, so that each has a lock of its own. */
static int take_lock(int folder, int *lock, struct err *e)
{
	if (*lock >= 0)
		return 0;
	*lock = file_open_name(folder, ".", O_RDONLY | O_DIRECTORY);
	if (*lock >= 0 && flock(*lock, LOCK_SH | LOCK_NB) == 0)
		return 0;
	if (*lock >= 0 && errno == EWOULDBLOCK)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EBUSY,
				"cannot use the state of this project's runs: it is being removed"),
			"try again");
	return err_set(e, ERR_REFUSED, *lock < 0 ? -*lock : errno,
		"cannot lock what is kept for this project's runs: %s",
		strerror(*lock < 0 ? -*lock : errno));
}

int run_home_open(int state, const char *project, const char *name, int *lock, struct err *e)
{
	own_fd int home = home_open_made(state, "home", e), folder = -1, kept = -1;
	char id[ID_SIZE];
	struct stat st;
	int r;

	if (home < 0)
		return home;
	name_project(project, id);
	folder = home_open_made(home, id, e);
	r = folder < 0 ? folder : take_lock(folder, lock, e);
	if (r == 0)
		r = note_project(folder, project, e);
	if (r < 0)
		return r;
	/* The folders of the home are in one of their own, so that no name is taken. */
	kept = home_open_made(folder, "kept", e);
	if (kept < 0)
		return kept;
	/* A run may have closed it, to itself and to those that follow. */
	if (fstatat(kept, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
		(st.st_mode & S_IRWXU) != S_IRWXU && fchmodat(kept, name, S_IRWXU, 0) < 0)
		return err_set(e, ERR_REFUSED, errno,
			"cannot open what is kept of the private home ('%s'): %s", name,
			strerror(errno));
	return home_open_made(kept, name, e);
}

/* The folder of a project; -ENOENT where nothing is kept for it. */
static int open_project(int home, const char *project, char ret_id[static ID_SIZE])
{
	name_project(project, ret_id);
	return home < 0 ? -ENOENT : file_open_name(home, ret_id, O_RDONLY | O_DIRECTORY);
}

/* On disk, the name of a folder has + for /. */
static void change_all(char *name, char from, char to)
{
	for (; *name; name++)
		if (*name == from)
			*name = to;
}

bool run_home_resolve(const char *name, char ret[static PATH_MAX])
{
	char above[PATH_MAX], real[PATH_MAX];
	const char *last = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	int n = (int)(last - name);

	if (realpath(name, ret))
		return true;
	if (errno != ENOENT || !*last || str_eq(last, "..") || n >= PATH_MAX)
		return false;
	snprintf(above, sizeof(above), "%.*s", n ? n : 1, n ? name : ".");
	/* Its folder may be gone as well. */
	if (!realpath(above, real))
		return errno == ENOENT && name[0] == '/' &&
		       snprintf(ret, PATH_MAX, "%s", name) < PATH_MAX;
	return snprintf(ret, PATH_MAX, "%s/%s", str_eq(real, "/") ? "" : real, last) < PATH_MAX;
}

int run_home_list(int state, const char *project, struct run_home_kept *ret)
{
	own_fd int home = file_open_name(state, "home", O_RDONLY | O_DIRECTORY), kept = -1;
	char id[ID_SIZE];
	own_fd int folder = open_project(home, project, id);
	struct tree_names names = { 0 };
	int r;

	*ret = (struct run_home_kept){ 0 };
	if (folder < 0)
		return -ENOENT;
	kept = file_open_name(folder, "kept", O_RDONLY | O_DIRECTORY);
	r = kept < 0 ? kept : tree_names_read(kept, MOST_NAMES, &names);
	for (size_t i = 0; r == 0 && i < names.count && i < MOST_KEPT; i++) {
		ret->names[ret->count] = strdup(names.sorted[i]);
		if (ret->names[ret->count])
			change_all(ret->names[ret->count++], '+', '/');
		else
			r = -ENOMEM;
	}
	tree_names_done(&names);
	return r;
}

void run_home_kept_done(struct run_home_kept *kept)
{
	for (size_t i = 0; i < kept->count; i++)
		free(kept->names[i]);
	*kept = (struct run_home_kept){ 0 };
}

static int forget_one(int folder, const char *name, struct err *e)
{
	own_fd int kept = file_open_name(folder, "kept", O_RDONLY | O_DIRECTORY);
	char on_disk[NAME_MAX + 1];
	struct stat st;

	if (snprintf(on_disk, sizeof(on_disk), "%s", name) >= (int)sizeof(on_disk))
		return -ENOENT;
	change_all(on_disk, '/', '+');
	if (kept < 0 || fstatat(kept, on_disk, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -ENOENT;
	return tree_remove(kept, on_disk, e);
}

int run_home_forget(int state, const char *project, const char *name, struct err *e)
{
	own_fd int home = file_open_name(state, "home", O_RDONLY | O_DIRECTORY);
	char id[ID_SIZE];
	own_fd int folder = open_project(home, project, id);

	if (folder < 0)
		return -ENOENT;
	if (flock(folder, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EBUSY,
				"cannot remove the state of this project's runs: a run uses it"),
			"end that run first");
	return name ? forget_one(folder, name, e) : tree_remove(home, id, e);
}
