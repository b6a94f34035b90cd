/*
 * change_project_git - which commit a repository is at, and what is staged in it, without git.
 *
 * Runs as:  the operator.
 * Must not: follow a link, run anything, leave the project and the folder of its git.
 */
#include <errno.h>
#include <fcntl.h>
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
#include "change/project/change_project.h"

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

bool change_project_is_git(int at, const char *name)
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

int change_project_read_git(const struct change_project *p, int at, const char *path, bool is_file,
	struct change_project_git *ret, struct err *e)
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
