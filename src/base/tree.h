#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"

/*
 * Copies, removes and digests whole trees by descriptor. A stranger may have made them: no function
 * follows a symlink, resolves a path or waits for a pipe. Errors name the path below the top.
 */

/* Depth of nested folders. A copy holds two or three descriptors for each level. */
#define TREE_MAX_DEPTH 256

/* Bytes of names that an ordered walk holds at one time. */
#define TREE_MAX_NAMES ((size_t)256 << 20)

struct tree_counts {
	uint64_t files, folders, links, others; /* others: pipes and whiteouts */
	uint64_t bytes;                         /* of content; a hole has none */
	uint64_t reused;                        /* of the files: shared with an older copy */
	uint64_t skipped;                       /* sockets and devices, which are not copied */
};

struct tree_options {
	mode_t drops;   /* permission bits that a copy never has, such as S_ISUID */
	bool drops_ids; /* drop set-id bits of files that somebody else owns */
	bool is_plain;  /* leave out what makes up an overlay's layer: whiteouts, user.overlay.* */
	bool opens_up;  /* make entries of the source readable that their owner cannot read */
	/*
	 * An empty folder on the copy's file system, used to keep hard links together; it is empty
	 * again afterwards. 0: each name becomes a file of its own.
	 */
	int links;
	/*
	 * An older copy on the same file system, which nobody changes: files that are unchanged
	 * since then are linked instead of copied. 0: there is none.
	 */
	int older;
	/*
	 * Copy only entries of `group` that the user does not own, and the folders that lead to
	 * them; the copies get that group. Unreadable entries are left out.
	 */
	bool others_only;
	gid_t group;
	bool stays;                 /* a digest fails with -EXDEV at a mount in the tree */
	struct tree_counts *counts; /* incremented as the walk goes; or NULL */
	/* Called after each entry, or NULL. A return value other than 0 ends the walk with it. */
	int (*step)(void *of);
	void *of;
};

/*
 * Copies the content of the folder `from` into the empty folder `to`, which also gets the mode, the
 * times and the attributes of `from`. Keeps content with its holes, permission bits, modification
 * times, user.* attributes, symlinks, pipes and whiteouts. Does not keep owners, ACLs and other
 * attributes: the copy belongs to the caller's user. Allocates nothing.
 */
int tree_copy(int from, int to, const struct tree_options *o, struct err *e);

/*
 * Removes `name` in the folder `at` with all below it, at any depth, also below folders of ours
 * without permissions. Returns 0 also if there is nothing to remove.
 */
int tree_remove(int at, const char *name, struct err *e);

/* How a stranger's tree is removed. */
struct tree_removal {
	bool goes_on;    /* continue after an entry that cannot be removed; `e` names the first */
	bool stays;      /* do not enter mounts; needs openat2 */
	bool clears;     /* clear immutable and append-only flags, if allowed to */
	uint64_t failed; /* set: entries that could not be removed, without the folders they are in
			  */
};

/*
 * Empties an open folder as tree_remove does. Entries that somebody adds meanwhile may stay: the
 * caller calls this again if rmdir(2) of the folder then fails with ENOTEMPTY.
 */
int tree_empty(int folder, struct tree_removal *o, struct err *e);

/*
 * Computes the digest of a tree from names, types, modes, sizes, contents, symlink targets, device
 * numbers and user.* attributes. Times, owners and hard links do not count. The digest of a folder
 * is the SHA-256 of its entries in the order of their names' bytes, each
 *
 *   TYPE MODE SIZE HASH ATTRIBUTES NAME NUL
 *
 * where TYPE is one of f d l p w s c b (file, folder, link, pipe, whiteout, socket, devices), MODE
 * has four octal digits, HASH is that of the content, the target or the folder, and ATTRIBUTES is a
 * hash of the attributes; "-" stands for none. The digest of the tree is that of one such entry
 * named ".". The hash of a content is made of its blocks of 4096 bytes that are not all zero, each
 * after its number and a space: holes are not read, and it does not matter where they are.
 *
 * Of the options (NULL: none) it uses `counts`, `step`, `of` and `stays`. It calls `step` within
 * long files too; the top counts as a folder, and `bytes` counts bytes that were read.
 */
int tree_digest(
	int fd, const struct tree_options *o, char ret[static SHA256_HEX_SIZE], struct err *e);

/* --- for code that walks a tree by itself --- */

/*
 * Hashes of single entries, as in a tree's digest: of a file's content, of the user.* attributes of
 * a file or folder (`ret` stays unchanged without any), of a symlink's target. Return 0 or -errno.
 */
struct tree_hasher {
	const struct tree_options *options; /* counts, step, of, stays; or NULL */
	char names[65536], bytes[65536];
};

int tree_hash_content(struct tree_hasher *h, int fd, char ret[static SHA256_HEX_SIZE]);
int tree_hash_attributes(struct tree_hasher *h, int fd, char ret[static SHA256_HEX_SIZE]);
int tree_hash_target(
	struct tree_hasher *h, int at, const char *name, char ret[static SHA256_HEX_SIZE]);

/* Opens a file or folder to hash it; follows no symlink. Returns a descriptor or -errno. */
int tree_open_entry(const struct tree_hasher *h, int at, const char *name, bool is_folder);

/* Returns the TYPE of an entry: one of f d l p w s c b. */
struct stat;
char tree_type_letter(const struct stat *st);

/* The names in a folder in the order of their bytes, without "." and "..". */
struct tree_names {
	struct buf bytes;
	const char **sorted;
	size_t count;
};

/*
 * Reads at most `max` bytes of names. Returns 0 or -errno; tree_names_done must follow either way.
 */
int tree_names_read(int folder, size_t max, struct tree_names *ret);
void tree_names_done(struct tree_names *names);

/* Returns sorted pointers to the NUL-terminated texts in n bytes; the caller frees. NULL: no
 * memory. */
const char **tree_sort_texts(const char *texts, size_t n, size_t *ret_count);

#define TREE_PATH_SIZE 1024

/* The path that a walk has reached, for errors. Names that do not fit are left out. */
struct tree_path {
	size_t len;
	char text[TREE_PATH_SIZE];
};

/* Appends a name. Returns the value that tree_path_leave needs to remove it again. */
size_t tree_path_enter(struct tree_path *p, const char *name);
void tree_path_leave(struct tree_path *p, size_t before);

/* Fills `e` with "cannot VERB 'PATH/NAME': REASON". Returns -num. */
int tree_fail(
	const struct tree_path *p, const char *name, int num, const char *verb, struct err *e);

/* Buffers for the content of a file, and for a second content or the names of attributes. */
struct tree_bytes {
	char content[65536], other[65536];
};

/* Opens a folder in a folder for reading; follows no symlink. Returns a descriptor or -errno. */
int tree_open_folder(int at, const char *name);

/* Counts one entry, without its bytes. `counts` may be NULL. */
void tree_count(struct tree_counts *counts, mode_t mode);
