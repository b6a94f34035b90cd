/*
 * verify_load - from the bytes of a file to a record that somebody signed.
 *
 * Runs as:  whoever wants to know.
 * Must not: believe anything of a payload, or even read it, before its signature was checked; take
 *           the hint at a key (keyid) for more than a hint.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/verify/verify.h"

/* Twice the file for what is decoded, and what a record and a provenance take when read. */
#define MOST_MEMORY (4 * VERIFY_MAX_FILE + 2 * RECORD_READ_MEMORY)
#define MOST_PEM    65536

void verify_record_init(struct verify_record *v)
{
	*v = (struct verify_record){ .folder = -1 };
	arena_init(&v->arena, MOST_MEMORY);
}

void verify_record_done(struct verify_record *v)
{
	arena_done(&v->arena);
}

int verify_add_key(struct verify_keys *keys, const char *path, struct arena *arena, struct err *e)
{
	own_free char *pem = NULL;
	struct verify_key *key;
	size_t n = 0;
	int r;

	if (keys->count == VERIFY_MAX_KEYS)
		return err_set(e, ERR_USE, E2BIG, "cannot use the keys: there are more than %d",
			VERIFY_MAX_KEYS);
	key = &keys->items[keys->count];
	r = file_read_path(path, MOST_PEM, &pem, &n);
	if (r < 0)
		return err_set(e, ERR_USE, -r, "cannot read the key '%s': %s", path, strerror(-r));
	r = sign_read_public(pem, n, &key->public, e);
	if (r < 0) {
		err_prefix(e, "cannot use the key '%s'", path);
		return r;
	}
	key->name = arena_copy(arena, path, strlen(path));
	if (!key->name)
		return err_set(e, ERR_SYS, ENOMEM, "cannot use the keys: out of memory");
	keys->count++;
	return 0;
}

/* --- signatures --- */

bool verify_find_key(const struct verify_keys *keys, const char *id, struct sign_public *ret,
	struct arena *arena, const char **ret_whose)
{
	struct err e;

	for (size_t i = 0; i < keys->count; i++)
		if (str_eq(keys->items[i].public.id, id)) {
			*ret = keys->items[i].public;
			*ret_whose = arena_printf(arena, "the key in '%s'", keys->items[i].name);
			return *ret_whose != NULL;
		}
	if (keys->count || keys->state < 0 || sign_find_own(keys->state, id, ret, &e) < 0)
		return false;
	*ret_whose = "your key";
	return true;
}

/* True if the envelope has a valid signature by a key that it names and that counts. */
static bool check_envelope(
	struct verify_record *v, const struct sign_envelope *x, const struct verify_keys *keys)
{
	for (size_t i = 0; i < x->count; i++)
		if (verify_find_key(keys, x->signatures[i].key_id, &v->key, &v->arena, &v->whose) &&
			sign_is_by(x, &v->key))
			return true;
	return false;
}

/* One key speaks for a file: a statement of another must not pass for one of that key's. */
static bool is_same_key(const struct verify_record *v, const struct sign_public *first, int line,
	struct verify_report *report)
{
	if (str_eq(v->key.id, first->id))
		return true;
	verify_say(report, "signature", VERIFY_NO,
		"line %d is signed by another key (%.16s…) than the first (%.16s…)", line,
		v->key.id, first->id);
	return false;
}

static void say_unsigned(struct verify_record *v, const struct sign_envelope *x, size_t line,
	const struct verify_keys *keys, struct verify_report *report)
{
	const char *id = x->count ? x->signatures[0].key_id : "";
	struct sign_public key;
	const char *whose;

	if (verify_find_key(keys, id, &key, report->arena, &whose))
		verify_say(report, "signature", VERIFY_NO,
			"line %zu was changed: it names %s (%.16s…), which did not sign it so",
			line, whose, id);
	else {
		v->is_strange = true;
		verify_say(report, "signature", VERIFY_NO,
			"line %zu is signed by none of %s keys; it names %s%.64s", line,
			keys->count ? "the given" : "your", *id ? "the key " : "none", id);
	}
}

/* --- lines --- */

