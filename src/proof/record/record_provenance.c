#include "base/count.h"
#include "base/json.h"
#include "proof/record/record_inside.h"
#include "proof/record/record_read.h"

/*
 * The record's facts in the words of SLSA: a run is a build whose product is what it changed. What
 * SLSA does not ask for is in the record, which is signed beside it.
 */

static void provenance_print_digest(struct json *j, const char *key, const char *sha256)
{
	json_open_map(j, key);
	json_text(j, "sha256", sha256);
	json_close_map(j);
}

/* What went into the run and has a digest. */
static void print_dependencies(const struct record_facts *x, struct json *j)
{
	const struct {
		const char *name, *sha256;
	} parts[] = {
		{ "image", x->image_sha256 },
		{ "project", x->project_sha256 },
		{ "overlay", x->overlay_sha256 },
	};
	bool is_open = false;

	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		if (!parts[i].sha256 || !parts[i].sha256[0])
			continue;
		if (!is_open)
			json_open_list(j, "resolvedDependencies");
		is_open = true;
		json_open_map(j, NULL);
		json_text(j, "name", parts[i].name);
		provenance_print_digest(j, "digest", parts[i].sha256);
		json_close_map(j);
	}
	if (is_open)
		json_close_list(j);
}

static void print_definition(const struct record_facts *x, struct json *j)
{
	json_open_map(j, "buildDefinition");
	json_text(j, "buildType", RECORD_BUILD_TYPE);
	json_open_map(j, "externalParameters");
	if (x->name && x->name[0])
		json_text(j, "name", x->name);
	provenance_print_digest(j, "spec", x->spec_sha256);
	json_close_map(j);
	print_dependencies(x, j);
	json_close_map(j);
}

void record_print_facts(const struct record_facts *x, struct buf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	print_definition(x, &j);
	json_open_map(&j, "runDetails");
	json_open_map(&j, "builder");
	json_text(&j, "id", "urn:bawn:keeper:v1");
	json_open_map(&j, "version");
	json_text(&j, "bawn", x->bawn);
	json_close_map(&j);
	json_close_map(&j);
	json_open_map(&j, "metadata");
	json_text(&j, "invocationId", x->run);
	json_text(&j, "startedOn", x->began);
	json_close_map(&j);
	json_close_map(&j);
	json_close_map(&j);
}

void record_print_provenance(const struct record *r, struct buf *out)
{
	char began[CLOCK_TEXT_SIZE];
	const struct record_facts x = { .run = r->run,
		.name = plan_str(r->plan, r->plan->name),
		.spec_sha256 = r->plan->spec_digest,
		.image_sha256 = r->image.sha256,
		.project_sha256 = r->project.sha256,
		.overlay_sha256 = r->overlay.before,
		.bawn = BAWN_VERSION,
		.began = began };

	clock_print(&r->began, began);
	record_print_facts(&x, out);
}
