/* How the texts of a spec are written: one parser for each grammar; those of the network are in
 * spec_grammar_net.c. */
#include "spec/spec_grammar.h"

#include <errno.h>
#include <string.h>

#include "base/count.h"
#include "base/num.h"
#include "base/str.h"

#define PATH_LIMIT 4095

#define NO_MEMORY(e) (err_set((e), ERR_SYS, ENOMEM, "not enough memory"), -ENOMEM)
#define BAD(e, ...)  (err_set((e), ERR_SPEC, 0, __VA_ARGS__), -EINVAL)

static int grammar_keep(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	ret->text = arena_copy(arena, text, strlen(text));
	return ret->text ? 0 : NO_MEMORY(e);
}

static int parse_any(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	if (!*text)
		return BAD(e, "text is empty");
	return grammar_keep(arena, text, ret, e);
}

static int parse_word(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	return grammar_keep(arena, text, ret, e);
}

static int parse_name(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	size_t n = strlen(text);

	if (n == 0 || n > 63)
		return BAD(e, "a name has 1 to 63 characters, not %zu", n);
	if (!str_is_letter(text[0]) && !str_is_digit(text[0]))
		return BAD(e, "name '%s' must start with a letter or a digit", text);
	for (const char *p = text; *p; p++)
		if (!str_is_letter(*p) && !str_is_digit(*p) && !strchr("._-", *p))
			return BAD(e, "name '%s' may have letters, digits and . _ - only", text);
	return grammar_keep(arena, text, ret, e);
}

static int parse_guarantee(
	struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	if (!*text || strspn(text, "abcdefghijklmnopqrstuvwxyz.") != strlen(text))
		return BAD(e, "'%s' is not the name of a guarantee: see bawn doctor", text);
	return grammar_keep(arena, text, ret, e);
}

/* --- paths --- */

static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

/*
 * Writes `text` without "//", "/./" and a trailing "/" into out, which has room for all of it.
 * ".." is left where it stands: what it means is for the file system to say.
 */
static void grammar_normalise(const char *text, char *out)
{
	const char *p = text;
	size_t n = 0;

	if (*p == '/')
		out[n++] = '/';
	while (*p) {
		size_t len;

		p += strspn(p, "/");
		len = strcspn(p, "/");
		if (len && !(len == 1 && *p == '.')) {
			if (n && out[n - 1] != '/')
				out[n++] = '/';
			memcpy(out + n, p, len);
			n += len;
		}
		p += len;
	}
	out[n] = '\0';
}

/* True if ".." is a component of the path. */
static bool grammar_climbs(const char *path)
{
	for (const char *p = path; (p = strstr(p, "..")) != NULL; p += 2)
		if ((p == path || p[-1] == '/') && (p[2] == '/' || p[2] == '\0'))
			return true;
	return false;
}

static int check_path(const char *text, struct err *e)
{
	if (!*text)
		return BAD(e, "a path is empty");
	if (strlen(text) > PATH_LIMIT)
		return BAD(e, "path '%.60s…' is longer than %d bytes", text, PATH_LIMIT);
	return 0;
}

/* Checks a path of the host and writes its one spelling into `path`; "" for the place itself. */
static int parse_host_path(const char *text, char path[static PATH_LIMIT + 1], struct err *e)
{
	const char *rest = path;

	if (check_path(text, e) < 0)
		return -EINVAL;
	grammar_normalise(text, path);
	if (text[0] == '~' && text[1] != '/' && text[1] != '\0')
		return BAD(e, "path '%.200s': ~ is your own home only; write the whole path", text);
	if (text[0] == '$')
		return BAD(e, "path '%.200s': variables are not replaced here; write ~ or a path",
			text);
	/* A relative path may climb at its front, where everyone sees it. */
	if (text[0] != '/' && text[0] != '~')
		while (str_starts(rest, "../"))
			rest += 3;
	if (grammar_climbs(rest) && !(rest != path && str_eq(rest, "..")) && !str_eq(path, ".."))
		return BAD(e, "path '%.200s' has '..' after a name: write it without", text);
	return 0;
}

static int parse_project(
	struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	char path[PATH_LIMIT + 1];
	int r = parse_host_path(text, path, e);

	if (r < 0)
		return r;
	/* "./~" and "./$x" are directories of that name, and have to stay so. */
	if ((path[0] == '~' && text[0] != '~') || path[0] == '$') {
		ret->text = arena_printf(arena, "./%s", path);
		return ret->text ? 0 : NO_MEMORY(e);
	}
	return grammar_keep(arena, path[0] ? path : ".", ret, e);
}

