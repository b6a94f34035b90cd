#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "work/work_apply.h"
#include "work/work_git.h"

/*
 * What the parts of work_apply share. An effect is put on the tree in steps: look at what is there
 * (work_put_look.c), write beside it (work_put_write.c), take its place (work_put_settle.c);
 * folders and removals have their own (work_put_folder.c, work_put_remove.c). None of the steps
 * knows any effect but its own, so that several threads may take them.
 */

/* --- which belong together: work_repositories.c, pure --- */

struct work_repositories {
	uint32_t *of;    /* of each effect: its repository's number, from 1 on; 0: it is in none */
	bool *has_state; /* of each repository: something of its state was chosen */
	bool *is_left;   /* of each repository: its state is left alone */
};

/* By the names of the effects. 0 or -ENOMEM. */
int work_repositories_init(struct work_repositories *r, const struct work_effects *x);
void work_repositories_done(struct work_repositories *r);

/* --- which effects: work_choose.c, pure --- */

enum work_choice {
	WORK_NOT_CHOSEN,
	WORK_CHOSEN,
	WORK_CHOSEN_HELD, /* but it runs on the host, and was not named */
};

enum work_choice work_choose_one(const struct work_apply *q, const struct work_effect *x);

/*
 * One choice for each effect; new folders that chosen ones lie in are chosen too, and what is new
 * among the objects that chosen refs may point to.
 */
void work_choose(const struct work_apply *q, const struct work_effects *x,
	struct work_repositories *repositories, uint8_t *choices);

/* --- in which order: work_turns.c, pure --- */

/* A chosen effect, and when its turn comes. */
struct work_turn {
	uint32_t index;
	uint8_t kind, order; /* of enum work_git_kind; among those of a kind */
};

void work_turns_sort(const struct work_effects *x, struct work_turn *turns, size_t count);

/* How many of them, from the first, belong together: of a kind, and of one repository's state. */
size_t work_turns_group(const struct work_effects *x, const struct work_turn *turns, size_t count);

/* Is a path what paths of effects are? Names between slashes, none of them "." or "..". */
bool work_is_path(const char *path);

/* --- one effect on its way --- */

#define WORK_TEMPORARY        ".bawn-%s-" /* how names of temporary files of a run begin */
#define WORK_TEMPORARY_OBJECT "tmp_obj_"  /* and before that, among git's objects */
#define WORK_WHY_SIZE         192
#define WORK_NAME_SIZE        160 /* of a temporary file */

/* A folder of the tree that something is put into, held open as long as that takes. */
struct work_folder {
	const char *path; /* its first `len` bytes; borrowed from an effect */
	size_t len;
	int fd;    /* O_PATH; below 0: why it cannot be had */
	uid_t uid; /* whose it is */
	gid_t gid;
	bool gives_group; /* to what is made in it */
	atomic_bool has_changed;
};

enum work_step {
	WORK_STEP_NONE, /* the verdict is known */
	WORK_STEP_ADD,
	WORK_STEP_REPLACE,
	WORK_STEP_MERGE,
	WORK_STEP_REMOVE,
};

#define WORK_UNDECIDED WORK_VERDICT_COUNT

struct work_put {
	const struct work_effect *x;
	size_t index;
	const char *path; /* of the effect, or its `from` where that is removed */
	const char *name; /* the last part */
	struct work_folder *folder;
	struct work_git_place git;
	struct stat seen; /* what is there; st_mode 0: nothing */
	struct stat old;  /* what it was made of, there or under its old name; st_mode 0: nothing */
	int host;         /* that, open: a file for reading, a link by O_PATH; or -1 */
	enum work_step step;
	bool has_temporary, has_lock;
	enum work_verdict verdict;
	int error; /* errno of a failure, or 0 */
	char why[WORK_WHY_SIZE];
};

/* What all of them have in common. */
struct work_job {
	const struct work_apply *q;
	const struct work_effects *x;
	char prefix[WORK_NAME_SIZE / 2]; /* of temporary files: .bawn-RUN-TOKEN- */
	uid_t uid;                       /* who we are */
	gid_t gid;
	bool syncs_each; /* there are few: each file and folder for itself */
	bool needs_sync; /* of everything, at the end */
	atomic_bool has_no_clones;
	atomic_bool is_full;    /* a write failed in a way that others will too */
	pthread_mutex_t rights; /* to the layer, which work_open gives for a moment */
};

