/* Records: what is printed of a run made by hand, and where it is kept. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "fake_host.h"
#include "is_json.h"
#include "make_spec.h"
#include "plan/plan.h"
#include "proof/record/record.h"

static struct plan *plan;

/* A record of a run of `plan` in which everything held. */
static struct record make_record(void)
{
	struct record r = { .run = "20260102-030405-0a0b0c0d",
		.plan = plan,
		.outcome = RECORD_EXITED,
		.status = 3,
		.began = { 1000000000, 5000 },
		.ended = { 1000000001, 999999999 },
		.start_ns = 1999,
		.run_ns = 2000000 };

	memset(r.plan_digest, 'a', SHA256_HEX_SIZE - 1);
	memset(r.filter_digest, 'f', SHA256_HEX_SIZE - 1);
	for (int g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		r.observations[g] = (struct record_observation){ RECORD_OUTSIDE, true, "seen" };
	return r;
}

/* What is printed, which is always one line of JSON. Borrowed until the next call. */
static const char *print(const struct record *r)
{
	static struct buf out;

	buf_done(&out);
	buf_init(&out, (size_t)1 << 20);
	record_print(r, &out);
	CHECK(!out.failed && is_json(buf_text(&out)));
	CHECK(out.len && !strchr(buf_text(&out), '\n'));
	return buf_text(&out);
}

static bool has(const char *text, const char *part)
{
	bool is_there = strstr(text, part) != NULL;

	if (!is_there)
		printf("'%s' is not in:\n%s", part, text);
	return is_there;
}

static void test_head(void)
{
	struct record r = make_record();
	const char *text = print(&r);

	CHECK(str_starts(text, "{\"version\":2,\"run\":\"20260102-030405-0a0b0c0d\",\"began\":\""));
	CHECK(has(text, "\"name\":\"one\",\"engine\":\"native\",\"level\":\"hardened\""));
	CHECK(has(text, "\"plan_sha256\":\"aaaaaaaa"));
	CHECK(has(text, "\"filter_sha256\":\"ffffffff"));
	CHECK(has(text, plan->spec_digest));
	/* Microseconds, cut and not rounded into the next second. */
	CHECK(has(text, "\"began\":\"2001-09-09T01:46:40.000005000Z\""));
	CHECK(has(text, "\"ended\":\"2001-09-09T01:46:41.999999999Z\""));
	CHECK(has(text, "\"start_us\":1,\"run_us\":2000,"));
	/* What goes without saying is not said. */
	CHECK(!strstr(text, "null") && !strstr(text, "\"skipped") && !strstr(text, "\"image"));
	CHECK(!strstr(text, "in_chain") && !strstr(text, "degraded") && !strstr(text, "lease"));
	memcpy(r.kernel, "6.1.2-x", 8);
	CHECK(has(print(&r), "\"kernel\":\"6.1.2-x\",\"landlock_abi\":4,"));
}

static void test_outcomes(void)
{
	static const struct {
		enum record_outcome outcome;
		const char *part, *never;
	} rows[] = {
		{ RECORD_REFUSED, "\"outcome\":\"refused\",\"ended\"", "\"status\"" },
		{ RECORD_EXITED, "\"outcome\":\"exited\",\"status\":3,\"ended\"", "\"signal\"" },
		{ RECORD_SIGNALED, "\"outcome\":\"signaled\",\"signal\":3,\"ended\"",
			"\"status\"" },
		{ RECORD_TIMED_OUT, "\"outcome\":\"timed_out\",\"ended\"", "\"status\"" },
		{ RECORD_BROKEN, "\"outcome\":\"broken\",\"ended\"", "\"status\"" },
	};
	struct record r = make_record();

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		r.outcome = rows[i].outcome;
		CHECK(has(print(&r), rows[i].part));
		CHECK(!strstr(print(&r), rows[i].never));
	}
	err_set(&r.error, ERR_SYS, EIO, "a \"sentence\"\nwith\x01 things");
	CHECK(has(print(&r), "\"error\":\"a \\\"sentence\\\"\\nwith\\u0001 things\""));
}

