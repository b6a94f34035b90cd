/*
 * tool_walk - the tools grep and glob: lines that match, and names that match, below a folder.
 *
 * Runs as:  a command in a cage, or anywhere, with the rights of who runs it.
 * Must not: follow a link, wait for a pipe, use a device, leave the folder where it begins, hold
 *           more than one folder's names a level.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "agent/tool/tool_cage.h"
#include "agent/tool/tool_glob.h"
#include "agent/tool/tool_inside.h"
#include "agent/tool/tool_search.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"

/* --- the walk --- */

/*
 * Walks over a stranger's tree: no link is followed, /proc and /sys are not entered where they are
 * not the start, and neither are folders deeper than TREE_MAX_DEPTH, nor those called .git if that
 * is not asked for. In each folder what is no folder comes first, then the folders, in the order of
 * their names.
 */
struct tool_entry {
	int folder;       /* in which it is, open */
	const char *name; /* in it */
	const char *path; /* from the start */
	bool is_folder, is_file;
};

struct tool_walk {
	void *of;
	bool (*enters)(void *of, const char *path);              /* or NULL: every folder */
	bool (*visit)(void *of, const struct tool_entry *entry); /* false: that is enough */
	bool enters_git;
	uint64_t left_out; /* set: folders that were not entered for their name */
	uint64_t unread;   /* set: folders that could not be read to their end, or are too deep */
};

/* A prefix of each name, by which sorting puts folders behind files. */
enum mark {
	MARK_FILE = '1',
	MARK_OTHER = '2',
	MARK_FOLDER = '3'
};

/* Longer than the path of anything that is not too deep. */
#define MAX_PATH ((size_t)TREE_MAX_DEPTH * 260)

struct level {
	struct tool_walk *w;
	struct buf *path;
	int fd;
	unsigned depth;
	dev_t dev;
};

static enum mark mark_of(int folder, const struct file_entry *entry)
{
	struct stat st;

	if (entry->type != DT_UNKNOWN)
		return entry->type == DT_DIR   ? MARK_FOLDER
		       : entry->type == DT_REG ? MARK_FILE
					       : MARK_OTHER;
	if (fstatat(folder, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return MARK_OTHER;
	return S_ISDIR(st.st_mode) ? MARK_FOLDER : S_ISREG(st.st_mode) ? MARK_FILE : MARK_OTHER;
}

static int tool_walk_read_names(int folder, struct tree_names *ret)
{
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;

	*ret = (struct tree_names){ .bytes.max = TREE_MAX_NAMES };
	while ((entry = file_next_entry(&entries))) {
		if (str_eq(entry->name, ".") || str_eq(entry->name, ".."))
			continue;
		buf_putc(&ret->bytes, (char)mark_of(folder, entry));
		buf_add(&ret->bytes, entry->name, strlen(entry->name) + 1);
	}
	if (entries.failure || ret->bytes.failed)
		return entries.failure ? -entries.failure : -ENOMEM;
	ret->sorted = tree_sort_texts(buf_text(&ret->bytes), ret->bytes.len, &ret->count);
	return ret->sorted ? 0 : -ENOMEM;
}

static bool walk_level(struct level *l, int *ret);

/* Its files are not such that one could search them; some have no end. */
static bool is_of_kernel(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC);
}

static bool walk_enter(struct level *above, const char *name)
{
	struct level l = { above->w, above->path, -1, above->depth + 1, 0 };
	own_fd int fd = -1;
	struct stat st;
	bool goes_on;
	int r = 0;

	if (l.w->enters && !l.w->enters(l.w->of, buf_text(l.path)))
		return true;
	if (!l.w->enters_git && str_eq(name, ".git")) {
		l.w->left_out++;
		return true;
	}
	if (l.depth < TREE_MAX_DEPTH)
		fd = tree_open_folder(above->fd, name);
	if (fd < 0 || fstat(fd, &st) < 0) {
		l.w->unread++;
		return true;
	}
	if (st.st_dev != above->dev && is_of_kernel(fd))
		return true;
	l.fd = fd;
	l.dev = st.st_dev;
	goes_on = walk_level(&l, &r);
	l.w->unread += r < 0;
	return goes_on;
}

static bool walk_name(struct level *l, const char *marked)
{
	size_t before = l->path->len;
	struct tool_entry entry = { .folder = l->fd,
		.name = marked + 1,
		.is_folder = *marked == MARK_FOLDER,
		.is_file = *marked == MARK_FILE };
	bool goes_on;

	buf_printf(l->path, "%s%s", before ? "/" : "", marked + 1);
	entry.path = buf_text(l->path);
	goes_on = l->w->visit(l->w->of, &entry) && (!entry.is_folder || walk_enter(l, marked + 1));
	l->path->len = before;
	l->path->data[before] = '\0';
	return goes_on;
}

/* False: it was enough. */
static bool walk_level(struct level *l, int *ret)
{
	struct tree_names names;
	bool goes_on = true;

	*ret = tool_walk_read_names(l->fd, &names);
	for (size_t i = 0; *ret == 0 && goes_on && i < names.count; i++)
		goes_on = walk_name(l, names.sorted[i]);
	tree_names_done(&names);
	return goes_on;
}

/* `fd` is an open folder, borrowed. 0, or -errno where not even that could be read. */
static int tool_walk(int fd, struct tool_walk *w)
{
	own(buf) struct buf path = { .max = MAX_PATH };
	struct level top = { .w = w, .path = &path, .fd = fd };
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	top.dev = st.st_dev;
	walk_level(&top, &r);
	return r;
}

/*
 * The path of an entry as it can be used from here: below `start`, which may be NULL. Borrowed from
 * `ret` until its next change.
 */
static const char *join_entry_path(struct buf *ret, const char *start, const char *path)
{
	ret->len = 0;
	if (start && !str_eq(start, "."))
		buf_printf(ret, "%s%s", start, str_ends(start, "/") ? "" : "/");
	buf_puts(ret, path);
	return buf_text(ret);
}

/* Adds to the end of a result how many folders were skipped, if any, and why. */
static void note_folders(struct buf *out, const struct tool_walk *walk)
{
	if (walk->left_out)
		buf_printf(out, "(%" PRIu64 " %s left out; a path with .git in it looks there)\n",
			walk->left_out,
			walk->left_out == 1 ? "folder named .git was" : "folders named .git were");
	if (walk->unread)
		buf_printf(out, "(%" PRIu64 " %s could not be looked into)\n", walk->unread,
			walk->unread == 1 ? "folder" : "folders");
}

/* --- grep --- */

/* Bytes that are searched for a NUL, which makes a file binary, before the rest is read. */
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
	return search_file(g, fd, join_entry_path(&g->path, g->start, entry->path));
}

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
	note_folders(out, walk);
}

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

int tool_run_grep(const struct tool_args *args, struct buf *out, struct err *e)
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

/* --- glob --- */

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
	/* Entries that vanished meanwhile are ignored. */
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
		const char *text =
			join_entry_path(&path, start, f->paths.data + f->found[shown].at);

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
		note_folders(out, &walk);
	}
	finder_done(&f);
	return r < 0 ? tool_fail("search", false, start, -r, e) : 0;
}

int tool_run_glob(const struct tool_args *args, struct buf *out, struct err *e)
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
