#include <stdio.h>

#include "cli/commands.h"
#include "plan/plan_ops.h"

static void say_step(const char *name, uint64_t ns)
{
	fprintf(stderr, "  %-24s %8.1f µs\n", name, (double)ns / 1000);
}

void cli_say_times(const struct cage_times *t, const struct record *record, uint64_t began)
{
	if (!t || !t->started)
		return;
	fprintf(stderr, "bawn: the start of run %s\n", record->run);
	say_step("plan and clone", t->born - began);
	say_step("ids", t->mapped - t->born);
	for (int kind = 0; kind < PLAN_OP_KIND_COUNT; kind++)
		if (t->spent[kind] && kind != PLAN_IDS)
			say_step(plan_op_defs[kind].name, t->spent[kind]);
	say_step("= until the wall stands", t->ready - t->born);
	say_step("look from outside", t->told - t->ready);
	say_step("preflight, the rest of", t->checked - t->told);
	say_step("startup", t->started - t->checked);
	say_step("= until the command", t->started - began);
	say_step("command and its end", record->run_ns);
}