static void test_guarantees(void)
{
	struct record r = make_record();
	const char *text = print(&r);

	CHECK(has(text, "\"guarantees\":{\"must\":{\"outside\":[\"fs.root\",\"fs.reads\","));
	CHECK(has(text, "\"may\":{\"outside\":[\"groups\","));
	CHECK(has(text, "\"declared\":{\"fs.project\":\"captured\",") && has(text, "\"seen\":{}}"));
	/* What was not asked for is not in it. */
	CHECK(!strstr(text, "\"net.allowlist\"") && !strstr(text, "\"fs.protect\""));
	r.observations[PLAN_FS_ROOT].holds = false;
	CHECK(has(print(&r), "\"missing\":{\"fs.root\":\"outside\"}"));
	CHECK(has(print(&r), "\"seen\":{\"fs.root\":\"seen\"}}"));
	/* Nobody looked, so it does not hold, whatever was written there. */
	r.observations[PLAN_FS_ROOT] = (struct record_observation){ RECORD_UNSEEN, true, "" };
	CHECK(has(print(&r), "\"missing\":{\"fs.root\":\"none\"}") &&
		has(print(&r), "\"seen\":{}}"));
	r.observations[PLAN_IPC].vantage = RECORD_KEEPER;
	r.observations[PLAN_UTS].vantage = RECORD_INSIDE;
	CHECK(has(print(&r), "\"keeper\":[\"ipc\"],\"inside\":[\"uts\"],"));
	r.observations[PLAN_DEV].holds = false;
	/* A name of the cage's choosing is text and nothing else. */
	memcpy(r.observations[PLAN_DEV].seen, "\",\"holds\":true,\x7f\xff", 18);
	CHECK(has(print(&r), "\"seen\":{\"dev\":\"\\\",\\\"holds\\\":true,"));
}

static void test_notes(void)
{
	struct record r = make_record();
	uint32_t op = 0;

	for (uint32_t i = 0; i < plan->op_count; i++)
		if (plan_ops(plan)[i].kind == PLAN_DROP)
			op = i;
	record_note(&r, op, "it \"could\" not");
	CHECK(has(print(&r), "\"skipped\":[{\"op\":\"drop\",\"a\":\"new-privileges\",\"b\":\"\","
			     "\"why\":\"it \\\"could\\\" not\"}],\"skipped_count\":1}"));
	/* More than are kept are counted all the same. */
	for (int i = 0; i < 2 * RECORD_MAX_NOTES; i++)
		record_note(&r, op, "why");
	CHECK(has(print(&r), "\"skipped_count\":33}"));
}

/* --- the network --- */

