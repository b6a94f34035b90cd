#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

#include "base/arena.h"
#include "keep/keep.h"
#include "term/term_cast.h"
#include "term/term_filter.h"

/* What the command reads and prints, and its terminal. */

/* --- keep_terminal.c --- */

struct keep_terminal {
	bool is_wanted;
	int operators;         /* the operator's, if what is typed comes from there, or -1 */
	int shown;             /* one of the operator's streams that is a terminal, or -1 */
	struct termios before; /* its modes */
	bool is_raw;           /* it passes every key as it is */
	int near, far;         /* the ends of the cage's own; -1: it is not there yet */
	pid_t guard;           /* gives the modes back if we cannot */
	int alarm;
};

#define KEEP_FOREGROUND_MS 300 /* between two looks whether we are in it */

/* Is the terminal ours to read? True also where it is not our own, which then stops nobody. */
bool keep_is_in_foreground(int terminal);

/* Will the command have a terminal? */
void keep_terminal_choose(struct keep_terminal *t, enum keep_tty wish);

/* The operator's TERM, where what the command prints is shown there; or NULL. */
const char *keep_terminal_type(const struct keep_terminal *t);

/* The near end of the cage's, which is ours from here on in any case. */
int keep_terminal_take(struct keep_terminal *t, int fd, struct err *e);

/* The operator's window has a size: so has the cage's. Its rows, or 0. */
unsigned keep_terminal_resize(const struct keep_terminal *t);

/* From here on keys are the command's; nothing happens while we are in the background. */
int keep_terminal_pass_keys(struct keep_terminal *t, struct err *e);

/* And from here on not any more; `drops_input` with what was typed and not read. */
void keep_terminal_restore(struct keep_terminal *t, bool drops_input);

/* The operator's is gone: so is the cage's. */
void keep_terminal_hang_up(struct keep_terminal *t);

/* May what is typed be read? */
bool keep_terminal_is_ready(const struct keep_terminal *t);

void keep_terminal_done(struct keep_terminal *t);

/* --- keep_stdio.c: what the streams are; keep_relay.c: passing their bytes on --- */

enum keep_stream_kind {
	KEEP_HARMLESS, /* passes as it is */
	KEEP_TERMINAL,
	KEEP_FILE,
	KEEP_PIPE,
	KEEP_SOCKET,
	KEEP_TAIL, /* it is none of the operator's: what is printed is kept */
};

#define KEEP_STREAM_SIZE 65536

extern const char *const keep_stream_names[3];

struct keep_stream {
	enum keep_stream_kind kind; /* of the operator's */
	int inside;                 /* what the cage gets; our copy is closed once it has it */
	int near;                   /* our end, or -1: nothing to pass on */
	int outside;                /* the operator's, or the same opened anew for ourselves */
	bool is_given_back;         /* a file, from which nothing is taken that is not read */
	bool is_on_terminal;        /* the cage's own; `near` is a copy of its near end */
	bool has_ended;             /* the input, which a terminal is told by a character */
	size_t chunk;               /* written at once */
	int failure;                /* errno of writing to the operator's, or 0 */
	struct tail *tail;          /* what is kept instead, or NULL */
	char *bytes;                /* to be written: KEEP_STREAM_SIZE and what a filter holds */
	size_t at, len;             /* read and not yet written */
	char *unfiltered;           /* KEEP_STREAM_SIZE; NULL: no filter */
	struct term_filter filter;
};

/* What a stream carried, before any filter. */
struct keep_hashed {
	bool is_seen; /* it went through our hands */
	struct sha256 sha256;
	uint64_t bytes, kept;
	char kept_sha256[SHA256_HEX_SIZE]; /* of what is kept, where that is not all */
	int fd;                            /* where it is kept, or -1 */
};

struct keep_stdio {
	struct keep_stream streams[3];
	const struct keep_request *request; /* borrowed */
	struct keep_hashed hashed[2];       /* output and error */
	bool is_together;                   /* errors go where the output goes, in one stream */
	int keep_failure;                   /* errno: what was printed could not be kept */
	struct arena arena;
	int null;         /* stands where a terminal will be, or -1 */
	uint64_t printed; /* by the command */
	uint64_t max;     /* what it may print; UINT64_MAX: there is no limit */
	bool is_cut;      /* it printed more */
	bool is_hung_up;  /* the operator's terminal is gone */
	struct keep_cast *cast;
};

void keep_stdio_init(struct keep_stdio *s);
int keep_stdio_open(struct keep_stdio *s, const struct keep_request *q,
	const struct keep_terminal *t, const struct cage_ids *ids, struct err *e);
void keep_stdio_done(struct keep_stdio *s);
void keep_stdio_close_inside(struct keep_stdio *s);

/* Our end: the writer hears of it as SIGPIPE or a hangup, the reader as the end. */
void keep_stream_close(struct keep_stream *s);

/* The streams that a terminal of the cage stands for, as bits. */
unsigned keep_stdio_on_terminal(const struct keep_stdio *s);

/* The cage's terminal is there: what it prints is passed on, and what is typed with `has_input`. */
int keep_stdio_attach(
	struct keep_stdio *s, const struct keep_terminal *t, bool has_input, struct err *e);

struct pollfd;

/* Fills three entries, -1 where nothing is waited for; for how long to wait, or -1. */
int keep_relay_want(const struct keep_stdio *s, const struct keep_terminal *t, struct pollfd *ret);
void keep_relay_move(struct keep_stdio *s, const struct pollfd *seen);

/* The cage is gone: what it wrote and nobody has read yet. A signal ends it. */
void keep_relay_drain(struct keep_stdio *s, int signals);

/* What is printed already, before we sleep. */
void keep_relay_catch_up(struct keep_stdio *s);

/* Takes, for a moment, the answers to what the command asked and did not live to hear. */
void keep_relay_await_answer(struct keep_stdio *s);

/* Does a terminal still have to answer what the command asked it? */
bool keep_relay_awaits_answer(const struct keep_stdio *s);

/* Did all of it arrive? */
int keep_relay_judge(const struct keep_stdio *s, struct err *e);

/* --- keep_output.c --- */

void keep_output_begin(struct keep_stdio *s, const struct keep_request *q);

/* What was printed on stream i of the two, as it came. */
void keep_output_add(struct keep_stdio *s, int i, const char *bytes, size_t n);
void keep_output_end(const struct keep_stdio *s, struct record_output *ret);
void keep_output_done(struct keep_stdio *s);

/* --- keep_cast.c --- */

void keep_cast_output(struct keep_cast *c, const char *bytes, size_t n, bool is_terminal);

/* The size of the terminal at `fd`. */
void keep_cast_resize(struct keep_cast *c, int fd);
