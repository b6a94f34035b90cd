#pragma once

#include "cgroup/cgroup_inside.h"

/* The steps of a keeper, and cases that take them in a place of their own. */

#define GROUPS_ALL    (1U << CGROUP_MEMORY | 1U << CGROUP_CPU | 1U << CGROUP_PIDS)
#define GROUPS_MEMORY ((uint64_t)48 << 20)
#define GROUPS_CPU    200
#define GROUPS_PIDS   20

/* A folder of root's in everyone's place. */
extern const char groups_foreign[];

/* A name of a run that no other has. */
void groups_name_run(char ret[static 32]);

/* Folders with the limits above; a failure is said. */
bool groups_make(struct cgroup *g, unsigned wanted);

/* A process that goes in and then does `work`; it is in there when this returns. Or -1. */
pid_t groups_start(const struct cgroup *g, void (*work)(void));

/* How a process ended, as wait says it; -1: there was none. */
int groups_wait(pid_t pid);

/* The same after a signal. A process that was not started is not sent one: -1 would be everyone. */
int groups_end(pid_t pid, int signal);

void groups_sleep(unsigned ms);
void groups_stay(void);

/* Is there a folder of that name in each place? False where there is in none. */
bool groups_exist(const struct cgroup *g, const char *name);

/* cgroup_remove; whether it did, completely. */
bool groups_remove(struct cgroup *g);

struct groups_case {
	const char *name;
	void (*run)(void);
};

#define GROUPS_CASE(name)                                                                          \
	{                                                                                          \
#name, name                                                                        \
	}

/* Runs them as root and as a user and prints TAP; *failed counts the checks that failed. */
int groups_run(const struct groups_case *cases, unsigned count, const int *failed);
