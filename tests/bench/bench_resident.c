/*
 * bench_resident - runs in a session by a process that stays, as a worker's runners do: /bin/true
 * in a cage that waits, beside posix_spawn of the same; then so many as two of them can do, beside
 * two loops of bwrap. Prints one JSON object a line:
 *
 *   {"what": "resident-user", "median_us": …, "p95_us": …}     until its end is known
 *   {"what": "signed-user", …}                                 until its record is signed
 *   {"what": "spawn-user", …}                                  posix_spawn and wait
 *   {"what": "rate-user", "resident_per_second": …, "bwrap_loop_per_second": …, "bwrap_per_second":
 * …}
 *
 *   {"what": "idle-user", "sessions": …, "kb_each": …}         memory of sessions that wait,
 * mounted
 *
 *   bench_resident [--count N] [--idle N]
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "bench_tools.h"
#include "cli/cli_run.h"
#include "keeper/keeper.h"
#include "run/run_session.h"
#include "session/folder/session.h"

#define JOBS     2
#define PAUSE_US 2000 /* between two runs, in which the next cage is made */

/* What a process that stays has. */
struct resident {
	struct store_session session;
	struct run_job job;
	struct run_pool pool;
	int hold; /* what keeps its session mounted */
	struct tail printed[2];
	double done_us;
	char line[4096]; /* what ps shows */
};

/* Shared with who measures. */
struct figures {
	double resident[100000], signed_by[100000], spawn[100000];
};

static void note_done(void *of, struct run_result *result)
{
	struct resident *r = of;

	(void)result;
	r->done_us = bench_now_us();
}

/* The spec of a session about which nothing is said. */
static char *plain_spec(const char *project)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };
	struct run_place place;
	struct cli cli = { 0 };
	struct spec spec;

	if (chdir(project) < 0 || cli_load_spec(&cli, &spec, &place) != CLI_OK)
		bench_fail("cannot make a spec");
	spec_print_canonical(&spec, &out);
	spec_done(&spec);
	return bench_print("%s", buf_text(&out));
}

static void open_session(struct resident *r, const struct bench_who *who, int number)
{
	static const char *const command[] = { "/bin/true" };
	static const struct cli quiet = { .is_quiet = true };
	static struct cli_printer told;
	static struct run_sink sink;
	static const struct run_request request = { .command = command, .command_count = 1 };
	const char *root = bench_print("%s/sessions-%d", who->home, number);
	struct err e = { 0 };

	sink = cli_sink(&told, &quiet);
	memset(r, 0, sizeof(*r));
	r->hold = -1;
	if (mkdir(root, 0700) < 0 || session_make_id(r->session.id, &e) < 0)
		bench_fail("cannot make a session: %s", strerror(errno));
	r->session.workspace = 1;
	r->session.project = bench_print("%s", who->project);
	r->session.spec = plain_spec(who->project);
	r->job = (struct run_job){ .session = &r->session,
		.root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.request = &request,
		.command_line = r->line,
		.command_line_size = sizeof(r->line),
		.sink = &sink,
		.pool = &r->pool,
		.hold = &r->hold,
		.printed = { &r->printed[0], &r->printed[1] },
		.done = note_done,
		.of = r };
	if (session_make_folder(r->job.root, r->session.id, r->session.spec, &e) < 0)
		bench_fail("cannot make a session: %s", e.text);
}

/* One run: until its end is known, and until it is signed. */
static double run_once(struct resident *r, double *ret_signed)
{
	struct run_result result;
	double start = bench_now_us();

	tail_init(&r->printed[0], 4096);
	tail_init(&r->printed[1], 4096);
	run_in_session(&r->job, &result);
	if (result.status != 0)
		bench_fail("a run ended with %d: %s", result.status, result.error.text);
	buf_done(&result.record);
	tail_done(&r->printed[0]);
	tail_done(&r->printed[1]);
	*ret_signed = r->done_us - start;
	return (double)result.end_ns / 1000;
}

static double spawn_once(const struct bench_who *who)
{
	static char command[] = "/bin/true";
	char *const argv[] = { command, NULL };
	double start = bench_now_us();
	int status;
	pid_t pid;

	if (posix_spawn(&pid, command, NULL, NULL, argv, who->env) != 0)
		bench_fail("cannot start /bin/true");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return bench_now_us() - start;
}

/* --- as the user --- */

static void become(const struct bench_who *who)
{
	for (size_t i = 0; who->env[i]; i++)
		putenv(who->env[i]);
	if (getuid() == 0 && who->id != 0 &&
		(setgroups(0, NULL) < 0 || setresgid(who->id, who->id, who->id) < 0 ||
			setresuid(who->id, who->id, who->id) < 0))
		bench_fail("cannot become %s", who->name);
	/* As it is after a start, which this one had as somebody else. */
	if (prctl(PR_SET_DUMPABLE, 1) < 0)
		bench_fail("cannot become %s", who->name);
}

static void be_latency(const struct bench_who *who, size_t count, struct figures *f)
{
	struct resident r;
	double unused;

	become(who);
	open_session(&r, who, JOBS);
	/* The first has no cage that waits, and mounts the workspace. */
	run_once(&r, &unused);
	for (size_t i = 0; i < count; i++) {
		usleep(PAUSE_US);
		f->resident[i] = run_once(&r, &f->signed_by[i]);
		usleep(PAUSE_US);
		f->spawn[i] = spawn_once(who);
	}
	run_pool_done(&r.pool);
	_exit(0);
}

