#pragma once

#include "spec/spec.h"
#include "spec/yaml.h"

/*
 * Reads values from texts and YAML trees, by the table of keys. Errors go to s->diags with their
 * place; the rest is still read.
 */

/* Reads the keys of a spec from `map`. Diagnostics put `prefix` before the keys' names. */
void spec_read_map(struct spec *s, struct spec_layer_values *values, const struct yaml_node *map,
	const char *prefix);

/* Reads a policy file: its own keys and `defaults` into `values`, `project_may` into s->may. */
void spec_read_policy(
	struct spec *s, struct spec_layer_values *values, const struct yaml_node *map);

/* --- one value of one key, by its row in the table --- */

/*
 * Sets a key to the text of an option or a default, or adds an entry to its list. On an error,
 * which goes to s->diags, the value stays unset, or without the entry.
 */
void spec_value_from_text(struct spec *s, struct spec_layer_values *values, enum spec_key key,
	const char *text, struct diag_pos at);

/* Adds a parsed entry to a list. False: no memory. */
bool spec_value_add(struct spec *s, struct spec_value *v, const struct spec_item *item);
