#pragma once

#include "check/check_bind.h"

/* Looks at one entry: a check_visit for a struct check_bind. */
bool check_inside(void *bind, const struct check_entry *entry);

/* Looks at the source itself: what its name says, and its type if it is no directory. */
void check_source_itself(struct check_bind *b, mode_t type);
