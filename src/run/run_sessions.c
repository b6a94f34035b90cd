/*
 * run_sessions - opens what is known of sessions, and where their folders are.
 *
 * Runs as:  the operator; a worker.
 * Leaves:   a store and a root where there were none, for who makes sessions.
 * Must not: print BAWN_STORE, which may have a password in it.
 */
#include "run/run_sessions.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "keeper/keeper.h"
#include "proof/log/log.h"
#include "proof/record/record.h"

int run_open_store(bool makes, struct store **ret, struct err *e)
{
	const char *named = getenv("BAWN_STORE");
	char state[PATH_MAX], where[PATH_MAX + 32];
	struct stat st;
	int r;

	*ret = NULL;
	if (named && named[0]) {
		r = store_open(named, ret, e);
		if (r < 0 && !e->hint[0])
			err_hint(e, r, "the environment variable BAWN_STORE names this store");
		return r;
	}
	r = record_find_state(run_home(), state);
	if (r < 0)
		return err_hint(e,
			err_set(e, ERR_REFUSED, -r,
				"cannot keep sessions: HOME and XDG_STATE_HOME are not set"),
			"set one of them");
	snprintf(where, sizeof(where), "sqlite:%s/store.db", state);
	if (!makes && stat(where + strlen("sqlite:"), &st) < 0 && errno == ENOENT)
		return -ENOENT;
	return store_open(where, ret, e);
}

int run_sessions_open(struct run_sessions *ret, bool makes, struct err *e)
{
	int r;

	*ret = (struct run_sessions){ .state = -1, .root = -1 };
	ret->state = record_open_state(run_home(), makes, e);
	if (ret->state < 0 && e->kind != ERR_NONE)
		return ret->state;
	r = run_open_store(makes, &ret->store, e);
	if (r < 0 && e->kind != ERR_NONE)
		return r;
	ret->root = session_open_root(ret->state, makes, e);
	if (ret->root >= 0)
		return session_root_id(ret->root, ret->place, e);
	if (e->kind != ERR_NONE)
		return ret->root;
	ret->root = -1;
	return 0;
}

void run_sessions_done(struct run_sessions *x)
{
	if (x->store)
		store_close(x->store);
	if (x->root >= 0)
		close(x->root);
	if (x->state >= 0)
		close(x->state);
}

int run_sessions_look_up(
	struct run_sessions *x, const char *word, struct store_session *ret, struct err *e)
{
	int r;

	*ret = (struct store_session){ 0 };
	/* What is neither is in no store. */
	if (!x->store || (!session_is_id(word, false) && session_check_name(word)))
		return 0;
	r = store_find_session(x->store, word, ret, e);
	return r == 0 ? 1 : r == -ENOENT ? 0 : r;
}

bool run_sessions_is_here(const struct run_sessions *x, const struct store_session *s)
{
	return x->root >= 0 && strcmp(x->place, s->place) == 0;
}

int run_sessions_log(
	int state, const char *type, const struct store_session *x, const char *why, struct err *e)
{
	own(log) struct log log;
	struct json *j;

	log_init(&log, state, NULL, x->id);
	j = log_begin(&log, type);
	json_text(j, "name", x->name[0] ? x->name : NULL);
	if (why)
		json_text(j, "why", why);
	log_end(&log);
	if (log_write(&log) == 0)
		return 0;
	*e = log.failure;
	err_prefix(e, "what became of session %s is not in the log", x->id);
	return -e->num;
}

/* --- using one --- */

int run_use_session(struct run_sessions *at, const struct store_session *s, struct err *e)
{
	int r = s->state == STORE_STOPPED ? store_set_state(at->store, s->id, STORE_OPEN, e) : 0;

	return r == 0 ? store_touch_session(at->store, s->id, e) : r;
}

int run_queue(const struct run_request *q, struct store *s, const struct store_session *x,
	char ret_run[static STORE_RUN_SIZE], struct err *e)
{
	own(buf) struct buf request = { .max = STORE_MAX_REQUEST };
	struct store_run queued = { 0 };
	int r = run_request_print(q, &request, e);

	/* NOLINTNEXTLINE(misc-redundant-expression): both are written as the same number today */
	static_assert(RUN_REQUEST_SIZE == STORE_MAX_REQUEST, "a store takes any request");
	if (r == 0)
		r = record_make_run(NULL, queued.id, e);
	if (r == 0) {
		memcpy(queued.session, x->id, sizeof(queued.session));
		queued.request = request.data;
		r = store_queue_run(s, &queued, e);
	}
	memcpy(ret_run, queued.id, sizeof(queued.id));
	return r;
}

