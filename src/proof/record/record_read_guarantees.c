/*
 * record_read_guarantees - what records say of guarantees. Pure, but for what is read from the log
 * of a run, whose lines are anybody's as the record's bytes are.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/log/log_event.h"
#include "proof/record/record_read_values.h"

const struct record_read_guarantee *record_read_find(const struct record_read *r, const char *name)
{
	for (size_t i = 0; i < r->guarantees.count; i++)
		if (str_eq(r->guarantees.items[i].name, name))
			return &r->guarantees.items[i];
	return NULL;
}

/* --- version 1: a map of each --- */

static bool read_need(void *reader, void *into)
{
	static const char *const words[] = { "may", "must" };
	unsigned which = 0;

	if (!record_read_word(reader, words, 2, &which))
		return false;
	*(bool *)into = which == 1;
	return true;
}

static bool read_vantage(void *reader, void *into)
{
	enum record_vantage *ret = into;
	unsigned which = 0;

	if (!record_read_word(reader, record_vantage_words, RECORD_VANTAGE_COUNT, &which))
		return false;
	*ret = which;
	return true;
}

static bool read_guarantee(void *reader, struct record_read_guarantee *into)
{
	static const struct json_field fields[] = {
		{ "need", read_need, offsetof(struct record_read_guarantee, is_must), true },
		{ "declared", record_read_text, offsetof(struct record_read_guarantee, declared) },
		{ "holds", record_read_bool, offsetof(struct record_read_guarantee, holds), true },
		{ "vantage", read_vantage, offsetof(struct record_read_guarantee, vantage), true },
		{ "seen", record_read_text, offsetof(struct record_read_guarantee, seen) },
	};
	struct record_reader *r = reader;

	if (!JSON_READ_FIELDS(reader, fields, into))
		return false;
	/* What nobody saw does not hold. */
	if (into->holds && into->vantage == RECORD_UNSEEN)
		return json_wrong(&r->json, "a vantage");
	return true;
}

#define MAX_GUARANTEES 256

static bool read_rows(void *reader, void *into)
{
	struct record_reader *r = reader;
	struct record_read *ret = into;
	void *items = NULL;
	const char *name;

	if (!json_enter_map(&r->json))
		return false;
	while (json_next_key(&r->json, &name)) {
		struct record_read_guarantee *one;

		if (record_read_find(ret, name))
			return json_wrong(&r->json, "each guarantee once");
		one = ret->guarantees.count < MAX_GUARANTEES
			      ? record_grow(r, &items, &ret->guarantees.count, sizeof(*one))
			      : NULL;
		ret->guarantees.items = items;
		if (one)
			one->name = arena_copy(r->arena, name, strlen(name));
		if (!one || !one->name)
			return json_wrong(&r->json, "fewer guarantees");
		if (!read_guarantee(reader, one))
			return false;
	}
	return !r->json.wrong;
}

/* --- from version 2 on: lists of names, and what there is to say of some --- */

struct said {
	const char *name, *text;
};

struct saids {
	const struct said *items;
	size_t count;
};

struct grouped {
	struct record_read *ret;
	void *rows;
	struct saids declared, seen;
};

static struct record_read_guarantee *add_row(
	struct record_reader *r, struct grouped *x, const char *name, bool is_must)
{
	struct record_read *ret = x->ret;
	struct record_read_guarantee *one;

	if (record_read_find(ret, name)) {
		json_wrong(&r->json, "each guarantee once");
		return NULL;
	}
	one = ret->guarantees.count < MAX_GUARANTEES
		      ? record_grow(r, &x->rows, &ret->guarantees.count, sizeof(*one))
		      : NULL;
	ret->guarantees.items = x->rows;
	if (one)
		*one = (struct record_read_guarantee){
			.name = arena_copy(r->arena, name, strlen(name)),
			.declared = RECORD_USUAL,
			.is_must = is_must,
		};
	if (one && one->name)
		return one;
	json_wrong(&r->json, "fewer guarantees");
	return NULL;
}

/* Names of those that hold, as seen from there. */
static bool read_holding(
	struct record_reader *r, struct grouped *x, bool is_must, enum record_vantage vantage)
{
	if (!json_enter_list(&r->json))
		return false;
	while (json_next_item(&r->json)) {
		struct record_read_guarantee *one;
		const char *name;

		if (!json_read_text(&r->json, &name))
			return false;
		one = add_row(r, x, name, is_must);
		if (!one)
			return false;
		one->holds = true;
		one->vantage = vantage;
	}
	return !r->json.wrong;
}

static bool read_missing(struct record_reader *r, struct grouped *x, bool is_must)
{
	const char *name;

	if (!json_enter_map(&r->json))
		return false;
	while (json_next_key(&r->json, &name)) {
		struct record_read_guarantee *one = add_row(r, x, name, is_must);

		if (!one || !read_vantage(r, &one->vantage))
			return false;
	}
	return !r->json.wrong;
}