/* Every verdict but APPLIED has its reason. */
void work_put_decide(struct work_put *p, enum work_verdict v, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void work_put_fail(struct work_put *p, int error, const char *what);
void work_put_conflict(const struct work_job *j, struct work_put *p, const char *why);

/* The verdict where what the host has could not be read. */
void work_put_fail_host(struct work_put *p, int error);

/* The verdict where the layer could not be read, or is not what it was: EBADMSG. */
void work_put_fail_layer(struct work_put *p, int error);

/* To be told with WORK_APPLIED: what was left out. */
void work_put_note(struct work_put *p, const char *what);

/* The name of its temporary file; the one of a removal is another. */
void work_put_name(const struct work_job *j, const struct work_put *p, char ret[WORK_NAME_SIZE]);

/* --- work_put_look.c --- */

enum work_type work_put_type(const struct stat *st);

/* Fills p->seen. False: the folder is not there, or cannot be had, and the verdict says so. */
bool work_put_see(struct work_put *p);

/* Is what was seen still there? */
bool work_put_is_still(const struct work_put *p);

/* Has it this name now? */
bool work_put_is_under(const struct work_put *p, const char *name);

/* Opens p->old as p->host, if it is a file or a link. 0 or -errno: -ESTALE, it is another. */
int work_put_open_old(const struct work_job *j, struct work_put *p);

/* Decides the step of an effect that leaves a file or a link, or a folder where there is none. */
void work_put_look(const struct work_job *j, struct work_put *p);

/* Is all there that a merge takes? */
bool work_put_can_merge(const struct work_put *p);

/* Decides whether p->path goes; it does if it is p->old, where that is known. */
void work_put_look_removal(const struct work_job *j, struct work_put *p);

/* Instead of the steps that would follow: the verdict they would come to. work_foresee.c */
void work_put_foresee(struct work_job *j, struct work_put *p);

/* --- work_put_write.c --- */

/* Writes the temporary file or link, complete. */
void work_put_write(struct work_job *j, struct work_put *p);

/* An empty one, by which a lock is known to be ours. 0 or -errno. */
int work_put_touch(const struct work_job *j, struct work_put *p);

struct work_owner {
	uid_t uid;
	gid_t gid;
};

/* Whose it will be. False: that of whatever we make there. */
bool work_put_owner(const struct work_job *j, const struct work_put *p, struct work_owner *ret);

/* --- work_put_copy.c --- */

/* Opens a file or folder of the layer for reading, a link with O_PATH. A descriptor or -errno. */
int work_put_open_layer(struct work_job *j, const char *path, int flags);

/* A file, holes as holes, that must have this hash: -EBADMSG where it has not. */
int work_put_copy(struct work_job *j, int from, int to, const struct stat *st,
	const uint8_t hash[static SHA256_SIZE]);

/* --- work_put_merge.c --- */

/* What it was when the run ended, up to `max` bytes. The caller owns *ret. 0 or -errno. */
int work_put_read_base(const struct work_job *j, const struct work_put *p, size_t max, char **ret,
	size_t *ret_size);

/* All of an open file, from its beginning. The caller owns *ret. 0 or -errno. */
int work_put_read_whole(int fd, size_t max, char **ret, size_t *ret_size);

/* Has the host's file, open at p->host, all that the run did to it already? */
bool work_put_is_merged(const struct work_job *j, const struct work_put *p, int layer);

/* All three ways; the verdict is given where that leads nowhere. */
bool work_put_merge(const struct work_job *j, struct work_put *p, int layer, struct buf *out);

/* --- work_put_same.c --- */

/* Is p->old git's index, with the entries it had before the run? */
bool work_put_is_index_before(const struct work_job *j, struct work_put *p);

/* Has p->old all that the run did to it, though it is not the same: an index, or merged? */
bool work_put_has_all(const struct work_job *j, struct work_put *p);

/* --- work_put_attributes.c --- */

/* What the file that is replaced has, for the one that replaces it. 0 or -errno. */
int work_put_carry_attributes(int from, int to);

/* What the run changed; `layer` has the values. 0 or -errno: -EBADMSG, they are others. */
int work_put_change_attributes(int layer, int to, const struct work_effect *x);

/* Are they as the effect leaves them? */
bool work_put_has_attributes(int fd, const struct work_effect *x);

/* --- work_put_settle.c --- */

/* Takes git's lock where there is one to take. False: the verdict says why not. */
bool work_put_lock(const struct work_job *j, struct work_put *p);

/* Has somebody else taken it? Then the verdict is this. */
bool work_put_is_locked(const struct work_put *p);
void work_put_refuse_lock(struct work_put *p);

/* Renames the temporary file to its place, if that is as it was seen. */
void work_put_settle(const struct work_job *j, struct work_put *p);

/* Removes the temporary file and the lock, if there are any. */
void work_put_drop(const struct work_job *j, struct work_put *p);

/* Takes the place of a thing of another type, which goes. 0 or -errno: -ENOTEMPTY, it stays. */
int work_put_exchange(struct work_put *p, const char *temporary);

/* Removes p->path, if the look said so. */
void work_put_remove(const struct work_job *j, struct work_put *p);

/* Removes what `p`, which has its place by now, was renamed from. */
void work_put_remove_old(const struct work_job *j, struct work_put *p);

/* --- work_put_folder.c --- */

const char *work_name_of(const char *path);

/* Opens what `path` lies in; f->fd says why it could not. */
void work_folder_open(
	struct work_folder *f, int below, const struct work_git_tops *git, const char *path);

/* All that was written, to the disk. 0 or -errno. */
int work_job_sync(const struct work_job *j);

/* To the disk. 0 or -errno. */
int work_folder_sync(const struct work_folder *f);

/*
 * Makes it where there is none, or changes it. Undecided afterwards: its mode would keep us from
 * putting things into it, and is given to it by the other at the end.
 */
void work_put_make_folder(struct work_job *j, struct work_put *p);
void work_put_finish_folder(struct work_job *j, struct work_put *p);

/* --- work_batch.c --- */

/* What is looked at and written together, and synced once. */
struct work_batch {
	struct work_job *j;
	struct work_put *puts;
	size_t count, room;
	struct work_folder *folders;
	size_t folder_count, folder_room;
	uint64_t bytes;
	atomic_size_t next; /* for the threads */
	bool is_together;   /* all of them, or none */
};

/* Is this an error that the next file will meet too? */
bool work_is_fatal(int error);

int work_batch_init(struct work_batch *b, struct work_job *j);
void work_batch_done(struct work_batch *b);

/* Starts an effect, of which `path` is one of the names; the batch has room for it. */
struct work_put *work_batch_add(struct work_batch *b, const struct work_effect *x);
bool work_batch_is_full(const struct work_batch *b);

/* Looks, writes, syncs, settles; every put that was reached has its verdict then. 0 or -errno. */
int work_batch_run(struct work_batch *b);

/* Looks only: does one of them stand in the way of all? Its verdict is not THERE then. */
const struct work_put *work_batch_find_conflict(struct work_batch *b);

/* Forgets the puts, and closes the folders. */
void work_batch_clear(struct work_batch *b);

/* --- work_journal.c --- */

struct work_journal {
	int fd; /* locked: no other process applies or discards this run */
	struct buf text;
};

/*
 * Opens the run's journal, and removes what an earlier call left in the tree; *ret_found says
 * whether there was one.
 */
int work_journal_open(struct work_journal *w, int folder, int below,
	const struct work_git_tops *git, const char *run, bool *ret_found, struct err *e);

/* A temporary file that will be beside `path`; and perhaps git's lock of it. */
void work_journal_add(
	struct work_journal *w, const char *path, const char *temporary, bool is_locked);

/* On the disk: from now on there may be temporary files. */
int work_journal_begin(struct work_journal *w, int folder, struct err *e);

/* There are none any more. */
void work_journal_end(struct work_journal *w, int folder);
void work_journal_done(struct work_journal *w);
