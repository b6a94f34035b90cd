/* Taking runs, ending them, and what an older lease may no longer do: leases_test WHERE. */
#include "making.h"

static void test_one_after_the_other(struct store *s)
{
	struct store_worker a = worker_named("a", 4, 60000), b = worker_named("b", 4, 60000);
	struct took t, other;

	CHECK(store_renew_worker(s, &a, NULL) == 0 && store_renew_worker(s, &b, NULL) == 0);
	CHECK(take(s, &a, &t) == 0);
	CHECK(add_session(s, 1, "", 0) == 0 && add_session(s, 2, "", 0) == 0);
	CHECK(queue_run(s, 1, 1) == 0 && queue_run(s, 1, 2) == 0 && queue_run(s, 2, 1) == 0);
	CHECK(take(s, &a, &t) == 1 && t.is_new && !t.is_left_open);
	CHECK_STR(t.run.id, "1-1");
	CHECK_STR(t.run.worker, "a");
	CHECK_STR(t.session.id, session_id(1));
	CHECK_STR(t.session.worker, "a");
	CHECK(t.run.state == STORE_RUNNING && t.run.token == 1 && t.session.token == 1);
	CHECK(t.run.taken_ms >= t.run.queued_ms && t.session.lease_ms > t.run.taken_ms);
	CHECK(t.session.running == 1 && t.session.queued == 1 && !t.session.is_lease_over);
	/* 1-2 waits for 1-1, whoever asks. */
	CHECK(take(s, &b, &other) == 1 && other.is_new);
	CHECK_STR(other.run.id, "2-1");
	CHECK(take(s, &b, &other) == 0 && take(s, &a, &other) == 0);
	CHECK(end(s, &t, 3) == 0);
	/* And is its holder's, which is alive and has room. */
	CHECK(take(s, &b, &other) == 0);
	CHECK(take(s, &a, &t) == 1 && !t.is_new && !t.is_left_open && t.session.token == 1);
	CHECK_STR(t.run.id, "1-2");
	CHECK(store_release(s, session_id(1), 1, NULL) == -EBUSY);
	CHECK(end(s, &t, 0) == 0 && store_release(s, session_id(1), 1, NULL) == 0);
	CHECK(session_of(s, 1).worker[0] == '\0' && session_of(s, 1).is_lease_over);
}

static void test_result(struct store *s)
{
	own(store_run) struct store_run x = { 0 };

	CHECK(store_find_run(s, "1-1", &x, NULL) == 0);
	CHECK(x.state == STORE_ENDED && x.status == 3 && x.ended_ms >= x.taken_ms && x.token == 1);
	CHECK(x.out_size == 3 && !memcmp(x.out, "o\0t", 3) && x.err_size == 1);
	CHECK_STR(x.err, "e");
	CHECK_STR(x.record, "{}");
	CHECK_STR(x.error, "");
	CHECK_STR(x.request, RUN_REQUEST);
	CHECK_STR(x.worker, "a");
}

/* A session that was given back is anybody's, under a new token. */
static void test_given_back(struct store *s)
{
	struct store_worker b = worker_named("b", 4, 60000);
	struct took t;

	CHECK(queue_run(s, 1, 3) == 0 && take(s, &b, &t) == 1);
	CHECK(t.is_new && !t.is_left_open && t.session.token == 2);
	CHECK(store_check_token(s, session_id(1), 1, NULL) == -ESTALE);
	CHECK(store_check_token(s, session_id(1), 2, NULL) == 0);
	CHECK(end(s, &t, 0) == 0 && store_release(s, session_id(1), 2, NULL) == 0);
	CHECK(store_release(s, session_id(1), 2, NULL) == -ESTALE);
	CHECK(store_check_token(s, session_id(1), 2, NULL) == -ESTALE);
}

/* What anybody could try with a lease that another has by now; and the twin, which may. */
static void check_writes(struct store *s, const struct took *t, int wanted)
{
	const char *id = t->session.id;

	CHECK(store_check_token(s, id, t->session.token, NULL) == wanted);
	CHECK(store_set_workspace(s, id, t->session.token, "place2", 9, NULL) == wanted);
	CHECK(store_save(s, id, t->session.token, "saved", 5, NULL) == wanted);
	CHECK(end(s, t, 0) == wanted);
	CHECK(store_release(s, id, t->session.token, NULL) == wanted);
}

