#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/card/card.h"

static void card_verify_say(struct card_report *r, const char *name, enum card_result result,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void card_verify_say(
	struct card_report *r, const char *name, enum card_result result, const char *fmt, ...)
{
	struct card_property *x = r->count < CARD_MOST_PROPERTIES ? &r->items[r->count] : NULL;
	va_list args;

	/* One that has no room is no good one. */
	r->has_failed = r->has_failed || result == CARD_NO || !x;
	if (!x)
		return;
	*x = (struct card_property){ .name = name, .result = result };
	va_start(args, fmt);
	vsnprintf(x->text, sizeof(x->text), fmt, args);
	va_end(args);
	r->count++;
}

/* --- signature --- */

int card_find_signature(const struct card_read *c, const struct sign_public *key)
{
	for (size_t i = 0; i < c->signature_count; i++) {
		own(buf) struct buf bytes = { .max = 2 * CARD_MAX_SIZE };

		card_add_signed(c->signatures[i].protected, buf_text(&c->is_signed),
			c->is_signed.len, &bytes);
		if (!bytes.failed && str_eq(c->signatures[i].key_id, key->id) &&
			sign_check(key, buf_text(&bytes), bytes.len, c->signatures[i].bytes))
			return (int)i;
	}
	return -1;
}

static void verify_signature(
	const struct card_read *c, const struct sign_public *key, struct card_report *ret)
{
	if (!c->signature_count)
		card_verify_say(ret, "card.signature", CARD_NO, "the card is not signed");
	else if (!key)
		card_verify_say(ret, "card.signature", CARD_NO,
			"no key is known that could have signed the card: its header names %s",
			c->signatures[0].key_id);
	else if (card_find_signature(c, key) < 0)
		card_verify_say(ret, "card.signature", CARD_NO,
			"the card is not as the key %s has signed it", key->id);
	else
		card_verify_say(ret, "card.signature", CARD_YES, "the card is signed by the key %s",
			key->id);
}

/* --- the block that is not signed --- */

static void verify_legacy(const struct card_read *c, struct card_report *ret)
{
	static const struct {
		const char *legacy, *params, *otherwise; /* what a member that is not there means */
	} pairs[] = {
		{ "isolation/level", "level", "" },
		{ "isolation/cleanenv", "cleanEnvironment", "" },
		{ "isolation/fakeroot", "fakeroot", "" },
		{ "isolation/home_canonical", "home", "" },
		{ "isolation/preflight_allowed", "preflight/allowed", "[]" },
		{ "isolation/binds_count", "binds/count", "" },
		{ "isolation/binds_writable_count", "binds/writable", "" },
	};

	if (!c->legacy.bytes)
		return;
	for (size_t i = 0; i < COUNT_OF(pairs); i++) {
		struct card_span said = card_find(c->legacy, pairs[i].legacy);
		struct card_span meant = card_find(c->params, pairs[i].params);

		if (!meant.bytes)
			meant = (struct card_span){ pairs[i].otherwise,
				strlen(pairs[i].otherwise) };
		if (said.size == meant.size && said.bytes &&
			memcmp(said.bytes, meant.bytes, said.size) == 0)
			continue;
		card_verify_say(ret, "card.older", CARD_NO, "%s is not what the signed block says",
			pairs[i].legacy);
		return;
	}
	card_verify_say(ret, "card.older", CARD_YES, "the block that is not signed says the same");
}

void card_verify(const struct card_read *c, const struct sign_public *key, struct card_report *ret)
{
	verify_signature(c, key, ret);
	verify_legacy(c, ret);
}

/* --- the record --- */

#define MOST_PATHS 32

/* Members that are one property: their names end with NULL. */
struct group {
	const char *name, *what;
	bool is_of_spec; /* the card of a spec has them too */
	const char *paths[MOST_PATHS];
};

static bool verify_is_same(struct card_span a, struct card_span b)
{
	return a.size == b.size && (!a.size || memcmp(a.bytes, b.bytes, a.size) == 0);
}

static void compare_group(const struct card_read *c, struct card_span meant, const struct group *g,
	struct card_report *ret)
{
	for (const char *const *path = g->paths; *path; path++) {
		if (verify_is_same(card_find(c->params, *path), card_find(meant, *path)))
			continue;
		card_verify_say(
			ret, g->name, CARD_NO, "%s on the card is not what the record says", *path);
		return;
	}
	card_verify_say(ret, g->name, CARD_YES, "%s as in the record", g->what);
}

static void compare_all(
	const struct card_read *c, struct card_span meant, bool is_of_run, struct card_report *ret)
{
	static const struct group groups[] = {
		{ "card.level", "level and engine", true, { "level", "engine" } },
		{ "card.digests", "spec and plan", true, { "specDigest", "planDigest" } },
		{ "card.run", "run, outcome and effects", false,
			{ "basis", "run/id", "run/outcome", "run/effects", "run/inChain",
				"run/record/key" } },
		{ "card.guarantees", "what was observed and what is degraded", false,
			{ "observed", "degraded" } },
		{ "card.preflight", "preflight", false,
			{ "preflight/sha256", "preflight/passed" } },
	};
	struct group mechanisms = { "card.mechanisms", "every mechanism", false,
		{ "networkNamespace", "landlockAbi" } };

	for (size_t i = 0; i < COUNT_OF(groups); i++)
		if (is_of_run || groups[i].is_of_spec)
			compare_group(c, meant, &groups[i], ret);
	for (size_t i = 0; card_mechanism(i) && i + 3 < MOST_PATHS; i++)
		mechanisms.paths[i + 2] = card_mechanism(i);
	if (is_of_run)
		compare_group(c, meant, &mechanisms, ret);
}

/* Does the card name this file? */
static void compare_record(
	const struct card_read *c, const char *digest, bool is_of_run, struct card_report *ret)
{
	char wanted[SHA256_HEX_SIZE + 2];

	snprintf(wanted, sizeof(wanted), "\"%s\"", digest);
	if (!is_of_run)
		card_verify_say(ret, "card.record", CARD_ABSENT,
			"the card is of a spec, and names no record");
	else if (card_is(card_find(c->params, "run/record/sha256"), wanted))
		card_verify_say(ret, "card.record", CARD_YES, "the card names this record");
	else
		card_verify_say(ret, "card.record", CARD_NO, "the card is of another record");
}

void card_verify_record(const struct card_read *c, const struct record_read *r, const char *digest,
	const char *key, struct card_report *ret)
{
	bool is_of_run = !card_is(card_find(c->params, "basis"), "\"declared\"");
	own(buf) struct buf text = { .max = CARD_MAX_SIZE }, form = { .max = CARD_MAX_SIZE };
	struct card meant;
	struct err e = { 0 };
	struct json j;

	compare_record(c, digest, is_of_run, ret);
	if (card_from_record(NULL, r, digest, key, &meant, &e) < 0) {
		card_verify_say(ret, "card.level", CARD_NO, "%.200s", e.text);
		return;
	}
	json_init(&j, &text, 0);
	json_open_map(&j, NULL);
	card_print_isolation(&meant, &j);
	json_close_map(&j);
	if (card_canonicalize(buf_text(&text), text.len, NULL, &form, &e) < 0)
		card_verify_say(ret, "card.level", CARD_NO, "%.200s", e.text);
	else
		compare_all(c, (struct card_span){ buf_text(&form), form.len }, is_of_run, ret);
}
