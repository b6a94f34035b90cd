#pragma once

#include "proof/card/card.h"
#include "proof/record/record.h"
#include "run/run_spec.h"

/* The card of a run, and what it borrows from. */
struct result_card {
	struct card card;
	struct spec spec;
	struct arena arena;
	char *record_bytes, *spec_bytes;
	char digest[SHA256_HEX_SIZE];
	struct sign_public key;
};

/* Makes it of the run's folder; result_card_done it in any case. */
int result_make_card(int folder, struct result_card *ret, struct err *e);
void result_card_done(struct result_card *c);
