/*
 * cgroup - the folders of a run: found, made, limited, entered.
 *
 * Runs as:     the keeper; cgroup_enter in the cage's first process, before anything else there.
 * Enters with: a place in the trees of cgroups.
 * Leaves:      folders that the keeper has locked.
 * Must not:    change a cgroup that is not the run's own, or what a parent hands down.
 *
 * A folder cannot be made and locked in one go, and in between it looks like one that a dead keeper
 * left. So a sweeper may take it away, which shows after the lock was got: the name then stands for
 * another folder or for none, and the folder is made again.
 */
#include "cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cgroup/cgroup_inside.h"
#include "cgroup/cgroup_place.h"
#include "cgroup/cgroup_scope.h"

#define MAKE_TRIES 64
#define LOCK_MS    1000 /* a sweeper is done with an empty folder long before */
#define REMOVE_MS  2000

bool cgroup_is_name(const char *name)
{
	static const char form[] = "bawn-########-######-xxxxxxxx";

	for (size_t i = 0; i < sizeof(form); i++) {
		bool is_hex = str_is_digit(name[i]) || (name[i] >= 'a' && name[i] <= 'f');

		if (form[i] == '#' ? !str_is_digit(name[i])
				   : (form[i] == 'x' ? !is_hex : name[i] != form[i]))
			return false;
	}
	return true;
}

void cgroup_init(struct cgroup *g)
{
	memset(g, 0, sizeof(*g));
	for (int i = 0; i < CGROUP_COUNT; i++) {
		g->folders[i].parent = g->folders[i].fd = g->folders[i].door = -1;
		g->of[i] = -1;
	}
}

static void cgroup_close_all(const struct cgroup *g)
{
	for (int i = 0; i < g->count; i++) {
		const struct cgroup_folder *f = &g->folders[i];
		const int fds[] = { f->parent, f->fd, f->door };

		for (size_t n = 0; n < COUNT_OF(fds); n++)
			if (fds[n] >= 0)
				close(fds[n]);
	}
}

void cgroup_done(struct cgroup *g)
{
	cgroup_close_all(g);
	cgroup_init(g);
}

/* --- finding --- */

static bool cgroup_is_same(int a, int b)
{
	struct stat of_a, of_b;

	return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}

/* Version 1 trees may have several of the controllers, which then share a folder. */
static void find_v1(struct cgroup *g, int controller, const struct cgroup_place *place)
{
	own_fd int parent = cgroup_place_open(place->dir, CGROUP_SUPER_MAGIC);
	int i = 0;

	if (parent < 0)
		return;
	while (i < g->count && !cgroup_is_same(parent, g->folders[i].parent))
		i++;
	if (i == g->count)
		g->folders[g->count++].parent = take_fd(&parent);
	g->of[controller] = i;
}

/*
 * All that is wanted has to come from one folder: the nearest level that may be divided and hands
 * down most of it. What a level hands down those above it do as well.
 */
static void find_v2(struct cgroup *g, unsigned wanted, const struct cgroup_place *place)
{
	own(cgroup_level) struct cgroup_level level;
	struct cgroup_folder *folder = &g->folders[g->count];
	unsigned found = 0;

	cgroup_level_init(&level, place);
	while (found != wanted && cgroup_level_next(&level)) {
		unsigned here = 0;

		for (unsigned i = 0; i < CGROUP_COUNT; i++)
			here |= level.hands_down[i] ? wanted & 1U << i : 0;
		if (level.refusal || here == found)
			continue;
		if (folder->parent >= 0)
			close(folder->parent);
		folder->parent = fcntl(level.fd, F_DUPFD_CLOEXEC, 0);
		found = folder->parent < 0 ? 0 : here;
	}
	for (unsigned i = 0; i < CGROUP_COUNT; i++)
		if (found & 1U << i)
			g->of[i] = g->count;
	folder->is_v2 = true;
	g->count += found != 0;
}

/* Which of the wanted controllers have no place. Those of version 1 never have another. */
static unsigned find_all(struct cgroup *g, unsigned wanted)
{
	struct cgroup_places places;
	unsigned missing = 0;

	cgroup_place_find(&places);
	for (int i = 0; i < CGROUP_COUNT; i++) {
		if (!(wanted & 1U << i) || !places.v1[i].dir[0])
			continue;
		wanted &= ~(1U << i);
		find_v1(g, i, &places.v1[i]);
	}
	if (wanted && places.v2.dir[0])
		find_v2(g, wanted, &places.v2);
	for (unsigned i = 0; i < CGROUP_COUNT; i++)
		missing |= g->of[i] < 0 ? wanted & 1U << i : 0;
	return missing;
}

