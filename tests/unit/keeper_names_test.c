/* What the kernel counts of a network, read from its files; and what is no such file counts as
 * nothing. */
#include "base/count.h"
#include "check.h"
#include "keeper/stream/keeper_names.h"

static void test_counted(void)
{
	CHECK(keeper_names_count("Ip: Forwarding DefaultTTL OutNoRoutes ReasmTimeout\n"
				 "Ip: 1 64 7 0\nIcmp: InMsgs\nIcmp: 9\n") == 7);
	CHECK(keeper_names_count("Ip6InReceives  \t12\nIp6OutNoRoutes \t5\nIp6InMcastPkts\t1\n") ==
		5);
	CHECK(keeper_names_count("Ip: OutNoRoutes\nIp: 3\n") == 3);
}

static void test_nothing(void)
{
	static const char *const texts[] = { "", "Ip: ", "Ip: OutNoRoutes", "OutNoRoutes\nIp: 4\n",
		"Ip: A OutNoRoutes\nIp: 4", "Ip: A\nIp: 4 OutNoRoutes\n",
		"Ip: OutNoRoutes\nTcp: 5\n", "Ip: A B OutNoRoutes\nIp: 1 2\n", "Ip6OutNoRoutes",
		"Ip6OutNoRoutes x" };

	for (size_t i = 0; i < COUNT_OF(texts); i++)
		CHECK(keeper_names_count(texts[i]) == 0);
}

int main(void)
{
	test_counted();
	test_nothing();
	return check_report();
}
