#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "proof/record/record.h"

/*
 * Reads what is in the envelopes of a record (docs/format-record.md): pure, and bytes of anybody.
 * Strict where a member is known, blind where it is not, as a later version may have more. Texts
 * are the arena's, and may hold any bytes but NUL; NULL, or -1, is what the record does not say.
 * A digest has the form of one.
 */

#define RECORD_EFFECTS_SUBJECT "effects"

#define RECORD_STATEMENT_TYPE  "https://in-toto.io/Statement/v1"
#define RECORD_PREDICATE_TYPE  "urn:bawn:record:v2"
#define RECORD_PREDICATE_V1    "urn:bawn:record:v1" /* before November 2026 */
#define RECORD_PROVENANCE_TYPE "https://slsa.dev/provenance/v1"
#define RECORD_BUILD_TYPE      "urn:bawn:run:v1"

/* A record with what is around it. */
#define RECORD_MAX_STATEMENT (RECORD_MAX_SIZE + ((size_t)1 << 20))

/* What an arena needs to hold the largest record that can be read. */
#define RECORD_READ_MEMORY (4 * RECORD_MAX_STATEMENT)

/* Something with a digest: a subject, an image, a by-product. */
struct record_artifact {
	const char *name, *sha256;
};

struct record_artifacts {
	const struct record_artifact *items;
	size_t count;
};

struct record_texts {
	const char **items;
	size_t count;
};

/* --- the statement --- */

struct record_statement {
	struct record_artifacts
		subjects;      /* each has a name and a digest, and no name comes twice */
	const char *type;      /* of the predicate */
	const char *predicate; /* its JSON, borrowed from the bytes that were read */
	size_t predicate_size;
};

/* Reads the payload of an envelope. -EBADMSG or -ENOMEM with a sentence, as all of these. */
int record_read_statement(const char *bytes, size_t n, struct arena *arena,
	struct record_statement *ret, struct err *e);

/* --- the record --- */

struct record_read_guarantee {
	const char *name, *declared, *seen; /* `seen` of one that holds is in the log, from 2 on */
	bool is_must;                       /* otherwise it may be missing */
	bool holds;
	enum record_vantage vantage;
};

struct record_read_event {
	const char *type, *text;
	int64_t times;
	const char *bytes; /* the whole object, borrowed from the statement */
	size_t size;
};

struct record_read_skipped {
	const char *op, *a, *b, *why;
};

struct record_read {
	int version;
	const char *run, *session, *worker, *cage;
	uint64_t lease;
	const char *bawn, *kernel, *engine;
	int64_t landlock_abi;
	const char *name, *level, *level_reasons;
	const char *self_governance; /* or NULL */
	bool is_hardened;            /* the level */
	bool in_chain;
	const char *spec_sha256, *plan_sha256, *filter_sha256;
	const char *preflight_sha256, *preflight_by;
	bool preflight_passed, is_warm;
	struct record_artifact image;
	struct {
		const char *sha256, *list_sha256;
		int64_t files, bytes;
	} project;
	const char *capture;
	bool has_terminal;
	int64_t escapes_dropped;
	enum record_outcome outcome;
	int64_t status, signal;
	const char *error;
	const char *began, *ended;
	int64_t start_us, run_us;
	struct {
		int64_t memory_peak, cpu_us, processes_peak, written, printed;
	} used;
	struct {
		bool is_together;
		struct record_read_stream {
			int64_t bytes, kept; /* -1: not known, not kept */
			const char *sha256, *kept_sha256;
		} streams[2];
		const char *error;
	} output;
	struct {
		int64_t events;
		const char *last;
	} log;
	struct {
		const struct record_read_event *items;
		size_t count;
	} events;
	struct {
		const char *sha256, *file_sha256, *error;
		int64_t added, changed, deleted, renamed, runs_on_host;
	} effects;
	struct {
		const char *path; /* NULL: the root has none that is kept */
		int64_t size, skipped;
		const char *sha256_before, *sha256_after;
		bool is_saved, is_full;
		const char *error;
	} overlay;
	struct {
		const struct record_read_guarantee *items;
		size_t count;
	} guarantees;
	struct record_texts degraded;
	struct {
		const struct record_read_skipped *items;
		size_t count;
	} skipped;
	int64_t skipped_count; /* may be more than are there */
};

/* Is it a predicate of a record, of whichever version? */
bool record_is_predicate(const char *type);

/* Reads the predicate of a statement of such a type; what it leaves to be understood is filled in.
 */
int record_read_predicate(const struct record_statement *statement, struct arena *arena,
	struct record_read *ret, struct err *e);

/* Both at once: the payload of the first envelope. */
int record_read(const char *bytes, size_t n, struct arena *arena,
	struct record_statement *ret_statement, struct record_read *ret, struct err *e);

/* What is said of a guarantee; NULL: nothing, it was not asked for. */
const struct record_read_guarantee *record_read_find(const struct record_read *r, const char *name);

/*
 * What was seen of guarantees that hold, from the log in the run's folder, as far as the record
 * does not say it. record_read_guarantees.c
 */
void record_read_seen(int folder, struct arena *arena, struct record_read *r);

/* --- the provenance: record_read_provenance.c --- */

struct record_provenance {
	const char *build_type;
	const char *name, *level, *spec_sha256;
	const char *plan_sha256, *filter_sha256, *engine;
	struct record_artifacts dependencies, byproducts; /* some may have no digest */
	const char *builder, *bawn, *kernel;
	const char *run, *began, *ended;
};

int record_read_provenance(const struct record_statement *statement, struct arena *arena,
	struct record_provenance *ret, struct err *e);

/* --- record_command.c --- */

/*
 * The command of a run as a shell would take it, from plan.json in its folder; nothing where that
 * is not there, or is not the plan of this digest (NULL: none is known yet).
 */
void record_read_command(int folder, const char *plan_sha256, struct buf *out);
