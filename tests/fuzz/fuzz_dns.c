/*
 * Bytes as a question to the gate's name server. Whatever is read has a name that can be shown, and
 * every reply to it, taken for a question, is read to its last byte as the same one.
 */
#include <stdbool.h>

#include "base/count.h"
#include "fuzz.h"
#include "gate/dns/gate_dns.h"

static void hold(bool is_so)
{
	if (!is_so)
		abort();
}

static bool is_host_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/* It ends, every escape in it is whole, and a host's has none. */
static void check_name(const struct gate_question *q)
{
	size_t n = strnlen(q->name, sizeof(q->name));

	hold(n < sizeof(q->name) && (!q->is_host || (n && n <= 253 && q->name[0] != '.')));
	for (size_t i = 0; i < n; i++) {
		if (q->name[i] == '\\') {
			hold(!q->is_host && i + 3 < n &&
				strspn(q->name + i + 1, "0123456789") >= 3);
			i += 3;
		} else {
			hold(is_host_byte(q->name[i]));
		}
	}
}

static void check_reply(
	const uint8_t *query, const struct gate_question *q, const struct gate_answer *a)
{
	bool has_address = a->address && a->code == GATE_DNS_OK && q->size > 12 &&
			   (q->type == GATE_DNS_A || q->type == GATE_DNS_AAAA);
	uint8_t *reply = malloc(GATE_DNS_MAX_REPLY), *copy;
	struct gate_question again;
	size_t n;

	hold(reply != NULL);
	n = gate_dns_write(query, q, a, reply);
	hold(n >= q->size && n <= GATE_DNS_MAX_REPLY && n <= 512);
	copy = (uint8_t *)fuzz_text(reply, n);
	hold(memcmp(copy, query, 2) == 0 && (copy[2] ^ query[2]) >> 7 == 1);
	hold(((copy[2] ^ query[2]) & 0x79) == 0 && (copy[3] & 0xf) == (a->code & 0xf));
	hold(memcmp(copy + 12, query + 12, q->size - 12) == 0);
	hold(copy[4] == 0 && copy[5] == (q->size > 12) && copy[6] == 0 && copy[7] == has_address);
	hold(copy[8] == 0 && copy[9] == 0 && copy[10] == 0 && copy[11] == q->has_options);
	hold(!gate_dns_read(copy, n, &again)); /* a reply is due to no reply */

	copy[2] &= 0x7f;
	hold(gate_dns_read(copy, n, &again) && again.size == q->size && again.type == q->type);
	hold(again.is_host == q->is_host && again.has_options == q->has_options);
	hold(strcmp(again.name, q->name) == 0);
	hold(again.r == q->r || q->r == GATE_DNS_BAD_VERSION); /* ours is always version 0 */
	free(copy);
	free(reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t address[16] = { 0xfd, 0xff, 0xc0, 0 };
	static char long_why[1024];
	const struct gate_answer answers[] = {
		{ GATE_DNS_OK },
		{ GATE_DNS_OK, .address = address, .ttl = 0xffffffff },
		{ GATE_DNS_OK, .address = address, .why = long_why },
		{ GATE_DNS_NO_NAME, .address = address, .why = "it is not in network.allow" },
		{ GATE_DNS_REFUSED, .why = long_why },
	};
	uint8_t *query = malloc(size ? size : 1); /* of just its size: a byte too far is seen */
	struct gate_question q;

	hold(query != NULL);
	if (size)
		memcpy(query, data, size);
	memset(long_why, '!', sizeof(long_why) - 1);
	memset(&q, 0xaa, sizeof(q));
	if (gate_dns_read(query, size, &q)) {
		hold(q.size >= 12 && q.size <= size);
		check_name(&q);
		check_reply(query, &q, &(struct gate_answer){ .code = q.r, .why = "unread" });
		for (size_t i = 0; i < COUNT_OF(answers); i++)
			check_reply(query, &q, &answers[i]);
	}
	free(query);
	return 0;
}
