/*
 * session_unpack - a saved workspace is checked, and becomes a folder again.
 *
 * Runs as:  a worker that has taken the session, and has no workspace of it in its root.
 * Leaves:   the workspace, whole, under its number; or nothing.
 * Must not: make anything before the whole piece was found to be one; follow a link, or leave the
 *           folder: each entry is one name in a folder that was made here and is open.
 *
 * Everything belongs to who unpacks. Nobody else can come into the folder while it is made.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/tree.h"
#include "session/folder/session.h"
#include "session/folder/session_inside.h"
#include "session/folder/session_piece.h"
#include "session/store/store.h"

const struct piece_part piece_parts[PIECE_PART_COUNT] = {
	{ "git", PIECE_LINK, false },
	{ "git-layer", PIECE_FOLDER, true },
	{ "home", PIECE_FOLDER, false },
	{ "layer", PIECE_FOLDER, true },
	{ "project", PIECE_LINK, false },
	{ "protect", PIECE_FILE, false },
};

static_assert(PIECE_DIGEST_SIZE == SHA256_SIZE, "the digest ends the piece");

/* --- its smallest parts --- */

/* Sets the fault; the first one counts. */
static bool blame(struct piece *p, const char *fault)
{
	if (!p->fault)
		p->fault = fault;
	return false;
}

static const uint8_t *piece_take(struct piece *p, uint64_t n)
{
	const uint8_t *at = p->at;

	if (p->fault || n > (uint64_t)(p->end - p->at)) {
		blame(p, "it ends in the middle of something");
		return NULL;
	}
	p->at += n;
	return at;
}

/* The least significant byte comes first. 0 where there is none left. */
static uint64_t piece_take_number(struct piece *p, size_t size)
{
	const uint8_t *bytes = piece_take(p, size);
	uint64_t number = 0;

	for (size_t i = size; bytes && i-- > 0;)
		number = number << 8 | bytes[i];
	return number;
}

/* A text with its length before it and a NUL behind it, and none within. */
static const char *piece_take_text(struct piece *p, size_t max)
{
	uint64_t n = piece_take_number(p, 2);
	const uint8_t *bytes = piece_take(p, n + 1);

	if (!bytes)
		return NULL;
	if (n == 0 || n > max || bytes[n] || memchr(bytes, '\0', n)) {
		blame(p, "a text is empty, too long, or has a NUL in it");
		return NULL;
	}
	return (const char *)bytes;
}

/* One component of a path, and none that leads elsewhere. */
static const char *piece_take_name(struct piece *p)
{
	const char *name = piece_take_text(p, NAME_MAX);

	if (name && (strchr(name, '/') || str_eq(name, ".") || str_eq(name, ".."))) {
		blame(p, "a name is none that a folder can have");
		return NULL;
	}
	return name;
}

/* --- parts of an entry --- */

bool piece_read_attribute(struct piece *p, struct piece_attribute *ret)
{
	uint64_t size;

	if (p->fault || p->at == p->end)
		return false;
	ret->name = piece_take_text(p, XATTR_NAME_MAX);
	size = piece_take_number(p, 4);
	if (size > XATTR_SIZE_MAX)
		return blame(p, "an attribute is too large");
	ret->size = (size_t)size;
	ret->value = piece_take(p, size);
	if (!p->fault && (!str_starts(ret->name, "user.") || !ret->name[strlen("user.")]))
		return blame(p, "an attribute is not one of a user's");
	return !p->fault;
}

bool piece_read_extent(struct piece *p, struct piece_extent *ret)
{
	uint64_t size;

	if (p->fault || p->at == p->end)
		return false;
	size = piece_take_number(p, 8);
	ret->offset = piece_take_number(p, 8);
	ret->bytes = piece_take(p, size);
	ret->size = (size_t)size;
	return !p->fault;
}

/* Reads attributes, which must be sorted and unique. *ret is their position. */
static void take_attributes(struct piece *p, struct piece *ret)
{
	uint64_t count = piece_take_number(p, 2);
	struct piece_attribute x, before = { .name = "" };

	*ret = (struct piece){ .start = p->start, .at = p->at, .end = p->end };
	for (; count && !p->fault; count--) {
		if (!piece_read_attribute(p, &x))
			blame(p, "attributes are missing");
		else if (strcmp(before.name, x.name) >= 0)
			blame(p, "attributes are out of order");
		before = x;
	}
	ret->end = p->at;
}

