/*
 * host_probe_maps - the id maps of the probe's user namespace.
 *
 * Runs as:     the probe, and its child for its own maps.
 * Leaves:      one user id and one group id mapped, and no way to change groups unless root wrote
 *              the maps.
 * Must not:    allocate: the child calls host_maps_write between clone and its report.
 *
 * Root gives the cage an id that is not its own, as it will for real; that takes rights over the
 * outer ids, so the parent writes the map. Everybody else may map the own id and no other.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/lines.h"
#include "base/own.h"
#include "host/host_probe.h"

#define ID_NOBODY 65534UL
#define ID_ALL    4294967295UL

/* One line of a map; false where it is none. */
static bool parse_range(const char *line, unsigned long ret[static 3])
{
	char *end;

	for (int i = 0; i < 3; i++) {
		ret[i] = strtoul(line, &end, 10);
		if (end == line)
			return false;
		line = end;
	}
	return true;
}

/* An id other than 0 that exists in this user namespace: nobody's, or else the last; 0 if none. */
static unsigned long probe_maps_pick_id(const char *path)
{
	own(lines) struct lines l = { .fd = -1 };
	unsigned long range[3], id = 0;
	char *line;

	lines_open(&l, path);
	while ((line = lines_next(&l))) {
		if (!parse_range(line, range) || range[2] == 0)
			continue;
		if (range[0] <= ID_NOBODY && ID_NOBODY - range[0] < range[2])
			return ID_NOBODY;
		if (range[0] + range[2] - 1 > id)
			id = range[0] + range[2] - 1;
	}
	return id;
}

bool host_maps_is_initial(void)
{
	unsigned long range[3] = { 0 };
	char text[128];

	if (file_read_small("/proc/self/uid_map", text, sizeof(text)) <= 0)
		return true;
	return parse_range(text, range) && range[0] == 0 && range[1] == 0 && range[2] == ID_ALL;
}

static void print_maps(struct host_maps *ret, unsigned long uid, unsigned long gid)
{
	snprintf(ret->uid, sizeof(ret->uid), "%d %lu 1\n", HOST_ID_INSIDE, uid);
	snprintf(ret->gid, sizeof(ret->gid), "%d %lu 1\n", HOST_ID_INSIDE, gid);
}

void host_maps_choose_own(struct host_maps *ret)
{
	ret->has_other = false;
	print_maps(ret, geteuid(), getegid());
}

void host_maps_choose(struct host_maps *ret, bool is_root)
{
	unsigned long uid = is_root ? probe_maps_pick_id("/proc/self/uid_map") : 0;
	unsigned long gid = is_root ? probe_maps_pick_id("/proc/self/gid_map") : 0;

	if (uid == 0 || gid == 0) {
		host_maps_choose_own(ret);
		return;
	}
	ret->has_other = true;
	print_maps(ret, uid, gid);
}

static int probe_maps_write_file(const char *who, const char *name, const char *text)
{
	char path[64];
	own_fd int fd = -1;

	snprintf(path, sizeof(path), "/proc/%s/%s", who, name);
	fd = file_open(path, O_WRONLY);
	return fd < 0 ? -fd : -file_write_all(fd, text, strlen(text));
}

int host_maps_write(const char *who, const struct host_maps *maps)
{
	int num = 0;

	/* Without rights over the outer groups the kernel wants setgroups given up first. */
	if (!maps->has_other)
		num = probe_maps_write_file(who, "setgroups", "deny");
	if (num == 0)
		num = probe_maps_write_file(who, "uid_map", maps->uid);
	if (num == 0)
		num = probe_maps_write_file(who, "gid_map", maps->gid);
	return num;
}
