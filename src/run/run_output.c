#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "run/run_spec.h"

/* The folder a file is in, really; `path` may have links in it, but none that leave the project. */
static int output_open_parent(
	const struct run_place *place, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char folder[4096], whole[4096 + 1], real[4096];
	int ret;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1,
		slash ? path : ".");
	*ret_name = slash ? slash + 1 : path;
	if (folder[0] == '/')
		snprintf(whole, sizeof(whole), "%s", folder);
	else if (!getcwd(real, sizeof(real)) ||
		 snprintf(whole, sizeof(whole), "%s/%s", real, folder) >= (int)sizeof(whole))
		return -ENAMETOOLONG;
	ret = run_resolve_source(whole, place, real);
	return ret < 0 ? ret : file_open_real(real, O_PATH | O_DIRECTORY);
}

int run_open_output(
	const struct run_place *place, const char *path, const char *what, struct err *e)
{
	const char *name, *why = NULL;
	own_fd int folder = output_open_parent(place, path, &name);
	own_fd int fd = folder < 0 ? -1
				   : openat(folder, name,
					     O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK |
						     O_NOCTTY | O_CLOEXEC,
					     0666);
	struct stat st;

	if (folder < 0)
		why = folder == -EXDEV ? "it leads out of the project" : strerror(-folder);
	else if (fd < 0 || fstat(fd, &st) < 0)
		why = errno == ELOOP ? "it is a link" : strerror(errno);
	else if (!S_ISREG(st.st_mode) || st.st_mode & (S_ISUID | S_ISGID))
		why = "it is not a plain file";
	if (why)
		return err_set(
			e, ERR_REFUSED, EINVAL, "cannot write the %s to '%s': %s", what, path, why);
	return take_fd(&fd);
}
