#pragma once

#include "base/json.h"
#include "work/work.h"

#define WORK_JSON_VERSION 1

/* work_effects_read, but for the digest: that it belongs to these effects is not checked. */
int work_effects_parse(const char *bytes, size_t n, struct work_effects *ret, struct err *e);

/* Names are bytes: one that is not UTF-8 is written in hex, under another key. */
void work_json_name(struct json *j, const char *key, const char *hex_key, const char *name);
