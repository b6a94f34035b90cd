/*
 * tool_cage - what a cage says of itself, and why something did not work, in those words.
 *
 * Runs as:  a command in a cage, or anywhere.
 * Must not: decide anything: the kernel has.
 */
#include "agent/tool/tool_cage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_fields.h"
#include "base/own.h"
#include "base/str.h"

/* --- what the cage says --- */

#define MAX_PATHS 4096

/* The reader first, as json_read_fields wants it. */
struct cage_reader {
	struct json_reader json;
	struct arena *arena;
};

static bool cage_read_path(void *reader, void *into)
{
	struct cage_reader *r = reader;
	const char *text;

	if (!json_read_text(&r->json, &text))
		return false;
	*(const char **)into = arena_copy(r->arena, text, strlen(text));
	return *(const char **)into != NULL;
}

static bool read_paths(void *reader, void *into)
{
	struct cage_reader *r = reader;
	struct tool_paths *paths = into;
	const char *text;

	paths->at = arena_array(r->arena, MAX_PATHS, sizeof(*paths->at));
	if (!paths->at || !json_enter_list(&r->json))
		return false;
	while (json_next_item(&r->json)) {
		if (!json_read_text(&r->json, &text) || paths->count == MAX_PATHS)
			return false;
		paths->at[paths->count] = arena_copy(r->arena, text, strlen(text));
		if (!paths->at[paths->count])
			return false;
		paths->count++;
	}
	return !r->json.wrong;
}

bool tool_cage_read(const char *bytes, size_t n, struct tool_cage *ret)
{
	static const struct json_field fields[] = {
		{ "project", cage_read_path, offsetof(struct tool_cage, project), false },
		{ "home", cage_read_path, offsetof(struct tool_cage, home), false },
		{ "read", read_paths, offsetof(struct tool_cage, read), true },
		{ "write", read_paths, offsetof(struct tool_cage, write), true },
		{ "protect", read_paths, offsetof(struct tool_cage, protect), false },
	};
	struct cage_reader r = { .arena = &ret->arena };
	bool is_good;

	*ret = (struct tool_cage){ 0 };
	arena_init(&ret->arena, 4 * TOOL_CAGE_MAX);
	json_read_init(&r.json, bytes, n, TOOL_CAGE_MAX);
	r.json.takes_bytes = true;
	is_good = JSON_READ_FIELDS(&r, fields, ret) && json_read_end(&r.json);
	json_reader_done(&r.json);
	return is_good;
}

void tool_cage_done(struct tool_cage *cage)
{
	arena_done(&cage->arena);
}

static bool covers(const struct tool_paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++)
		if (str_path_within(path, paths->at[i]))
			return true;
	return false;
}

static bool has_below(const struct tool_paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++)
		if (str_path_within(paths->at[i], path))
			return true;
	return false;
}

/* --- paths in sentences --- */

const char *tool_shown(const char *path, char ret[static 256])
{
	size_t n = strlen(path), skip = n > 120 ? n - 120 : 0;

	/* Not from the middle of a character. */
	while (skip && ((unsigned char)path[skip] & 0xc0) == 0x80)
		skip++;
	snprintf(ret, 256, "%s%s", skip ? "…" : "", path + skip);
	return ret;
}

bool tool_full_path(const char *from, const char *path, char *ret, size_t size)
{
	const char *parts[] = { path[0] == '/' ? "" : from, path };
	size_t len = 0;

	for (size_t i = 0; i < 2; i++)
		for (const char *at = parts[i]; *at;) {
			size_t n = strcspn(at += strspn(at, "/"), "/");

			if (n == 2 && memcmp(at, "..", 2) == 0) {
				while (len && ret[--len] != '/')
					;
			} else if (n && !(n == 1 && *at == '.')) {
				if (len + n + 2 > size)
					return false;
				ret[len++] = '/';
				memcpy(ret + len, at, n);
				len += n;
			}
			at += n;
		}
	if (len == 0)
		ret[len++] = '/';
	ret[len] = '\0';
	return true;
}

/* --- sentences --- */

#define LIST_SIZE 160

struct list {
	const struct tool_cage *cage;
	bool is_of_writable;
	struct buf text;
	size_t left_out;
};

static void list_done(struct list *l)
{
	buf_done(&l->text);
}

static void list_path(struct list *l, const char *path)
{
	bool is_writable = covers(&l->cage->write, path);
	const char *mark = is_writable && !l->is_of_writable ? " (writable)" : "";

	if (l->is_of_writable && !is_writable)
		return;
	if (l->text.len + strlen(path) + strlen(mark) + 2 > LIST_SIZE)
		l->left_out++;
	else
		buf_printf(&l->text, "%s%s%s", l->text.len ? ", " : "", path, mark);
}

/* True for paths that every cage has, which messages leave out. */
static bool cage_is_of_system(const char *path)
{
	return str_path_within(path, "/dev") || str_path_within(path, "/proc");
}

static bool cage_is_project(const struct list *l, const char *path)
{
	return l->cage->project && str_eq(path, l->cage->project);
}

