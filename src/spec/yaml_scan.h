#pragma once

#include "spec/diag.h"

/*
 * The first look at a file, byte by byte, before any parser sees it: refuses what makes two
 * readers see two documents. True when nothing was found; what was found is in `diags`.
 */
bool yaml_scan(struct diags *diags, unsigned source, const char *bytes, size_t n);
