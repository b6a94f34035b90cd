#pragma once

#include <sys/stat.h>

#include "base/err.h"
#include "cage/cage.h"

/*
 * Whose the layer above the open folder `below` is, and its mode: root gives it to the folder's
 * owner, a team's has the team's group; -1 as an id: as it is made. 0 or -errno.
 */
int keeper_team_owner(const struct cage_ids *ids, int below, struct stat *ret);

/*
 * Writes the map of groups of a cage whose ids are a team's: `group` is `inside` in it. The program
 * that does so is made in the run's folder.
 */
int keeper_team_map(pid_t pid, gid_t group, unsigned inside, int folder, struct err *e);
