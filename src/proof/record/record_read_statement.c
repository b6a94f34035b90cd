#include <errno.h>

#include "base/own.h"
#include "base/str.h"
#include "proof/record/record_read_values.h"

static bool read_statement_type(void *reader, void *into)
{
	struct json_reader *json = reader;
	const char *text;

	(void)into;
	if (!json_read_text(json, &text))
		return false;
	return str_eq(text, RECORD_STATEMENT_TYPE)
		       ? true
		       : json_wrong(json, "an in-toto statement, version 1");
}

static bool read_predicate_bytes(void *reader, void *into)
{
	struct record_statement *ret = into;
	struct json_reader *json = reader;

	/* White space before it does no harm. */
	ret->predicate = json->at;
	if (!json_skip(json))
		return false;
	ret->predicate_size = (size_t)(json->at - ret->predicate);
	return true;
}

/* Whoever looks one up by its name must find what another reader finds. */
static bool are_sound(struct record_reader *r, const struct record_artifacts *subjects)
{
	for (size_t i = 0; i < subjects->count; i++) {
		const struct record_artifact *s = &subjects->items[i];

		if (!s->name || !s->sha256)
			return json_wrong(&r->json, "a subject's name and SHA-256");
		for (size_t k = 0; k < i; k++)
			if (str_eq(subjects->items[k].name, s->name))
				return json_wrong(&r->json, "each subject once");
	}
	return subjects->count ? true : json_wrong(&r->json, "a subject");
}

#define MAX_SUBJECTS 1024 /* they are compared each with each */

static bool read_statement_read_subjects(void *reader, void *into)
{
	struct record_artifacts *ret = into;
	struct record_reader *r = reader;

	if (!record_read_artifacts(reader, ret))
		return false;
	return ret->count <= MAX_SUBJECTS ? are_sound(r, ret)
					  : json_wrong(&r->json, "fewer subjects");
}

int record_read_statement(const char *bytes, size_t n, struct arena *arena,
	struct record_statement *ret, struct err *e)
{
	static const struct json_field fields[] = {
		{ "_type", read_statement_type, 0, true },
		{ "subject", read_statement_read_subjects,
			offsetof(struct record_statement, subjects), true },
		{ "predicateType", record_read_text, offsetof(struct record_statement, type),
			true },
		{ "predicate", read_predicate_bytes, 0, true },
	};
	own(record_reader) struct record_reader r;

	*ret = (struct record_statement){ 0 };
	record_reader_begin(&r, bytes, n, arena);
	JSON_READ_FIELDS(&r, fields, ret);
	if (record_reader_end(&r, "the statement", e) == 0)
		return 0;
	*ret = (struct record_statement){ 0 };
	return -EBADMSG;
}
