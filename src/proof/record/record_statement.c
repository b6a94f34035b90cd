#include "base/json.h"
#include "proof/record/record_read.h"

const char *const record_predicate_types[RECORD_CLAIM_COUNT] = {
	[RECORD_CLAIM] = RECORD_PREDICATE_TYPE,
	[RECORD_PROVENANCE] = RECORD_PROVENANCE_TYPE,
};

static void print_subjects(struct json *j, const struct record_subject *subjects, size_t count)
{
	json_open_list(j, "subject");
	for (size_t i = 0; i < count; i++) {
		json_open_map(j, NULL);
		json_text(j, "name", subjects[i].name);
		json_open_map(j, "digest");
		json_text(j, "sha256", subjects[i].sha256);
		json_close_map(j);
		json_close_map(j);
	}
	json_close_list(j);
}

/* The log's end is the last thing to be known, and so the last member of either predicate. */
static void add_log(enum record_claim claim, const struct log_tail *log, struct buf *out)
{
	if (claim == RECORD_CLAIM)
		buf_printf(out, ",\"log\":{\"events\":%llu,\"last\":\"%s\"}}",
			(unsigned long long)log->count, log->last);
	else
		buf_printf(out,
			",\"byproducts\":[{\"name\":\"events.jsonl\",\"annotations\":"
			"{\"events\":%llu,\"last\":\"%s\"}}]}}",
			(unsigned long long)log->count, log->last);
}

void record_print_statement(enum record_claim claim, const char *predicate, size_t n,
	const struct record_subject *subjects, size_t count, const struct log_tail *log,
	struct buf *out)
{
	/* How many braces close behind the log: of the predicate, and of runDetails in it. */
	size_t closing = claim == RECORD_CLAIM ? 1 : 2;
	struct json j;

	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	json_text(&j, "_type", RECORD_STATEMENT_TYPE);
	print_subjects(&j, subjects, count);
	json_text(&j, "predicateType", record_predicate_types[claim]);
	buf_puts(out, ",\"predicate\":");
	buf_add(out, predicate, n - closing);
	add_log(claim, log, out);
	json_close_map(&j);
}
