/* The arguments of a call, and the table of the tools that take them. */
#include "agent/tool/tool_args.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "agent/tool/tool_inside.h"
#include "base/count.h"
#include "base/json_read.h"
#include "base/own.h"
#include "base/str.h"

static const char *const names[] = {
	[TOOL_READ] = "read",
	[TOOL_WRITE] = "write",
	[TOOL_EDIT] = "edit",
	[TOOL_GLOB] = "glob",
	[TOOL_GREP] = "grep",
};

static_assert(COUNT_OF(names) == TOOL_COUNT, "each has a name");

enum tool tool_find(const char *name)
{
	unsigned i = 0;

	while (i < TOOL_COUNT && !str_eq(names[i], name))
		i++;
	return i;
}

static const char *tool_name(enum tool tool)
{
	return names[tool];
}

/* --- members --- */

#define FOR(tool) (1U << TOOL_##tool)

struct field {
	unsigned tools;
	const char *key;
	bool (*read)(struct json_reader *r, struct tool_args *into, void *at);
	const char *what; /* it has to be */
	size_t at;        /* in struct tool_args */
	bool is_needed;
};

static bool args_read_text(struct json_reader *r, struct tool_args *into, void *at)
{
	const char *text;

	if (json_peek(r) != '"' || !json_read_text(r, &text))
		return false;
	*(const char **)at = arena_copy(&into->arena, text, strlen(text));
	return *(const char **)at != NULL;
}

static bool read_named_text(struct json_reader *r, struct tool_args *into, void *at)
{
	return args_read_text(r, into, at) && **(const char **)at;
}

static bool args_read_number(struct json_reader *r, struct tool_args *into, void *at)
{
	(void)into;
	return json_read_int(r, at) && *(int64_t *)at >= 0;
}

static bool args_read_flag(struct json_reader *r, struct tool_args *into, void *at)
{
	(void)into;
	return json_read_bool(r, at);
}

static bool read_opposite(struct json_reader *r, struct tool_args *into, void *at)
{
	bool value = false;
	bool is_read = args_read_flag(r, into, &value);

	*(bool *)at = !value;
	return is_read;
}

static bool args_read_mode(struct json_reader *r, struct tool_args *into, void *at)
{
	static const char *const modes[] = {
		[TOOL_MODE_FILES] = "files_with_matches",
		[TOOL_MODE_CONTENT] = "content",
		[TOOL_MODE_COUNT] = "count",
	};
	const char *text = NULL;

	if (!args_read_text(r, into, &text))
		return false;
	for (unsigned i = 0; i < COUNT_OF(modes); i++)
		if (str_eq(text, modes[i])) {
			*(enum tool_mode *)at = i;
			return true;
		}
	return false;
}

#define IN_FILE    (FOR(READ) | FOR(WRITE) | FOR(EDIT))
#define IN_TREE    (FOR(GLOB) | FOR(GREP))
#define AT(member) offsetof(struct tool_args, member)
#define NUMBER     "a whole number, 0 or more"
#define FLAG       "true or false"

/* One name of a member may stand for another: both rows have the same place. */
static const struct field fields[] = {
	{ IN_FILE, "path", read_named_text, "the path of a file", AT(path), true },
	{ IN_FILE, "file_path", read_named_text, "the path of a file", AT(path), false },
	{ IN_TREE, "path", read_named_text, "the path of a folder", AT(path), false },
	{ FOR(READ), "offset", args_read_number, NUMBER, AT(offset), false },
	{ FOR(READ), "limit", args_read_number, NUMBER, AT(limit), false },
	{ FOR(WRITE), "content", args_read_text, "a text without NUL", AT(content), true },
	{ FOR(EDIT), "old_string", read_named_text,
		"the text to be replaced, and not empty: the tool write makes whole files",
		AT(old_text), true },
	{ FOR(EDIT), "new_string", args_read_text, "a text without NUL", AT(new_text), true },
	{ FOR(EDIT), "replace_all", args_read_flag, FLAG, AT(replaces_all), false },
	{ IN_TREE, "pattern", read_named_text, "a text, and not empty", AT(pattern), true },
	{ FOR(GREP), "glob", read_named_text, "a pattern of names, such as *.c", AT(glob), false },
	{ FOR(GREP), "output_mode", args_read_mode, "content, files_with_matches or count",
		AT(mode), false },
	{ FOR(GREP), "head_limit", args_read_number, NUMBER, AT(head_limit), false },
	{ FOR(GREP), "-i", args_read_flag, FLAG, AT(ignores_case), false },
	{ FOR(GREP), "-n", read_opposite, FLAG, AT(has_no_numbers), false },
	{ FOR(GREP), "-A", args_read_number, NUMBER, AT(after), false },
	{ FOR(GREP), "-B", args_read_number, NUMBER, AT(before), false },
	{ FOR(GREP), "-C", args_read_number, NUMBER, AT(around), false },
};

#define FIELD_COUNT COUNT_OF(fields)

