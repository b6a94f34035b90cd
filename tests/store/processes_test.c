/*
 * Several processes at one store: processes_test WHERE. No run is done twice, none is forgotten,
 * and who was stopped past its lease writes nothing any more.
 */
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "making.h"

#define TAKERS      4
#define SESSIONS    12
#define RUNS        500
#define KILLED_RUNS 60

/* What all of them write down, in memory that they share. */
struct notes {
	int done[SESSIONS][RUNS]; /* how often */
	int last[SESSIONS];       /* the newest that was begun: they go up */
	int at_work[SESSIONS];    /* how many at one time */
	int mistakes;
	uint64_t token[SESSIONS];
};

static struct notes *notes;

/* Starts a process; the store is opened in it, not before. */
static pid_t start(int (*work)(const char *where, int number), const char *where, int number)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(work(where, number));
	return pid;
}

static bool has_ended_well(pid_t pid)
{
	int status = 0;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool wait_for_bell(struct store *s, int ms)
{
	struct pollfd p = { store_wait_fd(s), POLLIN, 0 };

	return poll(&p, 1, ms) > 0 && store_hear(s, NULL) == 0;
}

/* What a run's id says: "SESSION-NUMBER". */
static void read_id(const char *id, unsigned *session, unsigned *number)
{
	char *end;

	*session = (unsigned)strtoul(id, &end, 10);
	*number = (unsigned)strtoul(end + 1, NULL, 10);
}

static unsigned number_of(const struct took *t)
{
	unsigned session, number;

	read_id(t->run.id, &session, &number);
	return number;
}

static void note_mistake(const char *what, const struct took *t)
{
	printf("%s: run %s, token %llu\n", what, t->run.id, (unsigned long long)t->run.token);
	fflush(stdout);
	__atomic_add_fetch(&notes->mistakes, 1, __ATOMIC_SEQ_CST);
}

/* Does a run, and checks that nobody else does anything of its session. */
static int do_run(struct store *s, const struct took *t)
{
	unsigned session, number;

	read_id(t->run.id, &session, &number);
	if (__atomic_add_fetch(&notes->done[session][number], 1, __ATOMIC_SEQ_CST) != 1)
		note_mistake("taken twice", t);
	if (__atomic_add_fetch(&notes->at_work[session], 1, __ATOMIC_SEQ_CST) != 1)
		note_mistake("two at one time", t);
	if (__atomic_exchange_n(&notes->last[session], (int)number, __ATOMIC_SEQ_CST) > (int)number)
		note_mistake("out of turn", t);
	if (__atomic_exchange_n(&notes->token[session], t->run.token, __ATOMIC_SEQ_CST) >
		t->run.token)
		note_mistake("an older token", t);
	__atomic_sub_fetch(&notes->at_work[session], 1, __ATOMIC_SEQ_CST);
	return end(s, t, 0);
}

/* Takes what there is until nothing comes for a while; gives sessions back now and then. */
static int take_all(const char *where, int number)
{
	own_store struct store *s = open_store(where);
	struct store_worker w = worker_named("taker", 2, 60000);
	struct took t;
	int r = 1, count = 0;

	snprintf(w.name, sizeof(w.name), "taker%d", number);
	if (store_listen(s, NULL) < 0 || store_renew_worker(s, &w, NULL) < 0)
		return 1;
	while (r > 0 || wait_for_bell(s, 2000)) {
		r = take(s, &w, &t);
		if (r < 0 || (r > 0 && do_run(s, &t) < 0))
			return 2;
		if (r > 0 && ++count % 7 == 0 &&
			store_release(s, t.session.id, t.session.token, NULL) < 0)
			return 3;
	}
	return store_remove_worker(s, w.name, NULL) < 0;
}

static int queue_all(const char *where, int number)
{
	own_store struct store *s = open_store(where);

	for (unsigned i = 0; i < RUNS / 2; i++)
		if (queue_run(s, i % (SESSIONS / 2) + (unsigned)number * (SESSIONS / 2), i) < 0)
			return 1;
	return 0;
}

/* Two queue 500 runs while four take them, all having opened a store that was not there. */
static void test_many(const char *where)
{
	pid_t takers[TAKERS], queuers[2];
	int done = 0;

	for (int i = 0; i < TAKERS; i++)
		takers[i] = start(take_all, where, i);
	{
		own_store struct store *s = open_store(where);

		for (unsigned i = 0; i < SESSIONS; i++)
			CHECK(add_session(s, i, "", 0) == 0);
	}
	for (int i = 0; i < 2; i++)
		queuers[i] = start(queue_all, where, i);
	for (int i = 0; i < 2; i++)
		CHECK(has_ended_well(queuers[i]));
	for (int i = 0; i < TAKERS; i++)
		CHECK(has_ended_well(takers[i]));
	CHECK(notes->mistakes == 0);
	for (size_t i = 0; i < SESSIONS; i++)
		for (size_t k = 0; k < RUNS; k++)
			done += notes->done[i][k];
	CHECK(done == RUNS);
}

static int see_end(void *of, const struct store_run *x)
{
	*(int *)of += x->state == STORE_ENDED;
	return 0;
}

static void test_all_ended(const char *where)
{
	own_store struct store *s = open_store(where);
	int ended = 0;

	CHECK(store_each_run(s, NULL, see_end, &ended, NULL) == 0 && ended == RUNS);
	for (unsigned i = 0; i < SESSIONS; i++)
		CHECK(session_of(s, i).queued == 0 && session_of(s, i).running == 0);
}

/* Takes a run, stops itself, and tries everything when it is woken. */
static int sleep_and_write(const char *where, int number)
{
	own_store struct store *s = open_store(where);
	struct store_worker w = worker_named("sleeper", 1, 300);
	struct took t;

	(void)number;
	if (store_renew_worker(s, &w, NULL) < 0 || take(s, &w, &t) != 1)
		return 1;
	raise(SIGSTOP);
	if (store_renew_worker(s, &w, NULL) < 0)
		return 2;
	if (store_check_token(s, t.session.id, t.session.token, NULL) != -ESTALE ||
		store_save(s, t.session.id, t.session.token, "x", 1, NULL) != -ESTALE ||
		store_set_workspace(s, t.session.id, t.session.token, "p", 7, NULL) != -ESTALE)
		return 3;
	if (end(s, &t, 0) != -ESTALE ||
		store_release(s, t.session.id, t.session.token, NULL) != -ESTALE)
		return 4;
	return 0;
}

static void test_stopped(const char *where)
{
	own_store struct store *s = open_store(where);
	struct store_worker b = worker_named("successor", 1, 60000);
	struct took t = { 0 };
	int status = 0, tries = 0;
	pid_t pid;

	CHECK(add_session(s, 100, "", 0) == 0 && queue_run(s, 100, 1) == 0 &&
		queue_run(s, 100, 2) == 0);
	pid = start(sleep_and_write, where, 0);
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	CHECK(run_state(s, "100-1") == STORE_RUNNING);
	while (take(s, &b, &t) == 0 && tries++ < 100)
		sleep_ms(20);
	CHECK_STR(t.run.id, "100-2");
	CHECK(t.is_left_open && t.session.token == 2 && run_state(s, "100-1") == STORE_LOST);
	kill(pid, SIGCONT);
	CHECK(has_ended_well(pid));
	CHECK(run_state(s, "100-1") == STORE_LOST && run_state(s, "100-2") == STORE_RUNNING);
	CHECK(session_of(s, 100).workspace == 1);
	CHECK(end(s, &t, 0) == 0 && run_state(s, "100-2") == STORE_ENDED);
}

/* Takes runs of a second kind, slowly, until it is killed. */
static int take_slowly(const char *where, int number)
{
	own_store struct store *s = open_store(where);
	struct store_worker w = worker_named("mortal", 1, 150);
	struct took t;

	snprintf(w.name, sizeof(w.name), "mortal%d", number);
	for (;;) {
		if (store_renew_worker(s, &w, NULL) < 0 || take(s, &w, &t) < 0)
			return 1;
		if (t.run.id[0]) {
			__atomic_add_fetch(&notes->done[0][number_of(&t)], 1, __ATOMIC_SEQ_CST);
			sleep_ms(2);
			end(s, &t, 0);
		} else
			sleep_ms(5);
	}
}

struct ends {
	int ended, lost, others;
};

static int see_ends(void *of, const struct store_run *x)
{
	struct ends *ends = of;

	if (strncmp(x->session, "000001", 6) != 0 && strncmp(x->session, "000011", 6) != 0)
		return 0;
	if (x->state == STORE_ENDED)
		ends->ended++;
	else if (x->state == STORE_LOST)
		ends->lost++;
	else
		ends->others++;
	return 0;
}

/* Workers that are killed at any moment: every run ends once, or is lost. */
static void test_killed(const char *where)
{
	own_store struct store *s = open_store(where);
	struct ends ends = { 0 };
	uint64_t count;
	pid_t pids[3];

	memset(notes, 0, sizeof(*notes));
	for (unsigned i = 0; i < 2; i++)
		CHECK(add_session(s, 0x101 + i * 0x1000, "", 0) == 0);
	for (unsigned i = 0; i < KILLED_RUNS; i++)
		CHECK(queue_run(s, 0x101 + i % 2 * 0x1000, i) == 0);
	for (int i = 0; i < 3; i++)
		pids[i] = start(take_slowly, where, i);
	for (int i = 3; i < 60; i++) {
		sleep_ms(7);
		kill(pids[i % 3], SIGKILL);
		CHECK(waitpid(pids[i % 3], NULL, 0) == pids[i % 3]);
		pids[i % 3] = start(take_slowly, where, i);
	}
	for (int i = 0; i < 1000 && session_of(s, 0x101).queued + session_of(s, 0x1101).queued; i++)
		sleep_ms(20);
	for (int i = 0; i < 3; i++) {
		kill(pids[i], SIGKILL);
		CHECK(waitpid(pids[i], NULL, 0) == pids[i]);
	}
	sleep_ms(200);
	CHECK(store_report_lost(s, &count, NULL) == 0);
	CHECK(store_each_run(s, NULL, see_ends, &ends, NULL) == 0);
	printf("killed: %d ended, %d lost, %d others\n", ends.ended, ends.lost, ends.others);
	CHECK(ends.ended + ends.lost == KILLED_RUNS && ends.others == 0 && ends.ended > 0);
	for (size_t i = 0; i < KILLED_RUNS; i++)
		CHECK(notes->done[0][i] <= 1);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	notes = mmap(
		NULL, sizeof(*notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (notes == MAP_FAILED)
		return 2;
	test_many(argv[1]);
	test_all_ended(argv[1]);
	test_stopped(argv[1]);
	test_killed(argv[1]);
	return check_report();
}
