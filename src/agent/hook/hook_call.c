#include <string.h>

#include "agent/hook/hook_inside.h"
#include "base/count.h"
#include "base/json_read.h"
#include "base/own.h"
#include "base/str.h"

/* The type of a tool's argument. */
enum kind {
	READ,
	WRITE,
	PATTERN, /* is read, up to where it stands for several names */
	FOLDER,  /* is listed, and other arguments begin there */
	SHELL,
	PATCH,
};

/*
 * The tools of each agent that take paths, with all names their arguments ever had. Names that are
 * not here are of no interest, or not known: the hook then has no opinion.
 */
static const struct argument {
	enum wire_agent agent;
	const char *tool, *member;
	enum kind kind;
} arguments[] = {
	{ WIRE_CLAUDE, "Read", "file_path", READ },
	{ WIRE_CLAUDE, "Write", "file_path", WRITE },
	{ WIRE_CLAUDE, "Edit", "file_path", WRITE },
	{ WIRE_CLAUDE, "MultiEdit", "file_path", WRITE },
	{ WIRE_CLAUDE, "NotebookRead", "notebook_path", READ },
	{ WIRE_CLAUDE, "NotebookEdit", "notebook_path", WRITE },
	{ WIRE_CLAUDE, "Glob", "path", FOLDER },
	{ WIRE_CLAUDE, "Glob", "pattern", PATTERN },
	{ WIRE_CLAUDE, "Grep", "path", READ },
	{ WIRE_CLAUDE, "LS", "path", READ },
	{ WIRE_CLAUDE, "Bash", "command", SHELL },
	{ WIRE_CODEX, "Bash", "workdir", FOLDER },
	{ WIRE_CODEX, "Bash", "command", SHELL },
	{ WIRE_CODEX, "Bash", "cmd", SHELL },
	{ WIRE_CODEX, "shell", "workdir", FOLDER },
	{ WIRE_CODEX, "shell", "command", SHELL },
	{ WIRE_CODEX, "shell_command", "workdir", FOLDER },
	{ WIRE_CODEX, "shell_command", "command", SHELL },
	{ WIRE_CODEX, "exec_command", "workdir", FOLDER },
	{ WIRE_CODEX, "exec_command", "cmd", SHELL },
	{ WIRE_CODEX, "exec_command", "command", SHELL },
	{ WIRE_CODEX, "apply_patch", "command", PATCH },
	{ WIRE_CODEX, "apply_patch", "input", PATCH },
	{ WIRE_CODEX, "apply_patch", "patch", PATCH },
	{ WIRE_CODEX, "view_image", "path", READ },
	{ WIRE_CODEX, "read_file", "file_path", READ },
	{ WIRE_CODEX, "list_dir", "dir_path", READ },
	{ WIRE_CODEX, "grep_files", "path", READ },
	{ WIRE_GEMINI, "read_file", "file_path", READ },
	{ WIRE_GEMINI, "read_file", "absolute_path", READ },
	{ WIRE_GEMINI, "read_many_files", "include", PATTERN },
	{ WIRE_GEMINI, "read_many_files", "paths", PATTERN },
	{ WIRE_GEMINI, "list_directory", "dir_path", READ },
	{ WIRE_GEMINI, "list_directory", "path", READ },
	{ WIRE_GEMINI, "glob", "dir_path", FOLDER },
	{ WIRE_GEMINI, "glob", "path", FOLDER },
	{ WIRE_GEMINI, "glob", "pattern", PATTERN },
	{ WIRE_GEMINI, "grep_search", "dir_path", READ },
	{ WIRE_GEMINI, "grep_search", "path", READ },
	{ WIRE_GEMINI, "search_file_content", "dir_path", READ },
	{ WIRE_GEMINI, "search_file_content", "path", READ },
	{ WIRE_GEMINI, "write_file", "file_path", WRITE },
	{ WIRE_GEMINI, "replace", "file_path", WRITE },
	{ WIRE_GEMINI, "run_shell_command", "dir_path", FOLDER },
	{ WIRE_GEMINI, "run_shell_command", "directory", FOLDER },
	{ WIRE_GEMINI, "run_shell_command", "command", SHELL },
};

