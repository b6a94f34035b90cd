/* How layers add up, who is named for what counts, and the search that covers many hosts. */
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "make_spec.h"
#include "spec/spec.h"

static struct spec spec;

/* --- order --- */

static void test_order(void)
{
	static const char *const policies[] = {
		"version: 1\ndefaults: {limits: {pids: 10}, env: {set: {A: sys}}, "
		"project: {protect: [s]}}\n",
		"version: 1\ndefaults: {limits: {pids: 9}, env: {set: {A: user}}, "
		"project: {protect: [u, s]}}\n",
	};
	static const char file[] = "version: 1\nlimits: {pids: 8}\nenv: {set: {A: file, B: "
				   "b}}\nproject: {protect: [f]}\n";
	static const struct {
		uint64_t pids;
		const char *vars, *protect;
	} wanted[] = {
		[SPEC_LAYER_BUILTIN] = { 4096, "[]", "[]" },
		[SPEC_LAYER_SYSTEM] = { 10, "[A=sys]", "[s]" },
		[SPEC_LAYER_USER] = { 9, "[A=user]", "[s, u]" },
		[SPEC_LAYER_FILE] = { 8, "[A=file, B=b]", "[f, s, u]" },
		[SPEC_LAYER_OPTIONS] = { 7, "[A=option, B=b]", "[f, o, s, u]" },
	};

	for (enum spec_layer last = SPEC_LAYER_BUILTIN; last < SPEC_LAYER_COUNT; last++) {
		own(buf) struct buf vars = { .max = 1000 }, protect = { .max = 1000 };

		spec_init(&spec);
		for (enum spec_layer i = SPEC_LAYER_SYSTEM; i <= last && i <= SPEC_LAYER_USER; i++)
			spec_add_policy(&spec, i, "p", policies[i - 1], strlen(policies[i - 1]));
		if (last >= SPEC_LAYER_FILE)
			spec_add_file(&spec, "f.yaml", file, strlen(file), false);
		if (last >= SPEC_LAYER_OPTIONS) {
			spec_add_option(&spec, SPEC_LIMITS_PIDS, "--pids-limit", "7");
			spec_add_option(&spec, SPEC_ENV_SET, "-e", "A=option");
			spec_add_option(&spec, SPEC_PROJECT_PROTECT, "--protect", "o");
		}
		CHECK(spec_settle(&spec));
		CHECK_STR(first_said(&spec), "");
		CHECK(spec_number(&spec, SPEC_LIMITS_PIDS) == wanted[last].pids);
		CHECK(spec.set_by[SPEC_LIMITS_PIDS] == last);
		CHECK(spec_is_declared(&spec, SPEC_LIMITS_PIDS) == (last > SPEC_LAYER_BUILTIN));
		spec_print_value(SPEC_ENV_SET, spec_list(&spec, SPEC_ENV_SET), &vars);
		spec_print_value(
			SPEC_PROJECT_PROTECT, spec_list(&spec, SPEC_PROJECT_PROTECT), &protect);
		CHECK_STR(buf_text(&vars), wanted[last].vars);
		CHECK_STR(buf_text(&protect), wanted[last].protect);
		spec_done(&spec);
	}
}

/* The command line is the operator: no ceiling holds it, and a higher number is its to say. */
static void test_options_are_free(void)
{
	spec_init(&spec);
	spec_add_option(&spec, SPEC_NETWORK_MODE, "--network", "host");
	spec_add_option(&spec, SPEC_LIMITS_MEMORY, "--memory", "64G");
	spec_add_option(&spec, SPEC_BINDS, "-v", "/srv:/srv:rw");
	CHECK(spec_settle(&spec));
	spec_done(&spec);
}

/* The last row of an account says how far the project's file may go. */
static struct spec_account ceiling_of(enum spec_key key)
{
	struct spec_account rows[SPEC_ACCOUNT_MAX];
	size_t n = spec_account(&spec, key, rows);

