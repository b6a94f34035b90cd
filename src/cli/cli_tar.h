#pragma once

#include "base/err.h"

/* A tar archive (ustar) of plain files, written as it goes. cli_tar.c */

/* Adds FOLDER/name as `prefix`/name; nothing where it is not there. */
int cli_tar_add(int to, int folder, const char *prefix, const char *name, struct err *e);
int cli_tar_end(int to, struct err *e);
