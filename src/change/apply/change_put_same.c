/*
 * change_put_same - files that are not the same, and as good as that: git's index, and merged
 * texts. Reads; changes nothing.
 */
#include <fcntl.h>

#include "base/file.h"
#include "base/own.h"
#include "change/apply/change_put.h"
#include "change/scan/change_open.h"

/* What the run left at the path of the effect. A descriptor or -errno. */
static int put_same_open_layer(const struct change_job *j, const struct change_put *p)
{
	const char *path = p->x->path;
	int top = change_layer_of(j->q->git, j->q->layer, &path);

	return file_open_beneath(top, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

/* git rewrites its index to remember what it has looked at: is p->old the same one to it? */
static bool is_same_index(
	const struct change_job *j, struct change_put *p, const char *bytes, size_t n)
{
	own_free char *now = NULL;
	size_t size = 0;

	return S_ISREG(p->old.st_mode) && change_put_open_old(j, p) == 0 &&
	       change_put_read_whole(p->host, CHANGE_GIT_MAX_INDEX, &now, &size) == 0 &&
	       change_git_index_is_same(bytes, n, now, size);
}

bool change_put_is_index_before(const struct change_job *j, struct change_put *p)
{
	own_free char *base = NULL;
	size_t size = 0;

	return p->git.is_index && p->x->has_base && !p->x->has_moved &&
	       change_put_read_base(j, p, CHANGE_GIT_MAX_INDEX, &base, &size) == 0 &&
	       is_same_index(j, p, base, size);
}

/* An apply put it there, and git has looked at it since. */
static bool is_index_after(const struct change_job *j, struct change_put *p)
{
	own_fd int fd = put_same_open_layer(j, p);
	own_free char *layer = NULL;
	size_t size = 0;

	return fd >= 0 && file_read_all(fd, CHANGE_GIT_MAX_INDEX, &layer, &size) == 0 &&
	       is_same_index(j, p, layer, size);
}

/* An earlier call merged it: it must not lose now what is the host's own. */
static bool is_merged(const struct change_job *j, struct change_put *p)
{
	own_fd int layer = put_same_open_layer(j, p);

	return layer >= 0 && change_put_open_old(j, p) == 0 && change_put_is_merged(j, p, layer);
}

bool change_put_has_all(const struct change_job *j, struct change_put *p)
{
	if (p->x->after.type != CHANGE_FILE)
		return false;
	return p->git.is_index ? is_index_after(j, p) : change_put_can_merge(p) && is_merged(j, p);
}