	CHECK_STR(rows[n - 1].role, "project may");
	return rows[n - 1];
}

static void test_ceiling(void)
{
	static const char user[] = "version: 1\ndefaults: {limits: {pids: 9}}\n"
				   "project_may: {limits: {pids: 20}}\n";
	struct spec_account most;

	CHECK(make_layers(&spec, NULL, user, "version: 1\nlimits: {pids: 15}\n", false));
	CHECK(spec_number(&spec, SPEC_LIMITS_PIDS) == 15);
	most = ceiling_of(SPEC_LIMITS_PIDS);
	CHECK_STR(most.value, "20");
	CHECK_STR(most.where, "user.yaml:3:30");
	most = ceiling_of(SPEC_LIMITS_MEMORY);
	CHECK_STR(most.value, "8G");
	CHECK_STR(most.where, "the built-in policy");
	spec_done(&spec);
	/* The ceiling of a project that says nothing does not become its value. */
	CHECK(make_layers(&spec, NULL, user, "version: 1\n", false));
	CHECK(spec_number(&spec, SPEC_LIMITS_PIDS) == 9);
	spec_done(&spec);
}

/* --- explain --- */

static void check_explained(enum spec_key key, const char *wanted, int line)
{
	own(buf) struct buf out = { .max = 10000 };

	spec_explain(&spec, key, &out);
	check_equal(buf_text(&out), wanted, __FILE__, line);
}

#define CHECK_EXPLAINED(key, wanted) check_explained((key), (wanted), __LINE__)

static void test_explain(void)
{
	static const char user[] = "version: 1\nenvironment: dev\n"
				   "defaults: {limits: {memory: 4G}, project: {protect: [u]}}\n"
				   "project_may: {network: {allow: [a.org:443]}}\n";
	static const char file[] = "version: 1\nlimits: {memory: 2G}\nproject: {protect: [f]}\n";

	spec_init(&spec);
	spec_add_policy(&spec, SPEC_LAYER_USER, "user.yaml", user, strlen(user));
	spec_add_file(&spec, "f.yaml", file, strlen(file), false);
	spec_add_option(&spec, SPEC_NAME, "--name", "n");
	CHECK(spec_settle(&spec));
	CHECK_EXPLAINED(SPEC_LIMITS_MEMORY,
		"limits.memory\n"
		"  value       2G  (the spec file, f.yaml:2:18)\n"
		"  overrides   4G  (the user's policy, user.yaml:3:29)\n"
		"  overrides   8G  (built-in default)\n"
		"  project may 4G  (user.yaml:3:29)\n");
	CHECK_EXPLAINED(SPEC_LIMITS_CPU, "limits.cpu\n"
					 "  value       none  (built-in default)\n"
					 "  project may any  (the built-in policy)\n");
	CHECK_EXPLAINED(SPEC_PROJECT_PROTECT,
		"project.protect\n"
		"  value       [f]  (the spec file, f.yaml:3:20)\n"
		"  and         [u]  (the user's policy, user.yaml:3:53)\n"
		"  project may set it freely\n");
	CHECK_EXPLAINED(SPEC_NAME, "name\n"
				   "  value       n  (the command line, --name)\n"
				   "  project may set it freely\n");
	CHECK_EXPLAINED(SPEC_NETWORK_ALLOW, "network.allow\n"
					    "  value       []  (built-in default)\n"
					    "  project may [a.org:443/tls]  (user.yaml:4:32)\n");
	CHECK_EXPLAINED(SPEC_ENVIRONMENT, "environment\n"
					  "  value       dev  (the user's policy, user.yaml:2:14)\n"
					  "  overrides   dev  (built-in default)\n"
					  "  project may not set it: it is a key of policies\n");
	spec_done(&spec);
}

