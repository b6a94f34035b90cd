/* Cards: what they say of a spec and of a run, that a signature covers it, that no lie passes. */
#include <sodium.h>
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "card_others.h"
#include "check.h"
#include "fake_host.h"
#include "make_spec.h"
#include "proof/card/card.h"

#define RECORD "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OTHER  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct spec spec; /* too large for a stack */

/* A card in print, and read again. */
struct made {
	struct plan *plan;
	char digest[SHA256_HEX_SIZE];
	struct card card;
	struct buf text;
	struct card_read read;
	struct sign_key key;
};

static void made_done(struct made *m)
{
	card_read_done(&m->read);
	buf_done(&m->text);
	free(m->plan);
	spec_done(&spec);
}

static void print_it(struct made *m)
{
	struct err e = { 0 };

	m->text = (struct buf){ .max = CARD_MAX_SIZE };
	CHECK(card_print(&m->card, &m->key, 0, &m->text, &e) == 0);
	CHECK_STR(e.text, "");
	CHECK(card_read(buf_text(&m->text), m->text.len, &m->read, &e) == 0);
	CHECK_STR(e.text, "");
}

static void make_key(struct sign_key *ret, uint8_t seed)
{
	uint8_t bytes[crypto_sign_SEEDBYTES] = { seed };

	crypto_sign_seed_keypair(ret->public.bytes, ret->secret, bytes);
	sign_name_key(&ret->public);
}

/* The card of what is settled in `spec`, on a host without some ability. */
static bool make(struct made *m, enum host_ability lost)
{
	struct host h;
	struct err e = { 0 };

	*m = (struct made){ 0 };
	fake_host_init(&h);
	if (lost < HOST_ABILITY_COUNT)
		fake_host_lose(&h, lost);
	make_key(&m->key, 1);
	if (plan_build(&spec, &h, &m->plan, NULL, &e) < 0) {
		printf("cannot plan: %s\n", e.text);
		return false;
	}
	CHECK(plan_digest(m->plan, m->digest) == 0);
	card_from_plan(&spec, m->plan, m->digest, &m->card);
	print_it(m);
	return true;
}

static bool make_of(struct made *m, const char *file)
{
	CHECK(make_spec(&spec, file));
	return make(m, HOST_ABILITY_COUNT);
}

static void check_param(const struct made *m, const char *path, const char *wanted)
{
	struct card_span span = card_find(m->read.params, path);
	own(buf) struct buf got = { .max = CARD_MAX_SIZE };

	buf_add(&got, span.bytes ? span.bytes : "absent", span.bytes ? span.size : 6);
	CHECK_STR(buf_text(&got), wanted);
}

/* --- of a spec --- */

static void test_default(void)
{
	/* Nobody has looked, and nothing differs. */
	static const char *const absent[] = { "differs", "preflight/allowed", "preflight/passed",
		"observed", "run", "degraded", "protectedPathsHeld" };
	own(made) struct made m;

	CHECK(make_of(&m, "version: 1\n"));
	check_param(&m, "basis", "\"declared\"");
	check_param(&m, "level", "\"hardened\"");
	check_param(&m, "engine", "\"native\"");
	check_param(&m, "home", "\"/home/agent\"");
	check_param(&m, "fakeroot", "false");
	check_param(&m, "binds", "{\"count\":0,\"writable\":0}");
	check_param(&m, "egress", "{\"held\":true,\"mode\":\"none\"}");
	check_param(&m, "limits/memory", "\"8G\"");
	check_param(&m, "landlockAbi", "4");
	check_param(&m, "networkNamespace", "true");
	for (size_t i = 0; i < COUNT_OF(absent); i++)
		check_param(&m, absent[i], "absent");
	for (size_t i = 0; card_mechanism(i); i++)
		if (!str_eq(card_mechanism(i), "protectedPathsHeld"))
			check_param(&m, card_mechanism(i), "true");
}