static int parse_trusted(
	struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	if (text[0] && text[0] != '/' && text[0] != '~')
		return BAD(e, "path '%.200s' must start with / or ~", text);
	return parse_project(arena, text, ret, e);
}

static int parse_source(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	char path[PATH_LIMIT + 1];
	int r = parse_host_path(text, path, e);

	if (r < 0)
		return r;
	if (text[0] == '/' || text[0] == '~')
		return grammar_keep(arena, path, ret, e);
	ret->text = path[0] ? arena_printf(arena, "$PROJECT/%s", path) : "$PROJECT";
	return ret->text ? 0 : NO_MEMORY(e);
}

static int parse_target(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	char path[PATH_LIMIT + 1];

	if (check_path(text, e) < 0)
		return -EINVAL;
	if (has_control(text))
		return BAD(e, "a path in the cage has a control character");
	if (text[0] == '~')
		return BAD(e, "path '%.200s' in the cage: write /home/agent for ~", text);
	if (text[0] != '/')
		return BAD(e, "path '%.200s' in the cage must start with /", text);
	grammar_normalise(text, path);
	if (grammar_climbs(path))
		return BAD(e, "path '%.200s' in the cage has '..': write it without", text);
	if (str_eq(path, "/"))
		return BAD(e, "path '%.200s' in the cage is the root itself; choose one below it",
			text);
	return grammar_keep(arena, path, ret, e);
}

static int parse_at(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	return str_eq(text, "own") ? grammar_keep(arena, text, ret, e)
				   : parse_target(arena, text, ret, e);
}

static int parse_inside(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	char path[PATH_LIMIT + 1];

	if (check_path(text, e) < 0)
		return -EINVAL;
	if (str_starts(text, "$PROJECT/"))
		text += strlen("$PROJECT/");
	grammar_normalise(text, path);
	if (path[0] == '/' || path[0] == '~' || path[0] == '$')
		return BAD(e, "path '%.200s' must be relative to the project", text);
	if (grammar_climbs(path))
		return BAD(e, "path '%.200s' leaves the project", text);
	if (!path[0])
		return BAD(e, "path '%.200s' is the whole project; use mode: read_only for that",
			text);
	return grammar_keep(arena, path, ret, e);
}

static int parse_pattern(
	struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	char path[PATH_LIMIT + 1];
	bool is_tree = str_ends(text, "/**");
	size_t n = strlen(text) - (is_tree ? 3 : 0);

	if (check_path(text, e) < 0)
		return -EINVAL;
	if (text[0] != '/' && !str_starts(text, "$PROJECT/") && !str_eq(text, "$PROJECT"))
		return BAD(e, "pattern '%.200s' must start with $PROJECT/ or /", text);
	grammar_normalise(text, path);
	if (memchr(text, '*', n) || memchr(text, '?', n) || memchr(text, '[', n))
		return BAD(e,
			"pattern '%.200s': only /** at the end is understood; name the directory",
			text);
	if (grammar_climbs(path))
		return BAD(e, "pattern '%.200s' has '..': write it without", text);
	return grammar_keep(arena, path, ret, e);
}

bool spec_climbs(const char *path)
{
	return grammar_climbs(path);
}

bool spec_is_inside_project(const char *source)
{
	bool is_relative = source[0] != '/' && source[0] != '~';

	return is_relative && !grammar_climbs(source);
}

/* --- binds --- */

/* A path as one part of a text that is split at colons. */
static const char *escape_colons(struct arena *arena, const char *path)
{
	char *out = strchr(path, ':') ? arena_alloc(arena, 2 * strlen(path) + 1) : NULL;
	size_t n = 0;

	if (!out)
		return path;
	for (; *path; path++) {
		if (*path == ':' || *path == '\\')
			out[n++] = '\\';
		out[n++] = *path;
	}
	return out;
}

bool spec_join_bind(struct arena *arena, const struct spec_item *from, const struct spec_item *to,
	bool is_writable, struct spec_item *ret)
{
	ret->bind = (struct spec_bind){ from->text, to->text, is_writable };
	ret->text = arena_printf(arena, "%s:%s:%s", escape_colons(arena, from->text),
		escape_colons(arena, to->text), is_writable ? "rw" : "ro");
	return ret->text != NULL;
}