static void test_over(struct store *s)
{
	struct store_worker a = worker_named("over-a", 4, 150),
			    b = worker_named("over-b", 4, 60000);
	const struct store_session *held[2];
	struct took first, second;
	bool is_lost[2];
	struct err e = { 0 };

	CHECK(add_session(s, 3, "", 0) == 0 && queue_run(s, 3, 1) == 0 && queue_run(s, 3, 2) == 0);
	CHECK(store_renew_worker(s, &a, NULL) == 0 && store_renew_worker(s, &b, NULL) == 0);
	CHECK(take(s, &a, &first) == 1 && take(s, &b, &second) == 0);
	sleep_ms(100);
	CHECK(store_renew_worker(s, &a, NULL) == 0);
	sleep_ms(100);
	CHECK(take(s, &b, &second) == 0);
	sleep_ms(100);
	CHECK(session_of(s, 3).is_lease_over);
	CHECK(take(s, &b, &second) == 1 && second.is_new && second.is_left_open);
	CHECK_STR(second.run.id, "3-2");
	CHECK(second.session.token == first.session.token + 1);
	CHECK(run_state(s, "3-1") == STORE_LOST && run_state(s, "3-2") == STORE_RUNNING);
	held[0] = held[1] = &first.session;
	CHECK(store_check_leases(s, "over-a", held, 1, is_lost, &e) == 0 && is_lost[0]);
	held[1] = &second.session;
	CHECK(store_check_leases(s, "over-b", held, 2, is_lost, &e) == 0);
	CHECK(is_lost[0] && !is_lost[1]);
	/* To renew brings nothing back that another took. */
	CHECK(store_renew_worker(s, &a, NULL) == 0);
	check_writes(s, &first, -ESTALE);
	CHECK(run_state(s, "3-1") == STORE_LOST && session_of(s, 3).workspace == 1);
	check_writes(s, &second, 0);
	CHECK(run_state(s, "3-2") == STORE_ENDED && session_of(s, 3).workspace == 9);
	CHECK_STR(session_of(s, 3).place, "place2");
}

/* Who slept past its lease, and nobody else came: it has it still. */
static void test_slept(struct store *s)
{
	struct store_worker a = worker_named("slept", 4, 100);
	struct took t, next;

	CHECK(add_session(s, 4, "", 0) == 0 && queue_run(s, 4, 1) == 0 && queue_run(s, 4, 2) == 0);
	CHECK(store_renew_worker(s, &a, NULL) == 0 && take(s, &a, &t) == 1);
	sleep_ms(200);
	CHECK(take(s, &a, &next) == 0);
	CHECK(end(s, &t, 0) == 0);
	/* Said twice, because nobody knew whether the first arrived. */
	CHECK(end(s, &t, 0) == 0 && end(s, &t, 1) == -ESTALE);
	CHECK(take(s, &a, &next) == 1 && !next.is_new && next.session.token == 1);
	CHECK(end(s, &next, 0) == 0 && store_remove_worker(s, "slept", NULL) == 0);
}

/* Another may have a session whose worker is full: not one that it is at work in. */
static void test_full(struct store *s)
{
	struct store_worker a = worker_named("full-a", 1, 60000),
			    b = worker_named("full-b", 9, 60000);
	struct took t, busy, other;

	CHECK(store_renew_worker(s, &a, NULL) == 0 && store_renew_worker(s, &b, NULL) == 0);
	CHECK(add_session(s, 5, "", 0) == 0 && add_session(s, 6, "", 0) == 0);
	CHECK(queue_run(s, 5, 1) == 0 && take(s, &a, &t) == 1 && end(s, &t, 0) == 0);
	CHECK(queue_run(s, 5, 2) == 0 && take(s, &b, &other) == 0);
	CHECK(queue_run(s, 6, 1) == 0 && take(s, &a, &busy) == 1);
	CHECK_STR(busy.run.id, "5-2");
	CHECK(queue_run(s, 5, 3) == 0);
	CHECK(take(s, &b, &other) == 1);
	CHECK_STR(other.run.id, "6-1");
	CHECK(take(s, &b, &t) == 0);
	CHECK(end(s, &busy, 0) == 0 && end(s, &other, 0) == 0);
	/* full-a has 5 and room: 5-3 is left to it, until it is busy with something else. */
	CHECK(take(s, &b, &t) == 0);
	CHECK(add_session(s, 7, "", 0) == 0 && take(s, &a, &t) == 1 && end(s, &t, 0) == 0);
	CHECK(queue_run(s, 7, 1) == 0 && take(s, &a, &busy) == 1);
	CHECK_STR(busy.run.id, "7-1");
	CHECK(queue_run(s, 5, 4) == 0 && take(s, &b, &t) == 1 && t.is_new && t.is_left_open);
	CHECK_STR(t.run.id, "5-4");
	CHECK(t.session.token == 2);
	CHECK(end(s, &busy, 0) == 0 && end(s, &t, 0) == 0);
}

