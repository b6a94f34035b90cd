/*
 * keeper_warm - cages that are ready before anybody needs them.
 *
 * Runs as:  the keeper, between runs.
 * Leaves:   a cage in which nothing of any session is, waiting to be given one; used once.
 * Must not: use one for another plan than it was made for, but for the command.
 *
 * What a run is told comes late: its words lie in memory that is shared with the first process,
 * which has it at the same address, until it executes the command. The look from outside is that of
 * any run, and comes when the workspace is in its places.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/keeper_inside.h"

#define WORDS_SIZE ((size_t)4 << 20)
#define GATE_NS    ((uint64_t)60000000000)

struct keeper_warm {
	struct keeper_request q; /* while it waits */
	struct record record;    /* the same */
	struct plan *plan;       /* a copy of ours */
	uint64_t made_ns;
};

/* --- which plan --- */

/* Does anything of it stand for the project, beside what is awaited? */
static bool names_project(const struct plan_op *op)
{
	if (op->kind == PLAN_PROJECT || op->kind == PLAN_ENV)
		return false;
	return op->a_root == PLAN_ROOT_PROJECT || op->b_root == PLAN_ROOT_PROJECT;
}

static bool can_wait(const struct keeper_request *q)
{
	const struct plan *p = q->plan;
	const char *profile = "";

	if (!plan_find(p, PLAN_AWAIT, NULL) || q->tty != KEEPER_TTY_NEVER || q->cast || q->times)
		return false;
	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if (op->kind == PLAN_SYSCALLS)
			profile = plan_str(p, op->a);
		/* What another system's shell says has to wait for the look. */
		if (names_project(op) || plan_is_image(op))
			return false;
	}
	return filter_named(profile) != NULL;
}

/* True for what is each run's own: its words, and its time, which the keeper's clock is set to. */
static bool is_of_run(const struct plan *p, const struct plan_op *op)
{
	return op->kind == PLAN_ARGUMENT ||
	       (op->kind == PLAN_LIMIT && str_eq(plan_str(p, op->a), "limits.time"));
}

/* The first operation of the wall from `i` on. */
static uint32_t next_of_wall(const struct plan *p, uint32_t i)
{
	while (i < p->op_count && is_of_run(p, &plan_ops(p)[i]))
		i++;
	return i;
}

static bool is_same_wall(const struct plan *a, const struct plan *b)
{
	uint32_t i = next_of_wall(a, 0), j = next_of_wall(b, 0);

	if (a->engine != b->engine)
		return false;
	while (i < a->op_count && j < b->op_count &&
		plan_is_same_op(a, &plan_ops(a)[i], b, &plan_ops(b)[j])) {
		i = next_of_wall(a, i + 1);
		j = next_of_wall(b, j + 1);
	}
	return i == a->op_count && j == b->op_count;
}

bool keeper_warm_is_for(const struct keeper *k, const struct plan *p)
{
	return k->mode == KEEPER_WARMING && is_same_wall(k->warm->plan, p);
}

/* What the gate knows of the host's name servers is from when it was made. */
static bool is_too_old(const struct keeper_warm *w)
{
	return plan_find(w->plan, PLAN_NETWORK, "allowlist") && clock_ns() - w->made_ns > GATE_NS;
}

bool keeper_warm_waits(const struct keeper *k)
{
	struct pollfd end = { .fd = k->process.pidfd, .events = POLLIN };

	return poll(&end, 1, 0) == 0 && !is_too_old(k->warm) &&
	       keeper_sources_are_current(&k->sources, &k->start);
}

/* --- made --- */

