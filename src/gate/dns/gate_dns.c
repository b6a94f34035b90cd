#include "gate/dns/gate_dns.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define HEADER_SIZE 12
#define MAX_LABEL   63
#define MAX_NAME    255 /* on the wire: the bytes of all labels, each with its length, and a 0 */
#define CLASS_IN    1
#define TYPE_OPT    41

/* The header's third and fourth byte. */
#define IS_REPLY         0x80
#define OPCODE           0x78
#define IS_AUTHORITATIVE 0x04
#define WANTS_RECURSION  0x01
#define HAS_RECURSION    0x80

/* RFC 8914: an option of OPT, and what it says. */
#define OPTION_EXPLAINED  15
#define EXPLAINED_BLOCKED 15

/* A name without anything odd has a dot for each length but the first, and none for the 0. */
static_assert(MAX_NAME - 2 < WIRE_NAME_SIZE, "every name of a host has room");

/* --- reading --- */

/* The bytes that are left to read. After the first error every read fails. */
struct reader {
	const uint8_t *bytes;
	size_t size, at;
	bool is_bad;
};

/* The next n bytes, or NULL. */
static const uint8_t *dns_read_bytes(struct reader *r, size_t n)
{
	if (r->is_bad || r->size - r->at < n) {
		r->is_bad = true;
		return NULL;
	}
	r->at += n;
	return r->bytes + r->at - n;
}

static uint16_t dns_read_number(struct reader *r)
{
	const uint8_t *bytes = dns_read_bytes(r, 2);

	return bytes ? (uint16_t)(bytes[0] << 8 | bytes[1]) : 0;
}

/* The next label: its bytes and their number; 0 for the root's, and for one that is not good. */
static size_t read_label(struct reader *r, size_t name_start, const uint8_t **ret)
{
	const uint8_t *length = dns_read_bytes(r, 1);
	size_t n = length ? *length : 0;

	r->is_bad = r->is_bad || n > MAX_LABEL;
	*ret = dns_read_bytes(r, n);
	r->is_bad = r->is_bad || r->at - name_start > MAX_NAME;
	return r->is_bad ? 0 : n;
}

/* A name that is still being written; whatever does not fit ends it. */
struct name {
	char *text;
	size_t size;
	bool is_cut;
};

static void add_to_name(struct name *name, const char *text)
{
	size_t n = strlen(text);

	name->is_cut = name->is_cut || n >= WIRE_NAME_SIZE - name->size;
	if (name->is_cut)
		return;
	memcpy(name->text + name->size, text, n + 1);
	name->size += n;
}

/* Writes it and says if it can be one of a host's. */
static bool add_label(struct name *name, const uint8_t *label, size_t n)
{
	bool is_host = label[0] != '-' && label[n - 1] != '-';

	if (name->size)
		add_to_name(name, ".");
	for (size_t i = 0; i < n; i++) {
		char c = str_lower((char)label[i]), text[8] = { c };

		if (!str_is_letter(c) && !str_is_digit(c) && c != '-' && c != '_') {
			is_host = false;
			snprintf(text, sizeof(text), "\\%03u", label[i]);
		}
		add_to_name(name, text);
	}
	return is_host;
}

/* Nothing stands before a question that its name could point to: a pointer is a bad label. */
static void read_question_name(struct reader *r, struct gate_question *q)
{
	struct name name = { .text = q->name };
	const uint8_t *label;
	size_t start = r->at, n = read_label(r, start, &label);

	q->is_host = n > 0;
	for (; n; n = read_label(r, start, &label))
		q->is_host = add_label(&name, label, n) && q->is_host;
	q->is_host = q->is_host && !name.is_cut;
	if (!name.size)
		add_to_name(&name, ".");
}

/* A record's name is of no interest. True: it is the root's, written out. */
static bool dns_skip_name(struct reader *r)
{
	size_t start = r->at;
	const uint8_t *label;

	do {
		/* A pointer ends a name and leads back; where to is not looked at. */
		if (!r->is_bad && r->at < r->size && r->bytes[r->at] >= 0xc0) {
			size_t to = dns_read_number(r) & 0x3fffU;

			r->is_bad = r->is_bad || to < HEADER_SIZE || to >= start;
			return false;
		}
	} while (read_label(r, start, &label));
	return r->at - start == 1;
}

static void skip_record(struct reader *r)
{
	dns_skip_name(r);
	dns_read_bytes(r, 8); /* type, class, time to live */
	dns_read_bytes(r, dns_read_number(r));
}

/* RFC 6891: at most one OPT, and its name is the root. Of its options none matters here. */
static void read_additional(struct reader *r, struct gate_question *q)
{
	struct reader ahead = *r;
	bool is_root = dns_skip_name(&ahead);
	const uint8_t *version;

	if (dns_read_number(&ahead) == TYPE_OPT) {
		r->is_bad = r->is_bad || !is_root || q->has_options;
		q->has_options = true;
		dns_read_bytes(&ahead, 3); /* the size of a reply it takes, and half of a code */
		version = dns_read_bytes(&ahead, 1);
		if (version && *version)
			q->r = GATE_DNS_BAD_VERSION;
	}
	skip_record(r);
}

