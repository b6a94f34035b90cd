/*
 * bench_record - how long it takes to write down what a run was, and to sign it, in a folder of
 * the caller's. Prints one JSON object a line: {"what": …, "median_us": …, "p95_us": …}.
 *
 *   bench_record FOLDER
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "plan/plan.h"
#include "proof/record/record.h"
#include "proof/sign/sign.h"

#define RUNS   300
#define EVENTS 1 /* a start says so many */

struct bench {
	int state, folder;
	struct record record;
	struct log log;
};

static noreturn void give_up(const struct err *e)
{
	fprintf(stderr, "bench: %s\n", e->text);
	exit(1);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void say_events(struct bench *b, struct err *e)
{
	for (int i = 0; i < EVENTS; i++) {
		record_print_guarantees(&b->record, true, log_begin(&b->log, "inspected"));
		log_end_of_run(&b->log);
	}
	if (log_write(&b->log) < 0)
		*e = b->log.failure;
}

static void begin(struct bench *b, struct err *e)
{
	char path[RECORD_RUN_SIZE + sizeof("unsigned/")];

	record_begin(b->state, b->folder, b->record.run, e);
	snprintf(path, sizeof(path), "unsigned/%s", b->record.run);
	unlinkat(b->state, path, 0);
}

/* What is said of a run, written like the record, and not signed: what any record costs. */
static void write_plainly(struct bench *b, struct err *e)
{
	own(buf) struct buf text = { .max = 2 * RECORD_MAX_SIZE };

	record_print(&b->record, &text);
	record_print_provenance(&b->record, &text);
	record_write_file(b->folder, "plain.json", &text, false, e);
}

static void sign(struct bench *b, bool is_synced, struct err *e)
{
	struct record_subject effects = { .name = "effects" };
	struct record_end end = {
		.subjects = &effects, .count = 1, .log = &b->log, .is_synced = is_synced
	};

	memset(effects.sha256, 'a', SHA256_HEX_SIZE - 1);
	record_sign(b->state, b->folder, &b->record, &end, NULL, e);
}

static void sign_quickly(struct bench *b, struct err *e)
{
	sign(b, false, e);
}

static void sign_safely(struct bench *b, struct err *e)
{
	sign(b, true, e);
}

static void measure(struct bench *b, const char *what, void (*work)(struct bench *b, struct err *e))
{
	double us[RUNS];

	for (size_t i = 0; i < RUNS; i++) {
		uint64_t start = clock_ns();
		struct err e = { 0 };

		work(b, &e);
		if (e.kind != ERR_NONE)
			give_up(&e);
		us[i] = (double)(clock_ns() - start) / 1e3;
	}
	qsort(us, RUNS, sizeof(us[0]), compare);
	printf("{\"what\": \"%s\", \"median_us\": %.1f, \"p95_us\": %.1f}\n", what, us[RUNS / 2],
		us[RUNS * 95 / 100]);
}

static void make_record(struct bench *b, struct plan **plan, struct err *e)
{
	struct host h;
	struct spec s;

	host_assume(&h, NULL);
	spec_init(&s);
	if (!spec_settle(&s) || plan_build(&s, &h, plan, NULL, e) < 0 ||
		record_make_run(NULL, b->record.run, e) < 0 ||
		plan_digest(*plan, b->record.plan_digest) < 0)
		give_up(e);
	spec_done(&s);
	memset(b->record.filter_digest, 'f', SHA256_HEX_SIZE - 1);
	b->record.plan = *plan;
	b->record.outcome = RECORD_EXITED;
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		b->record.observations[g] = (struct record_observation){ RECORD_OUTSIDE, true,
			"every mount is one of the plan's" };
}

int main(int argc, char **argv)
{
	own_free struct plan *plan = NULL;
	own(sign_key) struct sign_key key = { 0 };
	struct bench b = { .folder = -1 };
	struct err e = { .text = "say which folder" };

	b.state = argc == 2 ? file_open(argv[1], O_RDONLY | O_DIRECTORY) : -1;
	if (b.state < 0 || sign_make_key(b.state, false, &key, &e) < 0)
		give_up(&e);
	make_record(&b, &plan, &e);
	b.folder = record_make_folder(b.state, b.record.run, &e);
	log_init(&b.log, b.state, b.record.run, NULL);
	if (b.folder < 0 || log_open_chain(&b.log, b.folder, &e) < 0)
		give_up(&e);
	measure(&b, "begin", begin);
	measure(&b, "events", say_events);
	measure(&b, "plain", write_plainly);
	measure(&b, "sign", sign_quickly);
	measure(&b, "sync", sign_safely);
	log_done(&b.log);
	close(b.folder);
	close(b.state);
	return 0;
}
