/*
 * cmd_overlay - overlays of the root apart from runs: made, emptied, tidied up, digested.
 *
 * Runs as: the operator.
 * Leaves:  each overlay whole, whenever it is ended; what a run uses is not touched.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/json.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "change/overlay/change_overlay.h"
#include "cli/commands.h"

const struct cli_option cmd_overlay_options[] = {
	CLI_OWN("size", 's', "SIZE", "init: limit the overlay, such as 5G"),
	CLI_YES,
	{ 0 },
};

/* The facts that are printed about an overlay. */
struct report {
	const struct cli *cli;
	struct buf text;
	struct json json;
	bool is_list; /* of several */
};

static void overlay_begin(struct report *r, const struct change_overlay *o)
{
	json_open_map(&r->json, NULL);
	if (!r->is_list)
		json_int(&r->json, "version", 1);
	json_text(&r->json, "path", o->path);
	json_int(&r->json, "size", (int64_t)o->size);
	json_text(&r->json, "created", o->created);
}

/* A line for people. */
static void overlay_say(struct report *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void overlay_say(struct report *r, const char *fmt, ...)
{
	char line[PATH_MAX + 256];
	va_list args;

	if (r->cli->is_json || r->cli->is_quiet)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	buf_add_visible(&r->text, line, strlen(line));
	buf_putc(&r->text, '\n');
}

/* Finds, opens and locks. */
static int use(struct change_overlay *o, const char *path, const char *verb, struct err *e)
{
	char holder[64];
	int r = change_overlay_find(o, path, e);

	snprintf(holder, sizeof(holder), "bawn overlay %s", verb);
	if (r == 0)
		r = change_overlay_open(o, e);
	return r == 0 ? change_overlay_take(o, holder, e) : r;
}

/* --- the verbs --- */

static int init_one(struct report *r, struct change_overlay *o, const char *path, struct err *e)
{
	const char *text = cli_value(r->cli, CLI_OPT_SIZE);
	char size[NUM_TEXT_SIZE];
	uint64_t bytes = 0;
	int ret;

	if (!text)
		return err_hint(e, err_set(e, ERR_USE, 0, "cannot make an overlay without a size"),
			"--size 5G");
	ret = num_parse_large_size(text, &bytes, e);
	if (ret < 0) {
		e->kind = ERR_USE;
		err_prefix(e, "--size");
		return ret;
	}
	ret = change_overlay_find(o, path, e);
	if (ret == 0 && o->folder >= 0)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EEXIST,
				"cannot make an overlay at '%s': something is there", o->path),
			"bawn overlay reset empties an overlay");
	if (ret == 0)
		ret = change_overlay_create(o, bytes, e);
	if (ret < 0)
		return ret;
	num_print_size(bytes, size);
	overlay_say(r, "made the overlay '%s', which may take %s", o->path, size);
	overlay_begin(r, o);
	json_text(&r->json, "sha256", o->digest);
	json_close_map(&r->json);
	return 0;
}

static int reset_one(struct report *r, struct change_overlay *o, const char *path, struct err *e)
{
	int ret = use(o, path, "reset", e);

	if (ret == 0)
		ret = change_overlay_reset(o, e);
	if (ret < 0)
		return ret;
	overlay_say(r, "emptied the overlay '%s'", o->path);
	overlay_begin(r, o);
	json_text(&r->json, "sha256", o->digest);
	json_close_map(&r->json);
	return 0;
}

static int prune_one(struct report *r, struct change_overlay *o, const char *path, struct err *e)
{
	unsigned count = 0;
	int ret = use(o, path, "prune", e);

	if (ret == 0)
		ret = change_overlay_prune(o, &count, e);
	if (ret < 0)
		return ret;
	if (count)
		overlay_say(r, "removed %u tree%s that killed runs left in '%s'", count,
			count == 1 ? "" : "s", o->path);
	else
		overlay_say(r, "there is nothing to remove in '%s'", o->path);
	overlay_begin(r, o);
	json_int(&r->json, "removed", count);
	json_close_map(&r->json);
	return 0;
}

