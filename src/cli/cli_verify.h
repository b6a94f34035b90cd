#pragma once

#include "cli/cli.h"
#include "proof/record/record.h"
#include "proof/verify/verify.h"
#include "proof/verify/verify_policy.h"

/* What commands that verify records share: whose keys count, where a record is. cli_verify.c */

struct cli_verifier {
	const struct cli *cli;
	struct arena arena;
	struct verify_keys keys;
	int state; /* the operator's, or -1 */
};

void cli_verifier_init(struct cli_verifier *x, const struct cli *cli);
void cli_verifier_done(struct cli_verifier *x);

/* The keys of --key, or the operator's own. A status, after a complaint, which `e` has too. */
int cli_verifier_take_keys(struct cli_verifier *x, struct err *e);

/* A record that was found, and the folder it is in. */
struct cli_found {
	char *bytes;
	size_t size;
	int folder;        /* -1: there is none, as with standard input */
	char unpacked[64]; /* the path of a folder made for an archive; "": there is none */
};

void cli_found_done(struct cli_found *f);

/*
 * Finds the record that a word means: of a run by the beginning of its id, in a file, in a folder,
 * in what record export wrote, or "-"; with NULL that of the newest run. CLI_NO after a complaint;
 * `ret` is the caller's in any case.
 */
int cli_find_record(const struct cli_verifier *x, const char *word, struct cli_found *ret);

/*
 * Finds and loads it; the folder is borrowed from *ret_found. What is wrong with the file is in
 * `e`, and CLI_NO; what is wrong with the signature is in the report, and CLI_OK.
 */
int cli_load_record(const struct cli_verifier *x, const char *word, struct cli_found *ret_found,
	struct verify_record *ret, struct verify_report *report, struct err *e);
