#include <assert.h>
#include <stdlib.h>

#include "proof/record/record.h"

#define SENTENCE_SIZE 1024

static_assert(SENTENCE_SIZE >= 2 * WIRE_NAME_SIZE + 256, "two names and what is said of them");

/* The gate counted, and may say what it likes: no count becomes a negative number. */
static void net_print_count(struct json *j, const char *key, uint64_t n)
{
	json_int(j, key, n > INT64_MAX ? INT64_MAX : (int64_t)n);
}

void record_print_decision(const struct wire_decision *d, struct json *j)
{
	bool is_passed = d->kind == WIRE_NET_ALLOWED || d->kind == WIRE_PUBLISHED;
	char text[SENTENCE_SIZE];

	json_text(j, "name", d->name);
	if (d->port)
		json_int(j, "port", d->port);
	/* A name that was asked for is not yet spoken to, and of addresses that were not reached
	 * only the number is known. */
	if (d->kind != WIRE_NAME_DENIED && d->name[0])
		json_text(j, "protocol", wire_protocol_names[d->protocol]);
	if (d->secret[0])
		json_text(j, "secret", d->secret);
	json_text(j, "reason", wire_reason_names[d->reason]);
	if (d->other[0])
		json_text(j, is_passed ? "address" : "other", d->other);
	net_print_count(j, "times", d->times);
	if (is_passed) {
		net_print_count(j, "bytes_out", d->bytes_out);
		net_print_count(j, "bytes_in", d->bytes_in);
	}
	wire_print_decision(d, text, sizeof(text));
	json_text(j, "text", text);
}

void record_print_untold(const struct record *r, struct json *j)
{
	net_print_count(j, "times", r->decisions_untold);
	json_text(j, "text", "decisions about the network of which only the number is known");
}

void record_print_net(const struct record *r, struct json *j)
{
	for (size_t i = 0; i < r->decision_count; i++) {
		json_open_map(j, NULL);
		json_text(j, "type", wire_decision_names[r->decisions[i].kind]);
		record_print_decision(&r->decisions[i], j);
		json_close_map(j);
	}
	if (r->decisions_untold) {
		json_open_map(j, NULL);
		json_text(j, "type", "decisions_untold");
		record_print_untold(r, j);
		json_close_map(j);
	}
	if (r->gate.kind != ERR_NONE) {
		json_open_map(j, NULL);
		json_text(j, "type", "network_closed");
		json_text(j, "text", r->gate.text);
		json_close_map(j);
	}
}

bool record_expect_decisions(struct record *r)
{
	r->decisions = calloc(WIRE_MAX_ROWS, sizeof(*r->decisions));
	return r->decisions != NULL;
}

void record_forget_decisions(struct record *r)
{
	free(r->decisions);
	r->decisions = NULL;
	r->decision_count = 0;
	r->decisions_untold = 0;
	r->gate = (struct err){ 0 };
}