static bool read_group(struct record_reader *r, struct grouped *x, bool is_must)
{
	const char *key;

	if (!json_enter_map(&r->json))
		return false;
	while (json_next_key(&r->json, &key)) {
		unsigned v = RECORD_UNSEEN + 1;

		while (v < RECORD_VANTAGE_COUNT && !str_eq(key, record_vantage_words[v]))
			v++;
		if (str_eq(key, "missing")) {
			if (!read_missing(r, x, is_must))
				return false;
		} else if (v == RECORD_VANTAGE_COUNT) {
			return json_wrong(&r->json, "a vantage");
		} else if (!read_holding(r, x, is_must, v)) {
			return false;
		}
	}
	return !r->json.wrong;
}

static bool grouped_must(void *reader, void *into)
{
	return read_group(reader, into, true);
}

static bool grouped_may(void *reader, void *into)
{
	return read_group(reader, into, false);
}

static bool read_said(void *reader, void *into)
{
	struct record_reader *r = reader;
	struct saids *ret = into;
	void *items = NULL;
	const char *key;

	if (!json_enter_map(&r->json))
		return false;
	while (json_next_key(&r->json, &key)) {
		struct said *one = ret->count < MAX_GUARANTEES
					   ? record_grow(r, &items, &ret->count, sizeof(*one))
					   : NULL;

		ret->items = items;
		if (!one)
			return json_wrong(&r->json, "fewer guarantees");
		one->name = arena_copy(r->arena, key, strlen(key));
		if (!one->name || !record_read_text(reader, &one->text) || !one->text)
			return json_wrong(&r->json, "a text");
	}
	return !r->json.wrong;
}

/* What is said of each goes to its row; false: there is none of that name. */
static bool give(const struct saids *said, size_t at, const struct grouped *x)
{
	struct record_read_guarantee *rows = x->rows;

	for (size_t i = 0; i < said->count; i++) {
		size_t row = 0;

		while (row < x->ret->guarantees.count &&
			!str_eq(rows[row].name, said->items[i].name))
			row++;
		if (row == x->ret->guarantees.count)
			return false;
		memcpy((char *)&rows[row] + at, &said->items[i].text, sizeof(said->items[i].text));
	}
	return true;
}

static bool read_grouped(struct record_reader *r, struct record_read *ret)
{
	static const struct json_field fields[] = {
		{ "must", grouped_must, 0 },
		{ "may", grouped_may, 0 },
		{ "declared", read_said, offsetof(struct grouped, declared) },
		{ "seen", read_said, offsetof(struct grouped, seen) },
	};
	struct grouped x = { .ret = ret };

	if (!JSON_READ_FIELDS(r, fields, &x))
		return false;
	return (give(&x.declared, offsetof(struct record_read_guarantee, declared), &x) &&
		       give(&x.seen, offsetof(struct record_read_guarantee, seen), &x)) ||
	       json_wrong(&r->json, "guarantees that are named");
}

bool record_read_guarantees(void *reader, void *into)
{
	struct record_read *ret = into;

	return ret->version == 1 ? read_rows(reader, into) : read_grouped(reader, ret);
}

/* --- what was seen of those that hold --- */

/* What goes without saying of one that holds. */
static const char *usual_of(const char *name)
{
	enum plan_guarantee g = plan_guarantee_find(name);

	return g < PLAN_GUARANTEE_COUNT ? plan_guarantee_defs[g].usual : NULL;
}

/* Of an event of the log, if it is the one that says so. */
static bool take_seen(struct log_event *x, const struct log_line *line, struct arena *arena,
	struct record_read *ret)
{
	own(record_reader) struct record_reader r = { 0 };
	struct record_read seen = { .version = RECORD_VERSION };
	struct record_read_guarantee *rows;
	const struct log_member *m;
	struct err e;

	if (log_event_read(x, line->text, line->size, &e) < 0 || !str_eq(x->type, "inspected") ||
		!str_eq(x->run, ret->run) || !(m = log_find(x, "guarantees")))
		return false;
	record_reader_begin(&r, m->bytes, m->size, arena);
	if (!read_grouped(&r, &seen))
		return false;
	rows = arena_array(arena, ret->guarantees.count + 1, sizeof(*rows));
	for (size_t i = 0; rows && i < ret->guarantees.count; i++) {
		const struct record_read_guarantee *other;

		rows[i] = ret->guarantees.items[i];
		other = record_read_find(&seen, rows[i].name);
		if (!other || rows[i].seen)
			continue;
		rows[i].seen = other->seen ? other->seen : usual_of(other->name);
	}
	if (rows)
		ret->guarantees.items = rows;
	return true;
}

void record_read_seen(int folder, struct arena *arena, struct record_read *ret)
{
	own_fd int fd = file_open_name(folder, LOG_RUN_FILE, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	own_free struct log_event *event = malloc(sizeof(*event));
	struct log_reader reader;
	struct log_line line;

	log_reader_init(&reader, fd);
	while (fd >= 0 && event && log_read_line(&reader, &line) > 0)
		if (take_seen(event, &line, arena, ret))
			break;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): own_free frees the event */
	log_reader_done(&reader);
}
