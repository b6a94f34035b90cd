/*
 * change_batch - many effects at once, because a sync for each of them would take most of the time.
 *
 * Runs as:     the operator; looking, writing and settling in several threads.
 * Enters with: effects that leave files or links, or remove something.
 * Leaves:      each name for the new file, whole, or for what was there, untouched; no temporary
 *              file and no lock.
 * Must not:    rename anything before its content is on the disk; resolve a path; replace anything
 *              but what was seen.
 *
 * What git guards is guarded by its lock meanwhile, NAME.lock. The lock is another name of the
 * temporary file: so it is made complete or not at all, and after a crash it is known to be ours.
 */
#include "change/apply/change_put.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

#define LOCK_SIZE   (NAME_MAX + sizeof(".lock"))
#define BATCH_MAX   16384
#define FOLDERS_MAX 4096
#define FOLDERS_MIN 8
#define SPARE       128 /* descriptors that others need, and the threads */
#define RECENT      64
#define THREADS_MAX 4
#define PER_THREAD  32  /* fewer are not worth starting one */
#define PER_SHARE   512 /* that a thread takes at once */

/*
 * Folders are held open: as many as the process may have, but for some. Where it may have more than
 * it asked for, it asks for them.
 */
static size_t count_folders(void)
{
	const rlim_t wanted = FOLDERS_MAX + SPARE;
	struct rlimit limit = { 0 };

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return FOLDERS_MIN;
	if (limit.rlim_cur < wanted && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
			return FOLDERS_MIN;
	}
	if (limit.rlim_cur < FOLDERS_MIN + SPARE)
		return FOLDERS_MIN;
	return limit.rlim_cur < wanted ? (size_t)limit.rlim_cur - SPARE : FOLDERS_MAX;
}

int change_batch_init(struct change_batch *b, struct change_job *j)
{
	*b = (struct change_batch){ .j = j, .room = BATCH_MAX, .folder_room = count_folders() };
	b->puts = calloc(b->room, sizeof(*b->puts));
	b->folders = calloc(b->folder_room, sizeof(*b->folders));
	return b->puts && b->folders ? 0 : -ENOMEM;
}

/* To the disk. 0 or -errno. */
static int batch_sync_folder(const struct change_folder *f)
{
	own_fd int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* A folder we may write to and not read: then with all the others. */
	if (fd < 0)
		return -EACCES;
	return fsync(fd) < 0 ? -errno : 0;
}

void change_batch_clear(struct change_batch *b)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->puts[i].host >= 0)
			close(b->puts[i].host);
	for (size_t i = 0; i < b->folder_count; i++) {
		struct change_folder *f = &b->folders[i];

		if (f->fd >= 0 && f->has_changed && (!b->j->syncs_each || batch_sync_folder(f) < 0))
			b->j->needs_sync = true;
		if (f->fd >= 0)
			close(f->fd);
	}
	b->count = b->folder_count = 0;
	b->bytes = 0;
}

void change_batch_done(struct change_batch *b)
{
	if (b->puts && b->folders)
		change_batch_clear(b);
	free(b->puts);
	free(b->folders);
}

/* --- filling --- */

static struct change_folder *find_folder(struct change_batch *b, const char *path)
{
	const char *name = change_name_of(path);
	size_t len = name == path ? 0 : (size_t)(name - path) - 1;

	/* They come sorted: it is among the last ones, or is opened once more. */
	for (size_t i = b->folder_count; i > 0 && i + RECENT > b->folder_count; i--) {
		struct change_folder *f = &b->folders[i - 1];

		if (f->len == len && memcmp(f->path, path, len) == 0)
			return f;
	}
	change_folder_open(&b->folders[b->folder_count], b->j->q->below, b->j->q->git, path);
	return &b->folders[b->folder_count++];
}

struct change_put *change_batch_add(struct change_batch *b, const struct change_effect *x)
{
	struct change_put *p = &b->puts[b->count++];

	*p = (struct change_put){ .x = x,
		.index = (size_t)(x - b->j->x->items),
		.path = x->path,
		.name = change_name_of(x->path),
		.folder = find_folder(b, x->path),
		.git = change_git_place_of(x->path),
		.host = -1,
		.verdict = CHANGE_UNDECIDED };
	b->bytes += x->after.size;
	return p;
}

/* --- git's locks --- */

static void print_lock(const struct change_put *p, char ret[static LOCK_SIZE])
{
	snprintf(ret, LOCK_SIZE, "%.*s.lock", NAME_MAX, p->name);
}

