/*
 * change_put_write - writes what will take a place in the tree, beside that place; makes folders.
 *
 * Runs as:     the operator; files in one of several threads, folders in one.
 * Enters with: an open folder of the tree; a step that was decided; the layer, whose names and
 *              contents are a stranger's.
 * Leaves:      a temporary file or link that is complete, with exactly the bytes that were recorded
 *              when the run ended; or none, and a verdict. Folders that were not there, with the
 *              mode and the attributes of the effect.
 * Must not:    follow a link of the layer, or believe it to be what it was; enter a mount; touch
 *              anything that was there; change a folder that it neither made nor saw; give rights
 *              before the content is whole; take a set-user-id bit, an owner or an attribute but
 *              user.… from the layer, or one that an overlay obeys.
 */
#include "change/apply/change_put.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/scan/change_open.h"

/* --- attributes --- */

#define ACCESS_LIST  "system.posix_acl_access"
#define DEFAULT_LIST "system.posix_acl_default" /* of a folder, for what is made in it */

static bool is_of_people(const char *name)
{
	return str_starts(name, "user.") && !str_starts(name, "user.overlay.");
}

static bool put_attributes_is_missing(int error)
{
	return error == ENODATA || error == EOPNOTSUPP;
}

/* The value, into memory the caller owns, or -errno. */
static ssize_t put_attributes_read_value(int fd, const char *name, char **ret)
{
	for (int tries = 0; tries < 4; tries++) {
		ssize_t size = fgetxattr(fd, name, NULL, 0), n;
		own_free char *value = NULL;

		if (size < 0)
			return -errno;
		value = malloc((size_t)size + 1);
		if (!value)
			return -ENOMEM;
		n = fgetxattr(fd, name, value, (size_t)size + 1);
		if (n >= 0) {
			*ret = take_ptr(value);
			return n;
		}
		if (errno != ERANGE)
			return -errno;
	}
	return -EAGAIN;
}

static int carry_one(int from, int to, const char *name)
{
	own_free char *value = NULL;
	ssize_t n = put_attributes_read_value(from, name, &value);

	if (n < 0)
		return put_attributes_is_missing((int)-n) ? 0 : (int)n;
	return fsetxattr(to, name, value, (size_t)n, 0) < 0 ? -errno : 0;
}

/* Most folders give none, so one question saves one for each of their files. */
static bool put_attributes_gives_list(struct change_folder *f)
{
	char path[32];

	if (atomic_load(&f->list) == CHANGE_NOT_ASKED) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
		atomic_store(&f->list, getxattr(path, DEFAULT_LIST, NULL, 0) < 0 &&
						       put_attributes_is_missing(errno)
					       ? CHANGE_GIVES_NONE
					       : CHANGE_GIVES_LIST);
	}
	return atomic_load(&f->list) == CHANGE_GIVES_LIST;
}

static int change_put_carry_attributes(int from, int to, struct change_folder *folder)
{
	char names[XATTR_LIST_MAX] __attribute__((uninitialized));
	ssize_t n = flistxattr(from, names, sizeof(names));
	bool has_list = false;
	int r = 0;

	if (n < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (const char *name = names; r == 0 && name < names + n; name += strlen(name) + 1) {
		has_list |= str_eq(name, ACCESS_LIST);
		if (is_of_people(name) || str_eq(name, ACCESS_LIST))
			r = carry_one(from, to, name);
	}
	/* One that the folder gives to whatever is made in it. */
	if (r == 0 && !has_list && put_attributes_gives_list(folder) &&
		fremovexattr(to, ACCESS_LIST) < 0 && !put_attributes_is_missing(errno))
		r = -errno;
	return r;
}

static void put_attributes_hash_value(const char *value, size_t n, uint8_t ret[static SHA256_SIZE])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, value, n);
	sha256_finish(&s, ret);
}

