/*
 * change_put_look - what is there now, and what may therefore be done.
 *
 * Runs as:     the operator, in one of several threads.
 * Enters with: an open folder of the tree, and a name in it.
 * Leaves:      the step of the effect, or its verdict. Nothing is changed.
 * Must not:    follow a link; open what is neither a file nor a link; enter a mount.
 */
#include "change/apply/change_put.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "change/effects/change_base.h"
#include "change/scan/change_open.h"
#include "change/text/change_text.h"

/* --- verdicts and names --- */

void change_put_decide(struct change_put *p, enum change_verdict v, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(p->why, sizeof(p->why), fmt, args);
	va_end(args);
	p->verdict = v;
	p->step = CHANGE_STEP_NONE;
}

void change_put_fail(struct change_put *p, int error, const char *what)
{
	p->error = error;
	change_put_decide(p, CHANGE_FAILED, "%s: %s", what, strerror(error));
}

void change_put_fail_layer(struct change_put *p, int error)
{
	if (error == EBADMSG || error == ENOENT || error == ELOOP || error == ENOTDIR)
		change_put_decide(p, CHANGE_FAILED,
			"the run's layer has changed: it is not what the run left there");
	else
		change_put_fail(p, error, "cannot read what the run left there");
}

void change_put_fail_host(struct change_put *p, int error)
{
	if (error == ESTALE || error == ENOENT || error == ELOOP)
		change_put_decide(p, CHANGE_CONFLICT, "the host is changing it at this moment");
	else if (error == EXDEV)
		change_put_decide(p, CHANGE_NOT_TAKEN, "something is mounted on it on the host");
	else
		change_put_fail(p, error, "cannot read what the host has there");
}

static void change_put_conflict(const struct change_job *j, struct change_put *p, const char *why)
{
	if (!j->q->is_forced)
		change_put_decide(p, CHANGE_CONFLICT, "%s", why);
	else
		p->step = p->seen.st_mode ? CHANGE_STEP_REPLACE : CHANGE_STEP_ADD;
}

void change_put_name(
	const struct change_job *j, const struct change_put *p, char ret[static CHANGE_NAME_SIZE])
{
	/* Among its objects, git takes no offence at files that are named like that. */
	snprintf(ret, CHANGE_NAME_SIZE, "%s%s%zu%s",
		p->git.kind == CHANGE_GIT_OBJECT ? CHANGE_TEMPORARY_OBJECT : "", j->prefix,
		p->index, p->path == p->x->path ? "" : "-old");
}

static enum change_type change_put_type(const struct stat *st)
{
	if (st->st_mode == 0)
		return CHANGE_NOTHING;
	if (S_ISREG(st->st_mode))
		return CHANGE_FILE;
	if (S_ISDIR(st->st_mode))
		return CHANGE_FOLDER;
	return S_ISLNK(st->st_mode) ? CHANGE_LINK : CHANGE_SPECIAL;
}

/* --- seeing --- */

static int put_look_see(const struct change_put *p, struct stat *ret)
{
	int r;

	if (p->folder->fd < 0)
		return p->folder->fd;
	r = fstatat(p->folder->fd, p->name, ret, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT);
	if (r == 0)
		return 0;
	memset(ret, 0, sizeof(*ret));
	return errno == ENOENT ? 0 : -errno;
}

