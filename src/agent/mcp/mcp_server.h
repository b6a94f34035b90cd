#pragma once

#include <signal.h>
#include <sys/types.h>

#include "agent/mcp/mcp.h"
#include "run/run.h"
#include "session/store/store.h"

/* The server of `bawn mcp`: standard streams, and processes that do one call after the
 * other. Prints nothing else. */

/* For whom it serves, and what it serves in. All is borrowed. */
struct mcp_serving {
	const struct store_session *session;
	int root;            /* the sessions', open */
	const char *version; /* bawn's */
	char *command_line;  /* what ps shows, in one piece of memory */
	size_t command_line_size;
	const struct run_sink *sink; /* hears of the runs */
	/* What is wrong with the session's spec, or worth a warning. */
	void (*diags)(void *of, const struct spec *s);
	void *of;
};

/*
 * From here on the signals to end wait until somebody serves: to be called before there is anything
 * to leave.
 */
void mcp_block_signals(void);

/* Serves until the end of input, or a signal to end; nothing runs any more then. 0 or -errno. */
int mcp_serve(const struct mcp_serving *w, struct err *e);

/* --- what its files share --- */

#define MCP_MOST_CALLS 32 /* at one time */
/* Of one call, the end of it: all that a file tool says, with a line about what it left out. */
#define MCP_MOST_OUTPUT (((size_t)1 << 20) + 8192)

/* Processes that wait for calls, and may have a warm cage each; more than these are ended. */
#define MCP_MOST_IDLE 2

/* To a runner: the command of its call, which was told to end and did not, is killed. Another than
 * that which told it, or the two could become one on their way. */
#define MCP_KILL_SIGNAL SIGUSR2

/* What server and runner tell each other. */
enum mcp_note_kind {
	MCP_NOTE_CALL,  /* server → runner: do this; with the arguments, which are sealed */
	MCP_NOTE_HOLD,  /* runner → server: with what keeps the session mounted */
	MCP_NOTE_DONE,  /* runner → server: with the answer, a line in a file in memory */
	MCP_NOTE_READY, /* runner → server: nothing more has to be done before the next call */
};

struct mcp_note {
	enum mcp_note_kind kind;
	enum mcp_tool tool; /* of a call, like what follows */
	bool is_modern;
	bool wants_hold; /* the workspace is not kept mounted yet */
	char id[MCP_MAX_ID + 1];
};

/* A runner: a process that does one call after the other. */
struct mcp_call {
	char id[MCP_MAX_ID + 1]; /* of the call, as it was written; "": it does none */
	bool is_modern;
	pid_t pid; /* 0: there is no process */
	int pidfd, channel;
	bool is_ready;     /* it waits for a call, and has nothing to do before that */
	bool is_cancelled; /* nobody wants the answer any more */
	bool is_killed;    /* its command; the call itself signs that, and ends */
	uint64_t kill_ns;  /* when its command is killed, or else it; 0: it was not told to end */
};

struct mcp_server {
	const struct mcp_serving *serving;
	int root;         /* the sessions', open */
	uint64_t most_ms; /* that a run of the session may take; 0: as long as it wants */
	bool has_bash;    /* a cage of the session surely has it */
	bool takes_turns; /* each run sees the project through a view of its own: mcp_run */
	struct mcp mcp;
	struct mcp_about about;
	struct mcp_lines lines;
	struct buf out;      /* to be written to standard output … */
	size_t out_at;       /* … from there on */
	bool is_over;        /* input has ended, or we are told to end */
	bool is_mute;        /* nobody reads any more: nothing is written */
	uint64_t written_ns; /* when something last was */
	uint64_t touched_ns; /* when the store was told that it is in use */
	int hold;            /* what keeps the session's workspace mounted, or -1 */
	struct mcp_call calls[MCP_MOST_CALLS];
};

/* --- mcp_calls.c --- */

/* Starts a call; what cannot be started is answered. */
void mcp_calls_start(struct mcp_server *s, const struct mcp_request *q);

/* Its runner says something: the answer goes out, unless the call was cancelled. */
void mcp_calls_hear(struct mcp_server *s, struct mcp_call *c);

/* Asks a call to end; its command is killed after that time. */
void mcp_calls_stop(struct mcp_call *c, unsigned patience_ms);

/* Has a runner that does nothing end; it is killed after that time. */
void mcp_calls_dismiss(struct mcp_call *c, unsigned patience_ms);

/* Whose time to end is over: first its command is killed, and what does not end then is. */
void mcp_calls_kill_late(struct mcp_call *c);

/* The call with that id; NULL: there is none. */
struct mcp_call *mcp_calls_find(struct mcp_server *s, const struct mcp_slice *id);

/* The session's workspace need not stay mounted any more. */
void mcp_calls_drop_hold(struct mcp_server *s);

/* --- mcp_run.c --- */

/* What a runner does, until the channel's other end is closed. */
_Noreturn void mcp_run(const struct mcp_server *s, int channel);
