/*
 * cage_place - creates directories, files and links in the cage's tree.
 *
 * Runs as:     the first process, before the tree is entered.
 * Enters with: the root of the tree and, below it, mounts of the host.
 * Leaves:      directories, files and links on file systems of the cage's own.
 * Must not:    follow a symlink; create anything on a file system of the host.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cage/cage_inside.h"

int cage_own(struct cage *c, int fd, struct err *e)
{
	struct stat st = { 0 };
	bool is_later = fd < CAGE_FEW_FDS; /* it stays open, and few cages need the answer */

	if (c->own_count == CAGE_MAX_OWN)
		return err_set(
			e, ERR_SYS, EMFILE, "cannot make the cage: it has too many file systems");
	if (!is_later && fstat(fd, &st) < 0)
		return err_sys(e, errno, "cannot inspect a new file system");
	c->own[c->own_count].fd = is_later ? fd : -1;
	c->own[c->own_count++].device = st.st_dev;
	return 0;
}

int cage_own_mount(struct cage *c, int tree, struct err *e)
{
	struct statx st;

	if (statx(tree, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 || !(st.stx_mask & STATX_MNT_ID))
		return err_sys(e, errno, "cannot find a mount of the run's");
	if (c->own_mount_count == CAGE_MAX_OWN)
		return err_set(
			e, ERR_SYS, EMFILE, "cannot make the cage: it has too many file systems");
	c->own_mounts[c->own_mount_count++] = st.stx_mnt_id;
	return 0;
}

static bool place_is_own(struct cage *c, int fd)
{
	struct statx mount;
	struct stat st, own;

	if (fstat(fd, &st) < 0)
		return false;
	if (c->own_mount_count && statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &mount) == 0)
		for (unsigned i = 0; i < c->own_mount_count; i++)
			if (c->own_mounts[i] == mount.stx_mnt_id)
				return true;
	for (unsigned i = 0; i < c->own_count; i++) {
		if (c->own[i].fd >= 0 && fstat(c->own[i].fd, &own) == 0) {
			c->own[i].fd = -1;
			c->own[i].device = own.st_dev;
		}
		if (c->own[i].fd < 0 && c->own[i].device == st.st_dev)
			return true;
	}
	return false;
}

/* Reports why a path cannot be created, by the path of the spec. */
static int place_fail(const struct cage *c, int num, const char *path, struct err *e)
{
	if (c->has_image && (num == EACCES || num == EPERM || num == EOVERFLOW))
		return err_set(e, ERR_REFUSED, num,
			"cannot make '%s' in the image: its files do not belong to you", path);
	if (num == ELOOP)
		return err_set(e, ERR_SYS, num,
			"cannot make '%s' in the cage: a symlink is in the way", path);
	if (num == EROFS)
		return err_hint(e,
			err_set(e, ERR_SYS, num,
				"cannot make '%s' in the cage: it does not exist, and bawn creates "
				"nothing on the host",
				path),
			"create it, or choose another target");
	return err_sys(e, num, "cannot make '%s' in the cage", path);
}

/* Opens one component, and creates it if it is missing. A descriptor or -errno. */
static int step_into(struct cage *c, int at, const char *name, bool is_dir)
{
	int fd = file_open_beneath(at, name, O_PATH, 0);

	if (fd != -ENOENT)
		return fd;
	if (!place_is_own(c, at))
		return -EROFS;
	/* In a session's tree another run that starts may have created it meanwhile. */
	if ((is_dir ? mkdirat(at, name, 0755) : mknodat(at, name, S_IFREG | 0444, 0)) < 0 &&
		errno != EEXIST)
		return -errno;
	return file_open_beneath(at, name, O_PATH, 0);
}

static int walk_to(struct cage *c, int base, const char *path, bool is_dir)
{
	own_fd int at = fcntl(base, F_DUPFD_CLOEXEC, 3);
	char name[NAME_MAX + 1];

	while (at >= 0 && *path) {
		size_t n = strcspn(path, "/");
		bool is_last = !path[n];
		int next;

		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, n);
		name[n] = '\0';
		next = step_into(c, at, name, is_dir || !is_last);
		close(at);
		at = next;
		path += n + (is_last ? 0 : 1);
	}
	return at == -1 ? -errno : take_fd(&at);
}

int cage_open_place(struct cage *c, int base, const char *path, bool is_dir, struct err *e)
{
	const char *inside = *path == '/' ? path + 1 : path;
	struct stat st;
	int fd = *inside ? file_open_beneath(base, inside, O_PATH, 0)
			 : fcntl(base, F_DUPFD_CLOEXEC, 3);

	if (fd == -ENOENT)
		fd = walk_to(c, base, inside, is_dir);
	if (fd < 0)
		return place_fail(c, -fd, path, e);
	if (fstat(fd, &st) < 0 || is_dir != S_ISDIR(st.st_mode)) {
		close(fd);
		return err_set(e, ERR_SYS, ENOTDIR, "cannot mount on '%s' in the cage: it is %s",
			path, is_dir ? "not a directory" : "a directory");
	}
	return fd;
}

