/*
 * change_put_write - writes what will take a place in the tree, beside that place.
 *
 * Runs as:     the operator, in one of several threads.
 * Enters with: an open folder of the tree; a step that was decided.
 * Leaves:      a temporary file or link that is complete; or none, and a verdict.
 * Must not:    touch anything that was there; give rights before the content is whole; take a
 *              set-user-id bit, an owner or an attribute but user.… from the layer.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "change/apply/change_put.h"
#include "change/scan/change_open.h"

/*
 * change_put_copy - content of the layer, into a file of ours.
 *
 * Runs as:     the operator, in one of several threads.
 * Enters with: the layer, whose names and contents are a stranger's.
 * Leaves:      a file with exactly the bytes that were recorded when the run ended, or -EBADMSG.
 * Must not:    follow a link of the layer; believe it to be what it was.
 */

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

/* --- what a file is given beside its content --- */

bool change_put_owner(
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
		change_put_note(p, "without its set-user-id and set-group-id bits");
	return mode & 0777;
}

/* 0 or -errno; -EBADMSG: of the layer. */
static int put_write_finish(struct change_job *j, struct change_put *p, int layer, int fd)
{
	int r = give_owner(j, p, fd);

	if (r == 0 && S_ISREG(p->old.st_mode))
		r = change_put_carry_attributes(p->host, fd);
	if (r == 0)
		r = change_put_change_attributes(layer, fd, p->x);
	if (r == 0 && fchmod(fd, put_write_choose_mode(p)) < 0)
		r = -errno;
	if (r == 0 && j->syncs_each && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && j->uid && p->old.st_mode && p->old.st_uid != j->uid)
		change_put_note(p, "it belonged to another user and is yours now");
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
	if (p->step == CHANGE_STEP_NONE)
		change_put_drop(j, p);
	if (p->host >= 0)
		close(take_fd(&p->host));
}
