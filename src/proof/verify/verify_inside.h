#pragma once

#include "proof/verify/verify.h"

/* The parts of a judgement; each says its properties. */

/* --- verify_sense.c: does the record agree with itself? --- */
void verify_provenance(const struct verify_record *v, struct verify_report *report);
void verify_guarantees(const struct verify_record *v, struct verify_report *report);
void verify_outcome(const struct verify_record *v, struct verify_report *report);

void verify_effects(const struct verify_record *v, struct verify_report *report);
void verify_plain_files(const struct verify_record *v, struct verify_report *report);
void verify_subjects(const struct verify_record *v, struct verify_report *report);

/*
 * Opens a plain file beside the record, no link followed. -1 where that was said under `property`:
 * it is not there, or it cannot be one of the run's.
 */
int verify_open_file(const struct verify_record *v, const char *property, const char *name,
	struct verify_report *report);

/* Which network the cage had, by its guarantees: "none", "allowlist", "host". */
const char *verify_network(const struct record_read *r);
