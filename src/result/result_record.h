#pragma once

#include "base/arena.h"
#include "proof/card/card.h"
#include "proof/record/record.h"
#include "proof/record/record_read.h"
#include "proof/verify/verify.h"
#include "run/run.h"
#include "run/run_spec.h"

/*
 * Finds and loads records: in the folders of runs, or wherever a word points to; and writes and
 * reads the archives that they are exported as. Errors as in result.h.
 */

/* --- in a run's folder; signatures are not checked --- */

#define RESULT_RECORD_MOST (4 * RECORD_MAX_SIZE)

struct result_record {
	struct arena arena;
	char *bytes;
	struct record_statement statement;
	struct record_read record;
	const char *state; /* why there is no record: "goes on", …; NULL: there is one */
};

/* Loads the record in `folder`. `ret` must be zeroed before, and done in any case. */
int result_record_load(struct result_record *ret, int folder, struct err *e);
void result_record_done(struct result_record *k);

/* Reads the path of a run's project from its folder; "" if it is unknown. */
void result_read_project(int folder, char ret[static 4096]);

/* --- wherever a word points to, for verification --- */

/* The keys whose signatures count. */
struct result_verifier {
	struct arena arena;
	struct verify_keys keys;
	int state; /* the folder of the operator's state, or -1 */
};

void result_verifier_init(struct result_verifier *x);
void result_verifier_done(struct result_verifier *x);

/* Opens the operator's state, so that the operator's own keys count if no others are added. */
void result_verifier_open(struct result_verifier *x);

/* A record that was found, and the folder it is in. */
struct result_found {
	char *bytes;
	size_t size;
	int folder;        /* -1: none, as for standard input */
	char unpacked[64]; /* path of a folder that an archive was unpacked to; "": none */
};

void result_found_done(struct result_found *f);

/*
 * Finds and loads the record that a word means: the beginning of a run's id, a file, a folder, an
 * archive, or "-" for standard input; with NULL the newest run's. `ret` borrows the folder from
 * *ret_found. A wrong signature is not an error: the report has it as a property.
 */
int result_load_record(const struct result_verifier *x, const char *word,
	struct result_found *ret_found, struct verify_record *ret, struct verify_report *report,
	struct err *e);

/* The record that --again names. */
struct result_again {
	struct result_verifier verifier;
	struct result_found found;
	struct verify_record of;
	struct verify_report report;
	struct run_again run;
};

void result_again_init(struct result_again *a);
void result_again_done(struct result_again *a);

/* Finds, loads and verifies the record. */
int result_find_again(struct result_again *a, const struct run_request *asked, struct err *e);

/*
 * Adds to the report whether the card in a file, or "-", is signed and, if `v` is a signed record,
 * whether it is the card of that. Returns 0, or -errno with `e` if the file cannot be read.
 */
int result_judge_card(const struct result_verifier *x, const char *path,
	const struct verify_record *v, struct verify_report *report, struct err *e);

/* --- the card of a run: result_card.c --- */

/* A card, and what it borrows from. */
struct result_card {
	struct card card;
	struct spec spec;
	struct arena arena;
	char *record_bytes, *spec_bytes;
	char digest[SHA256_HEX_SIZE];
	struct sign_public key;
};

/*
 * Makes the card of the run in `folder` from its record and its spec. Returns 0, or -errno with
 * `e`: also if no key of the operator's signed the record. result_card_done must be called either
 * way.
 */
int result_make_card(int folder, struct result_card *ret, struct err *e);
void result_card_done(struct result_card *c);

/* --- archives: result_archive.c --- */

/* Writes the files of a run's folder as an archive to `to`. */
int result_write_archive(int to, int folder, const char *run, struct err *e);

/* True if a file, which must be seekable, begins as an archive. */
bool result_is_archive(int fd);

/* Unpacks an archive into an empty folder. Refuses all files that result_write_archive never
 * writes. */
int result_read_archive(int from, int folder, struct err *e);

/* Removes the folder of an unpacked archive. */
void result_remove_archive(int folder, const char *path);