/* What lies elsewhere is for those who are there, as long as somebody is. */
static void test_elsewhere(struct store *s)
{
	struct store_worker here = worker_named("here", 4, 60000),
			    there = worker_named("there", 4, 60000);
	struct took t;

	CHECK(add_session(s, 20, "", 0) == 0 && queue_run(s, 20, 1) == 0);
	CHECK(take(s, &here, &t) == 1);
	CHECK(store_set_workspace(s, session_id(20), t.session.token, "home", 1, NULL) == 0);
	CHECK(end(s, &t, 0) == 0);
	snprintf(here.place, sizeof(here.place), "home");
	snprintf(there.place, sizeof(there.place), "elsewhere");
	CHECK(store_renew_worker(s, &here, NULL) == 0 && store_renew_worker(s, &there, NULL) == 0);
	CHECK(store_release(s, session_id(20), t.session.token, NULL) == 0);
	CHECK(queue_run(s, 20, 2) == 0 && take(s, &there, &t) == 0);
	CHECK(take(s, &here, &t) == 1 && t.is_new && !t.is_left_open && end(s, &t, 0) == 0);
	CHECK(store_give_up(s, session_id(20), t.session.token - 1, NULL) == -ESTALE);
	CHECK(store_give_up(s, session_id(20), t.session.token, NULL) == 0);
	CHECK(queue_run(s, 20, 4) == 0 && take(s, &here, &t) == 1 && t.is_new && t.is_left_open);
	CHECK(store_give_up(s, session_id(20), t.session.token, NULL) == -EBUSY);
	CHECK(end(s, &t, 0) == 0 && store_release(s, session_id(20), t.session.token, NULL) == 0);
	CHECK(queue_run(s, 20, 5) == 0);
	/* One that takes no more does not count, nor does one that is gone. */
	here.slots = 0;
	CHECK(store_renew_worker(s, &here, NULL) == 0);
	CHECK(take(s, &there, &t) == 1 && t.is_new && end(s, &t, 0) == 0);
	CHECK(store_remove_worker(s, "here", NULL) == 0);
	CHECK(queue_run(s, 20, 3) == 0 && take(s, &there, &t) == 1 && end(s, &t, 0) == 0);
	CHECK(store_remove_worker(s, "there", NULL) == 0);
}

static void test_closed(struct store *s)
{
	struct store_worker a = worker_named("closed", 4, 60000);
	struct took t, none;

	CHECK(add_session(s, 8, "", 1) == 0 && queue_run(s, 8, 1) == 0 && queue_run(s, 8, 2) == 0);
	CHECK(take(s, &a, &t) == 1);
	sleep_ms(20);
	/* Whatever its time to live: somebody is at work in it. */
	CHECK(!session_of(s, 8).is_expired && !begin_sweep(s, 8));
	CHECK(store_set_state(s, session_id(8), STORE_STOPPED, NULL) == 0);
	CHECK(take(s, &a, &none) == 0 && run_state(s, "8-2") == STORE_CANCELLED);
	CHECK(run_state(s, "8-1") == STORE_RUNNING);
	CHECK(end(s, &t, 0) == 0 && run_state(s, "8-1") == STORE_ENDED);
	CHECK(store_set_state(s, session_id(8), STORE_OPEN, NULL) == 0);
	CHECK(queue_run(s, 8, 3) == 0 && take(s, &a, &t) == 1 && !t.is_new);
	CHECK(store_remove_session(s, session_id(8), NULL) == 0);
	CHECK(run_state(s, "8-3") == STORE_LOST && end(s, &t, 0) == -ESTALE);
}

static void test_lost(struct store *s)
{
	struct store_worker a = worker_named("lost-a", 4, 100);
	uint64_t count = 9;
	struct took t, next;

	CHECK(add_session(s, 9, "", 0) == 0 && queue_run(s, 9, 1) == 0 && take(s, &a, &t) == 1);
	CHECK(store_report_lost(s, &count, NULL) == 0 && count == 0);
	sleep_ms(200);
	CHECK(store_report_lost(s, &count, NULL) == 0 && count == 1);
	CHECK(store_report_lost(s, &count, NULL) == 0 && count == 0);
	CHECK(run_state(s, "9-1") == STORE_LOST && session_of(s, 9).running == 0);
	/* It comes back: not even it goes on where it was. */
	CHECK(store_renew_worker(s, &a, NULL) == 0);
	check_writes(s, &t, -ESTALE);
	CHECK(queue_run(s, 9, 2) == 0 && take(s, &a, &next) == 1);
	CHECK(next.is_new && next.is_left_open && next.session.token == 2);
	CHECK(store_remove_worker(s, "lost-a", NULL) == 0 && run_state(s, "9-2") == STORE_LOST);
	CHECK(end(s, &next, 0) == -ESTALE && session_of(s, 9).worker[0] == '\0');
}

