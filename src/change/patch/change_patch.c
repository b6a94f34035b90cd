/*
 * change_patch - effects as a diff in git's form.
 *
 * Reads:    single files of the project, the layer and base/.
 * Must not: let a stranger's path end a line, or begin one that git would take for its own.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "change/apply/change_apply.h"
#include "change/patch/change_patch_inside.h"
#include "change/text/change_text.h"

bool change_is_chosen(const struct change_effect *x, const char *const *paths, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (change_effect_is_within(x, paths[i]))
			return true;
	return count == 0;
}

/* --- paths --- */

#define MOST_HUNKS ((size_t)32 << 20) /* of one file; what is more is told by its size */

static const char letters[] = "abtnvfr"; /* from \a to \r, as C has them */

static bool is_quoted_byte(unsigned char c)
{
	return c < ' ' || c >= 0x7f || c == '"' || c == '\\';
}

static void add_quoted_byte(struct buf *out, unsigned char c)
{
	if (!is_quoted_byte(c))
		buf_putc(out, (char)c);
	else if (c == '"' || c == '\\')
		buf_printf(out, "\\%c", c);
	else if (c >= '\a' && c <= '\r')
		buf_printf(out, "\\%c", letters[c - '\a']);
	else
		buf_printf(out, "\\%03o", c);
}

static void patch_quote(struct buf *out, const char *prefix, const char *path, bool quotes_blanks)
{
	bool is_quoted = quotes_blanks && strchr(path, ' ');

	for (const char *p = path; *p && !is_quoted; p++)
		is_quoted = is_quoted_byte((unsigned char)*p);
	if (is_quoted)
		buf_putc(out, '"');
	buf_puts(out, prefix);
	if (!is_quoted)
		buf_puts(out, path);
	for (const char *p = path; is_quoted && *p; p++)
		add_quoted_byte(out, (unsigned char)*p);
	if (is_quoted)
		buf_putc(out, '"');
}

void change_add_quoted(struct buf *out, const char *prefix, const char *path)
{
	patch_quote(out, prefix, path, false);
}

/* The same for headers of a patch, where patch(1) wants quotes for blanks too. */
static void patch_add_quoted_blanks(struct buf *out, const char *prefix, const char *path)
{
	patch_quote(out, prefix, path, true);
}

/* --- lines --- */

void change_line_add(struct change_lines *to, enum change_line kind, const char *bytes, size_t n)
{
	own(buf) struct buf line = { .max = n + 2 };

	if (!to->is_aside) {
		to->line(to->of, kind, bytes, n);
		return;
	}
	buf_puts(&line, "# ");
	buf_add(&line, bytes, n);
	to->line(to->of, kind, buf_text(&line), line.len);
}

void change_line_print(struct change_lines *to, enum change_line kind, const char *fmt, ...)
{
	own_free char *text = NULL;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		text = NULL;
	else
		change_line_add(to, kind, text, (size_t)n);
}

static enum change_line kind_of_hunk_line(char first)
{
	switch (first) {
	case '+':
		return CHANGE_LINE_ADDED;
	case '-':
		return CHANGE_LINE_REMOVED;
	case '@':
		return CHANGE_LINE_HUNK;
	default:
		return CHANGE_LINE_PLAIN;
	}
}

/* As comments they are lines like others. */
static void patch_show_hunks_of(struct change_lines *to, const char *bytes, size_t n)
{
	if (!to->is_aside) {
		to->hunks(to->of, bytes, n);
		return;
	}
	while (n) {
		const char *end = memchr(bytes, '\n', n);
		size_t line = end ? (size_t)(end - bytes) : n;

		change_line_add(to, kind_of_hunk_line(bytes[0]), bytes, line);
		line += end != NULL;
		bytes += line;
		n -= line;
	}
}

/* --- what git and patch have no word for --- */

#define SPECIAL_BITS 07000

void change_patch_note(struct change_lines *out, enum change_line kind, const char *before,
	const char *path, const char *after)
{
	own(buf) struct buf line = { .max = CHANGE_PATCH_LINE };

	buf_printf(&line, "%s%s", out->is_aside ? "" : "# ", before);
	change_add_quoted(&line, "", path);
	buf_puts(&line, after);
	change_line_add(out, kind, buf_text(&line), line.len);
}

static void patch_notes_note(
	const struct change_effect *x, struct change_lines *out, const char *after)
{
	change_patch_note(out, CHANGE_LINE_NOTE, "", x->path, after);
}

