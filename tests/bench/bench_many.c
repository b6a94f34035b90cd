/*
 * bench_many - how many starts a second: one after the other, and two at a time. The tools take
 * turns in slices, so that noise hits both alike. Prints one JSON object a line:
 *
 *   {"what": "many-bawn-user-2", "command": "bawn", "as": "user", "jobs": 2, "count": 500,
 *    "per_second": …, "first_per_second": …, "last_per_second": …}
 *
 * The first and the last slice show whether starts get slower the more there have been.
 *
 *   bench_many [--count N] BAWN
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "bench_tools.h"

#define SLICE        50
#define MAX_COMMANDS 4
#define MAX_JOBS     2

/* What the starts of one command, so many at a time, have taken so far. */
struct tally {
	struct bench_command *command;
	unsigned jobs;
	size_t done;
	double us, first, last;
};

static void wait_for_one(const struct bench_command *c)
{
	int status = 0;

	while (waitpid(-1, &status, 0) < 0)
		if (errno != EINTR)
			bench_fail("cannot wait: %s", strerror(errno));
	if (status != 0)
		bench_fail_start(c, status);
	if (bench_is_stopped())
		bench_fail("stopped");
}

/* Keeps `jobs` running until n have ended. */
static void run_slice(struct tally *t, size_t n)
{
	double start = bench_now_us(), us;
	size_t started = 0;

	for (size_t ended = 0; ended < n; ended++) {
		while (started < n && started - ended < t->jobs) {
			bench_spawn(t->command);
			started++;
		}
		wait_for_one(t->command);
	}
	us = bench_now_us() - start;
	t->last = (double)n * 1e6 / us;
	if (t->done == 0)
		t->first = t->last;
	t->us += us;
	t->done += n;
}

static void report(const struct tally *t)
{
	const char *name = t->command->name, *as = t->command->who->name;

	printf("{\"what\": \"many-%s-%s-%u\", \"command\": \"%s\", \"as\": \"%s\", \"jobs\": %u, ",
		name, as, t->jobs, name, as, t->jobs);
	if (t->command->missing)
		printf("\"missing\": \"%s\"}\n", t->command->missing);
	else
		printf("\"count\": %zu, \"per_second\": %.1f, \"first_per_second\": %.1f, "
		       "\"last_per_second\": %.1f}\n",
			t->done, (double)t->done * 1e6 / t->us, t->first, t->last);
}

static void measure(struct bench_command *commands, size_t n, size_t count)
{
	struct tally tallies[MAX_COMMANDS * MAX_JOBS] = { 0 };
	size_t n_tallies = 0;

	for (size_t i = 0; i < n; i++) {
		bench_warm_up(&commands[i], 1);
		for (unsigned jobs = 1; jobs <= MAX_JOBS; jobs++)
			tallies[n_tallies++] =
				(struct tally){ .command = &commands[i], .jobs = jobs };
	}
	for (size_t done = 0; done < count; done += SLICE)
		for (size_t i = 0; i < n_tallies; i++)
			if (!tallies[i].command->missing)
				run_slice(&tallies[i], count - done < SLICE ? count - done : SLICE);
	for (size_t i = 0; i < n_tallies; i++)
		report(&tallies[i]);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "count", required_argument, NULL, 'c' }, { 0 } };
	struct bench_command commands[MAX_COMMANDS];
	struct bench_who users[2];
	size_t count = 500, n = 0, n_users;
	const char *folder, *bawn;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		count = option == 'c' ? strtoul(optarg, NULL, 10) : 0;
	if (argc - optind != 1 || count == 0 || count > 1000000) {
		fputs("usage: bench_many [--count N] BAWN\n", stderr);
		return 2;
	}
	folder = bench_make_folder();
	bawn = bench_copy_program(folder, argv[optind]);
	n_users = bench_make_users(folder, users);
	for (size_t i = 0; i < n_users; i++) {
		bench_make_bawn(&commands[n++], &users[i], bawn);
		bench_make_bwrap(&commands[n++], &users[i]);
	}
	measure(commands, n, count);
	return 0;
}
