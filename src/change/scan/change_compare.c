/*
 * change_compare - one name in the layer and in the tree: does it differ, and in what?
 *
 * Runs as:     part of change_scan.
 * Enters with: what both sides have under the name.
 * Leaves:      an effect where they differ; what a changed text was in q->base.
 * Must not:    wait for a pipe or a device; fail because the host's file cannot be read, which is
 *              said in the effect instead.
 *
 * Owner and times do not count: the layer's owner is the cage's user, and times change by looking.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "change/git/change_git.h"
#include "change/scan/change_open.h"
#include "change/scan/change_scanner.h"
#include "change/text/change_text.h"

/* Pipes do not make us wait, terminals do not become ours. */
#define READ_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY)

/* One side, with what had to be read of it. */
struct side {
	struct change_attributes attributes;
	size_t max; /* larger files are only hashed */
	struct change_content content;
	const char *forged;
};

static void side_done(struct side *s)
{
	change_attributes_done(&s->attributes);
	change_content_done(&s->content);
}

static int compare_read_link(int folder, const char *name, struct side *ret)
{
	char target[PATH_MAX + 1];
	ssize_t n = readlinkat(folder, name, target, sizeof(target));

	if (n < 0)
		return -errno;
	change_content_hash(&ret->content, target, (size_t)n);
	return 0;
}

static int compare_read_side(
	struct change_scanner *s, const struct change_pair *p, bool is_layer, struct side *ret)
{
	enum change_type type = is_layer ? p->now.type : p->before.type;
	int folder = is_layer ? p->layer : p->below;
	own(change_right) struct change_right right = CHANGE_NO_RIGHT;
	int flags = type == CHANGE_FOLDER ? READ_FLAGS | O_DIRECTORY : READ_FLAGS;
	own_fd int fd = -1;
	int r;

	if (type == CHANGE_LINK)
		return compare_read_link(folder, p->name, ret);
	if (type == CHANGE_SPECIAL)
		return 0;
	fd = is_layer ? change_open(folder, p->name, flags, &right)
		      : file_open_beneath(folder, p->name, flags, 0);
	r = fd < 0 || type == CHANGE_FOLDER ? fd
					    : change_content_read(s, fd, ret->max, &ret->content);
	return r < 0 ? r : change_attributes_read(fd, &ret->attributes, &ret->forged);
}

/* --- lines --- */

static struct change_text text_of(const struct side *s)
{
	return (struct change_text){ .bytes = s->content.bytes, .size = s->content.size };
}

static int compare_count_lines(
	const struct side *old, const struct side *now, struct change_effect *x)
{
	struct change_text a = text_of(old), b = text_of(now);
	bool has_old = x->before.type == CHANGE_FILE;

	if (x->after.type != CHANGE_FILE || !now->content.bytes ||
		(has_old && !old->content.bytes) || a.size > CHANGE_MAX_TEXT ||
		b.size > CHANGE_MAX_TEXT)
		return 0;
	x->is_text = change_is_text(&a) && change_is_text(&b);
	return x->is_text ? change_text_count(&a, &b, &x->lines_added, &x->lines_removed) : 0;
}

