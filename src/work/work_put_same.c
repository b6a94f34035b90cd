/*
 * work_put_same - files that are not the same, and as good as that: git's index, and merged texts.
 * Reads; changes nothing.
 */
#include <fcntl.h>

#include "base/file.h"
#include "base/own.h"
#include "work/work_open.h"
#include "work/work_put.h"

/* What the run left at the path of the effect. A descriptor or -errno. */
static int open_layer(const struct work_job *j, const struct work_put *p)
{
	const char *path = p->x->path;
	int top = work_layer_of(j->q->git, j->q->layer, &path);

	return file_open_beneath(top, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

/* git rewrites its index to remember what it has looked at: is p->old the same one to it? */
static bool is_same_index(const struct work_job *j, struct work_put *p, const char *bytes, size_t n)
{
	own_free char *now = NULL;
	size_t size = 0;

	return S_ISREG(p->old.st_mode) && work_put_open_old(j, p) == 0 &&
	       work_put_read_whole(p->host, WORK_GIT_MAX_INDEX, &now, &size) == 0 &&
	       work_git_index_is_same(bytes, n, now, size);
}

bool work_put_is_index_before(const struct work_job *j, struct work_put *p)
{
	own_free char *base = NULL;
	size_t size = 0;

	return p->git.is_index && p->x->has_base && !p->x->has_moved &&
	       work_put_read_base(j, p, WORK_GIT_MAX_INDEX, &base, &size) == 0 &&
	       is_same_index(j, p, base, size);
}

/* An apply put it there, and git has looked at it since. */
static bool is_index_after(const struct work_job *j, struct work_put *p)
{
	own_fd int fd = open_layer(j, p);
	own_free char *layer = NULL;
	size_t size = 0;

	return fd >= 0 && file_read_all(fd, WORK_GIT_MAX_INDEX, &layer, &size) == 0 &&
	       is_same_index(j, p, layer, size);
}

/* An earlier call merged it: it must not lose now what is the host's own. */
static bool is_merged(const struct work_job *j, struct work_put *p)
{
	own_fd int layer = open_layer(j, p);

	return layer >= 0 && work_put_open_old(j, p) == 0 && work_put_is_merged(j, p, layer);
}

bool work_put_has_all(const struct work_job *j, struct work_put *p)
{
	if (p->x->after.type != WORK_FILE)
		return false;
	return p->git.is_index ? is_index_after(j, p) : work_put_can_merge(p) && is_merged(j, p);
}
