#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "gate/gate_inside.h"
#include "wire/wire.h"

#define ROOM (2 * WIRE_MAX_ROWS)

/*
 * Each kind has its own, so that what is denied, as often as a cage likes, leaves room for what is
 * allowed. Of that the rest is counted in one row, with its bytes.
 */
static const uint32_t shares[WIRE_DECISION_KIND_COUNT] = {
	[WIRE_NET_ALLOWED] = 192,
	[WIRE_NET_DENIED] = 128,
	[WIRE_NET_FAILED] = 32,
	[WIRE_NAME_DENIED] = 128,
	[WIRE_PUBLISHED] = 32,
};

static_assert(192 + 128 + 32 + 128 + 32 == WIRE_MAX_ROWS, "they are all of them");

#define REST "(others)" /* no host is called that */

static uint32_t rows_hash(const struct wire_decision *d)
{
	return gate_hash(d->name) ^ (uint32_t)d->port << 16 ^ (uint32_t)d->kind << 8 ^ d->reason;
}

/* Only the first address of an allowed name is part of the row: it may have many. */
static bool rows_is_same(const struct wire_decision *a, const struct wire_decision *b)
{
	return a->kind == b->kind && a->reason == b->reason && a->protocol == b->protocol &&
	       a->port == b->port && str_eq(a->name, b->name) && str_eq(a->secret, b->secret) &&
	       (a->kind == WIRE_NET_ALLOWED || str_eq(a->other, b->other));
}

static void rows_note(struct gate_rows *r, uint32_t row)
{
	r->is_new[row] = true;
	r->is_behind = true;
}

/* Copies a stranger's text; each byte that is not printable ASCII becomes "?". */
static void copy_text(char *ret, size_t size, const char *text)
{
	size_t i = 0;

	for (; i < size - 1 && text[i]; i++)
		ret[i] = text[i] >= 0x20 && text[i] <= 0x7e ? text[i] : '?';
	ret[i] = '\0';
}

static int rows_add(struct gate_rows *r, struct wire_decision d)
{
	uint32_t at;

	for (at = rows_hash(&d) % ROOM; r->places[at]; at = (at + 1) % ROOM) {
		uint32_t row = r->places[at] - 1U;

		if (!rows_is_same(&r->rows[row], &d))
			continue;
		r->rows[row].times++;
		rows_note(r, row);
		return (int)row;
	}
	if (r->counts[d.kind] >= shares[d.kind] - 1 && d.kind == WIRE_NET_ALLOWED &&
		!str_eq(d.name, REST))
		return gate_rows_add(r, WIRE_NET_ALLOWED, d.reason, WIRE_TCP, REST, 0, "");
	if (r->counts[d.kind] == shares[d.kind]) {
		r->untold++;
		r->is_untold_new = r->is_behind = true;
		return -1;
	}
	d.times = 1;
	r->counts[d.kind]++;
	r->rows[r->count] = d;
	r->places[at] = (uint16_t)(r->count + 1);
	rows_note(r, r->count);
	return (int)r->count++;
}

int gate_rows_add(struct gate_rows *r, enum wire_decision_kind kind, enum wire_reason reason,
	enum wire_protocol protocol, const char *name, uint16_t port, const char *other)
{
	struct wire_decision d = { .kind = (uint8_t)kind,
		.reason = (uint8_t)reason,
		.protocol = (uint8_t)protocol,
		.port = port };

	copy_text(d.name, sizeof(d.name), name);
	copy_text(d.other, sizeof(d.other), other);
	return rows_add(r, d);
}

int gate_rows_add_secret(struct gate_rows *r, enum wire_decision_kind kind, enum wire_reason reason,
	const struct wire_secret *secret, const char *other)
{
	struct wire_decision d = { .kind = (uint8_t)kind,
		.reason = (uint8_t)reason,
		.protocol = WIRE_TLS,
		.port = secret->port };

	copy_text(d.name, sizeof(d.name), secret->host);
	copy_text(d.other, sizeof(d.other), other);
	copy_text(d.secret, sizeof(d.secret), secret->name);
	return rows_add(r, d);
}

void gate_rows_add_bytes(struct gate_rows *r, int row, uint64_t out, uint64_t in)
{
	if (row < 0 || (!out && !in))
		return;
	r->rows[row].bytes_out += out;
	r->rows[row].bytes_in += in;
	rows_note(r, (uint32_t)row);
}

static int rows_tell(const struct wire_gate_message *m, int keeper)
{
	return wire_send_message(keeper, m, sizeof(*m), -1);
}

int gate_rows_tell(struct gate_rows *r, int keeper)
{
	int ret = 0;

	if (!r->is_behind)
		return 0;
	/* In turn, so that a row that changes all the time does not keep others from being told. */
	for (uint32_t n = 0; ret == 0 && n < r->count; n++) {
		uint32_t row = (r->told + n) % r->count;
		struct wire_gate_message m = { .kind = WIRE_GATE_DECIDED, .row = row };

		if (!r->is_new[row])
			continue;
		m.decision = r->rows[row];
		ret = rows_tell(&m, keeper);
		if (ret == 0)
			r->is_new[row] = false;
		else
			r->told = row;
	}
	if (ret == 0 && r->is_untold_new) {
		struct wire_gate_message m = { .kind = WIRE_GATE_UNTOLD };

		m.row = r->untold > UINT32_MAX ? UINT32_MAX : (uint32_t)r->untold;
		ret = rows_tell(&m, keeper);
		if (ret == 0)
			r->is_untold_new = false;
	}
	r->is_behind = ret != 0;
	return ret;
}
