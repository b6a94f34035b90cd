#include "change/scan/change_marks.h"

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
	char text[CHANGE_MAX_PATH + 1];
};

/* False where the path is longer than any may be. */
static bool fold_path(const char *path, struct folded *ret)
{
	size_t len = 0;

	if (strnlen(path, CHANGE_MAX_PATH + 1) > CHANGE_MAX_PATH)
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

/* What is at a path, as far as a rule asks. */
enum kind {
	KIND_FILE,
	KIND_FOLDER,
	KIND_LINK, /* whatever a pattern says of a path in it is found where it leads */
};

/* Is the rest of a path what the pattern says? */
static bool marks_matches(const char *pattern, const char *path, enum kind kind)
{
	for (; *pattern; pattern++, path++) {
		if (kind == KIND_LINK && *pattern == '/' && *path == '\0')
			return true;
		if (str_eq(pattern, "/**"))
			return *path == '\0' || *path == '/';
		if (*pattern == '*') {
			for (; *path && *path != '/'; path++)
				if (marks_matches(pattern + 1, path, kind))
					return true;
			return marks_matches(pattern + 1, path, kind);
		}
		if (*pattern != *path)
			return false;
	}
	return *path == '\0';
}

static bool matches_one_of(
	const char *const *patterns, const char *path, bool is_last, enum kind kind)
{
	for (; *patterns; patterns++)
		if (**patterns == '*' ? is_last && marks_matches(*patterns, path, kind)
				      : **patterns == *path && marks_matches(*patterns, path, kind))
			return true;
	return false;
}

/* A part of a path, and what it is in. */
struct place {
	const char *path, *slash;
	bool is_in_git, is_below_git, is_in_modules;
};

static void marks_go_on(struct place *p)
{
	size_t n = p->slash ? (size_t)(p->slash - p->path) : 0;
	bool is_git = n == 4 && memcmp(p->path, ".git", 4) == 0;

	p->is_in_modules |= p->is_in_git && n == 7 && memcmp(p->path, "modules", 7) == 0;
	p->is_in_git = is_git || p->is_in_modules;
	p->is_below_git |= is_git;
	p->path = p->slash ? p->slash + 1 : NULL;
}

static bool applies(const struct change_rule *rule, const struct place *p, enum kind kind)
{
	if (kind == KIND_FOLDER && rule->is_never_folder)
		return false;
	if (rule->place == CHANGE_IN_GIT && !p->is_in_git)
		return false;
	if (rule->place == CHANGE_BELOW_GIT && !p->is_below_git)
		return false;
	return matches_one_of(rule->patterns, p->path, !p->slash, kind);
}

/* The gravest of some rules for a path; NULL where there is none. */
static const struct change_rule *rule_among(const struct change_rule *rules, size_t count,
	const char *path, enum kind kind, bool is_git)
{
	const struct change_rule *found = NULL;
	struct folded folded __attribute__((uninitialized));
	struct place p = { .path = folded.text, .is_in_git = is_git, .is_below_git = is_git };

	if (!fold_path(path, &folded))
		return &change_rules[0]; /* there is no such path: never applied */
	for (; p.path; marks_go_on(&p)) {
		p.slash = strchr(p.path, '/');
		for (size_t i = 0; i < count; i++)
			if ((!found || rules[i].mark > found->mark) && applies(&rules[i], &p, kind))
				found = &rules[i];
		if (!p.slash && kind == KIND_LINK && p.is_below_git &&
			(!found || change_rule_link.mark > found->mark))
			found = &change_rule_link;
	}
	return found;
}

static const struct change_rule *rule_of(const char *path, enum kind kind, bool is_git)
{
	return rule_among(change_rules, change_rule_count, path, kind, is_git);
}

bool change_is_head(const char *path)
{
	return rule_among(&change_rule_gone, 1, path, KIND_FILE, false);
}

/* Is it one of those, or in one; or, where it takes their place, is one of them in it? */
static bool marks_is_held(
	const char *path, bool is_in_place, const char *const *held, size_t held_count)
{
	struct folded folded __attribute__((uninitialized));
	struct folded other __attribute__((uninitialized));

	if (!held_count || !fold_path(path, &folded))
		return false;
	for (size_t i = 0; i < held_count; i++)
		if (fold_path(held[i], &other) &&
			(str_path_within(folded.text, other.text) ||
				(is_in_place && str_path_within(other.text, folded.text))))
			return true;
	return false;
}

enum change_mark change_mark_of(const char *path, const char *const *held, size_t held_count)
{
	const struct change_rule *rule = rule_of(path, KIND_FILE, false);
	enum change_mark mark = rule ? rule->mark : CHANGE_PLAIN;

	return mark < CHANGE_HELD && marks_is_held(path, false, held, held_count) ? CHANGE_HELD
										  : mark;
}

/* Neither side is anything but a folder: or it is not one. */
static enum kind marks_kind_of(enum change_type before, enum change_type now)
{
	if (now == CHANGE_LINK)
		return KIND_LINK;
	return (now == CHANGE_FOLDER || now == CHANGE_NOTHING) &&
			       (before == CHANGE_FOLDER || before == CHANGE_NOTHING)
		       ? KIND_FOLDER
		       : KIND_FILE;
}

enum change_mark change_mark_in_git(const char *path, enum change_type now)
{
	const struct change_rule *rule = rule_of(path, marks_kind_of(CHANGE_NOTHING, now), true);

	return rule ? rule->mark : CHANGE_PLAIN;
}

enum change_mark change_mark_effect(
	const struct change_effect *x, const char *const *held, size_t held_count)
{
	enum change_type now = x->after.type, before = x->before.type;
	/* What is protected, and may not even be there, is gone with its folder or behind a link.
	 */
	bool is_in_place = now == CHANGE_LINK || (before == CHANGE_FOLDER && now != CHANGE_FOLDER);
	const struct change_rule *rule = rule_of(x->path, marks_kind_of(before, now), false);
	enum change_mark mark = rule ? rule->mark : CHANGE_PLAIN;
	enum change_mark old = x->from ? change_mark_of(x->from, held, held_count) : CHANGE_PLAIN;
	const char *gone = x->change == CHANGE_DELETED ? x->path : x->from;

	if (old > mark)
		mark = old;
	if (mark < CHANGE_HELD && (marks_is_held(x->path, is_in_place, held, held_count) ||
					  (gone && change_is_head(gone))))
		mark = CHANGE_HELD;
	return mark;
}

const char *change_mark_reason(const char *path)
{
	const struct change_rule *rule = rule_of(path, KIND_FILE, false);

	return rule ? rule->reason : NULL;
}

const char *change_mark_link_reason(const char *path)
{
	const struct change_rule *rule = rule_of(path, KIND_LINK, false);

	return rule && !change_mark_reason(path) ? rule->reason : NULL;
}
