#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "check/check_walk.h"
#include "spec/spec.h"

/* What can be found in a bind. */
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

/* False when there is no memory. */
bool check_bind_init(
	struct check_bind *b, struct spec *s, const struct spec_item *item, const char *host_path);
void check_bind_done(struct check_bind *b);

/* Counts a finding; true when it is one of those to be said. */
bool check_found(struct check_bind *b, enum check_kind kind);

/* "binds: SOURCE: …", with the hint of the kind. */
void check_say(struct check_bind *b, enum check_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Says how many more there were of each kind. */
void check_say_rest(struct check_bind *b);

/*
 * A stranger's path for a message: the end of a long one, hidden characters made visible. In the
 * spec's arena.
 */
const char *check_shown(struct spec *s, const char *path);
const char *check_shown_entry(struct check_bind *b, const struct check_entry *entry);

/* Reads the first bytes of a regular file, at most `max`, into b->bytes; 0 where it cannot. */
size_t check_read_start(struct check_bind *b, const struct check_entry *entry, size_t max);

enum check_lead {
	CHECK_LEADS_INSIDE,
	CHECK_LEADS_HOST, /* inside on the host, and by that path elsewhere in the cage */
	CHECK_LEADS_OUT,
};

/* Where a path leads that stands `depth` directories below the bind, by its letters alone. */
enum check_lead check_leads(const struct check_bind *b, const char *path, unsigned depth);
