#pragma once

#include "agent/profile/agent.h"

/* What the files of agent share. */

void agent_say_no_memory(struct spec *s);

/* The entry of a name, of those that are settled; or NULL. */
const struct spec_item *agent_find_var(const struct spec *s, enum spec_key key, const char *name);

/* A key as the spec declares secrets. */
int agent_make_secret(
	struct spec *s, const struct agent_key *key, struct spec_item *ret, struct err *e);

/* --- agent_project.c --- */

/* Did the project say this, and not the operator? */
bool agent_is_projects(const struct spec *s, enum spec_key key);

/* The same of one entry of a list. */
bool agent_is_projects_item(const struct spec *s, enum spec_key key, const struct spec_item *item);

/* Says what the project's file says of the agent's own; before anything is added. */
void agent_check_project(struct spec *s, const struct agent_profile *p);
