#include "gate/tls/gate_tls.h"

#include <stdbool.h>

#include "gate/http/gate_host.h"

/*
 * A hello is a handshake message, and that is cut into records wherever the client likes:
 *
 *   record: 22, version (2), size (2) │ hello: 1, size (3), body … │ record │ … the rest of the
 * body
 *
 * gate_tls_read goes over the records first, until the hello's last byte is there; only then is the
 * body read, by a walk that hops over the records' heads. So nothing is copied, nothing is kept
 * from call to call, and no part is judged before all of it is there.
 */

#define RECORD_HEAD      5
#define RECORD_MAX       16384
#define RECORD_HANDSHAKE 22
#define RECORD_ALERT     21
#define HELLO_HEAD       4
#define HELLO_CLIENT     1
#define RANDOM_SIZE      32
#define SESSION_MAX      32
#define TLS_1_0          0x0301
#define TLS_1_2          0x0303
#define TLS_1_3          0x0304
#define EXTENSION_NAME   0
#define NAME_HOST        0

static size_t read_16(const uint8_t *bytes)
{
	return (size_t)bytes[0] << 8 | bytes[1];
}

/* --- the body, all of which is there --- */

struct walk {
	const uint8_t *at;
	size_t in_record; /* bytes up to the next record's head */
};

static uint8_t walk_byte(struct walk *w)
{
	if (w->in_record == 0) {
		w->in_record = read_16(w->at + 3);
		w->at += RECORD_HEAD;
	}
	w->in_record--;
	return *w->at++;
}

/*
 * Each part of the body has a size, and is within a larger part. `left` is what is left of the part
 * that is being read: nobody gets behind its end, whatever sizes are written in it.
 */
static bool tls_read_number(struct walk *w, size_t *left, unsigned width, size_t *ret)
{
	if (*left < width)
		return false;
	*left -= width;
	for (*ret = 0; width; width--)
		*ret = *ret << 8 | walk_byte(w);
	return true;
}

static bool tls_skip(struct walk *w, size_t *left, size_t n)
{
	if (*left < n)
		return false;
	*left -= n;
	for (; n; n--)
		walk_byte(w);
	return true;
}

/* The size of a part within, which is then taken off `left`. */
static bool open_part(struct walk *w, size_t *left, unsigned width, size_t *ret)
{
	if (!tls_read_number(w, left, width, ret) || *ret > *left)
		return false;
	*left -= *ret;
	return true;
}

/* One name of a host, and nothing else: servers differ in which of two they take. */
static bool read_server_name(struct walk *w, size_t left, char name[static WIRE_NAME_SIZE])
{
	size_t list, kind, size;
	char text[WIRE_NAME_SIZE];

	if (!open_part(w, &left, 2, &list) || left > 0)
		return false;
	if (!tls_read_number(w, &list, 1, &kind) || kind != NAME_HOST)
		return false;
	if (!open_part(w, &list, 2, &size) || list > 0 || size > sizeof(text))
		return false;
	for (size_t i = 0; i < size; i++)
		text[i] = (char)walk_byte(w);
	return gate_host_read_name(text, size, name);
}

/*
 * An encrypted hello (ECH) is an extension among others here: it hides a second name, and the one
 * that counts is the outer. Only the server that the outer name leads to can open it, and to no
 * other does the connection go; what it then serves is its own decision, as with any path.
 */
static enum gate_tls read_extensions(struct walk *w, size_t left, char name[static WIRE_NAME_SIZE])
{
	bool has_name = false;

	while (left > 0) {
		size_t type, size;

		if (!tls_read_number(w, &left, 2, &type) || !open_part(w, &left, 2, &size))
			return GATE_TLS_BAD;
		if (type != EXTENSION_NAME) {
			tls_skip(w, &size, size);
			continue;
		}
		if (has_name || !read_server_name(w, size, name))
			return GATE_TLS_BAD;
		has_name = true;
	}
	return has_name ? GATE_TLS_NAME : GATE_TLS_NO_NAME;
}

static enum gate_tls read_body(struct walk *w, size_t left, char name[static WIRE_NAME_SIZE])
{
	size_t version, session, suites, compressions, extensions;

