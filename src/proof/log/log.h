#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"

/*
 * What happened, as lines of JSON that are only ever added: docs/format-events.md. There are two
 * chains, that of a run (RUN/events.jsonl) and that of all the operator's runs
 * (STATE/log/events.jsonl): what was denied goes into both, what every run says into its own, and
 * its beginning and end in few words into the other. A line has the SHA-256 of the one before it,
 * so that nothing can be taken out, changed or put between without being noticed from there on.
 *
 * Written by the keeper and by commands on the host, never by anything in a cage.
 */

#define LOG_LINE_SIZE  ((size_t)32 << 10) /* the longest line, its newline included */
#define LOG_VERSION    2 /* of what a run's log says; its first event has it, from 2 on */
#define LOG_RUN_FILE   "events.jsonl"
#define LOG_STATE_DIR  "log"
#define LOG_STATE_FILE "events.jsonl"
#define LOG_STATE_SIZE ((uint64_t)64 << 20) /* the state's file grows beyond it by one write */

/* `prev` of a chain's first line. */
extern const char log_no_line[SHA256_HEX_SIZE];

/* Where a chain ends. */
struct log_tail {
	uint64_t count;             /* of lines; the next one's seq */
	uint64_t size;              /* of those in this file, in bytes */
	char last[SHA256_HEX_SIZE]; /* digest of the last one, without its newline */
};

/* The state's chain, once it was written to. */
struct log_state {
	int folder, fd; /* or -1; the file may be another one by now */
	ino_t inode;    /* of the file that is open */
	dev_t device;
	struct log_tail tail;
};

struct log {
	const char *run, *session; /* borrowed; NULL: it concerns none */
	int chain;                 /* the run's, or -1 */
	int state;                 /* the folder of the operator's state, or -1; borrowed */
	uint64_t state_size;       /* LOG_STATE_SIZE */
	struct log_state of_state;
	struct log_tail tail;              /* of the run's chain */
	struct json json;                  /* the event that is being said */
	const char *type;                  /* its own */
	struct buf event;                  /* its text */
	struct buf for_run, for_state;     /* said and not written, each ended by a newline */
	bool is_synced;                    /* every write reaches the disk before it counts */
	bool is_chain_over, is_state_over; /* writing there failed, so nothing more is written */
	struct err failure;                /* the first */
};

/*
 * An event goes to where there is a place for it. `state`, -1 where there is none, and the texts
 * are borrowed.
 */
void log_init(struct log *l, int state, const char *run, const char *session);

/* What waits and was not written is lost. */
void log_done(struct log *l);

/*
 * Begins the run's chain in its open folder, or continues it where there is one: behind its last
 * whole line, what stands after that being cut off. -EBADMSG: it is no chain. Whoever does so has
 * locked the folder.
 */
int log_open_chain(struct log *l, int folder, struct err *e);

/*
 * Says an event: begin, members, end.
 *
 *	struct json *j = log_begin(l, "net_denied");
 *	json_text(j, "name", name);
 *	log_end(l);
 *
 * It is written by log_write, with all that wait. Of one that is too long for a line only the type
 * is said, and that it was. The type is borrowed until log_end.
 */
struct json *log_begin(struct log *l, const char *type);
void log_end(struct log *l);

/* The same for one of the two chains: what all runs say alike; what their log says of one. */
void log_end_of_run(struct log *l);
void log_end_of_state(struct log *l);

/*
 * Writes what waits, to each chain at once. 0 or -errno, and then l->failure says what; what was
 * written of it is taken back, and nothing more is written to that chain.
 */
int log_write(struct log *l);

/* --- files that the log of all runs was renamed to when they had grown too large --- */

struct log_former {
	char name[48];           /* events-N.jsonl */
	struct log_tail tail;    /* where the chain ends in it */
	struct timespec changed; /* when its last line was written */
};

/* Lists them, the oldest first. The caller frees *ret. 0 or -errno. */
int log_list_former(int folder, struct log_former **ret, size_t *ret_count);

/*
 * Shows the lines of the log of all runs, without their newlines, the last one first, until `see`
 * returns another number than 0, which is the result. No digest is compared. -errno: it cannot be
 * read. log_back.c
 */
int log_read_back(int folder, int (*see)(void *of, const char *line, size_t n), void *of);

/* --- reading: log_read.c --- */

/* One line of a chain, borrowed from the reader until the next. */
struct log_line {
	uint64_t seq;
	const char *text; /* the object; instead of the newline a NUL */
	size_t size;
};

/*
 * Reads a chain, and judges it: that each line has the number and the digest that it must have
 * after the one before. What is in a line, and that it is JSON, is for others to judge. The file
 * may grow meanwhile: at its end one asks again.
 */
struct log_reader {
	int fd;               /* borrowed; a plain file */
	struct log_tail tail; /* of what was read */
	char *bytes;
	size_t at, len;     /* in them */
	bool is_continued;  /* the first line may be any: those before it are in another file */
	bool is_torn;       /* it ends with a piece of a line: who wrote it was killed */
	bool is_broken;     /* a line is not what comes after the one before: failure says why */
	struct err failure; /* once there was one, there are no more lines */
};

/* From the beginning of a chain. */
void log_reader_init(struct log_reader *r, int fd);
void log_reader_done(struct log_reader *r);

/* Goes on with the file in which the chain continues. */
void log_reader_next_file(struct log_reader *r, int fd);

/* The next whole line that continues the chain: 1, 0 at the end, -errno with r->failure. */
int log_read_line(struct log_reader *r, struct log_line *ret);
