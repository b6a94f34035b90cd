/* The paths of a command line: from the current folder, as git has them, to the project's top. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/cli_kept.h"

/* Adds the parts of a path to an absolute one, by their spelling. */
static void add_parts(struct buf *path, const char *parts)
{
	while (*parts) {
		size_t n = strcspn(parts, "/");

		if (n == 2 && memcmp(parts, "..", 2) == 0) {
			while (path->len && path->data[--path->len] != '/')
				;
		} else if (n && !(n == 1 && *parts == '.')) {
			buf_putc(path, '/');
			buf_add(path, parts, n);
		}
		parts += n + (parts[n] == '/');
	}
}

/* Below the project's top, "" for the top itself; NULL where it is elsewhere, which is said. */
static const char *kept_paths_locate(struct cli_kept *k, const char *here, const char *word)
{
	own(buf) struct buf path = { .max = CHANGE_MAX_PATH };
	size_t top = str_eq(k->project, "/") ? 0 : strlen(k->project);

	if (word[0] != '/')
		add_parts(&path, here);
	add_parts(&path, word);
	/* The end may lie before what once was written. */
	buf_add(&path, "", 0);
	if (path.failed) {
		cli_complain("the path '%.200s' is too long", word);
		return NULL;
	}
	if (!str_path_within(path.len ? path.data : "/", k->project)) {
		cli_complain("'%s' is not in the project '%s' of %s %s", word, k->project, k->what,
			k->id);
		return NULL;
	}
	top += top < path.len;
	return arena_copy(&k->arena, path.data + top, path.len - top);
}

int cli_kept_take_paths(struct cli_kept *k, const char *here, size_t first)
{
	size_t count = k->cli->word_count - first;
	const char **paths = arena_array(&k->arena, count + 1, sizeof(*paths));

	for (size_t i = 0; paths && i < count; i++) {
		const char *word = k->cli->words[first + i];

		if (!word[0]) {
			cli_complain("an empty path names nothing");
			return CLI_MISUSE;
		}
		paths[i] = kept_paths_locate(k, here, word);
		if (!paths[i])
			return CLI_MISUSE;
	}
	if (!paths) {
		cli_complain("not enough memory for the paths");
		return CLI_FAILED;
	}
	k->paths = paths;
	k->path_count = count;
	/* The project's top is everything, and is like naming nothing. */
	for (size_t i = 0; i < count; i++)
		if (!paths[i][0])
			k->path_count = 0;
	return CLI_OK;
}

/* One of the effects is of this path, or below it. */
static bool has_effect(const struct cli_kept *k, const char *path)
{
	struct cli_kept one = { .paths = &path, .path_count = 1 };

	for (size_t i = 0; i < k->effects.count; i++)
		if (cli_kept_is_chosen(&one, &k->effects.items[i]))
			return true;
	return false;
}

int cli_kept_check_paths(const struct cli_kept *k)
{
	int status = CLI_OK;

	for (size_t i = 0; i < k->path_count; i++) {
		if (has_effect(k, k->paths[i]))
			continue;
		cli_complain("%s %s did not change '%s'", k->what, k->id, k->paths[i]);
		status = CLI_NO;
	}
	return status;
}

bool cli_kept_is_chosen(const struct cli_kept *k, const struct change_effect *x)
{
	for (size_t i = 0; i < k->path_count; i++)
		if (str_path_within(x->path, k->paths[i]) ||
			(x->from && str_path_within(x->from, k->paths[i])))
			return true;
	return k->path_count == 0;
}
