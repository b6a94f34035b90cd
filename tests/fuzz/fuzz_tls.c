/*
 * A client's first bytes. An answer is for good: each beginning of the input gives "more" or that
 * same answer, and so does the hello in other records. A name is one that a rule could have.
 */
#include <stdbool.h>
#include <stdio.h>

#include "fuzz.h"
#include "gate/tls/gate_tls.h"

static void demand(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "not so: %s\n", what);
	abort();
}

static enum gate_tls read_exactly(const uint8_t *bytes, size_t n, char name[static WIRE_NAME_SIZE])
{
	char *copy = fuzz_text(bytes, n);
	uint8_t *exact = realloc(copy, n ? n : 1);
	enum gate_tls r;

	if (!exact)
		abort();
	memset(name, 'X', WIRE_NAME_SIZE);
	r = gate_tls_read(exact, n, name);
	free(exact);
	demand(memchr(name, '\0', WIRE_NAME_SIZE), "a name ends");
	demand((r == GATE_TLS_NAME) == (name[0] != '\0'), "a name with GATE_TLS_NAME only");
	demand(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == strlen(name),
		"a name of letters");
	demand(r != GATE_TLS_MORE || n < GATE_TLS_MAX_HELLO, "there is an end to it");
	return r;
}

/* A hello that is whole, with each of its records cut in two; true if there was anything to cut. */
static bool cut_records(const uint8_t *bytes, size_t n, uint8_t *ret, size_t *ret_n)
{
	*ret_n = 0;
	for (size_t at = 0; at + 5 <= n;) {
		size_t size = (size_t)bytes[at + 3] << 8 | bytes[at + 4], first = size / 2;

		if (bytes[at] != 22 || size > n - at - 5 || size < 2)
			return false;
		for (int i = 0; i < 2; i++) {
			size_t piece = i ? size - first : first;
			const uint8_t head[] = { 22, 3, 1, (uint8_t)(piece >> 8), (uint8_t)piece };

			memcpy(ret + *ret_n, head, sizeof(head));
			memcpy(ret + *ret_n + 5, bytes + at + 5 + (i ? first : 0), piece);
			*ret_n += 5 + piece;
		}
		at += 5 + size;
		if (at == n)
			return true;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char whole[WIRE_NAME_SIZE], part[WIRE_NAME_SIZE];
	enum gate_tls r = read_exactly(data, size, whole);
	size_t n = 0, step = size / 64 + 1;
	uint8_t *cut;

	for (size_t i = 0; i < size; i += step) {
		enum gate_tls now = read_exactly(data, i, part);

		demand(now == GATE_TLS_MORE || now == r, "an answer is for good");
		demand(now != GATE_TLS_NAME || strcmp(whole, part) == 0, "a name is for good");
	}
	cut = malloc(2 * size + 10);
	if (!cut)
		abort();
	if ((r == GATE_TLS_NAME || r == GATE_TLS_NO_NAME) && size < GATE_TLS_MAX_HELLO / 4 &&
		cut_records(data, size, cut, &n)) {
		demand(read_exactly(cut, n, part) == r, "records make no difference");
		demand(strcmp(whole, part) == 0, "records do not change the name");
	}
	free(cut);
	return 0;
}