	if (!tls_read_number(w, &left, 2, &version) || version < TLS_1_0 || version > TLS_1_2)
		return GATE_TLS_BAD;
	if (!tls_skip(w, &left, RANDOM_SIZE))
		return GATE_TLS_BAD;
	if (!open_part(w, &left, 1, &session) || session > SESSION_MAX)
		return GATE_TLS_BAD;
	tls_skip(w, &session, session);
	if (!open_part(w, &left, 2, &suites) || suites == 0 || suites % 2)
		return GATE_TLS_BAD;
	tls_skip(w, &suites, suites);
	if (!open_part(w, &left, 1, &compressions) || compressions == 0)
		return GATE_TLS_BAD;
	tls_skip(w, &compressions, compressions);
	if (left == 0)
		return GATE_TLS_NO_NAME;
	if (!open_part(w, &left, 2, &extensions) || left > 0)
		return GATE_TLS_BAD;
	return read_extensions(w, extensions, name);
}

/* --- the records --- */

/* Reads as much of a head as has come. GATE_TLS_NAME: it is complete and valid. */
static enum gate_tls check_head(const uint8_t *head, size_t n, bool is_first)
{
	size_t version;

	if (n >= 1 && head[0] != RECORD_HANDSHAKE)
		return is_first ? GATE_TLS_OTHER : GATE_TLS_BAD;
	if (n >= 2 && head[1] != TLS_1_0 >> 8)
		return is_first ? GATE_TLS_OTHER : GATE_TLS_BAD;
	if (n < RECORD_HEAD)
		return GATE_TLS_MORE;
	version = read_16(head + 1);
	if (version < TLS_1_0 || version > TLS_1_3)
		return GATE_TLS_BAD;
	/* An empty record of a handshake is forbidden, and would make a hello endless. */
	if (read_16(head + 3) == 0 || read_16(head + 3) > RECORD_MAX)
		return GATE_TLS_BAD;
	return GATE_TLS_NAME;
}

/* The records that are read so far. */
struct hello {
	size_t seen;   /* bytes of the message that are there */
	size_t size;   /* of its body, once its head is there */
	bool is_hello; /* … and not another message */
};

static void see_record(struct hello *hello, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n && hello->seen + i < HELLO_HEAD; i++) {
		if (hello->seen + i == 0)
			hello->is_hello = bytes[i] == HELLO_CLIENT;
		else
			hello->size = hello->size << 8 | bytes[i];
	}
	hello->seen += n;
}

static enum gate_tls read_records(const uint8_t *bytes, size_t n, struct hello *hello)
{
	for (size_t at = 0; at < n;) {
		enum gate_tls head = check_head(bytes + at, n - at, at == 0);
		size_t size, here;

		if (head != GATE_TLS_NAME)
			return head;
		size = read_16(bytes + at + 3);
		at += RECORD_HEAD;
		here = n - at < size ? n - at : size;
		see_record(hello, bytes + at, here);
		at += here;
		if (hello->seen > 0 && !hello->is_hello)
			return GATE_TLS_BAD;
		if (hello->seen < HELLO_HEAD)
			continue;
		if (hello->size > GATE_TLS_MAX_HELLO)
			return GATE_TLS_BAD;
		/* Complete, unless its record goes on: nothing may follow in the same record. */
		if (hello->seen - here + size > HELLO_HEAD + hello->size)
			return GATE_TLS_BAD;
		if (hello->seen == HELLO_HEAD + hello->size)
			return GATE_TLS_NAME;
	}
	return GATE_TLS_MORE;
}

enum gate_tls gate_tls_read(const uint8_t *bytes, size_t n, char name[static WIRE_NAME_SIZE])
{
	struct walk w = { .at = bytes };
	struct hello hello = { 0 };
	size_t head = HELLO_HEAD;
	enum gate_tls r =
		read_records(bytes, n < GATE_TLS_MAX_HELLO ? n : GATE_TLS_MAX_HELLO, &hello);

	name[0] = '\0';
	if (r == GATE_TLS_MORE && n >= GATE_TLS_MAX_HELLO)
		return GATE_TLS_BAD;
	if (r != GATE_TLS_NAME)
		return r;
	tls_skip(&w, &head, HELLO_HEAD);
	r = read_body(&w, hello.size, name);
	if (r != GATE_TLS_NAME)
		name[0] = '\0';
	return r;
}

void gate_tls_write_alert(enum gate_tls_alert alert, uint8_t ret[static GATE_TLS_ALERT_SIZE])
{
	const uint8_t fatal = 2;

	ret[0] = RECORD_ALERT;
	ret[1] = TLS_1_2 >> 8;
	ret[2] = TLS_1_2 & 0xff;
	ret[3] = 0;
	ret[4] = 2; /* bytes follow */
	ret[5] = fatal;
	ret[6] = (uint8_t)alert;
}
