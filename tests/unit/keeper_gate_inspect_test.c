/*
 * The inspection of the gate on recorded texts: each right that a process has kept is seen, and
 * each port at which somebody listens, or nobody.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/count.h"
#include "base/own.h"
#include "check.h"
#include "fake_host.h"
#include "keeper/inspect/keeper_inspection.h"
#include "make_spec.h"
#include "plan/plan.h"

static struct arena arena;

static const char status[] = "Name:\tbawn\n"
			     "Uid:\t70001\t70002\t70003\t70004\n"
			     "Gid:\t70001\t70001\t70001\t70001\n"
			     "Groups:\t \n"
			     "CapInh:\t0000000000000000\n"
			     "CapPrm:\t0000000000000000\n"
			     "CapEff:\t0000000000000000\n"
			     "CapBnd:\t000001ffffffffff\n"
			     "CapAmb:\t0000000000000000\n"
			     "NoNewPrivs:\t1\n"
			     "Seccomp:\t2\n"
			     "Seccomp_filters:\t1\n";

static void test_confined(void)
{
	static const struct {
		const char *from, *to;
	} rows[] = { { "\t70001\t70002", "\t0\t70002" }, { "70002", "0" }, { "70003", "0" },
		{ "70004", "0" }, { "CapInh:\t0", "CapInh:\t1" }, { "CapPrm:\t0", "CapPrm:\t1" },
		{ "CapEff:\t0", "CapEff:\t1" }, { "NoNewPrivs:\t1", "NoNewPrivs:\t0" },
		{ "Seccomp:\t2", "Seccomp:\t0" }, { "Seccomp:\t2", "Seccomp:\t1" },
		{ "Seccomp:\t2\n", "" }, { "NoNewPrivs:\t1\n", "" } };

	CHECK(keeper_gate_is_confined(status));
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *at = strstr(status, rows[i].from);

		check_that(at && !keeper_gate_is_confined(
					 arena_printf(&arena, "%.*s%s%s", (int)(at - status),
						 status, rows[i].to, at + strlen(rows[i].from))),
			rows[i].to, __FILE__, __LINE__);
	}
}

/* --- ports --- */

static const char table[] =
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n"
	"   0: 0100007F:0035 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n"
	"   1: 00000000:01BB 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n"
	"   2: 0100007F:1F90 0100007F:01BB 01 00000000:00000000 00:00000000 00000000\n";

static void test_listeners(void)
{
	static const char *const bad[] = { "head\n0: 1:1\n", "head\nnonsense\n",
		"head\n0: 0100007F:x 0:0 0A\n", "head\n0: 0100007F:35 0:0\n" };
	uint8_t seen[KEEPER_PORTS] = { 0 };
	unsigned count = 0;

	CHECK(keeper_gate_parse_listeners(table, seen) == 0);
	for (unsigned port = 0; port < KEEPER_PORTS; port++)
		count += seen[port];
	/* Who is connected does not listen. */
	CHECK(count == 2 && seen[53] && seen[443]);
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		check_that(
			keeper_gate_parse_listeners(bad[i], seen) < 0, bad[i], __FILE__, __LINE__);
}

static void test_ports(const struct plan *p)
{
	static const unsigned wanted[] = { 53, 80, 443, 5432, 8443 };
	/* Beside those that are planned, at both ends, and one that only a connection has. */
	static const unsigned others[] = { 0, 1, 52, 54, 81, 444, 5431, 8442, 65535 };
	uint8_t seen[KEEPER_PORTS] = { 0 };
	char fault[128] = "", said[128];

	for (size_t i = 0; i < COUNT_OF(wanted); i++)
		seen[wanted[i]] = 1;
	keeper_gate_compare_ports(p, seen, fault, sizeof(fault));
	CHECK_STR(fault, "");
	for (size_t i = 0; i < COUNT_OF(wanted); i++) {
		seen[wanted[i]] = 0;
		keeper_gate_compare_ports(p, seen, fault, sizeof(fault));
		snprintf(said, sizeof(said), "nobody listens at port %u in the cage's network",
			wanted[i]);
		CHECK_STR(fault, said);
		seen[wanted[i]] = 1;
	}
	for (size_t i = 0; i < COUNT_OF(others); i++) {
		seen[others[i]] = 1;
		keeper_gate_compare_ports(p, seen, fault, sizeof(fault));
		snprintf(said, sizeof(said), "somebody listens at port %u in the cage's network",
			others[i]);
		CHECK_STR(fault, said);
		seen[others[i]] = 0;
	}
}

int main(void)
{
	static const char file[] = "version: 1\nnetwork: {mode: allowlist, host_ports: [5432], "
				   "allow: ['example.com:8443']}\n";
	struct plan *plan = NULL;
	struct err e = { 0 };
	struct host host;
	struct spec spec;

	arena_init(&arena, (size_t)1 << 20);
	test_confined();
	test_listeners();
	fake_host_init(&host);
	CHECK(make_spec(&spec, file) && plan_build(&spec, &host, &plan, NULL, &e) == 0);
	CHECK_STR(e.text, "");
	if (plan)
		test_ports(plan);
	free(plan);
	spec_done(&spec);
	arena_done(&arena);
	return check_report();
}