static void change_put_refuse_lock(struct change_put *p)
{
	change_put_decide(p, CHANGE_CONFLICT,
		"git is at work in this repository: '%.100s.lock' is there", p->name);
}

static bool change_put_is_locked(const struct change_put *p)
{
	char lock[LOCK_SIZE];

	print_lock(p, lock);
	return p->git.is_locked && p->folder->fd >= 0 &&
	       faccessat(p->folder->fd, lock, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool change_put_lock(const struct change_job *j, struct change_put *p)
{
	char lock[LOCK_SIZE], name[CHANGE_NAME_SIZE];

	if (!p->git.is_locked)
		return true;
	print_lock(p, lock);
	change_put_name(j, p, name);
	if (linkat(p->folder->fd, name, p->folder->fd, lock, 0) == 0)
		p->has_lock = true;
	else if (errno == EEXIST)
		change_put_refuse_lock(p);
	else
		change_put_fail(p, errno, "cannot lock it as git does");
	return p->has_lock;
}

/* Removes the temporary file and the lock, if there are any. */
static void change_put_drop(const struct change_job *j, struct change_put *p)
{
	char lock[LOCK_SIZE], name[CHANGE_NAME_SIZE];

	print_lock(p, lock);
	change_put_name(j, p, name);
	if (p->has_lock)
		unlinkat(p->folder->fd, lock, 0);
	if (p->has_temporary)
		unlinkat(p->folder->fd, name, 0);
	p->has_lock = p->has_temporary = false;
}

/* --- taking a place --- */

/* Where there is nothing; what appears there meanwhile stays. 0 or -errno. */
static int take_free_place(const struct change_put *p, const char *name)
{
	int dir = p->folder->fd;

	if (renameat2(dir, name, dir, p->name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* A file system that cannot: links do not replace anything either. */
	if (linkat(dir, name, dir, p->name, 0) < 0)
		return -errno;
	unlinkat(dir, name, 0);
	return 0;
}

static int put_settle_remove_name(const struct change_put *p, const char *name)
{
	int flags = S_ISDIR(p->seen.st_mode) ? AT_REMOVEDIR : 0;

	return unlinkat(p->folder->fd, name, flags) < 0 ? -errno : 0;
}

int change_put_exchange(struct change_put *p, const char *temporary)
{
	int dir = p->folder->fd, r;

	if (renameat2(dir, temporary, dir, p->name, RENAME_EXCHANGE) < 0) {
		if (errno != EINVAL && errno != ENOSYS)
			return -errno;
		r = put_settle_remove_name(p, p->name);
		if (r == 0 && renameat(dir, temporary, dir, p->name) < 0)
			r = -errno;
		return r;
	}
	r = change_put_is_under(p, temporary) ? put_settle_remove_name(p, temporary) : -ESTALE;
	if (r < 0)
		renameat2(dir, temporary, dir, p->name, RENAME_EXCHANGE);
	return r;
}

static int put_settle_take_place(struct change_put *p, const char *name)
{
	if (p->seen.st_mode == 0)
		return take_free_place(p, name);
	if (S_ISDIR(p->seen.st_mode))
		return change_put_exchange(p, name);
	return renameat(p->folder->fd, name, p->folder->fd, p->name) < 0 ? -errno : 0;
}

void change_put_settle(const struct change_job *j, struct change_put *p)
{
	enum change_verdict v = p->step == CHANGE_STEP_MERGE ? CHANGE_MERGED : CHANGE_APPLIED;
	char name[CHANGE_NAME_SIZE];
	/* Where there was nothing, the renaming itself takes care that there still is. */
	int r = p->seen.st_mode == 0 || change_put_is_still(p) ? 0 : -ESTALE;

	change_put_name(j, p, name);
	if (r == 0)
		r = put_settle_take_place(p, name);
	if (r == 0) {
		p->has_temporary = false;
		p->folder->has_changed = true;
		p->verdict = v;
		p->step = CHANGE_STEP_NONE;
	} else if (r == -ESTALE || r == -EEXIST) {
		change_put_decide(p, CHANGE_CONFLICT, "the host changed it at this moment");
	} else if (r == -ENOTEMPTY) {
		change_put_decide(
			p, CHANGE_CONFLICT, "the host has a folder there, and it is not empty");
	} else {
		change_put_fail(p, -r, "cannot put it in its place");
	}
	change_put_drop(j, p);
}

/* --- removing --- */

void change_put_remove(const struct change_job *j, struct change_put *p)
{
	int r = 0;

	if (p->step != CHANGE_STEP_REMOVE)
		return;
	if (p->git.is_locked && !S_ISDIR(p->seen.st_mode)) {
		r = change_put_touch(j, p);
		if (r < 0)
			change_put_fail(p, -r, "cannot lock it as git does");
		if (r < 0 || !change_put_lock(j, p)) {
			change_put_drop(j, p);
			return;
		}
	}
	r = change_put_is_still(p) ? put_settle_remove_name(p, p->name) : -ESTALE;
	if (r == 0 || r == -ENOENT) {
		p->folder->has_changed = true;
		p->verdict = CHANGE_APPLIED;
		p->step = CHANGE_STEP_NONE;
	} else if (r == -ESTALE) {
		change_put_decide(p, CHANGE_CONFLICT, "the host changed it at this moment");
	} else if (r == -ENOTEMPTY || r == -EEXIST) {
		change_put_decide(p, CHANGE_CONFLICT, "it is not empty");
	} else {
		change_put_fail(p, -r, "cannot remove it");
	}
	change_put_drop(j, p);
}

static void change_put_remove_old(const struct change_job *j, struct change_put *p)
{
	struct change_folder folder = { .fd = -1 };
	struct change_put old = { .x = p->x,
		.index = p->index,
		.path = p->x->from,
		.folder = &folder,
		.git = change_git_place_of(p->x->from),
		.host = -1,
		.verdict = CHANGE_UNDECIDED };

	if (old.git.kind == CHANGE_GIT_OBJECT)
		return;
	/* Where the new name was free, what was compared is the old one's. */
	if (p->seen.st_mode == 0)
		old.old = p->old;
	change_folder_open(&folder, j->q->below, j->q->git, old.path);
	old.name = change_name_of(old.path);
	change_put_look_removal(j, &old);
	change_put_remove(j, &old);
	if (old.host >= 0)
		close(old.host);
	if (folder.has_changed && j->syncs_each)
		batch_sync_folder(&folder);
	if (folder.fd >= 0)
		close(folder.fd);
	if (old.verdict == CHANGE_APPLIED || old.verdict == CHANGE_THERE)
		return;
	change_put_decide(p, old.verdict, "it has its new name, and the old one too: %s", old.why);
	p->error = old.error;
}

/* --- looking and writing --- */

static bool batch_is_over(const struct change_job *j)
{
	return atomic_load(&j->is_full) || (j->q->is_stopped && j->q->is_stopped(j->q->of));
}

/* Puts that one thread takes at once. */
struct share {
	size_t at, end;
};

/*
 * The next ones of the batch, for whichever thread asks; false where there are none. They are all
 * of one folder, unless there are very many: two threads that make files in the same one would wait
 * for each other.
 */
static bool take_share(struct change_batch *b, struct share *ret)
{
	size_t at = atomic_load(&b->next), end;

	do {
		if (at >= b->count)
			return false;
		end = at + 1;
		while (end < b->count && end < at + PER_SHARE &&
			b->puts[end].folder == b->puts[at].folder)
			end++;
	} while (!atomic_compare_exchange_weak(&b->next, &at, end));
	*ret = (struct share){ .at = at, .end = end };
	return true;
}

/* A batch is larger than the number of files a process may have open. */
static void close_host(struct change_put *p)
{
	if (p->host >= 0)
		close(take_fd(&p->host));
}

static void write_one(struct change_job *j, struct change_put *p)
{
	if (p->verdict != CHANGE_UNDECIDED || batch_is_over(j))
		return;
	change_put_look(j, p);
	if (p->step != CHANGE_STEP_NONE)
		change_put_write(j, p);
	if (p->step == CHANGE_STEP_NONE)
		change_put_drop(j, p);
	close_host(p);
	if (change_is_fatal(p->error))
		atomic_store(&j->is_full, true);
}

static void *batch_write_some(void *of)
{
	struct change_batch *b = of;
	struct share s;

	while (take_share(b, &s))
		for (; s.at < s.end; s.at++)
			write_one(b->j, &b->puts[s.at]);
	return NULL;
}

void change_run_threads(size_t wanted, void *(*work)(void *of), void *of)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t started = 0;
	pthread_t threads[THREADS_MAX];
	sigset_t all, before;

	if (wanted > THREADS_MAX)
		wanted = THREADS_MAX;
	if (cores > 0 && wanted > (size_t)cores)
		wanted = (size_t)cores;
	/* Signals are for the one who started us. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (started + 1 < wanted && pthread_create(&threads[started], NULL, work, of) == 0)
		started++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	work(of);
	while (started > 0)
		pthread_join(threads[--started], NULL);
}

/* Some work on all puts. */
static void run_threads(struct change_batch *b, void *(*work)(void *of))
{
	atomic_store(&b->next, 0);
	change_run_threads(b->count / PER_THREAD, work, b);
}

/* --- settling --- */

static bool is_written(const struct change_put *p)
{
	return p->has_temporary && p->step != CHANGE_STEP_NONE;
}

static void drop_all(struct change_batch *b, enum change_verdict v, const char *why)
{
	for (size_t i = 0; i < b->count; i++) {
		struct change_put *p = &b->puts[i];

		if (!is_written(p))
			continue;
		change_put_drop(b->j, p);
		change_put_decide(p, v, "%s", why);
	}
}

/* All locks are ours, and nothing has changed since it was seen. */
static bool batch_lock_all(struct change_batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		struct change_put *p = &b->puts[i];

		if (p->verdict == CHANGE_CONFLICT || p->verdict == CHANGE_FAILED)
			return false;
		if (!is_written(p))
			continue;
		if (!change_put_lock(b->j, p)) {
			change_put_drop(b->j, p);
			return false;
		}
		if (!change_put_is_still(p))
			return false;
	}
	return true;
}

static void settle_one(const struct change_batch *b, struct change_put *p)
{
	bool is_there = p->verdict == CHANGE_THERE;

	if (is_written(p)) {
		if (!p->has_lock && !change_put_lock(b->j, p)) {
			change_put_drop(b->j, p);
			return;
		}
		change_put_settle(b->j, p);
		is_there = p->verdict == CHANGE_APPLIED || p->verdict == CHANGE_MERGED;
	}
	if (is_there && p->x->from)
		change_put_remove_old(b->j, p);
}

static void foresee_all(struct change_batch *b)
{
	for (size_t i = 0; i < b->count && !batch_is_over(b->j); i++) {
		struct change_put *p = &b->puts[i];

		if (p->verdict != CHANGE_UNDECIDED)
			continue;
		change_put_look(b->j, p);
		change_put_foresee(b->j, p);
		close_host(p);
	}
}

static void *settle_some(void *of)
{
	struct change_batch *b = of;
	struct share s;

	while (take_share(b, &s))
		for (; s.at < s.end; s.at++)
			settle_one(b, &b->puts[s.at]);
	return NULL;
}

int change_batch_run(struct change_batch *b)
{
	bool has_written = false;
	int r = 0;

	if (b->j->q->is_dry) {
		foresee_all(b);
		return 0;
	}
	run_threads(b, batch_write_some);
	for (size_t i = 0; i < b->count; i++)
		has_written |= is_written(&b->puts[i]);
	if (has_written && !b->j->syncs_each)
		r = change_job_sync(b->j);
	if (r < 0)
		drop_all(b, CHANGE_FAILED, "it could not be written to the disk");
	if (!b->is_together) {
		run_threads(b, settle_some);
		return r;
	}
	if (batch_is_over(b->j) || !batch_lock_all(b))
		drop_all(b, CHANGE_CONFLICT, "other files of git's, which belong to it, conflict");
	/* One after the other: their order counts. */
	atomic_store(&b->next, 0);
	settle_some(b);
	return r;
}

static void batch_look_ahead(const struct change_job *j, struct change_put *p)
{
	/* One that will be made in the place of a file. */
	if (p->folder->fd == -ENOENT || p->folder->fd == -ENOTDIR)
		return;
	if (p->x->change == CHANGE_DELETED)
		change_put_look_removal(j, p);
	else if (p->x->after.type != CHANGE_FOLDER ||
		 (change_put_see(p) && !S_ISDIR(p->seen.st_mode)))
		change_put_look(j, p);
	if (p->verdict == CHANGE_UNDECIDED && change_put_is_locked(p))
		change_put_refuse_lock(p);
}

const struct change_put *change_batch_find_conflict(struct change_batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		struct change_put *p = &b->puts[i];

		if (p->verdict != CHANGE_UNDECIDED)
			continue;
		batch_look_ahead(b->j, p);
		close_host(p);
		if (p->verdict != CHANGE_UNDECIDED && p->verdict != CHANGE_THERE)
			return p;
	}
	return NULL;
}