static int change_one(int layer, int to, const struct change_attribute *a)
{
	own_free char *value = NULL;
	uint8_t hash[SHA256_SIZE];
	ssize_t n;

	if (a->change == CHANGE_DELETED)
		return fremovexattr(to, a->name) < 0 && !put_attributes_is_missing(errno) ? -errno
											  : 0;
	n = put_attributes_read_value(layer, a->name, &value);
	if (n == -ENODATA)
		return -EBADMSG;
	if (n < 0)
		return (int)n;
	put_attributes_hash_value(value, (size_t)n, hash);
	if (memcmp(hash, a->hash, SHA256_SIZE) != 0)
		return -EBADMSG;
	return fsetxattr(to, a->name, value, (size_t)n, 0) < 0 ? -errno : 0;
}

static int change_put_change_attributes(int layer, int to, const struct change_effect *x)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < x->attribute_count; i++)
		if (is_of_people(x->attributes[i].name))
			r = change_one(layer, to, &x->attributes[i]);
	return r;
}

static bool has_one(int fd, const struct change_attribute *a)
{
	own_free char *value = NULL;
	uint8_t hash[SHA256_SIZE];
	ssize_t n = put_attributes_read_value(fd, a->name, &value);

	if (n < 0)
		return a->change == CHANGE_DELETED && put_attributes_is_missing((int)-n);
	put_attributes_hash_value(value, (size_t)n, hash);
	return a->change != CHANGE_DELETED && memcmp(hash, a->hash, SHA256_SIZE) == 0;
}

bool change_put_has_attributes(int fd, const struct change_effect *x)
{
	for (size_t i = 0; i < x->attribute_count; i++)
		if (is_of_people(x->attributes[i].name) && !has_one(fd, &x->attributes[i]))
			return false;
	return true;
}

/* --- content --- */

#define PIECE (64 * 1024)

int change_put_open_layer(struct change_job *j, const char *path, int flags)
{
	int top = change_layer_of(j->q->git, j->q->layer, &path);
	int fd = file_open_beneath(top, path, flags, 0);

	if (fd == -EACCES) {
		struct change_right right;

		/* Rights are given to folders for a moment: one at a time. */
		pthread_mutex_lock(&j->rights);
		fd = change_open(top, path, flags, &right);
		change_right_done(&right);
		pthread_mutex_unlock(&j->rights);
	}
	return fd;
}

static void put_copy_add_zeros(struct sha256 *s, uint64_t n)
{
	static const uint8_t zeros[4096];

	for (; n > sizeof(zeros); n -= sizeof(zeros))
		sha256_add(s, zeros, sizeof(zeros));
	sha256_add(s, zeros, (size_t)n);
}

static int put_copy_write_at(int fd, const char *bytes, size_t n, off_t at)
{
	while (n) {
		ssize_t wrote = pwrite(fd, bytes, n, at);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return -errno;
		bytes += wrote;
		at += wrote;
		n -= (size_t)wrote;
	}
	return 0;
}

/* From `at` to `end`. 0 or -errno; -EBADMSG: it is shorter than it was. */
static int copy_data(struct sha256 *s, int from, int to, off_t at, off_t end)
{
	char bytes[PIECE] __attribute__((uninitialized));

	while (at < end) {
		size_t wanted =
			end - at < (off_t)sizeof(bytes) ? (size_t)(end - at) : sizeof(bytes);
		ssize_t n = pread(from, bytes, wanted, at);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		sha256_add(s, bytes, (size_t)n);
		r = put_copy_write_at(to, bytes, (size_t)n, at);
		if (r < 0)
			return r;
		at += n;
	}
	return 0;
}

