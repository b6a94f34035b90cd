/* Entries of either side, and effects made of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "change/scan/change_scanner.h"

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

int change_entry_look(int folder, const char *name, struct change_entry *ret)
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
