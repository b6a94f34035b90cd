#pragma once

#include "base/clock.h"
#include "proof/record/record.h"

/* What the files that make records share. Nobody else includes it. */

/* What the provenance says; NULL or "" is what is not known. */
struct record_facts {
	const char *run, *name, *spec_sha256;
	const char *image_sha256, *project_sha256, *overlay_sha256; /* before the run */
	const char *bawn, *began;
};

void record_print_facts(const struct record_facts *x, struct buf *out);

/* What is signed of a run: its predicates as they were printed. */
struct record_claims {
	const char *type; /* of the record's predicate */
	struct buf predicates[RECORD_CLAIM_COUNT];
};

/*
 * What the log of a run says that nobody ended, in its open folder: the predicates of a record that
 * says so. -ENODATA where it does not even say what began; others with a sentence.
 * record_interrupted.c
 */
int record_read_claims(int folder, const char *run, struct record_claims *ret, struct err *e);
