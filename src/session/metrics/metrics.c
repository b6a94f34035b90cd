#include "session/metrics/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"

/* Readers rely on this: names and labels never change, and every series exists from the start. */

static const char *const refusal_words[METRICS_REFUSAL_COUNT] = {
	[METRICS_REFUSED] = "refused",
	[METRICS_NET_DENIED] = "net_denied",
	[METRICS_NAME_DENIED] = "name_denied",
	[METRICS_SYSCALL_DENIED] = RECORD_DENIED,
	[METRICS_WRITE_DENIED] = RECORD_WRITE_DENIED,
	[METRICS_SYSCALLS_UNTOLD] = RECORD_UNTOLD,
	[METRICS_LIMIT_HIT] = "limit_hit",
};

/* Most runs of a pool start below a millisecond, those of a cold cage within tens. */
static const struct {
	uint64_t ns;
	const char *seconds;
} buckets[METRICS_BUCKET_COUNT] = {
	{ 250000, "0.00025" },
	{ 500000, "0.0005" },
	{ 1000000, "0.001" },
	{ 2500000, "0.0025" },
	{ 5000000, "0.005" },
	{ 10000000, "0.01" },
	{ 25000000, "0.025" },
	{ 50000000, "0.05" },
	{ 100000000, "0.1" },
	{ 250000000, "0.25" },
	{ 500000000, "0.5" },
	{ 1000000000, "1" },
	{ 2500000000, "2.5" },
	{ 5000000000, "5" },
	{ 10000000000, "10" },
	{ UINT64_MAX, "+Inf" },
};

/* The metrics without labels. */
#define OF(member) offsetof(struct metrics, member)

static const struct {
	const char *name, *type, *help;
	size_t at;
} singles[] = {
	{ "bawn_sweeps_total", "counter", "Times that expired sessions were looked for.",
		OF(sweeps) },
	{ "bawn_sessions_swept_total", "counter", "Expired sessions that were removed.",
		OF(swept) },
	{ "bawn_sweep_failures_total", "counter", "Expired sessions that could not be removed.",
		OF(sweep_failures) },
	{ "bawn_leases_lost_total", "counter", "Leases on sessions that another worker took over.",
		OF(leases_lost) },
	{ "bawn_pool_hits_total", "counter", "Runs in a cage that was ready.", OF(pool_hits) },
	{ "bawn_pool_misses_total", "counter", "Runs for which no cage was ready.",
		OF(pool_misses) },
	{ "bawn_sessions", "gauge", "Sessions in the store, whoever has them.", OF(sessions) },
	{ "bawn_workers", "gauge", "Workers of the store that are alive.", OF(workers) },
	{ "bawn_queued_runs", "gauge", "Runs in the store that no worker has taken yet.",
		OF(queued) },
	{ "bawn_queued_oldest_seconds", "gauge", "How long the oldest of them has waited.",
		OF(oldest_s) },
};

static const char *result_word(enum metrics_result i)
{
	if (i < RECORD_OUTCOME_COUNT)
		return record_outcome_words[i];
	return i == METRICS_LOST ? "lost" : "failed";
}

enum metrics_result metrics_result_of(const char *word)
{
	enum metrics_result i = 0;

	while (i < METRICS_RESULT_COUNT && !str_eq(result_word(i), word))
		i++;
	return i < METRICS_RESULT_COUNT ? i : METRICS_FAILED;
}

void metrics_count_run(struct metrics *m, enum metrics_result result, uint64_t start_ns)
{
	size_t i = 0;

	m->runs[result]++;
	if (result == (enum metrics_result)RECORD_REFUSED)
		m->refusals[METRICS_REFUSED]++;
	if (!start_ns)
		return;
	while (start_ns > buckets[i].ns)
		i++;
	m->starts[i]++;
	m->start_ns += start_ns;
}

static void count_denials(struct metrics *m, const struct record *r)
{
	for (size_t i = 0; i < r->decision_count; i++) {
		const struct wire_decision *d = &r->decisions[i];

		if (d->kind == WIRE_NET_DENIED)
			m->refusals[METRICS_NET_DENIED] += d->times;
		if (d->kind == WIRE_NAME_DENIED)
			m->refusals[METRICS_NAME_DENIED] += d->times;
	}
	for (size_t i = 0; i < r->denial_count; i++) {
		const struct record_denial *d = &r->denials[i];

		m->refusals[*d->path ? METRICS_WRITE_DENIED : METRICS_SYSCALL_DENIED] += d->times;
	}
	m->refusals[METRICS_SYSCALLS_UNTOLD] += r->denials_untold;
}

