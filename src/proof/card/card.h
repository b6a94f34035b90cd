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
 * Cards: what an agent of this operator's is isolated by, as an A2A 1.0 agent card with an
 * extension of its own (docs/format-card.md), signed. Pure: the same facts give the same bytes.
 */

#define CARD_EXTENSION "urn:bawn:isolation:v1"
#define CARD_LEGACY    "x-scitex-agent-container" /* the same for older readers, unsigned */
#define CARD_URL       "http://127.0.0.1:7070/a2a"
#define CARD_HOME      "/home/agent"
#define CARD_MAX_SIZE  ((size_t)1 << 20)

/* What a run adds to what was declared. */
struct card_run {
	bool is_known; /* otherwise the card is of a spec */
	const char *id, *outcome;
	const char *record;  /* digest of the whole file */
	const char *key;     /* whose signature it has, or NULL */
	const char *effects; /* digest, or NULL */
	bool is_preflight_passed;
	bool is_in_chain; /* not relaxed */
};

/* Everything a card is printed from. Texts are borrowed. */
struct card {
	const struct spec *spec; /* NULL: only what a record says can be printed */
	const char *url;
	enum spec_engine engine;
	bool is_hardened;
	int64_t landlock_abi;
	const char *spec_digest, *plan_digest;
	const char *preflight_digest; /* or NULL */
	struct card_promise {
		enum plan_need need;
		bool holds;          /* the plan gives it; of a run: it was seen to hold */
		const char *vantage; /* from where; NULL: nobody looked */
	} promises[PLAN_GUARANTEE_COUNT];
	struct card_run run;
};

/* What a plan would give; `digest` is the plan's. */
void card_from_plan(
	const struct spec *s, const struct plan *p, const char *digest, struct card *ret);

/*
 * What was seen in a run: `s` is its spec, or NULL; `digest` that of the record's file, and `key`
 * the id of the key that signed it. -EBADMSG where the record is of another spec.
 */
int card_from_record(const struct spec *s, const struct record_read *r, const char *digest,
	const char *key, struct card *ret, struct err *e);

/* Can a URL stand on a card? http or https, and nothing in it that is not written so. */
bool card_is_url(const char *url);

/*
 * The card as one object of JSON, without a newline, signed by `key` unless that is NULL; indented
 * where `indent` is not 0.
 */
int card_print(const struct card *c, const struct sign_key *key, int indent, struct buf *out,
	struct err *e);

/* Prints the extension's parameters as members of the open map. */
void card_print_isolation(const struct card *c, struct json *j);

/* The names of members that say whether something holds; NULL behind the last. */
const char *card_mechanism(size_t i);

/* --- canonical JSON and signatures --- */

/*
 * JSON as RFC 8785 wants it, of JSON in UTF-8 whose numbers are integers below 2^53; nothing is
 * rounded, what has no such form is -EBADMSG. Members of the outermost map are left out where
 * is_left_out, which may be NULL, says so.
 */
int card_canonicalize(const char *bytes, size_t n, bool (*is_left_out)(const char *key),
	struct buf *out, struct err *e);

/*
 * What a signature of a card is over: its canonical form without `signatures` and without members
 * x-…, which readers that know A2A only never see.
 */
int card_canonicalize_signed(const char *bytes, size_t n, struct buf *out, struct err *e);

/* The bytes that a JWS signs: its header, encoded, and the canonical form. */
void card_add_signed(
	const char *protected, const void *canonical, size_t n, struct buf *ret_signed);

/* --- reading a card that may be anybody's --- */

#define CARD_MOST_SIGNATURES 8

/* JSON of the canonical form; NULL where it is not there. Borrowed. */
struct card_span {
	const char *bytes;
	size_t size;
};

struct card_read {
	struct buf canonical; /* all of it */
	struct buf is_signed; /* what signatures are over */
	struct card_span params, legacy;
	struct {
		char *protected;
		char key_id[SIGN_ID_SIZE]; /* what the header says */
		uint8_t bytes[SIGN_SIGNATURE_SIZE];
	} signatures[CARD_MOST_SIGNATURES];
	size_t signature_count; /* those of another kind are not among them */
};

/* -EBADMSG, with a sentence, where it is no card with one isolation block. */
int card_read(const char *bytes, size_t n, struct card_read *ret, struct err *e);
void card_read_done(struct card_read *c);

/* Returns what is at a path such as "run/record/sha256" in a span. */
struct card_span card_find(struct card_span in, const char *path);

/* --- checking what a card says --- */

enum card_result {
	CARD_YES,
	CARD_NO,
	CARD_ABSENT, /* there is nothing to check it against */
};

struct card_property {
	const char *name;
	enum card_result result;
	char text[240]; /* a sentence without a full stop; what is in it may be a stranger's */
};

#define CARD_MOST_PROPERTIES 64

struct card_report {
	struct card_property items[CARD_MOST_PROPERTIES];
	size_t count;
	bool has_failed;
};

/* Returns the number of the card's signature by that key, or -1. */
int card_find_signature(const struct card_read *c, const struct sign_public *key);

/* Is it signed by that key (NULL: by nobody known), and does the unsigned block say the same? */
void card_verify(const struct card_read *c, const struct sign_public *key, struct card_report *ret);

/*
 * Is it the card of this record, whose file has that digest and is signed by that key, and does it
 * say the same? Of the card of a spec: was the run made from that spec, by that plan?
 */
void card_verify_record(const struct card_read *c, const struct record_read *r, const char *digest,
	const char *key, struct card_report *ret);