int cgroup_find(struct cgroup *g, const char *run, unsigned wanted, struct err *e)
{
	struct err why = { 0 };
	int n = snprintf(g->name, sizeof(g->name), "bawn-%s", run);

	if (n < 0 || (size_t)n >= sizeof(g->name) || !cgroup_is_name(g->name))
		return err_set(e, ERR_SYS, EINVAL,
			"cannot make a cgroup for '%.40s': it is not the name of a run", run);
	if (!find_all(g, wanted))
		return 0;
	if (cgroup_scope_enter(g->name, wanted, &why) < 0) {
		snprintf(g->why_not, sizeof(g->why_not), "%.199s", why.text);
		return 0;
	}
	cgroup_done(g);
	snprintf(g->name, sizeof(g->name), "bawn-%s", run);
	find_all(g, wanted);
	return 0;
}

/* --- making --- */

/* The folder, locked, where no sweeper takes it away any more: a descriptor or -errno. */
static int cgroup_make_folder(int parent, const char *name)
{
	for (int tries = 0; tries < MAKE_TRIES; tries++) {
		own_fd int folder = -1;
		int r;

		/* Nobody else may open it, and so nobody else can lock it. */
		if (mkdirat(parent, name, 0700) < 0)
			return -errno;
		folder = file_open_name(parent, name, O_RDONLY | O_DIRECTORY);
		if (folder == -ENOENT)
			continue;
		r = folder < 0 ? folder : cgroup_lock(folder, LOCK_MS);
		if (r < 0) {
			unlinkat(parent, name, AT_REMOVEDIR);
			return r;
		}
		if (cgroup_is_at(parent, name, folder))
			return take_fd(&folder);
	}
	return -EBUSY;
}

static int cgroup_make(
	struct cgroup *g, struct cgroup_folder *f, enum cgroup_controller c, struct err *e)
{
	f->fd = cgroup_make_folder(f->parent, g->name);
	if (f->fd < 0)
		return err_sys(
			e, -f->fd, "cannot make a cgroup for %s", cgroup_controller_names[c]);
	/* Who moves itself, and alone, does not make the kernel stop every fork meanwhile. */
	f->door = file_open_name(f->fd, f->is_v2 ? "cgroup.procs" : "tasks", O_WRONLY);
	if (f->door < 0)
		return err_sys(
			e, -f->door, "cannot open the cgroup for %s", cgroup_controller_names[c]);
	return 0;
}

int cgroup_limit(struct cgroup *g, enum cgroup_controller c, uint64_t limit, struct err *e)
{
	struct cgroup_folder *f = g->of[c] < 0 ? NULL : &g->folders[g->of[c]];
	struct cgroup_knob knobs[CGROUP_MAX_KNOBS];
	int count, r = 0;

	if (!f)
		return err_hint(e,
			err_set(e, ERR_REFUSED, ENOENT,
				"cannot limit %s: no cgroup can be made here%s%s",
				cgroup_controller_names[c], g->why_not[0] ? ": " : "", g->why_not),
			"bawn doctor says why");
	count = cgroup_knobs(c, f->is_v2, limit, knobs);
	if (count == 0)
		return err_set(e, ERR_SYS, EINVAL, "cannot limit %s: there is no such limit",
			cgroup_controller_names[c]);
	if (f->fd < 0)
		r = cgroup_make(g, f, c, e);
	for (int i = 0; i < count && r == 0; i++) {
		r = cgroup_write(f->fd, knobs[i].file, knobs[i].text);
		if (r == -ENOENT && knobs[i].may_be_missing)
			r = 0;
		if (r < 0)
			err_hint(e,
				err_sys(e, -r, "cannot set %s to %s", knobs[i].file, knobs[i].text),
				"%s",
				r == -EINVAL && c == CGROUP_CPU ? "a cgroup above may have less"
								: "");
	}
	return r;
}

/* --- entering --- */

int cgroup_clone_fd(const struct cgroup *g)
{
	for (int i = 0; i < g->count; i++)
		if (g->folders[i].is_v2)
			return g->folders[i].fd;
	return -1;
}

int cgroup_enter(const struct cgroup *g, bool was_born_there, struct err *e)
{
	for (int i = 0; i < g->count; i++) {
		const struct cgroup_folder *f = &g->folders[i];
		int r = 0;

		if (f->door >= 0 && !(f->is_v2 && was_born_there))
			r = file_write_all(f->door, "0", 1);
		if (r < 0)
			return err_sys(e, -r, "cannot enter the run's cgroup");
	}
	/* The lock is the keeper's: it must not outlive it in a cage. */
	cgroup_close_all(g);
	return 0;
}

/* --- removing --- */

int cgroup_remove(struct cgroup *g, struct err *e)
{
	int result = 0;

	for (int i = 0; i < g->count; i++) {
		const struct cgroup_folder *f = &g->folders[i];
		int r = f->fd < 0 ? 0 : cgroup_remove_folder(f->parent, g->name, REMOVE_MS);

		if (r < 0 && result == 0)
			result = err_sys(e, -r, "cannot remove cgroup '%s'", g->name);
	}
	cgroup_done(g);
	return result;
}