/* --- known folders --- */

void cage_know(struct cage *c, const char *path, size_t size, int base, size_t skip)
{
	if (c->known_count < CAGE_MAX_KNOWN)
		c->known[c->known_count++] = (struct cage_known){ path, size, base, skip };
}

static const struct cage_known *find_known(const struct cage *c, const char *path, size_t size)
{
	for (unsigned i = c->known_count; i-- > 0;)
		if (c->known[i].size == size && memcmp(c->known[i].path, path, size) == 0)
			return &c->known[i];
	return NULL;
}

bool cage_is_known(const struct cage *c, const char *path)
{
	return find_known(c, path, strlen(path)) != NULL;
}

static size_t parent_size(const char *path, size_t size)
{
	while (size > 0 && path[size - 1] != '/')
		size--;
	return size > 0 ? size - 1 : 0;
}

/* A known folder, which is made if it is missing below one; or NULL. */
static const struct cage_known *know_folder(struct cage *c, const char *path, size_t size)
{
	const struct cage_known *known = find_known(c, path, size), *parent;
	char name[CAGE_PATH_SIZE];

	if (known || size == 0)
		return known;
	parent = know_folder(c, path, parent_size(path, size));
	if (!parent || size - parent->skip >= sizeof(name))
		return NULL;
	memcpy(name, path + parent->skip, size - parent->skip);
	name[size - parent->skip] = '\0';
	/* What is there already may be anything. */
	if (mkdirat(parent->base, name, 0755) < 0)
		return NULL;
	cage_know(c, path, size, parent->base, parent->skip);
	return find_known(c, path, size);
}

int cage_find_known(struct cage *c, const char *path, const char **ret_name)
{
	size_t size = strlen(path);
	const struct cage_known *parent =
		*path == '/' && size > 1 ? know_folder(c, path, parent_size(path, size)) : NULL;

	if (!parent)
		return -1;
	*ret_name = path + parent->skip;
	return parent->base;
}

/* --- mounts at their places --- */

static bool is_below(const char *path, size_t size, const char *top)
{
	size_t n = strlen(top);

	return size >= n && memcmp(path, top, n) == 0 && (size == n || path[n] == '/');
}

/* What was known of a place and of everything below is covered by a mount. */
static void forget(struct cage *c, const char *top)
{
	unsigned left = 0;

	for (unsigned i = 0; i < c->known_count; i++)
		if (!is_below(c->known[i].path, c->known[i].size, top))
			c->known[left++] = c->known[i];
	c->known_count = left;
	left = 0;
	for (unsigned i = 0; i < c->shown_count; i++)
		if (!is_below(c->shown[i].path, strlen(c->shown[i].path), top))
			c->shown[left++] = c->shown[i];
	c->shown_count = left;
}

const struct cage_shown *cage_find_shown(const struct cage *c, const char *path)
{
	for (unsigned i = 0; i < c->shown_count; i++)
		if (str_eq(c->shown[i].path, path))
			return &c->shown[i];
	return NULL;
}

void cage_remember(struct cage *c, int tree, const char *path, bool is_dir)
{
	forget(c, path);
	/* Others are closed by the caller. */
	if (tree < CAGE_FEW_FDS && c->shown_count < CAGE_MAX_SHOWN)
		c->shown[c->shown_count++] = (struct cage_shown){ path, tree, is_dir };
}

int cage_put(struct cage *c, int tree, const char *path, bool is_dir, struct err *e)
{
	cage_fd int place = cage_open_place(c, c->root, path, is_dir, e);
	int r = place < 0 ? place : cage_attach(tree, place, path, e);

	if (r == 0)
		forget(c, path);
	return r;
}

