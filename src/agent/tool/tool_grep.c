/*
 * tool_grep - the tool grep: lines that match, in a file or in all below a folder.
 *
 * Runs as:  a command in a cage, or anywhere, with the rights of who runs it.
 * Must not: wait for a pipe, use a device, leave the folder where it begins.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tool/tool_cage.h"
#include "agent/tool/tool_file.h"
#include "agent/tool/tool_glob.h"
#include "agent/tool/tool_inside.h"
#include "agent/tool/tool_search.h"
#include "base/file.h"
#include "base/own.h"

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