static void test_decisions(void)
{
	struct wire_decision rows[] = {
		{ .kind = WIRE_NET_DENIED,
			.reason = WIRE_BECAUSE_PORT,
			.protocol = WIRE_TCP,
			.port = 22,
			.name = "github.com",
			.times = 3 },
		{ .kind = WIRE_NET_ALLOWED,
			.port = 443,
			.name = "pip.test",
			.other = "192.0.2.7",
			.times = 2,
			.bytes_out = 10,
			.bytes_in = UINT64_MAX },
		{ .kind = WIRE_NAME_DENIED,
			.reason = WIRE_BECAUSE_NAME,
			.protocol = WIRE_UDP,
			.name = "a\"b\\c",
			.times = 1 },
		{ .kind = WIRE_NET_DENIED,
			.reason = WIRE_BECAUSE_RESERVED,
			.port = 80,
			.protocol = WIRE_HTTP,
			.name = "inner.example",
			.other = "10.0.0.1",
			.times = 1 },
		{ .kind = WIRE_PUBLISHED,
			.protocol = WIRE_TCP,
			.port = 8080,
			.name = "::1",
			.times = 1 },
	};
	struct record r = make_record();

	CHECK(!strstr(print(&r), "\"events\""));
	r.decisions = rows;
	r.decision_count = COUNT_OF(rows);
	CHECK(has(print(&r),
		"\"events\":[{\"type\":\"net_denied\",\"name\":\"github.com\",\"port\":22,"
		"\"protocol\":\"tcp\",\"reason\":\"port\",\"times\":3,\"text\":\"github.com:22 is "
		"not in network.allow, which has the name with another port\"},"));
	/* A count that another process made up is still a number, and not a negative one. */
	CHECK(has(print(&r), "},{\"type\":\"net_allowed\",\"name\":\"pip.test\",\"port\":443,"
			     "\"protocol\":\"tls\",\"reason\":\"allowed\","
			     "\"address\":\"192.0.2.7\",\"times\":2,\"bytes_out\":10,"
			     "\"bytes_in\":9223372036854775807,"));
	/* No port and no protocol: nothing was connected to. */
	CHECK(has(print(&r), "},{\"type\":\"name_denied\",\"name\":\"a\\\"b\\\\c\","
			     "\"reason\":\"name\",\"times\":1,\"text\":"));
	CHECK(has(print(&r), "\"reason\":\"reserved\",\"other\":\"10.0.0.1\",\"times\":1,"));
	CHECK(has(print(&r), "\"text\":\"[::1]:8080 leads into the cage\"}],"));
}

static void test_network_end(void)
{
	struct record r = make_record();

	r.decisions_untold = 7;
	CHECK(has(print(&r), "\"events\":[{\"type\":\"decisions_untold\",\"times\":7,"));
	err_set(&r.gate, ERR_SYS, EIO, "it \"ended\"");
	CHECK(has(print(&r), "},{\"type\":\"network_closed\",\"text\":\"it \\\"ended\\\"\"}],"));
}

/* As many decisions as there may be, of the longest texts, are a record all the same. */
static void test_many_decisions(void)
{
	struct wire_decision *rows = calloc(WIRE_MAX_ROWS, sizeof(*rows));
	own(buf) struct buf out = { .max = RECORD_MAX_SIZE };
	struct record r = make_record();

	CHECK(rows != NULL);
	for (size_t i = 0; rows && i < WIRE_MAX_ROWS; i++) {
		memset(rows[i].name, '"', WIRE_NAME_SIZE - 1);
		memset(rows[i].other, '\\', WIRE_NAME_SIZE - 1);
		rows[i].kind = WIRE_NET_ALLOWED;
		rows[i].reason = WIRE_BECAUSE_RESERVED;
		rows[i].port = 65535;
		rows[i].times = rows[i].bytes_in = rows[i].bytes_out = UINT64_MAX;
		CHECK(wire_is_decision(&rows[i]));
	}
	r.decisions = rows;
	r.decision_count = rows ? WIRE_MAX_ROWS : 0;
	record_print(&r, &out);
	CHECK(!out.failed && is_json(buf_text(&out)));
	free(rows);
}

/* A word for each reason, and another for each. */
static void test_reasons(void)
{
	for (size_t i = 0; i < WIRE_REASON_COUNT; i++) {
		CHECK(wire_reason_names[i] != NULL);
		for (size_t k = 0; k < i; k++)
			CHECK(!str_eq(wire_reason_names[i], wire_reason_names[k]));
	}
}

/* The same run is the same bytes. */
static void test_same(void)
{
	struct record r = make_record();
	own_free char *first = strdup(print(&r));

	CHECK_STR(print(&r), first);
}

/* --- where it is kept --- */

static char top[] = "/tmp/bawn-record-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	return remove(path);
}

static const char *below(const char *name)
{
	static char path[4][256];
	static unsigned turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[0]), "%s/%s", top, name);
	return path[turn];
}

static mode_t mode_of(const char *path)
{
	struct stat st = { 0 };

	CHECK(lstat(path, &st) == 0);
	return st.st_mode & 07777;
}

