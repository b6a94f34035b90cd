#pragma once

#include <stdbool.h>

#include "base/err.h"

/* A tar archive (ustar) of plain files, written as it goes. cli_tar.c */

/* Adds FOLDER/name as `prefix`/name; nothing where it is not there. */
int cli_tar_add(int to, int folder, const char *prefix, const char *name, struct err *e);
int cli_tar_end(int to, struct err *e);

/* What an export of a run has, if it is there; ended with NULL. */
extern const char *const cli_export_files[];

/* Does a file that can be read from anywhere begin as an archive does? */
bool cli_is_tar(int fd);

/* Puts the files of an export into an empty folder. Nothing but those is made. */
int cli_tar_read(int from, int folder, struct err *e);
