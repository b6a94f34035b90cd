#pragma once

#include <sys/types.h>

#include "base/arena.h"
#include "keep/keep.h"

/* What the files of the keeper share. Nobody else includes it. */

/* --- keep_words.c: what the command is told --- */

struct keep_words {
	struct arena arena;
	char **arguments, **environment, **own_variables;
};

int keep_words_make(struct keep_words *ret, const struct cage_start *start, struct err *e);
void keep_words_done(struct keep_words *words);

/* --- keep_ids.c --- */

/* The id a cage of ours has outside, and whether we must give it. */
int keep_choose_ids(const struct plan *p, struct cage_ids *ret, struct err *e);

/* --- keep_sources.c --- */

struct keep_sources {
	struct arena arena;
	struct cage_source *items; /* one per operation */
	int *fds;                  /* the same, open with O_PATH, or -1 */
	struct cage_idmap map;     /* root's */
	uint32_t count;
};

int keep_sources_make(struct keep_sources *ret, const struct cage_start *start,
	const struct keep_request *q, struct err *e);
void keep_sources_done(struct keep_sources *s);

/* Closes what is open; the names stay. */
void keep_sources_close(struct keep_sources *s);

/* --- keep_stdio.c --- */

enum keep_stream_kind {
	KEEP_HARMLESS, /* passes as it is */
	KEEP_TERMINAL,
	KEEP_FILE,
	KEEP_PIPE,
	KEEP_SOCKET,
};

#define KEEP_STREAM_SIZE 65536

struct keep_stream {
	enum keep_stream_kind kind; /* of the operator's */
	int inside;                 /* what the cage gets; our copy is closed once it has it */
	int near;                   /* our end of the pipe, or -1: nothing to pass on */
	int outside;                /* the operator's */
	bool is_given_back;         /* a file, from which nothing is taken that is not read */
	size_t chunk;               /* written at once */
	int failure;                /* errno of writing to the operator's, or 0 */
	char *bytes;                /* KEEP_STREAM_SIZE, where bytes are passed on */
	size_t at, len;             /* read and not yet written */
};

struct keep_stdio {
	struct keep_stream streams[3];
	struct arena arena;
};

int keep_stdio_open(struct keep_stdio *ret, const struct cage_ids *ids, struct err *e);
void keep_stdio_done(struct keep_stdio *s);
void keep_stdio_close_inside(struct keep_stdio *s);

struct pollfd;

/* Fills three entries, -1 where nothing is waited for; for how long to wait, or -1. */
int keep_stdio_want(const struct keep_stdio *s, struct pollfd *ret);
void keep_stdio_move(struct keep_stdio *s, const struct pollfd *seen);

/* The cage is gone: what it wrote and nobody has read yet. A signal ends it. */
void keep_stdio_drain(struct keep_stdio *s, int signals);

/* Did all of it arrive? */
int keep_stdio_judge(const struct keep_stdio *s, struct err *e);

/* --- keep_events.c --- */

void keep_say_started(const struct keep_request *q, const struct record *record, pid_t pid);

/* --- keep_look.c --- */

struct keep_look;

/* Finds out what is to be seen; while the cage is being made there is time for that. */
int keep_look_prepare(struct keep_look **ret, const struct cage_start *start,
	const struct keep_sources *sources, struct err *e);
void keep_look_free(struct keep_look *l);

/* Compares the cage of process `pid` with the plan, guarantee by guarantee. */
int keep_look(
	struct keep_look *l, pid_t pid, bool is_landlocked, struct record *record, struct err *e);
