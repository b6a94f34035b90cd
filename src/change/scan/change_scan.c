/*
 * change_scan - finds what a run changed.
 *
 * Runs as:     the operator, after the run: nothing else writes to the layer any more.
 * Enters with: the top of the layer, whose names, modes and contents are a stranger's; the top of
 *              the tree below, which the host may be changing.
 * Leaves:      the effects; in q->base what changed texts were. Layer and tree are as before.
 * Must not:    follow a link, on either side; open what is not a file or a folder; go where
 *              another file system is mounted; believe an attribute that no run can set.
 *
 * Only the layer is walked, so the time depends on what changed; the tree below is listed only
 * where a folder of it is gone. Folders wait as paths and are opened from the top when their turn
 * comes: no depth costs descriptors or stack.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/git/change_git.h"
#include "change/scan/change_open.h"
#include "change/scan/change_scanner.h"
#include "change/text/change_text.h"

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

/* Fills in what differs, and adds an effect if anything does. change_compare.c */
static int change_compare(struct change_scanner *s, const struct change_pair *p)
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

static bool is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Is it, as a folder, the top of git's, which is outside the project? */
static bool is_git_top(const struct change_scanner *s, const char *path)
{
	return s->q->git && str_eq(path, ".git");
}

/* The top that a folder is below, on one side; its path becomes that from there. */
static int top_of(const struct change_scanner *s, bool is_layer, const char **path)
{
	const struct change_git_tops *git = s->q->git;
	int top;

	if (git && str_eq(*path, ".git")) {
		*path = ".";
		return is_layer ? git->layer : git->below;
	}
	top = is_layer ? change_layer_of(git, s->q->layer, path)
		       : change_below_of(git, s->q->below, path);
	if (!**path)
		*path = ".";
	return top;
}

/* -ENOENT also where the host has put a link there meanwhile. */
static int scan_open_below(const struct change_scanner *s, const char *path, int flags)
{
	int top = top_of(s, false, &path);
	int fd = file_open_beneath(top, path, flags | O_DIRECTORY, 0);

	return fd == -ELOOP || fd == -ENOTDIR ? -ENOENT : fd;
}

static bool scan_is_elsewhere(const struct change_scanner *s, const struct change_entry *entry)
{
	uint64_t mount = change_is_in_git(s->q->git, s->path) ? s->git_mount : s->mount;

	return entry->type != CHANGE_NOTHING && entry->st.stx_mnt_id != mount;
}

/* --- what an overlay says about its layer --- */

static int refuse_forged(const struct change_scanner *s, const char *what)
{
	return err_hint(s->e,
		err_set(s->e, ERR_REFUSED, EBADMSG,
			"cannot find out what the run changed: '%.200s' of its layer has %s, which "
			"no run leaves, so somebody changed the layer",
			*s->path ? s->path : ".", what),
		"discard it");
}

/* Does the folder hide what is below it? And are there files that stand for nothing? */
static int read_opaque(const struct change_scanner *s, int layer, bool *ret_opaque, bool *ret_x)
{
	char value[2] = "";
	ssize_t n =
		s->q->is_copy ? 0 : fgetxattr(layer, "user.overlay.opaque", value, sizeof(value));

	*ret_opaque = *ret_x = false;
	if (s->q->is_copy || (n < 0 && (errno == ENODATA || errno == ENOTSUP)))
		return 0;
	if (n < 0 && errno != ERANGE)
		return change_refuse(s, errno, "reading attributes of the layer's");
	if (n != 1 || (value[0] != 'y' && value[0] != 'x'))
		return refuse_forged(s, "an impossible 'user.overlay.opaque'");
	*ret_opaque = value[0] == 'y';
	*ret_x = value[0] == 'x';
	return 0;
}