static void test_values(void)
{
	own(made) struct made m;

	CHECK(make_of(&m,
		"version: 1\nname: a\nfakeroot: true\nbinds: [/a:/b, /c:/d:rw, ~/.gitconfig:/e]\n"
		"preflight_allow: [~/.gitconfig]\nenv: {pass: [A, B]}\nlimits: {cpu: 1.5, time: 90m}\n"
		"network: {mode: allowlist, allow: [b.org:443, a.org:80], host_ports: [7]}\n"
		"secrets: [{name: s, host: \"s.org:443\", header: k, from: \"env:HIDDEN\"}]\n"
		"project: {mode: writable}\n"));
	check_param(&m, "level", "\"custom\"");
	check_param(&m, "differs",
		"[{\"key\":\"fakeroot\",\"value\":true},"
		"{\"key\":\"project.mode\",\"value\":\"writable\"},"
		"{\"key\":\"preflight_allow\",\"value\":[\"~/.gitconfig\"]}]");
	check_param(&m, "preflight/allowed", "[\"~/.gitconfig\"]");
	check_param(&m, "fakeroot", "true");
	check_param(&m, "binds", "{\"count\":3,\"writable\":1}");
	check_param(&m, "variablesPassed", "2");
	check_param(&m, "limits/cpu", "\"1.5\"");
	check_param(&m, "limits/time", "\"1h30m\"");
	check_param(&m, "egress/allow", "[\"a.org:80/http\",\"b.org:443/tls\"]");
	check_param(&m, "egress/hostPorts", "[\"7\"]");
	check_param(&m, "egress/withSecret", "[\"s.org:443\"]");
	CHECK(!strstr(buf_text(&m.text), "HIDDEN"));
	check_param(&m, "project", "{\"cage\":\"full\",\"mode\":\"writable\"}");
	check_param(&m, "protectedPathsHeld", "true");
	CHECK(strstr(buf_text(&m.text), "\"preflight_allowed\":[\"~/.gitconfig\"]"));
	CHECK(strstr(buf_text(&m.text), "\"binds_count\":3,\"binds_writable_count\":1"));
}

/* What a host cannot give is named, and its mechanism is not claimed. */
static void test_degraded(void)
{
	own(made) struct made m;

	CHECK(make_layers(&spec, NULL, NULL, NULL, true));
	CHECK(make(&m, HOST_NO_GROUPS));
	check_param(&m, "degraded", "[\"groups\"]");
	check_param(&m, "noSupplementaryGroups", "false");
	check_param(&m, "level", "\"hardened\"");
}

/* A reader may drop whatever is empty before it checks a signature. */
static void test_nothing_empty(void)
{
	static const char *const empty[] = { "[]", "{}", "null", "\"\"" };
	own(made) struct made m;

	CHECK(make_of(&m, "version: 1\nrelaxed: true\nengine: logical\n"));
	for (size_t i = 0; i < COUNT_OF(empty); i++)
		CHECK(!strstr(buf_text(&m.read.is_signed), empty[i]));
	check_param(&m, "mountNamespace", "false");
	check_param(&m, "networkNamespace", "false");
	check_param(&m, "egress/held", "false");
	check_param(&m, "landlockAbi", "absent");
}

/* --- every key --- */

/* A value that opens the wall makes the level custom, and is named; none else is. */
static void test_every_key(void)
{
	for (enum spec_key k = SPEC_VERSION + 1; k < SPEC_KEY_COUNT; k++) {
		own(made) struct made m = { 0 };
		own(buf) struct buf wanted = { .max = 1024 };

		spec_init(&spec);
		if (spec_keys[k].tighten == SPEC_OPERATOR_ONLY)
			continue;
		check_that(others[k].value != NULL, spec_keys[k].path, __FILE__, __LINE__);
		spec_add_option(&spec, k, "--x", others[k].value ? others[k].value : "");
		check_that(spec_settle(&spec), spec_keys[k].path, __FILE__, __LINE__);
		/* The engine logical gives next to nothing: the spec has to bear that too. */
		if (k == SPEC_ENGINE)
			spec_add_option(&spec, SPEC_RELAXED, "--relaxed", "true");
		if (k == SPEC_STARTUP_PROMPTS)
			spec_add_option(&spec, SPEC_AGENT, "--agent", "x");
		if (k == SPEC_SECRETS)
			spec_add_option(&spec, SPEC_NETWORK_MODE, "--network", "allowlist");
		CHECK(spec_settle(&spec));
		if (!make(&m, HOST_ABILITY_COUNT)) {
			check_that(false, spec_keys[k].path, __FILE__, __LINE__);
			continue;
		}
		check_param(&m, "level", others[k].differs ? "\"custom\"" : "\"hardened\"");
		if (others[k].differs)
			buf_printf(&wanted, "[{\"key\":\"%s\",\"value\":%s}%s]", spec_keys[k].path,
				others[k].differs,
				k == SPEC_ENGINE ? ",{\"key\":\"relaxed\",\"value\":true}" : "");
		check_param(&m, "differs", others[k].differs ? buf_text(&wanted) : "absent");
	}
}

