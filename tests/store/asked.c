/*
 * A store by hand, for the tests of what goes wrong: asked WHERE. Each line of its input is a
 * command, answered by one line: a result, and the sentence where there is an error.
 */
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/count.h"
#include "base/str.h"
#include "making.h"

static struct store *store;
static const char *where;
static struct took last; /* that was taken */

static unsigned number_of(const char *word)
{
	return (unsigned)strtoul(word, NULL, 10);
}

static int do_open(char **word, struct err *e)
{
	(void)word;
	store_close(store);
	store = NULL;
	return store_open(where, &store, e);
}

static int do_now(char **word, struct err *e)
{
	int64_t now;

	(void)word;
	return store_now(store, &now, e);
}

static int do_add(char **word, struct err *e)
{
	struct store_session x = { .workspace = 1 };
	char spec[] = "{}", project[] = "/p";

	snprintf(x.id, sizeof(x.id), "%s", session_id(number_of(word[0])));
	x.spec = spec;
	x.project = project;
	return store_add_session(store, &x, e);
}

/* SESSION NUMBER SIZE */
static int do_queue(char **word, struct err *e)
{
	size_t n = number_of(word[2]);
	own_free char *request = malloc(n + 1);
	struct store_run x = { .request = request };

	memset(request, 'x', n);
	request[n] = '\0';
	snprintf(x.id, sizeof(x.id), "%s-%s", word[0], word[1]);
	snprintf(x.session, sizeof(x.session), "%s", session_id(number_of(word[0])));
	return store_queue_run(store, &x, e);
}

static int do_take(char **word, struct err *e)
{
	struct store_worker w = worker_named(word[0], 1, 60000);
	own(store_taken) struct store_taken t = { 0 };
	int r = store_take_run(store, &w, &t, e);

	if (r > 0) {
		last = (struct took){ .run = t.run };
		last.run.request = last.run.error = last.run.record = NULL;
		last.run.out = last.run.err = NULL;
	}
	return r;
}

static int do_end(char **word, struct err *e)
{
	struct store_run x = last.run;

	(void)word;
	x.state = STORE_ENDED;
	return store_end_run(store, &x, e);
}

/* Prints a run's state as its result. */
static int do_state(char **word, struct err *e)
{
	own(store_run) struct store_run x = { 0 };
	int r = store_find_run(store, word[0], &x, e);

	return r < 0 ? r : (int)x.state;
}

static int do_listen(char **word, struct err *e)
{
	(void)word;
	return store_listen(store, e);
}

/* 1: something may have happened within half a second. */
static int do_wait(char **word, struct err *e)
{
	struct pollfd p = { store_wait_fd(store), POLLIN, 0 };

	(void)word;
	(void)e;
	return poll(&p, 1, 500);
}

static int do_hear(char **word, struct err *e)
{
	(void)word;
	return store_hear(store, e);
}

/* No file may be larger. */
static int do_limit(char **word, struct err *e)
{
	struct rlimit limit = { number_of(word[0]), RLIM_INFINITY };

	(void)e;
	signal(SIGXFSZ, SIG_IGN);
	return setrlimit(RLIMIT_FSIZE, &limit);
}

static const struct {
	const char *name;
	int (*run)(char **word, struct err *e);
} commands[] = {
	{ "open", do_open },
	{ "now", do_now },
	{ "add", do_add },
	{ "queue", do_queue },
	{ "take", do_take },
	{ "end", do_end },
	{ "state", do_state },
	{ "listen", do_listen },
	{ "wait", do_wait },
	{ "hear", do_hear },
	{ "limit", do_limit },
};

static void answer(char *line)
{
	char *word[8], none[] = "";
	struct err e = { 0 };
	size_t n = 0;
	int r = -ENOSYS;

	for (char *at = strtok(line, " \n"); at && n < 7; at = strtok(NULL, " \n"))
		word[n++] = at;
	for (size_t i = n; i < 8; i++)
		word[i] = none;
	for (size_t i = 0; i < COUNT_OF(commands); i++)
		if (str_eq(commands[i].name, word[0]))
			r = commands[i].run(word + 1, &e);
	printf("%d %s %s\n", r,
		r < 0            ? strerrorname_np(-r)
		: last.run.id[0] ? last.run.id
				 : "-",
		e.text);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[4096];

	if (argc != 2)
		return 2;
	where = argv[1];
	signal(SIGPIPE, SIG_IGN);
	while (fgets(line, sizeof(line), stdin))
		answer(line);
	store_close(store);
	return 0;
}
