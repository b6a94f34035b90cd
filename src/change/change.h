#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"

/*
 * The effects of a run on a tree: what its layer changes when it is put on the tree below. They
 * are found once, when the run ends, kept as effects.json in its folder, and are what `bawn diff`
 * shows and `bawn apply` carries out. Sorted by path, byte by byte.
 */

enum change_type {
	CHANGE_NOTHING, /* it is not there */
	CHANGE_FILE,
	CHANGE_FOLDER,
	CHANGE_LINK,
	CHANGE_SPECIAL, /* a device, a socket, a pipe: shown, never applied */
};

enum change_change {
	CHANGE_ADDED,
	CHANGE_CHANGED, /* content, type, mode or attributes */
	CHANGE_DELETED,
	CHANGE_RENAMED, /* the same content under another name, and the old name is gone */
};

/* Does it do something on the host by itself later? */
enum change_mark {
	CHANGE_PLAIN,
	CHANGE_RUNS, /* runs on the host when somebody builds, tests or installs */
	CHANGE_HELD, /* runs on the host without being called: applied only when named */
	CHANGE_LOCK, /* a lock of git's: never applied */
};

/* One side of a change. */
struct change_state {
	enum change_type type;
	uint16_t mode;             /* permission bits, with those for set-user-id and the like */
	uint64_t size;             /* of a file; of a link's target */
	uint8_t hash[SHA256_SIZE]; /* of a file's content or a link's target; zero elsewhere */
	bool has_hash;             /* only what was needed is hashed */
};

/* The tree's file as it was when the run ended: by this is seen that it changed since. */
struct change_signature {
	uint64_t inode, size;
	int64_t modified_ns, changed_ns; /* mtime, ctime; 0, 0: it was not there */
};

/* One that differs; all of them where there was nothing, or nothing of this type, before. */
struct change_attribute {
	const char *name; /* user.…, but for user.overlay.…, which are none of the tree's */
	enum change_change change; /* ADDED, CHANGED or DELETED */
	uint8_t hash[SHA256_SIZE]; /* of the value it has now; zero where deleted */
};

struct change_effect {
	const char *path; /* below the tree's top; bytes, any but NUL */
	const char *from; /* renamed: its old path; NULL elsewhere */
	enum change_change change;
	enum change_mark mark;
	struct change_state before, after;
	struct change_signature below; /* of `from` where renamed */
	bool has_moved;                /* the tree's file changed while the run lasted */
	bool has_base;                 /* what it was is kept in the run's folder: change_base.h */
	bool is_implied;               /* a folder that comes or goes with what is in it */
	bool is_text; /* both sides: then lines are counted; deleted: not looked at */
	uint32_t lines_added, lines_removed;
	const struct change_attribute *attributes; /* sorted by name */
	size_t attribute_count;
	const char *note; /* what could not be found out, and why: half a sentence; mostly NULL */
};

struct change_effects {
	struct arena arena;
	struct change_effect *items;
	size_t count;
	char digest[SHA256_HEX_SIZE]; /* same effects, same digest: of paths, changes, states */
};

#define CHANGE_MAX_EFFECTS ((size_t)1 << 22)
#define CHANGE_MAX_DEPTH   1024               /* folders in folders: a layer beyond is refused */
#define CHANGE_MAX_PATH    ((size_t)64 << 10) /* longer than PATH_MAX: file_open_beneath knows how */
#define CHANGE_MAX_PATHS   ((size_t)256 << 20) /* bytes of all paths together */
#define CHANGE_MAX_MEMORY  ((size_t)2 << 30)
/* Bytes that take no room on the disk, and are read: holes, and texts under another name. */
#define CHANGE_MAX_UNSTORED ((uint64_t)16 << 30)
#define CHANGE_MAX_TEXT     ((size_t)8 << 20) /* larger files are shown by size and hash */
#define CHANGE_MAX_BASE     ((size_t)1 << 20) /* larger files keep no base, and are not merged */

void change_effects_init(struct change_effects *x);
void change_effects_done(struct change_effects *x);

const char *change_change_word(enum change_change c);
const char *change_mark_word(enum change_mark m);

/* Of the effects as they are now; docs/effects.md says of which bytes. change_effects.c */
void change_digest(const struct change_effects *x, char ret[static SHA256_HEX_SIZE]);

/* Long work tells how far it is: `total` is 0 where nobody knows; `what` is NULL when it is over.
 */
struct change_progress {
	void (*tell)(void *of, const char *what, uint64_t done, uint64_t total);
	void *of;
};

/* One piece of work is over, and nothing of it is to be seen any more. */
static inline void change_progress_end(const struct change_progress *p)
{
	if (p->tell)
		p->tell(p->of, NULL, 0, 0);
}

/*
 * Where the folder of the project's git is outside of it: what is told of as ".git/…" is in these.
 * It cannot be mistaken: in such a project .git is a file.
 */
struct change_git_tops {
	int layer, below;
};

/* --- finding: change_scan.c --- */

struct change_scan {
	int layer; /* the top of what an overlay keeps above, opened for reading */
	int below; /* the top of the tree below */
	const struct change_git_tops *git; /* or NULL */
	int base;                          /* an empty folder for texts and git's index, or -1 */
	bool is_copy;                      /* the layer is a whole tree: what it lacks is deleted */
	struct timespec began;             /* what has a later time changed since */
	const char *const *held; /* paths the operator protects, beside those that always are */
	size_t held_count;
	uint64_t max_unstored; /* 0: CHANGE_MAX_UNSTORED */
	struct change_progress progress;
};

/*
 * Fills `ret`, which is initialised. Follows no link, on neither side, and does not go where
 * another file system is mounted below. The tops themselves are not compared: the layer's is of our
 * making.
 */
int change_scan(const struct change_scan *q, struct change_effects *ret, struct err *e);

/* The mark of a path: pure, and blind to case. change_marks.c */
enum change_mark change_mark_of(const char *path, const char *const *held, size_t held_count);

/* The mark of an effect: the graver one of its paths, knowing what is there. */
enum change_mark change_mark_effect(
	const struct change_effect *x, const char *const *held, size_t held_count);

/* Its sentence, such as "a git hook: git runs it"; NULL for a plain path, or one of `held`. */
const char *change_mark_reason(const char *path);

/* Summary of effects, without folders that are implied. */
struct change_sum {
	size_t added, changed, deleted, renamed, held, runs;
};

void change_sum_up(const struct change_effects *x, struct change_sum *ret);

/* --- keeping: change_effects.c --- */

/* As JSON, for effects.json and --json; with `only` (may be NULL) just the effects it is true for.
 */
void change_effects_print(const struct change_effects *x,
	bool (*only)(void *of, const struct change_effect *), void *of, struct buf *out);

/* Back from effects.json. `ret` is initialised. */
int change_effects_read(const char *bytes, size_t n, struct change_effects *ret, struct err *e);
