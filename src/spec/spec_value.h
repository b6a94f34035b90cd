#pragma once

#include "spec/spec.h"
#include "spec/yaml.h"

/*
 * One value of one key, by its row in the table. What is wrong is said in s->diags; the value is
 * then left unset, or without the entry.
 */

/* `prefix` stands before the key's path in messages. */
void spec_value_from_yaml(struct spec *s, struct spec_layer_values *values, enum spec_key key,
	const struct yaml_node *node, const char *prefix);

/* One text, as an option or a default gives it. Adds to a list; replaces otherwise. */
void spec_value_from_text(struct spec *s, struct spec_layer_values *values, enum spec_key key,
	const char *text, struct diag_pos at);

/* An entry that is parsed already. False: there is no memory for it. */
bool spec_value_add(struct spec *s, struct spec_value *v, const struct spec_item *item);
