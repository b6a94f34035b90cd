/* Entries of either side, and effects made of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "work/work_scanner.h"

int work_refuse_size(const struct work_scanner *s)
{
	return err_set(s->e, ERR_REFUSED, EOVERFLOW,
		"cannot find out what the run changed: more than %zu changes, or more memory than "
		"%zu MiB",
		WORK_MAX_EFFECTS, WORK_MAX_MEMORY >> 20);
}

static enum work_type type_of(unsigned mode)
{
	if (S_ISREG(mode))
		return WORK_FILE;
	if (S_ISDIR(mode))
		return WORK_FOLDER;
	return S_ISLNK(mode) ? WORK_LINK : WORK_SPECIAL;
}

int work_entry_look(int folder, const char *name, struct work_entry *ret)
{
	*ret = (struct work_entry){ .type = WORK_NOTHING };
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
bool work_is_since(const struct statx_timestamp *changed, const struct timespec *began)
{
	if (changed->tv_nsec == 0)
		return changed->tv_sec + 1 >= began->tv_sec;
	if (changed->tv_sec != began->tv_sec)
		return changed->tv_sec > began->tv_sec;
	return changed->tv_nsec > began->tv_nsec;
}

static void set_state(const struct work_entry *entry, struct work_state *ret)
{
	ret->type = entry->type;
	ret->mode = entry->st.stx_mode & 07777;
	if (entry->type == WORK_FILE || entry->type == WORK_LINK)
		ret->size = entry->st.stx_size;
}

static bool make_room(struct work_scanner *s)
{
	size_t room = s->room ? s->room * 2 : 256;
	struct work_found *grown;

	if (s->count < s->room)
		return true;
	if (s->count >= WORK_MAX_EFFECTS)
		return false;
	grown = reallocarray(s->found, room, sizeof(*grown));
	if (!grown)
		return false;
	s->found = grown;
	s->room = room;
	return true;
}

struct work_found *work_add(struct work_scanner *s, enum work_change change,
	const struct work_entry *before, const struct work_entry *now)
{
	struct work_found *found;
	const char *path;

	if (work_charge_path(s) < 0)
		return NULL;
	path = arena_copy(&s->ret->arena, s->path, strlen(s->path));
	if (!path || !make_room(s)) {
		work_refuse_size(s);
		return NULL;
	}
	found = &s->found[s->count++];
	*found = (struct work_found){ .x = { .path = path, .change = change } };
	set_state(now, &found->x.after);
	set_state(before, &found->x.before);
	if (before->type != WORK_NOTHING) {
		found->x.below = (struct work_signature){
			.inode = before->st.stx_ino,
			.size = before->st.stx_size,
			.modified_ns = nanoseconds(&before->st.stx_mtime),
			.changed_ns = nanoseconds(&before->st.stx_ctime),
		};
		found->x.has_moved = work_is_since(&before->st.stx_ctime, &s->q->began);
	}
	return found;
}
