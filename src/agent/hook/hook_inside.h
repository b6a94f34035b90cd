#pragma once

#include "agent/hook/hook.h"

/* What the files of the hook share. Nobody else includes it. */

/* Notes that a call touches a path, which is copied; what is no path is not noted. */
void hook_add_use(struct hook_call *c, const char *path, size_t n, const char *folder, bool writes);

/* The files that a patch in the form of apply_patch names. */
void hook_patch_scan(struct hook_call *c, const char *patch);
