/*
 * change_batch - many effects at once, because a sync for each of them would take most of the time.
 *
 * Runs as:     the operator; looking and writing in several threads, everything else in one.
 * Enters with: effects that leave files or links, or remove something.
 * Leaves:      each of them in its place, whole, or what was there; no temporary file.
 * Must not:    rename anything before its content is on the disk.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/own.h"
#include "change/apply/change_put.h"

#define BATCH_MAX   16384
#define BYTES_MAX   ((uint64_t)256 << 20)
#define FOLDERS_MAX 4096
#define FOLDERS_MIN 8
#define SPARE       128 /* descriptors that others need, and the threads */
#define RECENT      64
#define THREADS_MAX 4
#define PER_THREAD  32 /* fewer are not worth starting one */

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

void change_batch_clear(struct change_batch *b)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->puts[i].host >= 0)
			close(b->puts[i].host);
	for (size_t i = 0; i < b->folder_count; i++) {
		struct change_folder *f = &b->folders[i];

		if (f->fd >= 0 && f->has_changed &&
			(!b->j->syncs_each || change_folder_sync(f) < 0))
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

bool change_batch_is_full(const struct change_batch *b)
{
	return b->count == b->room || b->folder_count == b->folder_room || b->bytes >= BYTES_MAX;
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

/* --- looking and writing --- */

static bool batch_is_over(const struct change_job *j)
{
	return atomic_load(&j->is_full) || (j->q->is_stopped && j->q->is_stopped(j->q->of));
}

bool change_is_fatal(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EROFS || error == EIO ||
	       error == ENOMEM || error == EMFILE || error == ENFILE;
}

/* Puts that one thread takes at once. */
struct share {
	size_t at, end;
};

/*
 * The next ones of the batch, for whichever thread asks; false where there are none. They are of
 * one folder: two threads that make files in the same one would wait for each other.
 */
static bool take_share(struct change_batch *b, struct share *ret)
{
	size_t at = atomic_load(&b->next), end;

	do {
		if (at >= b->count)
			return false;
		end = at + 1;
		while (end < b->count && end < at + PER_THREAD &&
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

/* Some work on all puts, by as many threads as are worth it. */
static void run_threads(struct change_batch *b, void *(*work)(void *of))
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t wanted = b->count / PER_THREAD, started = 0;
	pthread_t threads[THREADS_MAX];
	sigset_t all, before;

	if (wanted > THREADS_MAX)
		wanted = THREADS_MAX;
	if (cores > 0 && wanted > (size_t)cores)
		wanted = (size_t)cores;
	atomic_store(&b->next, 0);
	/* Signals are for the one who started us. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (started + 1 < wanted && pthread_create(&threads[started], NULL, work, b) == 0)
		started++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	work(b);
	while (started > 0)
		pthread_join(threads[--started], NULL);
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