/* Content, each part behind the one before and within the file; the one without content ends it. */
static void take_extents(struct piece *p, uint64_t size, struct piece *ret)
{
	uint64_t reached = 0;

	*ret = (struct piece){ .start = p->start, .at = p->at, .end = p->end };
	while (!p->fault) {
		struct piece look = *p;
		struct piece_extent x;

		ret->end = p->at;
		if (piece_take_number(&look, 8) == 0) {
			piece_take(p, 8);
			return;
		}
		if (!piece_read_extent(p, &x))
			blame(p, "content is missing");
		else if (x.offset < reached || x.offset > size || x.size > size - x.offset)
			blame(p, "content is out of order, or beyond its file");
		else
			reached = x.offset + x.size;
	}
}

static void take_time(struct piece *p, struct timespec *ret)
{
	ret->tv_sec = (time_t)piece_take_number(p, 8);
	ret->tv_nsec = (long)piece_take_number(p, 4);
	if (ret->tv_nsec >= 1000000000)
		blame(p, "a time is none");
}

static void take_mode(struct piece *p, struct piece_entry *x)
{
	x->mode = (mode_t)piece_take_number(p, 2);
	if (x->mode & ~(mode_t)07777 || (x->kind == PIECE_FILE && x->mode & (S_ISUID | S_ISGID)))
		blame(p, "a mode is none that is kept");
}

bool piece_read_entry(struct piece *p, struct piece_entry *ret)
{
	*ret = (struct piece_entry){ .kind = (enum piece_kind)piece_take_number(p, 1) };
	if (p->fault || ret->kind == PIECE_END)
		return !p->fault;
	if (ret->kind != PIECE_FOLDER && ret->kind != PIECE_FILE && ret->kind != PIECE_LINK &&
		ret->kind != PIECE_WHITEOUT)
		return blame(p, "an entry is of no known kind");
	ret->name = piece_take_name(p);
	if (!ret->name)
		return false;
	take_time(p, &ret->mtime);
	if (ret->kind == PIECE_LINK)
		ret->target = piece_take_text(p, PATH_MAX - 1);
	if (ret->kind == PIECE_FILE || ret->kind == PIECE_FOLDER) {
		take_mode(p, ret);
		take_attributes(p, &ret->attributes);
	}
	if (ret->kind == PIECE_FILE) {
		ret->size = piece_take_number(p, 8);
		if (ret->size > INT64_MAX)
			blame(p, "a file is too large");
		take_extents(p, ret->size, &ret->extents);
	}
	return !p->fault;
}

/* --- the whole --- */

static const struct piece_part *piece_find_part(const char *name)
{
	for (size_t i = 0; i < PIECE_PART_COUNT; i++)
		if (str_eq(piece_parts[i].name, name))
			return &piece_parts[i];
	return NULL;
}

/* Reads to the end of a folder; `part` is the one it is in, or NULL at the top. */
static void piece_check_folder(struct piece *p, unsigned depth, const struct piece_part *part)
{
	const char *before = "";
	struct piece_entry x;

	if (depth > TREE_MAX_DEPTH)
		blame(p, "its folders are nested too deep");
	while (piece_read_entry(p, &x) && x.kind != PIECE_END) {
		const struct piece_part *in = part ? part : piece_find_part(x.name);

		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): an entry has a name */
		if (strcmp(before, x.name) >= 0)
			blame(p, "names are out of order");
		else if (!in || (!part && in->kind != x.kind))
			blame(p, "it has something that no workspace has");
		else if (depth == 1 && in->is_layer && str_eq(x.name, PIECE_WORK))
			blame(p, "it has a layer's work, which is not kept");
		else if (x.kind == PIECE_FOLDER)
			piece_check_folder(p, depth + 1, in);
		if (p->fault)
			return;
		before = x.name;
	}
}

/* Checks what comes before and behind the entries. `p` is the whole piece; then the entries. */
static void check_frame(struct piece *p, size_t n)
{
	const uint8_t *bytes = p->at, *magic = piece_take(p, PIECE_MAGIC_SIZE);
	uint64_t version = piece_take_number(p, 4), size = piece_take_number(p, 8);
	uint8_t digest[SHA256_SIZE];
	struct sha256 s;

	p->left_out = piece_take_number(p, 8);
	if (p->fault || memcmp(magic, PIECE_MAGIC, PIECE_MAGIC_SIZE) != 0)
		p->fault = "it is none";
	else if (version != PIECE_VERSION)
		blame(p, "it is of another version of bawn");
	else if (n < PIECE_HEAD_SIZE + PIECE_DIGEST_SIZE ||
		 size != n - PIECE_HEAD_SIZE - PIECE_DIGEST_SIZE)
		blame(p, "its length is not the one it says");
	if (p->fault)
		return;
	p->end -= PIECE_DIGEST_SIZE;
	sha256_init(&s);
	sha256_add(&s, bytes, n - PIECE_DIGEST_SIZE);
	sha256_finish(&s, digest);
	if (memcmp(digest, p->end, SHA256_SIZE) != 0)
		blame(p, "its digest is another");
}

