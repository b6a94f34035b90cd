/*
 * folders - the folders of sessions, without a store.
 *
 *     folders ROOT id                    which root it is
 *     folders ROOT make ID               and confirms it; `draft ID` does not
 *     folders ROOT list                  "ID AGE" each, with "new" where it was not confirmed
 *     folders ROOT remove ID...          each that fails is told; status 3 for busy
 *     folders ROOT move ID FROM TO       prints "moved" or "copied"
 *     folders ROOT by-path ID            removes it as many do: by paths, which a race leads astray
 *     folders ROOT hold ID N             locks the workspace shared, says so, and waits for its end
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/own.h"
#include "session/folder/session.h"

static int tell(int r, const struct err *e)
{
	if (r < 0)
		fprintf(stderr, "folders: %s\n", e->text);
	return r < 0 ? (r == -EBUSY ? 3 : 1) : 0;
}

static int do_id(int root, char **args)
{
	char id[STORE_ID_SIZE];
	struct err e = { 0 };
	int r = session_root_id(root, id, &e);

	(void)args;
	if (r == 0)
		puts(id);
	return tell(r, &e);
}

static int do_draft(int root, char **args)
{
	struct err e = { 0 };

	return tell(session_make_folder(root, args[0], "{}\n", &e), &e);
}

static int do_make(int root, char **args)
{
	struct err e = { 0 };
	int status = do_draft(root, args);

	return status ? status : tell(session_confirm_folder(root, args[0], &e), &e);
}

static int see(void *of, const struct session_folder *x)
{
	(void)of;
	printf("%s %" PRId64 "%s\n", x->id, x->age_s, x->is_new ? " new" : "");
	return 0;
}

static int do_list(int root, char **args)
{
	struct err e = { 0 };

	(void)args;
	return tell(session_each_folder(root, see, NULL, &e), &e);
}

static int do_remove(int root, char **args)
{
	int status = 0;

	for (; *args; args++) {
		struct err e = { 0 };
		int one = tell(session_remove_folder(root, *args, &e), &e);

		status = one ? one : status;
	}
	return status;
}

static int do_move(int root, char **args)
{
	bool is_copied = false;
	struct err e = { 0 };
	int r = session_move_workspace(root, args[0], strtoull(args[1], NULL, 10),
		strtoull(args[2], NULL, 10), &is_copied, &e);

	if (r == 0)
		puts(is_copied ? "copied" : "moved");
	return tell(r, &e);
}

static int do_hold(int root, char **args)
{
	struct err e = { 0 };
	own_fd int workspace =
		session_open_workspace(root, args[0], strtoull(args[1], NULL, 10), &e);
	own_fd int lock = workspace < 0 ? -1 : openat(workspace, "lock", O_RDONLY | O_CLOEXEC);

	if (workspace < 0)
		return tell(workspace, &e);
	if (lock < 0 || flock(lock, LOCK_SH | LOCK_NB) < 0)
		err(1, "lock");
	puts("held");
	fflush(stdout);
	return getchar() == EOF ? 0 : 1;
}

/* Looks at each, and then does what it saw: the link comes in between. */
static void remove_by_path(const char *path)
{
	struct stat st;
	DIR *dir;

	if (lstat(path, &st) < 0)
		return;
	if (!S_ISDIR(st.st_mode)) {
		unlink(path);
		return;
	}
	usleep(500); /* as long as it may take on a busy machine */
	dir = opendir(path);
	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
		char inner[PATH_MAX];

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) < PATH_MAX)
			remove_by_path(inner);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

static int do_by_path(int root, char **args)
{
	if (fchdir(root) < 0)
		err(1, "fchdir");
	remove_by_path(args[0]);
	return 0;
}

static const struct {
	const char *name;
	int words;
	int (*run)(int root, char **args);
} verbs[] = {
	{ "id", 0, do_id },
	{ "make", 1, do_make },
	{ "draft", 1, do_draft },
	{ "list", 0, do_list },
	{ "remove", 1, do_remove },
	{ "move", 3, do_move },
	{ "by-path", 1, do_by_path },
	{ "hold", 2, do_hold },
};

int main(int argc, char **argv)
{
	struct err e = { 0 };
	own_fd int root = -1;

	if (argc < 3)
		errx(2, "usage: folders ROOT VERB ...");
	setenv("BAWN_SANDBOX_ROOT", argv[1], 1);
	root = session_open_root(-1, true, &e);
	if (root < 0)
		return tell(root, &e);
	for (size_t i = 0; i < COUNT_OF(verbs); i++)
		if (strcmp(verbs[i].name, argv[2]) == 0 && argc >= 3 + verbs[i].words)
			return verbs[i].run(root, argv + 3);
	errx(2, "%s: no such verb, or too few words", argv[2]);
}