/* Does it stand for nothing? `has_x`: in its folder also an empty file may. */
static bool scan_is_whiteout(
	const struct change_scanner *s, int layer, const struct change_entry *entry, bool has_x)
{
	own(change_right) struct change_right right = CHANGE_NO_RIGHT;
	own_fd int fd = -1;

	if (s->q->is_copy)
		return false; /* there it is a device */
	if (S_ISCHR(entry->st.stx_mode))
		return entry->st.stx_rdev_major == 0 && entry->st.stx_rdev_minor == 0;
	if (!has_x || entry->type != CHANGE_FILE || entry->st.stx_size > 0)
		return false;
	fd = change_open(layer, change_last_name(s), O_RDONLY, &right);
	return fd >= 0 && fgetxattr(fd, "user.overlay.whiteout", NULL, 0) >= 0;
}

/* --- what is gone --- */

/* s->path, which `entry` of the tree was; what is in it follows later. */
static int add_gone(struct change_scanner *s, const struct change_entry *entry, unsigned depth)
{
	static const struct change_entry nothing;
	struct change_found *found = change_add(s, CHANGE_DELETED, entry, &nothing);

	if (!found)
		return -EOVERFLOW;
	if (scan_is_elsewhere(s, entry))
		found->x.note = CHANGE_NOTE_MOUNT;
	if (entry->type != CHANGE_FOLDER || scan_is_elsewhere(s, entry) || is_git_top(s, s->path))
		return 0;
	return change_place_add(
		s, &s->places, &(struct change_place){ .depth = depth + 1, .is_gone = true });
}

/* The effect of s->path, or of the nearest folder above that has one. */
static struct change_found *find_nearest(struct change_scanner *s, size_t n)
{
	while (n) {
		const char *slash = memrchr(s->path, '/', n);

		for (size_t i = s->count; i-- > 0;)
			if (strncmp(s->found[i].x.path, s->path, n) == 0 && !s->found[i].x.path[n])
				return &s->found[i];
		n = slash ? (size_t)(slash - s->path) : 0;
	}
	return NULL;
}

/*
 * Something in a folder of the tree is gone, and nobody may look at what it was. That is said where
 * the folder, or one above, was changed; a folder that was not is then told as changed.
 */
static int scan_note_unread(struct change_scanner *s, const struct change_place *place)
{
	own_fd int below = scan_open_below(s, place->path, O_PATH);
	struct change_entry before, now = { .type = CHANGE_FOLDER, .st.stx_mode = place->mode };
	struct change_found *found;

	change_enter(s, place->path);
	found = find_nearest(s, s->folder_size);
	if (!found) {
		if (below < 0 || !*place->path || change_entry_look(below, "", &before) < 0)
			return change_refuse(s, EACCES, "reading the project's");
		found = change_add(s, CHANGE_CHANGED, &before, &now);
	}
	if (!found)
		return -EOVERFLOW;
	found->x.note = "what was in it cannot be read on the host";
	return 0;
}

/* Deletes what a folder of the tree has and the folder of the layer (-1: none) has not. */
static int scan_gone(
	struct change_scanner *s, const struct change_place *place, int layer, bool has_x)
{
	own_fd int below = scan_open_below(s, place->path, O_RDONLY);
	struct file_entries entries = { .fd = below };
	const struct file_entry *next;
	int r = 0;

	if (below == -ENOENT)
		return 0; /* the host has deleted it meanwhile */
	if (below < 0)
		return scan_note_unread(s, place);
	while (r == 0 && (next = file_next_entry(&entries))) {
		struct change_entry entry, now = { 0 };

		if (is_dot(next->name))
			continue;
		r = change_set_name(s, next->name);
		if (r < 0)
			return r;
		if (layer >= 0)
			r = change_entry_look(layer, next->name, &now);
		if (r < 0)
			return change_refuse(s, -r, "looking at the layer's");
		if (now.type != CHANGE_NOTHING && !scan_is_whiteout(s, layer, &now, has_x))
			continue;
		if (change_entry_look(below, next->name, &entry) == 0 &&
			entry.type != CHANGE_NOTHING)
			r = add_gone(s, &entry, place->depth);
	}
	return r == 0 && entries.failure
		       ? change_refuse(s, entries.failure, "reading the project's")
		       : r;
}

