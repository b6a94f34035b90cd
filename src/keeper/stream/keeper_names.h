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

struct keeper;
struct pollfd;

/*
 * The number of packets that had no way out, from the text of /proc/PID/net/snmp or snmp6; 0 where
 * the text does not have it.
 */
uint64_t keeper_names_count(const char *text);
