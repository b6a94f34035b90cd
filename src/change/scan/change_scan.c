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
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/scan/change_open.h"
#include "change/scan/change_scanner.h"

/* --- paths --- */

static int change_refuse(const struct change_scanner *s, int num, const char *what)
{
	return err_sys(s->e, num, "cannot find out what the run changed: %s '%.200s'", what,
		*s->path ? s->path : ".");
}

void change_enter(struct change_scanner *s, const char *path)
{
	s->folder_size = strlen(path);
	memcpy(s->path, path, s->folder_size + 1);
}

int change_set_name(struct change_scanner *s, const char *name)
{
	size_t n = strlen(name), at = s->folder_size;

	if (at + 1 + n > CHANGE_MAX_PATH)
		return err_hint(s->e,
			err_set(s->e, ERR_REFUSED, ENAMETOOLONG,
				"cannot find out what the run changed: a path in '%.100s…' is "
				"longer than %zu bytes",
				s->path, CHANGE_MAX_PATH),
			"delete it in the run's layer");
	if (at)
		s->path[at++] = '/';
	memcpy(s->path + at, name, n + 1);
	return 0;
}

static const char *change_last_name(const struct change_scanner *s)
{
	return s->path + s->folder_size + (s->folder_size > 0);
}

static int change_charge_path(struct change_scanner *s)
{
	size_t n = strlen(s->path) + 1;

	if (n > CHANGE_MAX_PATHS - s->path_bytes)
		return err_hint(s->e,
			err_set(s->e, ERR_REFUSED, EOVERFLOW,
				"cannot find out what the run changed: the paths of its changes "
				"are together longer than %zu MiB, as that of '%.100s…'",
				CHANGE_MAX_PATHS >> 20, s->path),
			"delete such deep folders in the run's layer, or discard it");
	s->path_bytes += n;
	return 0;
}

int change_place_add(
	struct change_scanner *s, struct change_place **list, const struct change_place *like)
{
	size_t n = strlen(s->path);
	struct change_place *place;
	int r;

	if (like->depth > CHANGE_MAX_DEPTH)
		return err_hint(s->e,
			err_set(s->e, ERR_REFUSED, ENAMETOOLONG,
				"cannot find out what the run changed: below '%.100s…' more than "
				"%d folders are nested",
				s->path, CHANGE_MAX_DEPTH),
			"delete them in the run's layer");
	r = change_charge_path(s);
	if (r < 0)
		return r;
	place = s->place_count < CHANGE_MAX_EFFECTS ? malloc(sizeof(*place) + n + 1) : NULL;
	if (!place)
		return change_refuse_size(s);
	*place = *like;
	memcpy(place->path, s->path, n + 1);
	place->next = *list;
	*list = place;
	s->place_count++;
	return 0;
}

struct change_place *change_place_take(struct change_scanner *s, struct change_place **list)
{
	struct change_place *place = *list;

	if (place) {
		*list = place->next;
		s->place_count--;
		s->path_bytes -= strlen(place->path) + 1;
	}
	return place;
}

