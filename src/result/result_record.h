#pragma once

#include "base/arena.h"
#include "proof/card/card.h"
#include "proof/record/record.h"
#include "proof/record/record_read.h"
#include "proof/verify/verify.h"
#include "run/run.h"
#include "run/run_spec.h"

/*
 * Records: as they lie in the folders of runs, or wherever a word says, and the archives that they
 * are exported as. Errors as in result.h.
 */

/* --- in a run's folder, signed by whomever --- */

#define RESULT_RECORD_MOST (4 * RECORD_MAX_SIZE)

struct result_record {
	struct arena arena;
	char *bytes;
	struct record_statement statement;
	struct record_read record;
	const char *state; /* why there is none: "goes on", …; NULL: there is one */
};

/* Must be done in any case, as it was zeroed before. */
int result_record_load(struct result_record *ret, int folder, struct err *e);
void result_record_done(struct result_record *k);

/* The project of a run, by its folder; "" where that does not say. */
void result_read_project(int folder, char ret[static 4096]);

/* --- wherever a word says, to be verified --- */

/* Whose signatures count. */
struct result_verifier {
	struct arena arena;
	struct verify_keys keys;
	int state; /* the operator's, or -1 */
};

void result_verifier_init(struct result_verifier *x);
void result_verifier_done(struct result_verifier *x);

/* Beside the keys that were added, the operator's own are used; whoever has no state has none. */
void result_verifier_open(struct result_verifier *x);

/* A record that was found, and the folder it is in. */
struct result_found {
	char *bytes;
	size_t size;
	int folder;        /* -1: there is none, as with standard input */
	char unpacked[64]; /* the path of a folder made for an archive; "": there is none */
};

void result_found_done(struct result_found *f);

/*
 * Finds and loads the record that a word means: of a run by the beginning of its id, in a file, in
 * a folder, in an archive, or "-"; with NULL that of the newest run. The folder is borrowed from
 * *ret_found. What is wrong with the signature is in the report, and 0.
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

/* Finds and verifies it. */
int result_find_again(struct result_again *a, const struct run_request *asked, struct err *e);

/*
 * Says of the card in a file, or "-", whether it is signed and, where `v` is not NULL and signed,
 * whether it is that record's. What is wrong with the file is in `e`.
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

/* Writes all that there is of a run in its folder. */
int result_write_archive(int to, int folder, const char *run, struct err *e);

/* Does a file that can be read from anywhere begin as an archive does? */
bool result_is_archive(int fd);

/* Puts the files of an archive into an empty folder. Nothing but those is made. */
int result_read_archive(int from, int folder, struct err *e);

/* Removes that folder. */
void result_remove_archive(int folder, const char *path);
