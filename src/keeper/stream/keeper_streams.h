#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

#include "base/arena.h"
#include "keeper/keeper.h"
#include "term/term_cast.h"
#include "term/term_filter.h"

/* What the command reads and prints, and its terminal. */

/* --- keeper_terminal.c --- */

struct keeper_terminal {
	bool is_wanted;
	int operators;         /* the operator's, if what is typed comes from there, or -1 */
	int shown;             /* one of the operator's streams that is a terminal, or -1 */
	struct termios before; /* its modes */
	bool is_raw;           /* it passes every key as it is */
	int near, far;         /* the ends of the cage's own; -1: it is not there yet */
	pid_t guard;           /* gives the modes back if we cannot */
	int alarm;
};

#define KEEPER_FOREGROUND_MS 300 /* between two looks whether we are in it */

/* Is the terminal ours to read? True also where it is not our own, which then stops nobody. */
bool keeper_is_in_foreground(int terminal);

/* The near end of the cage's, which is ours from here on in any case. */
int keeper_terminal_take(struct keeper_terminal *t, int fd, struct err *e);

/* The operator's window has a size: so has the cage's. Its rows, or 0. */
unsigned keeper_terminal_resize(const struct keeper_terminal *t);

/* From here on keys are the command's; nothing happens while we are in the background. */
int keeper_terminal_pass_keys(struct keeper_terminal *t, struct err *e);

/* And from here on not any more; `drops_input` with what was typed and not read. */
void keeper_terminal_restore(struct keeper_terminal *t, bool drops_input);

/* The operator's is gone: so is the cage's. */
void keeper_terminal_hang_up(struct keeper_terminal *t);

/* May what is typed be read? */
bool keeper_terminal_is_ready(const struct keeper_terminal *t);

/* --- keeper_stdio.c --- */

enum keeper_stream_kind {
	KEEPER_HARMLESS, /* passes as it is */
	KEEPER_TERMINAL,
	KEEPER_FILE,
	KEEPER_PIPE,
	KEEPER_SOCKET,
	KEEPER_TAIL, /* it is none of the operator's: what is printed is kept */
};

#define KEEPER_STREAM_SIZE 65536

extern const char *const keeper_stream_names[3];

struct keeper_stream {
	enum keeper_stream_kind kind; /* of the operator's */
	int inside;                   /* what the cage gets; our copy is closed once it has it */
	int near;                     /* our end, or -1: nothing to pass on */
	int outside;                  /* the operator's, or the same opened anew for ourselves */
	bool is_given_back;           /* a file, from which nothing is taken that is not read */
	bool is_on_terminal;          /* the cage's own; `near` is a copy of its near end */
	bool has_ended;               /* the input, which a terminal is told by a character */
	size_t chunk;                 /* written at once */
	int failure;                  /* errno of writing to the operator's, or 0 */
	struct tail *tail;            /* what is kept instead, or NULL */
	char *bytes;      /* to be written: KEEPER_STREAM_SIZE and what a filter holds */
	size_t at, len;   /* read and not yet written */
	char *unfiltered; /* KEEPER_STREAM_SIZE; NULL: no filter */
	struct term_filter filter;
};

/* What a stream carried, before any filter. */
struct keeper_hashed {
	bool is_seen; /* it went through our hands */
	struct sha256 sha256;
	uint64_t bytes, kept;
	char kept_sha256[SHA256_HEX_SIZE]; /* of what is kept, where that is not all */
	int fd;                            /* where it is kept, or -1 */
};

struct keeper_stdio {
	struct keeper_stream streams[3];
	const struct keeper_request *request; /* borrowed */
	struct keeper_hashed hashed[2];       /* output and error */
	bool is_together;                     /* errors go where the output goes, in one stream */
	int keeper_failure;                   /* errno: what was printed could not be kept */
	struct arena arena;
	int null;         /* stands where a terminal will be, or -1 */
	uint64_t printed; /* by the command */
	uint64_t max;     /* what it may print; UINT64_MAX: there is no limit */
	bool is_cut;      /* it printed more */
	bool is_hung_up;  /* the operator's terminal is gone */
	struct keeper_cast *cast;
};

void keeper_stdio_close_inside(struct keeper_stdio *s);

/* Begins anew, for the run that a warm cage is used for. */
void keeper_stdio_init(struct keeper_stdio *s);

/* Passes the streams on to a warm cage, and closes our copies. 0 or -errno. */
int keeper_stdio_send(struct keeper_stdio *s, int channel);

/* Our end: the writer hears of it as SIGPIPE or a hangup, the reader as the end. */
void keeper_stream_close(struct keeper_stream *s);

/* The cage's terminal is there: what it prints is passed on, and what is typed with `has_input`. */
int keeper_stdio_attach(
	struct keeper_stdio *s, const struct keeper_terminal *t, bool has_input, struct err *e);

struct pollfd;

/* Fills three entries, -1 where nothing is waited for; for how long to wait, or -1. */
int keeper_relay_want(
	const struct keeper_stdio *s, const struct keeper_terminal *t, struct pollfd *ret);
void keeper_relay_move(struct keeper_stdio *s, const struct pollfd *seen);

/* The cage has ended: passes on what it wrote and nobody has read yet. A signal ends that. */
void keeper_relay_drain(struct keeper_stdio *s, int signals);

/* Passes on what is printed already, before the keeper stops itself. */
void keeper_relay_catch_up(struct keeper_stdio *s);

/*
 * Takes, for a moment and from a terminal in raw mode, the answers to what the command asked and
 * did not live to hear. Returns true if an answer is still to come.
 */
bool keeper_relay_await_answer(struct keeper_stdio *s, bool is_raw);

/* Returns an error if not all of it arrived. */
int keeper_relay_judge(const struct keeper_stdio *s, struct err *e);

/* Notes for the record what was printed. */
void keeper_output_end(const struct keeper_stdio *s, struct record_output *ret);

/* --- keeper_cast.c --- */

void keeper_cast_output(struct keeper_cast *c, const char *bytes, size_t n, bool is_terminal);

/* The size of the terminal at `fd`. */
void keeper_cast_resize(struct keeper_cast *c, int fd);
