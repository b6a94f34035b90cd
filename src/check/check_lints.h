#pragma once

#include "spec/spec.h"

/*
 * The lints of check_settings that have a file of their own. Pure; each says what it finds at the
 * place of the value.
 */

/* Where things are: bind targets, bind sources, project.at (S-08). */
void check_places(struct spec *s);