static int parse_bind(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	const char *colon = strchr(text, ':'), *second = colon ? strchr(colon + 1, ':') : NULL;
	struct spec_item source = { 0 }, target = { 0 };
	char *from, *to;
	int r;

	if (str_is_letter(text[0]) && text[1] == ':' && text[2] == '\\')
		return BAD(
			e, "bind '%.200s' has a Windows path: write a path of this machine", text);
	if (!colon || colon == text || !colon[1])
		return BAD(e, "bind '%.200s' must be SOURCE:TARGET[:ro|:rw]", text);
	if (second && !str_eq(second, ":ro") && !str_eq(second, ":rw"))
		return BAD(e,
			"bind '%.200s' ends with '%.20s': only :ro or :rw may follow the target",
			text, second);
	from = arena_copy(arena, text, (size_t)(colon - text));
	to = arena_copy(
		arena, colon + 1, second ? (size_t)(second - colon - 1) : strlen(colon + 1));
	if (!from || !to)
		return NO_MEMORY(e);
	r = parse_source(arena, from, &source, e);
	if (r == 0)
		r = parse_target(arena, to, &target, e);
	if (r < 0)
		return r;
	return spec_join_bind(arena, &source, &target, second && str_eq(second, ":rw"), ret)
		       ? 0
		       : NO_MEMORY(e);
}

/* --- toolchains --- */

const char *const spec_toolchains[] = { "bun", "cargo", "go", "nvm", "pnpm", "pyenv", "uv", NULL };

static int parse_toolchain(
	struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	for (size_t i = 0; spec_toolchains[i]; i++)
		if (str_eq(text, spec_toolchains[i]))
			return grammar_keep(arena, text, ret, e);
	if (str_eq(text, "auto"))
		return grammar_keep(arena, text, ret, e);
	return BAD(e, "'%.60s' is none of auto, bun, cargo, go, nvm, pnpm, pyenv and uv", text);
}

/* --- environment --- */

/* Variables that bawn sets itself and that the preflight or an agent relies on. */
static const char *const own_variables[] = { "HOME", "USER", "LOGNAME", "TMPDIR" };

static int check_variable(const char *name, struct err *e)
{
	if (!str_is_letter(name[0]) && name[0] != '_')
		return BAD(e, "'%.60s' is not the name of a variable", name);
	for (const char *p = name; *p; p++)
		if (!str_is_letter(*p) && !str_is_digit(*p) && *p != '_')
			return BAD(e,
				"'%.60s' is not the name of a variable; patterns are not "
				"understood",
				name);
	for (size_t i = 0; i < COUNT_OF(own_variables); i++)
		if (str_eq(name, own_variables[i]))
			return BAD(e, "variable %s is set by bawn and cannot be changed", name);
	if (str_starts(name, "BAWN_"))
		return BAD(e, "variable %.60s: names that start with BAWN_ are bawn's own", name);
	return 0;
}

static int parse_variable(
	struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	int r = check_variable(text, e);

	return r < 0 ? r : grammar_keep(arena, text, ret, e);
}

/* Splits at the first '='. */
static int grammar_split(struct arena *arena, const char *text, const char *form,
	struct spec_item *ret, struct err *e)
{
	const char *equals = strchr(text, '=');

	if (!equals)
		return BAD(e, "'%.60s' must be %s", text, form);
	ret->var.name = arena_copy(arena, text, (size_t)(equals - text));
	ret->var.value = arena_copy(arena, equals + 1, strlen(equals + 1));
	return ret->var.name && ret->var.value ? 0 : NO_MEMORY(e);
}

static int parse_setting(
	struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	int r = grammar_split(arena, text, "NAME=VALUE", ret, e);

	if (r == 0)
		r = check_variable(ret->var.name, e);
	return r < 0 ? r : grammar_keep(arena, text, ret, e);
}

/* --- files --- */

static int parse_file(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	static const char *const places[] = { "/home/agent", "/etc", "/opt", "/run" };
	struct spec_item path = { 0 };
	int r = grammar_split(arena, text, "PATH=TEXT", ret, e);

	if (r == 0)
		r = parse_target(arena, ret->var.name, &path, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < COUNT_OF(places); i++) {
		if (!str_path_within(path.text, places[i]) || str_eq(path.text, places[i]))
			continue;
		ret->var.name = path.text;
		ret->text = arena_printf(arena, "%s=%s", path.text, ret->var.value);
		return ret->text ? 0 : NO_MEMORY(e);
	}
	return BAD(e, "file '%.200s': it must be below /home/agent, /etc, /opt or /run",
		ret->var.name);
}