static void test_runs(void)
{
	char first[RECORD_RUN_SIZE], second[RECORD_RUN_SIZE];
	struct err e;

	const struct timespec early = { 1772420645, 1 }, late = { 1772420645, 999999999 };

	CHECK(record_make_run(NULL, first, &e) == 0 && record_make_run(NULL, second, &e) == 0);
	CHECK(strlen(first) == strlen("20260102-030405-0a0b0c0d"));
	CHECK(first[8] == '-' && first[15] == '-');
	CHECK(strspn(first, "0123456789abcdef-") == strlen(first));
	CHECK(strcmp(first, second) < 0);
	CHECK(record_make_run(&early, first, &e) == 0 && record_make_run(&late, second, &e) == 0);
	CHECK(strncmp(first, "20260302-030405-0000000", 23) == 0);
	CHECK(strncmp(second, "20260302-030405-ee6b27f", 23) == 0);
	CHECK(record_is_run(first, true) && record_is_run(second, true));
}

static int make_folder(const char *run, struct err *e)
{
	own_fd int state = record_open_state(NULL, true, e);

	return state < 0 ? state : record_make_folder(state, run, e);
}

/* Whatever they are called: names by chance are of older versions, and who was queued began later.
 */
static void test_order(void)
{
	static const struct {
		const char *run, *line;
	} runs[] = {
		{ "20260302-030405-ee6b27fc", ",\"time\":\"2026-03-02T03:04:05.000001Z\"" },
		{ "20260302-030405-00000001", ",\"time\":\"2026-03-02T03:04:05.000002Z\"" },
		{ "20260302-030404-ffffffff", ",\"time\":\"2026-03-02T03:04:05.000001Z\","
					      "\"began\":\"2026-03-02T03:04:05.000001999Z\"" },
		{ "20260302-030405-00000008", NULL },
		{ "20260302-030404-ee6b27fe", NULL },
		{ "20260302-030404-ee6b27f8", ",\"command\":\"\\\"began\\\":\"" },
	};
	const char *const wanted[] = { runs[1].run, runs[2].run, runs[0].run, runs[3].run,
		runs[4].run, runs[5].run };
	own_free struct record_run *found = NULL;
	own_fd int fd = -1;
	struct err e = { 0 };
	size_t count = 0;

	setenv("XDG_STATE_HOME", below("order"), 1);
	for (size_t i = 0; i < COUNT_OF(runs); i++) {
		own(buf) struct buf text = { .max = 1024 };
		own_fd int folder = make_folder(runs[i].run, &e);

		if (runs[i].line)
			buf_printf(&text, "{\"seq\":0%s}\n", runs[i].line);
		CHECK(!runs[i].line ||
			record_write_file(folder, LOG_RUN_FILE, &text, false, &e) == 0);
	}
	CHECK(mkdir(below("order/bawn/runs/of-nobody"), 0700) == 0);
	fd = record_open_runs(NULL, &e);
	CHECK(record_list_runs(fd, NULL, &found, &count) == 0 && count == 6);
	for (size_t i = 0; i < count; i++)
		CHECK_STR(found[i].id, wanted[i]);
}

/* Those of one session, by the first line alone: a command cannot say that it is another's. */
static void test_session(void)
{
	static const char *const lines[] = { ",\"session\":\"0a\"}\n", ",\"session\":\"0a0b\"}\n",
		"}\n{\"seq\":1,\"session\":\"0a\"}\n",
		",\"command\":\",\\\"session\\\":\\\"0a\\\"\"}\n" };
	own_free struct record_run *found = NULL;
	own_fd int fd = -1;
	struct err e = { 0 };
	size_t count = 0;

	setenv("XDG_STATE_HOME", below("session"), 1);
	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		own(buf) struct buf text = { .max = 1024 };
		char run[RECORD_RUN_SIZE];
		own_fd int folder = -1;

		snprintf(run, sizeof(run), "20260302-030405-0000000%zu", i);
		folder = make_folder(run, &e);
		buf_printf(&text, "{\"seq\":0%s", lines[i]);
		CHECK(record_write_file(folder, LOG_RUN_FILE, &text, false, &e) == 0);
	}
	fd = record_open_runs(NULL, &e);
	CHECK(record_list_runs(fd, "0a", &found, &count) == 0 && count == 1);
	CHECK_STR(found[0].id, "20260302-030405-00000000");
}