/* --- signatures --- */

static bool is_good(const char *text, size_t n, const struct sign_public *key)
{
	struct card_read read;
	struct card_report report = { 0 };
	bool is_read = card_read(text, n, &read, NULL) == 0;

	if (is_read)
		card_verify(&read, key, &report);
	card_read_done(&read);
	return is_read && report.count && !report.has_failed;
}

static void test_signature(void)
{
	struct sign_key other;
	own(made) struct made m;
	own_free char *copy = NULL;
	size_t most;

	CHECK(make_of(&m, "version: 1\nfakeroot: true\n"));
	make_key(&other, 2);
	copy = strdup(buf_text(&m.text));
	most = (size_t)(strstr(copy, CARD_LEGACY) - copy);
	CHECK(is_good(copy, m.text.len, &m.key.public));
	CHECK(!is_good(copy, m.text.len, &other.public));
	CHECK(!is_good(copy, m.text.len, NULL));
	for (size_t i = 0; i < most; i++) {
		copy[i] ^= 1;
		if (is_good(copy, m.text.len, &m.key.public)) {
			printf("at %zu: %.40s\n", i, copy + i);
			check_that(false, "a change is noticed", __FILE__, __LINE__);
		}
		copy[i] ^= 1;
	}
	/* The same key under another's name is another's. */
	memcpy(other.public.bytes, m.key.public.bytes, SIGN_PUBLIC_SIZE);
	CHECK(!is_good(copy, m.text.len, &other.public));
}

static bool is_good_changed(const struct made *m, const char *from, const char *to)
{
	const char *text = buf_text(&m->text), *at = strstr(text, from);
	own(buf) struct buf changed = { .max = CARD_MAX_SIZE };

	CHECK(at);
	if (!at)
		return true;
	buf_add(&changed, text, (size_t)(at - text));
	buf_puts(&changed, to);
	buf_puts(&changed, at + strlen(from));
	return is_good(buf_text(&changed), changed.len, &m->key.public);
}

/* The block for older readers is not signed: it is compared. */
static void test_legacy(void)
{
	static const char block[] = "\"" CARD_LEGACY "\":{\"isolation\":{\"level\":\"";
	own(made) struct made m;

	CHECK(make_of(&m, "version: 1\nfakeroot: true\n"));
	CHECK(!is_good_changed(&m, block, "\"" CARD_LEGACY "\":{\"isolation\":{\"level\":\"x"));
	CHECK(!is_good_changed(&m, "\"preflight_allowed\":[]", "\"preflight_allowed\":[\"/x\"]"));
	CHECK(!is_good_changed(&m, "\"binds_writable_count\":0", "\"binds_writable_count\":1"));
	/* Order, white space and other spellings change nothing. */
	CHECK(is_good_changed(&m, "{\"isolation\"", " {\t\"i\\u0073olation\""));
	CHECK(is_good_changed(&m, "\"fakeroot\":true", "\"fakeroot\": true"));
	/* Another member is signed by nobody, unless it is one that readers do not see. */
	CHECK(!is_good_changed(&m, "{\"name\"", "{\"other\":1,\"name\""));
	CHECK(is_good_changed(&m, "{\"name\"", "{\"x-other\":1,\"name\""));
	CHECK(!is_good_changed(&m, "\"extensions\":[",
		"\"extensions\":[{\"uri\":\"" CARD_EXTENSION "\",\"params\":{}},"));
	CHECK(!is_good_changed(&m, "\"uri\":\"urn:bawn", "\"uri\":\"urn:other"));
}

/* --- of a run --- */

struct seen {
	struct record_read record;
	struct record_read_guarantee guarantees[PLAN_GUARANTEE_COUNT];
	char spec_digest[SHA256_HEX_SIZE];
};