bool change_put_see(struct change_put *p)
{
	int r = put_look_see(p, &p->seen);

	if (r == 0)
		return true;
	if (r == -EXDEV)
		change_put_decide(
			p, CHANGE_NOT_TAKEN, "another file system is mounted there on the host");
	else if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		change_put_decide(p, CHANGE_CONFLICT, "the folder it is in is not there");
	else
		change_put_fail(p, -r, "cannot read it");
	return false;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* The same thing, with what was in it. */
static bool is_same_thing(const struct stat *a, const struct stat *b)
{
	if (a->st_mode == 0 || b->st_mode == 0)
		return a->st_mode == b->st_mode;
	if (a->st_dev != b->st_dev || a->st_ino != b->st_ino ||
		(a->st_mode & S_IFMT) != (b->st_mode & S_IFMT))
		return false;
	/* What is put into a folder changes its times. */
	return S_ISDIR(a->st_mode) || (a->st_mode == b->st_mode && a->st_size == b->st_size &&
					      is_same_time(&a->st_mtim, &b->st_mtim));
}

static bool put_look_is_same(const struct stat *a, const struct stat *b)
{
	/* Another name of the same file may be one of those that we replace or remove. */
	return is_same_thing(a, b) && (S_ISDIR(a->st_mode) || a->st_nlink != b->st_nlink ||
					      is_same_time(&a->st_ctim, &b->st_ctim));
}

bool change_put_is_still(const struct change_put *p)
{
	struct stat st;

	return put_look_see(p, &st) == 0 && put_look_is_same(&st, &p->seen);
}

bool change_put_is_under(const struct change_put *p, const char *name)
{
	struct stat st;

	/* The renaming has changed its third time. */
	return fstatat(p->folder->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       is_same_thing(&st, &p->seen);
}

/* What was renamed, under its old name. */
static int open_from(const struct change_job *j, const struct change_put *p, int flags)
{
	const char *path = p->x->from;
	int top = change_below_of(j->q->git, j->q->below, &path);

	return file_open_same_mount(top, path, flags);
}

int change_put_open_old(const struct change_job *j, struct change_put *p)
{
	int flags = S_ISLNK(p->old.st_mode) ? O_PATH | O_NOFOLLOW
					    : O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	struct stat st;

	if (p->host >= 0 || (!S_ISREG(p->old.st_mode) && !S_ISLNK(p->old.st_mode)))
		return 0;
	p->host = p->seen.st_mode ? file_open_same_mount(p->folder->fd, p->name, flags)
				  : open_from(j, p, flags);
	if (p->host < 0)
		return p->host;
	if (fstat(p->host, &st) < 0)
		return -errno;
	return put_look_is_same(&st, &p->old) ? 0 : -ESTALE;
}

/* --- comparing --- */

/* Its content as effects have it. 0 or -errno. */
static int hash_old(const struct change_put *p, uint8_t ret[static SHA256_SIZE])
{
	char target[PATH_MAX] __attribute__((uninitialized));
	struct sha256 s;
	ssize_t n;

	if (S_ISREG(p->old.st_mode))
		return sha256_file(p->host, ret, NULL);
	n = readlinkat(p->host, "", target, sizeof(target));
	if (n < 0)
		return -errno;
	sha256_init(&s);
	sha256_add(&s, target, (size_t)n);
	sha256_finish(&s, ret);
	return 0;
}

static bool put_look_is_unchanged(const struct stat *st, const struct change_signature *s)
{
	return st->st_ino == s->inode && (uint64_t)st->st_size == s->size &&
	       st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec == s->modified_ns &&
	       st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec == s->changed_ns;
}

static bool put_look_can_be(const struct stat *st, const struct change_state *state)
{
	return state->has_hash && change_put_type(st) == state->type &&
	       (uint64_t)st->st_size == state->size;
}

static bool has_mode(const struct stat *st, const struct change_state *state)
{
	return S_ISLNK(st->st_mode) || (st->st_mode & 0777) == (state->mode & 0777);
}

/* Does the run say anything about the mode? */
static bool sets_mode(const struct change_effect *x)
{
	return x->before.type != x->after.type || x->before.mode != x->after.mode;
}

/* What p->old is. The content is only read where the signature does not tell. */
enum likeness {
	LIKE_NEITHER = 0,
	LIKE_BEFORE = 1, /* what the effect was made of */
	LIKE_AFTER = 2,  /* what it leaves */
};

static bool is_plainly_before(const struct change_put *p)
{
	if (change_put_type(&p->old) != p->x->before.type)
		return false;
	/* A folder goes if it is empty by then, whatever its times are. */
	return S_ISDIR(p->old.st_mode) ||
	       (!p->x->has_moved && put_look_is_unchanged(&p->old, &p->x->below));
}

/* Only what is in `asked` is an answer. 0 or -errno. */
static int put_look_compare(
	const struct change_job *j, struct change_put *p, unsigned asked, enum likeness *ret)
{
	const struct change_effect *x = p->x;
	bool can_be_after = asked & LIKE_AFTER && put_look_can_be(&p->old, &x->after);
	bool can_be_before =
		asked & LIKE_BEFORE && !x->has_moved && put_look_can_be(&p->old, &x->before);
	uint8_t hash[SHA256_SIZE];
	int r = 0;

	*ret = LIKE_NEITHER;
	if (asked & LIKE_BEFORE && is_plainly_before(p)) {
		*ret = LIKE_BEFORE;
		return 0;
	}
	if (!can_be_after && !can_be_before)
		return 0;
	r = change_put_open_old(j, p);
	if (r == 0)
		r = hash_old(p, hash);
	if (r < 0)
		return r;
	if (can_be_after && memcmp(hash, x->after.hash, SHA256_SIZE) == 0 &&
		(!sets_mode(x) || has_mode(&p->old, &x->after)) &&
		change_put_has_attributes(p->host, x))
		*ret = LIKE_AFTER;
	else if (can_be_before && memcmp(hash, x->before.hash, SHA256_SIZE) == 0 &&
		 has_mode(&p->old, &x->before))
		*ret = LIKE_BEFORE;
	return 0;
}

static bool change_put_can_merge(const struct change_put *p)
{
	return p->x->has_base && p->x->is_text && !p->x->has_moved && S_ISREG(p->old.st_mode) &&
	       p->x->after.type == CHANGE_FILE && (uint64_t)p->old.st_size <= CHANGE_MAX_TEXT;
}

static enum change_step put_look_take_step(const struct change_put *p)
{
	return p->seen.st_mode ? CHANGE_STEP_REPLACE : CHANGE_STEP_ADD;
}

/* --- merging --- */

static int change_put_read_whole(int fd, size_t max, char **ret, size_t *ret_size)
{
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return file_read_all(fd, max, ret, ret_size);
}

static bool has_hash(const char *bytes, size_t n, const struct change_state *state)
{
	uint8_t hash[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, bytes, n);
	sha256_finish(&s, hash);
	return state->has_hash && memcmp(hash, state->hash, SHA256_SIZE) == 0;
}

static int change_put_read_base(const struct change_job *j, const struct change_put *p, size_t max,
	char **ret, size_t *ret_size)
{
	own_fd int folder = file_open_beneath(j->q->folder, "base", O_RDONLY | O_DIRECTORY, 0);

	return folder < 0
		       ? folder
		       : change_base_read(folder, p->index, p->x->before.hash, max, ret, ret_size);
}

struct three {
	char *base, *host, *now;
	struct change_text was, ours, theirs;
};

static void three_done(struct three *t)
{
	free(t->base);
	free(t->host);
	free(t->now);
}

/* All three; the verdict is given where one of them cannot be had. */
static bool read_three(
	const struct change_job *j, struct change_put *p, int layer, struct three *ret)
{
	int r = change_put_read_base(j, p, CHANGE_MAX_BASE, &ret->base, &ret->was.size);

	if (r < 0) {
		change_put_fail(p, -r, "cannot read what it was when the run ended");
		return false;
	}
	r = change_put_read_whole(p->host, CHANGE_MAX_TEXT, &ret->host, &ret->ours.size);
	if (r < 0) {
		change_put_fail_host(p, -r);
		return false;
	}
	r = change_put_read_whole(layer, CHANGE_MAX_TEXT, &ret->now, &ret->theirs.size);
	if (r == 0 && !has_hash(ret->now, ret->theirs.size, &p->x->after))
		r = -EBADMSG;
	if (r < 0)
		change_put_fail_layer(p, -r);
	ret->was.bytes = ret->base;
	ret->ours.bytes = ret->host;
	ret->theirs.bytes = ret->now;
	return r == 0;
}

static bool change_put_is_merged(const struct change_job *j, const struct change_put *p, int layer)
{
	own(buf) struct buf both = { .max = 2 * CHANGE_MAX_TEXT };
	own(three) struct three t = { 0 };
	struct change_put asked = *p; /* of which the verdict does not count */
	size_t conflicts = 0;

	return read_three(j, &asked, layer, &t) &&
	       change_text_merge(&t.was, &t.ours, &t.theirs, "host", "run", &both, &conflicts) ==
		       0 &&
	       !both.failed && conflicts == 0 && both.len == t.ours.size &&
	       memcmp(buf_text(&both), t.host, both.len) == 0;
}

bool change_put_merge(const struct change_job *j, struct change_put *p, int layer, struct buf *out)
{
	own(three) struct three t = { 0 };
	size_t conflicts = 0;
	int r;

	if (!read_three(j, p, layer, &t))
		return false;
	if (!change_is_text(&t.ours)) {
		change_put_decide(
			p, CHANGE_CONFLICT, "the host made something of it that is no text");
		return false;
	}
	r = change_text_merge(&t.was, &t.ours, &t.theirs, "host", "run", out, &conflicts);
	if (r < 0 || out->failed)
		change_put_fail(p, r < 0 ? -r : EFBIG, "cannot merge it");
	else if (conflicts)
		change_put_decide(p, CHANGE_CONFLICT,
			"the host and the run changed the same lines, in %zu place%s", conflicts,
			conflicts == 1 ? "" : "s");
	return p->verdict == CHANGE_UNDECIDED;
}

/* --- as good as the same --- */

/* Files that differ in bytes only: git's index, and texts that were merged before. */

/* What the run left at the path of the effect. A descriptor or -errno. */
static int put_same_open_layer(const struct change_job *j, const struct change_put *p)
{
	const char *path = p->x->path;
	int top = change_layer_of(j->q->git, j->q->layer, &path);

	return file_open_beneath(top, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

/* git rewrites its index to remember what it has looked at: is p->old the same one to it? */
static bool is_same_index(
	const struct change_job *j, struct change_put *p, const char *bytes, size_t n)
{
	char *now = NULL;
	size_t size = 0;
	bool is_same = S_ISREG(p->old.st_mode) && change_put_open_old(j, p) == 0 &&
		       change_put_read_whole(p->host, CHANGE_GIT_MAX_INDEX, &now, &size) == 0 &&
		       change_git_index_is_same(bytes, n, now, size);

	free(now);
	return is_same;
}

static bool change_put_is_index_before(const struct change_job *j, struct change_put *p)
{
	char *base = NULL;
	size_t size = 0;
	bool is_same = p->git.is_index && p->x->has_base && !p->x->has_moved &&
		       change_put_read_base(j, p, CHANGE_GIT_MAX_INDEX, &base, &size) == 0 &&
		       is_same_index(j, p, base, size);

	free(base);
	return is_same;
}

/* An apply put it there, and git has looked at it since. */
static bool is_index_after(const struct change_job *j, struct change_put *p)
{
	own_fd int fd = put_same_open_layer(j, p);
	own_free char *layer = NULL;
	size_t size = 0;

	return fd >= 0 && file_read_all(fd, CHANGE_GIT_MAX_INDEX, &layer, &size) == 0 &&
	       is_same_index(j, p, layer, size);
}

/* An earlier call merged it: it must not lose now what is the host's own. */
static bool is_merged(const struct change_job *j, struct change_put *p)
{
	own_fd int layer = put_same_open_layer(j, p);

	return layer >= 0 && change_put_open_old(j, p) == 0 && change_put_is_merged(j, p, layer);
}

static bool change_put_has_all(const struct change_job *j, struct change_put *p)
{
	if (p->x->after.type != CHANGE_FILE)
		return false;
	return p->git.is_index ? is_index_after(j, p) : change_put_can_merge(p) && is_merged(j, p);
}

/* --- deciding --- */

static void look_at_other(const struct change_job *j, struct change_put *p)
{
	if (change_put_has_all(j, p))
		change_put_decide(p, CHANGE_THERE, "%s", "");
	else if (change_put_is_index_before(j, p))
		p->step = put_look_take_step(p);
	else if (j->q->merges && change_put_can_merge(p))
		p->step = CHANGE_STEP_MERGE;
	else if (p->x->before.type == CHANGE_NOTHING || (p->x->from && p->seen.st_mode))
		change_put_conflict(j, p, "the host has another one there");
	else if (p->x->has_moved)
		change_put_conflict(j, p,
			"it changed on the host while the run lasted: what the run saw is unknown");
	else
		change_put_conflict(j, p, "it changed on the host since the run ended");
}

/* By what p->old is, of what is asked. */
static void look_at_old(const struct change_job *j, struct change_put *p, unsigned asked)
{
	enum likeness like = LIKE_NEITHER;
	int r = put_look_compare(j, p, asked, &like);

	if (r < 0)
		change_put_fail_host(p, -r);
	else if (like == LIKE_AFTER)
		change_put_decide(p, CHANGE_THERE, "%s", "");
	else if (like == LIKE_BEFORE)
		p->step = put_look_take_step(p);
	else
		look_at_other(j, p);
}

/* What it is made of has its old name still, or is gone; the new name is free, or is not. */
static void look_at_renamed(const struct change_job *j, struct change_put *p)
{
	own_fd int fd = -1;

	if (p->seen.st_mode) {
		p->old = p->seen;
		look_at_old(j, p, LIKE_AFTER);
		return;
	}
	fd = open_from(j, p, O_PATH | O_NOFOLLOW);
	if (fd >= 0 && fstat(fd, &p->old) == 0)
		look_at_old(j, p, LIKE_BEFORE);
	else if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		change_put_conflict(j, p, "the host has deleted or moved what was renamed");
	else
		change_put_fail_host(p, fd < 0 ? -fd : errno);
}

void change_put_look(const struct change_job *j, struct change_put *p)
{
	if (!change_put_see(p))
		return;
	if (p->git.kind == CHANGE_GIT_OBJECT && p->seen.st_mode) {
		change_put_decide(p, CHANGE_THERE, "%s", ""); /* its name is its content */
		return;
	}
	if (p->x->from) {
		look_at_renamed(j, p);
		return;
	}
	p->old = p->seen;
	if (p->seen.st_mode)
		look_at_old(j, p, LIKE_BEFORE | LIKE_AFTER);
	else if (p->x->before.type == CHANGE_NOTHING)
		p->step = CHANGE_STEP_ADD;
	else
		change_put_conflict(j, p, "the host has deleted it");
}

void change_put_look_removal(const struct change_job *j, struct change_put *p)
{
	int r = put_look_see(p, &p->seen);

	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP || (r == 0 && p->seen.st_mode == 0)) {
		change_put_decide(p, CHANGE_THERE, "%s", "");
		return;
	}
	if (r < 0 && !change_put_see(p))
		return;
	/* Of what was renamed, this is what was compared, and merged perhaps. */
	if (p->old.st_mode && put_look_is_same(&p->old, &p->seen)) {
		p->step = CHANGE_STEP_REMOVE;
		return;
	}
	p->old = p->seen;
	look_at_old(j, p, LIKE_BEFORE);
	if (p->step == CHANGE_STEP_MERGE)
		change_put_conflict(j, p, "it changed on the host since the run ended");
	if (p->step != CHANGE_STEP_NONE)
		p->step = CHANGE_STEP_REMOVE;
}
