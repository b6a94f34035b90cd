/*
 * change_project - the list of all that a project is, and its digest.
 *
 * Runs as:  the operator.
 * Must not: follow a link, open anything but files and folders, change anything.
 */
#include "change/project/change_project.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"

struct listing {
	const struct change_project *project;
	struct buf *list;
	bool is_full; /* no more is kept, and all is hashed */
	struct sha256 sum;
	unsigned depth;
	size_t names_size; /* of the folders that are open */
	struct tree_path path;
	struct tree_hasher hasher;
};

static void project_put(struct listing *l, const char *text, size_t n)
{
	sha256_add(&l->sum, text, n);
	l->is_full = l->is_full || n > l->list->max - l->list->len;
	if (!l->is_full)
		buf_add(l->list, text, n);
}

static int project_put_line(struct listing *l, char type, uint64_t size, const char *hash,
	const char *attributes, const char *name)
{
	char line[TREE_PATH_SIZE + PATH_MAX + 256];
	int n = snprintf(line, sizeof(line), "%c %" PRIu64 " %s %s %s%s", type, size, hash,
		attributes, l->path.text, name);

	if (n < 0 || (size_t)n >= sizeof(line))
		return -ENAMETOOLONG;
	project_put(l, line, (size_t)n + 1);
	return 0;
}

/* Is an entry named .git one of a repository? Then its lines are there instead. 1, 0 or -errno. */
static int list_git(struct listing *l, int at, const struct stat *st, struct err *e)
{
	bool is_file = S_ISREG(st->st_mode);
	struct change_project_git git;
	char path[TREE_PATH_SIZE + 8];
	int r;

	if (!is_file && !(S_ISDIR(st->st_mode) && change_project_is_git(at, ".git")))
		return 0;
	snprintf(path, sizeof(path), "%s.git", l->path.text);
	r = change_project_read_git(l->project, at, path, is_file, &git, e);
	if (r <= 0)
		return r;
	r = project_put_line(l, 'g', 0, git.commit, "-", ".git");
	if (r == 0)
		r = project_put_line(l, 'i', 0, git.index, "-", ".git");
	return r < 0 ? tree_fail(&l->path, ".git", -r, "list", e) : 1;
}

static int project_list_folder(struct listing *l, int fd, struct err *e);

static int project_enter(struct listing *l, int fd, const char *name, struct err *e)
{
	size_t before;
	int r;

	/* What does not fit would be the path of something else. */
	if (l->depth == TREE_MAX_DEPTH || l->path.len + strlen(name) + 2 > TREE_PATH_SIZE)
		return tree_fail(&l->path, name, l->depth == TREE_MAX_DEPTH ? ELOOP : ENAMETOOLONG,
			"read", e);
	before = tree_path_enter(&l->path, name);
	l->depth++;
	r = project_list_folder(l, fd, e);
	l->depth--;
	tree_path_leave(&l->path, before);
	return r;
}

static int list_plain(
	struct listing *l, int at, const char *name, const struct stat *st, struct err *e)
{
	bool is_folder = S_ISDIR(st->st_mode), is_file = S_ISREG(st->st_mode);
	char hash[SHA256_HEX_SIZE] = "-", attributes[SHA256_HEX_SIZE] = "-";
	char type = is_file && st->st_mode & S_IXUSR ? 'x' : tree_type_letter(st);
	own_fd int fd = -1;
	int r = 0;

	if (is_file || is_folder) {
		fd = tree_open_entry(&l->hasher, at, name, is_folder);
		r = fd < 0 ? fd : tree_hash_attributes(&l->hasher, fd, attributes);
	}
	if (r == 0 && is_file)
		r = tree_hash_content(&l->hasher, fd, hash);
	if (S_ISLNK(st->st_mode))
		r = tree_hash_target(&l->hasher, at, name, hash);
	if (r == 0)
		r = project_put_line(
			l, type, is_file ? (uint64_t)st->st_size : 0, hash, attributes, name);
	if (r < 0)
		return tree_fail(&l->path, name, -r, "read", e);
	return is_folder ? project_enter(l, fd, name, e) : 0;
}

static int project_list_entry(struct listing *l, int at, const char *name, struct err *e)
{
	const struct tree_options *o = l->hasher.options;
	struct stat st;
	int r = 0;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return tree_fail(&l->path, name, errno, "read", e);
	if (str_eq(name, ".git"))
		r = list_git(l, at, &st, e);
	if (r != 0)
		return r < 0 ? r : 0;
	tree_count(o ? o->counts : NULL, st.st_mode);
	return list_plain(l, at, name, &st, e);
}