static int places_compare_places(const void *a, const void *b)
{
	const struct change_place *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

static int change_places_sort(struct change_place **list)
{
	struct change_place **all, *place;
	size_t count = 0;

	for (place = *list; place; place = place->next)
		count++;
	all = calloc(count + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	count = 0;
	for (place = *list; place; place = place->next)
		all[count++] = place;
	qsort(all, count, sizeof(*all), places_compare_places);
	*list = NULL;
	while (count > 0) {
		all[--count]->next = *list;
		*list = all[count];
	}
	free(all);
	return 0;
}

/* --- entries and effects --- */

int change_refuse_size(const struct change_scanner *s)
{
	return err_set(s->e, ERR_REFUSED, EOVERFLOW,
		"cannot find out what the run changed: more than %zu changes, or more memory than "
		"%zu MiB",
		CHANGE_MAX_EFFECTS, CHANGE_MAX_MEMORY >> 20);
}

static enum change_type type_of(unsigned mode)
{
	if (S_ISREG(mode))
		return CHANGE_FILE;
	if (S_ISDIR(mode))
		return CHANGE_FOLDER;
	return S_ISLNK(mode) ? CHANGE_LINK : CHANGE_SPECIAL;
}

static int change_entry_look(int folder, const char *name, struct change_entry *ret)
{
	*ret = (struct change_entry){ .type = CHANGE_NOTHING };
	if (statx(folder, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH,
		    STATX_BASIC_STATS | STATX_MNT_ID, &ret->st) < 0)
		return errno == ENOENT ? 0 : -errno;
	ret->type = type_of(ret->st.stx_mode);
	return 0;
}

static int64_t nanoseconds(const struct statx_timestamp *t)
{
	return t->tv_sec * 1000000000 + t->tv_nsec;
}

/*
 * By the time of change alone, which is the kernel's: the time of modification can be set, to next
 * year too. File systems without fractions count in up to two seconds, and those are any of them.
 */
bool change_is_since(const struct statx_timestamp *changed, const struct timespec *began)
{
	if (changed->tv_nsec == 0)
		return changed->tv_sec + 1 >= began->tv_sec;
	if (changed->tv_sec != began->tv_sec)
		return changed->tv_sec > began->tv_sec;
	return changed->tv_nsec > began->tv_nsec;
}

static void entry_set_state(const struct change_entry *entry, struct change_state *ret)
{
	ret->type = entry->type;
	ret->mode = entry->st.stx_mode & 07777;
	if (entry->type == CHANGE_FILE || entry->type == CHANGE_LINK)
		ret->size = entry->st.stx_size;
}

static bool entry_make_room(struct change_scanner *s)
{
	size_t room = s->room ? s->room * 2 : 256;
	struct change_found *grown;

	if (s->count < s->room)
		return true;
	if (s->count >= CHANGE_MAX_EFFECTS)
		return false;
	grown = reallocarray(s->found, room, sizeof(*grown));
	if (!grown)
		return false;
	s->found = grown;
	s->room = room;
	return true;
}

struct change_found *change_add(struct change_scanner *s, enum change_change change,
	const struct change_entry *before, const struct change_entry *now)
{
	struct change_found *found;
	const char *path;

	if (change_charge_path(s) < 0)
		return NULL;
	path = arena_copy(&s->ret->arena, s->path, strlen(s->path));
	if (!path || !entry_make_room(s)) {
		change_refuse_size(s);
		return NULL;
	}
	found = &s->found[s->count++];
	*found = (struct change_found){ .x = { .path = path, .change = change } };
	entry_set_state(now, &found->x.after);
	entry_set_state(before, &found->x.before);
	if (before->type != CHANGE_NOTHING) {
		found->x.below = (struct change_signature){
			.inode = before->st.stx_ino,
			.size = before->st.stx_size,
			.modified_ns = nanoseconds(&before->st.stx_mtime),
			.changed_ns = nanoseconds(&before->st.stx_ctime),
		};
		found->x.has_moved = change_is_since(&before->st.stx_ctime, &s->q->began);
	}
	return found;
}

/* --- folders --- */

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
	uint64_t mount = s->q->git && str_starts(s->path, ".git/") ? s->git_mount : s->mount;

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

static bool is_costly(const struct change_entry *entry)
{
	const struct statx *st = &entry->st;

	return entry->type == CHANGE_FILE && st->stx_size >= CHANGE_SMALL &&
	       (st->stx_nlink > 1 || st->stx_blocks * 512 < st->stx_size);
}

/* Is it compared when all others were? */
static bool scan_is_late(const struct change_pair *p)
{
	/* What is in a folder is told with the folder's effect. */
	return p->before.type != CHANGE_FOLDER && (is_costly(&p->now) || is_costly(&p->before));
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
	if (scan_is_late(p))
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

/* Files with several names are the arena's. */
static void scan_leave_linked(void *one)
{
	(void)one;
}

static void scanner_free(struct change_scanner *s)
{
	free_places(s, &s->places);
	free_places(s, &s->late);
	tdestroy(s->linked, scan_leave_linked);
	change_base_done(&s->base);
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
	change_base_init(&s->base, q->base);
	r = scan_all(s);
	if (r == 0)
		r = change_finish(s);
	scanner_free(s);
	return r;
}
