#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * What bench_start and bench_many share: a folder to work in, the users commands are started as,
 * and the clock around one start. Whatever fails ends the program: a start that did not work is
 * an error, never a figure.
 */

#define BENCH_MAX_ARGS 128
#define BENCH_MAX_PATH 512
#define BENCH_USER_ID  12345

/* A user with a project of its own, and an environment that points nowhere else. */
struct bench_who {
	const char *name;
	uid_t id;
	char home[BENCH_MAX_PATH], project[BENCH_MAX_PATH], runtime[BENCH_MAX_PATH];
	char *env[8];
};

/* A command line, and what its starts took. `missing` says why there is nothing to measure. */
struct bench_command {
	const char *name;
	const struct bench_who *who;
	const char *argv[BENCH_MAX_ARGS];
	size_t n_args;
	int mount_ns; /* entered before the command starts; -1 for none */
	bool is_ours; /* has to work; the others may be missing */
	const char *missing;
	double *us;
	size_t n_us;
	long peak_kb;
};

double bench_now_us(void);

/* Prints the reason and ends the program. */
_Noreturn void bench_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A new folder, which everybody may enter; removed with all that is in it when the program ends. */
const char *bench_make_folder(void);

/* Memory and texts that live as long as the program. */
char *bench_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *bench_alloc(size_t n, size_t size);

/* Makes the folders of this user and, as root, those of an ordinary one: how many, at most 2. */
size_t bench_make_users(const char *folder, struct bench_who ret[2]);

/* Copies a program to where every user may start it; its new path. */
const char *bench_copy_program(const char *folder, const char *path);

/* Where a program is by PATH and the folders of root; NULL if nowhere. */
const char *bench_find_program(const char *name);

void bench_add_args(struct bench_command *c, const char *const *args);
void bench_add_arg(struct bench_command *c, const char *arg);

/* Starts a command, what it says kept for a message; the id of its process. */
pid_t bench_spawn(const struct bench_command *c);

/*
 * Starts a command as whoever runs the bench, in the user's project and environment, to read what
 * it prints; one at a time. bench_close waits for its end and returns its status as wait(2) has it.
 */
FILE *bench_open(const struct bench_command *c);
int bench_close(FILE *lines);

/* Starts and waits: microseconds. */
double bench_start_once(struct bench_command *c);

/*
 * Starts a command so many times, to fill caches. What is compared with may not run on a machine
 * and is `missing` then; ours has to run.
 */
void bench_warm_up(struct bench_command *c, int times);

/* Ends the program for a start that ended with this status, with the last line it said. */
_Noreturn void bench_fail_start(const struct bench_command *c, int status);

/* Was the bench told to stop? Then the caller ends it by bench_fail, which leaves nothing. */
bool bench_is_stopped(void);
