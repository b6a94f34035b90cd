#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "change/apply/change_apply.h"
#include "change/git/change_git.h"

/*
 * What the parts of change_apply share. An effect is put on the tree in steps: look at what is
 * there (change_put_look.c), write beside it (change_put_write.c), take its place (change_batch.c);
 * folders are made by change_put_write.c too. None of the steps knows any effect but its own, so
 * that several threads may take them.
 */

/* --- which belong together: change_choose.c, pure --- */

struct change_repositories {
	uint32_t *of;    /* of each effect: its repository's number, from 1 on; 0: it is in none */
	bool *has_state; /* of each repository: something of its state was chosen */
	bool *is_left;   /* of each repository: its state is left alone */
};

/* By the names of the effects. 0 or -ENOMEM. */
int change_repositories_init(struct change_repositories *r, const struct change_effects *x);
void change_repositories_done(struct change_repositories *r);

/* --- which effects: change_choose.c, pure --- */

enum change_choice {
	CHANGE_NOT_CHOSEN,
	CHANGE_CHOSEN,
	CHANGE_CHOSEN_HELD, /* but it runs on the host, and was not named */
};

enum change_choice change_choose_one(const struct change_apply *q, const struct change_effect *x);

/*
 * One choice for each effect; new folders that chosen ones lie in are chosen too, and what is new
 * among the objects that chosen refs may point to.
 */
void change_choose(const struct change_apply *q, const struct change_effects *x,
	struct change_repositories *repositories, uint8_t *choices);

/* --- in which order: change_choose.c, pure --- */

/* A chosen effect, and when its turn comes. */
struct change_turn {
	uint32_t index;
	uint8_t kind, order; /* of enum change_git_kind; among those of a kind */
};

void change_turns_sort(const struct change_effects *x, struct change_turn *turns, size_t count);

/* How many of them, from the first, belong together: of a kind, and of one repository's state. */
size_t change_turns_group(
	const struct change_effects *x, const struct change_turn *turns, size_t count);

/* Is a path what paths of effects are? Names between slashes, none of them "." or "..". */
bool change_is_path(const char *path);

/* --- one effect on its way --- */

#define CHANGE_TEMPORARY        ".bawn-%s-" /* how names of temporary files of a run begin */
#define CHANGE_TEMPORARY_OBJECT "tmp_obj_"  /* and before that, among git's objects */
#define CHANGE_WHY_SIZE         192
#define CHANGE_NAME_SIZE        160 /* of a temporary file */

/* A folder of the tree that something is put into, held open as long as that takes. */
struct change_folder {
	const char *path; /* its first `len` bytes; borrowed from an effect */
	size_t len;
	int fd;    /* O_PATH; below 0: why it cannot be had */
	uid_t uid; /* whose it is */
	gid_t gid;
	bool gives_group; /* to what is made in it */
	atomic_bool has_changed;
	/* Does it give an access-control list too? Asked when the first file needs to know. */
	_Atomic enum {
		CHANGE_NOT_ASKED,
		CHANGE_GIVES_NONE,
		CHANGE_GIVES_LIST
	} list;
};

enum change_step {
	CHANGE_STEP_NONE, /* the verdict is known */
	CHANGE_STEP_ADD,
	CHANGE_STEP_REPLACE,
	CHANGE_STEP_MERGE,
	CHANGE_STEP_REMOVE,
};

#define CHANGE_UNDECIDED CHANGE_VERDICT_COUNT

struct change_put {
	const struct change_effect *x;
	size_t index;
	const char *path; /* of the effect, or its `from` where that is removed */
	const char *name; /* the last part */
	struct change_folder *folder;
	struct change_git_place git;
	struct stat seen; /* what is there; st_mode 0: nothing */
	struct stat old;  /* what it was made of, there or under its old name; st_mode 0: nothing */
	int host;         /* that, open: a file for reading, a link by O_PATH; or -1 */
	enum change_step step;
	bool has_temporary, has_lock;
	enum change_verdict verdict;
	int error; /* errno of a failure, or 0 */
	char why[CHANGE_WHY_SIZE];
};

/* What all of them have in common. */
struct change_job {
	const struct change_apply *q;
	const struct change_effects *x;
	char prefix[CHANGE_NAME_SIZE / 2]; /* of temporary files: .bawn-RUN-TOKEN- */
	uid_t uid;                         /* who we are */
	gid_t gid;
	bool syncs_each; /* there are few: each file and folder for itself */
	bool needs_sync; /* of everything, at the end */
	atomic_bool has_no_clones;
	atomic_bool is_full;    /* a write failed in a way that others will too */
	pthread_mutex_t rights; /* to the layer, which change_open gives for a moment */
};

