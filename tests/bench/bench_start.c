/*
 * bench_start - how long it takes to start /bin/true plainly, in a cage of bawn, and in what else
 * this machine has. All are started in turn, in another order each round, so that noise hits all
 * alike. As root, everything is measured as root and as an ordinary user. Prints one JSON object
 * a line:
 *
 *   {"what": "start-bwrap-user", "command": "bwrap", "as": "user", "median_us": …, "p95_us": …,
 *    "min_us": …, "runs": …, "peak_kb": …}
 *   {"what": "start-runc-user", "command": "runc", "as": "user", "missing": "not installed"}
 *
 * peak_kb is the largest of the process started and of those it waited for. It begins with what
 * this program takes itself; "true" shows how much that is.
 *
 *   bench_start [--rounds N] BAWN
 */
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_tools.h"

#define MAX_COMMANDS 18
#define WARM_UPS     5

struct bench {
	struct bench_command commands[MAX_COMMANDS];
	size_t n;
	size_t rounds;
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void report(struct bench_command *c)
{
	const char *as = c->who->name;

	printf("{\"what\": \"start-%s-%s\", \"command\": \"%s\", \"as\": \"%s\", ", c->name, as,
		c->name, as);
	if (c->missing) {
		printf("\"missing\": \"%s\"}\n", c->missing);
		return;
	}
	qsort(c->us, c->n_us, sizeof(c->us[0]), compare);
	printf("\"median_us\": %.1f, \"p95_us\": %.1f, \"min_us\": %.1f, \"runs\": %zu, "
	       "\"peak_kb\": %ld}\n",
		c->us[c->n_us / 2], c->us[c->n_us * 95 / 100], c->us[0], c->n_us, c->peak_kb);
}

static void add_commands(struct bench *b, const struct bench_who *who, const char *bawn)
{
	bench_make_true(&b->commands[b->n++], who);
	bench_make_version(&b->commands[b->n++], who, bawn);
	bench_make_bawn(&b->commands[b->n++], who, bawn);
	bench_make_unlimited(&b->commands[b->n++], who, bawn);
	bench_make_bwrap(&b->commands[b->n++], who);
	bench_make_oci(&b->commands[b->n++], who, "crun");
	bench_make_oci(&b->commands[b->n++], who, "runc");
	bench_make_firejail(&b->commands[b->n++], who);
}

/* Always the same numbers: two runs of the bench do the same things in the same order. */
static uint32_t next_random(void)
{
	static uint32_t state = 2463534242;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

static void shuffle(size_t *order, size_t n)
{
	for (size_t i = n; i > 1; i--) {
		size_t other = next_random() % i, kept = order[i - 1];

		order[i - 1] = order[other];
		order[other] = kept;
	}
}

static void measure_once(struct bench_command *c)
{
	if (!c->missing)
		c->us[c->n_us++] = bench_start_once(c);
}

static void measure(struct bench *b)
{
	size_t order[MAX_COMMANDS];

	for (size_t i = 0; i < b->n; i++) {
		b->commands[i].us = bench_alloc(b->rounds, sizeof(double));
		order[i] = i;
		bench_warm_up(&b->commands[i], WARM_UPS);
	}
	for (size_t round = 0; round < b->rounds; round++) {
		shuffle(order, b->n);
		for (size_t i = 0; i < b->n; i++) {
			if (bench_is_stopped())
				bench_fail("stopped");
			measure_once(&b->commands[order[i]]);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "rounds", required_argument, NULL, 'r' },
		{ 0 } };
	struct bench b = { .rounds = 200 };
	struct bench_who users[2];
	const char *folder, *bawn;
	size_t n_users;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		b.rounds = option == 'r' ? strtoul(optarg, NULL, 10) : 0;
	if (argc - optind != 1 || b.rounds == 0 || b.rounds > 1000000) {
		fputs("usage: bench_start [--rounds N] BAWN\n", stderr);
		return 2;
	}
	folder = bench_make_folder();
	bawn = bench_copy_program(folder, argv[optind]);
	n_users = bench_make_users(folder, users);
	for (size_t i = 0; i < n_users; i++)
		add_commands(&b, &users[i], bawn);
	measure(&b);
	for (size_t i = 0; i < b.n; i++)
		report(&b.commands[i]);
	return 0;
}
