#pragma once

#include "base/json.h"
#include "change/change.h"

#define CHANGE_JSON_VERSION 1

/* change_effects_read, but for the digest: that it belongs to these effects is not checked. */
int change_effects_parse(const char *bytes, size_t n, struct change_effects *ret, struct err *e);

/* Names are bytes: one that is not UTF-8 is written in hex, under another key. */
void change_json_name(struct json *j, const char *key, const char *hex_key, const char *name);
