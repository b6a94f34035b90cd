/* Lines of a diff that git and patch skip: what they have no word for. */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "cli/cli_patch.h"

#define SPECIAL_BITS 07000

void cli_patch_note(struct cli_show *out, enum cli_ink ink, const char *before, const char *path,
	const char *after)
{
	own(buf) struct buf line = { .max = CLI_PATCH_LINE };

	buf_printf(&line, "%s%s", out->is_aside ? "" : "# ", before);
	cli_add_quoted(&line, "", path);
	buf_puts(&line, after);
	cli_show_line(out, ink, buf_text(&line), line.len);
}

static void patch_notes_note(const struct change_effect *x, struct cli_show *out, const char *after)
{
	cli_patch_note(out, CLI_INK_NOTE, "", x->path, after);
}

/* Modes that git has no word for. */
static void patch_notes_note_mode(const struct change_effect *x, struct cli_show *out)
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

static void note_attributes(const struct change_effect *x, struct cli_show *out)
{
	static const char *const words[] = {
		[CHANGE_ADDED] = " is new on ",
		[CHANGE_CHANGED] = " changed on ",
		[CHANGE_DELETED] = " is gone from ",
	};

	for (size_t i = 0; i < x->attribute_count; i++) {
		const struct change_attribute *a = &x->attributes[i];
		own(buf) struct buf line = { .max = CLI_PATCH_LINE };

		if (a->change == CHANGE_RENAMED)
			continue;
		buf_puts(&line, "# attribute ");
		cli_add_quoted(&line, "", a->name);
		buf_puts(&line, words[a->change]);
		cli_add_quoted(&line, "", x->path);
		cli_show_line(out, CLI_INK_NOTE, buf_text(&line), line.len);
	}
}

static void note_mark(const struct change_effect *x, struct cli_show *out)
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
	cli_patch_note(out, CLI_INK_WARNING, "runs on the host: ", path, text);
}

void cli_patch_notes(const struct change_effect *x, struct cli_show *out)
{
	own(buf) struct buf text = { .max = CLI_PATCH_LINE };

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