/* Modes that git has no word for. */
static void patch_notes_note_mode(const struct change_effect *x, struct change_lines *out)
{
	const struct change_state *old = &x->before, *new = &x->after;
	char text[64];

	if (new->type == CHANGE_FILE &&new->mode & SPECIAL_BITS) {
		snprintf(text, sizeof(text), " has mode %04o: never applied above 0777", new->mode);
		patch_notes_note(x, out, text);
	}
	if (old->type != new->type || old->mode == new->mode || new->type == CHANGE_LINK)
		return;
	if (new->type == CHANGE_FILE && (old->mode ^ new->mode) == 0111)
		return;
	snprintf(text, sizeof(text), " has mode %04o, was %04o", new->mode, old->mode);
	patch_notes_note(x, out, text);
}

static void note_attributes(const struct change_effect *x, struct change_lines *out)
{
	static const char *const words[] = {
		[CHANGE_ADDED] = " is new on ",
		[CHANGE_CHANGED] = " changed on ",
		[CHANGE_DELETED] = " is gone from ",
	};

	for (size_t i = 0; i < x->attribute_count; i++) {
		const struct change_attribute *a = &x->attributes[i];
		own(buf) struct buf line = { .max = CHANGE_PATCH_LINE };

		if (a->change == CHANGE_RENAMED)
			continue;
		buf_puts(&line, "# attribute ");
		change_add_quoted(&line, "", a->name);
		buf_puts(&line, words[a->change]);
		change_add_quoted(&line, "", x->path);
		change_line_add(out, CHANGE_LINE_NOTE, buf_text(&line), line.len);
	}
}

static void note_mark(const struct change_effect *x, struct change_lines *out)
{
	const char *path = x->path, *reason = change_mark_reason(path);
	char text[256];

	if (x->mark == CHANGE_PLAIN)
		return;
	if (x->mark == CHANGE_LOCK) {
		patch_notes_note(x, out, " is a lock of git's, and is never applied");
		return;
	}
	if (!reason && x->from)
		reason = change_mark_reason(x->from);
	if (!reason)
		reason = x->note;
	snprintf(text, sizeof(text), " (%.200s)", reason ? reason : "the operator protects it");
	change_patch_note(out, CHANGE_LINE_WARNING, "runs on the host: ", path, text);
}

/* All the lines that an effect needs beside its diff. */
static void patch_add_notes(const struct change_effect *x, struct change_lines *out)
{
	own(buf) struct buf text = { .max = CHANGE_PATCH_LINE };

	note_mark(x, out);
	if (x->has_moved)
		patch_notes_note(x, out, " changed on the host while the run lasted");
	if (x->note) {
		buf_puts(&text, ": ");
		buf_add_visible(&text, x->note, strlen(x->note));
		patch_notes_note(x, out, buf_text(&text));
	}
	patch_notes_note_mode(x, out);
	note_attributes(x, out);
}

/* One change of one thing; where its type changes, an effect is two: the old goes, the new comes.
 */
struct part {
	const struct change_patch *patch;
	const struct change_effect *effect;
	const struct change_state *old, *new; /* NULL: nothing */
	struct change_lines *out;
};

/* --- one part --- */

static void patch_note(const struct part *p, const char *before, const char *after)
{
	change_patch_note(p->out, CHANGE_LINE_NOTE, before, p->effect->path, after);
}

static void head(const struct part *p, const char *before, const char *prefix, const char *path)
{
	own(buf) struct buf line = { .max = CHANGE_PATCH_LINE };

	buf_puts(&line, before);
	patch_add_quoted_blanks(&line, prefix, path);
	change_line_add(p->out, CHANGE_LINE_HEAD, buf_text(&line), line.len);
}

static const char *old_path(const struct part *p)
{
	return p->effect->from ? p->effect->from : p->effect->path;
}

static void show_state(const struct part *p, const char *name, const struct change_state *s)
{
	char hex[SHA256_HEX_SIZE] = "";

	if (!s)
		return;
	if (s->has_hash)
		sha256_print(s->hash, hex);
	change_line_print(p->out, CHANGE_LINE_NOTE, "%s  %s %" PRIu64 " bytes%s%s",
		p->out->is_aside ? "" : "# ", name, s->size, s->has_hash ? ", sha256 " : "", hex);
}

/* What is not shown line by line, by size and hash. */
static void show_states(const struct part *p, const char *before, const char *after)
{
	patch_note(p, before, after);
	show_state(p, "before:", p->old);
	show_state(p, "after: ", p->new);
}

