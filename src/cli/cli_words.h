#pragma once

#include <stdint.h>

#include "base/buf.h"

/*
 * The command of a run as a shell would take it, from plan.json in its folder; nothing where that
 * is not there, or is not the plan of this digest (NULL: none is known yet).
 */
void cli_read_command(int folder, const char *plan_sha256, struct buf *out);

/* How long it took, in as few digits as people want: 120ms, 1.2s, 3m05s, 2h03m. */
void cli_print_took(struct buf *out, int64_t us);
