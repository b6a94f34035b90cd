/* The path a scan is at, and the folders that wait for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change/scan/change_scanner.h"

int change_refuse(const struct change_scanner *s, int num, const char *what)
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

const char *change_last_name(const struct change_scanner *s)
{
	return s->path + s->folder_size + (s->folder_size > 0);
}

int change_charge_path(struct change_scanner *s)
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

int change_places_sort(struct change_place **list)
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
