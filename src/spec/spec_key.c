#include <string.h>

#include "base/str.h"
#include "spec/spec_table.h"

enum spec_key spec_key_find(const char *path)
{
	enum spec_key key = 0;

	while (key < SPEC_KEY_COUNT && !str_eq(spec_keys[key].path, path))
		key++;
	return key;
}

bool spec_key_section(enum spec_key key, char *ret, size_t size)
{
	const char *path = spec_keys[key].path;
	size_t n = strcspn(path, ".");

	if (!path[n] || n >= size)
		return false;
	memcpy(ret, path, n);
	ret[n] = '\0';
	return true;
}

const char *spec_key_leaf(enum spec_key key)
{
	const char *point = strchr(spec_keys[key].path, '.');

	return point ? point + 1 : spec_keys[key].path;
}

bool spec_is_list(enum spec_type type)
{
	return type == SPEC_TYPE_LIST || type == SPEC_TYPE_SET || type == SPEC_TYPE_PORTS ||
	       type == SPEC_TYPE_BINDS || type == SPEC_TYPE_VARS || type == SPEC_TYPE_SECRETS;
}
