#pragma once

#include "work/work_overlay.h"

/* What the two files of overlays share. Nobody else includes it. */

/* "cannot VERB the overlay 'PATH': reason". */
int work_overlay_fail(const struct work_overlay *o, const char *verb, int num, struct err *e);

/* Writes overlay.json, whole or not at all. */
int work_overlay_note(const struct work_overlay *o, struct err *e);

/* A killed save may have left the old tree under another name. */
int work_overlay_recover(const struct work_overlay *o, struct err *e);