void metrics_count_record(struct metrics *m, const struct record *r)
{
	bool has_run = r->outcome != RECORD_REFUSED;

	metrics_count_run(m, (enum metrics_result)r->outcome, has_run ? r->start_ns : 0);
	count_denials(m, r);
	for (size_t i = 0; i < PLAN_GUARANTEE_COUNT; i++)
		if (r->reached[i])
			m->refusals[METRICS_LIMIT_HIT]++;
}

void metrics_add(struct metrics *m, const struct metrics *other)
{
	for (size_t i = 0; i < METRICS_RESULT_COUNT; i++)
		m->runs[i] += other->runs[i];
	for (size_t i = 0; i < METRICS_REFUSAL_COUNT; i++)
		m->refusals[i] += other->refusals[i];
	for (size_t i = 0; i < METRICS_BUCKET_COUNT; i++)
		m->starts[i] += other->starts[i];
	m->start_ns += other->start_ns;
	m->sweeps += other->sweeps;
	m->swept += other->swept;
	m->sweep_failures += other->sweep_failures;
	m->leases_lost += other->leases_lost;
	m->pool_hits += other->pool_hits;
	m->pool_misses += other->pool_misses;
}

static void metrics_print_head(
	struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_starts(const struct metrics *m, struct buf *out)
{
	uint64_t n = 0;

	metrics_print_head(out, "bawn_start_seconds", "histogram",
		"Time from a run's request until its command was let go.");
	for (size_t i = 0; i < METRICS_BUCKET_COUNT; i++) {
		n += m->starts[i];
		buf_printf(out, "bawn_start_seconds_bucket{le=\"%s\"} %" PRIu64 "\n",
			buckets[i].seconds, n);
	}
	buf_printf(out, "bawn_start_seconds_sum %" PRIu64 ".%09" PRIu64 "\n",
		m->start_ns / 1000000000, m->start_ns % 1000000000);
	buf_printf(out, "bawn_start_seconds_count %" PRIu64 "\n", n);
}

void metrics_print(const struct metrics *m, struct buf *out)
{
	metrics_print_head(out, "bawn_build_info", "gauge", "Always 1; which bawn this is.");
	buf_printf(out, "bawn_build_info{version=\"%s\"} 1\n", BAWN_VERSION);
	metrics_print_head(out, "bawn_runs_total", "counter", "Runs that ended, by how they did.");
	for (enum metrics_result i = 0; i < METRICS_RESULT_COUNT; i++)
		buf_printf(out, "bawn_runs_total{result=\"%s\"} %" PRIu64 "\n", result_word(i),
			m->runs[i]);
	metrics_print_head(out, "bawn_refusals_total", "counter",
		"Runs, connections, names, system calls and writes that were refused, by type of event.");
	for (size_t i = 0; i < METRICS_REFUSAL_COUNT; i++)
		buf_printf(out, "bawn_refusals_total{type=\"%s\"} %" PRIu64 "\n", refusal_words[i],
			m->refusals[i]);
	print_starts(m, out);
	for (size_t i = 0; i < COUNT_OF(singles); i++) {
		const uint64_t *value =
			(const uint64_t *)(const void *)((const char *)m + singles[i].at);

		metrics_print_head(out, singles[i].name, singles[i].type, singles[i].help);
		buf_printf(out, "%s %" PRIu64 "\n", singles[i].name, *value);
	}
}

/* --- the file --- */

/*
 * metrics_write writes the file that --metrics names, and beside it, for a moment, a draft with our
 * process id in its name. It must not replace a device or a folder, or show half a file.
 */

static int write_fail(const char *path, int num, struct err *e)
{
	return err_sys(e, num, "cannot write the metrics to '%s'", path);
}

int metrics_write(const struct metrics *m, const char *path, struct err *e)
{
	own(buf) struct buf out = { .max = METRICS_MAX_SIZE };
	char draft[PATH_MAX];
	own_fd int fd = -1;
	struct stat st;
	int r;

	metrics_print(m, &out);
	if (out.failed)
		return write_fail(path, ENOMEM, e);
	/* As root, a name such as /dev/null would be a plain file from then on. */
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(e, ERR_USE, EEXIST,
			"cannot write the metrics to '%s': it is there, and is not a plain file",
			path);
	if (snprintf(draft, sizeof(draft), "%s.%ld.tmp", path, (long)getpid()) >=
		(int)sizeof(draft))
		return write_fail(path, ENAMETOOLONG, e);
	/* One may be left of somebody with our number, who was killed. */
	unlink(draft);
	fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return write_fail(path, errno, e);
	r = file_write_all(fd, out.data, out.len);
	if (r == 0 && rename(draft, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(draft);
	return r < 0 ? write_fail(path, -r, e) : 0;
}