/* A record in which everything that was asked for was seen to hold. */
static void make_record(const struct made *m, struct seen *ret)
{
	size_t n = 0;

	memcpy(ret->spec_digest, m->plan->spec_digest, SHA256_HEX_SIZE);
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		if (m->card.promises[g].need != PLAN_NONE)
			ret->guarantees[n++] = (struct record_read_guarantee){
				.name = plan_guarantee_defs[g].name,
				.is_must = m->card.promises[g].need == PLAN_MUST,
				.holds = true,
				.vantage = RECORD_OUTSIDE,
			};
	ret->record = (struct record_read){
		.run = "20261115-224501-1f2e3d4c",
		.engine = "native",
		.landlock_abi = 4,
		.level = m->card.is_hardened ? "hardened" : "custom",
		.is_hardened = m->card.is_hardened,
		.in_chain = true,
		.spec_sha256 = ret->spec_digest,
		.plan_sha256 = m->digest,
		.preflight_sha256 = m->card.preflight_digest,
		.preflight_passed = true,
		.outcome = RECORD_EXITED,
		.effects = { .sha256 = OTHER },
		.guarantees = { ret->guarantees, n },
	};
}

/* The first property that fails where the record is signed by `key`; "" where none does. */
static const char *failing_by(
	const struct made *m, const struct seen *s, const char *digest, const char *key)
{
	static struct card_report report;

	report = (struct card_report){ 0 };
	card_verify_record(&m->read, &s->record, digest, key, &report);
	for (size_t i = 0; i < report.count; i++)
		if (report.items[i].result == CARD_NO)
			return report.items[i].name;
	CHECK(!report.has_failed && report.count >= 3);
	return "";
}

static const char *failing(const struct made *m, const struct seen *s, const char *digest)
{
	return failing_by(m, s, digest, m->key.public.id);
}

static struct record_read_guarantee *find(struct seen *s, enum plan_guarantee g)
{
	for (size_t i = 0; i < s->record.guarantees.count; i++)
		if (str_eq(s->guarantees[i].name, plan_guarantee_defs[g].name))
			return &s->guarantees[i];
	check_that(false, "it is there", __FILE__, __LINE__);
	return s->guarantees;
}

/* Every member of a group decides, also where all the others agree. */
static void check_members(const struct made *m, struct seen *s)
{
	char other_run[] = "20261115-224501-1f2e3d4c", other_key[sizeof(m->key.public.id)];
	struct record_read was = s->record;

	/* Signed by another, by one whose name begins alike, and by nobody. */
	memcpy(other_key, m->key.public.id, sizeof(other_key));
	other_key[strlen(other_key) - 1] ^= 1;
	CHECK_STR(failing_by(m, s, RECORD, other_key), "card.run");
	other_key[strlen(other_key) - 1] = '\0';
	CHECK_STR(failing_by(m, s, RECORD, other_key), "card.run");
	CHECK_STR(failing_by(m, s, RECORD, NULL), "card.run");
	other_run[strlen(other_run) - 1] ^= 1;
	s->record.run = other_run;
	CHECK_STR(failing(m, s, RECORD), "card.run");
	s->record = was;
	s->record.outcome = RECORD_SIGNALED;
	CHECK_STR(failing(m, s, RECORD), "card.run");
	s->record = was;
	s->record.effects.sha256 = RECORD;
	CHECK_STR(failing(m, s, RECORD), "card.run");
	s->record = was;
	s->record.in_chain = false;
	CHECK_STR(failing(m, s, RECORD), "card.run");
	s->record = was;
	s->record.plan_sha256 = OTHER;
	CHECK_STR(failing(m, s, RECORD), "card.digests");
	s->record = was;
	s->record.preflight_sha256 = OTHER;
	CHECK_STR(failing(m, s, RECORD), "card.preflight");
	s->record = was;
	CHECK_STR(failing(m, s, RECORD), "");
}

