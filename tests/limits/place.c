/*
 * A folder in the tree of each controller, given to the user; with version 2 one that hands its
 * controllers down, and one in it for the test's own processes.
 */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"

static bool write_text(const char *folder, const char *file, const char *text)
{
	char path[CGROUP_PATH_SIZE + 128];
	own_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	fd = file_open(path, O_WRONLY);
	return fd >= 0 && file_write_all(fd, text, strlen(text)) == 0;
}

static bool give(const char *folder, const char *file, uid_t uid)
{
	char path[CGROUP_PATH_SIZE + 128];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return chown(path, uid, uid) == 0 || errno == ENOENT;
}

/* Makes a folder and gives it away, with the files that one needs to divide it. */
static bool make_folder(
	struct test_place *p, const char *parent, const char *name, const char *door)
{
	static const char *const files[] = { ".", "tasks", "cgroup.procs", "cgroup.threads",
		"cgroup.subtree_control" };
	char path[sizeof(p->folders[0].path)];

	snprintf(path, sizeof(path), "%s/%s", parent, name);
	if (mkdir(path, 0755) < 0)
		return errno == EEXIST; /* two controllers in one tree */
	memcpy(p->folders[p->count].path, path, sizeof(path));
	p->folders[p->count++].door = door;
	/* Whatever runs wild in a test stays within this. */
	write_text(path, "pids.max", "300");
	for (size_t i = 0; i < COUNT_OF(files); i++)
		if (!give(path, files[i], p->uid))
			return false;
	return true;
}

static bool hand_down(const char *folder, unsigned controllers)
{
	char text[32];

	for (unsigned i = 0; i < CGROUP_COUNT; i++) {
		snprintf(text, sizeof(text), "+%s", cgroup_controller_names[i]);
		if (controllers & 1U << i && !write_text(folder, "cgroup.subtree_control", text))
			return false;
	}
	return true;
}

static const char *make_v2(
	struct test_place *p, const struct cgroup_place *place, unsigned wanted, const char *name)
{
	own(cgroup_level) struct cgroup_level level;
	unsigned here = 0;
	char inner[64];

	cgroup_level_init(&level, place);
	while (here != wanted && cgroup_level_next(&level)) {
		here = 0;
		for (unsigned i = 0; i < CGROUP_COUNT && !level.refusal; i++)
			here |= level.hands_down[i] ? wanted & 1U << i : 0;
	}
	if (here != wanted)
		return "no cgroup above hands the controllers down";
	snprintf(inner, sizeof(inner), "%s/in", name);
	if (!make_folder(p, level.dir, name, NULL) ||
		!hand_down(p->folders[p->count - 1].path, wanted) ||
		!make_folder(p, level.dir, inner, "cgroup.procs"))
		return "no cgroup could be made";
	return NULL;
}

const char *test_place_make(struct test_place *p, uid_t uid)
{
	struct cgroup_places places;
	unsigned missing = 0;
	char name[32];

	*p = (struct test_place){ .uid = uid };
	snprintf(name, sizeof(name), "bawn-test-%d", getpid());
	cgroup_place_find(NULL, &places);
	for (unsigned i = 0; i < CGROUP_COUNT; i++) {
		if (!places.v1[i].dir[0])
			missing |= 1U << i;
		else if (!make_folder(p, places.v1[i].dir, name, "tasks"))
			return "no cgroup could be made";
	}
	if (missing)
		return places.v2.dir[0] ? make_v2(p, &places.v2, missing, name)
					: "there are no cgroups";
	/* Version 2 may be beside version 1, without controllers. */
	if (places.v2.dir[0] && !make_folder(p, places.v2.dir, name, "cgroup.procs"))
		return "no cgroup could be made";
	return NULL;
}

bool test_place_enter(const struct test_place *p)
{
	gid_t own = p->uid; /* as a login has it */

	for (int i = 0; i < p->count; i++)
		if (p->folders[i].door && !write_text(p->folders[i].path, p->folders[i].door, "0"))
			return false;
	return p->uid == 0 || (setgroups(1, &own) == 0 && setresgid(p->uid, p->uid, p->uid) == 0 &&
				      setresuid(p->uid, p->uid, p->uid) == 0);
}

bool test_place_remove(struct test_place *p)
{
	bool is_empty = true;

	while (p->count)
		is_empty &= rmdir(p->folders[--p->count].path) == 0;
	return is_empty;
}
