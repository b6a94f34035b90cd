#pragma once

#include "work/work.h"

#define WORK_JSON_VERSION 1

/* work_effects_read, but for the digest: that it belongs to these effects is not checked. */
int work_effects_parse(const char *bytes, size_t n, struct work_effects *ret, struct err *e);
