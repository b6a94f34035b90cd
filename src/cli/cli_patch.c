#include "cli/cli_patch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "change/text/change_text.h"
#include "cli/cli_side.h"

#define MOST_HUNKS ((size_t)32 << 20) /* of one file; what is more is told by its size */

/* One change of one thing; where its type changes, an effect is two: the old goes, the new comes.
 */
struct part {
	const struct cli_kept *kept;
	const struct change_effect *effect;
	const struct change_state *old, *new; /* NULL: nothing */
	struct cli_show *out;
};

/* --- lines --- */

static void patch_note(const struct part *p, const char *before, const char *after)
{
	cli_patch_note(p->out, CLI_INK_NOTE, before, p->effect->path, after);
}

static void head(const struct part *p, const char *before, const char *prefix, const char *path)
{
	own(buf) struct buf line = { .max = CLI_PATCH_LINE };

	buf_puts(&line, before);
	cli_add_quoted_blanks(&line, prefix, path);
	cli_show_line(p->out, CLI_INK_HEAD, buf_text(&line), line.len);
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
	cli_show_text(p->out, CLI_INK_NOTE, "%s  %s %" PRIu64 " bytes%s%s",
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
		cli_show_text(p->out, CLI_INK_HEAD, "new file mode %s", git_mode(p->new));
	else if (!p->new)
		cli_show_text(p->out, CLI_INK_HEAD, "deleted file mode %s", git_mode(p->old));
	/* Of a link that changes, patch(1) wants to be told that it is one. */
	else if (git_mode(p->old) != git_mode(p->new) || p->old->type == CHANGE_LINK) {
		cli_show_text(p->out, CLI_INK_HEAD, "old mode %s", git_mode(p->old));
		cli_show_text(p->out, CLI_INK_HEAD, "new mode %s", git_mode(p->new));
	}
}

static void show_header(const struct part *p)
{
	own(buf) struct buf line = { .max = 2 * CLI_PATCH_LINE };

	buf_puts(&line, "diff --git ");
	cli_add_quoted_blanks(&line, "a/", old_path(p));
	buf_putc(&line, ' ');
	cli_add_quoted_blanks(&line, "b/", p->effect->path);
	cli_show_line(p->out, CLI_INK_HEAD, buf_text(&line), line.len);
	show_modes(p);
	if (p->effect->from) {
		cli_show_text(p->out, CLI_INK_HEAD, "similarity index 100%%");
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
		cli_show_text(p->out, CLI_INK_HEAD, "index e69de29..0000000");
}

static void show_hunks(const struct part *p, const struct buf *hunks)
{
	show_header(p);
	if (p->old)
		head(p, "--- ", "a/", old_path(p));
	else
		cli_show_text(p->out, CLI_INK_HEAD, "--- /dev/null");
	if (p->new)
		head(p, "+++ ", "b/", p->effect->path);
	else
		cli_show_text(p->out, CLI_INK_HEAD, "+++ /dev/null");
	cli_show_hunks(p->out, buf_text(hunks), hunks->len);
}

/* --- what it was, what it is --- */

/* Is a side of it missing? Then it is said why, and nothing is shown. */
static bool tell_missing(const struct part *p, const struct cli_side *s, const char *which)
{
	char why[160];

	switch (s->found) {
	case CLI_SIDE_HERE:
		return false;
	case CLI_SIDE_LARGE:
		show_states(p, "", " is too large to show");
		return true;
	case CLI_SIDE_CHANGED:
		snprintf(why, sizeof(why), " has changed %s since, and what it was is not kept",
			which);
		show_states(p, "", why);
		return true;
	case CLI_SIDE_FAILED:
		break;
	}
	snprintf(why, sizeof(why), " cannot be read %s: %s", which, strerror(s->failure));
	show_states(p, "", why);
	return true;
}

static void show_binary(const struct part *p)
{
	own(buf) struct buf line = { .max = 2 * CLI_PATCH_LINE };

	buf_puts(&line, p->out->is_aside ? "Binary files " : "# Binary files ");
	if (p->old)
		cli_add_quoted(&line, "a/", old_path(p));
	else
		buf_puts(&line, "/dev/null");
	buf_puts(&line, " and ");
	if (p->new)
		cli_add_quoted(&line, "b/", p->effect->path);
	else
		buf_puts(&line, "/dev/null");
	buf_puts(&line, " differ");
	cli_show_line(p->out, CLI_INK_NOTE, buf_text(&line), line.len);
	show_state(p, "before:", p->old);
	show_state(p, "after: ", p->new);
}

static void patch_compare(
	const struct part *p, const struct cli_side *old, const struct cli_side *new)
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
	own(cli_side) struct cli_side old = { .bytes = NULL }, new = { .bytes = NULL };

	if (p->old)
		cli_side_before(p->kept, x, &old);
	if (old.is_kept)
		patch_note(p, "", " has changed on the host since: this is against what it was");
	if (p->old && tell_missing(p, &old, "on the host"))
		return;
	if (p->new)
		cli_side_after(p->kept, x, &new);
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

void cli_patch_show(const struct cli_kept *k, const struct change_effect *x, struct cli_show *out)
{
	struct part p = { .kept = k, .effect = x, .out = out };

	if (x->is_implied && !x->attribute_count && !x->note)
		return;
	cli_patch_notes(x, out);
	out->is_aside = is_refused(x->path) || (x->from && is_refused(x->from));
	show_parts(&p);
	out->is_aside = false;
}
