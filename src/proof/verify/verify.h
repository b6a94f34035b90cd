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
 * Judges the record of a run: each thing by itself, as a property with a result. What is not there
 * was not checked, and is never good. Opens and reads files, changes nothing and prints nothing;
 * what it reads may be anybody's.
 */

enum verify_result {
	VERIFY_YES,
	VERIFY_NO,
	VERIFY_ABSENT,  /* what it would be checked against is not there */
	VERIFY_UNASKED, /* the verifier did not want to know */
};

struct verify_property {
	const char *name; /* "signature"; harmless, as the text */
	enum verify_result result;
	const char *text; /* a sentence without a full stop */
};

#define VERIFY_MAX_PROPERTIES 512

struct verify_report {
	struct arena *arena; /* borrowed; all texts live there */
	struct verify_property items[VERIFY_MAX_PROPERTIES];
	size_t count;
	bool has_failed;    /* a `no` is among them, or one that had no room */
	bool is_comparison; /* what is not there is unknown */
};

/* Adds a property. Control characters in its texts are escaped. */
void verify_say(struct verify_report *r, const char *name, enum verify_result result,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* True if that property was checked and is good. */
bool verify_is_yes(const struct verify_report *r, const char *name);

/* For people, a line each; and as the list "properties" of the open map. */
void verify_print(const struct verify_report *r, bool has_color, struct buf *out);
void verify_print_json(const struct verify_report *r, struct json *j);

/* --- whose signature counts --- */

#define VERIFY_MAX_KEYS 64

struct verify_key {
	struct sign_public public;
	const char *name; /* the file it was in */
};

/* Those that were named; without any, the operator's own, present and former. */
struct verify_keys {
	struct verify_key items[VERIFY_MAX_KEYS];
	size_t count;
	int state; /* the folder of the operator's state, borrowed; -1: there is none */
};

/* Reads a public key from a PEM file that the verifier named. */
int verify_add_key(struct verify_keys *keys, const char *path, struct arena *arena, struct err *e);

/* Finds the key with that id among those that count; *ret_whose says whose it is. */
bool verify_find_key(const struct verify_keys *keys, const char *id, struct sign_public *ret,
	struct arena *arena, const char **ret_whose);

/* --- the record --- */

#define VERIFY_MAX_FILE  ((size_t)16 << 20)
#define VERIFY_MAX_LINES 16

struct verify_record {
	struct arena arena;
	char sha256[SHA256_HEX_SIZE]; /* of the file */
	bool is_strange;              /* a line names a key that is none of those that count */
	bool is_signed;               /* by a key that counts; otherwise nothing below is known */
	struct sign_public key;
	const char *whose; /* "your key", "the key in 'PATH'" */
	struct record_statement statement;
	struct record_read record;
	bool has_provenance;
	struct record_statement provenance_statement;
	struct record_provenance provenance;
	int folder; /* where the files lie that belong to it, borrowed; -1: nowhere */
};

void verify_record_init(struct verify_record *v);
void verify_record_done(struct verify_record *v);

/*
 * Reads a file of envelopes. Signatures come first: of what nobody signed nothing is read. Says
 * "signature"; -EBADMSG, with a sentence, where it is no record at all.
 */
int verify_load(struct verify_record *v, const char *bytes, size_t n,
	const struct verify_keys *keys, struct verify_report *report, struct err *e);

/* --- judging --- */

struct verify_policy;

struct verify_options {
	bool is_quick;              /* trees are not hashed again: image and overlay */
	const char *home, *project; /* what ~ and $PROJECT in their paths stand for; or NULL */
	struct change_progress progress;
	const struct verify_policy *policy; /* or NULL */
	struct timespec now;
};

/* Judges a signed record; with a policy, by that too. */
void verify_judge(const struct verify_record *v, const struct verify_options *o,
	struct verify_report *report);

/* Which network the cage had, by its guarantees: "none", "allowlist", "host". */
const char *verify_network(const struct record_read *r);

/* --- a result that others can rely on --- */

/* Prints an in-toto Simple Verification Result about a record that was found to be good. */
void verify_print_result(const struct verify_record *v, const struct verify_options *o,
	const struct verify_report *report, struct buf *out);

/* --- two runs --- */

/* Names effects in which two runs differ, at most 20. */
void verify_name_differences(const struct change_effects *a, const struct change_effects *b,
	struct verify_report *report);

/* Reads effects.json into `ret`, which is initialised: 1, or 0 where there is none, or -errno. */
int verify_read_effects(int folder, struct change_effects *ret,
	char ret_sha256[static SHA256_HEX_SIZE], struct err *e);

/* Adds a property for each thing that can be the same. True if all that decide are. */
bool verify_compare(
	const struct verify_record *a, const struct verify_record *b, struct verify_report *report);
