#pragma once

/*
 * Specs from texts. The layers are named sys.yaml, user.yaml and f.yaml in messages; a layer
 * that is NULL says nothing.
 */
#include <string.h>

#include "spec/spec.h"

static inline bool make_layers(
	struct spec *s, const char *system, const char *user, const char *file, bool is_trusted)
{
	spec_init(s);
	if (system)
		spec_add_policy(s, SPEC_LAYER_SYSTEM, "sys.yaml", system, strlen(system));
	if (user)
		spec_add_policy(s, SPEC_LAYER_USER, "user.yaml", user, strlen(user));
	if (file)
		spec_add_file(s, "f.yaml", file, strlen(file), is_trusted);
	return spec_settle(s);
}

/* The operator's own file, and nothing else. */
static inline bool make_spec(struct spec *s, const char *file)
{
	return make_layers(s, NULL, NULL, file, true);
}

/* The first thing said, without its source line and hint; "" when nothing was. Borrowed from s. */
static inline const char *first_said(struct spec *s)
{
	struct buf out = { .max = (size_t)1 << 20 };
	const char *line;

	diags_print(&s->diags, &out, false);
	line = arena_copy(&s->arena, buf_text(&out), strcspn(buf_text(&out), "\n"));
	buf_done(&out);
	return line ? line : "";
}

/* The canonical form, borrowed from s. */
static inline const char *canonical_of(struct spec *s)
{
	struct buf out = { .max = (size_t)1 << 20 };
	const char *text;

	spec_print_canonical(s, &out);
	text = arena_copy(&s->arena, buf_text(&out), out.len);
	buf_done(&out);
	return text ? text : "";
}
