/*
 * change_overlay - an overlay of the root on disk: finding, making, locking and saving it.
 *
 * Runs as:  the operator; with the overlay's lock where it saves.
 * Must not: touch a folder that is not an overlay of his own; change the kept tree, which is
 *           exchanged as a whole for another one that is complete and on disk.
 */
#include "change/overlay/change_overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"

#define VERSION     1
#define MAX_FILE    1024 /* bytes of overlay.json, and of the lock */
#define HOLDER_SIZE 128

void change_overlay_init(struct change_overlay *o)
{
	memset(o, 0, sizeof(*o));
	o->parent = o->folder = o->lock = -1;
}

void change_overlay_done(struct change_overlay *o)
{
	const int fds[] = { o->parent, o->folder, o->lock };

	/* Whoever else has the descriptor for a moment longer does not hold the lock with it. */
	if (o->lock >= 0)
		flock(o->lock, LOCK_UN);
	for (size_t i = 0; i < COUNT_OF(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	o->parent = o->folder = o->lock = -1;
}

/* "cannot VERB the overlay 'PATH': reason". */
static int change_overlay_fail(
	const struct change_overlay *o, const char *verb, int num, struct err *e)
{
	return err_set(e, ERR_REFUSED, num, "cannot %s the overlay '%s': %s", verb, o->path,
		strerror(num));
}

static const char *name_of(const struct change_overlay *o)
{
	return strrchr(o->path, '/') + 1;
}

/* --- where it is --- */

static int overlay_find_path(struct change_overlay *o, const char *name, struct err *e)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", o->parent);
	n = readlink(link, o->path, sizeof(o->path) - strlen(name) - 2);
	if (n < 0)
		return err_sys(e, errno, "cannot find the overlay '%s'", name);
	/* What is in "/" has but one slash. */
	snprintf(o->path + (n == 1 ? 0 : n), sizeof(o->path) - (size_t)n, "/%s", name);
	return 0;
}

int change_overlay_find(struct change_overlay *o, const char *path, struct err *e)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	int r;

	if (!*name || str_eq(name, ".") || str_eq(name, "..") || strlen(path) >= sizeof(folder) ||
		strlen(name) > NAME_MAX)
		return err_set(e, ERR_USE, EINVAL,
			"cannot use '%s' as an overlay: its path does not end with a name", path);
	snprintf(folder, sizeof(folder), "%.*s/", slash ? (int)(slash - path) : 1,
		slash ? path : ".");
	o->parent = file_open(folder, O_PATH | O_DIRECTORY);
	if (o->parent < 0)
		return err_set(e, ERR_REFUSED, -o->parent,
			"cannot find the overlay '%s': the folder '%s' it is in cannot be opened: "
			"%s",
			path, folder, strerror(-o->parent));
	r = overlay_find_path(o, name, e);
	if (r < 0)
		return r;
	o->folder = file_open_name(o->parent, name, O_RDONLY | O_DIRECTORY);
	if (o->folder >= 0 || o->folder == -ENOENT)
		return 0;
	if (o->folder == -ENOTDIR || o->folder == -ELOOP)
		return err_hint(e,
			err_set(e, ERR_REFUSED, ENOTDIR,
				"cannot use '%s' as an overlay: it is not a folder", o->path),
			"bawn overlay init makes one");
	return change_overlay_fail(o, "open", -o->folder, e);
}

/* --- overlay.json --- */