static void list_others(
	struct list *l, const struct tool_paths *paths, const struct tool_paths *but)
{
	for (size_t i = 0; i < paths->count; i++)
		if (!cage_is_of_system(paths->at[i]) && !cage_is_project(l, paths->at[i]) &&
			!(but && covers(but, paths->at[i])))
			list_path(l, paths->at[i]);
}

/* "/work (writable), /tmp (writable), /usr and 3 more": the project first. */
static const char *list_places(struct list *l)
{
	if (l->cage->project)
		list_path(l, l->cage->project);
	list_others(l, &l->cage->write, NULL);
	list_others(l, &l->cage->read, &l->cage->write);
	if (l->left_out)
		buf_printf(&l->text, " and %zu more", l->left_out);
	return buf_text(&l->text);
}

static const char *cage_reason_of(const struct tool_attempt *a, int num)
{
	switch (num) {
	case ENOENT:
		return a->link ? "it is a link that leads to nothing"
			       : "there is no such file or folder";
	case ENOTDIR:
		return "something on the way to it is a file, not a folder";
	case ELOOP:
		return "its links lead in a circle";
	case EISDIR:
		return "it is a folder";
	case ENXIO:
		return "it is not a file";
	case EROFS:
		return "it is read-only";
	case EACCES:
	case EPERM:
		return "it is not allowed";
	default:
		return strerror(num);
	}
}

/* Whether the cage has to do with it. */
static bool is_refusal(int num)
{
	return num == ENOENT || num == EACCES || num == EPERM || num == EROFS || num == ENOTDIR ||
	       num == EXDEV || num == EBUSY;
}

/* "leads to '/etc/x', and that "; or nothing. */
static void lead(const struct tool_attempt *a, char ret[static 300])
{
	char shown[256];

	ret[0] = '\0';
	if (a->link)
		snprintf(ret, 300, "leads to '%s', and that ", tool_shown(a->link, shown));
}

/* Explains the refusal by the description of the cage, if that is the reason. */
static void say_refusal(
	const struct tool_cage *cage, const struct tool_attempt *a, int num, struct err *e)
{
	char shown[256], leads[300];
	const char *full = a->link ? a->link : a->full, *path = tool_shown(a->path, shown);
	own(list) struct list list = { .cage = cage, .text.max = 2 * LIST_SIZE };

	lead(a, leads);
	if (a->writes && covers(&cage->protect, full))
		err_set(e, ERR_SYS, num, "cannot %s '%s': it %sis protected in this cage", a->verb,
			path, leads);
	else if (!covers(&cage->read, full) && !covers(&cage->write, full) &&
		 !has_below(&cage->read, full))
		err_set(e, ERR_SYS, num, "cannot %s '%s': it %sis not in this cage, which has %s",
			a->verb, path, leads, list_places(&list));
	else if (num == ENOENT || num == ENOTDIR)
		err_set(e, ERR_SYS, num, "cannot %s '%s': %s in this cage", a->verb, path,
			cage_reason_of(a, num));
	else if (a->writes && !covers(&cage->write, full)) {
		list.is_of_writable = true;
		err_set(e, ERR_SYS, num,
			"cannot %s '%s': it %sis read-only in this cage; writable are %s", a->verb,
			path, leads, list_places(&list));
	}
}

int tool_cage_explain(
	const struct tool_cage *cage, const struct tool_attempt *a, int num, struct err *e)
{
	char shown[256];

	err_set(e, ERR_SYS, num, "cannot %s '%s': %s", a->verb, tool_shown(a->path, shown),
		cage_reason_of(a, num));
	if (cage && is_refusal(num))
		say_refusal(cage, a, num, e);
	return -num;
}

/* --- why something did not work --- */

static bool load_cage(struct tool_cage *ret)
{
	own_fd int fd = file_open(TOOL_CAGE_FILE, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	own_free char *bytes = NULL;
	size_t n;

	*ret = (struct tool_cage){ 0 };
	return fd >= 0 && file_read_all(fd, TOOL_CAGE_MAX, &bytes, &n) == 0 &&
	       tool_cage_read(bytes, n, ret);
}

/* Reads a symlink's target, relative to the folder of the link. False: not a symlink. */
static bool fail_read_link(const char *full, char ret[static PATH_MAX])
{
	char target[PATH_MAX], folder[PATH_MAX];
	ssize_t n = readlink(full, target, sizeof(target) - 1);

	if (n <= 0)
		return false;
	target[n] = '\0';
	return tool_full_path(full, "..", folder, sizeof(folder)) &&
	       tool_full_path(folder, target, ret, PATH_MAX);
}

int tool_fail(const char *verb, bool writes, const char *path, int num, struct err *e)
{
	char from[PATH_MAX], full[PATH_MAX], link[PATH_MAX];
	struct tool_attempt attempt = { verb, path, path, NULL, writes };
	own(tool_cage) struct tool_cage cage = { 0 };
	bool is_known = load_cage(&cage);

	if (!getcwd(from, sizeof(from)) || !tool_full_path(from, path, full, sizeof(full)))
		is_known = false;
	else {
		attempt.full = full;
		attempt.link = fail_read_link(full, link) ? link : NULL;
	}
	return tool_cage_explain(is_known ? &cage : NULL, &attempt, num, e);
}
