/*
 * change_copy - lists the copy of a project before the run; makes of it, after the run, what an
 * overlay would have kept.
 *
 * Runs as:     who copies the project, before the run; the operator, after it, when nothing else
 *              writes to the copy any more.
 * Enters with: a copy whose names, modes and attributes are a stranger's, and the list of what was
 *              in it before.
 * Leaves:      what the run made or touched, with whiteouts for what it took away; a folder that
 *              took the place of another one hides that. No mark of an overlay that is not ours.
 * Must not:    follow a link; open anything but folders; leave a folder with another mode than it
 *              had; lose what the run made; hold more than the names of the folders it is in.
 *
 * Folders are opened from the top, one at a time: no depth costs descriptors. What nobody may enter
 * is entered by giving its owner the right for that long.
 *
 * Two walks along the list. The first one marks what is gone, and can be repeated. Only when that
 * is complete, the second one removes what is as it was: from then on nobody asks what is missing.
 */
#include "change/copy/change_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"

/*
 * The list of a copy: a head, then for each entry of a folder, in the order of their names' bytes,
 *
 *   TYPE INODE CHANGED NAME NUL
 *
 * where type is d for a folder and f for all else, and changed the time of change in nanoseconds.
 * What is in a folder follows it, and one NUL ends a folder; so a list that was cut is seen as
 * such.
 */
#define CHANGE_LIST_HEAD     "bawn copy 1"
#define CHANGE_LIST_MAX_NAME 1023 /* more than any file system has */

struct change_listed {
	bool is_folder;
	uint64_t inode;
	int64_t changed_ns;
	char name[CHANGE_LIST_MAX_NAME + 1];
};

/* Reads a list from its beginning to its end. */
struct change_list {
	int fd; /* borrowed */
	size_t at, len;
	char bytes[65536];
};