#define ARGUMENTS COUNT_OF(arguments)

static const char *const events[WIRE_AGENT_COUNT] = {
	[WIRE_CLAUDE] = "PreToolUse",
	[WIRE_CODEX] = "PreToolUse",
	[WIRE_GEMINI] = "BeforeTool",
};

/* --- what is touched --- */

/* "~" and "~name", where people live by custom: the rest is added to it. */
static const char *home_of(struct hook_call *c, const char *name, size_t n)
{
	if (n == 0)
		return c->home;
	if (n == 4 && memcmp(name, "root", 4) == 0)
		return "/root";
	return arena_printf(&c->arena, "/home/%.*s", (int)n, name);
}

void hook_add_use(struct hook_call *c, const char *path, size_t n, const char *folder, bool writes)
{
	struct hook_use *use = &c->uses[c->count];
	size_t name;
	const char *home;

	if (c->count == HOOK_MAX_USES || n == 0 || n >= HOOK_PATH_SIZE || !folder)
		return;
	*use = (struct hook_use){ .folder = folder, .writes = writes };
	use->path = arena_copy(&c->arena, path, n);
	if (use->path && path[0] == '~') {
		name = strcspn(use->path + 1, "/");
		home = home_of(c, use->path + 1, name);
		use->path =
			home ? arena_printf(&c->arena, "%s%s", home, use->path + 1 + name) : NULL;
	}
	c->count += use->path != NULL;
}

static void add_pattern(struct hook_call *c, const char *text)
{
	size_t n = strcspn(text, "*?[{");

	/* The name in which it begins to stand for several is none. */
	while (text[n] && n && text[n - 1] != '/')
		n--;
	hook_add_use(c, text, n, c->folder, false);
}

void hook_patch_scan(struct hook_call *c, const char *patch)
{
	static const char *const heads[] = {
		"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "
	};

	for (const char *line = patch; *line;) {
		size_t n = strcspn(line, "\r\n");

		for (size_t i = 0; i < COUNT_OF(heads); i++) {
			size_t head = strlen(heads[i]);

			if (n > head && memcmp(line, heads[i], head) == 0)
				hook_add_use(c, line + head, n - head, c->folder, true);
		}
		line += n;
		line += strspn(line, "\r\n");
	}
}

/* The base folder of relative paths is a path of the call too. */
static void call_add_folder(struct hook_call *c, const char *text)
{
	const struct hook_use *use = &c->uses[c->count];
	size_t before = c->count;

	hook_add_use(c, text, strlen(text), c->folder, false);
	if (c->count == before)
		return;
	c->folder = use->path[0] == '/' ? use->path
					: arena_printf(&c->arena, "%s/%s", use->folder, use->path);
}

static void add_argument(struct hook_call *c, enum kind kind, const char *text)
{
	switch (kind) {
	case FOLDER:
		call_add_folder(c, text);
		return;
	case READ:
	case WRITE:
		hook_add_use(c, text, strlen(text), c->folder, kind == WRITE);
		return;
	case PATTERN:
		add_pattern(c, text);
		return;
	case SHELL:
		hook_shell_scan(c, text);
		return;
	case PATCH:
		hook_patch_scan(c, text);
		return;
	}
}

/* --- reading --- */

/* The words of a command as one that a shell would read. */
static void add_quoted(struct buf *out, const char *word)
{
	buf_puts(out, out->len ? " '" : "'");
	for (; *word; word++) {
		if (*word == '\'')
			buf_puts(out, "'\\'");
		buf_putc(out, *word);
	}
	buf_putc(out, '\'');
}

