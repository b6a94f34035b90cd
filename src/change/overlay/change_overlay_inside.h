#pragma once

#include "change/overlay/change_overlay.h"

/* What the two files of overlays share. Nobody else includes it. */

/* "cannot VERB the overlay 'PATH': reason". */
int change_overlay_fail(const struct change_overlay *o, const char *verb, int num, struct err *e);

/* Writes overlay.json, whole or not at all. */
int change_overlay_note(const struct change_overlay *o, struct err *e);

/* A killed save may have left the old tree under another name. */
int change_overlay_recover(const struct change_overlay *o, struct err *e);