int piece_check(const void *bytes, size_t n, struct piece *ret, struct err *e)
{
	struct piece p = { .start = bytes, .at = bytes, .end = (const uint8_t *)bytes + n };

	if (n > STORE_MAX_SAVED)
		return err_set(e, ERR_REFUSED, EFBIG,
			"cannot use the saved workspace: it is larger than any that is saved");
	check_frame(&p, n);
	if (!p.fault) {
		*ret = p;
		piece_check_folder(&p, 0, NULL);
		if (!p.fault && p.at != p.end)
			blame(&p, "something follows its end");
	}
	if (p.fault)
		return err_set(e, ERR_REFUSED, EBADMSG,
			"cannot use the saved workspace: %s (at byte %zu of %zu)", p.fault,
			(size_t)(p.at - p.start), n);
	return 0;
}

/* --- unpacking --- */

#define DRAFT ".unpacked" /* after its number: one that is being made */

struct unpack {
	struct piece piece;
	struct tree_path path;
};

/* --- one entry --- */

static int set_attributes(struct piece_entry *x, int fd)
{
	struct piece_attribute a;

	while (piece_read_attribute(&x->attributes, &a))
		if (fsetxattr(fd, a.name, a.value, a.size, XATTR_CREATE) < 0)
			return -errno;
	return 0;
}

