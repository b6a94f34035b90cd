#pragma once

#include "spec/spec.h"

/*
 * The lints of check_settings that have a file of their own. Pure; each says what it finds at the
 * place of the value.
 */

/* Where things are: bind targets, bind sources, project.at (S-08). */
void check_places(struct spec *s);

/* Entries that stand twice, contradict each other, or are covered by a wider one. */
void check_lists(struct spec *s);

/* Variables that bring the operator's secrets, doors or paths into the cage. */
void check_env(struct spec *s);

/* Pointers to the entries of a list, for sorting, in s->arena; NULL, and says so, if it is full. */
const struct spec_item **check_list_items(struct spec *s, enum spec_key key);