/* What is explained is what counts, also where a later layer does not override. */
static void test_explain_prod(void)
{
	own(buf) struct buf out = { .max = 10000 };

	CHECK(make_layers(&spec, "version: 1\nenvironment: prod\n",
		"version: 1\nenvironment: dev\n", NULL, false));
	spec_explain(&spec, SPEC_ENVIRONMENT, &out);
	CHECK(strstr(buf_text(&out), "  value       prod  (the system's policy, sys.yaml:2:14)\n"));
	CHECK(spec.set_by[SPEC_ENVIRONMENT] == SPEC_LAYER_SYSTEM);
	spec_done(&spec);
}

/* Bytes of a file do not reach the terminal as more than text. */
static void test_explain_hostile(void)
{
	static const char file[] = "version: 1\ncommand: [\"\\e[2J\"]\n";
	own(buf) struct buf out = { .max = 10000 };

	spec_init(&spec);
	spec_add_file(&spec, "f\x1b[2J.yaml", file, strlen(file), true);
	CHECK(spec_settle(&spec));
	spec_explain(&spec, SPEC_COMMAND, &out);
	CHECK(!strchr(buf_text(&out), '\x1b'));
	spec_done(&spec);
}

/* --- many hosts --- */

/* The fast search among the names of a policy must say what looking at each of them says. */
static void test_host_search(void)
{
	static const char *const above[] = { "example.org:443", "*.example.org:443", "a.b.c.d:80",
		"*.c.d:80", "*.x.c.d:80", "zz.example.org:22", "10.0.0.0/8:443", "10.1.2.3:80",
		"[2001:db8::/32]:443", "localhost:80", "b.example.org:443", "*.net.example:443" };
	static const char *const names[] = { "example.org", "*.example.org", "a.example.org",
		"b.example.org", "*.b.example.org", "zz.example.org", "example.org.net", "c.d",
		"x.c.d", "*.x.c.d", "y.x.c.d", "a.b.c.d", "b.c.d", "localhost", "xlocalhost",
		"10.1.2.3", "10.1.2.4", "11.0.0.0", "10.0.0.0/9", "0.0.0.0/1", "[2001:db8::1]",
		"net.example", "a.net.example", "planet.example" };
	static const unsigned ports[] = { 22, 80, 443 };
	own(buf) struct buf policy = { .max = 10000 }, file = { .max = 10000 };
	size_t wrong = 0;
	const struct spec_value *low, *high;

	buf_puts(&policy, "version: 1\nproject_may: {network: {allow: [");
	for (size_t i = 0; i < COUNT_OF(above); i++)
		buf_printf(&policy, "\"%s\", ", above[i]);
	buf_puts(&policy, "]}}\n");
	buf_puts(&file, "version: 1\nnetwork: {allow: [");
	for (size_t i = 0; i < COUNT_OF(names) * 3; i++)
		buf_printf(&file, "\"%s:%u\", ", names[i / 3], ports[i % 3]);
	buf_puts(&file, "]}\n");
	make_layers(&spec, NULL, buf_text(&policy), buf_text(&file), false);
	high = &spec.may.v[SPEC_NETWORK_ALLOW];
	low = &spec.layers[SPEC_LAYER_FILE].v[SPEC_NETWORK_ALLOW];
	CHECK(high->count == COUNT_OF(above) && low->count == COUNT_OF(names) * 3);
	for (size_t i = 0; i < low->count; i++) {
		bool is_covered = false, is_said = false;

		for (size_t j = 0; j < high->count; j++)
			is_covered |=
				spec_covers(SPEC_NETWORK_ALLOW, &high->items[j], &low->items[i]);
		for (size_t j = 0; j < spec.diags.count; j++)
			is_said |= spec.diags.items[j].at.column == low->items[i].at.column;
		wrong += is_covered == is_said;
	}

	CHECK(wrong == 0 && spec.diags.errors > 20 && spec.diags.errors < low->count - 10);
	spec_done(&spec);
}

int main(void)
{
	test_order();
	test_options_are_free();
	test_ceiling();
	test_explain();
	test_explain_prod();
	test_explain_hostile();
	test_host_search();
	return check_report();
}
