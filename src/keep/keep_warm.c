/*
 * keep_warm - cages that are ready before anybody needs them.
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
#include "keep/keep_inside.h"

#define WORDS_SIZE ((size_t)4 << 20)
#define GATE_NS    ((uint64_t)60000000000)

struct keep_warm {
	struct keeper k;
	struct keep_request q; /* while it waits */
	struct record record;  /* the same */
	struct plan *plan;     /* a copy of ours */
	char *words;           /* shared: environment, arguments, and their texts */
	struct tail unused;    /* until there is one */
	uint64_t made_ns;
	bool is_used;
};

/* --- which plan --- */

/* Does anything of it stand for the project, beside what is awaited? */
static bool names_project(const struct plan_op *op)
{
	if (op->kind == PLAN_PROJECT || op->kind == PLAN_ENV)
		return false;
	return op->a_root == PLAN_ROOT_PROJECT || op->b_root == PLAN_ROOT_PROJECT;
}

static bool can_wait(const struct keep_request *q)
{
	const struct plan *p = q->plan;
	const char *profile = "";

	if (!plan_find(p, PLAN_AWAIT, NULL) || q->tty != KEEP_TTY_NEVER || q->cast || q->times)
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

/* How many operations there are before the words of the command, which come last. */
static uint32_t count_wall(const struct plan *p)
{
	uint32_t n = p->op_count;

	while (n && plan_ops(p)[n - 1].kind == PLAN_ARGUMENT)
		n--;
	return n;
}

static bool is_same_wall(const struct plan *a, const struct plan *b)
{
	uint32_t n = count_wall(a);

	if (a->engine != b->engine || n != count_wall(b))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!plan_is_same_op(a, &plan_ops(a)[i], b, &plan_ops(b)[i]))
			return false;
	return true;
}

bool keep_warm_is_for(const struct keep_warm *w, const struct plan *p)
{
	return !w->is_used && is_same_wall(w->plan, p);
}

/* What the gate knows of the host's name servers is from when it was made. */
static bool is_too_old(const struct keep_warm *w)
{
	return plan_find(w->plan, PLAN_NETWORK, "allowlist") && clock_ns() - w->made_ns > GATE_NS;
}

bool keep_warm_waits(const struct keep_warm *w)
{
	struct pollfd end = { .fd = w->k.pidfd, .events = POLLIN };

	return poll(&end, 1, 0) == 0 && !is_too_old(w) &&
	       keep_sources_are_current(&w->k.sources, &w->k.start);
}

/* --- made --- */