static inline int64_t change_list_changed(const struct stat *st)
{
	return (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
}

/* What the walks of finishing a copy share. */
struct change_finish {
	int copy;     /* its top */
	bool removes; /* the second walk */
	struct change_list list;
	const struct change_progress *progress;
	uint64_t seen;
	unsigned depth;
	size_t names_size; /* of the folders we are in */
	size_t path_size;
	char path[CHANGE_MAX_PATH + 1];        /* of the folder we are in */
	char attributes[XATTR_LIST_MAX];       /* names of one entry's */
	char entry[CHANGE_LIST_MAX_NAME + 64]; /* it, by a path of /proc */
	struct err *e;
};

/* A folder while we are in it. It has its mode again when we leave it. */
struct change_visit {
	int fd; /* -1 while we are in a folder of it */
	mode_t mode;
	bool is_given; /* its owner got rights */
	struct tree_names names;
};

typedef int change_walk(struct change_finish *f, struct change_visit *v);

/* --- writing the list --- */

#define FLUSH ((size_t)1 << 16)

struct lister {
	int list;
	unsigned depth;
	size_t names_size; /* of the folders that are open */
	struct buf out;
	struct tree_path path;
};

static int fail_to_write(int num, struct err *e)
{
	return err_sys(e, num, "cannot write the list of the project's copy");
}

static int flush(struct lister *l, size_t least, struct err *e)
{
	int r;

	if (l->out.failed)
		return fail_to_write(ENOMEM, e);
	if (l->out.len < least)
		return 0;
	r = file_write_all(l->list, buf_text(&l->out), l->out.len);
	l->out.len = 0;
	return r < 0 ? fail_to_write(-r, e) : 0;
}

static int change_list_list_folder(struct lister *l, int folder, struct err *e);

static int change_list_list_entry(struct lister *l, int folder, const char *name, struct err *e)
{
	own_fd int inner = -1;
	struct stat st;
	size_t before;
	int r;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return tree_fail(&l->path, name, errno, "read", e);
	if (strlen(name) > CHANGE_LIST_MAX_NAME)
		return tree_fail(&l->path, name, ENAMETOOLONG, "list", e);
	buf_printf(&l->out, "%c %" PRIu64 " %" PRId64 " ", S_ISDIR(st.st_mode) ? 'd' : 'f',
		(uint64_t)st.st_ino, change_list_changed(&st));
	buf_add(&l->out, name, strlen(name) + 1);
	r = flush(l, FLUSH, e);
	if (r < 0 || !S_ISDIR(st.st_mode))
		return r;
	inner = l->depth == TREE_MAX_DEPTH ? -ELOOP : tree_open_folder(folder, name);
	if (inner < 0)
		return tree_fail(&l->path, name, -inner, "list", e);
	before = tree_path_enter(&l->path, name);
	l->depth++;
	r = change_list_list_folder(l, inner, e);
	l->depth--;
	tree_path_leave(&l->path, before);
	return r;
}

static int change_list_list_folder(struct lister *l, int folder, struct err *e)
{
	own(tree_names) struct tree_names names = { 0 };
	int r = tree_names_read(folder, TREE_MAX_NAMES - l->names_size, &names);

	if (r < 0)
		return tree_fail(&l->path, "", -r, "list", e);
	l->names_size += names.bytes.len;
	for (size_t i = 0; r == 0 && i < names.count; i++)
		r = change_list_list_entry(l, folder, names.sorted[i], e);
	l->names_size -= names.bytes.len;
	buf_putc(&l->out, '\0');
	return r;
}

int change_copy_list(int copy, int list, struct err *e)
{
	struct lister l = { .list = list, .depth = 1 };
	own_fd int top = tree_open_folder(copy, ".");
	int r;

	if (top < 0)
		return tree_fail(&l.path, ".", -top, "list", e);
	buf_init(&l.out, 2 * FLUSH);
	buf_add(&l.out, CHANGE_LIST_HEAD, sizeof(CHANGE_LIST_HEAD));
	r = change_list_list_folder(&l, top, e);
	if (r == 0)
		r = flush(&l, 0, e);
	buf_done(&l.out);
	return r;
}

/* --- the clock of files --- */

#define SETTLE_MS 5000 /* no file system worth the name counts in more than two seconds */

int change_copy_settle(int list, struct err *e)
{
	const struct timespec tick = { .tv_nsec = 1000000 };
	struct stat first, now;

	if (fstat(list, &first) < 0)
		return fail_to_write(errno, e);
	for (int i = 0; i < SETTLE_MS; i++) {
		if (futimens(list, NULL) < 0 || fstat(list, &now) < 0)
			return fail_to_write(errno, e);
		if (change_list_changed(&now) != change_list_changed(&first))
			return 0;
		nanosleep(&tick, NULL);
	}
	return err_hint(e,
		err_set(e, ERR_REFUSED, ETIME,
			"cannot capture the project by copying: on the file system of the run's "
			"folder a change does not show in a file's time"),
		"set XDG_STATE_HOME to another place");
}

/* --- reading the list --- */

/* The next text, which is the list's until the one after it. */
static const char *next_text(struct change_list *l)
{
	for (;;) {
		char *text = l->bytes + l->at;
		char *end = memchr(text, '\0', l->len - l->at);
		ssize_t n;

		if (end) {
			l->at = (size_t)(end - l->bytes) + 1;
			return text;
		}
		memmove(l->bytes, text, l->len - l->at);
		l->len -= l->at;
		l->at = 0;
		if (l->len == sizeof(l->bytes))
			return NULL;
		n = read(l->fd, l->bytes + l->len, sizeof(l->bytes) - l->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return NULL;
		l->len += (size_t)n;
	}
}

static int change_list_begin(struct change_list *l, int fd)
{
	const char *head;

	l->fd = fd;
	l->at = l->len = 0;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	head = next_text(l);
	return head && str_eq(head, CHANGE_LIST_HEAD) ? 0 : -EBADMSG;
}

static int change_list_next(struct change_list *l, struct change_listed *ret)
{
	const char *text = next_text(l);
	char *end;

	if (!text)
		return -EBADMSG;
	if (!*text)
		return 0;
	if ((text[0] != 'd' && text[0] != 'f') || text[1] != ' ')
		return -EBADMSG;
	ret->is_folder = text[0] == 'd';
	ret->inode = strtoull(text + 2, &end, 10);
	if (*end != ' ')
		return -EBADMSG;
	ret->changed_ns = strtoll(end + 1, &end, 10);
	if (*end != ' ' || !end[1] || strlen(end + 1) > CHANGE_LIST_MAX_NAME)
		return -EBADMSG;
	memcpy(ret->name, end + 1, strlen(end + 1) + 1);
	return 1;
}

static int change_list_skip(struct change_list *l)
{
	struct change_listed passed;

	for (unsigned depth = 1; depth > 0;) {
		int r = change_list_next(l, &passed);

		if (r < 0)
			return r;
		if (r == 0)
			depth--;
		else if (passed.is_folder)
			depth++;
	}
	return 0;
}

/* Says what could not be done with an entry of the folder we are in. -num. */
static int change_finish_fail(
	const struct change_finish *f, const char *name, int num, const char *doing)
{
	size_t skip = f->path_size > 200 ? f->path_size - 200 : 0;

	return err_sys(f->e, num, "cannot find out what the run changed: %s '%s%s%s%s'", doing,
		skip ? "…" : "", f->path + skip, f->path_size && *name ? "/" : "", name);
}

/* --- folders --- */

static int open_visit(const struct change_finish *f, struct change_visit *v)
{
	v->fd = file_open_beneath(
		f->copy, f->path_size ? f->path : ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
	return v->fd < 0 ? change_finish_fail(f, "", -v->fd, "reading") : 0;
}

static void close_visit(struct change_visit *v)
{
	if (v->fd >= 0)
		close(v->fd);
	v->fd = -1;
}

/* Makes the folder one that we may change, as long as we are in it. */
static int change_visit_give(struct change_visit *v)
{
	if (v->is_given || (v->mode & S_IWUSR && v->mode & S_IXUSR))
		return 0;
	v->is_given = true;
	return fchmod(v->fd, v->mode | S_IRWXU) < 0 ? -errno : 0;
}

/* The folder at f->path, from its opening to its mode. */
static int do_visit(struct change_finish *f, struct change_visit *v, change_walk *inside)
{
	int r = open_visit(f, v);

	if (r == 0) {
		r = tree_names_read(v->fd, TREE_MAX_NAMES - f->names_size, &v->names);
		f->names_size += v->names.bytes.len;
		r = r < 0 ? change_finish_fail(f, "", -r, "reading") : inside(f, v);
		f->names_size -= v->names.bytes.len;
		tree_names_done(&v->names);
	}
	if (v->fd >= 0 && v->is_given && fchmod(v->fd, v->mode) < 0 && r == 0)
		r = change_finish_fail(f, "", errno, "leaving");
	close_visit(v);
	return r;
}

/* The top, and what `inside` does there. */
static int change_visit_top(struct change_finish *f, change_walk *inside)
{
	struct change_visit v = { .fd = -1, .mode = S_IRWXU };

	return do_visit(f, &v, inside);
}

/* Goes into a folder and comes back. */
static int change_visit_folder(struct change_finish *f, struct change_visit *v, const char *name,
	mode_t mode, change_walk *inside)
{
	struct change_visit inner = { .fd = -1, .mode = mode & 07777 };
	size_t before = f->path_size, n = strlen(name);
	int r, again;

	if (before + 1 + n > CHANGE_MAX_PATH || f->depth == CHANGE_MAX_DEPTH)
		return change_finish_fail(f, name, ENAMETOOLONG, "entering");
	if (!(mode & S_IRUSR) || !(mode & S_IXUSR)) {
		inner.is_given = true;
		if (fchmodat(v->fd, name, inner.mode | S_IRWXU, AT_SYMLINK_NOFOLLOW) < 0)
			return change_finish_fail(f, name, errno, "entering");
	}
	close_visit(v);
	if (before)
		f->path[f->path_size++] = '/';
	memcpy(f->path + f->path_size, name, n + 1);
	f->path_size += n;
	f->depth++;
	r = do_visit(f, &inner, inside);
	f->depth--;
	f->path_size = before;
	f->path[before] = '\0';
	/* Also when it failed: the mode is to be put back. */
	again = open_visit(f, v);
	return r < 0 ? r : again;
}

/* --- marks --- */

static int change_attribute(const struct change_finish *f, const char *name, bool hides)
{
	int r = hides ? lsetxattr(f->entry, name, "y", 1, 0) : lremovexattr(f->entry, name);

	return r < 0 && errno != ENODATA ? -errno : 0;
}

/* It takes the right to write, which a file of our own may not give us. */
static int change_by_right(const struct change_finish *f, const struct change_visit *v,
	const char *name, const char *attribute, bool hides)
{
	int r = change_attribute(f, attribute, hides);
	struct stat st;

	if (r != -EACCES)
		return r;
	if (fstatat(v->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		fchmodat(v->fd, name, (st.st_mode & 07777) | S_IWUSR, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	r = change_attribute(f, attribute, hides);
	if (fchmodat(v->fd, name, st.st_mode & 07777, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return r;
}

/* An overlay lets nobody write these; in a copy the run could. */
static int remove_marks(struct change_finish *f, const struct change_visit *v, const char *name)
{
	ssize_t n = llistxattr(f->entry, f->attributes, sizeof(f->attributes));
	int r = n < 0 && errno != ENOTSUP && errno != ENOSYS ? -errno : 0;

	for (const char *a = f->attributes; r == 0 && a < f->attributes + n; a += strlen(a) + 1)
		if (str_starts(a, "user.overlay."))
			r = change_by_right(f, v, name, a, false);
	return r;
}

/*
 * Takes attributes off a file or a folder that an overlay would obey; `hides`: and puts that one
 * on by which a folder hides what is below it.
 */
static int change_finish_mark(
	struct change_finish *f, const struct change_visit *v, const char *name, bool hides)
{
	int n = snprintf(f->entry, sizeof(f->entry), "/proc/self/fd/%d/%s", v->fd, name);
	int r = n < 0 || n >= (int)sizeof(f->entry) ? -ENAMETOOLONG : remove_marks(f, v, name);

	if (r == 0 && hides)
		r = change_by_right(f, v, name, "user.overlay.opaque", true);
	return r < 0 ? change_finish_fail(f, name, -r, "marking") : 0;
}

/* Where the list is not as it was written, nothing can be told by it. */
static int fail_list(const struct change_finish *f, int r)
{
	return err_set(f->e, ERR_SYS, -r,
		"cannot find out what the run changed: the list of the project's copy is damaged");
}

static void copy_tell(struct change_finish *f)
{
	f->seen++;
	if (f->progress && f->progress->tell)
		f->progress->tell(f->progress->of, "comparing the project's copy", f->seen, 0);
}

/* --- one entry --- */

static bool copy_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

static int copy_remove_entry(
	struct change_finish *f, struct change_visit *v, const char *name, bool is_folder)
{
	int r = change_visit_give(v);

	if (r == 0 && unlinkat(v->fd, name, is_folder ? AT_REMOVEDIR : 0) < 0)
		r = -errno;
	/* There is something in it that stays. */
	if (is_folder && (r == -ENOTEMPTY || r == -EEXIST))
		return 0;
	return r < 0 ? change_finish_fail(f, name, -r, "removing") : 0;
}

static change_walk walk_new;

/* Something that was not there before; `hides` what was. */
static int take_made(struct change_finish *f, struct change_visit *v, const char *name,
	const struct stat *st, bool hides)
{
	bool is_folder = S_ISDIR(st->st_mode);
	int r = 0;

	if (f->removes)
		return 0;
	/* Only an overlay makes these in a layer; the run's own stand for nothing. */
	if (copy_is_whiteout(st))
		return copy_remove_entry(f, v, name, false);
	if (is_folder || S_ISREG(st->st_mode))
		r = change_finish_mark(f, v, name, hides && is_folder);
	return r == 0 && is_folder ? change_visit_folder(f, v, name, st->st_mode, walk_new) : r;
}

static int copy_look(
	struct change_finish *f, const struct change_visit *v, const char *name, struct stat *ret)
{
	copy_tell(f);
	return fstatat(v->fd, name, ret, AT_SYMLINK_NOFOLLOW) < 0
		       ? change_finish_fail(f, name, errno, "looking at")
		       : 0;
}

static int take_new(struct change_finish *f, struct change_visit *v, const char *name)
{
	struct stat st;
	int r = copy_look(f, v, name, &st);

	return r < 0 ? r : take_made(f, v, name, &st, false);
}

static int copy_skip(struct change_finish *f, const struct change_listed *was)
{
	int r = was->is_folder ? change_list_skip(&f->list) : 0;

	return r < 0 ? fail_list(f, r) : 0;
}

static int take_gone(
	struct change_finish *f, struct change_visit *v, const struct change_listed *was)
{
	int r = f->removes ? 0 : change_visit_give(v);

	if (r == 0 && !f->removes && mknodat(v->fd, was->name, S_IFCHR, 0) < 0)
		r = -errno;
	return r < 0 ? change_finish_fail(f, was->name, -r, "marking") : copy_skip(f, was);
}

static change_walk walk_known;

/* A folder that is still the one it was. */
static int take_folder(struct change_finish *f, struct change_visit *v, const char *name,
	const struct stat *st, bool is_touched)
{
	int r = is_touched && !f->removes ? change_finish_mark(f, v, name, false) : 0;

	if (r == 0)
		r = change_visit_folder(f, v, name, st->st_mode, walk_known);
	return r == 0 && f->removes && !is_touched ? copy_remove_entry(f, v, name, true) : r;
}

static int take_known(
	struct change_finish *f, struct change_visit *v, const struct change_listed *was)
{
	bool is_same, is_touched;
	struct stat st;
	int r = copy_look(f, v, was->name, &st);

	if (r < 0)
		return r;
	if (copy_is_whiteout(&st))
		return copy_skip(f, was);
	is_same = st.st_ino == was->inode && S_ISDIR(st.st_mode) == was->is_folder;
	is_touched = !is_same || change_list_changed(&st) != was->changed_ns;
	if (is_same && was->is_folder)
		return take_folder(f, v, was->name, &st, is_touched);
	if (is_touched)
		r = take_made(f, v, was->name, &st, true);
	else if (f->removes)
		r = copy_remove_entry(f, v, was->name, false);
	return r == 0 ? copy_skip(f, was) : r;
}

/* --- folders --- */

/* The names from *i on that come before `end`, or all that are left: no list has them. */
static int take_until(struct change_finish *f, struct change_visit *v, size_t *i, const char *end)
{
	int r = 0;

	while (r == 0 && *i < v->names.count && (!end || strcmp(v->names.sorted[*i], end) < 0))
		r = take_new(f, v, v->names.sorted[(*i)++]);
	return r;
}

static int walk_new(struct change_finish *f, struct change_visit *v)
{
	size_t i = 0;

	return take_until(f, v, &i, NULL);
}

/* Along the list and the folder at once: both are in order. */
static int walk_known(struct change_finish *f, struct change_visit *v)
{
	struct change_listed was;
	size_t i = 0;
	int r = 0, more;

	while (r == 0 && (more = change_list_next(&f->list, &was)) != 0) {
		if (more < 0)
			return fail_list(f, more);
		r = take_until(f, v, &i, was.name);
		if (r < 0)
			return r;
		if (i < v->names.count && strcmp(v->names.sorted[i], was.name) == 0) {
			i++;
			r = take_known(f, v, &was);
		} else {
			r = take_gone(f, v, &was);
		}
	}
	return r == 0 ? take_until(f, v, &i, NULL) : r;
}

static int walk_top(struct change_finish *f, struct change_visit *v)
{
	int r = f->removes ? 0 : change_finish_mark(f, v, ".", false);

	return r == 0 ? walk_known(f, v) : r;
}

/* --- all of it --- */

static int walk_all(struct change_finish *f, int layer, const char *list)
{
	own_fd int fd = file_open_name(layer, list, O_RDONLY | O_NOCTTY);
	int r = fd < 0 ? fd : change_list_begin(&f->list, fd);

	return r < 0 ? fail_list(f, r) : change_visit_top(f, walk_top);
}

/* Whatever became of its mode: nobody compares that of the top. */
static int open_copy(int layer, const char *name)
{
	if (fchmodat(layer, name, S_IRWXU, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return tree_open_folder(layer, name);
}

static bool copy_is_there(int layer, const char *name)
{
	struct stat st;

	return fstatat(layer, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int rename_in(const struct change_finish *f, int layer, const char *from, const char *to)
{
	return renameat(layer, from, layer, to) < 0 ? change_finish_fail(f, from, errno, "renaming")
						    : 0;
}

static int walk_twice(struct change_finish *f, int layer)
{
	int r = 0;

	if (!copy_is_there(layer, "marked")) {
		r = walk_all(f, layer, "list");
		if (r == 0)
			r = rename_in(f, layer, "list", "marked");
	}
	f->removes = true;
	if (r == 0)
		r = walk_all(f, layer, "marked");
	return r == 0 ? rename_in(f, layer, "copy", "upper") : r;
}

/* An overlay marks by itself what is gone. */
static int walk_once(struct change_finish *f, int layer)
{
	f->removes = true;
	return walk_all(f, layer, "list");
}

static int finish_with(int layer, int copy, int (*walk)(struct change_finish *f, int layer),
	const struct change_progress *progress, struct err *e)
{
	/* On the heap for the path in it. */
	struct change_finish *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return err_set(e, ERR_SYS, ENOMEM,
			"cannot find out what the run changed: not enough memory");
	f->copy = copy;
	f->progress = progress;
	f->e = e;
	r = walk(f, layer);
	free(f);
	return r;
}

static int finish_filled(int layer, const struct change_progress *progress, struct err *e)
{
	own_fd int upper = -1;
	int r;

	/* No command was started on it. */
	if (copy_is_there(layer, "list.new")) {
		r = tree_remove(layer, "upper", e);
		if (r == 0)
			unlinkat(layer, "list.new", 0);
		return r;
	}
	if (!copy_is_there(layer, "list"))
		return 0;
	upper = open_copy(layer, "upper");
	if (upper < 0)
		return err_sys(e, -upper, "cannot open the run's layer");
	r = finish_with(layer, upper, walk_once, progress, e);
	if (r == 0)
		unlinkat(layer, "list", 0);
	return r;
}

int change_copy_finish(int layer, const struct change_progress *progress, struct err *e)
{
	own_fd int copy = open_copy(layer, "copy");
	int r;

	if (copy < 0 && copy != -ENOENT)
		return err_sys(e, -copy, "cannot open the project's copy");
	if (copy >= 0 && !copy_is_there(layer, "list") && !copy_is_there(layer, "marked"))
		return tree_remove(layer, "copy", e);
	r = copy >= 0 ? finish_with(layer, copy, walk_twice, progress, e)
		      : finish_filled(layer, progress, e);
	/* Also the last step may have been interrupted. */
	if (r == 0)
		unlinkat(layer, "marked", 0);
	return r;
}
