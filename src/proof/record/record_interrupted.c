/*
 * record_interrupted - what is on record of a run whose keeper died: what its log says.
 *
 * Runs as:  whoever comes by later, with the run's folder locked.
 * Reads:    the run's log from its first line on, as long as it is a chain.
 *
 * The events have the record's own members, so they are passed on as they stand.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/log/log_event.h"
#include "proof/record/record_inside.h"
#include "proof/record/record_read.h"

/* Which members of which event a record has, and what it calls them. */
static const struct {
	const char *type, *key, *name;
} members[] = {
	{ "run_start", "session", "session" },
	{ "run_start", "worker", "worker" },
	{ "run_start", "lease", "lease" },
	{ "run_start", "cage", "cage" },
	{ "run_start", "bawn", "bawn" },
	{ "run_start", "kernel", "kernel" },
	{ "run_start", "landlock_abi", "landlock_abi" },
	{ "run_start", "name", "name" },
	{ "run_start", "engine", "engine" },
	{ "run_start", "level", "level" },
	{ "run_start", "level_reasons", "level_reasons" },
	{ "run_start", "self_governance", "self_governance" },
	{ "run_start", "in_chain", "in_chain" },
	{ "run_start", "spec_sha256", "spec_sha256" },
	{ "run_start", "plan_sha256", "plan_sha256" },
	{ "run_start", "filter_sha256", "filter_sha256" },
	{ "run_start", "capture", "capture" },
	{ "run_start", "again", "again" },
	{ "run_start", "began", "began" },
	{ "run_start", "image_tree", "image" },
	{ "run_start", "project_tree", "project" },
	{ "inspected", "guarantees", "guarantees" },
	{ "inspected", "warm", "warm" },
	{ "inspected", "terminal", "terminal" },
	{ "inspected", "overlay", "overlay" },
	{ "inspected", "preflight_passed", "preflight_passed" },
	{ "inspected", "preflight_sha256", "preflight_sha256" },
	{ "inspected", "preflight_by", "preflight_by" },
	{ "preflight", "preflight_passed", "preflight_passed" },
	{ "preflight", "preflight_sha256", "preflight_sha256" },
	{ "preflight", "preflight_by", "preflight_by" },
};

/* No record is without them. */
static const char *const demanded[] = { "bawn", "engine", "level", "spec_sha256", "plan_sha256",
	"began" };

struct reading {
	const char *run;
	struct json claim;
	struct buf facts; /* texts of the provenance, each ended with a NUL */
	size_t where[COUNT_OF(members)];
	bool has[COUNT_OF(members)];
	struct log_event event;
};

/* The digest of a tree, or "". */
static void add_digest(struct buf *out, const char *value)
{
	static const char *const keys[] = { "\"sha256\":\"", "\"sha256_before\":\"" };

	for (size_t i = 0; i < COUNT_OF(keys); i++) {
		const char *at = strstr(value, keys[i]);

		if (at)
			buf_printf(out, "%.*s", SHA256_HEX_SIZE - 1, at + strlen(keys[i]));
	}
	buf_putc(out, '\0');
}

static void take_member(struct reading *x, size_t i)
{
	const struct log_member *m = log_find(&x->event, members[i].key);
	own(buf) struct buf value = { .max = LOG_LINE_SIZE };

	if (!m || x->has[i])
		return;
	buf_add(&value, m->bytes, m->size);
	/* Nobody lived to compare it with that run. */
	if (str_eq(members[i].name, "again")) {
		json_open_map(&x->claim, "again");
		json_raw(&x->claim, "of", buf_text(&value));
		json_close_map(&x->claim);
	} else {
		json_raw(&x->claim, members[i].name, buf_text(&value));
	}
	x->claim.out->failed |= value.failed;
	x->has[i] = true;
	x->where[i] = x->facts.len;
	if (m->kind == LOG_TEXT)
		buf_add(&x->facts, m->text, strlen(m->text) + 1);
	else
		add_digest(&x->facts, buf_text(&value));
}

