#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/hook/hook.h"
#include "base/count.h"
#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"

static bool are_absolute(const struct tool_paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		if (paths->at[i][0] != '/')
			return false;
	return true;
}

bool hook_wall_read(struct tool_cage *ret, const char *bytes, size_t n)
{
	return tool_cage_read(bytes, n, ret) && ret->project && ret->project[0] == '/' &&
	       ret->home && ret->home[0] == '/' && are_absolute(&ret->read) &&
	       are_absolute(&ret->write) && are_absolute(&ret->protect);
}

/* Returns the length of the nearest listed path that covers this one; 0: none does. */
static size_t wall_cover(const struct tool_paths *paths, const char *real)
{
	size_t longest = 0;

	for (size_t i = 0; i < paths->count; i++) {
		size_t n = strlen(paths->at[i]);

		if (n > longest && str_path_within(real, paths->at[i]))
			longest = n;
	}
	return longest;
}

/* True if a path in the cage is below this folder, so that it can be listed. */
static bool is_above(const struct tool_paths *paths, const char *real)
{
	for (size_t i = 0; i < paths->count; i++)
		if (str_path_within(paths->at[i], real))
			return true;
	return false;
}

/* Judges a real path: absolute, without symlinks, "." and "..". */
static enum hook_verdict hook_wall_judge(const struct tool_cage *w, const char *real, bool writes)
{
	size_t write = wall_cover(&w->write, real), protect = wall_cover(&w->protect, real);
	bool is_there = write || wall_cover(&w->read, real) || is_above(&w->read, real);

	if (!is_there)
		return HOOK_OUTSIDE;
	if (!writes || write > protect)
		return HOOK_FINE;
	return protect ? HOOK_PROTECTED : HOOK_READ_ONLY;
}

/* --- hook_answer --- */

/* --- resolve --- */

#define MOST_LINKS 40 /* as many as the kernel follows */

/* The rest of the path, stored at the end of a buffer that is large enough. */
struct rest {
	char room[2 * HOOK_PATH_SIZE];
	size_t at;
};

/* Puts a text, and a slash behind it, before what is there. */
static bool put_before(struct rest *rest, const char *text, size_t n)
{
	if (n + 1 > rest->at)
		return false;
	rest->room[--rest->at] = '/';
	rest->at -= n;
	memcpy(rest->room + rest->at, text, n);
	return true;
}

/* The next name, cut off in place; NULL: there is none. */
static char *next_name(struct rest *rest)
{
	char *name;

	while (rest->at < sizeof(rest->room) && rest->room[rest->at] == '/')
		rest->at++;
	if (rest->at == sizeof(rest->room))
		return NULL;
	name = rest->room + rest->at;
	rest->at = (size_t)((char *)memchr(name, '/', sizeof(rest->room) - rest->at) - rest->room);
	rest->room[rest->at++] = '\0';
	return name;
}

static void go_up(char *path, size_t *len)
{
	while (*len && path[--*len] != '/')
		continue;
	path[*len] = '\0';
}

/*
 * What a path leads to, links followed; what is missing is taken as it is written. False: it is too
 * long, or leads in a circle.
 */
static bool hook_resolve(const struct hook_use *use, hook_read_link *read_link, void *of,
	char ret[static HOOK_PATH_SIZE])
{
	struct rest rest = { .at = sizeof(rest.room) };
	char target[HOOK_PATH_SIZE];
	const char *name;
	size_t len = 0;
	int links = 0;
	bool is_there = true;

	ret[0] = '\0';
	if (!put_before(&rest, use->path, strlen(use->path)))
		return false;
	if (use->path[0] != '/' && !put_before(&rest, use->folder, strlen(use->folder)))
		return false;
	while ((name = next_name(&rest))) {
		size_t n = strlen(name);
		long size;

		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0) {
			go_up(ret, &len);
			is_there = true; /* and if it is not, that is found out again */
			continue;
		}
		if (len + n + 2 > HOOK_PATH_SIZE)
			return false;
		ret[len] = '/';
		memcpy(ret + len + 1, name, n + 1);
		size = is_there ? read_link(of, ret, target, sizeof(target)) : -ENOENT;
		is_there = is_there && (size >= 0 || size == -EINVAL);
		if (size < 0 || (size_t)size >= sizeof(target)) {
			len += n + 1;
			continue;
		}
		if (target[0] == '/')
			len = 0;
		ret[len] = '\0';
		if (++links > MOST_LINKS || !put_before(&rest, target, (size_t)size))
			return false;
	}
	if (len == 0)
		memcpy(ret, "/", 2);
	return true;
}

/* True for folders in which each process sees its own files. */
static bool is_ones_own(const char *path)
{
	return str_starts(path, "/dev/fd/") || str_starts(path, "/dev/std") ||
	       str_starts(path, "/proc/self/") || str_starts(path, "/proc/thread-self/");
}

static bool answer_is_known(const struct hook_answer *a, const struct hook_denial *d)
{
	for (size_t i = 0; i < a->count; i++)
		if (str_eq(a->denials[i].real, d->real) &&
			a->denials[i].use->writes == d->use->writes)
			return true;
	return false;
}