int cage_show(struct cage *c, int tree, const char *path, bool is_dir, struct err *e)
{
	const char *name;
	int base = cage_find_known(c, path, &name), r = 0;

	/* A new name in a known folder is what was made there and nothing else. */
	if (base >= 0 && (is_dir ? mkdirat(base, name, 0755)
				 : mknodat(base, name, S_IFREG | 0444, 0)) == 0) {
		if (move_mount(tree, "", c->root, path + 1, MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return err_sys(e, errno, "cannot attach '%s' in the cage", path);
	} else {
		r = cage_put(c, tree, path, is_dir, e);
	}
	if (r == 0)
		cage_remember(c, tree, path, is_dir);
	return r;
}

int cage_open_parent(
	struct cage *c, int base, const char *path, const char **ret_name, struct err *e)
{
	const char *slash = strrchr(path, '/');
	char parent[CAGE_PATH_SIZE];

	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 0, path);
	*ret_name = slash ? slash + 1 : path;
	return cage_open_place(c, base, parent, true, e);
}

/* An earlier run may have left a folder in place of a file, or a file in place of a folder. */
static int fail_kept(const struct cage *c, int num, const char *path, struct err *e)
{
	bool is_other = num == EISDIR || num == ENOTDIR || num == ELOOP;

	if (!is_other || !c->own_mount_count || !str_path_within(path, "/home/agent"))
		return 0;
	return err_hint(e,
		err_set(e, ERR_SYS, num,
			"cannot make '%s' in the cage: something that an earlier run left is in "
			"the way",
			path),
		"remove it with the session, or: bawn agent forget --all");
}

/* Opens the parent directory of a new name, which must be the cage's own. */
static int open_room(struct cage *c, const char *path, const char **ret_name, struct err *e)
{
	own_fd int dir = cage_open_parent(c, c->root, path, ret_name, e);
	int r;

	if (dir < 0) {
		r = fail_kept(c, -dir, path, e);
		return r < 0 ? r : dir;
	}
	return place_is_own(c, dir) ? take_fd(&dir) : place_fail(c, EROFS, path, e);
}

/* The same, and removes the image's file of that name. */
static int place_make_room(struct cage *c, const char *path, const char **ret_name, struct err *e)
{
	own_fd int dir = open_room(c, path, ret_name, e);

	if (dir < 0)
		return dir;
	/* Otherwise the root is empty. */
	if ((c->has_image || c->own_mount_count) && unlinkat(dir, *ret_name, 0) < 0 &&
		errno != ENOENT)
		return place_fail(c, errno, path, e);
	return take_fd(&dir);
}

static int cage_make_symlink(struct cage *c, const struct plan_op *op, struct err *e)
{
	const char *name;
	int base = cage_find_known(c, cage_b(c, op), &name);
	own_fd int dir = base >= 0 ? -1 : place_make_room(c, cage_b(c, op), &name, e);

	if (base >= 0 && symlinkat(cage_a(c, op), base, name) < 0)
		return place_fail(c, errno, cage_b(c, op), e);
	if (base >= 0 || dir < 0)
		return base >= 0 ? 0 : dir;
	return symlinkat(cage_a(c, op), dir, name) < 0 ? place_fail(c, errno, cage_b(c, op), e) : 0;
}

/* True if something exists at the path, whatever it is. */
static bool place_is_there(const struct cage *c, const char *path)
{
	own_fd int fd = file_open_beneath(c->root, path + 1, O_PATH | O_NOFOLLOW, 0);

	return fd >= 0 || fd == -ELOOP;
}

static int open_new_file(struct cage *c, const struct plan_op *op, struct err *e)
{
	const char *name;
	int base = cage_find_known(c, cage_b(c, op), &name);
	own_fd int dir = base >= 0 ? -1 : place_make_room(c, cage_b(c, op), &name, e);
	own_fd int fd = -1;

	if (base < 0 && dir < 0)
		return dir;
	fd = openat(base >= 0 ? base : dir, name,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, op->mode);
	if (fd < 0)
		return place_fail(c, errno, cage_b(c, op), e);
	return take_fd(&fd); /* cppcheck-suppress resourceLeak */
}

/* Writes a temporary file and renames it. 0 or -errno. */
static int put_whole(int dir, const char *name, const struct plan_op *op, const char *content)
{
	uint64_t number = 0;
	char other[32];
	own_fd int fd = -1;
	int r;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -errno;
	snprintf(other, sizeof(other), ".bawn-%016" PRIx64, number);
	fd = openat(dir, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, op->mode);
	if (fd < 0)
		return -errno;
	r = file_write_all(fd, content, strlen(content));
	if (r == 0 && renameat2(dir, other, dir, name,
			      op->flags & PLAN_CREATE ? RENAME_NOREPLACE : 0) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir, other, 0);
	return r;
}

/*
 * In a session's tree other runs and agents may read the file meanwhile: rename makes it appear
 * whole.
 */
static int make_kept_file(struct cage *c, const struct plan_op *op, struct err *e)
{
	const char *path = cage_b(c, op), *name;
	own_fd int dir = open_room(c, path, &name, e);
	int r = dir < 0 ? dir : put_whole(dir, name, op, cage_a(c, op)), kept;

	if (dir < 0 || r == 0 || (r == -EEXIST && op->flags & PLAN_CREATE))
		return dir < 0 ? dir : 0;
	kept = fail_kept(c, -r, path, e);
	return kept < 0 ? kept : place_fail(c, -r, path, e);
}

static int cage_make_file(struct cage *c, const struct plan_op *op, struct err *e)
{
	const char *content = cage_a(c, op), *identity = c->start->git_identity;
	size_t n = strlen(content);
	bool has_name = str_eq(cage_b(c, op), "/etc/gitconfig") && str_ends(content, PLAN_IDENTITY);
	cage_fd int fd = -1;
	int r;

	if (op->flags & PLAN_CREATE && place_is_there(c, cage_b(c, op)))
		return 0;
	if (c->own_mount_count && str_path_within(cage_b(c, op), "/home/agent"))
		return make_kept_file(c, op, e);
	fd = open_new_file(c, op, e);
	if (fd < 0)
		return fd;
	r = file_write_all(fd, content, has_name ? n - strlen(PLAN_IDENTITY) : n);
	if (r == 0 && has_name && identity)
		r = file_write_all(fd, identity, strlen(identity));
	return r < 0 ? place_fail(c, -r, cage_b(c, op), e) : 0;
}

/* Writes a path between the quotes of JSON, as json_text would. 0 or -errno. */
static int write_quoted(int fd, const char *path)
{
	size_t left = strlen(path);
	int r = 0;

	while (r == 0 && left) {
		uint32_t character = 0;
		size_t width = utf8_decode(path, left, &character);
		char number[8];

		if (width == 0)
			snprintf(number, sizeof(number), "\\udc%02x", (unsigned char)*path);
		else
			snprintf(number, sizeof(number), "\\u%04x", character & 0xffffU);
		if (width == 0 || character < ' ' || character == '"' || character == '\\')
			r = file_write_all(fd, number, strlen(number));
		else
			r = file_write_all(fd, path, width);
		width = width ? width : 1;
		path += width;
		left -= width;
	}
	return r;
}

/* The next JSON string that begins with a root's name; *ret_value is the root's path. */
static const char *place_find_name(
	const struct cage *c, const char *json, size_t *ret_size, const char **ret_value)
{
	const struct {
		const char *name, *value;
	} known[] = { { plan_roots[PLAN_ROOT_PROJECT].name, c->start->project },
		{ plan_roots[PLAN_ROOT_GIT].name, c->start->git } };

	for (const char *at = strchr(json, '$'); at; at = strchr(at + 1, '$')) {
		for (size_t i = 0; i < COUNT_OF(known); i++) {
			size_t n = strlen(known[i].name);

			if (at == json || at[-1] != '"' || !str_starts(at, known[i].name) ||
				(at[n] != '"' && at[n] != '/') || !known[i].value)
				continue;
			*ret_size = n;
			*ret_value = known[i].value;
			return at;
		}
	}
	return NULL;
}

static int cage_make_description(struct cage *c, const struct plan_op *op, struct err *e)
{
	const char *at = cage_a(c, op), *name, *value = "";
	cage_fd int fd = open_new_file(c, op, e);
	size_t n = 0;
	int r = 0;

	if (fd < 0)
		return fd;
	while (r == 0 && (name = place_find_name(c, at, &n, &value))) {
		r = file_write_all(fd, at, (size_t)(name - at));
		if (r == 0)
			r = write_quoted(fd, value);
		at = name + n;
	}
	if (r == 0)
		r = file_write_all(fd, at, strlen(at));
	return r < 0 ? place_fail(c, -r, cage_b(c, op), e) : 0;
}

static int cage_make_dir(struct cage *c, const struct plan_op *op, struct err *e)
{
	const char *path = cage_b(c, op), *name;
	int base = cage_find_known(c, path, &name);
	own_fd int dir = -1, made = -1;

	if (base >= 0 && mkdirat(base, name, op->mode) == 0) {
		cage_know(c, path, strlen(path), base, (size_t)(name - path));
		return 0;
	}
	dir = cage_open_parent(c, c->root, path, &name, e);
	if (dir < 0)
		return dir;
	if (!place_is_own(c, dir))
		return place_fail(c, EROFS, path, e);
	if (mkdirat(dir, name, op->mode) == 0)
		return 0;
	/* An image may have a link there, which must not be followed. */
	made = errno == EEXIST ? file_open_beneath(dir, name, O_PATH | O_DIRECTORY, 0) : -errno;
	return made < 0 ? place_fail(c, -made, path, e) : 0;
}

cage_step *const cage_place_steps[PLAN_OP_KIND_COUNT] = {
	[PLAN_DIR] = cage_make_dir,
	[PLAN_SYMLINK] = cage_make_symlink,
	[PLAN_FILE] = cage_make_file,
	[PLAN_DESCRIBE] = cage_make_description,
};
