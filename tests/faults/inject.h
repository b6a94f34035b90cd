#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_MAX 512
#define NUMBER_MAX  1024
#define CALLS_MAX   8192

struct process {
	pid_t pid;
	char label[48], name[32];
	bool is_known, is_held, is_ended;
	bool is_failing; /* the call it is in gets an answer of ours */
	int children, status;
	unsigned calls, by_number[NUMBER_MAX];
	uint16_t *log;
};

/* There is one run at a time. */
struct injection {
	/* what was asked */
	const char *label, *victim, *meanwhile;
	unsigned call, times;
	int number, error, seconds, report;
	bool is_kill, has_log;
	/* what was seen */
	struct process processes[PROCESS_MAX];
	int count;
	unsigned hits;
	int hit_number;
	int meanwhile_status; /* exit status of the command; -1: it did not run, or not to its end
			       */
	bool was_started_before, is_late;
	int64_t held, missing;
	bool has_begun, is_started, is_done;
	int result; /* of the program itself, as waitpid has it */
	double ended;
};

extern struct injection it;

/* The C library's header for this cannot be had beside the kernel's, which has more. */
long trace(long request, const struct process *p, long addr, void *data);

double now(void);

/* A process has ended with this status, as waitpid has it. */
void bury(struct process *p, int status);

/* A process is there and has done nothing yet. */
void at_birth(const struct process *p);

/* A process is about to make a system call, or has made one. */
void at_call(struct process *p);
