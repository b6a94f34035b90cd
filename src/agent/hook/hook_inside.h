#pragma once

#include "agent/hook/hook.h"

/* Shared by the files of the hook. Nobody else includes it. */

/* Adds a path that a call uses. Copies it; ignores what is not a path. */
void hook_add_use(struct hook_call *c, const char *path, size_t n, const char *folder, bool writes);

/* Adds the files that a patch in the format of apply_patch names. */
void hook_patch_scan(struct hook_call *c, const char *patch);