/* All that follows the header; to the last byte, or it is not a question. */
static void read_query(struct reader *r, struct gate_question *q)
{
	unsigned questions, records, additional, class;

	r->at = 4;
	questions = dns_read_number(r);
	records = dns_read_number(r);
	records += dns_read_number(r);
	additional = dns_read_number(r);
	r->is_bad = questions != 1;
	read_question_name(r, q);
	q->type = dns_read_number(r);
	class = dns_read_number(r);
	q->size = r->at;
	q->r = class == CLASS_IN ? GATE_DNS_OK : GATE_DNS_REFUSED;
	for (; records && !r->is_bad; records--)
		skip_record(r);
	for (; additional && !r->is_bad; additional--)
		read_additional(r, q);
	r->is_bad = r->is_bad || r->at != r->size;
}

bool gate_dns_read(const uint8_t *bytes, size_t n, struct gate_question *ret)
{
	static const struct gate_question unread = { .size = HEADER_SIZE, .r = GATE_DNS_FORMAT };
	struct reader r = { .bytes = bytes, .size = n };

	*ret = unread;
	if (n < HEADER_SIZE || bytes[2] & IS_REPLY)
		return false;
	if (bytes[2] & OPCODE) {
		ret->r = GATE_DNS_NOT_HERE;
	} else if (n <= GATE_DNS_MAX_QUERY) {
		read_query(&r, ret);
		if (r.is_bad)
			*ret = unread;
	}
	return true;
}

/* --- writing --- */

/* Header, the longest question, an answer, and an OPT with an explanation that has no words. */
#define ANSWER_SIZE  (12 + 16)
#define OPTIONS_SIZE (11 + 6)
static_assert(HEADER_SIZE + MAX_NAME + 4 + ANSWER_SIZE + OPTIONS_SIZE <= GATE_DNS_MAX_REPLY,
	"whatever was asked can be answered");

struct writer {
	uint8_t *bytes;
	size_t at;
};

static void write_bytes(struct writer *w, const void *bytes, size_t n)
{
	memcpy(w->bytes + w->at, bytes, n);
	w->at += n;
}

static void write_number(struct writer *w, size_t value)
{
	uint8_t bytes[] = { (uint8_t)(value >> 8), (uint8_t)value };

	write_bytes(w, bytes, sizeof(bytes));
}

static void write_header(struct writer *w, const uint8_t *query, const struct gate_question *q,
	const struct gate_answer *a, bool has_address)
{
	write_bytes(w, query, 2); /* the asker's number for it */
	w->bytes[w->at++] =
		(uint8_t)(IS_REPLY | IS_AUTHORITATIVE | (query[2] & (OPCODE | WANTS_RECURSION)));
	w->bytes[w->at++] = (uint8_t)(HAS_RECURSION | (a->code & 0xf));
	write_number(w, q->size > HEADER_SIZE);
	write_number(w, has_address);
	write_number(w, 0);
	write_number(w, q->has_options);
}

static void write_address(
	struct writer *w, const struct gate_question *q, const struct gate_answer *a)
{
	size_t size = q->type == GATE_DNS_A ? 4 : 16;

	write_number(w, 0xc000 | HEADER_SIZE); /* the name: see the question */
	write_number(w, q->type);
	write_number(w, CLASS_IN);
	write_number(w, a->ttl >> 16);
	write_number(w, a->ttl & 0xffff);
	write_number(w, size);
	write_bytes(w, a->address, size);
}

/* Adds as much of the explanation as fits, cut between characters. */
static size_t measure_why(const char *why, size_t room)
{
	size_t n = strnlen(why, room + 1);

	if (n <= room)
		return n;
	for (n = room; n && ((uint8_t)why[n] & 0xc0) == 0x80;)
		n--;
	return n;
}

static void write_options(struct writer *w, const struct gate_answer *a)
{
	size_t n = a->why ? measure_why(a->why, GATE_DNS_MAX_REPLY - OPTIONS_SIZE - w->at) : 0;

	w->bytes[w->at++] = 0;
	write_number(w, TYPE_OPT);
	write_number(w, GATE_DNS_MAX_QUERY);
	write_number(w, (size_t)(a->code >> 4) << 8); /* the code's upper part, and version 0 */
	write_number(w, 0);
	write_number(w, a->why ? 6 + n : 0);
	if (!a->why)
		return;
	write_number(w, OPTION_EXPLAINED);
	write_number(w, 2 + n);
	write_number(w, EXPLAINED_BLOCKED);
	write_bytes(w, a->why, n);
}

size_t gate_dns_write(const uint8_t *query, const struct gate_question *q,
	const struct gate_answer *a, uint8_t ret[static GATE_DNS_MAX_REPLY])
{
	bool has_address = a->address && a->code == GATE_DNS_OK && q->size > HEADER_SIZE &&
			   (q->type == GATE_DNS_A || q->type == GATE_DNS_AAAA);
	struct writer w = { .bytes = ret };

	write_header(&w, query, q, a, has_address);
	write_bytes(&w, query + HEADER_SIZE, q->size - HEADER_SIZE);
	if (has_address)
		write_address(&w, q, a);
	if (q->has_options)
		write_options(&w, a);
	return w.at;
}
