#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"
#include "change/change.h"
#include "proof/record/record_read.h"
#include "proof/sign/sign.h"

/*
 * Verifies the record of a run: each check gives a property with a result. A check that could not
 * be made never counts as passed. Opens and reads files, which a stranger may have written; changes
 * nothing and prints nothing.
 */

enum verify_result {
	VERIFY_YES,
	VERIFY_NO,
	VERIFY_ABSENT,  /* what it would be compared with is missing */
	VERIFY_UNASKED, /* an option left the check out */
};

struct verify_property {
	const char *name; /* "signature"; escaped, as the text */
	enum verify_result result;
	const char *text; /* a sentence without a full stop */
};

#define VERIFY_MAX_PROPERTIES 512

struct verify_report {
	struct arena *arena; /* borrowed; holds all texts */
	struct verify_property items[VERIFY_MAX_PROPERTIES];
	size_t count;
	bool has_failed;    /* a property is `no`, or did not fit */
	bool is_comparison; /* of two runs: `absent` is printed as unknown */
};

/* Adds a property. Control characters in its texts are escaped. */
void verify_say(struct verify_report *r, const char *name, enum verify_result result,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* True if the property was checked and its result is `yes`. */
bool verify_is_yes(const struct verify_report *r, const char *name);

/* Print the properties for people, one a line, or as the list "properties" of the open map. */
void verify_print(const struct verify_report *r, bool has_color, struct buf *out);
void verify_print_json(const struct verify_report *r, struct json *j);

/* --- the keys that count --- */

#define VERIFY_MAX_KEYS 64

struct verify_key {
	struct sign_public public;
	const char *name; /* the file it was in */
};

/* The keys that the verifier named; if there are none, the operator's own, present and former. */
struct verify_keys {
	struct verify_key items[VERIFY_MAX_KEYS];
	size_t count;
	int state; /* the folder of the operator's state, borrowed; -1: there is none */
};

/* Reads a public key from a PEM file that the verifier named. */
int verify_add_key(struct verify_keys *keys, const char *path, struct arena *arena, struct err *e);

/* Finds the key with an id among those that count. *ret_whose says whose it is, in the arena. */
bool verify_find_key(const struct verify_keys *keys, const char *id, struct sign_public *ret,
	struct arena *arena, const char **ret_whose);

/* --- the record --- */

#define VERIFY_MAX_FILE  ((size_t)16 << 20)
#define VERIFY_MAX_LINES 16

struct verify_record {
	struct arena arena;
	char sha256[SHA256_HEX_SIZE]; /* of the file */
	bool is_strange;              /* a line names a key that does not count */
	bool is_signed;               /* by a key that counts; if not, what follows is not set */
	struct sign_public key;
	const char *whose; /* "your key", "the key in 'PATH'" */
	struct record_statement statement;
	struct record_read record;
	bool has_provenance;
	struct record_statement provenance_statement;
	struct record_provenance provenance;
	int folder; /* the folder with the files that the record names, borrowed; -1: none */
};

void verify_record_init(struct verify_record *v);
void verify_record_done(struct verify_record *v);

/*
 * Reads a file of envelopes. Checks the signatures first, and reads nothing of a payload that no
 * key that counts has signed. Adds the property "signature". Returns 0, or -EBADMSG if the file is
 * not a record at all.
 */
int verify_load(struct verify_record *v, const char *bytes, size_t n,
	const struct verify_keys *keys, struct verify_report *report, struct err *e);

/* --- judging --- */

struct verify_policy;

struct verify_options {
	bool is_quick;              /* do not hash the trees of image and overlay again */
	const char *home, *project; /* values of ~ and $PROJECT in their paths; or NULL */
	struct change_progress progress;
	const struct verify_policy *policy; /* or NULL */
	struct timespec now;
};

/* Judges a signed record, and by o->policy too if there is one. */
void verify_judge(const struct verify_record *v, const struct verify_options *o,
	struct verify_report *report);

/* Returns the cage's network by its guarantees: "none", "allowlist" or "host". */
const char *verify_network(const struct record_read *r);

/* --- the attestation of a verification --- */

/* Prints an in-toto Simple Verification Result for a record that passed. */
void verify_print_result(const struct verify_record *v, const struct verify_options *o,
	const struct verify_report *report, struct buf *out);

/* --- comparing two runs --- */

/* Adds up to 20 effects in which two runs differ to the report. */
void verify_name_differences(const struct change_effects *a, const struct change_effects *b,
	struct verify_report *report);

/* Reads effects.json into `ret`, which must be initialised. Returns 1, 0 without one, or -errno. */
int verify_read_effects(int folder, struct change_effects *ret,
	char ret_sha256[static SHA256_HEX_SIZE], struct err *e);

/* Compares two records and adds a property for each part. True if all that must match do. */
bool verify_compare(
	const struct verify_record *a, const struct verify_record *b, struct verify_report *report);