static void test_folder(void)
{
	own(buf) struct buf text = { .max = 1024 };
	own_fd int fd = -1, again = -1;
	struct err e = { 0 };
	struct stat st;

	setenv("XDG_STATE_HOME", below("deep/er/state"), 1);
	CHECK(record_open_state(NULL, false, &e) == -ENOENT);
	umask(0);
	fd = make_folder("run-1", &e);
	umask(022);
	CHECK_STR(e.text, "");
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK(mode_of(below("deep/er/state/bawn")) == 0700);
	CHECK(mode_of(below("deep/er/state/bawn/runs")) == 0700);
	CHECK(mode_of(below("deep/er/state/bawn/runs/run-1")) == 0700);
	buf_puts(&text, "{}\n");
	CHECK(record_write_file(fd, "record.json", &text, true, &e) == 0);
	CHECK(stat(below("deep/er/state/bawn/runs/run-1/record.json"), &st) == 0);
	CHECK(st.st_size == 3 && (st.st_mode & 07777) == 0600);
	CHECK(access(below("deep/er/state/bawn/runs/run-1/record.json.new"), F_OK) < 0);
	/* A run's name is used once. */
	again = make_folder("run-1", &e);
	CHECK(again < 0 && strstr(e.text, "cannot make a folder for run run-1"));
}

static void test_unusable_folders(void)
{
	struct err e = { 0 };

	setenv("XDG_STATE_HOME", below("file"), 1);
	CHECK(close(open(below("file"), O_CREAT | O_WRONLY, 0600)) == 0);
	CHECK(make_folder("run", &e) == -ENOTDIR);
	CHECK(mkdir(below("open"), 0755) == 0 && mkdir(below("open/bawn"), 0755) == 0);
	CHECK(chmod(below("open/bawn"), 0777) == 0);
	setenv("XDG_STATE_HOME", below("open"), 1);
	CHECK(make_folder("run", &e) < 0 && e.kind == ERR_REFUSED);
	CHECK(chmod(below("open/bawn"), 0700) == 0);
	/* Where runs would be is a link that somebody made. */
	CHECK(symlink(top, below("open/bawn/runs")) == 0);
	CHECK(make_folder("run", &e) < 0);
	CHECK(access(below("run"), F_OK) < 0);
}

/* Half a record is none: nothing is left where the whole was not written. */
static void test_half_written(void)
{
	own(buf) struct buf text = { .max = 4 };
	own_fd int folder = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err e = { 0 };

	buf_puts(&text, "longer than that");
	CHECK(text.failed);
	CHECK(record_write_file(folder, "half.json", &text, false, &e) == -ENOMEM);
	CHECK(access(below("half.json"), F_OK) < 0);
}

int main(void)
{
	static struct spec spec;
	struct host host;
	struct err e = { 0 };

	fake_host_init(&host);
	CHECK(make_spec(&spec, "version: 1\nname: one\ncommand: [ls]\n"));
	CHECK(plan_build(&spec, &host, &plan, NULL, &e) == 0);
	CHECK_STR(e.text, "");
	CHECK(mkdtemp(top) != NULL);
	if (plan) {
		test_head();
		test_outcomes();
		test_guarantees();
		test_notes();
		test_decisions();
		test_network_end();
		test_many_decisions();
		test_same();
	}
	test_reasons();
	test_runs();
	test_order();
	test_session();
	test_folder();
	test_unusable_folders();
	test_half_written();
	nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(plan);
	spec_done(&spec);
	return check_report();
}
