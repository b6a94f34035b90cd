#pragma once

/* What the tests of stores have in common: opening one, and putting something into it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../unit/check.h"
#include "base/own.h"
#include "session/store/store.h"

#define RUN_REQUEST "{\"argv\": [\"true\"]}"

static inline void store_closed(struct store **s)
{
	store_close(*s);
}

#define own_store __attribute__((cleanup(store_closed)))

/* Or ends the test: nothing else can be tried. */
static inline struct store *open_store(const char *where)
{
	struct store *s = NULL;
	struct err e = { 0 };

	if (store_open(where, &s, &e) < 0) {
		printf("%s\n", e.text);
		exit(1);
	}
	return s;
}

/* An id that begins with eight digits of the number. One of four texts, used in turn. */
static inline const char *session_id(unsigned number)
{
	static char ids[4][STORE_ID_SIZE];
	static unsigned at;

	at = (at + 1) % 4;
	snprintf(ids[at], STORE_ID_SIZE, "%08x%024x", number, 0U);
	return ids[at];
}

static inline int add_session(struct store *s, unsigned number, const char *name, int64_t ttl_ms)
{
	char spec[] = "{\"version\":1}", project[] = "/home/someone/pro\xff\x01ject";
	struct store_session x = { .workspace = 1, .ttl_ms = ttl_ms };

	snprintf(x.id, sizeof(x.id), "%s", session_id(number));
	snprintf(x.name, sizeof(x.name), "%s", name);
	snprintf(x.place, sizeof(x.place), "place");
	x.spec = spec;
	x.project = project;
	return store_add_session(s, &x, NULL);
}

/* A run whose id is made of both numbers. */
static inline int queue_run(struct store *s, unsigned session, unsigned number)
{
	char request[] = RUN_REQUEST;
	struct store_run x = { .request = request };

	snprintf(x.id, sizeof(x.id), "%u-%u", session, number);
	snprintf(x.session, sizeof(x.session), "%s", session_id(session));
	return store_queue_run(s, &x, NULL);
}

static inline struct store_worker worker_named(const char *name, unsigned slots, int64_t lease_ms)
{
	struct store_worker w = { .slots = slots, .lease_ms = lease_ms };

	snprintf(w.name, sizeof(w.name), "%s", name);
	snprintf(w.place, sizeof(w.place), "place");
	snprintf(w.host, sizeof(w.host), "host");
	return w;
}

/* Takes a run and forgets all but what is copied: its id, or "" where there was none. */
struct took {
	struct store_run run;
	struct store_session session;
	bool is_new, is_left_open;
};

static inline int take(struct store *s, const struct store_worker *w, struct took *ret)
{
	own(store_taken) struct store_taken t = { 0 };
	struct err e = { 0 };
	int r = store_take_run(s, w, &t, &e);

	*ret = (struct took){ t.run, t.session, t.is_new, t.is_left_open };
	ret->run.request = ret->run.error = ret->run.record = ret->run.out = ret->run.err = NULL;
	ret->session.spec = ret->session.project = NULL;
	if (r < 0)
		printf("%s\n", e.text);
	return r;
}

static inline int end(struct store *s, const struct took *t, int status)
{
	struct store_run x = t->run;
	char error[] = "", record[] = "{}", out[] = "o\0t", err[] = "e";

	x.state = STORE_ENDED;
	x.status = status;
	x.error = error;
	x.record = record;
	x.out = out;
	x.out_size = 3;
	x.err = err;
	x.err_size = 1;
	return store_end_run(s, &x, NULL);
}

static inline enum store_run_state run_state(struct store *s, const char *id)
{
	own(store_run) struct store_run x = { 0 };

	return store_find_run(s, id, &x, NULL) < 0 ? STORE_RUN_STATE_COUNT : x.state;
}

static inline struct store_session session_of(struct store *s, unsigned number)
{
	struct store_session x = { 0 };

	CHECK(store_find_session(s, session_id(number), &x, NULL) == 0);
	free(x.spec);
	free(x.project);
	x.spec = x.project = NULL;
	return x;
}

/* Was it to be removed, and was nobody at that yet? */
static inline bool begin_sweep(struct store *s, unsigned number)
{
	const char *id = session_id(number);
	bool begun = false;

	CHECK(store_begin_sweeps(s, &id, 1, &begun, NULL) == 0);
	return begun;
}

static inline void sleep_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}