/* --- the header --- */

/* Git knows these modes and no others. */
static const char *git_mode(const struct change_state *s)
{
	if (s->type == CHANGE_LINK)
		return "120000";
	return s->mode & 0100 ? "100755" : "100644";
}

static void show_modes(const struct part *p)
{
	if (!p->old)
		change_line_print(p->out, CHANGE_LINE_HEAD, "new file mode %s", git_mode(p->new));
	else if (!p->new)
		change_line_print(
			p->out, CHANGE_LINE_HEAD, "deleted file mode %s", git_mode(p->old));
	/* Of a link that changes, patch(1) wants to be told that it is one. */
	else if (git_mode(p->old) != git_mode(p->new) || p->old->type == CHANGE_LINK) {
		change_line_print(p->out, CHANGE_LINE_HEAD, "old mode %s", git_mode(p->old));
		change_line_print(p->out, CHANGE_LINE_HEAD, "new mode %s", git_mode(p->new));
	}
}

static void show_header(const struct part *p)
{
	own(buf) struct buf line = { .max = 2 * CHANGE_PATCH_LINE };

	buf_puts(&line, "diff --git ");
	patch_add_quoted_blanks(&line, "a/", old_path(p));
	buf_putc(&line, ' ');
	patch_add_quoted_blanks(&line, "b/", p->effect->path);
	change_line_add(p->out, CHANGE_LINE_HEAD, buf_text(&line), line.len);
	show_modes(p);
	if (p->effect->from) {
		change_line_print(p->out, CHANGE_LINE_HEAD, "similarity index 100%%");
		head(p, "rename from ", "", p->effect->from);
		head(p, "rename to ", "", p->effect->path);
	}
}

/* A change without a line of text: of the mode, of the name, of a file with nothing in it. */
static void show_without_text(const struct part *p)
{
	if (p->old && p->new && !p->effect->from &&git_mode(p->old) == git_mode(p->new))
		return;
	show_header(p);
	/* patch(1) removes an empty file only if told so by git's name of nothing. */
	if (!p->new)
		change_line_print(p->out, CHANGE_LINE_HEAD, "index e69de29..0000000");
}

static void show_hunks(const struct part *p, const struct buf *hunks)
{
	show_header(p);
	if (p->old)
		head(p, "--- ", "a/", old_path(p));
	else
		change_line_print(p->out, CHANGE_LINE_HEAD, "--- /dev/null");
	if (p->new)
		head(p, "+++ ", "b/", p->effect->path);
	else
		change_line_print(p->out, CHANGE_LINE_HEAD, "+++ /dev/null");
	patch_show_hunks_of(p->out, buf_text(hunks), hunks->len);
}

/* --- what it was, what it is --- */

/* Is a side of it missing? Then it is said why, and nothing is shown. */
static bool tell_missing(const struct part *p, const struct change_side *s, const char *which)
{
	char why[160];

	switch (s->found) {
	case CHANGE_SIDE_HERE:
		return false;
	case CHANGE_SIDE_LARGE:
		show_states(p, "", " is too large to show");
		return true;
	case CHANGE_SIDE_CHANGED:
		snprintf(why, sizeof(why), " has changed %s since, and what it was is not kept",
			which);
		show_states(p, "", why);
		return true;
	case CHANGE_SIDE_FAILED:
		break;
	}
	snprintf(why, sizeof(why), " cannot be read %s: %s", which, strerror(s->failure));
	show_states(p, "", why);
	return true;
}

static void show_binary(const struct part *p)
{
	own(buf) struct buf line = { .max = 2 * CHANGE_PATCH_LINE };

	buf_puts(&line, p->out->is_aside ? "Binary files " : "# Binary files ");
	if (p->old)
		change_add_quoted(&line, "a/", old_path(p));
	else
		buf_puts(&line, "/dev/null");
	buf_puts(&line, " and ");
	if (p->new)
		change_add_quoted(&line, "b/", p->effect->path);
	else
		buf_puts(&line, "/dev/null");
	buf_puts(&line, " differ");
	change_line_add(p->out, CHANGE_LINE_NOTE, buf_text(&line), line.len);
	show_state(p, "before:", p->old);
	show_state(p, "after: ", p->new);
}