/* A file with holes, which stay holes. */
static int copy_sparse(struct sha256 *s, int from, int to, off_t size)
{
	for (off_t at = 0, data, hole; at < size; at = hole) {
		int r;

		data = lseek(from, at, SEEK_DATA);
		if (data < 0 && errno == EINVAL) /* not that kind of file system */
			return copy_data(s, from, to, at, size);
		if (data < 0 || data > size)
			data = size;
		hole = data < size ? lseek(from, data, SEEK_HOLE) : size;
		if (hole < 0 || hole > size)
			hole = size;
		put_copy_add_zeros(s, (uint64_t)(data - at));
		r = copy_data(s, from, to, data, hole);
		if (r < 0)
			return r;
	}
	return ftruncate(to, size) < 0 ? -errno : 0;
}

/* Shares the content, where the file system can. */
static bool clone_file(struct change_job *j, int from, int to)
{
	if (atomic_load(&j->has_no_clones))
		return false;
	if (ioctl(to, FICLONE, from) == 0)
		return true;
	atomic_store(&j->has_no_clones, true);
	return false;
}

/* A file, holes as holes, that must have this hash: -EBADMSG where it has not. */
static int change_put_copy(struct change_job *j, int from, int to, const struct stat *st,
	const uint8_t hash[static SHA256_SIZE])
{
	bool is_sparse = st->st_blocks * 512 < st->st_size && st->st_size > PIECE;
	uint8_t found[SHA256_SIZE];
	struct sha256 s;
	int r;

	if (st->st_size && clone_file(j, from, to)) {
		r = sha256_file(to, found, NULL);
	} else {
		sha256_init(&s);
		r = is_sparse ? copy_sparse(&s, from, to, st->st_size)
			      : copy_data(&s, from, to, 0, st->st_size);
		sha256_finish(&s, found);
	}
	if (r < 0)
		return r;
	return memcmp(found, hash, SHA256_SIZE) == 0 ? 0 : -EBADMSG;
}

