#include "base/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

size_t tree_path_enter(struct tree_path *p, const char *name)
{
	size_t before = p->len, n = strlen(name);

	/* The top has no name of its own. */
	if (strcmp(name, ".") != 0 && before + n + 2 <= sizeof(p->text)) {
		memcpy(p->text + before, name, n);
		memcpy(p->text + before + n, "/", 2);
		p->len = before + n + 1;
	}
	return before;
}

void tree_path_leave(struct tree_path *p, size_t before)
{
	p->len = before;
	p->text[before] = '\0';
}

int tree_fail(const struct tree_path *p, const char *name, int num, const char *verb, struct err *e)
{
	/* The end of a long path says more than its beginning. */
	size_t skip = p->len > 200 ? p->len - 200 : 0;

	if (num == ELOOP)
		return err_set(e, ERR_SYS, num,
			"cannot %s '%s%s%s': folders are nested deeper than %d", verb,
			skip ? "…" : "", p->text + skip, name, TREE_MAX_DEPTH);
	return err_set(e, ERR_SYS, num, "cannot %s '%s%s%s': %s", verb, skip ? "…" : "",
		p->text + skip, name, strerror(num));
}

int tree_open_folder(int at, const char *name)
{
	return file_open_name(at, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
}
