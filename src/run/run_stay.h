#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/sha256.h"
#include "run/run_session.h"

/*
 * The stay-keeper of a session: a process that stays for some seconds after a command of `session
 * exec`, keeps the workspace mounted and a cage warm, and does the next command for whoever asks.
 * One of a session, RUN_STAY_MOST of an operator. It does one command at a time, with the asking
 * process's own streams, variables and folder, and only for processes that are as the one that
 * started it. In the session's folder:
 *
 *   stay        its process id, while it lives; locked by it
 *   stay-turn   locked by who asks, from then until the command has ended
 *   stay-door   its socket
 */

#define RUN_STAY_S    10
#define RUN_STAY_MOST 8

/* BAWN_STAY_SECONDS, how long one stays after its last command; 0: there is none. */
unsigned run_stay_seconds(void);

/*
 * What a command takes from the process that starts it, beside streams, variables and folder: ids,
 * capabilities, namespaces, cgroups, limits, priorities, ignored signals, and where its state is.
 */
void run_stay_identify(char ret[static SHA256_HEX_SIZE]);

/* Can a command be done by another process at all? Only one that has no terminal. */
bool run_stay_is_possible(const struct run_request *q);

/*
 * Has the session's stay-keeper do a command, and waits for its end: 0 and the exit status;
 * -ENOENT: nobody does it, and it was not begun; -EPIPE: whoever did it was killed.
 */
int run_stay_ask(
	int root, const char *session, const struct run_request *q, bool is_quiet, int *ret_status);

/* Called before each command: sets what the job's sink and `look`, whose `of` it is, need. */
struct run_stay_begin {
	void (*call)(void *of, int root, bool is_quiet);
	void *of;
};

/*
 * Starts one, if the session has none and there is room. `job` is that of a command that has ended;
 * its `hold`, which is taken over, keeps the workspace mounted. Returns in the calling process.
 */
void run_stay_start(const struct run_job *job, const struct run_stay_begin *begin, int state,
	const char *identity);

/* The session's, or 0. */
pid_t run_stay_find(int root, const char *session);

/* --- what its files share --- */

/* The first message: with it comes memory that holds the request and the variables; then the
 * streams and the folder, one a message. */
struct run_stay_asked {
	char identity[SHA256_HEX_SIZE];
	bool is_quiet;
	uint32_t request_size, variables_size; /* of NUL-terminated texts */
};

#define RUN_STAY_STREAMS   4 /* the last is the folder */
#define RUN_STAY_VARIABLES ((size_t)4 << 20)
#define RUN_STAY_ANSWER_MS 1000

int run_stay_open_folder(int root, const char *session);
int run_stay_open_lock(int folder, const char *name, bool makes);