static void test_saved(struct store *s)
{
	struct store_worker a = worker_named("saver", 4, 60000);
	size_t n = 3 << 20, size = 0;
	own_free char *big = malloc(n), *back = NULL;
	struct store_run x;
	struct took t;

	for (size_t i = 0; i < n; i++)
		big[i] = (char)(i * 31 >> 3);
	CHECK(add_session(s, 10, "", 0) == 0 && queue_run(s, 10, 1) == 0 && take(s, &a, &t) == 1);
	CHECK(store_load(s, session_id(10), &back, &size, NULL) == -ENOENT && !back);
	CHECK(store_save(s, session_id(10), 1, "", 0, NULL) == 0);
	CHECK(store_load(s, session_id(10), &back, &size, NULL) == 0 && size == 0);
	free(take_ptr(back));
	CHECK(store_save(s, session_id(10), 1, big, n, NULL) == 0);
	CHECK(store_save(s, session_id(10), 0, "x", 1, NULL) == -ESTALE);
	CHECK(store_save(s, session_id(10), 2, "x", 1, NULL) == -ESTALE);
	CHECK(store_save(s, session_id(10), 1, big, STORE_MAX_SAVED + 1, NULL) == -EFBIG);
	CHECK(store_load(s, session_id(10), &back, &size, NULL) == 0);
	CHECK(size == n && !memcmp(back, big, n));
	/* Of what was printed, the end. */
	x = t.run;
	x.state = STORE_FAILED;
	x.out = big;
	x.out_size = n;
	CHECK(store_end_run(s, &x, NULL) == 0);
	x = (struct store_run){ 0 };
	CHECK(store_find_run(s, "10-1", &x, NULL) == 0 && x.state == STORE_FAILED);
	CHECK(x.out_size == STORE_MAX_OUTPUT);
	CHECK(x.out && !memcmp(x.out, big + n - STORE_MAX_OUTPUT, STORE_MAX_OUTPUT));
	store_run_done(&x);
	CHECK(store_remove_session(s, session_id(10), NULL) == 0);
	free(take_ptr(back));
	CHECK(store_load(s, session_id(10), &back, &size, NULL) == -ENOENT);
}

/* Rows of runs go with their age or number, once their session is gone and they have ended. */
static void test_pruned(struct store *s)
{
	struct store_worker a = worker_named("pruner", 4, 60000);
	own(store_run) struct store_run x = { 0 };
	struct took t;
	uint64_t count = 9;

	CHECK(store_renew_worker(s, &a, NULL) == 0);
	CHECK(add_session(s, 70, "", 0) == 0 && add_session(s, 71, "", 0) == 0);
	CHECK(queue_run(s, 70, 1) == 0 && take(s, &a, &t) == 1 && end(s, &t, 0) == 0);
	CHECK(queue_run(s, 71, 1) == 0 && take(s, &a, &t) == 1 && end(s, &t, 0) == 0);
	CHECK(queue_run(s, 71, 2) == 0);
	CHECK(store_remove_session(s, session_id(70), NULL) == 0);
	/* No limit; none that is above one. */
	CHECK(store_prune_runs(s, 0, 0, &count, NULL) == 0 && count == 0);
	CHECK(store_prune_runs(s, 3600000, 1000000, &count, NULL) == 0 && count == 0);
	CHECK(store_find_run(s, "70-1", &x, NULL) == 0);
	sleep_ms(20);
	CHECK(store_prune_runs(s, 1, 0, &count, NULL) == 0 && count >= 1);
	CHECK(store_find_run(s, "70-1", &x, NULL) == -ENOENT);
	/* Whose session is there stays, ended or not. */
	CHECK(run_state(s, "71-1") == STORE_ENDED && run_state(s, "71-2") == STORE_QUEUED);
	CHECK(store_remove_session(s, session_id(71), NULL) == 0);
	CHECK(store_prune_runs(s, 0, 1, &count, NULL) == 0 && count == 1);
	CHECK(store_find_run(s, "71-1", &x, NULL) == -ENOENT);
	CHECK(run_state(s, "71-2") == STORE_CANCELLED);
}

int main(int argc, char **argv)
{
	own_store struct store *s = argc == 2 ? open_store(argv[1]) : NULL;

	if (!s)
		return 2;
	test_one_after_the_other(s);
	test_result(s);
	test_given_back(s);
	test_over(s);
	test_slept(s);
	test_full(s);
	test_elsewhere(s);
	test_closed(s);
	test_lost(s);
	test_saved(s);
	test_pruned(s);
	return check_report();
}
