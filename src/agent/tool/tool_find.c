/*
 * tool_find - the tool glob: names that match, newest first.
 *
 * Runs as:  a command in a cage, or anywhere, with the rights of who runs it.
 * Must not: open anything but folders, leave the folder where it begins.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/tool/tool_cage.h"
#include "agent/tool/tool_glob.h"
#include "agent/tool/tool_inside.h"
#include "base/file.h"
#include "base/own.h"

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