static int project_list_folder(struct listing *l, int fd, struct err *e)
{
	own(tree_names) struct tree_names names = { 0 };
	int r = tree_names_read(fd, TREE_MAX_NAMES - l->names_size, &names);

	if (r < 0)
		return tree_fail(&l->path, "", -r, "list", e);
	l->names_size += names.bytes.len;
	for (size_t i = 0; r == 0 && i < names.count; i++)
		r = project_list_entry(l, fd, names.sorted[i], e);
	l->names_size -= names.bytes.len;
	return r;
}

int change_project_digest(const struct change_project *p, struct buf *list,
	char ret[static SHA256_HEX_SIZE], struct err *e)
{
	own_free struct listing *l = calloc(1, sizeof(*l));
	uint8_t digest[SHA256_SIZE];
	int r;

	if (!l)
		return err_set(e, ERR_SYS, ENOMEM, "cannot list the project: out of memory");
	list->max = CHANGE_PROJECT_MAX_LIST;
	l->project = p;
	l->list = list;
	l->hasher.options = p->options;
	sha256_init(&l->sum);
	project_put(l, CHANGE_PROJECT_HEAD, strlen(CHANGE_PROJECT_HEAD));
	r = project_list_folder(l, p->top, e);
	if (r == 0 && list->failed)
		r = err_set(e, ERR_SYS, ENOMEM, "cannot list the project: out of memory");
	if (r < 0)
		return r;
	sha256_finish(&l->sum, digest);
	sha256_print(digest, ret);
	return 0;
}

/* --- differences --- */

struct line {
	const char *text, *path;
};

/* The next line of a list; false: there is none, or it is none of a list. */
static bool project_next_line(const char **at, const char *end, struct line *ret)
{
	const char *nul = *at < end ? memchr(*at, 0, (size_t)(end - *at)) : NULL;
	const char *path = *at;

	for (unsigned i = 0; nul && path && i < 4; i++) {
		path = strchr(path, ' ');
		path = path ? path + 1 : NULL;
	}
	if (!nul || !path)
		return false;
	*ret = (struct line){ *at, path };
	*at = nul + 1;
	return true;
}

/* In the order of a walk: a folder's entries stand before what follows the folder. */
static int project_order_of(const struct line *a, const struct line *b)
{
	const unsigned char *x = (const unsigned char *)a->path,
			    *y = (const unsigned char *)b->path;
	int one, other;

	while (*x && *x == *y)
		x++, y++;
	one = *x == '/' ? 1 : *x == 0 ? 0 : *x + 1;
	other = *y == '/' ? 1 : *y == 0 ? 0 : *y + 1;
	if (one != other)
		return one - other;
	/* Of a repository the commit comes before what is staged. */
	return (a->text[0] == 'i') - (b->text[0] == 'i');
}

static const char *what_differs(const struct line *then, const struct line *now)
{
	static const struct line none = { .text = "" };
	const struct line *a = then ? then : &none, *b = now ? now : &none;

	if (a->text[0] == 'g' || b->text[0] == 'g')
		return "is at another commit";
	if (a->text[0] == 'i' || b->text[0] == 'i')
		return "has something else staged";
	if (!then || !now)
		return then ? "is not there" : "was not there";
	return then->text[0] == now->text[0] ? "has another content"
	       : strchr("fx", then->text[0]) && strchr("fx", now->text[0])
		       ? "was made executable, or not"
		       : "is of another type";
}

size_t change_project_compare(const char *then, size_t then_size, const char *now, size_t now_size,
	size_t most, void (*tell)(void *of, const char *path, const char *what), void *of)
{
	const size_t head = strlen(CHANGE_PROJECT_HEAD);
	const char *then_end = then + then_size, *now_end = now + now_size;
	struct line x, y;
	bool has_x, has_y;
	size_t count = 0;

	if (then_size < head || now_size < head || memcmp(then, now, head) != 0)
		return 0;
	then += head;
	now += head;
	has_x = project_next_line(&then, then_end, &x);
	has_y = project_next_line(&now, now_end, &y);
	while (has_x || has_y) {
		int order = has_x && has_y ? project_order_of(&x, &y) : has_x ? -1 : 1;

		if ((order != 0 || !str_eq(x.text, y.text)) && count++ < most)
			tell(of, order <= 0 ? x.path : y.path,
				what_differs(order <= 0 ? &x : NULL, order >= 0 ? &y : NULL));
		if (order <= 0)
			has_x = project_next_line(&then, then_end, &x);
		if (order >= 0)
			has_y = project_next_line(&now, now_end, &y);
	}
	return count;
}