static int parse_kept(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	static const char home[] = "/home/agent/";
	int r = parse_target(arena, text, ret, e);

	if (r < 0)
		return r;
	if (!str_starts(ret->text, home))
		return BAD(e,
			"'%.200s' is not below /home/agent: what is kept is of the private home",
			text);
	/* It is the name of a folder on the host, with + for /. */
	for (const char *p = ret->text + strlen(home); *p; p++)
		if (!str_is_letter(*p) && !str_is_digit(*p) && !strchr("._-/", *p))
			return BAD(e, "'%.200s' may have letters, digits and . _ - / only", text);
	return strlen(ret->text) < 200 ? 0 : BAD(e, "'%.60s…' is longer than 200 bytes", text);
}

/* --- images, overlays, system calls --- */

static int keep_prefixed(struct arena *arena, const char *prefix, const char *path,
	struct spec_item *ret, struct err *e)
{
	struct spec_item source = { 0 };
	int r = parse_source(arena, path, &source, e);

	if (r < 0)
		return r;
	ret->text = arena_printf(arena, "%s%s", prefix, source.text);
	return ret->text ? 0 : NO_MEMORY(e);
}

static int parse_image(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	static const char *const kinds[] = { "dir:", "oci:", "sif:" };

	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		if (str_starts(text, kinds[i]))
			return keep_prefixed(arena, kinds[i], text + strlen(kinds[i]), ret, e);
	if (strchr(text, '/'))
		return BAD(e,
			"image '%.200s' looks like a path: write dir:, oci: or sif: before it",
			text);
	return parse_name(arena, text, ret, e);
}

static int parse_overlay(
	struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	if (str_eq(text, "ephemeral"))
		return grammar_keep(arena, text, ret, e);
	return parse_source(arena, text, ret, e);
}

static int parse_syscalls(
	struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	if (str_eq(text, "default") || str_eq(text, "strict"))
		return grammar_keep(arena, text, ret, e);
	if (!str_ends(text, ".json"))
		return BAD(e,
			"'%.60s' is not a system-call profile: write default, strict, or the path "
			"of a JSON file",
			text);
	return parse_source(arena, text, ret, e);
}

/* --- ports --- */

static int parse_port(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	int64_t port = 0;
	int r = num_parse_int(text, 1, 65535, &port, e);

	if (r < 0) {
		err_prefix(e, "a port is a number from 1 to 65535");
		return r;
	}
	ret->port = (uint16_t)port;
	return grammar_keep(arena, text, ret, e);
}

/* --- all of them --- */

int spec_parse(enum spec_grammar grammar, struct arena *arena, const char *text,
	struct spec_item *ret, struct err *e)
{
	static int (*const parsers[])(
		struct arena *, const char *, struct spec_item *, struct err *) = {
		[SPEC_GRAMMAR_ANY] = parse_any,
		[SPEC_GRAMMAR_WORD] = parse_word,
		[SPEC_GRAMMAR_NAME] = parse_name,
		[SPEC_GRAMMAR_SOURCE] = parse_source,
		[SPEC_GRAMMAR_PROJECT] = parse_project,
		[SPEC_GRAMMAR_TRUSTED] = parse_trusted,
		[SPEC_GRAMMAR_TOOLCHAIN] = parse_toolchain,
		[SPEC_GRAMMAR_TARGET] = parse_target,
		[SPEC_GRAMMAR_AT] = parse_at,
		[SPEC_GRAMMAR_INSIDE] = parse_inside,
		[SPEC_GRAMMAR_PATTERN] = parse_pattern,
		[SPEC_GRAMMAR_BIND] = parse_bind,
		[SPEC_GRAMMAR_VARIABLE] = parse_variable,
		[SPEC_GRAMMAR_SETTING] = parse_setting,
		[SPEC_GRAMMAR_FILE] = parse_file,
		[SPEC_GRAMMAR_KEPT] = parse_kept,
		[SPEC_GRAMMAR_EGRESS] = spec_grammar_egress,
		[SPEC_GRAMMAR_ALLOW] = spec_grammar_allow,
		[SPEC_GRAMMAR_PUBLISH] = spec_grammar_publish,
		[SPEC_GRAMMAR_SECRET] = spec_grammar_secret,
		[SPEC_GRAMMAR_PORT] = parse_port,
		[SPEC_GRAMMAR_IMAGE] = parse_image,
		[SPEC_GRAMMAR_OVERLAY] = parse_overlay,
		[SPEC_GRAMMAR_SYSCALLS] = parse_syscalls,
		[SPEC_GRAMMAR_GUARANTEE] = parse_guarantee,
	};

	return parsers[grammar](arena, text, ret, e);
}
