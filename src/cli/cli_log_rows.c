#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "cli/cli_log.h"

#define FIRST_ROOM 1024              /* powers of two */
#define MOST_ROOM  ((size_t)1 << 21) /* with more rows than half of that, some are shown again */

/* `last` is counted from 1: 0 is a slot that is free. */
struct cli_log_row {
	uint8_t key[SHA256_SIZE];
	uint64_t last;
};

void cli_log_rows_done(struct cli_log_rows *r)
{
	free(r->slots);
	*r = (struct cli_log_rows){ 0 };
}

static struct cli_log_row *log_rows_find(
	const struct cli_log_rows *r, const uint8_t key[static SHA256_SIZE])
{
	uint64_t at;

	memcpy(&at, key, sizeof(at));
	for (;; at++) {
		struct cli_log_row *slot = &r->slots[at & (r->room - 1)];

		if (!slot->last || memcmp(slot->key, key, SHA256_SIZE) == 0)
			return slot;
	}
}

/* Half of the slots stay free. */
static bool log_rows_grow(struct cli_log_rows *r)
{
	struct cli_log_rows grown = { .room = r->room ? 2 * r->room : FIRST_ROOM,
		.count = r->count };

	if (2 * r->count < r->room)
		return true;
	if (grown.room > MOST_ROOM)
		return false;
	grown.slots = calloc(grown.room, sizeof(*grown.slots));
	if (!grown.slots)
		return false;
	for (size_t i = 0; i < r->room; i++)
		if (r->slots[i].last)
			*log_rows_find(&grown, r->slots[i].key) = r->slots[i];
	free(r->slots);
	*r = grown;
	return true;
}

bool cli_log_rows_add(struct cli_log_rows *r, const struct log_event *x, uint64_t number)
{
	uint8_t key[SHA256_SIZE];
	struct cli_log_row *slot;
	bool is_new;

	if (!log_event_row(x, key) || !log_rows_grow(r))
		return true;
	slot = log_rows_find(r, key);
	is_new = !slot->last;
	memcpy(slot->key, key, SHA256_SIZE);
	slot->last = number;
	r->count += is_new;
	return is_new;
}

bool cli_log_rows_is_old(const struct cli_log_rows *r, const struct log_event *x, uint64_t number)
{
	uint8_t key[SHA256_SIZE];

	return r->count && log_event_row(x, key) && log_rows_find(r, key)->last > number;
}