/* The memory in which the first process finds its words, once there are some. */
static int warm_share_words(struct keeper *k, struct err *e)
{
	const int flags = MAP_SHARED | MAP_ANONYMOUS;
	struct cage_start *start = &k->start;
	/* cppcheck-suppress invalidFunctionArg ; -1 is what mmap(2) asks for here */
	char *shared = mmap(NULL, WORDS_SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (shared == MAP_FAILED)
		return err_set(e, ERR_SYS, ENOMEM, "cannot make a warm cage: out of memory");
	k->words.shared = shared;
	k->words.shared_size = WORDS_SIZE;
	start->environment = (char **)(void *)shared;
	start->arguments = start->environment + start->plan->op_count + 1;
	return 0;
}

/* What it is made with, until a run uses it. */
static void borrow_request(struct keeper_warm *w, const struct keeper_request *q)
{
	w->q = *q;
	w->q.mode = KEEPER_WARMING;
	w->q.plan = w->record.plan = w->plan;
	w->q.workspace = -1;
	w->q.folder = -1;
	w->q.caller = -1;
	w->q.project = "";
	w->q.git = NULL;
	w->q.warm = NULL;
	w->q.log = NULL;
}

static void warm_free(struct keeper_warm *w)
{
	if (w)
		free(w->plan);
	free(w);
}

int keeper_new_warm(struct keeper **ret, const struct keeper_request *q, struct err *e)
{
	struct keeper *k;
	struct keeper_warm *w;

	if (!can_wait(q))
		return -EOPNOTSUPP;
	k = malloc(sizeof(*k));
	w = calloc(1, sizeof(*w));
	if (w)
		w->plan = malloc(q->plan->size);
	if (!k || !w || !w->plan || record_make_run(NULL, w->record.run, e) < 0) {
		warm_free(w);
		free(k);
		return err_set(e, ERR_SYS, ENOMEM, "cannot make a warm cage: out of memory");
	}
	memcpy(w->plan, q->plan, q->plan->size);
	w->made_ns = clock_ns();
	borrow_request(w, q);
	keeper_init(k, &w->q, &w->record);
	k->warm = w;
	*ret = k;
	return 0;
}

/* --- used --- */

/* Copies words to where the first process looks for them; false: they do not fit. */
static bool put_words(char *shared, char *const *from, char **to, char **at)
{
	for (; *from; from++) {
		size_t n = strlen(*from) + 1;

		if (n > (size_t)(shared + WORDS_SIZE - *at))
			return false;
		memcpy(*at, *from, n);
		*to++ = *at;
		*at += n;
	}
	*to = NULL;
	return true;
}

static bool put_all_words(const struct keeper *k, const struct keeper_words *words)
{
	char *shared = k->words.shared;
	char **environment = (char **)(void *)shared;
	char **arguments = environment + k->warm->plan->op_count + 1;
	size_t count = 0;
	char *at;

	while (words->arguments[count])
		count++;
	at = (char *)(arguments + count + 1);
	return at < shared + WORDS_SIZE &&
	       put_words(shared, words->environment, environment, &at) &&
	       put_words(shared, words->arguments, arguments, &at);
}

/* What a cage of this plan has had to go without was found out when it was made. */
static void take_notes(const struct record *from, struct record *to)
{
	memcpy(to->notes, from->notes, sizeof(to->notes));
	to->note_count = from->note_count;
}

bool keeper_warm_use(struct keeper *k, const struct keeper_request *q, struct record *record)
{
	struct cage_start start = k->start;
	struct keeper_words words = { 0 };
	struct err e;
	bool fits;

	start.plan = q->plan;
	start.project = q->project;
	start.run = record->session ? record->session : record->run;
	fits = keeper_warm_is_for(k, q->plan) && q->tty == KEEPER_TTY_NEVER &&
	       keeper_words_make(&words, &start, &e) == 0 && put_all_words(k, &words);
	keeper_words_done(&words);
	if (!fits)
		return false;
	take_notes(&k->warm->record, record);
	k->mode = KEEPER_WARM;
	k->q = q;
	k->record = record;
	k->start.plan = q->plan;
	k->start.project = q->project;
	k->start.run = start.run;
	keeper_stdio_init(&k->stdio);
	return true;
}

static void keeper_warm_done(struct keeper *k)
{
	warm_free(k->warm);
	k->warm = NULL;
}

const struct keeper_part keeper_warm_part = {
	.take = { [KEEPER_OPEN] = warm_share_words },
	.done = keeper_warm_done,
};
