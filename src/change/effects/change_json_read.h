#pragma once

#include <stddef.h>

#include "base/json_fields.h"
#include "change/change.h"

/* What reads effects.json value by value: words, hashes, names. Maps are read by tables. */
struct change_reader {
	struct json_reader json;
	struct change_effects *ret;
	struct change_effect *items; /* until their number is known */
	size_t count, room;
};

/* One of the words, as its number. */
#define CHANGE_MAX_WORDS 8
