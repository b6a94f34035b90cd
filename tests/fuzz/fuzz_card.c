/*
 * Bytes as a card. What has a canonical form has it once: the form of the form is the form. Reading
 * and judging a card takes anything, and finds nothing that is signed by a key that signed nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "fuzz.h"
#include "proof/card/card.h"

static void check_form(const char *text, size_t n)
{
	own(buf) struct buf form = { .max = CARD_MAX_SIZE }, again = { .max = CARD_MAX_SIZE };

	if (card_canonicalize(text, n, NULL, &form, NULL) < 0)
		return;
	if (card_canonicalize(buf_text(&form), form.len, NULL, &again, NULL) < 0 ||
		form.len != again.len || memcmp(form.data, again.data, form.len) != 0)
		abort();
}

static void check_card(const char *text, size_t n)
{
	struct sign_public key = { .id = "key" };
	struct card_report report = { 0 };
	struct card_read read;

	if (card_read(text, n, &read, NULL) == 0) {
		struct record_read record = { .run = "r", .spec_sha256 = "s", .plan_sha256 = "p" };

		card_verify(&read, &key, &report);
		card_verify_record(&read, &record, "d", NULL, &report);
		if (!report.has_failed || card_find_signature(&read, &key) >= 0)
			abort();
	}
	card_read_done(&read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	check_form(text, size);
	check_card(text, size);
	free(text);
	return 0;
}
