#pragma once

#include "change/change.h"

/*
 * A project that is captured by copying it. In the layer's folder:
 *
 *   copy    the project as it was, and what the run makes of it
 *   list    what was in it when the copy was complete; without it no command was started
 *   marked  the list, once the copy shows by itself what is gone
 *   upper   instead of all of these, when the run has ended: what an overlay would have kept
 *
 * Where only what belongs to others is copied, below an overlay, there are:
 *
 *   upper     that, and what the run makes; the overlay itself marks what is gone
 *   list.new  as long as the copy is not complete: no command was started on it
 *   list      what was in `upper` then
 *
 * What the run touched is told by inode and time of change, which nobody in a cage can set.
 */

/* Writes down what is in the folder `copy`, right after it was made; `list` is an empty file. */
int change_copy_list(int copy, int list, struct err *e);

/*
 * Waits until a file that is touched gets another time than any in the list has: a tick of the
 * kernel's clock. `list` is open for writing.
 */
int change_copy_settle(int list, struct err *e);

/*
 * The run has ended: turns the copy into `upper`, or removes from that what is as it was. What was
 * interrupted is finished by the next call; nothing is done where there is no copy. The time
 * depends on the size of the project.
 */
int change_copy_finish(int layer, const struct change_progress *progress, struct err *e);
