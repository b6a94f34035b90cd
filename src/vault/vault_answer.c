#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "vault/vault_http.h"

#define MAX_DIGITS 19 /* of INT64_MAX */

/* What is gathered from line to line. */
struct head {
	struct vault_answer *answer;
	struct vault_refusal *no;
	bool is_1_1, has_length, is_chunked, has_close, has_keep_alive;
};

static enum vault_verdict answer_refuse(struct vault_refusal *no, const char *what)
{
	no->reason = WIRE_BECAUSE_BAD_ANSWER;
	no->status = 502;
	snprintf(no->other, sizeof(no->other), "%s", what);
	return VAULT_BAD;
}

static bool answer_fail(const struct head *head, const char *what)
{
	answer_refuse(head->no, what);
	return false;
}

/* HTTP/1.x SP NNN [SP …] */
static bool answer_read_status(struct head *head, struct gate_span line)
{
	static const char version[] = "HTTP/1.";
	const size_t n = sizeof(version) - 1;

	if (line.n < n + 5 || memcmp(line.at, version, n) != 0 ||
		(line.at[n] != '0' && line.at[n] != '1') || line.at[n + 1] != ' ' ||
		(line.n > n + 5 && line.at[n + 5] != ' '))
		return answer_fail(head, "it does not begin as HTTP/1.1 does");
	head->is_1_1 = line.at[n] == '1';
	for (size_t i = n + 2; i < n + 5; i++) {
		if (!str_is_digit(line.at[i]))
			return answer_fail(head, "its status is not a number");
		head->answer->status = head->answer->status * 10 + (unsigned)(line.at[i] - '0');
	}
	if (head->answer->status < 100 || head->answer->status == 101)
		return answer_fail(head, "its status is one that nobody asked for");
	return true;
}

static bool answer_read_length(struct head *head, struct gate_span value)
{
	uint64_t length = 0;

	if (value.n == 0 || value.n > MAX_DIGITS)
		return answer_fail(head, "its length is not a number");
	for (size_t i = 0; i < value.n; i++) {
		if (!str_is_digit(value.at[i]))
			return answer_fail(head, "its length is not a number");
		length = length * 10 + (uint64_t)(value.at[i] - '0');
	}
	if (length > INT64_MAX || (head->has_length && length != head->answer->length))
		return answer_fail(head, "it has two lengths");
	head->has_length = true;
	head->answer->length = length;
	return true;
}

static bool answer_read_coding(struct head *head, struct gate_span value)
{
	if (head->is_chunked || !gate_span_is(value, "chunked"))
		return answer_fail(head, "its Transfer-Encoding is not just 'chunked'");
	head->is_chunked = true;
	return true;
}

static bool answer_read_connection(struct head *head, struct gate_span value)
{
	while (value.n > 0) {
		const char *comma = memchr(value.at, ',', value.n);
		size_t n = comma ? (size_t)(comma - value.at) : value.n;
		struct gate_span word = gate_span_trim((struct gate_span){ value.at, n });

		head->has_close |= gate_span_is(word, "close");
		head->has_keep_alive |= gate_span_is(word, "keep-alive");
		value.at += comma ? n + 1 : n;
		value.n -= comma ? n + 1 : n;
	}
	return true;
}

/* Between two neighbours: read here, and written anew for the client. */
static const struct {
	const char *name;
	bool (*read)(struct head *head, struct gate_span value);
} own[] = {
	{ "content-length", answer_read_length }, { "transfer-encoding", answer_read_coding },
	{ "connection", answer_read_connection }, { "keep-alive", NULL },
	{ "proxy-authenticate", NULL }, { "proxy-connection", NULL }, { "te", NULL },
	{ "trailer", NULL }, { "upgrade", NULL },
	{ "alt-svc", NULL }, /* another way to the same server, which the cage does not have */
};

