/*
 * check_bind - a bind that is being looked into: what was found, what may be read, what leaves it.
 *
 * Runs as:     the operator, in the process that asked.
 * Enters with: entries of a walk, which follows nothing.
 * Leaves:      warnings at the line of the bind.
 * Must not:    open anything but regular files, wait for anybody, read or speak without bound.
 */
#include "check/check_bind.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"

#define MAX_READ  ((size_t)16 * 1024 * 1024) /* of one bind */
#define MAX_SHOWN ((size_t)100)

static const struct {
	const char *many, *hint;
} kinds[] = {
	[CHECK_LINK_OUT] = { "symlinks that lead out of it",
		"bind what it leads to as well, or only what is needed" },
	[CHECK_LINK_HOST] = { "symlinks that name a path of the host", "make the link relative" },
	[CHECK_VENV] = { "virtual environments",
		"bind the sources only, and make the environment in the cage" },
	[CHECK_PTH] = { ".pth files", "bind the sources only, and install them in the cage" },
	[CHECK_GIT_SETTING] = { "settings of git that lead elsewhere",
		"remove the setting, or bind the tree without .git" },
	[CHECK_GIT_ELSEWHERE] = { "work trees whose repository is outside",
		"bind the whole repository, or the tree without .git" },
	[CHECK_CREDENTIALS] = { "names of credentials",
		"move it out of the bind, or bind only what is needed" },
	[CHECK_DOOR] = { "sockets and pipes",
		"a read-only bind does not close it: bind only what is needed" },
	[CHECK_MOUNT] = { "mounts that were not looked into",
		"check it in a bind of its own if it matters" },
};

/* --- saying --- */

const char *check_shown(struct spec *s, const char *path)
{
	own(buf) struct buf shown = { .max = MAX_SHOWN * 12 };
	size_t n = strlen(path), skip = n > MAX_SHOWN ? n - MAX_SHOWN : 0;
	const char *copy;

	/* Not from the middle of a character. */
	while (skip && path[skip] && ((unsigned char)path[skip] & 0xc0) == 0x80)
		skip++;
	buf_puts(&shown, skip ? "…" : "");
	buf_add_visible(&shown, path + skip, n - skip);
	copy = arena_copy(&s->arena, buf_text(&shown), shown.len);
	return copy ? copy : "";
}

const char *check_shown_entry(struct check_bind *b, const struct check_entry *entry)
{
	const char *path = arena_printf(
		&b->spec->arena, "%s%s%s", entry->dir, *entry->dir ? "/" : "", entry->name);

	return check_shown(b->spec, path ? path : entry->name);
}

bool check_found(struct check_bind *b, enum check_kind kind)
{
	return ++b->found[kind] <= CHECK_MAX_SAID;
}

void check_say(struct check_bind *b, enum check_kind kind, const char *fmt, ...)
{
	char text[448];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	diags_warn(&b->spec->diags, b->item->at, kinds[kind].hint, "binds: %s: %s",
		check_shown(b->spec, b->item->bind.from), text);
}

void check_say_rest(struct check_bind *b)
{
	for (enum check_kind k = 0; k < CHECK_KIND_COUNT; k++)
		if (b->found[k] > CHECK_MAX_SAID)
			check_say(b, k, "and %zu more %s", b->found[k] - CHECK_MAX_SAID,
				kinds[k].many);
}

/* --- reading --- */

bool check_bind_init(
	struct check_bind *b, struct spec *s, const struct spec_item *item, const char *host_path)
{
	*b = (struct check_bind){ .spec = s, .item = item, .host_path = host_path };
	b->unread = MAX_READ;
	b->bytes = malloc(CHECK_MAX_FILE);
	return b->bytes != NULL;
}

void check_bind_done(struct check_bind *b)
{
	free(b->bytes);
}

size_t check_read_start(struct check_bind *b, const struct check_entry *entry, size_t max)
{
	own_fd int fd = -1;
	struct stat st;
	size_t n = 0;
	ssize_t got;

	if (b->unread < max) {
		b->is_capped = true;
		return 0;
	}
	fd = file_open_beneath(
		entry->dir_fd, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	while (n < max && (got = pread(fd, b->bytes + n, max - n, (off_t)n)) > 0)
		n += (size_t)got;
	b->unread -= n;
	return n;
}

/* --- where a path leads --- */

/* Does a relative path climb out of the bind, from `depth` directories below it? */
static bool bind_climbs(const char *path, unsigned depth)
{
	while (*path) {
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			if (depth == 0)
				return true;
			depth--;
		} else if (n && !(n == 1 && path[0] == '.')) {
			depth++;
		}
		path += n;
	}
	return false;
}

static bool stays_in(const char *path, const char *root)
{
	return str_path_within(path, root) && !bind_climbs(path + strlen(root), 0);
}

enum check_lead check_leads(const struct check_bind *b, const char *path, unsigned depth)
{
	if (path[0] != '/')
		return bind_climbs(path, depth) ? CHECK_LEADS_OUT : CHECK_LEADS_INSIDE;
	if (stays_in(path, b->item->bind.to))
		return CHECK_LEADS_INSIDE;
	return stays_in(path, b->host_path) ? CHECK_LEADS_HOST : CHECK_LEADS_OUT;
}