static void be_rate(const struct bench_who *who, int number, size_t count)
{
	struct resident r;
	double unused;

	become(who);
	open_session(&r, who, number);
	for (size_t i = 0; i < count; i++)
		run_once(&r, &unused);
	run_pool_done(&r.pool);
	_exit(0);
}

/* --- sessions that nobody uses just now --- */

/* What a process has to itself, and its part of what it shares; in kB, or 0 if it is not ours. */
static long ask_memory(const char *pid, uid_t uid)
{
	char path[64], line[256];
	long kb = 0;
	struct stat st;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (!fgets(line, sizeof(line), file) || strcmp(line, "bawn-workspace\n") != 0)
		line[0] = '\0';
	fclose(file);
	snprintf(path, sizeof(path), "/proc/%.16s/smaps_rollup", pid);
	file = line[0] && stat(path, &st) == 0 && st.st_uid == uid ? fopen(path, "re") : NULL;
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, "Pss:", 4) == 0)
			kb = strtol(line + 4, NULL, 10);
	if (file)
		fclose(file);
	return kb;
}

static long sum_memory(uid_t uid)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	long kb = 0;

	while (proc && (entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			kb += ask_memory(entry->d_name, uid);
	if (proc)
		closedir(proc);
	return kb;
}

static void be_idle(const struct bench_who *who, size_t count)
{
	long before;
	double unused;

	become(who);
	before = sum_memory(getuid());
	for (size_t i = 0; i < count; i++) {
		struct resident r;

		open_session(&r, who, 1000 + (int)i);
		run_once(&r, &unused);
		/* It stays mounted until this process ends. */
		if (r.hold < 0)
			bench_fail("a session is not held");
		run_pool_done(&r.pool);
		close(r.job.root);
	}
	printf("{\"what\": \"idle-%s\", \"sessions\": %zu, \"kb_each\": %.1f}\n", who->name, count,
		(double)(sum_memory(getuid()) - before) / (double)count);
	fflush(stdout);
	_exit(0);
}

static void await(void)
{
	int status = 0;

	while (waitpid(-1, &status, 0) < 0)
		if (errno != EINTR)
			bench_fail("cannot wait: %s", strerror(errno));
	if (status != 0)
		bench_fail("a process that stays ended with %d", status);
}

/* --- measuring --- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void report(const char *what, const struct bench_who *who, double *us, size_t n)
{
	qsort(us, n, sizeof(*us), compare);
	printf("{\"what\": \"%s-%s\", \"median_us\": %.1f, \"p95_us\": %.1f}\n", what, who->name,
		us[n / 2], us[n * 95 / 100]);
}

static void measure_latency(const struct bench_who *who, size_t count, struct figures *f)
{
	if (fork() == 0)
		be_latency(who, count, f);
	await();
	report("resident", who, f->resident, count);
	report("signed", who, f->signed_by, count);
	report("spawn", who, f->spawn, count);
}

static double rate_of_bwrap(struct bench_command *c, size_t count, size_t jobs)
{
	double start = bench_now_us();
	size_t started = 0;

	for (size_t ended = 0; ended < count; ended++) {
		for (; started < count && started - ended < jobs; started++)
			bench_spawn(c);
		await();
	}
	return (double)count * 1e6 / (bench_now_us() - start);
}

static void measure_rate(const struct bench_who *who, size_t count)
{
	struct bench_command bwrap;
	double start, ours, loop = 0, both = 0;

	bench_make_bwrap(&bwrap, who);
	bench_warm_up(&bwrap, 3);
	if (!bwrap.missing) {
		loop = rate_of_bwrap(&bwrap, count, 1);
		both = rate_of_bwrap(&bwrap, count, JOBS);
	}
	start = bench_now_us();
	fflush(stdout);
	for (int i = 0; i < JOBS; i++)
		if (fork() == 0)
			be_rate(who, i, count / JOBS);
	for (int i = 0; i < JOBS; i++)
		await();
	ours = (double)count * 1e6 / (bench_now_us() - start);
	printf("{\"what\": \"rate-%s\", \"resident_per_second\": %.1f, "
	       "\"bwrap_loop_per_second\": %.1f, \"bwrap_per_second\": %.1f}\n",
		who->name, ours, loop, both);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "count", required_argument, NULL, 'c' },
		{ "idle", required_argument, NULL, 'i' }, { 0 } };
	struct bench_who users[2];
	struct figures *f =
		mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	size_t count = 500, idle = 500, n_users;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		*(option == 'c' ? &count : &idle) = strtoul(optarg, NULL, 10);
	if (argc != optind || count == 0 || count > 100000 || f == MAP_FAILED) {
		fputs("usage: bench_resident [--count N] [--idle N]\n", stderr);
		return 2;
	}
	n_users = bench_make_users(bench_make_folder(), users);
	for (size_t i = 0; i < n_users; i++) {
		fflush(stdout);
		measure_latency(&users[i], count, f);
		fflush(stdout);
		measure_rate(&users[i], count);
		fflush(stdout);
		if (fork() == 0)
			be_idle(&users[i], idle);
		await();
	}
	return 0;
}