static bool read_field(struct head *head, struct gate_span line, struct vault_text *out)
{
	struct gate_field field;
	struct gate_why why;

	if (!gate_http_read_field(line, &field, &why))
		return answer_fail(head, "a line of its head is not NAME: VALUE");
	for (size_t i = 0; i < COUNT_OF(own); i++)
		if (gate_span_is(field.name, own[i].name))
			return !own[i].read || own[i].read(head, field.value);
	vault_put(out, line.at, line.n);
	vault_puts(out, "\r\n");
	return true;
}

/* Where its body ends. */
static bool frame(struct head *head, bool is_head)
{
	struct vault_answer *a = head->answer;

	if (head->is_chunked && head->has_length)
		return answer_fail(head, "it has both Content-Length and Transfer-Encoding");
	a->is_interim = a->status < 200;
	a->closes = head->has_close || (!head->is_1_1 && !head->has_keep_alive);
	if (is_head || a->is_interim || a->status == 204 || a->status == 304)
		a->framing = VAULT_NO_BODY;
	else if (head->is_chunked)
		a->framing = VAULT_CHUNKED;
	else if (head->has_length)
		a->framing = a->length ? VAULT_LENGTH : VAULT_NO_BODY;
	else
		a->framing = VAULT_UNTIL_CLOSE;
	return true;
}

static void put_framing(const struct head *head, bool closes, struct vault_text *out)
{
	const struct vault_answer *a = head->answer;
	char length[64];

	snprintf(length, sizeof(length), "content-length: %" PRIu64 "\r\n", a->length);
	if (head->has_length && !a->is_interim && a->status != 204)
		vault_puts(out, length);
	if (a->framing == VAULT_CHUNKED)
		vault_puts(out, "transfer-encoding: chunked\r\n");
	if ((closes || a->framing == VAULT_UNTIL_CLOSE) && !a->is_interim)
		vault_puts(out, "connection: close\r\n");
	vault_puts(out, "\r\n");
}

/* Makes the key in it unreadable; true if it was there. */
static bool answer_cross_out(char *at, size_t n, const struct vault_secret *secret)
{
	static const struct gate_span nothing = { "", 0 };
	bool is_found = false;
	size_t end;

	do {
		struct vault_seek seek = { 0 };

		end = vault_seek(&seek, secret, nothing, (struct gate_span){ at, n });
		if (end)
			memset(at + end - secret->key.n, '*', secret->key.n);
		is_found |= end > 0;
		at += end;
		n -= end;
	} while (end);
	return is_found;
}

enum vault_verdict vault_read_answer(struct gate_span in, const struct vault_secret *secret,
	bool is_head, bool closes, struct vault_answer *ret, struct vault_text *out,
	struct vault_refusal *no)
{
	struct head head = { .answer = ret, .no = no };
	size_t begin = out->n;
	struct gate_span line;
	struct gate_why why;

	*ret = (struct vault_answer){ 0 };
	do {
		struct gate_span rest = { in.at + ret->size, in.n - ret->size };
		enum gate_http_verdict r = gate_http_read_line(
			rest, VAULT_MAX_ANSWER - ret->size, "its head is too long", &line, &why);

		if (r == GATE_HTTP_MORE) {
			out->n = begin;
			return VAULT_MORE;
		}
		if (r == GATE_HTTP_DENY)
			return answer_refuse(no, why.what.at);
		if (ret->size == 0) {
			if (!answer_read_status(&head, line))
				return VAULT_BAD;
			vault_puts(out, "HTTP/1.1");
			vault_put(out, line.at + 8, line.n - 8);
			vault_puts(out, "\r\n");
		} else if (line.n > 0 && !read_field(&head, line, out)) {
			return VAULT_BAD;
		}
		ret->size += GATE_HTTP_LINE_SIZE(line);
	} while (line.n > 0);
	if (!frame(&head, is_head))
		return VAULT_BAD;
	put_framing(&head, closes, out);
	if (out->failed)
		return answer_refuse(no, "its head is too long");
	ret->has_echo = answer_cross_out(out->at + begin, out->n - begin, secret);
	return VAULT_GOOD;
}