/* --- what is there --- */

/* What the tree has under the same name, as far as it may be known. */
static void look_below(struct change_pair *p)
{
	bool is_hidden = p->below < 0 && p->below != -ENOENT;
	int r = p->below < 0 ? 0 : change_entry_look(p->below, p->name, &p->before);

	if (!p->note && (r < 0 || is_hidden))
		p->note = "what it was cannot be looked at on the host";
}

static int scan_whiteout(
	struct change_scanner *s, struct change_place *place, const struct change_pair *p)
{
	if (place->is_opaque)
		return 0; /* it is found among what its folder hides */
	if (p->before.type != CHANGE_NOTHING)
		return add_gone(s, &p->before, place->depth);
	if (!p->note || place->is_noted)
		return 0; /* nothing was there, or this is said already */
	place->is_noted = true;
	return scan_note_unread(s, place);
}

/* A folder in place of the file that names git's: what is in it would be called like what is there.
 */
static void keep_apart(struct change_pair *p)
{
	if (p->before.type == CHANGE_FOLDER)
		p->before.type = CHANGE_SPECIAL;
	if (p->now.type != CHANGE_FOLDER)
		return;
	p->now.type = CHANGE_SPECIAL;
	p->note = "it took the place of the file that names git's folder";
}

/* Both sides of one name in the folder we are in. */
static int look_at_pair(struct change_scanner *s, struct change_pair *p)
{
	int r = change_set_name(s, p->name);

	if (r < 0)
		return r;
	r = change_entry_look(p->layer, p->name, &p->now);
	if (r < 0 || p->now.type == CHANGE_NOTHING)
		return change_refuse(s, r < 0 ? -r : ENOENT, "looking at the layer's");
	look_below(p);
	if (is_git_top(s, s->path))
		keep_apart(p);
	return 0;
}

static int compare_pair(struct change_scanner *s, struct change_pair *p)
{
	if (scan_is_elsewhere(s, &p->before)) {
		p->before.type = CHANGE_NOTHING;
		p->note = CHANGE_NOTE_MOUNT;
	}
	return change_compare(s, p);
}

static int scan_entry(
	struct change_scanner *s, struct change_place *place, struct change_pair *p, bool has_x)
{
	struct change_place inner = { .depth = place->depth + 1 };
	int r = look_at_pair(s, p);

	if (r < 0)
		return r;
	if (scan_is_whiteout(s, p->layer, &p->now, has_x))
		return scan_whiteout(s, place, p);
	if (change_content_is_late(p))
		return change_place_add(s, &s->late,
			&(struct change_place){
				.note = place->note, .has_below = place->has_below });
	r = compare_pair(s, p);
	if (r < 0 || (p->now.type != CHANGE_FOLDER && p->before.type != CHANGE_FOLDER))
		return r;
	inner.mode = p->now.st.stx_mode;
	inner.note = p->note;
	inner.has_below = p->before.type == CHANGE_FOLDER;
	inner.is_opaque = place->is_opaque;
	inner.is_gone = p->now.type != CHANGE_FOLDER;
	return change_place_add(s, &s->places, &inner);
}

