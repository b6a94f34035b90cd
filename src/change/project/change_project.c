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
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/git/change_git.h"

/*
 * change_project_git - which commit a repository is at, and what is staged in it, without git.
 *
 * Runs as:  the operator.
 * Must not: follow a link, run anything, leave the project and the folder of its git.
 */

#define MAX_REF    4096
#define MAX_PACKED ((size_t)256 << 20)
#define MAX_LINKS  5 /* refs that name refs, as git follows them */

/* Both opened; `common` is where refs are. */
struct repository {
	int own, common;
};

static void repository_done(struct repository *r)
{
	if (r->own >= 0)
		close(r->own);
	if (r->common >= 0)
		close(r->common);
}

static bool project_git_has(int at, const char *name, mode_t type)
{
	struct stat st;

	return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IFMT) == type;
}

/* Is the folder `name` a repository's own, by git's rule: HEAD, objects and refs are in it? */
static bool change_project_is_git(int at, const char *name)
{
	own_fd int fd = file_open_name(at, name, O_RDONLY | O_DIRECTORY);

	return fd >= 0 && project_git_has(fd, "HEAD", S_IFREG) &&
	       project_git_has(fd, "objects", S_IFDIR) && project_git_has(fd, "refs", S_IFDIR);
}

/* A small file of one line, without what ends it; its size or -errno. */
static ssize_t project_git_read_line(int at, const char *path, char *ret, size_t size)
{
	own_fd int fd = file_open_beneath(at, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	ssize_t n = file_read_text(fd, ret, size);

	while (n > 0 && (ret[n - 1] == '\n' || ret[n - 1] == '\r' || ret[n - 1] == ' '))
		ret[--n] = '\0';
	return n;
}

/* --- where it is --- */

/* Resolves `target` from the folder `from` by names alone; false: it leads out of the top. */
static bool project_git_join(const char *from, const char *target, char ret[static PATH_MAX])
{
	char both[2 * PATH_MAX];
	size_t len = 0;
	int n = snprintf(both, sizeof(both), "%s/%s", from, target);

	if (n < 0 || (size_t)n >= sizeof(both))
		return false;
	ret[0] = '\0';
	for (char *save = NULL, *part = strtok_r(both, "/", &save); part;
		part = strtok_r(NULL, "/", &save)) {
		if (str_eq(part, "."))
			continue;
		if (str_eq(part, "..")) {
			char *slash = strrchr(ret, '/');

			if (!len)
				return false;
			len = slash ? (size_t)(slash - ret) : 0;
			ret[len] = '\0';
			continue;
		}
		n = snprintf(ret + len, PATH_MAX - len, "%s%s", len ? "/" : "", part);
		if (n < 0 || (size_t)n >= PATH_MAX - len)
			return false;
		len += (size_t)n;
	}
	return true;
}

/* What is left of a path below a top; NULL: it is not below it. */
static const char *below(const char *path, const char *top)
{
	size_t n = top ? strlen(top) : 0;

	if (!n || strncmp(path, top, n) != 0 || (path[n] && path[n] != '/'))
		return NULL;
	return path[n] ? path + n + 1 : ".";
}

/* A folder on the host by which paths are found: the project's, or that of its git. */
struct top {
	int fd;
	const char *path;
};

/* Opens what a file names that lies in the folder `from`; *ret_path is where, below the top. */
static int open_named(
	const struct top *top, const char *from, const char *target, char ret_path[static PATH_MAX])
{
	bool is_absolute = target[0] == '/';
	const char *start = is_absolute ? below(target, top->path) : target;

	if (top->fd < 0 || !start || !project_git_join(is_absolute ? "" : from, start, ret_path))
		return -EXDEV;
	return file_open_beneath(top->fd, ret_path[0] ? ret_path : ".", O_RDONLY | O_DIRECTORY, 0);
}

/* A repository's folder may say that refs are in another's, as that of a linked worktree does. */
static int open_common(const struct top *top, const char *own_path, struct repository *ret)
{
	char target[PATH_MAX], path[PATH_MAX];
	ssize_t n = project_git_read_line(ret->own, "commondir", target, sizeof(target));

	if (n == -ENOENT)
		ret->common = file_open_name(ret->own, ".", O_RDONLY | O_DIRECTORY);
	else
		ret->common = n < 0 ? (int)n : open_named(top, own_path, target, path);
	return ret->common < 0 ? ret->common : 0;
}

/* 1; 0: it names none; -EXDEV: it is where nobody looks. */
static int follow_file(
	const struct change_project *p, int at, const char *path, struct repository *ret)
{
	static const char word[] = "gitdir: ";
	const struct top project = { p->top, p->path }, git = { p->git, p->git_path };
	const struct top *top = &project;
	char text[PATH_MAX], from[PATH_MAX], own[PATH_MAX];
	const char *target = text + sizeof(word) - 1;
	int r;

	if (project_git_read_line(at, ".git", text, sizeof(text)) < (ssize_t)sizeof(word) ||
		!str_starts(text, word))
		return 0;
	snprintf(from, sizeof(from), "%.*s", (int)(strlen(path) - strlen(".git")), path);
	r = ret->own = open_named(top, from, target, own);
	if (r < 0 && target[0] == '/') {
		top = &git;
		r = ret->own = open_named(top, "", target, own);
	}
	if (r >= 0)
		r = open_common(top, own, ret);
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? -EXDEV : r < 0 ? r : 1;
}

/* --- HEAD --- */

static bool is_commit(const char *text)
{
	size_t n = strspn(text, "0123456789abcdef");

	return (n == 40 || n == 64) && !text[n];
}

/* Finds a ref among those that are packed, each in a line "COMMIT REF". */
static int find_packed(int common, const char *ref, char ret[static SHA256_HEX_SIZE])
{
	own_fd int fd = file_open_name(common, "packed-refs", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	own_free char *bytes = NULL;
	size_t n = 0;
	int r = fd < 0 ? fd : file_read_all(fd, MAX_PACKED, &bytes, &n);

	if (r < 0)
		return r;
	for (char *save = NULL, *line = strtok_r(bytes, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		char *space = strchr(line, ' ');

		if (!space || !str_eq(space + 1, ref))
			continue;
		*space = '\0';
		if (!is_commit(line))
			return -EBADMSG;
		memcpy(ret, line, strlen(line) + 1);
		return 0;
	}
	return -ENOENT;
}

static int read_commit(const struct repository *at, char ret[static SHA256_HEX_SIZE])
{
	static const char word[] = "ref: ";
	char text[MAX_REF], ref[MAX_REF];
	ssize_t n = project_git_read_line(at->own, "HEAD", text, sizeof(text));

	for (unsigned i = 0; i < MAX_LINKS && n >= 0 && !is_commit(text); i++) {
		snprintf(ref, sizeof(ref), "%s", str_starts(text, word) ? text + strlen(word) : "");
		if (!str_starts(ref, "refs/"))
			return -EBADMSG;
		/* What git writes there where refs are kept in tables. */
		if (str_eq(ref, "refs/heads/.invalid"))
			return -EPROTONOSUPPORT;
		n = project_git_read_line(at->common, ref, text, sizeof(text));
		if (n == -ENOENT || n == -EISDIR || n == -ENOTDIR) {
			int r = find_packed(at->common, ref, ret);

			/* A branch on which nobody has committed. */
			if (r == -ENOENT)
				snprintf(ret, SHA256_HEX_SIZE, "none");
			return r == -ENOENT ? 0 : r;
		}
	}
	if (n < 0 || !is_commit(text))
		return n < 0 ? (int)n : -ELOOP;
	memcpy(ret, text, strlen(text) + 1);
	return 0;
}

/* --- the index --- */

static int read_index(int own, char ret[static SHA256_HEX_SIZE])
{
	own_fd int fd = file_open_name(own, "index", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	own_free char *bytes = NULL;
	size_t n = 0;
	int r = fd < 0 ? fd : file_read_all(fd, CHANGE_GIT_MAX_INDEX, &bytes, &n);

	if (r == -ENOENT)
		sha256_hex("", 0, ret);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return change_git_index_digest(bytes, n, ret) ? 0 : -EPROTO;
}

/*
 * What the repository of a folder says: `path` is that of the folder's .git, which is a folder that
 * passes for a repository's or a file that names one. 1; 0 where that file names none; -errno.
 */
static int change_project_read_git(const struct change_project *p, int at, const char *path,
	bool is_file, struct change_project_git *ret, struct err *e)
{
	own(repository) struct repository git = { -1, -1 };
	int r = 1;

	*ret = (struct change_project_git){ .commit = "outside", .index = "-" };
	if (is_file) {
		r = follow_file(p, at, path, &git);
	} else {
		const struct top top = { p->top, p->path };

		git.own = file_open_name(at, ".git", O_RDONLY | O_DIRECTORY);
		r = git.own < 0 ? git.own : open_common(&top, path, &git);
		r = r < 0 ? r : 1;
	}
	if (r == -EXDEV || r == 0)
		return r == 0 ? 0 : 1;
	if (r == 1)
		r = read_commit(&git, ret->commit);
	if (r < 0)
		return err_set(e, ERR_SYS, -r, "cannot find the commit of '%s': %s", path,
			r == -EPROTONOSUPPORT ? "its refs are in tables (reftable)" : strerror(-r));
	r = read_index(git.own, ret->index);
	if (r < 0)
		return err_set(e, ERR_SYS, -r, "cannot read the index of '%s': %s", path,
			r == -EPROTO ? "it is split, sparse, or of an unknown version"
				     : strerror(-r));
	return 1;
}

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
