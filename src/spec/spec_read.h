#pragma once

#include "spec/spec.h"
#include "spec/yaml.h"

/*
 * From texts and YAML trees to values, by the table. Everything wrong is said in s->diags at its
 * place; the rest is read all the same.
 */

/* The keys of a spec, found in `map`, into `values`. `prefix` stands before them in messages. */
void spec_read_map(struct spec *s, struct spec_layer_values *values, const struct yaml_node *map,
	const char *prefix);

/* The whole of a policy file: its own keys and `defaults` into `values`, `project_may` into may. */
void spec_read_policy(
	struct spec *s, struct spec_layer_values *values, const struct yaml_node *map);

/* --- one value of one key, by its row in the table --- */

/*
 * Sets a key to a text, as an option or a default gives it, or adds it to its list. What is wrong
 * is said in s->diags; the value is then left unset, or without the entry.
 */
void spec_value_from_text(struct spec *s, struct spec_layer_values *values, enum spec_key key,
	const char *text, struct diag_pos at);

/* Adds an entry that is parsed already. False: there is no memory for it. */
bool spec_value_add(struct spec *s, struct spec_value *v, const struct spec_item *item);