static int set_link_time(int at, const struct piece_entry *x)
{
	const struct timespec times[] = { x->mtime, x->mtime };

	return utimensat(at, x->name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* Everything that is not content: the mode last, as it may close what is open. */
static int unpack_finish(struct piece_entry *x, int fd)
{
	const struct timespec times[] = { x->mtime, x->mtime };
	int r = set_attributes(x, fd);

	if (r == 0 && (futimens(fd, times) < 0 || fchmod(fd, x->mode) < 0))
		r = -errno;
	return r;
}

static int unpack_write_at(int fd, const struct piece_extent *x)
{
	size_t done = 0;

	while (done < x->size) {
		ssize_t n = pwrite(fd, (const char *)x->bytes + done, x->size - done,
			(off_t)(x->offset + done));

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n < 0 ? 0 : (size_t)n;
	}
	return 0;
}

static int unpack_make_file(int at, struct piece_entry *x)
{
	own_fd int fd =
		openat(at, x->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct piece_extent extent;
	int r = fd < 0 || ftruncate(fd, (off_t)x->size) < 0 ? -errno : 0;

	while (r == 0 && piece_read_extent(&x->extents, &extent))
		r = unpack_write_at(fd, &extent);
	return r == 0 ? unpack_finish(x, fd) : r;
}

static int make_link(int at, const struct piece_entry *x)
{
	return symlinkat(x->target, at, x->name) < 0 ? -errno : set_link_time(at, x);
}

static int make_whiteout(int at, const struct piece_entry *x)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): an entry has a name */
	return mknodat(at, x->name, S_IFCHR, 0) < 0 ? -errno : set_link_time(at, x);
}

/* --- the walk --- */

static int unpack_folder(struct unpack *u, int folder, struct err *e);

static int unpack_make_folder(struct unpack *u, int at, struct piece_entry *x, struct err *e)
{
	own_fd int fd = -1;
	size_t before;
	int r;

	if (mkdirat(at, x->name, 0700) < 0)
		return tree_fail(&u->path, x->name, errno, "make", e);
	fd = tree_open_folder(at, x->name);
	if (fd < 0)
		return tree_fail(&u->path, x->name, -fd, "open", e);
	before = tree_path_enter(&u->path, x->name);
	r = unpack_folder(u, fd, e);
	tree_path_leave(&u->path, before);
	if (r < 0)
		return r;
	r = unpack_finish(x, fd);
	return r < 0 ? tree_fail(&u->path, x->name, -r, "make", e) : 0;
}

/* Until the folder ends. */
static int unpack_folder(struct unpack *u, int folder, struct err *e)
{
	struct piece_entry x;
	int r;

	for (;;) {
		/* It was read before, and has not changed. */
		if (!piece_read_entry(&u->piece, &x))
			return tree_fail(&u->path, "", EBADMSG, "make", e);
		if (x.kind == PIECE_END)
			return 0;
		if (x.kind == PIECE_FOLDER)
			r = unpack_make_folder(u, folder, &x, e);
		else if (x.kind == PIECE_FILE)
			r = unpack_make_file(folder, &x);
		else
			r = x.kind == PIECE_LINK ? make_link(folder, &x)
						 : make_whiteout(folder, &x);
		if (r < 0 && x.kind != PIECE_FOLDER)
			tree_fail(&u->path, x.name, -r, "make", e);
		if (r < 0)
			return r;
	}
}

/* --- the workspace --- */

static int make_lock(int workspace)
{
	own_fd int fd = openat(workspace, SESSION_LOCK,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : file_write_all(fd, "", 0);
}

/* Makes the other entries of a workspace, as session_make_folder does. */
static int complete(int workspace)
{
	if ((mkdirat(workspace, "home", 0700) < 0 && errno != EEXIST) ||
		mkdirat(workspace, "tmp", 0700) < 0 || fchmodat(workspace, "tmp", 01777, 0) < 0)
		return -errno;
	return make_lock(workspace);
}

static int unpack_fill(struct unpack *u, int workspaces, const char *draft, struct err *e)
{
	own_fd int workspace = -1;
	int r = mkdirat(workspaces, draft, 0700) < 0 ? -errno : 0;

	if (r == 0)
		r = workspace = file_open_same_mount(workspaces, draft, O_RDONLY | O_DIRECTORY);
	if (r < 0)
		return tree_fail(&u->path, draft, -r, "make", e);
	r = unpack_folder(u, workspace, e);
	if (r < 0)
		return r;
	r = complete(workspace);
	return r < 0 ? tree_fail(&u->path, draft, -r, "complete", e) : 0;
}

static int give_name(int workspaces, const char *draft, const char *name)
{
	if (renameat2(workspaces, draft, workspaces, name, RENAME_NOREPLACE) == 0)
		return 0;
	/* Where a file system does not know that: an empty folder in the way is all it replaces. */
	if (errno != EINVAL || renameat(workspaces, draft, workspaces, name) < 0)
		return -errno;
	return 0;
}

static int unpack_make_workspace(struct unpack *u, int workspaces, uint64_t number, struct err *e)
{
	char name[SESSION_NAME_SIZE], draft[SESSION_NAME_SIZE + sizeof(DRAFT)];
	struct stat st;
	int r;

	snprintf(name, sizeof(name), "%" PRIu64, number);
	snprintf(draft, sizeof(draft), "%s" DRAFT, name);
	if (fstatat(workspaces, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return tree_fail(&u->path, name, EEXIST, "make", e);
	/* Removes what a killed process left here. */
	r = tree_remove(workspaces, draft, e);
	if (r < 0)
		return r;
	r = unpack_fill(u, workspaces, draft, e);
	if (r == 0) {
		r = give_name(workspaces, draft, name);
		if (r < 0)
			tree_fail(&u->path, name, -r, "make", e);
	}
	if (r < 0)
		tree_remove(workspaces, draft, NULL);
	return r;
}

/* Opens a folder of ours, made first where it is missing. */
static int unpack_open_made(int at, const char *name,
	int (*again)(int at, const char *name, struct err *e), struct err *e)
{
	int fd = again(at, name, e);

	if (fd != -ENOENT)
		return fd;
	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "cannot make '%s'", name);
	return again(at, name, e);
}

static int open_workspaces(int folder, const char *name, struct err *e)
{
	(void)name;
	return session_open_workspaces(folder, e);
}

int session_unpack(
	int root, const char *id, uint64_t workspace, const void *bytes, size_t n, struct err *e)
{
	struct unpack u = { 0 };
	own_fd int folder = -1, workspaces = -1;
	int r = piece_check(bytes, n, &u.piece, e);

	if (r < 0)
		return r;
	folder = unpack_open_made(root, id, session_open_folder, e);
	workspaces = folder < 0 ? folder : unpack_open_made(folder, "w", open_workspaces, e);
	r = workspaces < 0 ? workspaces : unpack_make_workspace(&u, workspaces, workspace, e);
	if (r < 0) {
		/* Only where nothing is in them. */
		unlinkat(folder, "w", AT_REMOVEDIR);
		unlinkat(root, id, AT_REMOVEDIR);
		err_prefix(e, "cannot unpack workspace %" PRIu64 " of session %.*s", workspace,
			STORE_ID_SIZE - 1, id);
	}
	return r;
}
