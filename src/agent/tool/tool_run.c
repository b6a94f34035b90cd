/*
 * tool_run - one call of one tool: reads, writes or edits a file, or hands on to glob and grep.
 *
 * Runs as:  a command in a cage, or anywhere, with the rights of who runs it.
 * Must not: allow or deny anything by itself.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tool/tool_cage.h"
#include "agent/tool/tool_edit.h"
#include "agent/tool/tool_file.h"
#include "agent/tool/tool_glob.h"
#include "agent/tool/tool_inside.h"
#include "agent/tool/tool_lines.h"
#include "agent/tool/tool_search.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"

/*
 * tool_grep - the tool grep: lines that match, in a file or in all below a folder.
 *
 * Runs as:  a command in a cage, or anywhere, with the rights of who runs it.
 * Must not: wait for a pipe, use a device, leave the folder where it begins.
 */

/* So much is looked at for a NUL, which makes a file binary, before the rest is read. */
#define BINARY_LOOK 8192

struct grep {
	struct tool_search search;
	const struct tool_glob *glob; /* of names; or NULL */
	bool has_whole_paths;         /* that is how the glob is meant */
	const char *start;
	struct buf path;
	char *bytes; /* of the file at hand */
	size_t room;
	uint64_t too_large, unread, unsearched; /* files */
};

static void grep_done(struct grep *g)
{
	tool_search_done(&g->search);
	buf_done(&g->path);
	free(g->bytes);
}

static bool grep_make_room(struct grep *g, size_t size)
{
	char *grown;

	if (g->bytes && size <= g->room)
		return true;
	size += size / 2;
	grown = realloc(g->bytes, size);
	if (!grown)
		return false;
	g->bytes = grown;
	g->room = size;
	return true;
}

/* The rest of a file of which `n` bytes are there; how many there are then, or -errno. */
static ssize_t read_rest(struct grep *g, int fd, ssize_t n)
{
	/* Files of /proc say that they are empty, and others grow. */
	while (n > 0) {
		ssize_t more = file_read_up_to(fd, g->bytes + n, g->room - (size_t)n);

		n = more < 0 ? more : n + more;
		if (n < 0 || (size_t)n < g->room)
			break;
		if ((size_t)n > TOOL_MAX_FILE)
			return -EFBIG;
		if (!grep_make_room(g, g->room + 1))
			return -ENOMEM;
	}
	return n;
}

/* The text of a regular file; 0 for one that is empty or binary. */
static ssize_t load_text(struct grep *g, int fd)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if ((uint64_t)st.st_size > TOOL_MAX_FILE)
		return -EFBIG;
	if (!grep_make_room(g, (size_t)st.st_size + 2 * BINARY_LOOK))
		return -ENOMEM;
	n = file_read_up_to(fd, g->bytes, BINARY_LOOK);
	if (n <= 0 || memchr(g->bytes, '\0', (size_t)n))
		return n < 0 ? n : 0;
	if (n == BINARY_LOOK)
		n = read_rest(g, fd, n);
	return n > 0 && memchr(g->bytes, '\0', (size_t)n) ? 0 : n;
}

/* False: that is enough. */
static bool search_file(struct grep *g, int fd, const char *path)
{
	ssize_t n = load_text(g, fd);
	bool goes_on;

	g->too_large += n == -EFBIG;
	g->unread += n < 0 && n != -EFBIG;
	if (n <= 0)
		return true;
	goes_on = tool_search_text(&g->search, path, g->bytes, (size_t)n);
	g->unsearched += g->search.has_failed;
	return goes_on;
}

static bool grep_visit(void *of, const struct tool_entry *entry)
{
	struct grep *g = of;
	own_fd int fd = -1;

	if (!entry->is_file)
		return true;
	if (g->glob && !tool_glob_matches(g->glob, g->has_whole_paths ? entry->path : entry->name))
		return true;
	fd = file_open_name(entry->folder, entry->name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		g->unread++;
		return true;
	}
	return search_file(g, fd, tool_join_path(&g->path, g->start, entry->path));
}

/* --- the end --- */

static void note_files(struct buf *out, uint64_t count, const char *what)
{
	if (count)
		buf_printf(out, "(%" PRIu64 " file%s %s)\n", count, count == 1 ? "" : "s", what);
}