/* Adds a text, or each of a list of them, of which a command is made in one piece. */
static bool read_argument(struct hook_call *c, struct json_reader *r, enum kind kind)
{
	own(buf) struct buf words = { .max = 8 * HOOK_MAX_INPUT };
	const char *text;

	if (json_peek(r) == '"') {
		if (!json_read_text(r, &text))
			return false;
		text = arena_copy(&c->arena, text, strlen(text));
		if (text)
			add_argument(c, kind, text);
		return text != NULL;
	}
	if (json_peek(r) != '[')
		return json_skip(r);
	json_enter_list(r);
	while (json_next_item(r)) {
		if (json_peek(r) != '"') {
			json_skip(r);
			continue;
		}
		if (!json_read_text(r, &text))
			return false;
		if (kind == SHELL)
			add_quoted(&words, text);
		else
			add_argument(c, kind, text);
	}
	if (kind == SHELL && !words.failed && words.len) {
		text = arena_copy(&c->arena, words.data, words.len);
		if (text)
			hook_shell_scan(c, text);
	}
	return !r->wrong;
}

static const struct argument *find_argument(const struct hook_call *c, const char *member)
{
	for (size_t i = 0; i < ARGUMENTS; i++)
		if (arguments[i].agent == c->agent && str_eq(arguments[i].tool, c->tool) &&
			str_eq(arguments[i].member, member))
			return &arguments[i];
	return NULL;
}

/* One walk over the arguments: for those that say where others begin, or for the others. */
static bool call_read_arguments(
	struct hook_call *c, const char *bytes, size_t n, bool is_for_folders)
{
	struct json_reader r;
	const char *key;
	bool is_good;

	json_read_init(&r, bytes, n, HOOK_MAX_INPUT);
	json_enter_map(&r);
	while (json_next_key(&r, &key)) {
		const struct argument *a = find_argument(c, key);

		if (a && (a->kind == FOLDER) == is_for_folders)
			read_argument(c, &r, a->kind);
		else
			json_skip(&r);
	}
	is_good = json_read_end(&r);
	json_reader_done(&r);
	return is_good;
}

/* The members of every call; the arguments as a part of the text. */
struct head {
	const char *event, *tool, *folder;
	const char *input;
	size_t size;
};

static bool call_read_head(struct hook_call *c, const char *bytes, size_t n, struct head *ret)
{
	const struct {
		const char *key, **into;
	} texts[] = { { "hook_event_name", &ret->event }, { "tool_name", &ret->tool },
		{ "cwd", &ret->folder } };
	struct json_reader r;
	const char *key, *text;
	bool is_good;

	json_read_init(&r, bytes, n, HOOK_MAX_INPUT);
	json_enter_map(&r);
	while (json_next_key(&r, &key)) {
		const char **into = NULL;

		for (size_t i = 0; i < COUNT_OF(texts); i++)
			if (str_eq(texts[i].key, key))
				into = texts[i].into;
		if (into && json_peek(&r) == '"') {
			if (json_read_text(&r, &text))
				*into = arena_copy(&c->arena, text, strlen(text));
		} else if (str_eq(key, "tool_input") && json_peek(&r) == '{') {
			ret->input = r.at;
			if (json_skip(&r))
				ret->size = (size_t)(r.at - ret->input);
		} else {
			json_skip(&r);
		}
	}
	is_good = json_read_end(&r) && ret->event && ret->tool && ret->input && ret->size;
	json_reader_done(&r);
	return is_good;
}

static bool call_is_known(enum wire_agent agent, const char *tool)
{
	for (size_t i = 0; i < ARGUMENTS; i++)
		if (arguments[i].agent == agent && str_eq(arguments[i].tool, tool))
			return true;
	return false;
}

bool hook_call_read(struct hook_call *ret, enum wire_agent agent, const struct tool_cage *wall,
	const char *bytes, size_t n)
{
	struct head head = { 0 };

	*ret = (struct hook_call){ .agent = agent, .home = wall->home };
	arena_init(&ret->arena, 32 * HOOK_MAX_INPUT);
	if (n > HOOK_MAX_INPUT || !call_read_head(ret, bytes, n, &head) ||
		!str_eq(head.event, events[agent]) || !call_is_known(agent, head.tool))
		return false;
	ret->tool = head.tool;
	ret->folder = head.folder && head.folder[0] == '/' ? head.folder : wall->project;
	return call_read_arguments(ret, head.input, head.size, true) &&
	       call_read_arguments(ret, head.input, head.size, false);
}

void hook_call_done(struct hook_call *c)
{
	arena_done(&c->arena);
}
