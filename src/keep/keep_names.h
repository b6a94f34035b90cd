#pragma once

#include "keep/keep_reader.h"
#include "keep/keep_turn.h"

/* What a cage without a network tries to reach: a part of struct keeper. */
struct keep_names {
	int socket;      /* at which the cage asks for names, or -1 */
	int counters[2]; /* of its network, for IPv4 and IPv6, or -1 */
	struct keep_turn turn;
	struct keep_reader reader;
};

void keep_names_init(struct keep_names *n);
void keep_names_done(struct keep_names *n);

struct keeper;
struct pollfd;

/* Opens the counters of the cage's network while its first process is there. */
void keep_names_open(struct keeper *k);

void keep_names_want(const struct keep_names *n, struct pollfd *ret);

/* How long nobody is answered, because too many asked, or -1. */
int keep_names_wait(const struct keep_names *n);

/* Answers those that wait, but not too many. */
void keep_names_hear(struct keeper *k, const struct pollfd *seen);

/* The cage has ended: the last questions, and how often an address was tried, go on record. */
void keep_names_end(struct keeper *k);

/*
 * The number of packets that had no way out, from the text of /proc/PID/net/snmp or snmp6; 0 where
 * the text does not have it.
 */
uint64_t keep_names_count(const char *text);
