#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "spec/spec.h"

/*
 * What a run is asked with. The command line, the queue of a session, MCP and --again fill one in;
 * from there on nobody reads arguments again. Texts are borrowed from whoever filled it in, or are
 * the request's own (its arena): it has to outlive the spec that is made of it.
 */

#define RUN_REQUEST_VERSION  1
#define RUN_REQUEST_SIZE     ((size_t)2 << 20)   /* at most, as JSON */
#define RUN_REQUEST_TEXT     ((size_t)128 << 10) /* one text, as JSON: what execve(2) takes */
#define RUN_REQUEST_WORDS    16384               /* of the command, as JSON */
#define RUN_REQUEST_SETTINGS 4096

/* Who asks, where that matters for what a spec may say. */
enum run_purpose {
	RUN_TO_RUN,
	RUN_TO_SHOW,        /* plan, check, card: nothing is started */
	RUN_TO_MAKE_SESSION /* its commands are started later */
};

enum run_tty {
	RUN_TTY_AUTO,
	RUN_TTY_ALWAYS,
	RUN_TTY_NEVER
};

/* A value for a key of the spec, as an option gives it. */
struct run_setting {
	enum spec_key key; /* SPEC_KEY_COUNT: the value names a file of variables */
	const char *from;  /* what messages call it: "--memory", or a variable */
	const char *value; /* as an option has it */
};

struct run_texts {
	const char **items;
	size_t count, room;
};

/*
 * What is about files, descriptors and the terminal of who asks, or decides which spec it is. Only
 * the process that was asked can do it: it has no JSON form.
 */
struct run_request_here {
	const char *file; /* the spec's; NULL: the usual one */
	const char *host; /* a file that describes one; NULL: this one */
	bool is_trusted;  /* the spec file */
	struct run_texts secrets;
	const char *record, *cast; /* files to be written too, or NULL */
	const char *status_fd;     /* as it was written, or NULL */
	enum run_tty tty;
	bool is_unfiltered, is_timed;
	const char *again; /* the record of the run to be repeated, or NULL */
	bool is_same;
	struct run_texts keys; /* of who may have signed it */
};

struct run_request {
	const char *const *command;
	size_t command_count;
	struct run_setting *settings; /* in the order in which they were given */
	size_t setting_count, setting_room;
	struct run_texts subjects;
	bool is_synced;
	enum run_purpose purpose;
	struct run_request_here here;
	struct arena arena;
};

void run_request_init(struct run_request *q);
void run_request_done(struct run_request *q);

/* Adds one; the texts are borrowed. -ENOMEM or -E2BIG with a sentence. */
int run_request_set(struct run_request *q, enum spec_key key, const char *from, const char *value,
	struct err *e);
int run_request_add(struct run_request *q, struct run_texts *list, const char *text, struct err *e);

/* The last setting of a key, or NULL. */
const struct run_setting *run_request_find(const struct run_request *q, enum spec_key key);

/*
 * The option by which something was asked that only the process that was asked can do, without its
 * dashes; NULL: there is none, and the JSON form says it all.
 */
const char *run_request_find_local(const struct run_request *q);

/* The option by which something was asked that is fixed when a session is created; or NULL. */
const char *run_request_find_fixed(const struct run_request *q);

/* --- as JSON --- */

/* -E2BIG with a sentence where it is too long; what is local is left out. */
int run_request_print(const struct run_request *q, struct buf *out, struct err *e);

/*
 * Reads what anybody may have written: unknown keys, other types and what is too long are refused
 * with a sentence, -EBADMSG. `ret` is initialised, and the caller's, in any case.
 */
int run_request_read(const char *text, size_t size, struct run_request *ret, struct err *e);
