#pragma once

#include "base/err.h"

/*
 * How processes that share a file wake each other: a file beside it that is touched, and watched by
 * those who wait. Nothing is in it.
 */
struct store_bell {
	int file, watch; /* -1: not open, not listening */
};

void store_bell_init(struct store_bell *b);
void store_bell_done(struct store_bell *b);

/* Opens PATH-bell, made where missing. */
int store_bell_open(struct store_bell *b, const char *path, struct err *e);

void store_bell_ring(const struct store_bell *b);

/* From here on `watch` is readable once somebody rang; store_bell_hear makes it unreadable. */
int store_bell_listen(struct store_bell *b, const char *path, struct err *e);
void store_bell_hear(const struct store_bell *b);
