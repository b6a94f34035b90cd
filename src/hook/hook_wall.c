#include <string.h>

#include "base/json_fields.h"
#include "base/str.h"
#include "hook/hook.h"

#define MAX_PATHS 4096

/* The reader first, as json_read_fields wants it. */
struct wall_reader {
	struct json_reader json;
	struct arena *arena;
};

static bool read_path(void *reader, void *into)
{
	struct wall_reader *r = reader;
	const char *text, **path = into;

	if (!json_read_text(&r->json, &text) || text[0] != '/')
		return false;
	*path = arena_copy(r->arena, text, strlen(text));
	return *path != NULL;
}

static bool read_paths(void *reader, void *into)
{
	struct wall_reader *r = reader;
	struct hook_paths *paths = into;
	const char *all[MAX_PATHS];

	json_enter_list(&r->json);
	while (json_next_item(&r->json)) {
		if (paths->count == MAX_PATHS || !read_path(r, &all[paths->count]))
			return false;
		paths->count++;
	}
	paths->at = arena_array(r->arena, paths->count + 1, sizeof(*paths->at));
	if (paths->at)
		memcpy(paths->at, all, paths->count * sizeof(*all));
	return paths->at && !r->json.wrong;
}

bool hook_wall_read(struct hook_wall *ret, const char *bytes, size_t n)
{
	static const struct json_field fields[] = {
		{ "project", read_path, offsetof(struct hook_wall, project), true },
		{ "home", read_path, offsetof(struct hook_wall, home), true },
		{ "read", read_paths, offsetof(struct hook_wall, read), true },
		{ "write", read_paths, offsetof(struct hook_wall, write), true },
		{ "protect", read_paths, offsetof(struct hook_wall, protect), true },
	};
	struct wall_reader r = { .arena = &ret->arena };
	bool is_good;

	*ret = (struct hook_wall){ 0 };
	arena_init(&ret->arena, 8 * HOOK_MAX_INPUT);
	json_read_init(&r.json, bytes, n, HOOK_PATH_SIZE);
	r.json.takes_bytes = true;
	is_good = JSON_READ_FIELDS(&r, fields, ret) && json_read_end(&r.json);
	json_reader_done(&r.json);
	return is_good;
}

void hook_wall_done(struct hook_wall *w)
{
	arena_done(&w->arena);
}

/* How long the nearest path is that covers this one; 0: none does. */
static size_t cover(const struct hook_paths *paths, const char *real)
{
	size_t longest = 0;

	for (size_t i = 0; i < paths->count; i++) {
		size_t n = strlen(paths->at[i]);

		if (n > longest && str_path_within(real, paths->at[i]))
			longest = n;
	}
	return longest;
}

/* Is it on the way to something that is there? Then its names can be listed. */
static bool is_above(const struct hook_paths *paths, const char *real)
{
	for (size_t i = 0; i < paths->count; i++)
		if (str_path_within(paths->at[i], real))
			return true;
	return false;
}

enum hook_verdict hook_wall_judge(const struct hook_wall *w, const char *real, bool writes)
{
	size_t write = cover(&w->write, real), protect = cover(&w->protect, real);
	bool is_there = write || cover(&w->read, real) || is_above(&w->read, real);

	if (!is_there)
		return HOOK_OUTSIDE;
	if (!writes || write > protect)
		return HOOK_FINE;
	return protect ? HOOK_PROTECTED : HOOK_READ_ONLY;
}