static int scan_folder(struct change_scanner *s, struct change_place *place)
{
	const char *path = place->path;
	int top = top_of(s, true, &path);
	own(change_right) struct change_right right = CHANGE_NO_RIGHT;
	own_fd int layer = change_open(top, path, O_RDONLY | O_DIRECTORY, &right);
	own_fd int below = place->has_below ? scan_open_below(s, place->path, O_PATH) : -ENOENT;
	struct file_entries entries = { .fd = layer };
	const struct file_entry *next;
	bool is_opaque = false, has_x = false;
	int r;

	if (layer < 0)
		return change_refuse(s, -layer, "opening the layer's");
	r = read_opaque(s, layer, &is_opaque, &has_x);
	place->is_opaque |= is_opaque;
	while (r == 0 && (next = file_next_entry(&entries))) {
		struct change_pair p = {
			.layer = layer, .below = below, .name = next->name, .note = place->note
		};

		if (is_dot(next->name))
			continue;
		s->seen++;
		if (s->q->progress.tell)
			s->q->progress.tell(
				s->q->progress.of, "looking at what changed", s->seen, 0);
		r = scan_entry(s, place, &p, has_x);
	}
	if (r == 0 && entries.failure)
		r = change_refuse(s, entries.failure, "reading the layer's");
	if (r == 0 && place->has_below && place->is_opaque) {
		change_enter(s, place->path);
		r = scan_gone(s, place, layer, has_x);
	}
	return r;
}

/* A file whose folder was left. */
static int scan_late(struct change_scanner *s, struct change_place *place)
{
	char *slash = strrchr(place->path, '/');
	const char *folder = slash ? place->path : "", *path = folder;
	own(change_right) struct change_right right = CHANGE_NO_RIGHT;
	own_fd int layer = -1, below = -ENOENT;
	struct change_pair p = { .name = slash ? slash + 1 : place->path, .note = place->note };
	int top, r;

	if (slash)
		*slash = '\0';
	change_enter(s, folder);
	top = top_of(s, true, &path);
	layer = change_open(top, path, O_RDONLY | O_DIRECTORY, &right);
	if (layer < 0)
		return change_refuse(s, -layer, "opening the layer's");
	if (place->has_below)
		below = scan_open_below(s, folder, O_PATH);
	p.layer = layer;
	p.below = below;
	r = look_at_pair(s, &p);
	return r < 0 ? r : compare_pair(s, &p);
}

/* --- all of it --- */

static void free_places(struct change_scanner *s, struct change_place **list)
{
	for (struct change_place *place; (place = change_place_take(s, list));)
		free(place);
}

static void scanner_free(struct change_scanner *s)
{
	free_places(s, &s->places);
	free_places(s, &s->late);
	change_content_forget(s);
	free(s->found);
	free(s);
}

/* A tree to begin with, called `name`. */
static int add_top(struct change_scanner *s, const char *name, int below, uint64_t *ret_mount)
{
	struct change_entry top;
	int r = change_entry_look(below, "", &top);

	change_enter(s, name);
	if (r < 0)
		return change_refuse(s, -r, "looking at the project's");
	*ret_mount = top.st.stx_mnt_id;
	return change_place_add(s, &s->places,
		&(struct change_place){ .has_below = true, .is_opaque = s->q->is_copy });
}

static int scan_all(struct change_scanner *s)
{
	int r = add_top(s, "", s->q->below, &s->mount);

	if (r == 0 && s->q->git)
		r = add_top(s, ".git", s->q->git->below, &s->git_mount);
	while (r == 0 && s->places) {
		own_free struct change_place *place = change_place_take(s, &s->places);

		change_enter(s, place->path);
		r = place->is_gone ? scan_gone(s, place, -1, false) : scan_folder(s, place);
	}
	if (r == 0 && change_places_sort(&s->late) < 0)
		r = change_refuse_size(s);
	while (r == 0 && s->late) {
		own_free struct change_place *place = change_place_take(s, &s->late);

		r = scan_late(s, place);
	}
	return r;
}

int change_scan(const struct change_scan *q, struct change_effects *ret, struct err *e)
{
	/* On the heap for the path in it. */
	struct change_scanner *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(
			e, ERR_SYS, ENOMEM, "cannot find out what the run changed: no memory");
	s->q = q;
	s->ret = ret;
	s->e = e;
	r = scan_all(s);
	change_sort(s);
	if (r == 0)
		r = change_find_renames(s);
	if (r == 0)
		r = change_finish(s);
	scanner_free(s);
	return r;
}
