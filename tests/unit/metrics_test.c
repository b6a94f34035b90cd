/* What a worker counts, as Prometheus reads it; and a file of it that is never half written. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "session/metrics/metrics.h"

static char printed[METRICS_MAX_SIZE + 1];

static const char *print(const struct metrics *m)
{
	own(buf) struct buf out = { .max = METRICS_MAX_SIZE };

	metrics_print(m, &out);
	CHECK(!out.failed);
	snprintf(printed, sizeof(printed), "%s", buf_text(&out));
	return printed;
}

/* The value of a series as it is printed; "absent" without it. Borrowed until the next call. */
static const char *value(const struct metrics *m, const char *series)
{
	static char text[64];
	const char *line = print(m);
	size_t n = strlen(series);

	for (; *line; line += strcspn(line, "\n") + 1)
		if (str_starts(line, series) && line[n] == ' ') {
			snprintf(text, sizeof(text), "%.*s", (int)strcspn(line + n + 1, "\n"),
				line + n + 1);
			return text;
		}
	return "absent";
}

static void test_zero(void)
{
	static const char *const series[] = { "bawn_runs_total{result=\"refused\"}",
		"bawn_runs_total{result=\"exited\"}", "bawn_runs_total{result=\"signaled\"}",
		"bawn_runs_total{result=\"timed_out\"}", "bawn_runs_total{result=\"cut_off\"}",
		"bawn_runs_total{result=\"broken\"}", "bawn_runs_total{result=\"interrupted\"}",
		"bawn_runs_total{result=\"failed\"}", "bawn_runs_total{result=\"lost\"}",
		"bawn_refusals_total{type=\"refused\"}", "bawn_refusals_total{type=\"net_denied\"}",
		"bawn_refusals_total{type=\"name_denied\"}",
		"bawn_refusals_total{type=\"syscall_denied\"}",
		"bawn_refusals_total{type=\"write_denied\"}",
		"bawn_refusals_total{type=\"syscalls_untold\"}",
		"bawn_refusals_total{type=\"limit_hit\"}",
		"bawn_start_seconds_bucket{le=\"0.00025\"}", "bawn_start_seconds_bucket{le=\"10\"}",
		"bawn_start_seconds_bucket{le=\"+Inf\"}", "bawn_start_seconds_count",
		"bawn_sweeps_total", "bawn_sessions_swept_total", "bawn_sweep_failures_total",
		"bawn_leases_lost_total", "bawn_pool_hits_total", "bawn_pool_misses_total",
		"bawn_sessions", "bawn_workers", "bawn_queued_runs", "bawn_queued_oldest_seconds" };
	const struct metrics none = { 0 };

	for (size_t i = 0; i < COUNT_OF(series); i++)
		if (!str_eq(value(&none, series[i]), "0"))
			CHECK_STR(series[i], "0");
	CHECK_STR(value(&none, "bawn_start_seconds_sum"), "0.000000000");
	CHECK_STR(value(&none, "bawn_build_info{version=\"" BAWN_VERSION "\"}"), "1");
	CHECK(str_ends(print(&none), "\nbawn_queued_oldest_seconds 0\n"));
}

