#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "spec/spec.h"

#define CHECK_MAX_ENTRIES ((size_t)20000)
#define CHECK_MAX_DEPTH   40U

/* Something in a tree. All is borrowed for the time of the visit. */
struct check_entry {
	int dir_fd;      /* the directory it is in */
	const char *dir; /* the same as a path below the root; "" for the root */
	const char *name;
	unsigned depth; /* of the directory: 0 for the root */
	mode_t type;    /* S_IFREG, S_IFDIR, … */
	bool is_mount;  /* a directory that belongs to another mount */
};

/* Looks at an entry; answers whether to go on below it. */
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

#define CHECK_MAX_SAID ((size_t)5)          /* of a kind in one bind; more are counted */
#define CHECK_MAX_FILE ((size_t)256 * 1024) /* bytes of one file that are read */

/* A bind that is being looked into. */
struct check_bind {
	struct spec *spec;
	const struct spec_item *item;
	const char *host_path; /* where its source really is; borrowed */
	size_t found[CHECK_KIND_COUNT];
	size_t unread;  /* bytes that may still be read */
	char *bytes;    /* CHECK_MAX_FILE to read into; owned */
	bool is_capped; /* files were passed over, because too much was read before */
};

enum check_lead {
	CHECK_LEADS_INSIDE,
	CHECK_LEADS_HOST, /* inside on the host, and by that path elsewhere in the cage */
	CHECK_LEADS_OUT,
};
