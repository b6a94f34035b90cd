/*
 * Drives change_copy for tests:
 *
 *	copying begin PROJECT LAYER      LAYER/copy and LAYER/list
 *	copying finish LAYER             LAYER/upper
 *
 * A refusal goes to standard error and is status 1.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own.h"
#include "base/tree.h"
#include "change/copy/change_copy.h"

static int open_folder(int at, const char *path)
{
	return openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int begin(const char *project, int layer, struct err *e)
{
	const struct tree_options options = { .is_plain = true, .drops_ids = true };
	own_fd int from = open_folder(AT_FDCWD, project);
	own_fd int to = mkdirat(layer, "copy", 0755) < 0 ? -1 : open_folder(layer, "copy");
	own_fd int list = openat(layer, "list", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = tree_copy(from, to, &options, e);

	if (r == 0)
		r = change_copy_list(to, list, e);
	return r == 0 ? change_copy_settle(list, e) : r;
}

int main(int argc, char **argv)
{
	own_fd int layer = argc > 2 ? open_folder(AT_FDCWD, argv[argc - 1]) : -1;
	struct err e = { 0 };
	int r;

	if (layer < 0)
		return 2;
	r = strcmp(argv[1], "begin") == 0 ? begin(argv[2], layer, &e)
					  : change_copy_finish(layer, NULL, &e);
	if (r < 0)
		fprintf(stderr, "%s\n", e.text);
	return r < 0 ? 1 : 0;
}