static void test_starts(void)
{
	static const struct {
		uint64_t ns;
		const char *bucket, *before;
	} rows[] = {
		{ 1, "0.00025", NULL },
		{ 250000, "0.00025", NULL },
		{ 250001, "0.0005", "0.00025" },
		{ 1000000, "0.001", "0.0005" },
		{ 24999999, "0.025", "0.01" },
		{ 9999999999, "10", "5" },
		{ 10000000000, "10", "5" },
		{ 10000000001, "+Inf", "10" },
		{ UINT64_MAX, "+Inf", "10" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct metrics m = { 0 };
		char series[64];

		metrics_count_run(&m, metrics_result_of("exited"), rows[i].ns);
		snprintf(series, sizeof(series), "bawn_start_seconds_bucket{le=\"%s\"}",
			rows[i].bucket);
		CHECK_STR(value(&m, series), "1");
		CHECK_STR(value(&m, "bawn_start_seconds_bucket{le=\"+Inf\"}"), "1");
		CHECK_STR(value(&m, "bawn_start_seconds_count"), "1");
		snprintf(series, sizeof(series), "bawn_start_seconds_bucket{le=\"%s\"}",
			rows[i].before);
		CHECK_STR(value(&m, series), rows[i].before ? "0" : "absent");
	}
}

static void test_runs(void)
{
	struct metrics m = { 0 };

	metrics_count_run(&m, metrics_result_of("exited"), 1500000);
	metrics_count_run(&m, metrics_result_of("exited"), 2000000500);
	metrics_count_run(&m, metrics_result_of("timed_out"), 3000000);
	metrics_count_run(&m, metrics_result_of("refused"), 0);
	metrics_count_run(&m, metrics_result_of("lost"), 0);
	metrics_count_run(&m, metrics_result_of("no such word"), 0);
	CHECK_STR(value(&m, "bawn_runs_total{result=\"exited\"}"), "2");
	CHECK_STR(value(&m, "bawn_runs_total{result=\"timed_out\"}"), "1");
	CHECK_STR(value(&m, "bawn_runs_total{result=\"refused\"}"), "1");
	CHECK_STR(value(&m, "bawn_runs_total{result=\"lost\"}"), "1");
	CHECK_STR(value(&m, "bawn_runs_total{result=\"failed\"}"), "1");
	CHECK_STR(value(&m, "bawn_refusals_total{type=\"refused\"}"), "1");
	CHECK_STR(value(&m, "bawn_start_seconds_count"), "3");
	CHECK_STR(value(&m, "bawn_start_seconds_sum"), "2.004500500");
	CHECK_STR(value(&m, "bawn_start_seconds_bucket{le=\"0.001\"}"), "0");
	CHECK_STR(value(&m, "bawn_start_seconds_bucket{le=\"0.0025\"}"), "1");
	CHECK_STR(value(&m, "bawn_start_seconds_bucket{le=\"0.005\"}"), "2");
	CHECK_STR(value(&m, "bawn_start_seconds_bucket{le=\"1\"}"), "2");
	CHECK_STR(value(&m, "bawn_start_seconds_bucket{le=\"2.5\"}"), "3");
}

static void test_record(void)
{
	struct wire_decision decisions[] = {
		{ .kind = WIRE_NET_ALLOWED, .times = 100 },
		{ .kind = WIRE_NET_DENIED, .times = 2 },
		{ .kind = WIRE_NET_FAILED, .times = 100 },
		{ .kind = WIRE_NAME_DENIED, .times = 3 },
		{ .kind = WIRE_NET_DENIED, .times = 5 },
	};
	static struct record r;
	struct metrics m = { 0 };

	r.outcome = RECORD_SIGNALED;
	r.start_ns = 700000;
	r.decisions = decisions;
	r.decision_count = 5;
	r.denials[0] = (struct record_denial){ .error = 1, .times = 11 };
	r.denials[1] = (struct record_denial){ .path = ".git/config", .times = 13 };
	r.denial_count = 2;
	r.denials_untold = 17;
	r.reached[PLAN_LIMITS_MEMORY] = 900;
	r.reached[PLAN_LIMITS_PIDS] = 1;
	metrics_count_record(&m, &r);
	CHECK_STR(value(&m, "bawn_runs_total{result=\"signaled\"}"), "1");
	CHECK_STR(value(&m, "bawn_start_seconds_bucket{le=\"0.001\"}"), "1");
	CHECK_STR(value(&m, "bawn_refusals_total{type=\"refused\"}"), "0");
	CHECK_STR(value(&m, "bawn_refusals_total{type=\"net_denied\"}"), "7");
	CHECK_STR(value(&m, "bawn_refusals_total{type=\"name_denied\"}"), "3");
	CHECK_STR(value(&m, "bawn_refusals_total{type=\"syscall_denied\"}"), "11");
	CHECK_STR(value(&m, "bawn_refusals_total{type=\"write_denied\"}"), "13");
	CHECK_STR(value(&m, "bawn_refusals_total{type=\"syscalls_untold\"}"), "17");
	CHECK_STR(value(&m, "bawn_refusals_total{type=\"limit_hit\"}"), "2");
	/* One that was refused has not started, whatever time that took. */
	r = (struct record){ .outcome = RECORD_REFUSED, .start_ns = 5 };
	metrics_count_record(&m, &r);
	CHECK_STR(value(&m, "bawn_start_seconds_count"), "1");
	CHECK_STR(value(&m, "bawn_refusals_total{type=\"refused\"}"), "1");
}

/* Every counter is added, and what there is now is not. */
static void test_add(void)
{
	struct metrics m = { 0 }, once;
	uint64_t numbers[sizeof(m) / sizeof(uint64_t)];
	size_t count = COUNT_OF(numbers);

	for (size_t i = 0; i < count; i++)
		numbers[i] = i + 1;
	memcpy(&once, numbers, sizeof(once));
	m.sessions = 77;
	m.workers = 78;
	m.queued = 79;
	m.oldest_s = 80;
	metrics_add(&m, &once);
	metrics_add(&m, &once);
	CHECK(m.sessions == 77 && m.workers == 78 && m.queued == 79 && m.oldest_s == 80);
	m.sessions = 2 * once.sessions;
	m.workers = 2 * once.workers;
	m.queued = 2 * once.queued;
	m.oldest_s = 2 * once.oldest_s;
	memcpy(numbers, &m, sizeof(m));
	for (size_t i = 0; i < count; i++)
		CHECK(numbers[i] == 2 * (i + 1));
}

/* --- files --- */

static char place[] = "/tmp/bawn-metrics-XXXXXX";

static const char *at(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", place, name);
	return path;
}

static size_t count_entries(void)
{
	own_fd int fd = file_open(place, O_RDONLY | O_DIRECTORY);
	struct file_entries list = { .fd = fd };
	size_t n = 0;

	while (file_next_entry(&list))
		n++;
	return n - 2;
}

static void test_file(void)
{
	struct metrics m = { .sweeps = 5 };
	own_free char *bytes = NULL;
	struct err e = { 0 };
	struct stat st;
	size_t n = 0;

	umask(022);
	CHECK(metrics_write(&m, at("bawn.prom"), &e) == 0);
	m.sweeps = 6;
	CHECK(metrics_write(&m, at("bawn.prom"), &e) == 0);
	CHECK(file_read_path(at("bawn.prom"), METRICS_MAX_SIZE, &bytes, &n) == 0);
	CHECK_STR(bytes, print(&m));
	CHECK(stat(at("bawn.prom"), &st) == 0 && (st.st_mode & 0777) == 0644);
	CHECK(count_entries() == 1);
}

static void test_file_refused(void)
{
	const struct metrics m = { 0 };
	struct err e = { 0 };
	char path[256];

	CHECK(metrics_write(&m, at("missing/bawn.prom"), &e) == -ENOENT);
	CHECK(strstr(e.text, "cannot write the metrics to '/tmp/bawn-metrics-"));
	CHECK(mkfifo(at("pipe"), 0600) == 0);
	CHECK(metrics_write(&m, at("pipe"), &e) == -EEXIST);
	CHECK(str_ends(e.text, "it is there, and is not a plain file"));
	CHECK(metrics_write(&m, place, &e) == -EEXIST);
	/* A link is not followed to what it names. */
	snprintf(path, sizeof(path), "%s", at("bawn.prom"));
	CHECK(symlink(path, at("link")) == 0);
	CHECK(metrics_write(&m, at("link"), &e) == -EEXIST);
	/* What somebody left under the name of the draft does no harm. */
	snprintf(path, sizeof(path), "%s/bawn.prom.%ld.tmp", place, (long)getpid());
	CHECK(symlink("/nonexistent/target", path) == 0);
	CHECK(metrics_write(&m, at("bawn.prom"), &e) == 0);
	unlink(at("pipe"));
	unlink(at("link"));
	CHECK(count_entries() == 1);
}

/* Who reads while others write has one of them, and the whole of it. */
static void test_file_is_whole(void)
{
	pid_t writers[2];

	for (size_t k = 0; k < 2; k++) {
		writers[k] = fork();
		if (writers[k] == 0) {
			struct metrics m = { 0 };

			for (;;) {
				m.sweeps = m.workers = m.workers ? 0 : UINT64_MAX;
				metrics_write(&m, at("bawn.prom"), NULL);
			}
		}
	}
	for (int i = 0; i < 3000; i++) {
		struct metrics m = { 0 };
		own_free char *bytes = NULL;
		size_t n = 0;

		CHECK(file_read_path(at("bawn.prom"), METRICS_MAX_SIZE, &bytes, &n) == 0);
		if (bytes && strstr(bytes, "bawn_sweeps_total 0") == NULL)
			m.sweeps = m.workers = UINT64_MAX;
		if (!bytes || strcmp(bytes, print(&m)) != 0)
			CHECK_STR(bytes, print(&m));
	}
	for (size_t k = 0; k < 2; k++)
		if (writers[k] > 0) {
			kill(writers[k], SIGKILL);
			CHECK(waitpid(writers[k], NULL, 0) == writers[k]);
			snprintf(printed, sizeof(printed), "%s/bawn.prom.%ld.tmp", place,
				(long)writers[k]);
			unlink(printed);
		}
}

int main(void)
{
	test_zero();
	test_starts();
	test_runs();
	test_record();
	test_add();
	CHECK(mkdtemp(place) != NULL);
	test_file();
	test_file_refused();
	test_file_is_whole();
	unlink(at("bawn.prom"));
	CHECK(rmdir(place) == 0);
	return check_report();
}