/* What was hashed is what is kept: the host may be writing to its file. */
static int keep_base(struct change_scanner *s, const struct side *old, struct change_found *found)
{
	char name[32];
	own_fd int fd = -1;
	int r;

	if (s->q->base < 0 || found->x.before.type != CHANGE_FILE || !old->content.bytes ||
		found->x.after.type != CHANGE_FILE)
		return 0;
	if (old->max == CHANGE_MAX_TEXT &&
		(!found->x.is_text || old->content.size > CHANGE_MAX_BASE))
		return 0;
	snprintf(name, sizeof(name), "new-%u", s->base_count + 1);
	fd = file_open_beneath(s->q->base, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	r = fd < 0 ? fd : file_write_all(fd, old->content.bytes, old->content.size);
	if (r < 0)
		return err_sys(s->e, -r, "cannot keep what '%.200s' was", s->path);
	found->base = ++s->base_count;
	found->x.has_base = true;
	return 0;
}

/* --- both sides --- */

static bool compare_is_same(
	const struct change_pair *p, const struct side *old, const struct side *now)
{
	const struct statx *a = &p->before.st, *b = &p->now.st;

	if (a->stx_mode != b->stx_mode) /* type and permissions */
		return false;
	if (p->now.type == CHANGE_SPECIAL)
		return a->stx_rdev_major == b->stx_rdev_major &&
		       a->stx_rdev_minor == b->stx_rdev_minor;
	return !old->content.unread_holes && !now->content.unread_holes &&
	       old->content.length == now->content.length &&
	       memcmp(old->content.hash, now->content.hash, SHA256_SIZE) == 0;
}

static void set_hash(const struct side *side, struct change_state *ret)
{
	if (ret->type != CHANGE_FILE && ret->type != CHANGE_LINK)
		return;
	ret->size = side->content.length;
	ret->has_hash = !side->content.unread_holes;
	if (ret->has_hash)
		memcpy(ret->hash, side->content.hash, SHA256_SIZE);
}

/*
 * What the attributes are compared with. A folder that cannot be read on the host is in the layer
 * because of what is in it: its attributes are taken to be the same.
 */
static const struct change_attributes *old_attributes(const struct change_pair *p,
	const struct side *old, const struct side *now, bool is_old_read)
{
	if (p->before.type != p->now.type)
		return NULL;
	if (is_old_read)
		return &old->attributes;
	return p->now.type == CHANGE_FOLDER ? &now->attributes : NULL;
}

/* What was too much to be read is said in the effect; that of the layer is never applied. */
static int compare_note_unread(struct change_scanner *s, const struct side *old,
	const struct side *now, struct change_effect *x)
{
	const struct change_content *which =
		now->content.unread_holes ? &now->content : &old->content;

	if (which->unread_holes)
		x->note = arena_printf(&s->ret->arena,
			"%s %" PRIu64 " bytes, of which %" PRIu64 " are holes: it was not read%s",
			which == &now->content ? "a file of" : "it was a file of", which->length,
			which->unread_holes, which == &now->content ? ", and is not applied" : "");
	else if (!x->note && (now->content.is_unread || old->content.is_unread))
		x->note = "its lines are not counted: too many files have several names";
	return which->unread_holes && !x->note ? -ENOMEM : 0;
}

static int add_difference(struct change_scanner *s, const struct change_pair *p,
	const struct side *old, const struct side *now, bool is_old_read)
{
	bool was_there = p->before.type != CHANGE_NOTHING;
	bool is_known = is_old_read || p->before.type == CHANGE_FOLDER;
	struct change_effect like = { 0 };
	struct change_found *found;
	int r = change_attributes_compare(
		old_attributes(p, old, now, is_old_read), &now->attributes, &s->ret->arena, &like);

	if (r < 0)
		return change_refuse_size(s);
	if (is_known && like.attribute_count == 0 && compare_is_same(p, old, now))
		return 0;
	found = change_add(s, was_there ? CHANGE_CHANGED : CHANGE_ADDED, &p->before, &p->now);
	if (!found)
		return -EOVERFLOW;
	found->x.attributes = like.attributes;
	found->x.attribute_count = like.attribute_count;
	found->x.note = p->note;
	set_hash(now, &found->x.after);
	if (was_there && !is_known) {
		found->x.note = "what it was cannot be read on the host";
		return 0;
	}
	set_hash(old, &found->x.before);
	r = compare_note_unread(s, old, now, &found->x);
	if (r == 0)
		r = compare_count_lines(old, now, &found->x);
	return r < 0 ? change_refuse_size(s) : keep_base(s, old, found);
}

int change_compare(struct change_scanner *s, const struct change_pair *p)
{
	/* git rewrites its index without changing what is in it: only by its base is that seen. */
	size_t max = change_git_place_of(s->path).is_index ? CHANGE_GIT_MAX_INDEX : CHANGE_MAX_TEXT;
	own(side) struct side old = { .max = max }, now = { .max = max };
	bool was_there = p->before.type != CHANGE_NOTHING;
	int r = compare_read_side(s, p, true, &now);

	if (r < 0)
		return err_sys(s->e, -r,
			"cannot find out what the run changed: reading '%.200s' of its layer",
			s->path);
	if (now.forged && !s->q->is_copy)
		return err_hint(s->e,
			err_set(s->e, ERR_REFUSED, EBADMSG,
				"cannot find out what the run changed: '%.200s' of its layer has "
				"'%s', which no run leaves, so somebody changed the layer",
				s->path, now.forged),
			"discard it");
	if (was_there)
		r = compare_read_side(s, p, false, &old);
	return add_difference(s, p, &old, &now, was_there && r == 0);
}
