#pragma once

#include "spec/spec.h"

/* What a layer is called in messages, with the file it came from where there is one. */
const char *spec_layer_name(enum spec_layer layer);

/*
 * The most the project's own file may ask of a key: the policies' project_may, else what the
 * operator's layers settle on. *ret_where says who drew the line.
 */
const struct spec_value *spec_ceiling(
	const struct spec *s, enum spec_key key, const char **ret_where);

/* Does the entry above allow the one below? By the key's own meaning of "within". */
bool spec_covers(enum spec_key key, const struct spec_item *above, const struct spec_item *below);

/* The hint for a file that asks for more than a project's own file may. */
extern const char spec_loosen_hint[];
