/* Bytes as the payload of a record's envelope. What is accepted is as the header says. */
#include "base/own.h"
#include "base/sha256.h"
#include "fuzz.h"
#include "proof/record/record_read.h"

static void check_artifacts(const struct record_artifacts *list, bool is_whole)
{
	uint8_t digest[SHA256_SIZE];

	for (size_t i = 0; i < list->count; i++) {
		const struct record_artifact *one = &list->items[i];

		if (is_whole && !(one->name && one->sha256))
			abort();
		if (one->sha256 && sha256_parse(one->sha256, digest) < 0)
			abort();
	}
}

static void check_record(const struct record_read *r)
{
	if (!record_is_run(r->run, true) || !r->bawn || !r->began || !r->log.last)
		abort();
	for (size_t i = 0; i < r->guarantees.count; i++) {
		const struct record_read_guarantee *g = &r->guarantees.items[i];

		if (record_read_find(r, g->name) != g)
			abort();
	}
	for (size_t i = 0; i < r->events.count; i++)
		if (!r->events.items[i].type || !r->events.items[i].size)
			abort();
	for (size_t i = 0; i < r->degraded.count; i++)
		if (!r->degraded.items[i])
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	own_free char *text = fuzz_text(data, size);
	own(arena) struct arena arena;
	struct record_provenance provenance;
	struct record_statement statement;
	struct record_read record;
	struct err e = { 0 };

	arena_init(&arena, RECORD_READ_MEMORY);
	if (record_read_statement(text, size, &arena, &statement, &e) < 0) {
		if (!e.text[0] || statement.subjects.count)
			abort();
		return 0;
	}
	check_artifacts(&statement.subjects, true);
	if (record_read_predicate(&statement, &arena, &record, &e) == 0)
		check_record(&record);
	else if (record.guarantees.count || record.events.count)
		abort();
	if (record_read_provenance(&statement, &arena, &provenance, &e) == 0) {
		check_artifacts(&provenance.dependencies, false);
		check_artifacts(&provenance.byproducts, false);
	}
	return 0;
}
