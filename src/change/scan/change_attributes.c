/* Attributes that users may set. Those of overlays are none of a tree's: they are never an effect.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "change/scan/change_scanner.h"

/* An overlay would take content or a whole folder from elsewhere. */
static const char *const forged[] = { "user.overlay.redirect", "user.overlay.metacopy" };

static bool attributes_is_ours(const char *name)
{
	return str_starts(name, "user.") && !str_starts(name, "user.overlay.");
}

static int attributes_compare_names(const void *a, const void *b)
{
	const struct change_attribute *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* The names, each ended by a NUL, in new memory; how many bytes, or -errno. */
static ssize_t attributes_read_names(int fd, char **ret)
{
	ssize_t n = flistxattr(fd, NULL, 0);

	if (n <= 0)
		return n < 0 && errno != ENOTSUP ? -errno : 0;
	*ret = malloc((size_t)n);
	if (!*ret)
		return -ENOMEM;
	n = flistxattr(fd, *ret, (size_t)n);
	return n < 0 ? -errno : n;
}

static int attributes_hash_value(int fd, const char *name, uint8_t ret[static SHA256_SIZE])
{
	own_free char *value = NULL;
	struct sha256 s;
	ssize_t n = fgetxattr(fd, name, NULL, 0);

	if (n > 0) {
		value = malloc((size_t)n);
		if (!value)
			return -ENOMEM;
		n = fgetxattr(fd, name, value, (size_t)n);
	}
	if (n < 0)
		return -errno;
	sha256_init(&s);
	sha256_add(&s, value, (size_t)n);
	sha256_finish(&s, ret);
	return 0;
}

int change_attributes_read(int fd, struct change_attributes *ret, const char **ret_forged)
{
	ssize_t n = attributes_read_names(fd, &ret->names);
	size_t room = 0;

	if (n < 0)
		return (int)n;
	for (const char *name = ret->names; name < ret->names + n; name += strlen(name) + 1) {
		for (size_t i = 0; ret_forged && i < COUNT_OF(forged); i++)
			if (str_eq(name, forged[i]))
				*ret_forged = forged[i];
		room += attributes_is_ours(name);
	}
	ret->items = room ? calloc(room, sizeof(ret->items[0])) : NULL;
	if (room && !ret->items)
		return -ENOMEM;
	for (const char *name = ret->names; room && name < ret->names + n;
		name += strlen(name) + 1) {
		struct change_attribute *item = &ret->items[ret->count];
		int r = attributes_is_ours(name) ? attributes_hash_value(fd, name, item->hash)
						 : -ENODATA;

		if (r < 0 && r != -ENODATA) /* the host may have taken it away meanwhile */
			return r;
		if (r == 0) {
			item->name = name;
			ret->count++;
		}
	}
	if (ret->items)
		qsort(ret->items, ret->count, sizeof(ret->items[0]), attributes_compare_names);
	return 0;
}

void change_attributes_done(struct change_attributes *a)
{
	free(a->items);
	free(a->names);
	*a = (struct change_attributes){ 0 };
}

static bool attributes_add(struct change_attribute *list, struct change_effect *x,
	const struct change_attribute *like, enum change_change change, struct arena *arena)
{
	struct change_attribute *item = &list[x->attribute_count++];

	*item = (struct change_attribute){
		.name = arena_copy(arena, like->name, strlen(like->name)),
		.change = change,
	};
	if (change != CHANGE_DELETED)
		memcpy(item->hash, like->hash, SHA256_SIZE);
	return item->name;
}

int change_attributes_compare(const struct change_attributes *before,
	const struct change_attributes *now, struct arena *arena, struct change_effect *ret)
{
	static const struct change_attributes none;
	const struct change_attributes *old = before ? before : &none;
	struct change_attribute *list;
	bool is_good = true;

	ret->attribute_count = 0;
	if (old->count + now->count == 0)
		return 0;
	list = calloc(old->count + now->count, sizeof(*list));
	is_good = list;
	for (size_t i = 0, k = 0; is_good && (i < old->count || k < now->count);) {
		int order = i == old->count ? 1 : k == now->count ? -1 : 0;

		if (order == 0)
			order = strcmp(old->items[i].name, now->items[k].name);
		if (order < 0)
			is_good = attributes_add(list, ret, &old->items[i], CHANGE_DELETED, arena);
		else if (order > 0)
			is_good = attributes_add(list, ret, &now->items[k], CHANGE_ADDED, arena);
		else if (memcmp(old->items[i].hash, now->items[k].hash, SHA256_SIZE) != 0)
			is_good = attributes_add(list, ret, &now->items[k], CHANGE_CHANGED, arena);
		i += order <= 0;
		k += order >= 0;
	}
	if (is_good && ret->attribute_count) {
		size_t size = ret->attribute_count * sizeof(*list);
		struct change_attribute *kept = arena_alloc(arena, size);

		if (kept)
			memcpy(kept, list, size);
		ret->attributes = kept;
		is_good = kept;
	}
	free(list);
	return is_good ? 0 : -ENOMEM;
}
