#include "base/json.h"
#include "proof/record/record_read.h"
#include "spec/spec.h"

/* The record's facts in the words of SLSA: a run is a build whose product is what it changed. */

static void provenance_print_digest(struct json *j, const char *key, const char *sha256)
{
	json_open_map(j, key);
	json_text(j, "sha256", sha256);
	json_close_map(j);
}

/* What has no digest is named all the same: it was used. */
static void print_dependency(struct json *j, const char *name, const char *sha256)
{
	json_open_map(j, NULL);
	json_text(j, "name", name);
	if (sha256[0])
		provenance_print_digest(j, "digest", sha256);
	json_close_map(j);
}

static void print_definition(const struct record *r, struct json *j)
{
	json_open_map(j, "buildDefinition");
	json_text(j, "buildType", RECORD_BUILD_TYPE);
	json_open_map(j, "externalParameters");
	json_text(j, "name", plan_str(r->plan, r->plan->name));
	provenance_print_digest(j, "spec", r->plan->spec_digest);
	json_text(j, "level", r->plan->is_hardened ? "hardened" : "custom");
	json_close_map(j);
	json_open_map(j, "internalParameters");
	provenance_print_digest(j, "plan", r->plan_digest);
	provenance_print_digest(j, "filter", r->filter_digest);
	json_text(j, "engine", spec_keys[SPEC_ENGINE].choices[r->plan->engine]);
	json_close_map(j);
	json_open_list(j, "resolvedDependencies");
	print_dependency(j, "image", r->image.sha256);
	if (r->project.sha256[0])
		print_dependency(j, "project", r->project.sha256);
	if (r->overlay.before[0])
		print_dependency(j, "overlay", r->overlay.before);
	json_close_list(j);
	json_close_map(j);
}

void record_print_provenance(const struct record *r, struct buf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	print_definition(r, &j);
	json_open_map(&j, "runDetails");
	json_open_map(&j, "builder");
	json_text(&j, "id", "urn:bawn:keeper:v1");
	json_open_map(&j, "version");
	json_text(&j, "bawn", BAWN_VERSION);
	json_text(&j, "linux", r->kernel);
	json_close_map(&j);
	json_close_map(&j);
	json_open_map(&j, "metadata");
	json_text(&j, "invocationId", r->run);
	record_print_time(&j, "startedOn", &r->began);
	if (r->ended.tv_sec)
		record_print_time(&j, "finishedOn", &r->ended);
	json_close_map(&j);
	json_close_map(&j);
	json_close_map(&j);
}
