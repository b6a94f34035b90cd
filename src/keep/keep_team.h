#pragma once

#include <sys/stat.h>

#include "keep/keep_inside.h"

/*
 * Whose the layer above the open folder `below` is, and its mode: root gives it to the folder's
 * owner, a team's has the team's group; -1 as an id: as it is made. 0 or -errno.
 */
int keep_team_owner(const struct cage_ids *ids, int below, struct stat *ret);

/* Writes the map of groups of a cage whose ids are a team's, for the operation `ids` of its plan.
 */
int keep_team_map(struct keeper *k, const struct plan_op *ids, struct err *e);
