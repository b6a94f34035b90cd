/*
 * change_put_attributes - extended attributes of what is put on the tree.
 *
 * Runs as:     the operator, in one of several threads.
 * Enters with: open files and folders.
 * Leaves:      user.… as the run left them; the access list of what is replaced.
 * Must not:    set anything from the layer but user.…, and none that an overlay obeys.
 */
#include <errno.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/own.h"
#include "base/str.h"
#include "change/apply/change_put.h"

#define ACCESS_LIST "system.posix_acl_access"

static bool is_of_people(const char *name)
{
	return str_starts(name, "user.") && !str_starts(name, "user.overlay.");
}

static bool put_attributes_is_missing(int error)
{
	return error == ENODATA || error == EOPNOTSUPP;
}

/* The value, into memory the caller owns, or -errno. */
static ssize_t put_attributes_read_value(int fd, const char *name, char **ret)
{
	for (int tries = 0; tries < 4; tries++) {
		ssize_t size = fgetxattr(fd, name, NULL, 0), n;
		own_free char *value = NULL;

		if (size < 0)
			return -errno;
		value = malloc((size_t)size + 1);
		if (!value)
			return -ENOMEM;
		n = fgetxattr(fd, name, value, (size_t)size + 1);
		if (n >= 0) {
			*ret = take_ptr(value);
			return n;
		}
		if (errno != ERANGE)
			return -errno;
	}
	return -EAGAIN;
}

static int carry_one(int from, int to, const char *name)
{
	own_free char *value = NULL;
	ssize_t n = put_attributes_read_value(from, name, &value);

	if (n < 0)
		return put_attributes_is_missing((int)-n) ? 0 : (int)n;
	return fsetxattr(to, name, value, (size_t)n, 0) < 0 ? -errno : 0;
}

int change_put_carry_attributes(int from, int to)
{
	char names[XATTR_LIST_MAX] __attribute__((uninitialized));
	ssize_t n = flistxattr(from, names, sizeof(names));
	bool has_list = false;
	int r = 0;

	if (n < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (const char *name = names; r == 0 && name < names + n; name += strlen(name) + 1) {
		has_list |= str_eq(name, ACCESS_LIST);
		if (is_of_people(name) || str_eq(name, ACCESS_LIST))
			r = carry_one(from, to, name);
	}
	/* One that the folder gives to whatever is made in it. */
	if (r == 0 && !has_list && fremovexattr(to, ACCESS_LIST) < 0 &&
		!put_attributes_is_missing(errno))
		r = -errno;
	return r;
}

static void put_attributes_hash_value(const char *value, size_t n, uint8_t ret[static SHA256_SIZE])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, value, n);
	sha256_finish(&s, ret);
}

static int change_one(int layer, int to, const struct change_attribute *a)
{
	own_free char *value = NULL;
	uint8_t hash[SHA256_SIZE];
	ssize_t n;

	if (a->change == CHANGE_DELETED)
		return fremovexattr(to, a->name) < 0 && !put_attributes_is_missing(errno) ? -errno
											  : 0;
	n = put_attributes_read_value(layer, a->name, &value);
	if (n == -ENODATA)
		return -EBADMSG;
	if (n < 0)
		return (int)n;
	put_attributes_hash_value(value, (size_t)n, hash);
	if (memcmp(hash, a->hash, SHA256_SIZE) != 0)
		return -EBADMSG;
	return fsetxattr(to, a->name, value, (size_t)n, 0) < 0 ? -errno : 0;
}

int change_put_change_attributes(int layer, int to, const struct change_effect *x)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < x->attribute_count; i++)
		if (is_of_people(x->attributes[i].name))
			r = change_one(layer, to, &x->attributes[i]);
	return r;
}

static bool has_one(int fd, const struct change_attribute *a)
{
	own_free char *value = NULL;
	uint8_t hash[SHA256_SIZE];
	ssize_t n = put_attributes_read_value(fd, a->name, &value);

	if (n < 0)
		return a->change == CHANGE_DELETED && put_attributes_is_missing((int)-n);
	put_attributes_hash_value(value, (size_t)n, hash);
	return a->change != CHANGE_DELETED && memcmp(hash, a->hash, SHA256_SIZE) == 0;
}

bool change_put_has_attributes(int fd, const struct change_effect *x)
{
	for (size_t i = 0; i < x->attribute_count; i++)
		if (is_of_people(x->attributes[i].name) && !has_one(fd, &x->attributes[i]))
			return false;
	return true;
}
