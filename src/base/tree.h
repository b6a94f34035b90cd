#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"

/*
 * Whole trees by descriptor. What is in them may be a stranger's: no link is followed, no path is
 * resolved, nothing is waited for. A failure names the path below the top.
 */

/* Folders in each other. Each takes two descriptors while it is copied, or three. */
#define TREE_MAX_DEPTH 256

/* Bytes of names that a walk in their order holds at one time. */
#define TREE_MAX_NAMES ((size_t)256 << 20)

struct tree_counts {
	uint64_t files, folders, links, others; /* others: pipes and whiteouts */
	uint64_t bytes;                         /* of content; a hole has none */
	uint64_t reused;                        /* of the files: shared with an older copy */
	uint64_t skipped;                       /* sockets and devices, which are not copied */
};

struct tree_options {
	mode_t drops;   /* permission bits that a copy never has, such as S_ISUID */
	bool drops_ids; /* set-id bits of files that are not those of who copies */
	bool is_plain; /* leave out what an overlay's layer is made of: whiteouts, user.overlay.* */
	/* The source is given up: what its owner cannot read is made readable, and so is its copy.
	 */
	bool opens_up;
	/*
	 * An empty folder on the file system of the copy, by which hard links stay together; it is
	 * empty again afterwards. 0: each name becomes a file of its own.
	 */
	int links;
	/*
	 * An older copy on the same file system, of which nothing is ever changed: a file that is
	 * there and still the same is not copied, but linked. 0: there is none.
	 */
	int older;
	/*
	 * Copies only what is not the user's and of `group`, with the folders that lead there, and
	 * gives the copies that group. What cannot be read is left out.
	 */
	bool others_only;
	gid_t group;
	bool stays; /* a digest does not enter what is mounted in the tree: -EXDEV where it is */
	struct tree_counts *counts; /* added to as it goes; or NULL */
	/* Told after each entry, or NULL; 0, or -errno: then that is what the copy returns. */
	int (*step)(void *of);
	void *of;
};

/*
 * Copies what is in the folder `from` into the folder `to`, which is empty, and gives `to` the
 * mode, the times and the attributes of `from`. Content with its holes, permission bits, times of
 * modification, user.* attributes, links, pipes and whiteouts are kept; owners, access-control
 * lists and other attributes are not: everything belongs to who copies. Allocates nothing.
 */
int tree_copy(int from, int to, const struct tree_options *o, struct err *e);

/*
 * Removes `name` in the folder `at` with all below it, however deep, also what lies in folders of
 * our own that nobody may enter. 0 where there is nothing.
 */
int tree_remove(int at, const char *name, struct err *e);

/* How a stranger's tree is removed. */
struct tree_removal {
	bool goes_on;    /* past what cannot be removed: the first of these is named */
	bool stays;      /* does not enter what is mounted in it; a kernel with openat2 */
	bool clears;     /* marks that make a file immutable, for whoever may */
	uint64_t failed; /* set: what could not be removed, without the folders it is in */
};

/*
 * Removes all that is in an open folder, as tree_remove does, but for what comes into it meanwhile:
 * where it cannot be removed then because it is not empty, this is done again.
 */
int tree_empty(int folder, struct tree_removal *o, struct err *e);

/*
 * The same content gives the same digest, wherever it lies and whoever owns it: names, types,
 * modes, sizes, contents, targets of links, numbers of devices, user.* attributes. Times and hard
 * links do not count. The digest of a folder is the SHA-256 of its entries in the order of their
 * names' bytes, each
 *
 *   TYPE MODE SIZE HASH ATTRIBUTES NAME NUL
 *
 * where type is one of f d l p w s c b (file, folder, link, pipe, whiteout, socket, devices), the
 * mode has four octal digits, the hash is that of the content, the target, the folder, and the
 * attributes are a hash of theirs; "-" where there is none. The tree's is that of one such entry,
 * whose name is ".". Of content only blocks of 4096 bytes count that are not all zero, each after
 * its number and a space: so holes take no time, and it does not matter where they are.
 *
 * Of the options (NULL: none) `counts`, `step`, `of` and `stays` have a meaning. `step` is called
 * within long files too; the top counts as a folder, and bytes are those that were read.
 */
int tree_digest(
	int fd, const struct tree_options *o, char ret[static SHA256_HEX_SIZE], struct err *e);

/* --- shared by those who walk --- */

/*
 * Hashes of single entries, as in a tree's digest: of a file's content, of the user.* attributes of
 * a file or folder (which stays as it is where there is none), of the target of a link. 0 or
 * -errno.
 */
struct tree_hasher {
	const struct tree_options *options; /* counts, step, of, stays; or NULL */
	char names[65536], bytes[65536];
};

int tree_hash_content(struct tree_hasher *h, int fd, char ret[static SHA256_HEX_SIZE]);
int tree_hash_attributes(struct tree_hasher *h, int fd, char ret[static SHA256_HEX_SIZE]);
int tree_hash_target(
	struct tree_hasher *h, int at, const char *name, char ret[static SHA256_HEX_SIZE]);

/* Opens a file or folder for that, no link followed. A descriptor or -errno. */
int tree_open_entry(const struct tree_hasher *h, int at, const char *name, bool is_folder);

/* One of f d l p w s c b, as above. */
struct stat;
char tree_type_letter(const struct stat *st);

/* The names in a folder in the order of their bytes, without "." and "..". */
struct tree_names {
	struct buf bytes;
	const char **sorted;
	size_t count;
};

/* At most `max` bytes of them. 0 or -errno; `ret` is the caller's in both cases. */
int tree_names_read(int folder, size_t max, struct tree_names *ret);
void tree_names_done(struct tree_names *names);

/* Pointers to the texts that stand one behind the other in n bytes, in order. The caller's. */
const char **tree_sort_texts(const char *texts, size_t n, size_t *ret_count);

#define TREE_PATH_SIZE 1024

/* Where a walk is, for its sentences; what does not fit is not there. */
struct tree_path {
	size_t len;
	char text[TREE_PATH_SIZE];
};

/* Adds a name, and gives back what tree_path_leave needs to take it off. */
size_t tree_path_enter(struct tree_path *p, const char *name);
void tree_path_leave(struct tree_path *p, size_t before);

/* "cannot VERB 'PATH/NAME': reason"; -num. */
int tree_fail(
	const struct tree_path *p, const char *name, int num, const char *verb, struct err *e);

/* Room for content, and for a second one or names of attributes. */
struct tree_bytes {
	char content[65536], other[65536];
};

/* A folder in a folder, to be read; no link followed. A descriptor or -errno. */
int tree_open_folder(int at, const char *name);

/* Adds an entry to the counts (may be NULL), but for its bytes. */
void tree_count(struct tree_counts *counts, mode_t mode);
