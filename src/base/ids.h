#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * The effective user and group of this process, asked once. For who never changes them: a child
 * that becomes somebody else asks the kernel.
 */
uid_t ids_user(void);
gid_t ids_group(void);

/*
 * Counts the supplementary groups of this process, without `own`. Returns -1 if the kernel does not
 * tell them. Allocates nothing.
 */
int ids_count_groups(gid_t own);

/* True if one of the process's supplementary groups is `group`. */
bool ids_has_group(gid_t group);