static void patch_compare(
	const struct part *p, const struct change_side *old, const struct change_side *new)
{
	struct change_text a = { old->bytes ? old->bytes : "", old->size },
			   b = { new->bytes ? new->bytes : "", new->size };
	own(buf) struct buf hunks = { .max = MOST_HUNKS };
	bool is_link = (p->old ? p->old : p->new)->type == CHANGE_LINK;
	int r;

	if (!is_link && (!change_is_text(&a) || !change_is_text(&b))) {
		if (a.size != b.size || memcmp(a.bytes, b.bytes, a.size) != 0)
			show_binary(p);
		else
			show_without_text(p);
		return;
	}
	r = change_text_diff(&a, &b, &hunks);
	if (r < 0 || hunks.failed)
		show_states(p, "", " differs by more than can be shown");
	else if (hunks.len)
		show_hunks(p, &hunks);
	else
		show_without_text(p);
}

/* Has it the same content on both sides, as far as the effects know? */
static bool patch_is_unchanged(const struct part *p)
{
	return p->effect->from ||
	       (p->old && p->new && p->old->has_hash && p->new->has_hash &&
		       p->old->size ==
			       p->new->size &&memcmp(p->old->hash, p->new->hash, SHA256_SIZE) == 0);
}

static void show_content(const struct part *p)
{
	const struct change_effect *x = p->effect;
	own(change_side) struct change_side old = { .bytes = NULL }, new = { .bytes = NULL };

	if (p->old)
		change_side_before(p->patch, x, &old);
	if (old.is_kept)
		patch_note(p, "", " has changed on the host since: this is against what it was");
	if (p->old && tell_missing(p, &old, "on the host"))
		return;
	if (p->new)
		change_side_after(p->patch, x, &new);
	if (p->new &&tell_missing(p, &new, "in the run's layer"))
		return;
	patch_compare(p, &old, &new);
}

static bool is_large(const struct change_state *s)
{
	return s && s->type == CHANGE_FILE && s->size > CHANGE_MAX_TEXT;
}

static void show_file(const struct part *p)
{
	const struct change_effect *x = p->effect;
	/* Of what was deleted, or was of another type, the effects do not know. */
	bool is_known = x->after.type == CHANGE_FILE &&
			(x->before.type == CHANGE_NOTHING || x->before.type == CHANGE_FILE);

	if (patch_is_unchanged(p))
		show_without_text(p);
	else if (is_large(p->old) || is_large(p->new))
		show_states(p, "", " is too large to show");
	else if (is_known && !x->is_text)
		show_binary(p);
	else
		show_content(p);
}

/* --- effects --- */

static void show_part(const struct part *p)
{
	const struct change_state *s = p->old ? p->old : p->new;

	switch (s ? s->type : CHANGE_NOTHING) {
	case CHANGE_FILE:
	case CHANGE_LINK:
		show_file(p);
		break;
	case CHANGE_FOLDER:
		if (!p->effect->is_implied && (!p->old || !p->new))
			patch_note(p, p->old ? "removed folder " : "new folder ", "");
		break;
	case CHANGE_SPECIAL:
		patch_note(p, "",
			p->new ? " is a device, a socket or a pipe, and is never applied"
			       : " was a device, a socket or a pipe");
		break;
	case CHANGE_NOTHING:
		break;
	}
}

static bool is_part(const char *part, size_t n, const char *name)
{
	return n == strlen(name) && strncasecmp(part, name, n) == 0;
}

/* Would git refuse a whole patch for this path? Nothing may be put into a .git by a patch. */
static bool is_refused(const char *path)
{
	for (const char *part = path; part;) {
		size_t n = strcspn(part, "/");

		if (is_part(part, n, ".git") || is_part(part, n, "git~1"))
			return true;
		part = part[n] ? part + n + 1 : NULL;
	}
	return false;
}

static void show_parts(struct part *p)
{
	const struct change_effect *x = p->effect;
	bool is_there = x->after.type != CHANGE_NOTHING,
	     was_there = x->before.type != CHANGE_NOTHING;

	if (is_there && was_there && x->before.type != x->after.type) {
		p->old = &x->before;
		show_part(p);
		p->old = NULL;
		p->new = &x->after;
	} else {
		p->old = was_there ? &x->before : NULL;
		p->new = is_there ? &x->after : NULL;
	}
	show_part(p);
}

void change_patch_show(struct change_patch *k, const struct change_effect *x)
{
	struct part p = { .patch = k, .effect = x, .out = &k->to };

	if (x->is_implied && !x->attribute_count && !x->note)
		return;
	patch_add_notes(x, &k->to);
	k->to.is_aside = is_refused(x->path) || (x->from && is_refused(x->from));
	show_parts(&p);
	k->to.is_aside = false;
}