/* --- ending and removing one --- */

#define PATIENCE_MS 4000 /* for what runs in it to end */

#define MOVED_TRIES 8

int run_stop_session(int root, const char *id, unsigned patience_ms, struct err *e)
{
	uint64_t number = UINT64_MAX;
	int r = 0, tries = 0;

	do {
		own_fd int workspace = session_open_before(root, id, &number, e);

		if (workspace >= 0) {
			r = keeper_stop_workspace(workspace, patience_ms, e);
		} else if (workspace != -ENOENT) {
			r = workspace;
		} else {
			*e = (struct err){ 0 };
			/* What was moved has a larger number. */
			if (number && tries++ < MOVED_TRIES)
				number = UINT64_MAX;
		}
	} while (r == 0 && number);
	return r;
}

int run_remove_files(int root, const struct store_session *s, struct err *e)
{
	int r = root < 0 ? 0 : session_remove_folder(root, s->id, e);

	if (r != -EBUSY)
		return r;
	*e = (struct err){ 0 };
	r = run_stop_session(root, s->id, PATIENCE_MS, e);
	return r < 0 ? r : session_remove_folder(root, s->id, e);
}

int run_remove_session(struct run_sessions *at, const struct store_session *s, struct err *e)
{
	int r;

	if (s->place[0] && !run_sessions_is_here(at, s))
		return err_hint(e,
			err_set(e, ERR_REFUSED, EXDEV,
				"cannot remove session %s: its files are in another root", s->id),
			"remove it there, or set BAWN_SANDBOX_ROOT");
	/* What does not end leaves the session as it is, but stopped: a removal is never undone. */
	r = s->state == STORE_REMOVING ? 0 : store_set_state(at->store, s->id, STORE_STOPPED, e);
	if (r == 0 && at->root >= 0)
		r = run_stop_session(at->root, s->id, PATIENCE_MS, e);
	if (r == 0)
		r = store_set_state(at->store, s->id, STORE_REMOVING, e);
	if (r == 0)
		r = run_remove_files(at->root, s, e);
	if (r == 0)
		r = store_remove_session(at->store, s->id, e);
	if (r < 0)
		err_prefix(e, "cannot remove session %s", s->id);
	return r;
}

/* --- waiting for a queued run --- */

#define AGAIN_MS 1000 /* until a store that is gone is asked again */
#define ALONE_MS 1000 /* until it is said that no worker is there */

static bool has_ended(const struct store_run *x)
{
	return x->state != STORE_QUEUED && x->state != STORE_RUNNING;
}

static int count_worker(void *of, const struct store_worker *x)
{
	*(unsigned *)of += x->is_alive && x->slots > 0;
	return 0;
}

/* True if nobody is there to take a run. */
static bool is_alone(struct store *s)
{
	unsigned workers = 0;
	struct err e = { 0 };

	return store_each_worker(s, count_worker, &workers, &e) == 0 && workers == 0;
}

/* Until somebody says that something happened; or a while, where nobody can or `most_ms` say. */
static int wait_for_news(struct store *s, bool *is_listening, int most_ms, struct err *e)
{
	struct pollfd news = { .events = POLLIN };
	int n, r = *is_listening ? 0 : store_listen(s, e);

	if (r == 0 && !*is_listening) {
		/* What happened before we listened is asked for once more. */
		*is_listening = true;
		return 0;
	}
	news.fd = r == 0 ? store_wait_fd(s) : -1;
	n = poll(&news, 1, r == 0 ? most_ms : AGAIN_MS);
	if (n < 0 && errno != EINTR)
		return -errno;
	if (r == 0 && n != 0)
		r = store_hear(s, e);
	*is_listening = r == 0;
	return 0;
}

int run_wait_queued(struct store *s, const char *run, void (*alone)(void *of), void *of,
	struct store_run *ret, struct err *e)
{
	uint64_t began = clock_ns();
	bool is_listening = false, may_say = alone;

	for (;;) {
		struct err why = { 0 };
		int r = store_find_run(s, run, ret, e);
		bool is_late = clock_ns() - began >= (uint64_t)ALONE_MS * 1000000;

		if (r == 0 && has_ended(ret))
			return 0;
		if (r < 0 && r != -EPIPE)
			return r;
		if (r == 0 && may_say && is_late) {
			may_say = false;
			if (ret->state == STORE_QUEUED && is_alone(s))
				alone(of);
		}
		if (r == 0)
			store_run_done(ret);
		is_listening = is_listening && r == 0;
		r = wait_for_news(s, &is_listening, may_say ? ALONE_MS : -1, &why);
		if (r < 0)
			return r;
	}
}
