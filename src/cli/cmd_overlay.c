#include <inttypes.h>

#include "base/num.h"
#include "cli/commands.h"

/* --- after a run --- */

bool cli_say_overlay(const struct record *record)
{
	const struct record_overlay *x = &record->overlay;
	char size[NUM_TEXT_SIZE];

	num_print_size(x->size, size);
	if (x->is_full)
		cli_complain("the overlay was full when the command ended (root.overlay_size: %s)",
			size);
	if (x->skipped)
		cli_complain(
			"%" PRIu64 " sockets and devices were not kept in the overlay", x->skipped);
	if (x->error.kind == ERR_NONE)
		return true;
	cli_complain("%s", x->error.text);
	return false;
}