int change_overlay_note(const struct change_overlay *o, struct err *e)
{
	own(buf) struct buf out = { .max = MAX_FILE };
	own_fd int fd = -1;
	struct json j;
	int r;

	json_init(&j, &out, 0);
	json_open_map(&j, NULL);
	json_int(&j, "version", VERSION);
	json_int(&j, "size", (int64_t)o->size);
	json_text(&j, "created", o->created);
	json_text(&j, "sha256", o->digest);
	json_close_map(&j);
	buf_putc(&out, '\n');
	fd = openat(o->folder, "overlay.json.new",
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : out.failed ? -ENOMEM : file_write_all(fd, out.data, out.len);
	if (r == 0 && (fsync(fd) < 0 || renameat(o->folder, "overlay.json.new", o->folder,
						"overlay.json") < 0))
		r = -errno;
	return r < 0 ? change_overlay_fail(o, "write overlay.json of", -r, e) : 0;
}

static bool overlay_skip(const char **at, const char *text)
{
	bool is_there = str_starts(*at, text);

	*at += is_there ? strlen(text) : 0;
	return is_there;
}

static bool overlay_take_number(const char **at, uint64_t *ret)
{
	*ret = 0;
	if (!str_is_digit(**at))
		return false;
	for (; str_is_digit(**at); ++*at)
		if (__builtin_mul_overflow(*ret, 10, ret) ||
			__builtin_add_overflow(*ret, (unsigned)(**at - '0'), ret))
			return false;
	return true;
}

/* Up to the quote that ends it. */
static bool overlay_take_text(const char **at, char *ret, size_t size)
{
	size_t n = strcspn(*at, "\"\\");

	if (n >= size)
		return false;
	memcpy(ret, *at, n);
	ret[n] = '\0';
	*at += n;
	return true;
}

/* Nobody else writes it, and so it has exactly this form. */
static bool parse(struct change_overlay *o, const char *text)
{
	uint8_t digest[SHA256_SIZE];

	return overlay_skip(&text, ",\"size\":") && overlay_take_number(&text, &o->size) &&
	       overlay_skip(&text, ",\"created\":\"") &&
	       overlay_take_text(&text, o->created, sizeof(o->created)) &&
	       overlay_skip(&text, "\",\"sha256\":\"") &&
	       overlay_take_text(&text, o->digest, sizeof(o->digest)) &&
	       overlay_skip(&text, "\"}\n") && !*text && o->size > 0 && o->size <= INT64_MAX &&
	       sha256_parse(o->digest, digest) == 0;
}

static int read_note(struct change_overlay *o, struct err *e)
{
	own_fd int fd = file_open_name(o->folder, "overlay.json", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	char text[MAX_FILE];
	const char *at = text;
	uint64_t version = 0;
	ssize_t n = file_read_text(fd, text, sizeof(text));

	if (n == -ENOENT)
		return err_hint(e,
			err_set(e, ERR_REFUSED, ENOENT,
				"cannot use '%s' as an overlay: it has no overlay.json", o->path),
			"bawn overlay init makes one at a path where nothing is");
	if (n < 0)
		return change_overlay_fail(o, "read overlay.json of", (int)-n, e);
	if (overlay_skip(&at, "{\"version\":") && overlay_take_number(&at, &version) &&
		version != VERSION)
		return err_set(e, ERR_REFUSED, EINVAL,
			"cannot use the overlay '%s': it is of version %llu, and this bawn knows "
			"%d",
			o->path, (unsigned long long)version, VERSION);
	if (version != VERSION || !parse(o, at))
		return err_set(e, ERR_REFUSED, EINVAL,
			"cannot use '%s' as an overlay: its overlay.json is damaged or of another "
			"program",
			o->path);
	return 0;
}

int change_overlay_open(struct change_overlay *o, struct err *e)
{
	struct stat st;

	if (o->folder < 0)
		return change_overlay_fail(o, "open", ENOENT, e);
	if (fstat(o->folder, &st) < 0)
		return change_overlay_fail(o, "read", errno, e);
	if (st.st_uid != geteuid())
		return err_set(e, ERR_REFUSED, EPERM,
			"cannot use the overlay '%s': it belongs to user %u, not to you", o->path,
			(unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_hint(e,
			err_set(e, ERR_REFUSED, EPERM,
				"cannot use the overlay '%s': others can write to it", o->path),
			"chmod 700 '%s'", o->path);
	return read_note(o, e);
}

/* --- making one --- */

/* The note comes last: what has one is complete. */
static int overlay_fill(struct change_overlay *o, struct err *e)
{
	struct timespec now;
	char text[CLOCK_TEXT_SIZE];
	int r;

	o->folder = file_open_name(o->parent, name_of(o), O_RDONLY | O_DIRECTORY);
	if (o->folder < 0)
		return change_overlay_fail(o, "create", -o->folder, e);
	if (mkdirat(o->folder, "tree", 0700) < 0 || fchmodat(o->folder, "tree", 0755, 0) < 0)
		return change_overlay_fail(o, "create", errno, e);
	r = change_overlay_digest(o, o->digest, e);
	if (r < 0)
		return r;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_print(&now, text);
	snprintf(o->created, sizeof(o->created), "%.31s", text);
	return change_overlay_note(o, e);
}

int change_overlay_create(struct change_overlay *o, uint64_t size, struct err *e)
{
	int r;

	o->size = size;
	if (mkdirat(o->parent, name_of(o), 0700) < 0)
		return change_overlay_fail(o, "create", errno, e);
	r = overlay_fill(o, e);
	/* What is not complete would be in the way of the next try. */
	if (r < 0)
		tree_remove(o->parent, name_of(o), NULL);
	return r;
}

/* --- one user at a time --- */

static bool overlay_save_has(const struct change_overlay *o, const char *name)
{
	struct stat st;

	return fstatat(o->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A killed save may have left the old tree under another name. */
static int change_overlay_recover(const struct change_overlay *o, struct err *e)
{
	if (overlay_save_has(o, "tree") || !overlay_save_has(o, "tree.old"))
		return 0;
	return renameat(o->folder, "tree.old", o->folder, "tree") < 0
		       ? change_overlay_fail(o, "restore", errno, e)
		       : 0;
}

/* Who has it: what stands in the lock is theirs as long as they hold it. */
static int refuse_used(const struct change_overlay *o, int lock, struct err *e)
{
	char holder[HOLDER_SIZE];

	if (file_read_text(lock, holder, sizeof(holder)) <= 0)
		snprintf(holder, sizeof(holder), "somebody else");
	holder[strcspn(holder, "\n")] = '\0';
	return err_hint(e,
		err_set(e, ERR_REFUSED, EBUSY, "cannot use the overlay '%s': %s uses it", o->path,
			holder),
		"wait for its end, or use another overlay");
}

/* What was killed just now lets go of it in a moment. */
static int lock_soon(int fd)
{
	const struct timespec moment = { .tv_nsec = 20 * 1000 * 1000 };
	int r = -EWOULDBLOCK;

	for (int tries = 0; tries < 10 && r == -EWOULDBLOCK; tries++) {
		if (tries)
			nanosleep(&moment, NULL);
		r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	}
	return r;
}

int change_overlay_take(struct change_overlay *o, const char *holder, struct err *e)
{
	own_fd int lock = openat(
		o->folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	char text[HOLDER_SIZE];
	int n;

	if (lock < 0)
		return change_overlay_fail(o, "lock", errno, e);
	n = lock_soon(lock);
	if (n < 0)
		return n == -EWOULDBLOCK ? refuse_used(o, lock, e)
					 : change_overlay_fail(o, "lock", -n, e);
	n = snprintf(text, sizeof(text), "%s, process %d\n", holder, getpid());
	if (ftruncate(lock, 0) < 0 || pwrite(lock, text, (size_t)n, 0) != n)
		return change_overlay_fail(o, "lock", errno, e);
	o->lock = take_fd(&lock);
	/* Somebody may have saved between the first look and this one. */
	n = change_overlay_recover(o, e);
	return n < 0 ? n : read_note(o, e);
}

/* --- saving --- */

int change_overlay_tree(const struct change_overlay *o, struct err *e)
{
	int fd = file_open_name(o->folder, "tree", O_RDONLY | O_DIRECTORY);

	return fd < 0 ? change_overlay_fail(o, "open the tree of", -fd, e) : fd;
}

int change_overlay_digest(
	const struct change_overlay *o, char ret[static SHA256_HEX_SIZE], struct err *e)
{
	own_fd int tree = change_overlay_tree(o, e);
	int r = tree < 0 ? tree : tree_digest(tree, NULL, ret, e);

	if (tree >= 0 && r < 0)
		err_prefix(e, "cannot digest the overlay '%s'", o->path);
	return r;
}

/* Where two names cannot be exchanged, there is a moment without a tree; recovering knows it. */
static int put_in_place(const struct change_overlay *o)
{
	if (renameat2(o->folder, "tree.new", o->folder, "tree", RENAME_EXCHANGE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (renameat(o->folder, "tree", o->folder, "tree.old") < 0)
		return -errno;
	if (renameat(o->folder, "tree.new", o->folder, "tree") == 0)
		return 0;
	/* As it was. */
	(void)renameat(o->folder, "tree.old", o->folder, "tree");
	return -errno;
}

static int overlay_save_make(const struct change_overlay *o, const char *name)
{
	if (mkdirat(o->folder, name, 0700) < 0)
		return -errno;
	return file_open_name(o->folder, name, O_RDONLY | O_DIRECTORY);
}

struct saving {
	const struct change_progress *progress;
	struct tree_counts counts;
};

static int overlay_save_tell(void *of)
{
	const struct saving *s = of;
	const struct tree_counts *c = &s->counts;

	if (s->progress->tell)
		s->progress->tell(s->progress->of, "saving the overlay",
			c->files + c->folders + c->links + c->others, 0);
	return 0;
}

static int overlay_save_copy(
	int from, int tree, int links, int older, struct saving *s, struct err *e)
{
	/* Set-user-id would mean the operator's own id here; in a cage it never has an effect. */
	const struct tree_options options = { .drops = S_ISUID | S_ISGID,
		.opens_up = true,
		.links = links,
		.older = older,
		.counts = &s->counts,
		.step = overlay_save_tell,
		.of = s };

	return tree_copy(from, tree, &options, e);
}

/* Fills tree.new; from = -1: with nothing. */
static int write_new(struct change_overlay *o, int from, struct saving *s,
	char ret_digest[static SHA256_HEX_SIZE], struct err *e)
{
	own_fd int tree = overlay_save_make(o, "tree.new"),
		   links = overlay_save_make(o, "links.new");
	own_fd int older = file_open_name(o->folder, "tree", O_RDONLY | O_DIRECTORY);
	int r = 0;

	if (tree < 0 || links < 0)
		return change_overlay_fail(o, "write to", tree < 0 ? -tree : -links, e);
	if (from >= 0)
		r = overlay_save_copy(from, tree, links, older, s, e);
	else if (fchmod(tree, 0755) < 0)
		r = change_overlay_fail(o, "write to", errno, e);
	if (r == 0)
		r = tree_digest(tree, NULL, ret_digest, e);
	if (r == 0 && syncfs(tree) < 0)
		r = change_overlay_fail(o, "write to", errno, e);
	return r;
}

static int replace(struct change_overlay *o, int from, struct saving *s, struct err *e)
{
	char digest[SHA256_HEX_SIZE] = "";
	unsigned left;
	int r = change_overlay_prune(o, &left, e);

	if (r == 0)
		r = write_new(o, from, s, digest, e);
	if (r == 0) {
		r = put_in_place(o);
		if (r < 0)
			change_overlay_fail(o, "write to", -r, e);
	}
	if (r < 0) {
		/* What cannot be removed now is left for the next one. */
		change_overlay_prune(o, &left, NULL);
		err_prefix(e, "cannot save the overlay '%s', which is as it was before", o->path);
		return r;
	}
	memcpy(o->digest, digest, sizeof(digest));
	r = fsync(o->folder) < 0 ? change_overlay_fail(o, "write to", errno, e) : 0;
	if (r == 0)
		r = change_overlay_note(o, e);
	if (r == 0)
		r = change_overlay_prune(o, &left, e);
	if (r < 0)
		err_prefix(e, "cannot finish saving the overlay '%s'", o->path);
	return r;
}

int change_overlay_save(struct change_overlay *o, int from, const struct change_progress *progress,
	uint64_t *ret_skipped, struct err *e)
{
	struct saving s = { .progress = progress };
	int r = replace(o, from, &s, e);

	*ret_skipped = s.counts.skipped;
	return r;
}

int change_overlay_reset(struct change_overlay *o, struct err *e)
{
	struct saving s = { 0 };

	return replace(o, -1, &s, e);
}

int change_overlay_prune(struct change_overlay *o, unsigned *ret_count, struct err *e)
{
	static const char *const names[] = { "tree.new", "tree.old", "links.new",
		"overlay.json.new" };
	int r = change_overlay_recover(o, e);

	*ret_count = 0;
	for (size_t i = 0; r == 0 && i < COUNT_OF(names); i++) {
		*ret_count += i < 2 && overlay_save_has(o, names[i]);
		r = tree_remove(o->folder, names[i], e);
	}
	return r;
}
