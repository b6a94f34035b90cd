#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"
#include "plan/plan.h"
#include "proof/record/record_read.h"
#include "proof/sign/sign.h"
#include "spec/spec.h"

/*
 * Cards: the mechanisms that isolate an agent, as a signed A2A 1.0 agent card with an extension of
 * bawn's own (docs/format-card.md). Pure: the same facts give the same bytes.
 */

#define CARD_EXTENSION "urn:bawn:isolation:v1"
#define CARD_LEGACY    "x-scitex-agent-container" /* the same facts for older readers, unsigned */
#define CARD_URL       "http://127.0.0.1:7070/a2a"
#define CARD_HOME      "/home/agent"
#define CARD_MAX_SIZE  ((size_t)1 << 20)

/* What the card of a run says in addition to the card of a spec. */
struct card_run {
	bool is_known; /* false: the card is of a spec */
	const char *id, *outcome;
	const char *record;  /* digest of the record's file */
	const char *key;     /* id of the key that signed the record, or NULL */
	const char *effects; /* digest, or NULL */
	bool is_preflight_passed;
	bool is_in_chain; /* not relaxed */
};

/* The facts that a card is printed from. Texts are borrowed. */
struct card {
	const struct spec *spec; /* NULL: only the isolation block can be printed */
	const char *url;
	enum spec_engine engine;
	bool is_hardened;
	int64_t landlock_abi;
	const char *spec_digest, *plan_digest;
	const char *preflight_digest; /* or NULL */
	struct card_promise {
		enum plan_need need;
		bool holds;          /* the plan gives it; in a run: it was seen to hold */
		const char *vantage; /* from where it was seen; NULL: it was not inspected */
	} promises[PLAN_GUARANTEE_COUNT];
	struct card_run run;
};

/* Makes the card of a spec and its plan; `digest` is the plan's. */
void card_from_plan(
	const struct spec *s, const struct plan *p, const char *digest, struct card *ret);

/*
 * Makes the card of a run. `s` is its spec, or NULL; `digest` is that of the record's file, and
 * `key` the id of the key that signed it. Returns 0, or -EBADMSG if the record is of another spec.
 */
int card_from_record(const struct spec *s, const struct record_read *r, const char *digest,
	const char *key, struct card *ret, struct err *e);

/* True for an http or https URL without characters that a URL must escape. */
bool card_is_url(const char *url);

/*
 * Prints the card as one JSON object without a newline, signed by `key` unless that is NULL, and
 * indented if `indent` is not 0.
 */
int card_print(const struct card *c, const struct sign_key *key, int indent, struct buf *out,
	struct err *e);

/* Prints the extension's parameters as members of the open map. */
void card_print_isolation(const struct card *c, struct json *j);

/* Returns the name of the i-th member that says whether a mechanism holds; NULL behind the last. */
const char *card_mechanism(size_t i);

/* --- canonical JSON and signatures --- */

/*
 * Prints JSON in the canonical form of RFC 8785. The input must be UTF-8 with integers below 2^53
 * as its only numbers; anything else is -EBADMSG, nothing is rounded. Leaves out members of the
 * outermost map for which is_left_out, which may be NULL, returns true.
 */
int card_canonicalize(const char *bytes, size_t n, bool (*is_left_out)(const char *key),
	struct buf *out, struct err *e);

/*
 * Prints what a signature of a card covers: the canonical form without `signatures` and without
 * members x-…, which a reader that knows only A2A never sees.
 */
int card_canonicalize_signed(const char *bytes, size_t n, struct buf *out, struct err *e);

/* Adds the bytes that a JWS signs: its encoded header and the canonical form. */
void card_add_signed(
	const char *protected, const void *canonical, size_t n, struct buf *ret_signed);

/* --- reading a card, which a stranger may have written --- */

#define CARD_MOST_SIGNATURES 8

/* A part of the canonical form, borrowed; NULL: it is missing. */
struct card_span {
	const char *bytes;
	size_t size;
};

struct card_read {
	struct buf canonical; /* the whole card */
	struct buf is_signed; /* the part that signatures cover */
	struct card_span params, legacy;
	struct {
		char *protected;
		char key_id[SIGN_ID_SIZE]; /* as the header claims */
		uint8_t bytes[SIGN_SIGNATURE_SIZE];
	} signatures[CARD_MOST_SIGNATURES];
	size_t signature_count; /* signatures of other algorithms are skipped */
};

/* Reads a card. Returns 0, or -EBADMSG with `e` if it is not a card with one isolation block. */
int card_read(const char *bytes, size_t n, struct card_read *ret, struct err *e);
void card_read_done(struct card_read *c);

/* Returns the value at a path such as "run/record/sha256" in a span. */
struct card_span card_find(struct card_span in, const char *path);

/* --- checking what a card says --- */

enum card_result {
	CARD_YES,
	CARD_NO,
	CARD_ABSENT, /* what it would be compared with is missing */
};

struct card_property {
	const char *name;
	enum card_result result;
	char text[240]; /* a sentence without a full stop; may quote a stranger's text */
};

#define CARD_MOST_PROPERTIES 64

struct card_report {
	struct card_property items[CARD_MOST_PROPERTIES];
	size_t count;
	bool has_failed;
};

/* Returns the index of the card's valid signature by `key`, or -1. */
int card_find_signature(const struct card_read *c, const struct sign_public *key);

/*
 * Checks that `key` (NULL: no key that counts) signed the card, and that the unsigned block says
 * the same as the signed one.
 */
void card_verify(const struct card_read *c, const struct sign_public *key, struct card_report *ret);

/*
 * Checks that the card of a run belongs to this record, whose file has `digest` and is signed by
 * `key`, and agrees with it. For the card of a spec: that the run used that spec and that plan.
 */
void card_verify_record(const struct card_read *c, const struct record_read *r, const char *digest,
	const char *key, struct card_report *ret);
