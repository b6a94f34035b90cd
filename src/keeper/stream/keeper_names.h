#pragma once

#include "keeper/stream/keeper_reader.h"
#include "keeper/stream/keeper_turn.h"

/* What a cage without a network tries to reach: a part of struct keeper. */
struct keeper_names {
	int socket;      /* at which the cage asks for names, or -1 */
	int counters[2]; /* of its network, for IPv4 and IPv6, or -1 */
	struct keeper_turn turn;
	struct keeper_reader reader;
};

void keeper_names_init(struct keeper_names *n);
void keeper_names_done(struct keeper_names *n);

struct keeper;
struct pollfd;

/* Opens the counters of the cage's network while its first process is there. */
void keeper_names_open(struct keeper *k);

void keeper_names_want(const struct keeper_names *n, struct pollfd *ret);

/* How long nobody is answered, because too many asked, or -1. */
int keeper_names_wait(const struct keeper_names *n);

/* Answers those that wait, but not too many. */
void keeper_names_hear(struct keeper *k, const struct pollfd *seen);

/* The cage has ended: the last questions, and how often an address was tried, go on record. */
void keeper_names_end(struct keeper *k);

/*
 * The number of packets that had no way out, from the text of /proc/PID/net/snmp or snmp6; 0 where
 * the text does not have it.
 */
uint64_t keeper_names_count(const char *text);
