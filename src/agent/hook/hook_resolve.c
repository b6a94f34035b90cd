#include <errno.h>
#include <string.h>

#include "agent/hook/hook.h"

#define MOST_LINKS 40 /* as many as the kernel follows */

/* What is still to be walked, from its end in room that is large enough. */
struct rest {
	char room[2 * HOOK_PATH_SIZE];
	size_t at;
};

/* Puts a text, and a slash behind it, before what is there. */
static bool put_before(struct rest *rest, const char *text, size_t n)
{
	if (n + 1 > rest->at)
		return false;
	rest->room[--rest->at] = '/';
	rest->at -= n;
	memcpy(rest->room + rest->at, text, n);
	return true;
}

/* The next name, cut off in place; NULL: there is none. */
static char *next_name(struct rest *rest)
{
	char *name;

	while (rest->at < sizeof(rest->room) && rest->room[rest->at] == '/')
		rest->at++;
	if (rest->at == sizeof(rest->room))
		return NULL;
	name = rest->room + rest->at;
	rest->at = (size_t)((char *)memchr(name, '/', sizeof(rest->room) - rest->at) - rest->room);
	rest->room[rest->at++] = '\0';
	return name;
}

static void go_up(char *path, size_t *len)
{
	while (*len && path[--*len] != '/')
		continue;
	path[*len] = '\0';
}

bool hook_resolve(const struct hook_use *use, hook_read_link *read_link, void *of,
	char ret[static HOOK_PATH_SIZE])
{
	struct rest rest = { .at = sizeof(rest.room) };
	char target[HOOK_PATH_SIZE];
	const char *name;
	size_t len = 0;
	int links = 0;
	bool is_there = true;

	ret[0] = '\0';
	if (!put_before(&rest, use->path, strlen(use->path)))
		return false;
	if (use->path[0] != '/' && !put_before(&rest, use->folder, strlen(use->folder)))
		return false;
	while ((name = next_name(&rest))) {
		size_t n = strlen(name);
		long size;

		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0) {
			go_up(ret, &len);
			is_there = true; /* and if it is not, that is found out again */
			continue;
		}
		if (len + n + 2 > HOOK_PATH_SIZE)
			return false;
		ret[len] = '/';
		memcpy(ret + len + 1, name, n + 1);
		size = is_there ? read_link(of, ret, target, sizeof(target)) : -ENOENT;
		is_there = is_there && (size >= 0 || size == -EINVAL);
		if (size < 0 || (size_t)size >= sizeof(target)) {
			len += n + 1;
			continue;
		}
		if (target[0] == '/')
			len = 0;
		ret[len] = '\0';
		if (++links > MOST_LINKS || !put_before(&rest, target, (size_t)size))
			return false;
	}
	if (len == 0)
		memcpy(ret, "/", 2);
	return true;
}