static void test_run(void)
{
	own(made) struct made m;
	struct seen s;
	struct err e = { 0 };
	char *basis;

	CHECK(make_of(&m, "version: 1\n"));
	make_record(&m, &s);
	/* The card of the spec: the run was made from it. */
	CHECK_STR(failing(&m, &s, RECORD), "");
	s.record.plan_sha256 = OTHER;
	CHECK_STR(failing(&m, &s, RECORD), "card.digests");
	s.record.plan_sha256 = m.digest;
	/* The card of the run. */
	CHECK(card_from_record(&spec, &s.record, RECORD, m.key.public.id, &m.card, &e) == 0);
	card_read_done(&m.read);
	buf_done(&m.text);
	print_it(&m);
	check_param(&m, "basis", "\"observed\"");
	check_param(&m, "run/record/sha256", "\"" RECORD "\"");
	check_param(&m, "run/effects/sha256", "\"" OTHER "\"");
	check_param(&m, "run/id", "\"20261115-224501-1f2e3d4c\"");
	check_param(&m, "run/outcome", "\"exited\"");
	check_param(&m, "preflight/passed", "true");
	check_param(&m, "observed/fs.root", "{\"holds\":true,\"vantage\":\"outside\"}");
	CHECK(strstr(
		buf_text(&m.text), "\"preflight_passed\":[\"uid-nonzero\",\"home-canonical\"]"));
	CHECK_STR(failing(&m, &s, RECORD), "");
	CHECK_STR(failing(&m, &s, OTHER), "card.record");
	s.record.run = "20261115-224501-1f2e3d4d";
	CHECK_STR(failing(&m, &s, RECORD), "card.run");
	s.record.run = "20261115-224501-1f2e3d4c";
	s.record.is_hardened = false;
	CHECK_STR(failing(&m, &s, RECORD), "card.level");
	s.record.is_hardened = true;
	s.record.preflight_passed = false;
	CHECK_STR(failing(&m, &s, RECORD), "card.preflight");
	s.record.preflight_passed = true;
	find(&s, PLAN_LANDLOCKED)->vantage = RECORD_INSIDE;
	CHECK_STR(failing(&m, &s, RECORD), "card.guarantees");
	find(&s, PLAN_LANDLOCKED)->vantage = RECORD_OUTSIDE;
	s.record.landlock_abi = 5;
	CHECK_STR(failing(&m, &s, RECORD), "card.mechanisms");
	s.record.landlock_abi = 4;
	CHECK_STR(failing(&m, &s, RECORD), "");
	check_members(&m, &s);
	/* Declared or observed, and nothing else. */
	basis = strstr(m.read.canonical.data, "\"basis\":\"o");
	if (basis)
		basis[strlen("\"basis\":\"")] = 'x';
	CHECK_STR(failing(&m, &s, RECORD), "card.run");
}

/* What was not seen is not said. */
static void test_run_seen(void)
{
	own(made) struct made m;
	struct seen s;
	struct err e = { 0 };

	CHECK(make_of(&m, "version: 1\n"));
	make_record(&m, &s);
	find(&s, PLAN_GROUPS)->holds = false;
	find(&s, PLAN_TTY)->vantage = RECORD_UNSEEN;
	CHECK(card_from_record(&spec, &s.record, RECORD, NULL, &m.card, &e) == 0);
	card_read_done(&m.read);
	buf_done(&m.text);
	print_it(&m);
	check_param(&m, "degraded", "[\"groups\"]");
	check_param(&m, "noSupplementaryGroups", "false");
	check_param(&m, "observed/groups", "{\"holds\":false,\"vantage\":\"outside\"}");
	check_param(&m, "ownTerminal", "false");
	check_param(&m, "observed/tty", "absent");
	/* A record of another spec, or one whose level its spec does not have. */
	s.record.is_hardened = false;
	CHECK(card_from_record(&spec, &s.record, RECORD, NULL, &m.card, &e) < 0);
	s.record.is_hardened = true;
	s.record.spec_sha256 = OTHER;
	CHECK(card_from_record(&spec, &s.record, RECORD, NULL, &m.card, &e) < 0);
}

static void test_url(void)
{
	CHECK(card_is_url(CARD_URL) && card_is_url("https://a.example/x?y#z"));
	CHECK(!card_is_url("") && !card_is_url("a.example") && !card_is_url("http://"));
	CHECK(!card_is_url("http:///x") && !card_is_url("file:///x"));
	CHECK(!card_is_url("http://a b") && !card_is_url("http://a\n") &&
		!card_is_url("http://\xc3"));
}

int main(void)
{
	CHECK(sodium_init() >= 0);
	test_default();
	test_values();
	test_degraded();
	test_nothing_empty();
	test_every_key();
	test_signature();
	test_legacy();
	test_run();
	test_run_seen();
	test_url();
	return check_report();
}