void hook_judge(const struct hook_call *c, const struct tool_cage *w, hook_read_link *read_link,
	void *of, struct hook_answer *ret)
{
	ret->count = ret->total = 0;
	for (size_t i = 0; i < c->count; i++) {
		struct hook_denial d = { .use = &c->uses[i] };

		if (is_ones_own(d.use->path) || !hook_resolve(d.use, read_link, of, d.real))
			continue;
		d.verdict = hook_wall_judge(w, d.real, d.use->writes);
		if (d.verdict == HOOK_FINE || answer_is_known(ret, &d))
			continue;
		ret->total++;
		if (ret->count < HOOK_MAX_DENIALS)
			ret->denials[ret->count++] = d;
	}
}

/* --- words --- */

#define MOST_SHOWN 200 /* bytes of a path in a sentence */
#define MOST_NAMED 8   /* places of the cage */

static void answer_add_path(struct buf *out, const char *path)
{
	size_t n = strlen(path);

	buf_add_visible(out, path, n < MOST_SHOWN ? n : MOST_SHOWN);
	if (n > MOST_SHOWN)
		buf_puts(out, "…");
}

/* Places where nobody works. */
static bool answer_is_of_system(const char *path)
{
	static const char *const system[] = { "/dev", "/mnt", "/opt", "/proc", "/run", "/srv",
		"/var" };

	for (size_t i = 0; i < COUNT_OF(system); i++)
		if (str_eq(path, system[i]) || (i == 0 && str_starts(path, "/dev/")))
			return true;
	return false;
}

static bool answer_holds(const struct tool_paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++)
		if (str_path_within(path, paths->at[i]))
			return true;
	return false;
}

/* Returns the folder to suggest: the project or the home, if the list has it; otherwise /tmp. */
static const char *best_place(const struct tool_cage *w, const struct tool_paths *paths)
{
	return answer_holds(paths, w->project) ? w->project
	       : answer_holds(paths, w->home)  ? w->home
					       : "/tmp";
}

/* The best first, then the others: "/work, /home/agent, /tmp". */
static void add_places(const struct tool_cage *w, const struct tool_paths *paths, struct buf *out)
{
	const char *best = best_place(w, paths);
	size_t named = 1;

	answer_add_path(out, best);
	for (size_t i = 0; i < paths->count && named < MOST_NAMED; i++) {
		if (answer_is_of_system(paths->at[i]) || str_path_within(paths->at[i], best))
			continue;
		buf_puts(out, ", ");
		answer_add_path(out, paths->at[i]);
		named++;
	}
}

static void answer_print_reason(
	const struct tool_cage *w, const struct hook_answer *a, struct buf *out)
{
	const struct hook_denial *d = &a->denials[0];
	const struct tool_paths *paths = d->use->writes ? &w->write : &w->read;

	buf_printf(out, "bawn: cannot %s ", d->use->writes ? "write" : "read");
	answer_add_path(out, d->use->path);
	buf_puts(out, ": it ");
	if (!str_eq(d->use->path, d->real)) {
		buf_puts(out, "leads to ");
		answer_add_path(out, d->real);
		buf_puts(out, ", which ");
	}
	if (d->verdict == HOOK_OUTSIDE) {
		buf_puts(out, "is outside of this cage, which has ");
		add_places(w, &w->read, out);
		buf_puts(out, ". Work with files below ");
	} else if (d->verdict == HOOK_READ_ONLY) {
		buf_puts(out, "is read-only in this cage; what can be written is ");
		add_places(w, &w->write, out);
		buf_puts(out, ". Work with files below ");
	} else {
		buf_puts(out, "is protected in this cage and stays as it is. Leave it, and work "
			      "with other files below ");
	}
	answer_add_path(out, best_place(w, paths));
	buf_puts(out, ".");
	if (a->total > 1)
		buf_printf(out, " (%zu more of this call cannot be used either.)", a->total - 1);
}

void hook_print_answer(const struct hook_call *c, const struct tool_cage *w,
	const struct hook_answer *a, struct buf *out)
{
	own(buf) struct buf reason = { .max = 16384 };
	struct json j;

	if (!a->count)
		return;
	answer_print_reason(w, a, &reason);
	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	if (c->agent == WIRE_GEMINI) {
		json_text(&j, "decision", "deny");
		json_text(&j, "reason", buf_text(&reason));
	} else {
		json_open_map(&j, "hookSpecificOutput");
		json_text(&j, "hookEventName", "PreToolUse");
		json_text(&j, "permissionDecision", "deny");
		json_text(&j, "permissionDecisionReason", buf_text(&reason));
		json_close_map(&j);
	}
	json_close_map(&j);
	buf_putc(out, '\n');
}

/* --- for the keeper --- */

void hook_tell(const struct hook_call *c, const struct hook_denial *d, struct wire_report *ret)
{
	own(buf) struct buf path = { .max = 8 * HOOK_PATH_SIZE };
	size_t n;

	*ret = (struct wire_report){
		.kind = d->use->writes ? WIRE_WRITE_BLOCKED : WIRE_READ_BLOCKED, .agent = c->agent
	};
	buf_add_visible(&path, d->real, strlen(d->real));
	n = path.len < sizeof(ret->path) ? path.len : sizeof(ret->path) - 1;
	/* Not in the middle of a character. */
	while (n && path.len > n && (path.data[n] & 0xc0) == 0x80)
		n--;
	memcpy(ret->path, buf_text(&path), n);
	snprintf(ret->tool, sizeof(ret->tool), "%s", c->tool);
}
