#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/sha256.h"

/*
 * What a path is to git, by its name alone: a repository is put on the host in an order in which
 * no moment shows a ref without its object, and by git's own rules about locks. Pure.
 */
enum change_git_kind {
	CHANGE_GIT_NOT,    /* of the working tree */
	CHANGE_GIT_OBJECT, /* only ever added */
	CHANGE_GIT_STATE,  /* refs, logs, HEAD, the index: together or not at all */
	CHANGE_GIT_REST,
	CHANGE_GIT_CACHE, /* made again by git when it wants it: not taken */
	CHANGE_GIT_KIND_COUNT,
};

struct change_git_place {
	enum change_git_kind kind;
	unsigned order; /* among those of a kind: the smaller ones first */
	bool is_locked; /* git writes it as NAME.lock, and so do we */
	bool is_index;
	bool lists_paths; /* an index, or what a split one shares: git writes to what it names */
	size_t folder;    /* how much of the path is the repository's own folder; 0: none */
};

struct change_git_place change_git_place_of(const char *path);

/*
 * Have two of git's index files the same entries, whatever else git remembers in them? False also
 * where one cannot be read: damaged, split, of an unknown version. change_git_index.c
 */
bool change_git_index_is_same(const char *a, size_t a_size, const char *b, size_t b_size);

/*
 * Does each path in it stay in the working tree, outside of any .git? git believes its index: to
 * check files out it writes wherever that says. False also where it cannot be read.
 */
bool change_git_index_is_safe(const char *bytes, size_t n);

/*
 * The SHA-256 of what `git ls-files --stage -z` prints for an index, of either kind of objects.
 * False: it cannot be read, as change_git_index_is_same says.
 */
bool change_git_index_digest(const char *bytes, size_t n, char ret[static SHA256_HEX_SIZE]);

#define CHANGE_GIT_MAX_INDEX ((size_t)64 << 20)