static int digest_one(struct report *r, struct change_overlay *o, const char *path, struct err *e)
{
	char digest[SHA256_HEX_SIZE];
	int ret = use(o, path, "digest", e);

	if (ret == 0)
		ret = change_overlay_digest(o, digest, e);
	if (ret < 0)
		return ret;
	if (!r->cli->is_json)
		buf_printf(&r->text, "%s\n", digest);
	if (!str_eq(digest, o->digest) && !r->cli->is_quiet)
		cli_complain("'%s' is not what the last run left in it: something else changed it",
			o->path);
	overlay_begin(r, o);
	json_text(&r->json, "sha256", digest);
	json_text(&r->json, "noted_sha256", o->digest);
	json_close_map(&r->json);
	return 0;
}

static const struct verb {
	const char *name;
	int (*run)(struct report *r, struct change_overlay *o, const char *path, struct err *e);
	bool takes_many, takes_size;
	const char *asks; /* before it does, with its path behind it; or NULL */
} verbs[] = {
	{ "init", init_one, .takes_size = true },
	{ "reset", reset_one, .asks = "remove all that is in the overlay" },
	{ "prune", prune_one, .takes_many = true },
	{ "digest", digest_one },
};

#define VERB_COUNT COUNT_OF(verbs)

/* --- the command --- */

static const struct verb *find_verb(const char *name)
{
	const char *names[VERB_COUNT];
	const char *near;

	for (size_t i = 0; i < VERB_COUNT; i++) {
		if (str_eq(verbs[i].name, name))
			return &verbs[i];
		names[i] = verbs[i].name;
	}
	near = str_nearest(name, names, VERB_COUNT);
	cli_complain("overlay knows init, reset, prune and digest, not '%s'%s%s%s", name,
		near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	return NULL;
}

static const struct verb *overlay_choose_verb(const struct cli *cli)
{
	const struct verb *verb;

	if (!cli->word_count) {
		cli_complain("say what to do with an overlay: init, reset, prune or digest");
		return NULL;
	}
	verb = find_verb(cli->words[0]);
	if (!verb)
		return NULL;
	if (cli->word_count < 2)
		cli_complain(
			"say which overlay: bawn overlay %s PATH%s; bawn keeps no list of them",
			verb->name, verb->takes_many ? "…" : "");
	else if (cli->word_count > 2 && !verb->takes_many)
		cli_complain(
			"overlay %s takes one path, and not '%s' too", verb->name, cli->words[2]);
	else if (cli_value(cli, CLI_OPT_SIZE) && !verb->takes_size)
		cli_complain(
			"overlay %s takes no --size: a run with root.overlay_size changes the size "
			"of an overlay",
			verb->name);
	else
		return verb;
	return NULL;
}

/* Removes the slashes that a shell's completion adds. */
static int overlay_run_verb(struct report *r, const struct verb *verb, const char *path)
{
	own(change_overlay) struct change_overlay o;
	size_t n = strlen(path);
	char plain[PATH_MAX];
	struct err e = { 0 };

	while (n > 1 && path[n - 1] == '/')
		n--;
	snprintf(plain, sizeof(plain), "%.*s", n < PATH_MAX ? (int)n : 0, path);
	change_overlay_init(&o);
	if (verb->asks && cli_confirm(r->cli, true, "%s '%s'", verb->asks, plain) != CLI_OK)
		return CLI_NO;
	if (verb->run(r, &o, plain, &e) == 0)
		return CLI_OK;
	cli_complain_err(&e);
	return err_exit_status(e.kind);
}

int cmd_overlay(struct cli *cli)
{
	own(buf) struct buf json = { .max = (size_t)1 << 24 };
	struct report r = { .cli = cli, .text = { .max = (size_t)1 << 24 } };
	const struct verb *verb = overlay_choose_verb(cli);
	int status = verb ? CLI_OK : CLI_MISUSE;

	json_init(&r.json, &json, 0);
	r.is_list = verb && verb->takes_many;
	if (r.is_list) {
		json_open_map(&r.json, NULL);
		json_int(&r.json, "version", 1);
		json_open_list(&r.json, "overlays");
	}
	for (size_t i = 1; verb && i < cli->word_count; i++) {
		int one = overlay_run_verb(&r, verb, cli->words[i]);

		status = one > status ? one : status;
	}
	if (r.is_list) {
		json_close_list(&r.json);
		json_close_map(&r.json);
	}
	if (json.len)
		buf_putc(&json, '\n');
	if (cli->is_json && (status == CLI_OK || r.is_list))
		status = cli_write(&json, status);
	else if (r.text.len)
		status = cli_write(&r.text, status);
	buf_done(&r.text);
	return status;
}

/* --- after a run --- */
