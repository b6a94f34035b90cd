#pragma once

#include "base/err.h"

/*
 * How processes that share a file wake each other: a file beside it that is touched, and watched by
 * those who wait. Nothing is in it.
 */
struct store_bell {
	int file, watch; /* -1: not open, not listening */
};