/* The first process finds its words here, once there are some. */
static int make_words(struct keep_warm *w, struct err *e)
{
	const int flags = MAP_SHARED | MAP_ANONYMOUS;
	struct cage_start *start = &w->k.start;
	int r;

	/* cppcheck-suppress invalidFunctionArg ; -1 is what mmap(2) asks for here */
	w->words = mmap(NULL, WORDS_SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (w->words == MAP_FAILED) {
		w->words = NULL;
		return err_set(e, ERR_SYS, ENOMEM, "cannot make a warm cage: out of memory");
	}
	/* The preflight's, which are the plan's alone. */
	r = keep_words_make(&w->k.words, start, e);
	start->own_variables = w->k.words.own_variables;
	start->environment = (char **)(void *)w->words;
	start->arguments = start->environment + w->plan->op_count + 1;
	return r;
}

static int make(struct keep_warm *w, struct err *e)
{
	struct keeper *k = &w->k;
	int r = record_make_run(NULL, w->record.run, e);

	if (r == 0)
		r = keep_begin_start(k, e);
	k->start.is_warm = true;
	if (r == 0)
		r = make_words(w, e);
	if (r == 0)
		r = keep_sources_make(&k->sources, &k->start, k->q, e);
	if (r == 0)
		r = keep_stdio_open(&k->stdio, k->q, &k->terminal, &k->start.ids, e);
	if (r == 0)
		r = keep_limits_make(k, e);
	if (r == 0)
		r = keep_gate_make(k, e);
	if (r == 0)
		r = keep_notify_make(k, e);
	if (r == 0)
		r = keep_watch_open(k, e);
	k->start.sources = k->sources.items;
	if (r == 0)
		r = keep_spawn(k, e);
	return r == 0 ? keep_look_prepare(&k->look, &k->start, &k->sources, e) : r;
}

int keep_warm_make(const struct keep_request *q, struct keep_warm **ret, struct err *e)
{
	struct keep_warm *w;
	int r;

	if (!can_wait(q))
		return -EOPNOTSUPP;
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(e, ERR_SYS, ENOMEM, "cannot make a warm cage: out of memory");
	tail_init(&w->unused, 0);
	w->made_ns = clock_ns();
	w->q = *q;
	w->q.workspace = -1;
	w->q.project = "";
	w->q.git = NULL;
	w->q.warm = NULL;
	w->q.log = NULL;
	w->q.printed[0] = w->q.printed[1] = &w->unused;
	w->plan = malloc(q->plan->size);
	keep_init(&w->k, &w->q, &w->record);
	if (!w->plan) {
		r = err_set(e, ERR_SYS, ENOMEM, "cannot make a warm cage: out of memory");
	} else {
		memcpy(w->plan, q->plan, q->plan->size);
		w->q.plan = w->record.plan = w->plan;
		r = make(w, e);
	}
	if (r == 0)
		*ret = w;
	else
		keep_warm_free(w);
	return r;
}

void keep_warm_free(struct keep_warm *w)
{
	struct err e;

	if (!w)
		return;
	if (!w->is_used) {
		keep_kill(&w->k);
		cgroup_kill(&w->k.group);
		keep_gate_end(&w->k);
		/* As after a run: what hangs is in there still, and a later run removes it. */
		if (keep_reap(&w->k, NULL) == 0)
			(void)cgroup_remove(&w->k.group, &e);
		keep_release(&w->k);
	}
	if (w->words)
		munmap(w->words, WORDS_SIZE);
	free(w->plan);
	free(w);
}

/* --- used --- */

/* Copies words to where the first process looks for them; false: they do not fit. */
static bool put_words(struct keep_warm *w, char *const *from, char **to, char **at)
{
	for (; *from; from++) {
		size_t n = strlen(*from) + 1;

		if (n > (size_t)(w->words + WORDS_SIZE - *at))
			return false;
		memcpy(*at, *from, n);
		*to++ = *at;
		*at += n;
	}
	*to = NULL;
	return true;
}

static bool put_all_words(struct keep_warm *w, const struct keep_words *words)
{
	char **environment = (char **)(void *)w->words;
	char **arguments = environment + w->plan->op_count + 1;
	size_t count = 0;
	char *at;

	while (words->arguments[count])
		count++;
	at = (char *)(arguments + count + 1);
	return at < w->words + WORDS_SIZE && put_words(w, words->environment, environment, &at) &&
	       put_words(w, words->arguments, arguments, &at);
}

/* What a cage of this plan has had to go without was found out when it was made. */
static void take_notes(const struct record *from, struct record *to)
{
	memcpy(to->notes, from->notes, sizeof(to->notes));
	to->note_count = from->note_count;
}

struct keeper *keep_warm_use(
	struct keep_warm *w, const struct keep_request *q, struct record *record)
{
	struct cage_start start = w->k.start;
	struct keep_words words = { 0 };
	struct err e;
	bool fits;

	start.plan = q->plan;
	start.project = q->project;
	start.run = record->session ? record->session : record->run;
	fits = keep_warm_is_for(w, q->plan) && q->printed[0] && q->printed[1] &&
	       keep_words_make(&words, &start, &e) == 0 && put_all_words(w, &words);
	keep_words_done(&words);
	if (!fits)
		return NULL;
	w->is_used = true;
	take_notes(&w->record, record);
	w->k.q = w->k.stdio.request = q;
	w->k.record = record;
	w->k.start.plan = q->plan;
	w->k.start.project = q->project;
	w->k.start.run = start.run;
	w->k.stdio.streams[1].tail = q->printed[0];
	w->k.stdio.streams[2].tail = q->printed[1];
	return &w->k;
}

int keep_warm_join(struct keep_warm *w, struct err *e)
{
	struct keeper *k = &w->k;
	int r = keep_sources_make_late(&k->sources, &k->start, k->q, e);

	k->record->failed_op = k->sources.unmapped;
	if (r == 0)
		r = keep_layer_make(k, e);
	if (r == 0)
		r = keep_share_send(k, e);
	if (r == 0)
		keep_disk_open(k);
	keep_set_timer(k, k->ready_ms);
	return r;
}