/* An event of the run; what is of another in it, or comes too early, is not taken. */
static void take_event(struct reading *x, const struct log_line *line)
{
	struct err e;

	if (log_event_read(&x->event, line->text, line->size, &e) < 0 ||
		!str_eq(x->event.run, x->run) ||
		(line->seq == 0) != str_eq(x->event.type, "run_start"))
		return;
	for (size_t i = 0; i < COUNT_OF(members); i++)
		if (str_eq(members[i].type, x->event.type))
			take_member(x, i);
}

/* The text of a member that the record has by this name; "" where there is none. */
static const char *find_fact(const struct reading *x, const char *name)
{
	for (size_t i = 0; i < COUNT_OF(members); i++)
		if (x->has[i] && str_eq(members[i].name, name))
			return x->facts.data + x->where[i];
	return "";
}

static bool has_all(const struct reading *x)
{
	for (size_t i = 0; i < COUNT_OF(demanded); i++)
		if (!find_fact(x, demanded[i])[0])
			return false;
	return true;
}

static void begin_claim(struct reading *x, struct buf *out)
{
	struct json *j = &x->claim;

	json_init(j, out, 0);
	json_open_map(j, NULL);
	json_int(j, "version", RECORD_VERSION);
	json_text(j, "run", x->run);
	json_text(j, "outcome", record_outcome_words[RECORD_INTERRUPTED]);
}

static void end_claim(struct reading *x)
{
	bool is_inspected = false;

	for (size_t i = 0; i < COUNT_OF(members); i++)
		is_inspected |= x->has[i] && str_eq(members[i].name, "guarantees");
	if (!is_inspected) {
		json_open_map(&x->claim, "guarantees");
		json_close_map(&x->claim);
	}
	json_close_map(&x->claim);
}

static void print_facts(const struct reading *x, struct buf *out)
{
	const struct record_facts facts = { .run = x->run,
		.name = find_fact(x, "name"),
		.spec_sha256 = find_fact(x, "spec_sha256"),
		.image_sha256 = find_fact(x, "image"),
		.project_sha256 = find_fact(x, "project"),
		.overlay_sha256 = find_fact(x, "overlay"),
		.bawn = find_fact(x, "bawn"),
		.began = find_fact(x, "began") };

	record_print_facts(&facts, out);
}

static int read_events(struct reading *x, int fd)
{
	struct log_reader reader;
	struct log_line line;
	int r;

	log_reader_init(&reader, fd);
	while ((r = log_read_line(&reader, &line)) > 0)
		take_event(x, &line);
	log_reader_done(&reader);
	return r;
}

static void free_reading(struct reading **x)
{
	if (*x)
		buf_done(&(*x)->facts);
	free(*x);
}

int record_read_claims(int folder, const char *run, struct record_claims *ret, struct err *e)
{
	__attribute__((cleanup(free_reading))) struct reading *x = calloc(1, sizeof(*x));
	own_fd int fd = file_open_name(folder, LOG_RUN_FILE, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct buf *claim = &ret->predicates[RECORD_CLAIM];
	int r = fd;

	if (!x)
		return err_set(e, ERR_SYS, ENOMEM, "cannot read the run's events: out of memory");
	x->run = run;
	buf_init(&x->facts, RECORD_MAX_SIZE);
	begin_claim(x, claim);
	if (r >= 0)
		r = read_events(x, fd);
	if (r < 0)
		return err_sys(e, -r, "cannot read the run's events");
	end_claim(x);
	print_facts(x, &ret->predicates[RECORD_PROVENANCE]);
	ret->type = RECORD_PREDICATE_TYPE;
	if (x->facts.failed || claim->failed || ret->predicates[RECORD_PROVENANCE].failed)
		return err_set(e, ERR_SYS, ENOMEM, "cannot write the record: out of memory");
	return has_all(x) ? 0 : -ENODATA;
}
