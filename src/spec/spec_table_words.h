#pragma once

/* What the rows of spec_table.c share: the words of its choices, and patterns. Nobody else includes
 * it. */
#include <stddef.h>

static const char *const engines[] = { "auto", "native", "bwrap", "container", "microvm",
	"landlock", "logical", NULL };
static const char *const project_modes[] = { "read_only", "captured", "writable", NULL };
static const char *const project_cages[] = { "full", "project", NULL };
static const char *const project_gits[] = { "none", "auto", NULL };
static const char *const output_ends[] = { "end", "cut", NULL };
static const char *const record_outputs[] = { "keep", "digest", "no", NULL };
static const char *const network_modes[] = { "none", "allowlist", "host", NULL };
static const char *const environments[] = { "dev", "prod", NULL };

#define NAME_PATTERN   "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
#define TARGET_PATTERN "^/[^/]"
#define SIZE_PATTERN   "^[1-9][0-9]*(K|KB|M|MB|G|GB|T|TB)?$"
