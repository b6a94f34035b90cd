#include "work/work_marks.h"

#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

/*
 * Names are compared as the most forgiving file systems do: in lower case, without characters that
 * show nothing, without what Windows drops at the end. A name taken for another one costs a
 * question; one that is missed runs.
 */

/* Letters of other alphabets that file systems take for ASCII ones. */
static char fold(uint32_t c)
{
	return c == 0x17f ? 's' : c == 0x212a ? 'k' : '\0';
}

static size_t fold_name(const char *name, size_t n, char *ret)
{
	size_t len = 0;

	for (size_t i = 0; i < n;) {
		uint32_t c = 0;
		size_t width = utf8_decode(name + i, n - i, &c);

		if (name[i] == ':' && len)
			break; /* what follows names a stream of the same file */
		if (width <= 1 && (width == 0 || !utf8_is_hidden(c)))
			ret[len++] = str_lower(name[i]);
		else if (fold(c))
			ret[len++] = fold(c);
		else if (!utf8_is_hidden(c)) {
			memcpy(ret + len, name + i, width);
			len += width;
		}
		i += width ? width : 1;
	}
	while (len > 1 && (ret[len - 1] == ' ' || ret[len - 1] == '.'))
		len--;
	/* The short name that Windows gives to .git. */
	if (len == 5 && memcmp(ret, "git~", 4) == 0 && str_is_digit(ret[4])) {
		memcpy(ret, ".git", 4);
		len = 4;
	}
	return len;
}

struct folded {
	char text[WORK_MAX_PATH + 1];
};

/* False where the path is longer than any may be. */
static bool fold_path(const char *path, struct folded *ret)
{
	size_t len = 0;

	if (strnlen(path, WORK_MAX_PATH + 1) > WORK_MAX_PATH)
		return false;
	for (;;) {
		const char *end = strchrnul(path, '/');

		len += fold_name(path, (size_t)(end - path), ret->text + len);
		if (!*end)
			break;
		ret->text[len++] = '/';
		path = end + 1;
	}
	ret->text[len] = '\0';
	return true;
}

/* Is the rest of a path what the pattern says? */
static bool matches(const char *pattern, const char *path)
{
	for (; *pattern; pattern++, path++) {
		if (str_eq(pattern, "/**"))
			return *path == '\0' || *path == '/';
		if (*pattern == '*') {
			for (; *path && *path != '/'; path++)
				if (matches(pattern + 1, path))
					return true;
			return matches(pattern + 1, path);
		}
		if (*pattern != *path)
			return false;
	}
	return *path == '\0';
}

static bool matches_one_of(const char *const *patterns, const char *path, bool is_last)
{
	for (; *patterns; patterns++)
		if (**patterns == '*' ? is_last && matches(*patterns, path)
				      : **patterns == *path && matches(*patterns, path))
			return true;
	return false;
}

/* A part of a path, and what it is in. */
struct place {
	const char *path, *slash;
	bool is_in_git, is_below_git, is_in_modules;
};

static void go_on(struct place *p)
{
	size_t n = p->slash ? (size_t)(p->slash - p->path) : 0;
	bool is_git = n == 4 && memcmp(p->path, ".git", 4) == 0;

	p->is_in_modules |= p->is_in_git && n == 7 && memcmp(p->path, "modules", 7) == 0;
	p->is_in_git = is_git || p->is_in_modules;
	p->is_below_git |= is_git;
	p->path = p->slash ? p->slash + 1 : NULL;
}

static bool applies(const struct work_rule *rule, const struct place *p, bool is_folder)
{
	if (is_folder && rule->is_never_folder)
		return false;
	if (rule->place == WORK_IN_GIT && !p->is_in_git)
		return false;
	if (rule->place == WORK_BELOW_GIT && !p->is_below_git)
		return false;
	return matches_one_of(rule->patterns, p->path, !p->slash);
}

/* The gravest of some rules for a path; NULL where there is none. */
static const struct work_rule *rule_among(
	const struct work_rule *rules, size_t count, const char *path, bool is_folder, bool is_git)
{
	const struct work_rule *found = NULL;
	struct folded folded __attribute__((uninitialized));
	struct place p = { .path = folded.text, .is_in_git = is_git, .is_below_git = is_git };

	if (!fold_path(path, &folded))
		return &work_rules[0]; /* there is no such path: never applied */
	for (; p.path; go_on(&p)) {
		p.slash = strchr(p.path, '/');
		for (size_t i = 0; i < count; i++)
			if ((!found || rules[i].mark > found->mark) &&
				applies(&rules[i], &p, is_folder))
				found = &rules[i];
	}
	return found;
}

static const struct work_rule *rule_of(const char *path, bool is_folder, bool is_git)
{
	return rule_among(work_rules, work_rule_count, path, is_folder, is_git);
}

bool work_is_head(const char *path)
{
	return rule_among(&work_rule_gone, 1, path, false, false);
}

static bool is_held(const char *path, const char *const *held, size_t held_count)
{
	struct folded folded __attribute__((uninitialized));
	struct folded other __attribute__((uninitialized));

	if (!held_count || !fold_path(path, &folded))
		return false;
	for (size_t i = 0; i < held_count; i++)
		if (fold_path(held[i], &other) && str_path_within(folded.text, other.text))
			return true;
	return false;
}

static enum work_mark mark_of(
	const char *path, bool is_folder, const char *const *held, size_t held_count)
{
	const struct work_rule *rule = rule_of(path, is_folder, false);
	enum work_mark mark = rule ? rule->mark : WORK_PLAIN;

	return mark < WORK_HELD && is_held(path, held, held_count) ? WORK_HELD : mark;
}

enum work_mark work_mark_of(const char *path, const char *const *held, size_t held_count)
{
	return mark_of(path, false, held, held_count);
}

enum work_mark work_mark_in_git(const char *path, bool is_folder)
{
	const struct work_rule *rule = rule_of(path, is_folder, true);

	return rule ? rule->mark : WORK_PLAIN;
}

enum work_mark work_mark_effect(
	const struct work_effect *x, const char *const *held, size_t held_count)
{
	enum work_type now = x->after.type, before = x->before.type;
	/* Neither side is anything but a folder. */
	bool is_folder = (now == WORK_FOLDER || now == WORK_NOTHING) &&
			 (before == WORK_FOLDER || before == WORK_NOTHING);
	enum work_mark mark = mark_of(x->path, is_folder, held, held_count);
	enum work_mark old = x->from ? mark_of(x->from, false, held, held_count) : WORK_PLAIN;
	const char *gone = x->change == WORK_DELETED ? x->path : x->from;

	if (old > mark)
		mark = old;
	return mark < WORK_HELD && gone && work_is_head(gone) ? WORK_HELD : mark;
}

const char *work_mark_reason(const char *path)
{
	const struct work_rule *rule = rule_of(path, false, false);

	return rule ? rule->reason : NULL;
}