static void print_notes(const struct grep *g, const struct tool_walk *walk, struct buf *out)
{
	if (g->search.printed == 0 && !g->search.is_full)
		buf_puts(out, "(nothing matches)\n");
	if (g->search.is_cut)
		buf_puts(out, "(there is more: head_limit was reached)\n");
	if (g->search.is_full)
		buf_puts(out,
			"(there is more: the result was cut at 1 MiB; narrow the pattern, the "
			"path or the glob)\n");
	note_files(out, g->too_large, "larger than 64 MiB: not searched");
	note_files(out, g->unread, "could not be read");
	note_files(
		out, g->unsearched, "not searched to the end: this pattern takes too long there");
	tool_note_folders(out, walk);
}

/* --- the start --- */

/* A single file, whatever the glob says. */
static int search_one(struct grep *g, const char *path, struct buf *out, struct err *e)
{
	own_fd int fd = tool_open_file("search", path, e);

	if (fd < 0)
		return fd;
	search_file(g, fd, path);
	print_notes(g, &(struct tool_walk){ 0 }, out);
	return 0;
}

static int search_tree(struct grep *g, struct buf *out, struct err *e)
{
	struct tool_walk walk = { .of = g,
		.visit = grep_visit,
		.enters_git = g->glob && tool_glob_names(g->glob, ".git") };
	own_fd int fd = file_open(g->start, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	int r;

	if (fd == -ENOTDIR)
		return search_one(g, g->start, out, e);
	r = fd < 0 ? fd : tool_walk(fd, &walk);
	if (r < 0)
		return tool_fail("search", false, g->start, -r, e);
	print_notes(g, &walk, out);
	return 0;
}

static int tool_run_grep(const struct tool_args *args, struct buf *out, struct err *e)
{
	uint64_t around = (uint64_t)args->around;
	own(tool_regex) struct tool_regex regex = { 0 };
	own(tool_glob) struct tool_glob glob = { 0 };
	own(grep) struct grep g = {
		.search = { .regex = &regex,
			.mode = args->mode,
			.has_numbers = !args->has_no_numbers,
			.before = args->before ? (uint64_t)args->before : around,
			.after = args->after ? (uint64_t)args->after : around,
			.limit = (uint64_t)args->head_limit,
			.out = out,
			.lowered.max = 2 * TOOL_MAX_FILE },
		.start = args->path ? args->path : ".",
		.path.max = 1 << 18,
	};
	int r;

	r = tool_regex_init(&regex, args->pattern, args->ignores_case, e);
	if (r == 0 && args->glob) {
		r = tool_glob_parse(args->glob, &glob, e);
		g.glob = &glob;
		g.has_whole_paths = strchr(args->glob, '/') != NULL;
	}
	return r < 0 ? r : search_tree(&g, out, e);
}

/*
 * tool_find - the tool glob: names that match, newest first.
 *
 * Runs as:  a command in a cage, or anywhere, with the rights of who runs it.
 * Must not: open anything but folders, leave the folder where it begins.
 */

#define MOST_SHOWN 1000
#define MOST_FOUND ((size_t)1 << 20)
#define MAX_NAMES  ((size_t)256 << 20)

struct found {
	struct timespec time; /* as one number it would not fit, after 2262 */
	size_t at;            /* of its path in `paths` */
};

struct finder {
	const struct tool_glob *glob;
	struct buf paths; /* each ended with a NUL; folders with a slash */
	struct found *found;
	size_t count, room;
	bool is_full;
};

static void finder_done(struct finder *f)
{
	buf_done(&f->paths);
	free(f->found);
}

static bool find_make_room(struct finder *f)
{
	size_t room = f->room ? f->room * 2 : 1024;
	struct found *grown;

	if (f->count < f->room)
		return true;
	grown = room > MOST_FOUND ? NULL : reallocarray(f->found, room, sizeof(*grown));
	if (!grown)
		return false;
	f->found = grown;
	f->room = room;
	return true;
}

static bool enters(void *of, const char *path)
{
	const struct finder *f = of;

	return tool_glob_enters(f->glob, path);
}

static bool find_visit(void *of, const struct tool_entry *entry)
{
	struct finder *f = of;
	struct stat st;

	if (!tool_glob_matches(f->glob, entry->path))
		return true;
	/* What is gone meanwhile is not there. */
	if (fstatat(entry->folder, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	if (!find_make_room(f)) {
		f->is_full = true;
		return false;
	}
	f->found[f->count++] = (struct found){ st.st_mtim, f->paths.len };
	buf_puts(&f->paths, entry->path);
	buf_add(&f->paths, "/", entry->is_folder ? 2 : 0);
	if (!entry->is_folder)
		buf_putc(&f->paths, '\0');
	f->is_full = f->paths.failed;
	return !f->is_full;
}

static int find_compare(const void *a, const void *b, void *paths)
{
	const struct found *x = a, *y = b;
	const char *names = paths;

	if (x->time.tv_sec != y->time.tv_sec)
		return x->time.tv_sec > y->time.tv_sec ? -1 : 1;
	if (x->time.tv_nsec != y->time.tv_nsec)
		return x->time.tv_nsec > y->time.tv_nsec ? -1 : 1;
	return strcmp(names + x->at, names + y->at);
}

static void print_found(struct finder *f, const char *start, struct buf *out)
{
	own(buf) struct buf path = { .max = 1 << 18 };
	size_t shown = 0;

	if (f->paths.len && !f->paths.failed)
		qsort_r(f->found, f->count, sizeof(*f->found), find_compare, f->paths.data);
	for (; shown < f->count && shown < MOST_SHOWN; shown++) {
		const char *text = tool_join_path(&path, start, f->paths.data + f->found[shown].at);

		/* A byte may take four. */
		if (out->len + path.len * 4 + 1 > TOOL_MAX_OUTPUT)
			break;
		buf_add_visible(out, text, path.len);
		buf_putc(out, '\n');
	}
	if (f->is_full)
		buf_printf(out,
			"(there are too many: these are %zu of the first %zu that were seen)\n",
			shown, f->count);
	else if (shown < f->count)
		buf_printf(out, "(these are the newest %zu of %zu)\n", shown, f->count);
}

/* `is_flat`: the pattern is for one folder only. */
static int do_find(const struct tool_glob *glob, const char *start, bool is_flat, struct buf *out,
	struct err *e)
{
	struct finder f = { .glob = glob, .paths.max = MAX_NAMES };
	struct tool_walk walk = { .of = &f,
		.enters = enters,
		.visit = find_visit,
		.enters_git = tool_glob_names(glob, ".git") };
	own_fd int fd = file_open(start, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	char shown[256];
	int r;

	if (fd == -ENOTDIR)
		return err_set(e, ERR_SYS, ENOTDIR,
			"cannot search '%s': it is not a folder; path says where to begin",
			tool_shown(start, shown));
	r = fd < 0 ? fd : tool_walk(fd, &walk);
	if (r == 0) {
		print_found(&f, start, out);
		if (f.count == 0)
			buf_puts(out, is_flat ? "(nothing matches in this folder; **/ before the "
						"pattern looks below it too)\n"
					      : "(nothing matches)\n");
		tool_note_folders(out, &walk);
	}
	finder_done(&f);
	return r < 0 ? tool_fail("search", false, start, -r, e) : 0;
}

/* The tools, each with its arguments. They add their result to `out`. 0 or -errno. */
static int tool_run_glob(const struct tool_args *args, struct buf *out, struct err *e)
{
	const char *pattern = args->pattern, *start = args->path ? args->path : ".";
	own(tool_glob) struct tool_glob glob = { 0 };
	own(buf) struct buf folder = { .max = TOOL_MAX_INPUT };
	int r;

	if (*pattern == '/') {
		/* It says itself where to begin. */
		size_t fixed = tool_glob_fixed(pattern);

		if (args->path)
			return err_set(e, ERR_USE, EINVAL,
				"a pattern that begins with / takes no path beside it");
		buf_add(&folder, pattern, fixed);
		start = buf_text(&folder);
		pattern += fixed;
	}
	r = tool_glob_parse(pattern, &glob, e);
	return r < 0 ? r : do_find(&glob, start, !strchr(pattern, '/'), out, e);
}

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
