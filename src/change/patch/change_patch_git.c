/* What happened in a repository's own folder, in a few lines instead of binary noise. */
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "change/patch/change_patch_inside.h"

#define MOST_NAMES 6  /* of other files */
#define MOST_VALUE 40 /* bytes of what a ref is, where it is no hash */
#define SHORT_HASH 10

enum kind {
	GIT_OTHER,
	GIT_OBJECT,
	GIT_REF,
	GIT_LOG,
};

/* Where in a path the inside of a repository begins; NULL: it is in none. */
static const char *find_inside(const char *path)
{
	for (const char *part = path; part;) {
		const char *slash = strchr(part, '/');
		size_t n = slash ? (size_t)(slash - part) : strlen(part);

		if (n == 4 && memcmp(part, ".git", 4) == 0)
			return slash ? slash + 1 : part + n;
		part = slash ? slash + 1 : NULL;
	}
	return NULL;
}

/* The first folder that has a meaning decides: logs/refs/heads/x is a log. */
static enum kind git_kind_of(const char *inside)
{
	static const struct {
		const char *name;
		enum kind kind;
	} folders[] = { { "objects", GIT_OBJECT }, { "refs", GIT_REF }, { "logs", GIT_LOG } };

	if (str_eq(inside, "HEAD"))
		return GIT_REF;
	for (const char *part = inside; part;) {
		const char *slash = strchr(part, '/');
		size_t n = slash ? (size_t)(slash - part) : strlen(part);

		for (size_t i = 0; i < COUNT_OF(folders); i++)
			if (strlen(folders[i].name) == n && memcmp(part, folders[i].name, n) == 0)
				return folders[i].kind;
		part = slash ? slash + 1 : NULL;
	}
	return GIT_OTHER;
}

bool change_is_bookkeeping(const struct change_effect *x)
{
	const char *inside = find_inside(x->path);

	if (!inside || (x->mark != CHANGE_PLAIN && x->mark != CHANGE_LOCK))
		return false;
	/* A file named .git is a link to a repository, which one wants to see. */
	return *inside || x->before.type == CHANGE_FOLDER || x->after.type == CHANGE_FOLDER;
}

size_t change_bookkeeping_folder(const struct change_effect *x)
{
	const char *inside = find_inside(x->path);
	size_t n = (size_t)(inside - x->path);

	return n - (x->path[n - 1] == '/');
}

size_t change_bookkeeping_count(const struct change_effects *x, size_t i)
{
	size_t n = change_bookkeeping_folder(&x->items[i]), end = i;

	while (end < x->count && strncmp(x->items[end].path, x->items[i].path, n) == 0 &&
		(x->items[end].path[n] == '/' || x->items[end].path[n] == '\0'))
		end++;
	return end - i;
}

/* --- refs --- */

static void git_add_value(struct buf *out, const struct change_side *s)
{
	size_t n = s->size, digits = 0;

	if (s->found != CHANGE_SIDE_HERE) {
		buf_puts(out, "(not known)");
		return;
	}
	while (n && (s->bytes[n - 1] == '\n'))
		n--;
	while (digits < n && (str_is_digit(s->bytes[digits]) ||
				     (s->bytes[digits] >= 'a' && s->bytes[digits] <= 'f')))
		digits++;
	if (digits == n && n >= 40)
		n = SHORT_HASH;
	buf_add_visible(out, s->bytes, n < MOST_VALUE ? n : MOST_VALUE);
}

static void show_ref(struct change_patch *k, const struct change_effect *x)
{
	own(change_side) struct change_side old = { .bytes = NULL }, new = { .bytes = NULL };
	own(buf) struct buf text = { .max = 1024 };

	buf_putc(&text, ' ');
	if (x->before.type == CHANGE_FILE)
		change_side_before(k, x, &old), git_add_value(&text, &old);
	else
		buf_puts(&text, "(new)");
	buf_puts(&text, "..");
	if (x->after.type == CHANGE_FILE)
		change_side_after(k, x, &new), git_add_value(&text, &new);
	else
		buf_puts(&text, "(gone)");
	change_patch_note(&k->to, CHANGE_LINE_NOTE, "git: ", x->path, buf_text(&text));
}

/* --- the rest --- */

struct rest {
	size_t objects[CHANGE_RENAMED + 1];
	size_t logs, others;
	struct buf names;
};

static void git_count(struct rest *r, const struct change_effect *x)
{
	const char *inside = find_inside(x->path);
	bool is_folder =
		(x->after.type == CHANGE_NOTHING ? &x->before : &x->after)->type == CHANGE_FOLDER;

	if (is_folder)
		return;
	switch (git_kind_of(inside)) {
	case GIT_OBJECT:
		r->objects[x->change]++;
		break;
	case GIT_LOG:
		r->logs++;
		break;
	case GIT_OTHER:
		if (r->others++ < MOST_NAMES) {
			buf_puts(&r->names, r->names.len ? ", " : "");
			change_add_quoted(&r->names, "", inside);
		}
		break;
	case GIT_REF:
		break;
	}
}

static void show_count(struct change_lines *out, const char *folder, const char *what, size_t n)
{
	char text[128];

	snprintf(text, sizeof(text), ": %s: %zu", what, n);
	if (n)
		change_patch_note(out, CHANGE_LINE_NOTE, "git: ", folder, text);
}

static void git_show_rest(const struct rest *r, const char *folder, struct change_lines *out)
{
	show_count(out, folder, "objects added",
		r->objects[CHANGE_ADDED] + r->objects[CHANGE_RENAMED]);
	show_count(out, folder, "objects changed", r->objects[CHANGE_CHANGED]);
	show_count(out, folder, "objects deleted", r->objects[CHANGE_DELETED]);
	show_count(out, folder, "logs of refs", r->logs);
	if (r->others) {
		own(buf) struct buf line = { .max = r->names.max + 64 };

		buf_printf(&line, ": %s", buf_text(&r->names));
		if (r->others > MOST_NAMES)
			buf_printf(&line, " and %zu others", r->others - MOST_NAMES);
		change_patch_note(out, CHANGE_LINE_NOTE, "git: ", folder, buf_text(&line));
	}
}

size_t change_patch_bookkeeping(struct change_patch *k, size_t i)
{
	size_t n = change_bookkeeping_count(k->effects, i);
	own(buf) struct buf folder = { .max = CHANGE_MAX_PATH };
	struct rest rest = { .names.max = (MOST_NAMES + 1) * 4 * CHANGE_MAX_PATH };

	for (size_t at = i; at < i + n; at++) {
		const struct change_effect *x = &k->effects->items[at];
		bool is_file = x->before.type == CHANGE_FILE || x->after.type == CHANGE_FILE;

		if (!change_is_bookkeeping(x))
			continue;
		if (is_file && git_kind_of(find_inside(x->path)) == GIT_REF)
			show_ref(k, x);
		else
			git_count(&rest, x);
	}
	buf_add(&folder, k->effects->items[i].path,
		change_bookkeeping_folder(&k->effects->items[i]));
	git_show_rest(&rest, buf_text(&folder), &k->to);
	buf_done(&rest.names);
	return n;
}
