#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "spec/spec.h"

#define CHECK_MAX_ENTRIES ((size_t)20000)
#define CHECK_MAX_DEPTH   40U

/* An entry of a tree, borrowed during the visit. */
struct check_entry {
	int dir_fd;      /* the directory of the entry */
	const char *dir; /* its path below the root; "" for the root */
	const char *name;
	unsigned depth; /* of the directory: 0 for the root */
	mode_t type;    /* S_IFREG, S_IFDIR, … */
	bool is_mount;  /* a directory on another mount */
};

/* Visits an entry. Returns true to go on below it. */
typedef bool check_visit(void *visitor, const struct check_entry *entry);

/* Kinds of findings in a bind. */
enum check_kind {
	CHECK_LINK_OUT,
	CHECK_LINK_HOST,
	CHECK_VENV,
	CHECK_PTH,
	CHECK_GIT_SETTING,
	CHECK_GIT_ELSEWHERE,
	CHECK_CREDENTIALS,
	CHECK_DOOR,
	CHECK_MOUNT,
	CHECK_KIND_COUNT,
};

#define CHECK_MAX_SAID ((size_t)5)          /* warnings of a kind per bind; more are counted */
#define CHECK_MAX_FILE ((size_t)256 * 1024) /* bytes read of one file */

/* The bind that is being searched. */
struct check_bind {
	struct spec *spec;
	const struct spec_item *item;
	const char *host_path; /* the real path of its source; borrowed */
	size_t found[CHECK_KIND_COUNT];
	size_t unread;  /* bytes that may still be read */
	char *bytes;    /* a buffer of CHECK_MAX_FILE; owned */
	bool is_capped; /* files were skipped because `unread` was used up */
};

enum check_lead {
	CHECK_LEADS_INSIDE,
	CHECK_LEADS_HOST, /* inside on the host, but the same path leads elsewhere in the cage */
	CHECK_LEADS_OUT,
};
