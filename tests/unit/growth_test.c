/*
 * Time grows with the size of what is read, not with its square: the largest inputs there are, in
 * the shapes that would make it show. Linear work takes a few hundredths of the second allowed.
 */
#include <stdlib.h>
#include <time.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "make_spec.h"
#include "spec/yaml.h"

#define ALLOWED 1.0 /* seconds of processor time, also with the sanitizers in */

static double now(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static void check_time(double start, const char *what, int line)
{
	char text[120];

	snprintf(text, sizeof(text), "%s took %.1f s", what, now() - start);
	check_that(now() - start < ALLOWED, text, __FILE__, line);
}

#define CHECK_TIME(start, what) check_time((start), (what), __LINE__)

/* --- layers --- */

/* A list of as many entries as a file holds, each made from its number. */
static void add_entries(struct buf *out, const char *prefix, const char *suffix, size_t limit)
{
	for (unsigned i = 0; out->len < limit; i++)
		buf_printf(out, "  - %s%x%s\n", prefix, i, suffix);
}

/* The project's file against a policy that covers none of it, both as large as they may be. */
static void test_ceilings(void)
{
	static const struct {
		const char *name, *policy, *file, *above, *below, *suffix;
	} rows[] = {
		{ "env.pass", "project_may:\n env:\n  pass:\n", "env:\n pass:\n", "B", "A", "" },
		{ "binds", "project_may:\n binds:\n", "binds:\n", "/b", "/a", ":/x" },
		{ "network.allow", "project_may:\n network:\n  allow:\n", "network:\n allow:\n",
			"b", "a", ".org:1" },
		{ "network.allow of addresses", "project_may:\n network:\n  allow:\n",
			"network:\n allow:\n", "\"[2001:b::", "\"[2001:a::", "]:1\"" },
		{ "project.protect", "defaults:\n project:\n  protect:\n", "project:\n protect:\n",
			"b", "a", "x" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own(buf) struct buf policy = { .max = YAML_MAX_SIZE }, file = policy;
		static struct spec spec;
		double start;

		buf_printf(&policy, "version: 1\n%s", rows[i].policy);
		add_entries(&policy, rows[i].above, rows[i].suffix, YAML_MAX_SIZE - 100);
		buf_printf(&file, "version: 1\n%s", rows[i].file);
		add_entries(&file, rows[i].below, rows[i].suffix, YAML_MAX_SIZE - 100);
		start = now();
		make_layers(&spec, NULL, buf_text(&policy), buf_text(&file), false);
		CHECK_TIME(start, rows[i].name);
		CHECK(spec.layers[SPEC_LAYER_FILE].v[SPEC_NETWORK_ALLOW].count +
				spec.layers[SPEC_LAYER_FILE].v[SPEC_ENV_PASS].count +
				spec.layers[SPEC_LAYER_FILE].v[SPEC_BINDS].count +
				spec.layers[SPEC_LAYER_FILE].v[SPEC_PROJECT_PROTECT].count >
			5000);
		spec_done(&spec);
	}
}

int main(void)
{
	test_ceilings();
	return check_report();
}