static int create(const struct change_job *j, struct change_put *p)
{
	char name[CHANGE_NAME_SIZE];
	int fd;

	change_put_name(j, p, name);
	fd = openat(p->folder->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	p->has_temporary = true;
	return fd;
}

int change_put_touch(const struct change_job *j, struct change_put *p)
{
	own_fd int fd = create(j, p);

	return fd < 0 ? fd : 0;
}

/* Adds to what CHANGE_APPLIED is told with: what was left out. */
static void put_write_note(struct change_put *p, const char *what)
{
	size_t n = strlen(p->why);

	snprintf(p->why + n, sizeof(p->why) - n, "%s%s", n ? ", " : "", what);
}

/* --- what a file is given beside its content --- */

static bool change_put_owner(
	const struct change_job *j, const struct change_put *p, struct change_owner *ret)
{
	gid_t given = p->folder->gives_group ? p->folder->gid : j->gid;
	bool has_old = p->old.st_mode != 0;

	if (j->uid == 0)
		*ret = (struct change_owner){
			.uid = has_old ? p->old.st_uid : p->folder->uid,
			.gid = has_old ? p->old.st_gid : p->folder->gid,
		};
	else
		*ret = (struct change_owner){ .uid = j->uid,
			.gid = has_old ? p->old.st_gid : given };
	return ret->uid != j->uid || ret->gid != given;
}

static int give_owner(const struct change_job *j, const struct change_put *p, int fd)
{
	struct change_owner owner;

	if (!change_put_owner(j, p, &owner) ||
		fchownat(fd, "", owner.uid, owner.gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	/* Who is not root keeps a group if he is in it. */
	return j->uid && errno == EPERM ? 0 : -errno;
}

static mode_t put_write_choose_mode(struct change_put *p)
{
	const struct change_state *before = &p->x->before, *after = &p->x->after;
	bool is_kept = S_ISREG(p->old.st_mode) && before->type == CHANGE_FILE &&
		       before->mode == after->mode;
	mode_t mode = is_kept ? p->old.st_mode : after->mode;

	if (mode & (S_ISUID | S_ISGID))
		put_write_note(p, "without its set-user-id and set-group-id bits");
	return mode & 0777;
}

/* 0 or -errno; -EBADMSG: of the layer. */
static int put_write_finish(struct change_job *j, struct change_put *p, int layer, int fd)
{
	int r = give_owner(j, p, fd);

	if (r == 0 && S_ISREG(p->old.st_mode))
		r = change_put_carry_attributes(p->host, fd, p->folder);
	if (r == 0)
		r = change_put_change_attributes(layer, fd, p->x);
	if (r == 0 && fchmod(fd, put_write_choose_mode(p)) < 0)
		r = -errno;
	if (r == 0 && j->syncs_each && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && j->uid && p->old.st_mode && p->old.st_uid != j->uid)
		put_write_note(p, "it belonged to another user and is yours now");
	return r;
}

/* --- files --- */

/* Opens it and makes sure that it is what the effect says, but for its content. */
static int put_write_open_source(
	struct change_job *j, const struct change_effect *x, struct stat *ret)
{
	own_fd int fd =
		change_put_open_layer(j, x->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return fd;
	if (fstat(fd, ret) < 0)
		return -errno;
	if (!S_ISREG(ret->st_mode) || (uint64_t)ret->st_size != x->after.size)
		return -EBADMSG;
	return take_fd(&fd);
}

static void put_write_file(struct change_job *j, struct change_put *p)
{
	own(buf) struct buf merged;
	struct stat st;
	own_fd int layer = put_write_open_source(j, p->x, &st);
	own_fd int fd = -1;
	int r;

	buf_init(&merged, 3 * CHANGE_MAX_TEXT);
	if (layer < 0) {
		change_put_fail_layer(p, -layer);
		return;
	}
	r = change_put_open_old(j, p);
	if (r < 0) {
		change_put_fail_host(p, -r);
		return;
	}
	if (p->step == CHANGE_STEP_MERGE && !change_put_merge(j, p, layer, &merged))
		return;
	fd = create(j, p);
	if (fd < 0) {
		change_put_fail(p, -fd, "cannot write beside it");
		return;
	}
	r = p->step == CHANGE_STEP_MERGE ? file_write_all(fd, buf_text(&merged), merged.len)
					 : change_put_copy(j, layer, fd, &st, p->x->after.hash);
	if (r == 0)
		r = put_write_finish(j, p, layer, fd);
	if (r == -EBADMSG)
		change_put_fail_layer(p, -r);
	else if (r < 0)
		change_put_fail(p, -r, "cannot write beside it");
}

/* --- links --- */

/* By descriptor: whoever owns the folder could put something of root's in its place. */
static int own_link(const struct change_job *j, const struct change_put *p, const char *name)
{
	struct change_owner owner;
	own_fd int fd = -1;
	struct stat st;

	if (!change_put_owner(j, p, &owner))
		return 0;
	fd = file_open_same_mount(p->folder->fd, name, O_PATH | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISLNK(st.st_mode))
		return -ESTALE;
	return give_owner(j, p, fd);
}

static void write_link(struct change_job *j, struct change_put *p)
{
	own_fd int layer = change_put_open_layer(j, p->x->path, O_PATH | O_NOFOLLOW);
	char target[PATH_MAX + 1], name[CHANGE_NAME_SIZE];
	uint8_t hash[SHA256_SIZE];
	struct sha256 s;
	ssize_t n = layer < 0 ? -1 : readlinkat(layer, "", target, PATH_MAX);
	int r;

	if (n < 0) {
		change_put_fail_layer(p, layer < 0 ? -layer : errno);
		return;
	}
	target[n] = '\0';
	sha256_init(&s);
	sha256_add(&s, target, (size_t)n);
	sha256_finish(&s, hash);
	if (memcmp(hash, p->x->after.hash, SHA256_SIZE) != 0) {
		change_put_fail_layer(p, EBADMSG);
		return;
	}
	change_put_name(j, p, name);
	if (symlinkat(target, p->folder->fd, name) < 0) {
		change_put_fail(p, errno, "cannot write beside it");
		return;
	}
	p->has_temporary = true;
	r = own_link(j, p, name);
	if (r < 0)
		change_put_fail(p, -r, "cannot write beside it");
}

void change_put_write(struct change_job *j, struct change_put *p)
{
	if (!p->x->after.has_hash)
		change_put_decide(p, CHANGE_FAILED, "%s",
			p->x->note ? p->x->note : "its content was not recorded");
	else if (p->x->after.type == CHANGE_LINK)
		write_link(j, p);
	else
		put_write_file(j, p);
	if (p->host >= 0)
		close(take_fd(&p->host));
}

/* --- folders that things are put into --- */

const char *change_name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void change_folder_open(
	struct change_folder *f, int below, const struct change_git_tops *git, const char *path)
{
	const char *name = change_name_of(path), *from = path;
	int top = change_below_of(git, below, &from);
	char parent[CHANGE_MAX_PATH] __attribute__((uninitialized));
	size_t n = name == from ? 0 : (size_t)(name - from) - 1;
	struct stat st;

	*f = (struct change_folder){ .path = path, .fd = -ENAMETOOLONG };
	f->len = name == path ? 0 : (size_t)(name - path) - 1;
	if (n >= sizeof(parent))
		return;
	memcpy(parent, from, n);
	parent[n] = '\0';
	f->fd = file_open_same_mount(top, n ? parent : ".", O_PATH | O_DIRECTORY);
	if (f->fd < 0)
		return;
	if (fstat(f->fd, &st) < 0) {
		close(f->fd);
		f->fd = -EIO;
		return;
	}
	f->uid = st.st_uid;
	f->gid = st.st_gid;
	f->gives_group = st.st_mode & S_ISGID;
}

int change_job_sync(const struct change_job *j)
{
	const struct change_git_tops *git = j->q->git;

	return syncfs(j->q->below) < 0 || (git && syncfs(git->below) < 0) ? -errno : 0;
}

/* --- folders that are effects --- */

/* Would its mode keep us from putting things into it? */
static bool is_late(const struct change_effect *x)
{
	return (x->after.mode & 0300) != 0300;
}

static int put_folder_open_folder(const struct change_put *p, const char *name, struct stat *ret)
{
	own_fd int fd =
		file_open_same_mount(p->folder->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

	if (fd < 0)
		return fd;
	if (fstat(fd, ret) < 0)
		return -errno;
	return take_fd(&fd);
}

/* What the effect says of it; what the host gives to its folders beyond stays. */
static int change(struct change_job *j, struct change_put *p, int fd, mode_t now)
{
	const mode_t special = S_ISUID | S_ISGID | S_ISVTX;
	int r = 0;

	/* Attributes first: the mode may forbid them. */
	if (p->x->attribute_count) {
		own_fd int layer =
			change_put_open_layer(j, p->x->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

		r = layer < 0 ? layer : change_put_change_attributes(layer, fd, p->x);
	}
	if (r == 0 && fchmod(fd, (p->x->after.mode & 0777) | (now & special)) < 0)
		r = -errno;
	if (r == 0 && p->x->after.mode & ~now & special)
		put_write_note(p, "without its set-user-id, set-group-id and sticky bits");
	return r;
}

/* A new one, as it will be; only its owner's rights stay where they are needed. 0 or -errno. */
static int put_folder_prepare(struct change_job *j, struct change_put *p, const char *name)
{
	struct change_owner owner;
	own_fd int fd = -1;
	struct stat st;

	if (mkdirat(p->folder->fd, name, 0700) < 0)
		return -errno;
	fd = put_folder_open_folder(p, name, &st);
	if (fd < 0)
		return fd;
	/* Whoever owns the folder around could put another in its place: it would be given away. */
	if (st.st_uid != j->uid || (st.st_mode & 0777) != 0700)
		return -ESTALE;
	if (change_put_owner(j, p, &owner) && fchown(fd, owner.uid, owner.gid) < 0 &&
		(j->uid == 0 || errno != EPERM))
		return -errno;
	return is_late(p->x) ? 0 : change(j, p, fd, st.st_mode);
}

static int put_folder_make(struct change_job *j, struct change_put *p)
{
	char name[CHANGE_NAME_SIZE];
	int r;

	change_put_name(j, p, name);
	r = put_folder_prepare(j, p, name);
	if (r == 0 && p->step == CHANGE_STEP_ADD &&
		renameat2(p->folder->fd, name, p->folder->fd, p->name, RENAME_NOREPLACE) < 0)
		r = -errno;
	/* A file system that cannot: an empty folder gives way to another, and to nothing else. */
	if (r == -EINVAL && renameat(p->folder->fd, name, p->folder->fd, p->name) == 0)
		r = 0;
	if (r == 0 && p->step != CHANGE_STEP_ADD)
		r = change_put_is_still(p) ? change_put_exchange(p, name) : -ESTALE;
	if (r < 0)
		unlinkat(p->folder->fd, name, AT_REMOVEDIR);
	return r;
}

static void put_folder_settle(struct change_put *p, int r)
{
	if (r == 0) {
		p->verdict = CHANGE_APPLIED;
		p->step = CHANGE_STEP_NONE;
	} else if (r == -EBADMSG) {
		change_put_fail_layer(p, -r);
	} else if (r == -ESTALE || r == -EEXIST || r == -ENOTEMPTY || r == -ENOTDIR) {
		change_put_decide(p, CHANGE_CONFLICT, "the host changed it at this moment");
	} else {
		change_put_fail(p, -r, "cannot make the folder");
	}
}

void change_put_make_folder(struct change_job *j, struct change_put *p)
{
	int r;

	if (!change_put_see(p))
		return;
	if (S_ISDIR(p->seen.st_mode)) {
		if (p->x->before.type == CHANGE_FOLDER) {
			if (!is_late(p->x) || j->q->is_dry)
				change_put_finish_folder(j, p);
			return;
		}
		/* It may be one of ours that a call could not finish. */
		if (!is_late(p->x) || (p->seen.st_mode & 0777) != 0700)
			change_put_decide(p, CHANGE_THERE, "%s", "");
		return;
	}
	change_put_look(j, p);
	if (j->q->is_dry)
		change_put_foresee(j, p);
	if (p->step == CHANGE_STEP_NONE)
		return;
	r = put_folder_make(j, p);
	p->folder->has_changed |= r == 0;
	if (r < 0 || !is_late(p->x))
		put_folder_settle(p, r);
}

/* Decides whether an effect on a folder is still to be made. */
static bool may_change(const struct change_job *j, struct change_put *p, int fd, mode_t mode)
{
	const struct change_effect *x = p->x;

	if (x->before.type != CHANGE_FOLDER)
		return true; /* one of ours */
	if (mode == (x->after.mode & 0777)) {
		if (change_put_has_attributes(fd, x))
			change_put_decide(p, CHANGE_THERE, "%s", "");
	} else if (mode != (x->before.mode & 0777) && !j->q->is_forced) {
		change_put_decide(p, CHANGE_CONFLICT, "its mode changed on the host");
	}
	return p->verdict == CHANGE_UNDECIDED;
}

void change_put_finish_folder(struct change_job *j, struct change_put *p)
{
	struct stat st;
	own_fd int fd = put_folder_open_folder(p, p->name, &st);

	if (fd < 0 || st.st_ino != p->seen.st_ino)
		change_put_fail_host(p, fd < 0 ? -fd : ESTALE);
	else if (may_change(j, p, fd, st.st_mode & 0777))
		put_folder_settle(p, j->q->is_dry ? 0 : change(j, p, fd, st.st_mode));
}
