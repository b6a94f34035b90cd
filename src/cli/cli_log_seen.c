#include <stdio.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/cli_log.h"
#include "plan/plan_guarantees.h"

static bool is_guarantee(const struct log_event *x, enum plan_guarantee g)
{
	return str_eq(x->type, "guarantee") &&
	       str_eq(log_find_text(x, "name"), plan_guarantee_defs[g].name);
}

void cli_log_note_seen(struct cli_log_seen *seen, const struct log_event *x)
{
	if (str_eq(x->type, "run_start"))
		snprintf(seen->cage, sizeof(seen->cage), "%s", log_find_text(x, "cage"));
	seen->has_run |= str_eq(x->type, "run_start");
	seen->is_none |= is_guarantee(x, PLAN_NET_NONE);
	seen->is_allowlist |= is_guarantee(x, PLAN_NET_ALLOWLIST);
	seen->is_deaf |= str_eq(x->type, "degraded") && str_eq(log_find_text(x, "op"), "tell");
}

/* Of the network; NULL: nothing. Of no run in particular all of it. */
static const char *log_seen_network_of(const struct cli_log_seen *seen)
{
	if (!seen->has_run || (seen->is_none && seen->is_allowlist))
		return "destinations that a run may not reach";
	if (seen->is_allowlist)
		return "destinations that are not in network.allow";
	return seen->is_none && !seen->cage[0]
		       ? "names and addresses that a run without a network asks for"
		       : NULL;
}

void cli_log_say_seen(const struct cli_log_seen *seen)
{
	const char *calls = "system calls that the filter refuses",
		   *network = log_seen_network_of(seen);
	bool is_heard = !seen->is_deaf && !seen->cage[0];
	own(buf) struct buf more = { .max = 1024 };

	if (is_heard || network)
		cli_complain("denials that are seen: %s%s%s", is_heard ? calls : "",
			is_heard && network ? "; " : "", network ? network : "");
	if (!is_heard)
		buf_printf(&more, "; %s (%s)", calls,
			seen->cage[0] ? "in a session's own cage" : "see bawn log: degraded");
	if (seen->is_none && seen->cage[0])
		buf_printf(&more, "; the network, see bawn log --denials %s", seen->cage);
	else if (!network)
		buf_puts(&more, "; the network, which is the host's");
	cli_complain("not seen: files that are not in the cage (the program gets ENOENT); "
		     "writes to what is read-only (EROFS)%s",
		buf_text(&more));
}
