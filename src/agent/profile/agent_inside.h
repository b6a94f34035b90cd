#pragma once

#include "agent/profile/agent.h"

/* What the files of agent share. Nobody else includes it. */

/* A key as the spec declares secrets. */
int agent_make_secret(
	struct spec *s, const struct agent_key *key, struct spec_item *ret, struct err *e);
