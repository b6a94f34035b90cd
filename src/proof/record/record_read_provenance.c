#include <errno.h>

#include "base/own.h"
#include "proof/record/record_read_values.h"

static bool read_external(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "name", record_read_text, offsetof(struct record_provenance, name) },
		{ "spec", record_read_digest, offsetof(struct record_provenance, spec_sha256) },
		{ "level", record_read_text, offsetof(struct record_provenance, level) },
	};

	return JSON_READ_FIELDS(reader, fields, into);
}

static bool read_internal(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "plan", record_read_digest, offsetof(struct record_provenance, plan_sha256) },
		{ "filter", record_read_digest, offsetof(struct record_provenance, filter_sha256) },
		{ "engine", record_read_text, offsetof(struct record_provenance, engine) },
	};

	return JSON_READ_FIELDS(reader, fields, into);
}

static bool read_definition(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "buildType", record_read_text, offsetof(struct record_provenance, build_type),
			true },
		{ "externalParameters", read_external, 0, true },
		{ "internalParameters", read_internal, 0 },
		{ "resolvedDependencies", record_read_artifacts,
			offsetof(struct record_provenance, dependencies) },
	};

	return JSON_READ_FIELDS(reader, fields, into);
}

static bool read_provenance_read_version(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "bawn", record_read_text, offsetof(struct record_provenance, bawn) },
		{ "linux", record_read_text, offsetof(struct record_provenance, kernel) },
	};

	return JSON_READ_FIELDS(reader, fields, into);
}

static bool read_builder(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "id", record_read_text, offsetof(struct record_provenance, builder), true },
		{ "version", read_provenance_read_version, 0 },
	};

	return JSON_READ_FIELDS(reader, fields, into);
}

static bool read_metadata(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "invocationId", record_read_text, offsetof(struct record_provenance, run), true },
		{ "startedOn", record_read_text, offsetof(struct record_provenance, began) },
		{ "finishedOn", record_read_text, offsetof(struct record_provenance, ended) },
	};

	return JSON_READ_FIELDS(reader, fields, into);
}

static bool read_details(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "builder", read_builder, 0, true },
		{ "metadata", read_metadata, 0, true },
		{ "byproducts", record_read_artifacts,
			offsetof(struct record_provenance, byproducts) },
	};

	return JSON_READ_FIELDS(reader, fields, into);
}

int record_read_provenance(const struct record_statement *statement, struct arena *arena,
	struct record_provenance *ret, struct err *e)
{
	static const struct json_field fields[] = {
		{ "buildDefinition", read_definition, 0, true },
		{ "runDetails", read_details, 0, true },
	};
	own(record_reader) struct record_reader r;

	*ret = (struct record_provenance){ 0 };
	record_reader_begin(&r, statement->predicate, statement->predicate_size, arena);
	JSON_READ_FIELDS(&r, fields, ret);
	if (record_reader_end(&r, "the provenance", e) == 0)
		return 0;
	*ret = (struct record_provenance){ 0 };
	return -EBADMSG;
}
