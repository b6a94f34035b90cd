/*
 * change_list - what was in a copy before the run, written down and read again.
 *
 * Runs as:  who copies the project, before the run; the operator, after it.
 * Must not: follow a link; hold more than the names of the folders it is in.
 */
#include "change/copy/change_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "change/copy/change_copy.h"

/* --- writing --- */

#define FLUSH ((size_t)1 << 16)

struct lister {
	int list;
	unsigned depth;
	size_t names_size; /* of the folders that are open */
	struct buf out;
	struct tree_path path;
};

static int fail_to_write(int num, struct err *e)
{
	return err_sys(e, num, "cannot write the list of the project's copy");
}

static int flush(struct lister *l, size_t least, struct err *e)
{
	int r;

	if (l->out.failed)
		return fail_to_write(ENOMEM, e);
	if (l->out.len < least)
		return 0;
	r = file_write_all(l->list, buf_text(&l->out), l->out.len);
	l->out.len = 0;
	return r < 0 ? fail_to_write(-r, e) : 0;
}

static int change_list_list_folder(struct lister *l, int folder, struct err *e);

static int change_list_list_entry(struct lister *l, int folder, const char *name, struct err *e)
{
	own_fd int inner = -1;
	struct stat st;
	size_t before;
	int r;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return tree_fail(&l->path, name, errno, "read", e);
	if (strlen(name) > CHANGE_LIST_MAX_NAME)
		return tree_fail(&l->path, name, ENAMETOOLONG, "list", e);
	buf_printf(&l->out, "%c %" PRIu64 " %" PRId64 " ", S_ISDIR(st.st_mode) ? 'd' : 'f',
		(uint64_t)st.st_ino, change_list_changed(&st));
	buf_add(&l->out, name, strlen(name) + 1);
	r = flush(l, FLUSH, e);
	if (r < 0 || !S_ISDIR(st.st_mode))
		return r;
	inner = l->depth == TREE_MAX_DEPTH ? -ELOOP : tree_open_folder(folder, name);
	if (inner < 0)
		return tree_fail(&l->path, name, -inner, "list", e);
	before = tree_path_enter(&l->path, name);
	l->depth++;
	r = change_list_list_folder(l, inner, e);
	l->depth--;
	tree_path_leave(&l->path, before);
	return r;
}

static int change_list_list_folder(struct lister *l, int folder, struct err *e)
{
	own(tree_names) struct tree_names names = { 0 };
	int r = tree_names_read(folder, TREE_MAX_NAMES - l->names_size, &names);

	if (r < 0)
		return tree_fail(&l->path, "", -r, "list", e);
	l->names_size += names.bytes.len;
	for (size_t i = 0; r == 0 && i < names.count; i++)
		r = change_list_list_entry(l, folder, names.sorted[i], e);
	l->names_size -= names.bytes.len;
	buf_putc(&l->out, '\0');
	return r;
}

int change_copy_list(int copy, int list, struct err *e)
{
	struct lister l = { .list = list, .depth = 1 };
	own_fd int top = tree_open_folder(copy, ".");
	int r;

	if (top < 0)
		return tree_fail(&l.path, ".", -top, "list", e);
	buf_init(&l.out, 2 * FLUSH);
	buf_add(&l.out, CHANGE_LIST_HEAD, sizeof(CHANGE_LIST_HEAD));
	r = change_list_list_folder(&l, top, e);
	if (r == 0)
		r = flush(&l, 0, e);
	buf_done(&l.out);
	return r;
}

/* --- the clock of files --- */

#define SETTLE_MS 5000 /* no file system worth the name counts in more than two seconds */

int change_copy_settle(int list, struct err *e)
{
	const struct timespec tick = { .tv_nsec = 1000000 };
	struct stat first, now;

	if (fstat(list, &first) < 0)
		return fail_to_write(errno, e);
	for (int i = 0; i < SETTLE_MS; i++) {
		if (futimens(list, NULL) < 0 || fstat(list, &now) < 0)
			return fail_to_write(errno, e);
		if (change_list_changed(&now) != change_list_changed(&first))
			return 0;
		nanosleep(&tick, NULL);
	}
	return err_hint(e,
		err_set(e, ERR_REFUSED, ETIME,
			"cannot capture the project by copying: on the file system of the run's "
			"folder a change does not show in a file's time"),
		"set XDG_STATE_HOME to another place");
}

/* --- reading --- */

/* The next text, which is the list's until the one after it. */
static const char *next_text(struct change_list *l)
{
	for (;;) {
		char *text = l->bytes + l->at;
		char *end = memchr(text, '\0', l->len - l->at);
		ssize_t n;

		if (end) {
			l->at = (size_t)(end - l->bytes) + 1;
			return text;
		}
		memmove(l->bytes, text, l->len - l->at);
		l->len -= l->at;
		l->at = 0;
		if (l->len == sizeof(l->bytes))
			return NULL;
		n = read(l->fd, l->bytes + l->len, sizeof(l->bytes) - l->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return NULL;
		l->len += (size_t)n;
	}
}

int change_list_begin(struct change_list *l, int fd)
{
	const char *head;

	l->fd = fd;
	l->at = l->len = 0;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	head = next_text(l);
	return head && str_eq(head, CHANGE_LIST_HEAD) ? 0 : -EBADMSG;
}

int change_list_next(struct change_list *l, struct change_listed *ret)
{
	const char *text = next_text(l);
	char *end;

	if (!text)
		return -EBADMSG;
	if (!*text)
		return 0;
	if ((text[0] != 'd' && text[0] != 'f') || text[1] != ' ')
		return -EBADMSG;
	ret->is_folder = text[0] == 'd';
	ret->inode = strtoull(text + 2, &end, 10);
	if (*end != ' ')
		return -EBADMSG;
	ret->changed_ns = strtoll(end + 1, &end, 10);
	if (*end != ' ' || !end[1] || strlen(end + 1) > CHANGE_LIST_MAX_NAME)
		return -EBADMSG;
	memcpy(ret->name, end + 1, strlen(end + 1) + 1);
	return 1;
}

int change_list_skip(struct change_list *l)
{
	struct change_listed passed;

	for (unsigned depth = 1; depth > 0;) {
		int r = change_list_next(l, &passed);

		if (r < 0)
			return r;
		if (r == 0)
			depth--;
		else if (passed.is_folder)
			depth++;
	}
	return 0;
}
