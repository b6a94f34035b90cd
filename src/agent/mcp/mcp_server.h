#pragma once

#include <signal.h>
#include <sys/types.h>

#include "agent/mcp/mcp.h"
#include "run/run.h"
#include "session/store/store.h"

/* The server of `bawn mcp`: standard streams, and a process for each call. Prints nothing else. */

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

/* To a call's process: its command, which was told to end and did not, is killed. Another than
 * that which told it, or the two could become one on their way. */
#define MCP_KILL_SIGNAL SIGUSR2

/* A call that is being done, by a process of its own. */
struct mcp_call {
	char id[MCP_MAX_ID + 1]; /* as it was written; "": the place is free */
	bool is_modern;
	pid_t pid;
	int pidfd;
	int answer;        /* a file in memory that gets the line */
	bool is_cancelled; /* nobody wants the answer any more */
	bool is_killed;    /* its command; the call itself signs that, and ends */
	uint64_t kill_ns;  /* when its command is killed, or else it; 0: it was not told to end */
};

struct mcp_server {
	const struct mcp_serving *serving;
	int root;         /* the sessions', open */
	uint64_t most_ms; /* that a run of the session may take; 0: as long as it wants */
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
	struct mcp_call calls[MCP_MOST_CALLS];
};

/* --- mcp_calls.c --- */

/* Starts a call; what cannot be started is answered. */
void mcp_calls_start(struct mcp_server *s, const struct mcp_request *q);

/* It has ended, as its pidfd says: its answer goes out, unless it was cancelled. */
void mcp_calls_end(struct mcp_server *s, struct mcp_call *c);

/* Asks it to end; its command is killed after that time. */
void mcp_calls_stop(struct mcp_call *c, unsigned patience_ms);

/* Whose time to end is over: first its command is killed, and what does not end then is. */
void mcp_calls_kill_late(struct mcp_call *c);

/* The call with that id; NULL: there is none. */
struct mcp_call *mcp_calls_find(struct mcp_server *s, const struct mcp_slice *id);