/* The next line without its newline; false where there are no more. */
static bool load_next_line(const char **at, const char *end, const char **ret, size_t *ret_size)
{
	const char *newline;

	if (*at == end)
		return false;
	newline = memchr(*at, '\n', (size_t)(end - *at));
	*ret = *at;
	*ret_size = (size_t)((newline ? newline : end) - *at);
	*at = newline ? newline + 1 : end;
	return true;
}

/* Reads and checks all envelopes, so many that none is left. How many, or -errno; 0: said. */
static int read_envelopes(struct verify_record *v, const char *bytes, size_t n,
	const struct verify_keys *keys, struct sign_envelope *ret, struct verify_report *report,
	struct err *e)
{
	const char *at = bytes, *line;
	struct sign_public first;
	size_t size;
	int count = 0;

	while (load_next_line(&at, bytes + n, &line, &size)) {
		struct sign_envelope *x = &ret[count];
		int r;

		if (count == VERIFY_MAX_LINES)
			return err_set(e, ERR_SYS, EBADMSG,
				"it is no record: it has more than %d lines", VERIFY_MAX_LINES);
		*x = (struct sign_envelope){ 0 };
		r = sign_read_envelope(line, size, &v->arena, x, e);
		if (r == 0 && !str_eq(x->type, SIGN_PAYLOAD_TYPE))
			r = err_set(e, ERR_SYS, EBADMSG, "it is of the type '%.100s'", x->type);
		if (r < 0) {
			err_prefix(e, "it is no record: line %d", count + 1);
			return r;
		}
		if (!check_envelope(v, x, keys)) {
			say_unsigned(v, x, (size_t)count + 1, keys, report);
			return 0;
		}
		if (count++ == 0)
			first = v->key;
		if (!is_same_key(v, &first, count, report))
			return 0;
	}
	if (count)
		return count;
	err_set(e, ERR_SYS, EBADMSG, "it is no record: it is empty");
	return -EBADMSG;
}

/* One statement that is signed, by its type. */
static int take_statement(struct verify_record *v, const struct sign_envelope *x, bool *has_record,
	unsigned *others, struct err *e)
{
	struct record_statement s;
	int r = record_read_statement((const char *)x->payload, x->size, &v->arena, &s, e);

	if (r < 0)
		return r;
	if (record_is_predicate(s.type)) {
		if (*has_record)
			return err_set(e, ERR_SYS, EBADMSG, "it holds two records");
		*has_record = true;
		v->statement = s;
		return record_read_predicate(&s, &v->arena, &v->record, e);
	}
	if (str_eq(s.type, RECORD_PROVENANCE_TYPE)) {
		if (v->has_provenance)
			return err_set(e, ERR_SYS, EBADMSG, "it holds two provenances");
		v->has_provenance = true;
		v->provenance_statement = s;
		return record_read_provenance(&s, &v->arena, &v->provenance, e);
	}
	++*others;
	return 0;
}

int verify_load(struct verify_record *v, const char *bytes, size_t n,
	const struct verify_keys *keys, struct verify_report *report, struct err *e)
{
	struct sign_envelope envelopes[VERIFY_MAX_LINES + 1];
	bool has_record = false;
	unsigned others = 0;
	int count, r = 0;

	if (n && bytes[n - 1] != '\n')
		return err_set(e, ERR_SYS, EBADMSG,
			"it is no whole record: its last line has no end, so a part is missing");
	sha256_hex(bytes, n, v->sha256);
	count = read_envelopes(v, bytes, n, keys, envelopes, report, e);
	if (count <= 0)
		return count;
	for (int i = 0; r == 0 && i < count; i++)
		r = take_statement(v, &envelopes[i], &has_record, &others, e);
	if (r == 0 && !has_record)
		r = err_set(e, ERR_SYS, EBADMSG, "it holds no record of a run");
	if (r < 0)
		return r;
	v->is_signed = true;
	verify_say(report, "signature", VERIFY_YES, "by %s %s", v->whose, v->key.id);
	if (others)
		verify_say(report, "others", VERIFY_UNASKED,
			"%u further statements of other types, signed as well, were not looked at",
			others);
	return 0;
}
