#include "cgroup/cgroup_bus.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* The numbers are those of the D-Bus specification. */
enum {
	CALL = 1,
	RETURN,
	ERROR,
	SIGNAL
};
enum {
	PATH = 1,
	INTERFACE,
	MEMBER,
	ERROR_NAME,
	REPLY_SERIAL,
	DESTINATION,
	SENDER,
	SIGNATURE
};

#define SERIAL 1 /* of the one call */

/* --- writing: everything is aligned to its size, counted from the message's beginning --- */

struct writer {
	uint8_t *bytes;
	size_t len, max;
	bool failed;
};

static void bus_put(struct writer *w, const void *bytes, size_t n)
{
	w->failed |= n > w->max - w->len;
	if (w->failed)
		return;
	memcpy(w->bytes + w->len, bytes, n);
	w->len += n;
}

static void align(struct writer *w, size_t n)
{
	static const uint8_t zeros[8];

	bus_put(w, zeros, (n - w->len % n) % n);
}

static void put_byte(struct writer *w, uint8_t byte)
{
	bus_put(w, &byte, 1);
}

static void bus_put_number(struct writer *w, uint32_t n)
{
	const uint8_t bytes[] = { (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16),
		(uint8_t)(n >> 24) };

	align(w, 4);
	bus_put(w, bytes, sizeof(bytes));
}

static void bus_put_text(struct writer *w, const char *text)
{
	bus_put_number(w, (uint32_t)strlen(text));
	bus_put(w, text, strlen(text) + 1);
}

static void put_signature(struct writer *w, const char *text)
{
	put_byte(w, (uint8_t)strlen(text));
	bus_put(w, text, strlen(text) + 1);
}

/* Room for a length that is known later: where it is. */
static size_t begin_length(struct writer *w)
{
	bus_put_number(w, 0);
	return w->len - 4;
}

static void end_length(struct writer *w, size_t at, size_t from)
{
	struct writer length = { w->bytes, at, w->max, w->failed };

	bus_put_number(&length, (uint32_t)(w->len - from));
}

static void put_field(struct writer *w, uint8_t code, const char *type, const char *text)
{
	align(w, 8);
	put_byte(w, code);
	put_signature(w, type);
	if (*type == 'g')
		put_signature(w, text);
	else
		bus_put_text(w, text);
}

static void put_property(struct writer *w, const char *name, const char *type)
{
	align(w, 8);
	bus_put_text(w, name);
	put_signature(w, type);
}

static void put_body(struct writer *w, const char *unit, pid_t pid)
{
	size_t length, from;

	bus_put_text(w, unit);
	bus_put_text(w, "fail");
	length = begin_length(w);
	align(w, 8);
	from = w->len;
	put_property(w, "Description", "s");
	bus_put_text(w, "bawn: limits of a run");
	put_property(w, "PIDs", "au");
	bus_put_number(w, 4);
	bus_put_number(w, (uint32_t)pid);
	put_property(w, "Delegate", "b");
	bus_put_number(w, 1);
	put_property(w, "CollectMode", "s");
	bus_put_text(w, "inactive-or-failed");
	end_length(w, length, from);
	/* Units that go with it: none. */
	bus_put_number(w, 0);
	align(w, 8);
}

static void put_call(struct writer *w, const char *unit, pid_t pid)
{
	static const uint8_t head[] = { 'l', CALL, 0, 1 };
	size_t body, fields, from;

	bus_put(w, head, sizeof(head));
	body = begin_length(w);
	bus_put_number(w, SERIAL);
	fields = begin_length(w);
	from = w->len;
	put_field(w, PATH, "o", "/org/freedesktop/systemd1");
	put_field(w, INTERFACE, "s", "org.freedesktop.systemd1.Manager");
	put_field(w, MEMBER, "s", "StartTransientUnit");
	put_field(w, DESTINATION, "s", "org.freedesktop.systemd1");
	put_field(w, SIGNATURE, "g", "ssa(sv)a(sa(sv))");
	end_length(w, fields, from);
	align(w, 8);
	from = w->len;
	put_body(w, unit, pid);
	end_length(w, body, from);
}

size_t cgroup_bus_request(
	uid_t uid, const char *unit, pid_t pid, uint8_t ret[static CGROUP_BUS_MAX])
{
	char id[16], *login = (char *)ret + 1;
	struct writer w = { .max = CGROUP_BUS_MAX };
	size_t n;

	/* A zero byte, then lines: the id is written in decimal digits, and those in hex. */
	ret[0] = 0;
	n = 1 + (size_t)snprintf(login, CGROUP_BUS_MAX - 1, "AUTH EXTERNAL ");
	snprintf(id, sizeof(id), "%u", uid);
	for (const char *c = id; *c; c++)
		n += (size_t)snprintf((char *)ret + n, CGROUP_BUS_MAX - n, "%02x", (unsigned)*c);
	n += (size_t)snprintf((char *)ret + n, CGROUP_BUS_MAX - n, "\r\nBEGIN\r\n");
	w.bytes = ret + n;
	w.max -= n;
	put_call(&w, unit, pid);
	return w.failed ? 0 : n + w.len;
}

