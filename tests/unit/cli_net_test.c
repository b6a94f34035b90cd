/* What is said of the network when a run has ended. */
#include <fcntl.h>
#include <sys/mman.h>

#include "base/own.h"
#include "check.h"
#include "cli/cli_run.h"

/* What goes to standard error. Borrowed until the next call. */
static const char *said(const struct record *r, bool is_quiet)
{
	static char text[8192];
	/* A plan without operations has its promises next. */
	static struct {
		struct plan head;
		struct plan_promise promises[PLAN_GUARANTEE_COUNT];
	} plan = { .head.promise_count = PLAN_GUARANTEE_COUNT };
	static struct run run;
	const struct cli cli = { .is_quiet = is_quiet };
	const struct err none = { 0 };
	struct cli_printer told;
	struct run_sink sink;
	own_fd int into = memfd_create("said", MFD_CLOEXEC), before = dup(STDERR_FILENO);
	ssize_t n;

	CHECK(into >= 0 && before >= 0 && dup2(into, STDERR_FILENO) >= 0);
	run.record = *r;
	run.record.plan = &plan.head;
	sink = cli_sink(&told, &cli);
	sink.ended(sink.of, &run, &none);
	dup2(before, STDERR_FILENO);
	n = pread(into, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void test_denied(void)
{
	struct wire_decision rows[] = {
		{ .kind = WIRE_NET_ALLOWED, .port = 443, .name = "allowed.example" },
		{ .kind = WIRE_NET_DENIED,
			.reason = WIRE_BECAUSE_PORT,
			.port = 22,
			.name = "github.com" },
		{ .kind = WIRE_NET_FAILED,
			.reason = WIRE_BECAUSE_RESOLVER,
			.port = 443,
			.name = "failed.example",
			.other = "no answer" },
		{ .kind = WIRE_NAME_DENIED, .reason = WIRE_BECAUSE_NAME, .name = "evil.example" },
		{ .kind = WIRE_NET_DENIED,
			.reason = WIRE_BECAUSE_UDP,
			.port = 22,
			.name = "github.com" },
		{ .kind = WIRE_NET_DENIED,
			.reason = WIRE_BECAUSE_ADDRESS,
			.port = 53,
			.name = "2001:db8::1" },
		{ .kind = WIRE_NAME_DENIED, .reason = WIRE_BECAUSE_NAME, .name = "d.example" },
		{ .kind = WIRE_NAME_DENIED, .reason = WIRE_BECAUSE_NAME, .name = "e.example" },
	};
	struct record r = { .run = "20260102-030405-0a0b0c0d", .decisions = rows };

	CHECK_STR(said(&r, false), "");
	r.decision_count = 1;
	CHECK_STR(said(&r, false), "");
	r.decision_count = 2;
	CHECK_STR(said(&r, false), "bawn: network: denied github.com:22; why: bawn log --denials "
				   "20260102-030405-0a0b0c0d\n");
	/* What was allowed and failed is not denied; one destination is named once. */
	r.decision_count = 8;
	CHECK_STR(said(&r, false),
		"bawn: network: denied github.com:22, evil.example, [2001:db8::1]:53 and 2 more; "
		"why: bawn log --denials 20260102-030405-0a0b0c0d\n"
		"bawn: network: failed.example:443 was not found: no answer\n");
	CHECK_STR(said(&r, true), "");
}

/* That the network is gone is no matter of taste. */
static void test_closed(void)
{
	struct record r = { .run = "20260102-030405-0a0b0c0d" };

	err_set(&r.gate, ERR_SYS, 0, "the gate ended\x1b[2J");
	CHECK_STR(said(&r, false),
		"bawn: the network was closed before the end: the gate ended\\x1b[2J\n");
	CHECK_STR(said(&r, true),
		"bawn: the network was closed before the end: the gate ended\\x1b[2J\n");
}

/* A run that had none: what it asked for, in one line. */
static void test_no_network(void)
{
	struct wire_decision rows[] = {
		{ .kind = WIRE_NAME_DENIED,
			.reason = WIRE_BECAUSE_NO_NETWORK,
			.name = "a.example",
			.times = 2 },
		{ .kind = WIRE_NET_DENIED, .reason = WIRE_BECAUSE_NO_NETWORK, .times = 1 },
	};
	struct record r = {
		.run = "20260102-030405-0a0b0c0d", .decisions = rows, .decision_count = 2
	};

	CHECK_STR(said(&r, false),
		"bawn: network: this run had none: 3 attempts (a.example); to allow: --allow "
		"a.example:PORT; see: bawn log --denials 20260102-030405-0a0b0c0d\n");
	CHECK_STR(said(&r, true), "");
	r.decisions = &rows[1];
	r.decision_count = 1;
	CHECK_STR(said(&r, false),
		"bawn: network: this run had none: 1 attempt; to allow: --allow HOST:PORT; see: "
		"bawn log --denials 20260102-030405-0a0b0c0d\n");
}

int main(void)
{
	test_denied();
	test_no_network();
	test_closed();
	return check_report();
}
