/* Sessions, runs, workers and what is saved, asked by one process: sessions_test WHERE. */
#include <poll.h>

#include "making.h"

struct seen {
	size_t count, stop_at;
	char last[STORE_ID_SIZE];
	struct store *asked; /* from within */
};

static int see_session(void *of, const struct store_session *x)
{
	struct seen *seen = of;

	if (seen->asked)
		CHECK(store_touch_session(seen->asked, x->id, NULL) == 0);
	CHECK(strcmp(seen->last, x->id) < 0);
	memcpy(seen->last, x->id, sizeof(x->id));
	return ++seen->count == seen->stop_at ? 7 : 0;
}

static int see_run(void *of, const struct store_run *x)
{
	struct seen *seen = of;

	CHECK_STR(x->request, RUN_REQUEST);
	CHECK(!x->out && !x->err);
	seen->count++;
	return 0;
}

static void test_find(struct store *s)
{
	own(store_session) struct store_session x = { 0 };
	struct err e = { 0 };

	CHECK(add_session(s, 0xabcd0001, "first", 0) == 0);
	CHECK(add_session(s, 0xabcd0002, "", 0) == 0);
	CHECK(add_session(s, 0xabcd0003, "", 0) == 0);
	CHECK(add_session(s, 0xabcd0009, "first", 0) == -EEXIST);
	CHECK(add_session(s, 0xabcd0001, "other", 0) == -EEXIST);
	CHECK(store_find_session(s, "first", &x, &e) == 0);
	CHECK_STR(x.id, session_id(0xabcd0001));
	CHECK_STR(x.name, "first");
	CHECK_STR(x.place, "place");
	CHECK_STR(x.spec, "{\"version\":1}");
	CHECK_STR(x.project, "/home/someone/pro\xff\x01ject");
	CHECK(x.workspace == 1 && x.state == STORE_OPEN && x.token == 0 && x.is_lease_over);
	CHECK(x.created_ms > 1600000000000 && x.used_ms == x.created_ms && !x.is_expired);
	store_session_done(&x);
	CHECK(store_find_session(s, "abcd0002", &x, &e) == 0);
	CHECK_STR(x.id, session_id(0xabcd0002));
	CHECK_STR(x.name, "");
	CHECK(store_find_session(s, "abcd", &x, &e) == -ENOTUNIQ);
	CHECK(store_find_session(s, "", &x, &e) == -ENOENT);
	CHECK(store_find_session(s, "firs", &x, &e) == -ENOENT);
	CHECK(store_find_session(s, "no\xff'\"; --", &x, &e) == -ENOENT);
	CHECK(store_find_session(s, "bbbb", &x, &e) == -ENOENT);
	CHECK_STR(e.text, "cannot find session 'bbbb'");
}

/* More than are read at once; who sees them may ask meanwhile. */
static void test_each(struct store *s)
{
	struct seen all = { .asked = s }, some = { .stop_at = 2 }, runs = { 0 }, none = { 0 };

	for (unsigned i = 0; i < 300; i++)
		CHECK(add_session(s, 0xe0000000 + i, "", 0) == 0);
	CHECK(store_each_session(s, see_session, &all, NULL) == 0 && all.count >= 300);
	CHECK(store_each_session(s, see_session, &some, NULL) == 7 && some.count == 2);
	for (unsigned i = 0; i < 40; i++)
		CHECK(queue_run(s, 0xe0000001, i) == 0);
	CHECK(queue_run(s, 0xe0000002, 1) == 0);
	CHECK(store_each_run(s, session_id(0xe0000001), see_run, &runs, NULL) == 0);
	CHECK(runs.count == 40);
	CHECK(store_each_run(s, NULL, see_run, &runs, NULL) == 0 && runs.count >= 81);
	CHECK(store_each_run(s, session_id(0xe0000003), see_run, &none, NULL) == 0);
	CHECK(none.count == 0);
	CHECK(session_of(s, 0xe0000001).queued == 40);
}

