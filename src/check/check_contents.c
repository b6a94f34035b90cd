/*
 * check_contents - looks at what the binds of a spec would bring into the cage.
 *
 * Runs as:     the operator, in the process that asked.
 * Enters with: a settled spec, and where ~ and the project are.
 * Leaves:      errors for sources that are not there, warnings for what is inside the others.
 * Must not:    follow a symlink below a source, write, wait for anybody.
 *
 * A source is the operator's own word and is resolved by ordinary rules, once; below it nothing
 * is followed.
 */
#include "check/check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "check/check_inside.h"
#include "plan/plan_root.h"

#define MAX_ALL_ENTRIES ((size_t)100000) /* of all binds together */

/* The source as a path of this host; NULL, and says so, where it cannot be told. */
static const char *contents_locate(
	struct spec *s, const struct check_places *places, const struct spec_item *item)
{
	const char *from = item->bind.from, *path = from, *rest;
	enum plan_root root = plan_root_of(from, &rest);

	if (root == PLAN_ROOT_HOME && !places->home) {
		diags_error(&s->diags, item->at, "set HOME, or write the whole path",
			"binds: %s: it is not known where ~ is", check_shown(s, from));
		return NULL;
	}
	if (root == PLAN_ROOT_HOME)
		path = arena_printf(&s->arena, "%s%s", places->home, rest);
	else if (root == PLAN_ROOT_PROJECT)
		path = arena_printf(&s->arena, "%s%s", places->project, rest);
	if (!path)
		diags_error(&s->diags, item->at, NULL, "binds: not enough memory to check them");
	return path;
}

/* Opens the source without opening what it is; says why it cannot be. A descriptor or -errno. */
static int contents_open_source(struct spec *s, const struct spec_item *item, const char *path)
{
	int fd = file_open(path, O_PATH);
	const char *shown = fd < 0 ? check_shown(s, item->bind.from) : "";

	if (fd == -ENOENT || fd == -ENOTDIR)
		diags_error(&s->diags, item->at, "create it, or remove the bind",
			"binds: %s does not exist on this host", shown);
	else if (fd < 0)
		diags_error(&s->diags, item->at, NULL, "binds: %s cannot be opened: %s", shown,
			strerror(-fd));
	return fd;
}

/* Where a descriptor really leads; the path it was opened by where the kernel does not say. */
static const char *real_path(struct spec *s, int fd, const char *path)
{
	char real[PATH_MAX];
	ssize_t n = file_path_of(fd, real);
	const char *copy = n < 0 ? NULL : arena_copy(&s->arena, real, (size_t)n);

	return copy ? copy : path;
}

static void contents_look_inside(struct check_bind *b, int fd, size_t *left_of_all)
{
	size_t left = *left_of_all < CHECK_MAX_ENTRIES ? *left_of_all : CHECK_MAX_ENTRIES;
	size_t most = left;
	bool is_whole = check_walk(fd, &left, check_inside, b);

	*left_of_all -= most - left;
	check_say_rest(b);
	if (!is_whole)
		diags_warn(&b->spec->diags, b->item->at, "bind only what is needed",
			"binds: %s is too large to look at whole: looked at the first %zu entries "
			"only, down to %u levels",
			check_shown(b->spec, b->item->bind.from), most - left, CHECK_MAX_DEPTH);
	if (b->is_capped)
		diags_warn(&b->spec->diags, b->item->at, "bind only what is needed",
			"binds: %s has more .pth and git files than are read: some were passed "
			"over",
			check_shown(b->spec, b->item->bind.from));
}

static void check_bind_of(
	struct spec *s, const struct spec_item *item, const char *path, size_t *left_of_all)
{
	own_fd int fd = file_open(path, O_PATH);
	own(check_bind) struct check_bind b = { 0 };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	if (!check_bind_init(&b, s, item, real_path(s, fd, path))) {
		diags_error(&s->diags, item->at, NULL, "binds: not enough memory to check them");
		return;
	}
	check_source_itself(&b, st.st_mode & S_IFMT);
	if (S_ISDIR(st.st_mode) && *left_of_all)
		contents_look_inside(&b, fd, left_of_all);
}

void check_contents(struct spec *s, const struct check_places *places)
{
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);
	const char **paths = arena_array(&s->arena, binds->count, sizeof(const char *));
	size_t left = MAX_ALL_ENTRIES;
	bool is_said = false;

	if (!paths) {
		diags_error(&s->diags, binds->at, NULL, "binds: not enough memory to check them");
		return;
	}
	/* Errors first: only so many diagnostics are kept. */
	for (size_t i = 0; i < binds->count; i++) {
		const char *path = contents_locate(s, places, &binds->items[i]);
		own_fd int fd = path ? contents_open_source(s, &binds->items[i], path) : -1;

		paths[i] = fd < 0 ? NULL : path;
	}
	for (size_t i = 0; i < binds->count; i++) {
		if (paths[i])
			check_bind_of(s, &binds->items[i], paths[i], &left);
		if (!left && !is_said)
			diags_warn(&s->diags, binds->items[i].at, "bind only what is needed",
				"binds: together they hold more than the %zu entries that are "
				"looked at: what is after this one was not looked into",
				MAX_ALL_ENTRIES);
		is_said = !left;
	}
}
