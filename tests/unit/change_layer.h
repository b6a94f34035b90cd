#pragma once

/*
 * Layers made by hand: "layer" and "below" in the working directory, as an overlay has them, and
 * "base". Every path is relative to the working directory.
 */
#include <sys/xattr.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/change.h"
#include "change_place.h"

#define SECOND 1000000000LL

static inline void put(const char *path, const void *bytes, size_t n)
{
	own_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && file_write_all(fd, bytes, n) == 0 && fchmod(fd, 0644) == 0);
}

static inline void put_text(const char *path, const char *text)
{
	put(path, text, strlen(text));
}

static inline void put_both(const char *name, const char *below, const char *layer)
{
	char path[512];

	snprintf(path, sizeof(path), "below/%s", name);
	put_text(path, below);
	snprintf(path, sizeof(path), "layer/%s", name);
	put_text(path, layer);
}

static inline void folder(const char *path)
{
	CHECK(mkdir(path, 0755) == 0 && chmod(path, 0755) == 0);
}

static inline void folder_both(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "below/%s", name);
	folder(path);
	snprintf(path, sizeof(path), "layer/%s", name);
	folder(path);
}

static inline void whiteout(const char *path)
{
	CHECK(mknod(path, S_IFCHR, 0) == 0);
}

static inline void attribute(const char *path, const char *name, const char *value)
{
	CHECK(lsetxattr(path, name, value, strlen(value), 0) == 0);
}

/* A new place in the working directory. */
static inline void start_layer(const char *name)
{
	folder(name);
	CHECK(chdir(name) == 0);
	folder("layer");
	folder("below");
	folder("base");
}

static inline void end_layer(void)
{
	CHECK(chdir("..") == 0);
}

static inline int scan_with(struct change_scan q, struct change_effects *ret, struct err *e)
{
	own_fd int layer = open("layer", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	own_fd int below = open("below", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	own_fd int base = open("base", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	change_effects_init(ret);
	q.layer = layer;
	q.below = below;
	q.base = q.base < 0 ? -1 : base;
	if (!q.began.tv_sec)
		q.began.tv_sec = INT32_MAX; /* nothing has moved */
	return change_scan(&q, ret, e);
}

static inline void scan(struct change_effects *ret)
{
	struct err e = { 0 };
	int r = scan_with((struct change_scan){ 0 }, ret, &e);

	if (r < 0)
		printf("%s\n", e.text);
	CHECK(r == 0);
}

/* Is refused, with a sentence that has `part` in it. */
static inline void check_refused(const char *part, const char *file, int line)
{
	own(change_effects) struct change_effects x;
	struct err e = { 0 };
	int r = scan_with((struct change_scan){ 0 }, &x, &e);

	check_that(r < 0, "refused", file, line);
	check_that(strstr(e.text, part) != NULL, e.text, file, line);
}

#define CHECK_REFUSED(part) check_refused(part, __FILE__, __LINE__)

/* The effect of a path; an empty one where there is none. */
static inline const struct change_effect *find(const struct change_effects *x, const char *path)
{
	static const struct change_effect none = { .path = "", .change = 99 };

	for (size_t i = 0; i < x->count; i++)
		if (str_eq(x->items[i].path, path))
			return &x->items[i];
	return &none;
}

/* All effects as one text: "added a, deleted b, renamed c from d". */
static inline const char *list(const struct change_effects *x)
{
	static char text[4096];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < x->count && n < sizeof(text) - 600; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %s%s%s", i ? ", " : "",
			change_change_word(x->items[i].change), x->items[i].path,
			x->items[i].from ? " from " : "", x->items[i].from ? x->items[i].from : "");
	return text;
}
