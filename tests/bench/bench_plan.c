/*
 * bench_plan - how long it takes from the bytes of a spec to the digest of a plan, and to look at
 * the host. Prints one JSON object a line: {"what": …, "median_us": …, "p95_us": …}.
 *
 *   bench_plan FULL_EXAMPLE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "plan/plan.h"

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void report(const char *what, double *us, size_t n, size_t bytes)
{
	qsort(us, n, sizeof(us[0]), compare);
	printf("{\"what\": \"%s\", \"median_us\": %.1f, \"p95_us\": %.1f, \"runs\": %zu, "
	       "\"bytes\": %zu}\n",
		what, us[n / 2], us[n * 95 / 100], n, bytes);
}

/* Bytes to plan to digest, once. Ends the program where it fails: then nothing is measured. */
static void plan_once(const struct host *h, const char *bytes, size_t n)
{
	own_free struct plan *p = NULL;
	char digest[SHA256_HEX_SIZE];
	struct err e = { 0 };
	struct spec s;

	spec_init(&s);
	spec_add_file(&s, "bench", bytes, n, true);
	if (!spec_settle(&s) || plan_build(&s, h, &p, NULL, &e) < 0 || plan_digest(p, digest) < 0) {
		own(buf) struct buf said = { .max = 1 << 16 };

		diags_print(&s.diags, &said, false);
		fprintf(stderr, "bench: not planned: %s\n%s", e.text, buf_text(&said));
		exit(1);
	}
	spec_done(&s);
}

#define RUNS 300

static void measure(const char *what, const struct host *h, const char *bytes, size_t n)
{
	double us[RUNS];

	for (size_t i = 0; i < RUNS; i++) {
		double start = now_us();

		plan_once(h, bytes, n);
		us[i] = now_us() - start;
	}
	report(what, us, RUNS, n);
}

/* A spec with so many binds, and ten times as many destinations. */
static void print_large(struct buf *out, unsigned binds)
{
	buf_puts(out, "version: 1\nbinds:\n");
	for (unsigned i = 0; i < binds; i++)
		buf_printf(out, "- /d/%u:/data/%u\n", i, i);
	buf_puts(out, "network:\n mode: allowlist\n allow:\n");
	for (unsigned i = 0; i < binds * 10; i++)
		buf_printf(out, " - h%u.eu:443\n", i);
}

static void measure_probe(void)
{
	double us[RUNS];
	struct host h;

	for (size_t i = 0; i < RUNS; i++) {
		double start = now_us();

		host_probe(&h, NULL);
		us[i] = now_us() - start;
	}
	report("host", us, RUNS, 0);
}

int main(int argc, char **argv)
{
	static const unsigned sizes[] = { 10, 100, 1000 };
	own_free char *bytes = NULL;
	struct err e = { 0 };
	struct host h;
	size_t n = 0;

	if (argc != 2 || file_read_path(argv[1], YAML_MAX_SIZE, &bytes, &n) < 0 ||
		host_probe(&h, &e) < 0) {
		fprintf(stderr, "bench: say where the full example is (%s)\n", e.text);
		return 2;
	}
	measure("full", &h, bytes, n);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		own(buf) struct buf large = { .max = YAML_MAX_SIZE };
		char what[32];

		print_large(&large, sizes[i]);
		snprintf(what, sizeof(what), "large-%u", sizes[i]);
		measure(what, &h, buf_text(&large), large.len);
	}
	measure_probe();
	return 0;
}
