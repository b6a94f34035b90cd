#pragma once

#include "gate/gate.h"

/* Shared by the files that confine; everything else uses gate.h. */

/* Enters a Landlock domain in which nothing is left but the wall's files and ports. */
int gate_landlock(const struct gate_wall *wall, struct err *e);
