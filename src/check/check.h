#pragma once

#include "spec/spec.h"

/*
 * Lints a settled spec. Findings go to s->diags, at the line that they are about.
 */

/*
 * Warns of contradictory or pointless settings, and of bind targets with host paths (S-08). Pure.
 */
void check_settings(struct spec *s);

/* Warns only of settings that another setting makes ineffective. Every run calls it. */
void check_pointless(struct spec *s);

/* The paths of "~" and $PROJECT on this host, borrowed. */
struct check_places {
	const char *home;    /* or NULL: unknown */
	const char *project; /* absolute */
};

/*
 * Warns of what is hidden in bound folders (S-18): symlinks that lead out, virtual environments,
 * .pth files, URL rewrites in .git/config, credential folders; and of missing sources. Only reads:
 * follows no symlink, crosses no mount, and stops after a limited number of entries, with a
 * warning.
 */
void check_contents(struct spec *s, const struct check_places *places);
