#pragma once

#include "bench_run.h"

/*
 * The command lines that are compared. Each makes /bin/true run: plainly, or behind a wall that
 * shows it the same folders. Where a tool cannot be had, `missing` says why.
 */

void bench_make_true(struct bench_command *ret, const struct bench_who *who);

/* Every layer on, as nothing is declared; the record is written below the user's home. */
void bench_make_bawn(struct bench_command *ret, const struct bench_who *who, const char *bawn);

/* The same where there are no cgroups to hold limits. */
void bench_make_unlimited(struct bench_command *ret, const struct bench_who *who, const char *bawn);

/*
 * Root can show a command a machine that has only the second version of cgroups, and no controller
 * in it: a mount namespace, made once and entered at each start; -1 elsewhere.
 */
int bench_hide_cgroups(void);

/* The start of the program itself. */
void bench_make_version(struct bench_command *ret, const struct bench_who *who, const char *bawn);

/*
 * The same namespaces and folders as bawn's. bwrap is asked for less: no file of /etc is made, no
 * part of /proc covered, no system call filtered, no Landlock, no record.
 */
void bench_make_bwrap(struct bench_command *ret, const struct bench_who *who);

void bench_make_firejail(struct bench_command *ret, const struct bench_who *who);

/* `name` is "runc" or "crun"; makes a bundle in the user's home. */
void bench_make_oci(struct bench_command *ret, const struct bench_who *who, const char *name);

/* Folders and files of the host's /etc that are shown; ends with NULL. */
extern const char *const bench_etc[];