static void test_states(struct store *s)
{
	own(store_run) struct store_run x = { 0 };
	struct err e = { 0 };

	CHECK(add_session(s, 0x51, "", 0) == 0);
	CHECK(queue_run(s, 0x51, 1) == 0 && queue_run(s, 0x51, 2) == 0);
	CHECK(queue_run(s, 0x51, 2) == -EEXIST);
	CHECK(session_of(s, 0x51).queued == 2);
	CHECK(store_set_state(s, session_id(0x51), STORE_STOPPED, &e) == 0);
	CHECK(session_of(s, 0x51).queued == 0 && session_of(s, 0x51).state == STORE_STOPPED);
	CHECK(store_find_run(s, "81-1", &x, &e) == 0);
	CHECK(x.state == STORE_CANCELLED && x.queued_ms > 0 && x.ended_ms >= x.queued_ms);
	CHECK_STR(x.error, "the session was stopped before it began");
	CHECK(queue_run(s, 0x51, 3) == -ECANCELED);
	CHECK(store_set_state(s, session_id(0x51), STORE_OPEN, &e) == 0);
	CHECK(queue_run(s, 0x51, 3) == 0);
	CHECK(store_set_state(s, session_id(0x51), STORE_REMOVING, &e) == 0);
	CHECK(run_state(s, "81-3") == STORE_CANCELLED);
	CHECK(store_set_state(s, session_id(0x51), STORE_REMOVING, &e) == 0);
	CHECK(store_set_state(s, session_id(0x51), STORE_OPEN, &e) == -ECANCELED);
	CHECK(store_set_state(s, session_id(0x51), STORE_STOPPED, &e) == -ECANCELED);
	CHECK(store_touch_session(s, session_id(0x51), &e) == -ECANCELED);
	CHECK(queue_run(s, 0x51, 4) == -ECANCELED);
	CHECK(store_remove_session(s, session_id(0x51), &e) == 0);
	CHECK(store_remove_session(s, session_id(0x51), &e) == -ENOENT);
	CHECK(store_touch_session(s, session_id(0x51), &e) == -ENOENT);
	CHECK(store_set_state(s, session_id(0x51), STORE_OPEN, &e) == -ENOENT);
	CHECK(queue_run(s, 0x51, 5) == -ENOENT);
	/* Its runs stay. */
	CHECK(run_state(s, "81-3") == STORE_CANCELLED);
	CHECK(store_find_run(s, "no", &x, &e) == -ENOENT);
}

static void test_expiry(struct store *s)
{
	CHECK(add_session(s, 0x61, "", 300) == 0 && add_session(s, 0x62, "", 0) == 0);
	CHECK(!session_of(s, 0x61).is_expired && !begin_sweep(s, 0x61));
	sleep_ms(200);
	CHECK(store_touch_session(s, session_id(0x61), NULL) == 0);
	sleep_ms(200);
	CHECK(!session_of(s, 0x61).is_expired && !begin_sweep(s, 0x61));
	sleep_ms(200);
	CHECK(session_of(s, 0x61).is_expired && !session_of(s, 0x62).is_expired);
	CHECK(!begin_sweep(s, 0x62));
	CHECK(begin_sweep(s, 0x61));
	CHECK(!begin_sweep(s, 0x61));
	CHECK(session_of(s, 0x61).state == STORE_REMOVING);
	CHECK(store_remove_session(s, session_id(0x61), NULL) == 0);
}

static void test_many(struct store *s)
{
	char ids[3][STORE_ID_SIZE];
	const char *const all[] = { ids[0], ids[1], ids[2] };
	bool begun[3] = { true, true, true };

	for (unsigned i = 0; i < 3; i++)
		snprintf(ids[i], sizeof(ids[i]), "%s", session_id(0x63 + i));
	CHECK(add_session(s, 0x63, "", 50) == 0 && add_session(s, 0x64, "", 0) == 0);
	CHECK(queue_run(s, 0x63, 1) == 0);
	sleep_ms(100);
	/* The first is expired, the second never is, the third is not there. */
	CHECK(store_begin_sweeps(s, all, 3, begun, NULL) == 0);
	CHECK(begun[0] && !begun[1] && !begun[2]);
	CHECK(run_state(s, "99-1") == STORE_CANCELLED);
	CHECK(session_of(s, 0x63).state == STORE_REMOVING &&
		session_of(s, 0x64).state == STORE_OPEN);
	CHECK(store_begin_sweeps(s, all, 3, begun, NULL) == 0 && !begun[0]);
	CHECK(store_remove_sessions(s, all, 3, NULL) == 0);
	CHECK(store_touch_session(s, all[0], NULL) == -ENOENT);
	CHECK(store_touch_session(s, all[1], NULL) == -ENOENT);
	CHECK(store_remove_sessions(s, all, 3, NULL) == 0 &&
		store_begin_sweeps(s, all, 0, begun, NULL) == 0);
}

