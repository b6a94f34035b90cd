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
 * With --ledger each is started once more by that program (tests/bench/ledger.c), and a line has
 * what it printed and what the run left in the user's state:
 *
 *   {"what": "ledger-bawn-user", "images": [[…]], "left_files": …, "left_bytes": …}
 *
 * With --steps too, bawn and bwrap are started three times, as the last user, to count their
 * instructions: first those of the first process, then those of all others, then the calls. A null
 * ends what is not whole: stepping can outlast what a cage may take to be made.
 *
 *   bench_start [--rounds N] [--ledger PROGRAM [--steps]] BAWN
 */
#include <ftw.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
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

/* --- the ledger --- */

static uint64_t left_files, left_bytes;

static int count_file(const char *path, const struct stat *st, int type)
{
	(void)path;
	left_files += type == FTW_F;
	left_bytes += type == FTW_F ? (uint64_t)st->st_size : 0;
	return 0;
}

static void count_state(const struct bench_who *who)
{
	char *state = bench_print("%s/state", who->home);

	left_files = left_bytes = 0;
	ftw(state, count_file, 16);
	free(state);
}

/* One run of the ledger: its lines are printed as the elements of an array. */
static void count_once(const struct bench_command *c, const char *ledger, const char *steps)
{
	struct bench_command counted = *c;
	char *id = bench_print("%u", (unsigned)c->who->id);
	const char *words[] = { ledger, "--user", id, "--steps", steps };
	size_t n = steps ? 5 : 3;
	const char *separator = "";
	char line[1024];
	FILE *lines;
	int status;

	counted.n_args = 0;
	memset(counted.argv, 0, sizeof(counted.argv));
	for (size_t i = 0; i < n; i++)
		bench_add_arg(&counted, words[i]);
	bench_add_args(&counted, c->argv);
	lines = bench_open(&counted);
	while (fgets(line, sizeof(line), lines)) {
		line[strcspn(line, "\n")] = 0;
		printf("%s%s", separator, line);
		separator = ", ";
	}
	status = bench_close(lines);
	if (status != 0 && !steps)
		bench_fail_start(c, status);
	if (status != 0)
		printf("%snull", separator);
	free(id);
}

static void report_ledger(const struct bench_command *c, const char *ledger, bool is_stepped)
{
	static const char *const steps[] = { "first", "others", NULL };
	bool is_compared = strcmp(c->name, "bawn") == 0 || strcmp(c->name, "bwrap") == 0;
	uint64_t files = 0, bytes = 0;

	if (c->missing || (is_stepped && !is_compared))
		return;
	printf("{\"what\": \"ledger-%s-%s\", \"as\": \"%s\", \"images\": [", c->name, c->who->name,
		c->who->name);
	for (size_t i = is_stepped ? 0 : 2; i < COUNT_OF(steps); i++) {
		printf("[");
		count_state(c->who);
		files = left_files;
		bytes = left_bytes;
		count_once(c, ledger, steps[i]);
		printf(steps[i] ? "], " : "]");
	}
	count_state(c->who);
	printf("], \"left_files\": %" PRIu64 ", \"left_bytes\": %" PRIu64 "}\n", left_files - files,
		left_bytes - bytes);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "rounds", required_argument, NULL, 'r' },
		{ "ledger", required_argument, NULL, 'l' }, { "steps", no_argument, NULL, 's' },
		{ 0 } };
	const char *ledger = NULL;
	bool is_stepped = false;
	struct bench b = { .rounds = 200 };
	struct bench_who users[2];
	const char *folder, *bawn;
	size_t n_users;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (option == 'l')
			ledger = optarg;
		else if (option == 's')
			is_stepped = true;
		else
			b.rounds = option == 'r' ? strtoul(optarg, NULL, 10) : 0;
	if (argc - optind != 1 || b.rounds == 0 || b.rounds > 1000000) {
		fputs("usage: bench_start [--rounds N] [--ledger PROGRAM [--steps]] BAWN\n",
			stderr);
		return 2;
	}
	folder = bench_make_folder();
	bawn = bench_copy_program(folder, argv[optind]);
	n_users = bench_make_users(folder, users);
	for (size_t i = is_stepped ? n_users - 1 : 0; i < n_users; i++)
		add_commands(&b, &users[i], bawn);
	measure(&b);
	for (size_t i = 0; i < b.n; i++)
		report(&b.commands[i]);
	for (size_t i = 0; ledger && i < b.n; i++)
		report_ledger(&b.commands[i], ledger, is_stepped);
	return 0;
}
