#pragma once

#include "agent/agent.h"

/* What the files of agent share. */

void agent_say_no_memory(struct spec *s);

/* A key as the spec declares secrets. */
int agent_make_secret(
	struct spec *s, const struct agent_key *key, struct spec_item *ret, struct err *e);