/* --- reading: every length is a stranger's --- */

struct reader {
	const uint8_t *bytes;
	size_t at, len;
	bool is_big; /* endian */
	bool failed;
};

static const uint8_t *bus_take(struct reader *r, size_t alignment, size_t n)
{
	size_t at = (r->at + alignment - 1) / alignment * alignment;

	r->failed |= at > r->len || n > r->len - at;
	if (r->failed)
		return NULL;
	r->at = at + n;
	return r->bytes + at;
}

static uint32_t number_of(const uint8_t b[static 4], bool is_big)
{
	uint32_t little = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;

	return is_big ? __builtin_bswap32(little) : little;
}

static uint32_t bus_take_number(struct reader *r)
{
	const uint8_t *bytes = bus_take(r, 4, 4);

	return bytes ? number_of(bytes, r->is_big) : 0;
}

static uint8_t take_byte(struct reader *r)
{
	const uint8_t *byte = bus_take(r, 1, 1);

	return byte ? *byte : 0;
}

/* Text that a zero byte ends, and none is in; NULL otherwise. */
static const char *take_chars(struct reader *r, size_t n)
{
	const uint8_t *text = n < r->len ? bus_take(r, 1, n + 1) : NULL;

	r->failed |= !text || memchr(text, 0, n + 1) != text + n;
	return r->failed ? NULL : (const char *)text;
}

static const char *bus_take_text(struct reader *r)
{
	return take_chars(r, bus_take_number(r));
}

static const char *take_signature(struct reader *r)
{
	return take_chars(r, take_byte(r));
}

size_t cgroup_bus_size(const uint8_t head[static CGROUP_BUS_HEAD])
{
	bool is_big = head[0] == 'B';
	uint64_t fields = number_of(head + 12, is_big), body = number_of(head + 4, is_big);

	if ((head[0] != 'l' && !is_big) || head[3] != 1)
		return 0;
	return (size_t)((CGROUP_BUS_HEAD + fields + 7) / 8 * 8 + body);
}

/* The fields of a message's head that matter here. */
struct head {
	const char *member;
	uint32_t reply_to;
};

static void take_fields(struct reader *r, size_t end, struct head *ret)
{
	while (!r->failed && r->at < end) {
		uint8_t code = bus_take(r, 8, 0) ? take_byte(r) : 0;
		const char *type = take_signature(r), *text = NULL;
		uint32_t number = 0;

		/* A head has texts, numbers and one signature, and nothing that is nested. */
		if (!type)
			return;
		if (str_eq(type, "u"))
			number = bus_take_number(r);
		else if (str_eq(type, "g"))
			take_signature(r);
		else if (str_eq(type, "s") || str_eq(type, "o"))
			text = bus_take_text(r);
		else
			r->failed = true;
		if (code == MEMBER)
			ret->member = text;
		if (code == REPLY_SERIAL)
			ret->reply_to = number;
	}
}

int cgroup_bus_read(const uint8_t *message, size_t size, const char *unit, struct err *e)
{
	struct reader r = { .bytes = message, .len = size };
	const char *about, *result;
	struct head head = { 0 };
	size_t body;

	if (size < CGROUP_BUS_HEAD || cgroup_bus_size(message) != size)
		return -EPROTO;
	r.is_big = message[0] == 'B';
	body = size - number_of(message + 4, r.is_big);
	r.at = CGROUP_BUS_HEAD;
	take_fields(&r, CGROUP_BUS_HEAD + number_of(message + 12, r.is_big), &head);
	r.at = body;
	if (r.failed)
		return -EPROTO;
	if (message[1] == ERROR && head.reply_to == SERIAL) {
		result = bus_take_text(&r);
		return err_set(e, ERR_REFUSED, EPERM, "%.200s", result ? result : "no reason");
	}
	if (message[1] != SIGNAL || !head.member || !str_eq(head.member, "JobRemoved"))
		return 0;
	/* The job's number and path, its unit, and what came of it. */
	bus_take_number(&r);
	bus_take_text(&r);
	about = bus_take_text(&r);
	result = bus_take_text(&r);
	if (!about || !result)
		return -EPROTO;
	if (!str_eq(about, unit))
		return 0;
	return str_eq(result, "done")
		       ? 1
		       : err_set(e, ERR_REFUSED, EPERM, "the job ended as '%.40s'", result);
}
