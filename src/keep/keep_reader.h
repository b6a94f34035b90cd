#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gate/gate_dns.h"

/* A process that reads a cage's questions for the keeper, and has no rights: from the first on. */
struct keep_reader {
	int fd; /* or -1: there is none yet */
	pid_t pid;
};

void keep_reader_init(struct keep_reader *r);
void keep_reader_done(struct keep_reader *r);

/*
 * Has a question read. 1: a reply is due, and `ret` is what gate_dns_read says; 0: none is. -errno:
 * there is no such process, or it did not answer as one does; it has ended then.
 */
int keep_reader_ask(
	struct keep_reader *r, const uint8_t *query, size_t n, struct gate_question *ret);
