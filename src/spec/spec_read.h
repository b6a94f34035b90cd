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
