/*
 * tool_run - one call of one tool: reads, writes or edits a file, or hands on to glob and grep.
 *
 * Runs as:  a command in a cage, or anywhere, with the rights of who runs it.
 * Must not: allow or deny anything by itself.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "agent/tool/tool_cage.h"
#include "agent/tool/tool_edit.h"
#include "agent/tool/tool_file.h"
#include "agent/tool/tool_inside.h"
#include "agent/tool/tool_lines.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"

/* What an edit may make of a file. */
#define MAX_EDITED (4 * TOOL_MAX_FILE)

const char *tool_join_path(struct buf *ret, const char *start, const char *path)
{
	ret->len = 0;
	if (start && !str_eq(start, "."))
		buf_printf(ret, "%s%s", start, str_ends(start, "/") ? "" : "/");
	buf_puts(ret, path);
	return buf_text(ret);
}

void tool_note_folders(struct buf *out, const struct tool_walk *walk)
{
	if (walk->left_out)
		buf_printf(out, "(%" PRIu64 " %s left out; a path with .git in it looks there)\n",
			walk->left_out,
			walk->left_out == 1 ? "folder named .git was" : "folders named .git were");
	if (walk->unread)
		buf_printf(out, "(%" PRIu64 " %s could not be looked into)\n", walk->unread,
			walk->unread == 1 ? "folder" : "folders");
}

/* --- read --- */

static int feed_lines(int fd, struct tool_lines *l)
{
	char bytes[65536] __attribute__((uninitialized));

	for (;;) {
		ssize_t n = read(fd, bytes, sizeof(bytes));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			tool_lines_end(l);
		if (n == 0 || !tool_lines_feed(l, bytes, (size_t)n))
			return 0;
	}
}

/* What the lines were like; those that are printed already are taken back. */
static int judge_lines(const struct tool_lines *l, const char *path, struct buf *out, struct err *e)
{
	char shown[256];

	if (l->has_nul || l->is_foreign) {
		out->len = 0;
		return err_set(e, ERR_SYS, EILSEQ, "cannot read '%s': it is %s",
			tool_shown(path, shown),
			l->has_nul ? "binary, not text" : "text in another encoding than UTF-8");
	}
	if (l->printed == 0 && l->line > 0)
		return err_set(e, ERR_SYS, ERANGE,
			"cannot read '%s' from line %" PRIu64 " on: it has %" PRIu64 " line%s",
			tool_shown(path, shown), l->first, l->line, l->line == 1 ? "" : "s");
	return 0;
}

static int run_read_file(const struct tool_args *args, struct buf *out, struct err *e)
{
	struct tool_lines l = { .first = args->offset ? (uint64_t)args->offset : 1,
		.count = args->limit ? (uint64_t)args->limit : TOOL_LINES,
		.out = out };
	own_fd int fd = tool_open_file("read", args->path, e);
	int r;

	if (fd < 0)
		return fd;
	r = feed_lines(fd, &l);
	if (r < 0)
		return tool_fail("read", false, args->path, -r, e);
	r = judge_lines(&l, args->path, out, e);
	if (r < 0)
		return r;
	if (l.has_more)
		buf_printf(out,
			"\n(these are lines %" PRIu64 " to %" PRIu64
			", and there are more: go on with offset %" PRIu64 ")\n",
			l.first, l.first + l.printed - 1, l.first + l.printed);
	else if (l.line == 0)
		buf_puts(out, "(the file is empty)\n");
	return 0;
}

/* --- write and edit --- */

static void run_put_quoted(struct buf *out, const char *path)
{
	buf_putc(out, '\'');
	buf_add_visible(out, path, strlen(path));
	buf_putc(out, '\'');
}

static int run_write_file(const struct tool_args *args, struct buf *out, struct err *e)
{
	size_t n = strlen(args->content);
	own_fd int lock = -1;
	bool existed = false;
	int r = tool_make_folders("write", args->path, e);

	if (r == 0)
		r = tool_lock_file("write", args->path, &lock, e);
	if (r == 0)
		r = tool_store_file("write", args->path, args->content, n, &existed, e);
	if (r < 0)
		return r;
	buf_puts(out, existed ? "replaced " : "created ");
	run_put_quoted(out, args->path);
	buf_printf(out, " (%zu byte%s)\n", n, n == 1 ? "" : "s");
	return 0;
}

static void say_edited(const struct tool_edit *edit, const char *path, struct buf *out)
{
	size_t shown = edit->count < TOOL_EDIT_SHOWN ? edit->count : TOOL_EDIT_SHOWN;

	buf_puts(out, "edited ");
	run_put_quoted(out, path);
	buf_printf(out, " in %zu place%s, at line%s ", edit->count, edit->count == 1 ? "" : "s",
		edit->count == 1 ? "" : "s");
	for (size_t i = 0; i < shown; i++)
		buf_printf(out, "%s%" PRIu64, i ? ", " : "", edit->lines[i]);
	buf_puts(out, shown < edit->count ? " …\n" : "\n");
}

/* Locked from before it is read until it is written: edits beside each other lose nothing. */
static int edit_file(const struct tool_args *args, struct buf *out, struct err *e)
{
	own(buf) struct buf edited = { .max = MAX_EDITED };
	own_free char *text = NULL;
	struct tool_edit edit = { .old_text = args->old_text,
		.new_text = args->new_text,
		.replaces_all = args->replaces_all };
	own_fd int lock = -1;
	char shown[256];
	bool existed;
	int r = tool_lock_file("edit", args->path, &lock, e);

	if (r == 0)
		r = tool_load_file("edit", args->path, &text, &edit.size, e);
	if (r < 0)
		return r;
	edit.text = text;
	r = tool_edit_apply(&edit, &edited, e);
	if (r < 0) {
		err_prefix(e, "cannot edit '%s'", tool_shown(args->path, shown));
		return r;
	}
	r = tool_store_file("edit", args->path, buf_text(&edited), edited.len, &existed, e);
	if (r == 0)
		say_edited(&edit, args->path, out);
	return r;
}

/* --- the tools --- */

static int (*const tools[])(const struct tool_args *args, struct buf *out, struct err *e) = {
	[TOOL_READ] = run_read_file,
	[TOOL_WRITE] = run_write_file,
	[TOOL_EDIT] = edit_file,
	[TOOL_GLOB] = tool_run_glob,
	[TOOL_GREP] = tool_run_grep,
};

static_assert(COUNT_OF(tools) == TOOL_COUNT, "each has a row");

int tool_run(enum tool tool, const char *arguments, size_t n, struct buf *out, struct err *e)
{
	own(tool_args) struct tool_args args;
	int r = tool_args_read(tool, arguments, n, &args, e);

	if (r < 0)
		return r;
	if (args.path && strlen(args.path) >= PATH_MAX)
		return err_set(e, ERR_USE, ENAMETOOLONG, "path of %s is longer than %d bytes",
			tool_name(tool), PATH_MAX - 1);
	return tools[tool](&args, out, e);
}
