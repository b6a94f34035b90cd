#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gate/dns/gate_dns.h"

/* A process that reads a cage's questions for the keeper, and has no rights: from the first on. */
struct keeper_reader {
	int fd; /* or -1: there is none yet */
	pid_t pid;
};

void keeper_reader_init(struct keeper_reader *r);
void keeper_reader_done(struct keeper_reader *r);

/*
 * Has a question read. 1: a reply is due, and `ret` is what gate_dns_read says; 0: none is. -errno:
 * there is no such process, or it did not answer as one does; it has ended then.
 */
int keeper_reader_ask(
	struct keeper_reader *r, const uint8_t *query, size_t n, struct gate_question *ret);