static size_t args_find_field(enum tool tool, const char *key)
{
	size_t i = 0;

	while (i < FIELD_COUNT && (!(fields[i].tools & 1U << tool) || !str_eq(fields[i].key, key)))
		i++;
	return i;
}

/* Suggests the member that was meant, or lists all. */
static int args_say_unknown(enum tool tool, const char *key, struct err *e)
{
	const char *keys[FIELD_COUNT], *near;
	own(buf) struct buf all = { .max = 1024 };
	size_t count = 0;

	for (size_t i = 0; i < FIELD_COUNT; i++) {
		if (!(fields[i].tools & 1U << tool))
			continue;
		buf_printf(&all, "%s%s", count ? ", " : "", fields[i].key);
		keys[count++] = fields[i].key;
	}
	near = str_nearest(key, keys, count);
	if (near)
		return err_set(e, ERR_USE, EINVAL, "%s has no argument '%.60s'; did you mean %s?",
			tool_name(tool), key, near);
	return err_set(e, ERR_USE, EINVAL, "%s has no argument '%.60s'; it has %s", tool_name(tool),
		key, buf_text(&all));
}

/* One member. `seen` has a bit for each row that was there. */
static int args_read_member(enum tool tool, const char *key, struct json_reader *r,
	struct tool_args *ret, uint32_t *seen, struct err *e)
{
	size_t found = args_find_field(tool, key);
	const struct field *f = &fields[found];

	if (found == FIELD_COUNT)
		return args_say_unknown(tool, key, e);
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (*seen & 1U << i && fields[i].at == f->at)
			return err_set(e, ERR_USE, EINVAL, "%s takes %s once, not twice",
				tool_name(tool), f->key);
	if (!f->is_needed && json_take_null(r))
		return 0;
	*seen |= 1U << found;
	if (!f->read(r, ret, (char *)ret + f->at))
		return err_set(e, ERR_USE, EINVAL, "%s of %s has to be %s", f->key, tool_name(tool),
			f->what);
	return 0;
}

static int args_say_missing(
	enum tool tool, uint32_t seen, const struct tool_args *args, struct err *e)
{
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		bool is_path = fields[i].at == AT(path);

		if (fields[i].tools & 1U << tool && fields[i].is_needed && !(seen & 1U << i) &&
			!(is_path && args->path))
			return err_set(e, ERR_USE, EINVAL, "%s needs %s: %s", tool_name(tool),
				fields[i].key, fields[i].what);
	}
	return 0;
}

static int args_read_members(
	enum tool tool, struct json_reader *r, struct tool_args *ret, struct err *e)
{
	const char *key;
	uint32_t seen = 0;
	int failure = 0;

	static_assert(FIELD_COUNT <= 32, "a bit for each");
	json_enter_map(r);
	while (failure == 0 && json_next_key(r, &key))
		failure = args_read_member(tool, key, r, ret, &seen, e);
	if (failure < 0)
		return failure;
	if (!json_read_end(r))
		return err_set(e, ERR_USE, EINVAL,
			"the arguments of %s are not one JSON object: %s is missing",
			tool_name(tool), r->wrong);
	return args_say_missing(tool, seen, ret, e);
}

int tool_args_read(
	enum tool tool, const char *bytes, size_t n, struct tool_args *ret, struct err *e)
{
	struct json_reader r;
	int failure;

	*ret = (struct tool_args){ 0 };
	arena_init(&ret->arena, 2 * TOOL_MAX_INPUT);
	json_read_init(&r, bytes, n, TOOL_MAX_INPUT);
	failure = args_read_members(tool, &r, ret, e);
	json_reader_done(&r);
	if (failure == 0 && tool == TOOL_EDIT && str_eq(ret->old_text, ret->new_text))
		failure = err_set(e, ERR_USE, EINVAL,
			"old_string and new_string of edit are the same: nothing would change");
	return failure;
}

void tool_args_done(struct tool_args *args)
{
	arena_done(&args->arena);
}

/* --- the tools --- */

static int (*const tools[])(const struct tool_args *args, struct buf *out, struct err *e) = {
	[TOOL_READ] = tool_run_read,
	[TOOL_WRITE] = tool_run_write,
	[TOOL_EDIT] = tool_run_edit,
	[TOOL_GLOB] = tool_run_glob,
	[TOOL_GREP] = tool_run_grep,
};

static_assert(COUNT_OF(tools) == TOOL_COUNT, "each has a row");

int tool_run(enum tool tool, const char *arguments, size_t n, struct buf *out, struct err *e)
{
	own(tool_args) struct tool_args args;
	int r = tool_args_read(tool, arguments, n, &args, e);

	if (r < 0)
		return r;
	if (args.path && strlen(args.path) >= PATH_MAX)
		return err_set(e, ERR_USE, ENAMETOOLONG, "path of %s is longer than %d bytes",
			tool_name(tool), PATH_MAX - 1);
	return tools[tool](&args, out, e);
}