/* Every verdict but APPLIED has its reason. */
void change_put_decide(struct change_put *p, enum change_verdict v, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void change_put_fail(struct change_put *p, int error, const char *what);

/* The verdict where what the host has could not be read. */
void change_put_fail_host(struct change_put *p, int error);

/* The verdict where the layer could not be read, or is not what it was: EBADMSG. */
void change_put_fail_layer(struct change_put *p, int error);

/* The name of its temporary file; the one of a removal is another. */
void change_put_name(
	const struct change_job *j, const struct change_put *p, char ret[CHANGE_NAME_SIZE]);

/* --- change_put_look.c --- */

/* Fills p->seen. False: the folder is not there, or cannot be had, and the verdict says so. */
bool change_put_see(struct change_put *p);

/* Is what was seen still there? */
bool change_put_is_still(const struct change_put *p);

/* Has it this name now? */
bool change_put_is_under(const struct change_put *p, const char *name);

/* Opens p->old as p->host, if it is a file or a link. 0 or -errno: -ESTALE, it is another. */
int change_put_open_old(const struct change_job *j, struct change_put *p);

/* Decides the step of an effect that leaves a file or a link, or a folder where there is none. */
void change_put_look(const struct change_job *j, struct change_put *p);

/* Decides whether p->path goes; it does if it is p->old, where that is known. */
void change_put_look_removal(const struct change_job *j, struct change_put *p);

/* Instead of the steps that would follow: the verdict they would come to. change_apply.c */
void change_put_foresee(struct change_job *j, struct change_put *p);

/* --- change_put_write.c --- */

/* Writes the temporary file or link, complete. */
void change_put_write(struct change_job *j, struct change_put *p);

/* An empty one, by which a lock is known to be ours. 0 or -errno. */
int change_put_touch(const struct change_job *j, struct change_put *p);

struct change_owner {
	uid_t uid;
	gid_t gid;
};

/* --- change_put_write.c --- */

/* Opens a file or folder of the layer for reading, a link with O_PATH. A descriptor or -errno. */
int change_put_open_layer(struct change_job *j, const char *path, int flags);

/* All three ways; the verdict is given where that leads nowhere. */
bool change_put_merge(const struct change_job *j, struct change_put *p, int layer, struct buf *out);

/* Are they as the effect leaves them? */
bool change_put_has_attributes(int fd, const struct change_effect *x);

/* --- change_batch.c: settling --- */

/* Renames the temporary file to its place, if that is as it was seen. */
void change_put_settle(const struct change_job *j, struct change_put *p);

/* Takes the place of a thing of another type, which goes. 0 or -errno: -ENOTEMPTY, it stays. */
int change_put_exchange(struct change_put *p, const char *temporary);

/* Removes p->path, if the look said so. */
void change_put_remove(const struct change_job *j, struct change_put *p);

/* --- change_put_write.c: folders --- */

const char *change_name_of(const char *path);

/* Opens what `path` lies in; f->fd says why it could not. */
void change_folder_open(
	struct change_folder *f, int below, const struct change_git_tops *git, const char *path);

/* All that was written, to the disk. 0 or -errno. */
int change_job_sync(const struct change_job *j);

/*
 * Makes it where there is none, or changes it. Undecided afterwards: its mode would keep us from
 * putting things into it, and is given to it by the other at the end.
 */
void change_put_make_folder(struct change_job *j, struct change_put *p);
void change_put_finish_folder(struct change_job *j, struct change_put *p);

/* --- change_batch.c --- */

#define CHANGE_BATCH_BYTES ((uint64_t)256 << 20) /* of content, about */

/* What is looked at and written together, and synced once. */
struct change_batch {
	struct change_job *j;
	struct change_put *puts;
	size_t count, room;
	struct change_folder *folders;
	size_t folder_count, folder_room;
	uint64_t bytes;
	atomic_size_t next; /* for the threads */
	bool is_together;   /* all of them, or none */
};

/* Is this an error that the next file will meet too? */
static inline bool change_is_fatal(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EROFS || error == EIO ||
	       error == ENOMEM || error == EMFILE || error == ENFILE;
}

int change_batch_init(struct change_batch *b, struct change_job *j);
void change_batch_done(struct change_batch *b);

/* Starts an effect, of which `path` is one of the names; the batch has room for it. */
struct change_put *change_batch_add(struct change_batch *b, const struct change_effect *x);

static inline bool change_batch_is_full(const struct change_batch *b)
{
	return b->count == b->room || b->folder_count == b->folder_room ||
	       b->bytes >= CHANGE_BATCH_BYTES;
}

/* Looks, writes, syncs, settles; every put that was reached has its verdict then. 0 or -errno. */
int change_batch_run(struct change_batch *b);

/* Looks only: does one of them stand in the way of all? Its verdict is not THERE then. */
const struct change_put *change_batch_find_conflict(struct change_batch *b);

/* Forgets the puts, and closes the folders. */
void change_batch_clear(struct change_batch *b);

/* Calls work(of) in this thread and in up to wanted - 1 others, as many as there are processors. */
void change_run_threads(size_t wanted, void *(*work)(void *of), void *of);

/* --- change_journal.c --- */

struct change_journal {
	int fd; /* locked: no other process applies or discards this run */
	struct buf text;
};

/*
 * Opens the run's journal, and removes what an earlier call left in the tree; *ret_found says
 * whether there was one.
 */
int change_journal_open(struct change_journal *w, int folder, int below,
	const struct change_git_tops *git, const char *run, bool *ret_found, struct err *e);

/* A temporary file that will be beside `path`; and perhaps git's lock of it. */
void change_journal_add(
	struct change_journal *w, const char *path, const char *temporary, bool is_locked);

/* On the disk: from now on there may be temporary files. */
int change_journal_begin(struct change_journal *w, int folder, struct err *e);

/* There are none any more. */
void change_journal_end(struct change_journal *w, int folder);
void change_journal_done(struct change_journal *w);
