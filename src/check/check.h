#pragma once

#include "spec/spec.h"

/*
 * Lints a settled spec. Everything found is said in s->diags at the line it stands on.
 */

/* Pure: contradictory or pointless settings, and bind targets that mirror a host (S-08). */
void check_settings(struct spec *s);

/* Of these, the settings that another one leaves without effect: every run warns of them. */
void check_pointless(struct spec *s);

/* Paths of "~" and $PROJECT on this host. Borrowed. */
struct check_places {
	const char *home;    /* or NULL: unknown */
	const char *project; /* absolute */
};

/*
 * What hides inside what is bound (S-18): symlinks that leave it, virtual environments, .pth
 * files, url rewrites in .git/config, credential folders; and sources that do not exist. Looks,
 * follows no symlink, crosses no mount, writes nothing, and stops after a bounded number of
 * entries, saying so.
 */
void check_contents(struct spec *s, const struct check_places *places);
