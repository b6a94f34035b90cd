#include "tool/tool_cage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

static void list_path(struct buf *list, const char *path, const char *mark, size_t *left_out)
{
	if (list->len + strlen(path) + strlen(mark) + 2 > LIST_SIZE)
		++*left_out;
	else
		buf_printf(list, "%s%s%s", list->len ? ", " : "", path, mark);
}

/* "/work (writable), /usr and 3 more"; with `writable` set only those. */
static void list_paths(struct buf *list, const struct tool_cage *cage, bool writable)
{
	size_t left_out = 0;

	for (size_t i = 0; i < cage->write.count; i++)
		list_path(list, cage->write.at[i], writable ? "" : " (writable)", &left_out);
	for (size_t i = 0; !writable && i < cage->read.count; i++)
		if (!covers(&cage->write, cage->read.at[i]))
			list_path(list, cage->read.at[i], "", &left_out);
	if (left_out)
		buf_printf(list, " and %zu more", left_out);
}

static const char *reason_of(const struct tool_attempt *a, int num)
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

int tool_cage_explain(
	const struct tool_cage *cage, const struct tool_attempt *a, int num, struct err *e)
{
	own(buf) struct buf list = { .max = 2 * LIST_SIZE };
	char shown[256], link_shown[256], leads[300] = "";
	const char *full = a->link ? a->link : a->full;
	bool is_known = cage && is_refusal(num), is_readable;

	tool_shown(a->path, shown);
	if (a->link)
		snprintf(leads, sizeof(leads), "leads to '%s', which ",
			tool_shown(a->link, link_shown));
	is_readable = is_known && (covers(&cage->read, full) || covers(&cage->write, full) ||
					  has_below(&cage->read, full));
	if (is_known && a->writes && covers(&cage->protect, full))
		return err_set(e, ERR_SYS, num, "cannot %s '%s': it %sis protected in this cage",
			a->verb, shown, leads);
	if (is_known && !is_readable) {
		list_paths(&list, cage, false);
		return err_set(e, ERR_SYS, num,
			"cannot %s '%s': it %sis not in this cage, which has %s", a->verb, shown,
			leads, buf_text(&list));
	}
	if (is_known && a->writes && num != ENOENT && num != ENOTDIR &&
		!covers(&cage->write, full)) {
		list_paths(&list, cage, true);
		return err_set(e, ERR_SYS, num,
			"cannot %s '%s': it %sis read-only in this cage; writable are %s", a->verb,
			shown, leads, buf_text(&list));
	}
	return err_set(e, ERR_SYS, num, "cannot %s '%s': %s", a->verb, shown, reason_of(a, num));
}
