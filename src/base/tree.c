#include "base/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/str.h"

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

	if (num == EXDEV)
		return err_set(e, ERR_SYS, num,
			"cannot %s '%s%s%s': another file system is mounted there", verb,
			skip ? "…" : "", p->text + skip, name);
	if (num == ELOOP)
		return err_set(e, ERR_SYS, num,
			"cannot %s '%s%s%s': folders are nested deeper than %d", verb,
			skip ? "…" : "", p->text + skip, name, TREE_MAX_DEPTH);
	return err_sys(e, num, "cannot %s '%s%s%s'", verb, skip ? "…" : "", p->text + skip, name);
}

int tree_open_folder(int at, const char *name)
{
	return file_open_name(at, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
}

void tree_count(struct tree_counts *counts, mode_t mode)
{
	if (!counts)
		return;
	counts->files += S_ISREG(mode);
	counts->folders += S_ISDIR(mode);
	counts->links += S_ISLNK(mode);
	counts->others += !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode);
}

/* --- names in order --- */

static int tree_compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **tree_sort_texts(const char *texts, size_t n, size_t *ret_count)
{
	const char **sorted;
	size_t count = 0, i = 0;

	for (size_t k = 0; k < n; k++)
		count += texts[k] == '\0';
	sorted = calloc(count + 1, sizeof(*sorted));
	if (!sorted)
		return NULL;
	for (const char *text = texts; i < count; text += strlen(text) + 1)
		sorted[i++] = text;
	qsort(sorted, count, sizeof(*sorted), tree_compare_texts);
	*ret_count = count;
	return sorted;
}

int tree_names_read(int folder, size_t max, struct tree_names *ret)
{
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;

	*ret = (struct tree_names){ .bytes.max = max };
	while ((entry = file_next_entry(&entries)))
		if (!str_eq(entry->name, ".") && !str_eq(entry->name, ".."))
			buf_add(&ret->bytes, entry->name, strlen(entry->name) + 1);
	if (entries.failure || ret->bytes.failed)
		return entries.failure ? -entries.failure : -ENOMEM;
	ret->sorted = tree_sort_texts(buf_text(&ret->bytes), ret->bytes.len, &ret->count);
	return ret->sorted ? 0 : -ENOMEM;
}

void tree_names_done(struct tree_names *names)
{
	buf_done(&names->bytes);
	free(names->sorted);
}