static int see_worker(void *of, const struct store_worker *x)
{
	*(struct store_worker *)of = *x;
	return 0;
}

static void test_workers(struct store *s)
{
	struct store_worker a = worker_named("worker-a", 3, 200), seen = { 0 };
	bool has_other = true;

	CHECK(store_each_worker(s, see_worker, &seen, NULL) == 0 && !seen.name[0]);
	CHECK(store_renew_worker(s, &a, NULL) == 0);
	CHECK(store_each_worker(s, see_worker, &seen, NULL) == 0);
	CHECK_STR(seen.name, "worker-a");
	CHECK_STR(seen.host, "host");
	CHECK(seen.slots == 3 && seen.lease_ms == 200 && seen.is_alive && seen.seen_ms > 0);
	CHECK(store_has_other_place(s, "place", &has_other, NULL) == 0 && !has_other);
	CHECK(store_has_other_place(s, "elsewhere", &has_other, NULL) == 0 && has_other);
	sleep_ms(300);
	CHECK(store_each_worker(s, see_worker, &seen, NULL) == 0 && !seen.is_alive);
	CHECK(store_has_other_place(s, "elsewhere", &has_other, NULL) == 0 && !has_other);
	CHECK(store_remove_worker(s, "worker-a", NULL) == 0);
	seen.name[0] = '\0';
	CHECK(store_each_worker(s, see_worker, &seen, NULL) == 0 && !seen.name[0]);
}

static bool is_rung(struct store *s)
{
	struct pollfd p = { store_wait_fd(s), POLLIN, 0 };

	return poll(&p, 1, 500) > 0;
}

static bool is_quiet(struct store *s)
{
	struct pollfd p = { store_wait_fd(s), POLLIN, 0 };

	return poll(&p, 1, 50) == 0;
}

/* What others do is heard, also if it came while this one was asking something else. */
static void test_bell(struct store *s, const char *where)
{
	own_store struct store *other = open_store(where);
	int64_t now;

	CHECK(store_wait_fd(s) == -1);
	CHECK(store_listen(s, NULL) == 0 && store_wait_fd(s) >= 0 && store_listen(s, NULL) == 0);
	CHECK(add_session(s, 0x71, "", 0) == 0);
	CHECK(store_hear(s, NULL) == 0 && is_quiet(s));
	CHECK(queue_run(other, 0x71, 1) == 0 && is_rung(s));
	CHECK(store_hear(s, NULL) == 0 && is_quiet(s));
	CHECK(queue_run(other, 0x71, 2) == 0);
	for (int i = 0; i < 20; i++) {
		CHECK(store_now(s, &now, NULL) == 0);
		sleep_ms(5);
	}
	CHECK(is_rung(s));
	CHECK(store_hear(s, NULL) == 0 && is_quiet(s));
	CHECK(store_set_state(other, session_id(0x71), STORE_STOPPED, NULL) == 0 && is_rung(s));
	CHECK(store_hear(s, NULL) == 0 && is_quiet(s));
	/* Looking, and renewing, is nothing that anybody waits for. */
	CHECK(session_of(other, 0x71).id[0] &&
		store_touch_session(other, session_id(0x71), NULL) == 0);
	CHECK(is_quiet(s));
}

static void test_clock(struct store *s)
{
	struct timespec t;
	int64_t now = 0;

	clock_gettime(CLOCK_REALTIME, &t);
	CHECK(store_now(s, &now, NULL) == 0);
	CHECK(llabs(now - ((int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000)) < 5000);
	CHECK_STR(store_session_words[STORE_REMOVING], "removing");
	CHECK_STR(store_run_words[STORE_CANCELLED], "cancelled");
}

int main(int argc, char **argv)
{
	own_store struct store *s = argc == 2 ? open_store(argv[1]) : NULL;

	if (!s)
		return 2;
	test_clock(s);
	test_find(s);
	test_each(s);
	test_states(s);
	test_many(s);
	test_expiry(s);
	test_workers(s);
	test_bell(s, argv[1]);
	return check_report();
}
