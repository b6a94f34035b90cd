/*
 * keeper_protect_find - what of a writable project has to be held, and how.
 *
 * Runs as:  the keeper, before the clone.
 * Reads:    the project, name by name from its top: what is there, what is missing, where links
 *           lead; of files only `.git`, where that is one.
 * Must not: follow a link, guess. What cannot be held is refused, because a protection with a hole
 *           is none.
 *
 * A path is held at its first part that is missing or no folder, or else at its end; the folders on
 * the way have to stay where they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/start/keeper_layers.h"

#define MOST_HELD 1024 /* mounts; a kernel lets a namespace have 100,000 */

struct finding {
	struct keeper_protect *hold;
	const struct plan *plan;
	const struct plan_op *whole; /* the project's */
	const struct plan_op *op;    /* the one at work */
	const char *project;         /* its real path */
	const char *repository;      /* git's own folder below it; "": it is that */
	int fd;                      /* the project */
};

/* Is it for the tree that is looked at? */
static bool is_of_tree(const struct finding *f, const struct plan_op *op)
{
	return cage_layer_of(op) == cage_layer_of(f->whole);
}

/* --- what is found --- */

static int protect_find_no_memory(struct err *e)
{
	return err_set(e, ERR_SYS, ENOMEM, "cannot protect paths of the project: out of memory");
}

static bool protect_find_is_found(const struct keeper_protect *h, const char *path)
{
	for (size_t i = 0; i < h->count; i++)
		if (str_eq(h->items[i].path, path))
			return true;
	return false;
}

static int protect_find_add(struct finding *f, const char *path, enum cage_held_kind kind,
	const char *text, struct err *e)
{
	struct keeper_protect *h = f->hold;
	const char *copy = arena_copy(&h->arena, path, strlen(path));

	if (!copy)
		return protect_find_no_memory(e);
	if (h->count == MOST_HELD)
		return err_set(e, ERR_REFUSED, E2BIG,
			"cannot protect paths of the project: there are too many");
	h->items[h->count++] = (struct cage_protected){ .path = copy,
		.text = text,
		.kind = kind,
		.op = (uint32_t)(f->op - plan_ops(f->plan)) };
	return 0;
}

/* --- what stands for something that is missing --- */

static bool is_one_of(const char *path, const char *const *names)
{
	while (*names && !str_eq(path, *names))
		names++;
	return *names;
}

/*
 * Chosen so that programs notice least: git lists neither empty folders nor sockets as untracked,
 * and reading a socket fails at once. In git's own folder nothing is listed, and a file is read.
 */
static int add_missing(struct finding *f, const char *path, struct err *e)
{
	static const char *const folders[] = { ".claude", ".codex", ".gemini", ".git", ".idea",
		".opencode", ".vscode", NULL };
	static const char *const folders_of_git[] = { "hooks", "info", NULL };
	size_t n = strlen(f->repository);
	const char *in_git = n == 0                                            ? path
			     : str_path_within(path, f->repository) && path[n] ? path + n + 1
									       : "";

	if (is_one_of(path, folders) || is_one_of(in_git, folders_of_git) ||
		str_eq(path, f->repository))
		return protect_find_add(f, path, CAGE_HELD_FOLDER, NULL, e);
	/* Says where the rest of the repository is; a point is here. */
	if (str_eq(in_git, "commondir"))
		return protect_find_add(f, path, CAGE_HELD_FILE, ".\n", e);
	return protect_find_add(f, path, *in_git ? CAGE_HELD_FILE : CAGE_HELD_NAME, "", e);
}

/* --- what is there --- */

/* The real path of what is open; false where there is none. */
static bool protect_find_path_of(int fd, char ret[static PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = fd < 0 ? -1 : readlink(link, ret, PATH_MAX - 1);
	ret[n < 0 ? 0 : n] = '\0';
	return n > 0;
}

/* What a text means that stands at `path` of the project and is a path itself. */
static bool make_whole(
	const struct finding *f, const char *path, const char *text, char ret[static PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	int n = text[0] == '/' ? snprintf(ret, PATH_MAX, "%s", text)
			       : snprintf(ret, PATH_MAX, "%s/%.*s%s", f->project,
					 slash ? (int)(slash + 1 - path) : 0, path, text);

	return n >= 0 && n < PATH_MAX;
}

/*
 * A link can be held like anything else; but what it leads to must not be in the project, nor a
 * further link, which might be.
 */
static int protect_find_check_link(
	struct finding *f, int at, const char *name, const char *path, struct err *e)
{
	char target[PATH_MAX] = "", whole[PATH_MAX], real[PATH_MAX];
	ssize_t n = readlinkat(at, name, target, sizeof(target) - 1);
	own_fd int there = n > 0 && make_whole(f, path, target, whole)
				   ? file_open_real(whole, O_PATH)
				   : -ENOENT;
	bool is_plain = protect_find_path_of(there, real);

	if (is_plain && !str_path_within(real, f->project))
		return 0;
	return err_set(e, ERR_REFUSED, ELOOP,
		"cannot protect '%.80s' of the project: it is a link to '%.120s', which %s", path,
		target,
		is_plain ? "can be written" : "is not there, or is reached by another link");
}

/* What has a second name can be changed by that. */
static int protect_find_check_names(const struct stat *st, const char *path, struct err *e)
{
	if (!S_ISREG(st->st_mode) || st->st_nlink == 1)
		return 0;
	return err_hint(e,
		err_set(e, ERR_REFUSED, EMLINK,
			"cannot protect '%s' of the project: it has another name (a hard link), "
			"through which it could be changed",
			path),
		"copy it onto itself");
}

static int hold_git_file(struct finding *f, int at, struct err *e);

/* Something that is there, and the end of the path or no folder. */
static int add_there(struct finding *f, int at, const char *name, const char *path,
	const struct stat *st, struct err *e)
{
	int r = protect_find_check_names(st, path, e);

	if (r == 0 && S_ISLNK(st->st_mode))
		r = protect_find_check_link(f, at, name, path, e);
	if (r == 0)
		r = protect_find_add(f, path, CAGE_HELD_THERE, NULL, e);
	if (r == 0 && S_ISREG(st->st_mode) && str_eq(path, ".git"))
		r = hold_git_file(f, at, e);
	return r;
}

/* --- walking to it --- */

/* The part of the project that a path is seen in, or the project. */
static const struct plan_op *area_of(const struct finding *f, const char *path)
{
	const struct plan_op *found = f->whole;
	const struct plan_op *end = plan_ops(f->plan) + f->plan->op_count;
	size_t longest = 0;

	for (const struct plan_op *op = found + 1; op < end && op->kind == PLAN_PART; op++) {
		const char *part = plan_str(f->plan, op->b);

		if (strlen(part) > longest && str_path_within(path, part)) {
			longest = strlen(part);
			found = op;
		}
	}
	return found;
}

/* Nothing has to be held that cannot be written, or is not there for the cage. */
static bool can_be_written(const struct plan_op *area)
{
	return !(area->flags & (PLAN_READ_ONLY | PLAN_PARTS));
}

/* One part of a path. 1: go on below it, which is *at from here on; 0: it is held. */
static int protect_find_step(
	struct finding *f, int *at, const char *path, const char *name, bool is_last, struct err *e)
{
	struct stat st;
	int r, next;

	if (fstatat(*at, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return add_missing(f, path, e);
		return err_set(e, ERR_REFUSED, errno,
			"cannot inspect '%s' of the project, which is protected: %s", path,
			strerror(errno));
	}
	if (is_last || !S_ISDIR(st.st_mode))
		return add_there(f, *at, name, path, &st, e);
	/* A part is a mount already, and what leads to it cannot be written. */
	if (!protect_find_is_found(f->hold, path) && can_be_written(area_of(f, path)) &&
		!str_eq(plan_str(f->plan, area_of(f, path)->b), path)) {
		r = protect_find_add(f, path, CAGE_HELD_WAY, NULL, e);
		if (r < 0)
			return r;
	}
	next = file_open_name(*at, name, O_PATH | O_DIRECTORY);
	if (next < 0)
		return err_sys(e, -next, "cannot open '%s' of the project", path);
	close(*at);
	*at = next;
	return 1;
}

static bool protect_find_is_held(const struct keeper_protect *h, const char *path)
{
	for (size_t i = 0; i < h->count; i++)
		if (h->items[i].kind != CAGE_HELD_WAY && str_eq(h->items[i].path, path))
			return true;
	return false;
}

static int walk(struct finding *f, const char *path, struct err *e)
{
	own_fd int at = fcntl(f->fd, F_DUPFD_CLOEXEC, 3);
	char part[PATH_MAX];
	int r = 1;

	if (at < 0 || strlen(path) >= sizeof(part))
		return err_set(e, ERR_SYS, at < 0 ? errno : ENAMETOOLONG,
			"cannot look for '%s' in the project", path);
	if (!can_be_written(area_of(f, path)))
		return 0;
	for (size_t n = 0; r > 0; n++) {
		const char *name = path + n;

		n += strcspn(name, "/");
		memcpy(part, path, n);
		part[n] = '\0';
		if (protect_find_is_held(f->hold, part))
			return 0;
		r = protect_find_step(f, &at, part,
			strrchr(part, '/') ? strrchr(part, '/') + 1 : part, !path[n], e);
	}
	return r;
}

/* --- git's own folder --- */

/* The names in it that are protected where `.git` is a folder are protected elsewhere too. */
static int hold_repository(struct finding *f, const char *folder, struct err *e)
{
	const struct plan_op *end = plan_ops(f->plan) + f->plan->op_count;
	int r = 0;

	f->repository = arena_copy(&f->hold->arena, folder, strlen(folder));
	if (!f->repository)
		return protect_find_no_memory(e);
	for (const struct plan_op *op = plan_ops(f->plan); r == 0 && op < end; op++) {
		const char *path = plan_str(f->plan, op->b);
		char there[PATH_MAX];

		if (op->kind != PLAN_PROTECT || !is_of_tree(f, op) || !str_starts(path, ".git/"))
			continue;
		if (snprintf(there, sizeof(there), "%s%s", folder, path + strlen(".git")) >=
			(int)sizeof(there))
			return err_set(e, ERR_REFUSED, ENAMETOOLONG,
				"cannot open '%s': its path is too long", folder);
		r = walk(f, there, e);
	}
	return r;
}

/* A `.git` that is a file names the folder; if that is in the project, it has to be held too. */
static int hold_git_file(struct finding *f, int at, struct err *e)
{
	char text[PATH_MAX + 16], whole[PATH_MAX], real[PATH_MAX];
	own_fd int file = file_open_name(at, ".git", O_RDONLY), folder = -1;
	ssize_t n = file_read_text(file, text, sizeof(text));

	if (n < 0)
		return err_set(e, ERR_REFUSED, (int)-n, "cannot read '.git' of the project: %s",
			strerror((int)-n));
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		text[--n] = '\0';
	if (!str_starts(text, "gitdir: ") || !make_whole(f, ".git", text + 8, whole))
		return 0;
	folder = file_open(whole, O_PATH | O_DIRECTORY);
	if (!protect_find_path_of(folder, real) && !str_path_within(whole, f->project))
		return 0; /* nothing is there, and the cage cannot make it */
	if (!real[0] || str_eq(real, f->project))
		return err_set(e, ERR_REFUSED, ENOENT,
			"cannot use '.git' of the project: it leads to '%.200s', which is no "
			"repository",
			text + 8);
	if (!str_path_within(real, f->project))
		return 0;
	return hold_repository(f, real + strlen(f->project) + 1, e);
}

/* --- all of it --- */

int keeper_protect_find(struct keeper_protect *h, const struct plan *p, const struct plan_op *whole,
	int project, struct err *e)
{
	char path[PATH_MAX];
	struct finding f = { .hold = h,
		.plan = p,
		.whole = whole,
		.project = path,
		.repository = whole->kind == PLAN_GIT ? "" : ".git",
		.fd = project };
	const struct plan_op *end = plan_ops(p) + p->op_count;
	int r = 0;

	h->items = arena_array(&h->arena, MOST_HELD, sizeof(*h->items));
	if (!h->items || !protect_find_path_of(project, path))
		return protect_find_no_memory(e);
	for (f.op = plan_ops(p); r == 0 && f.op < end; f.op++)
		if (f.op->kind == PLAN_PROTECT && is_of_tree(&f, f.op))
			r = walk(&f, plan_str(p, f.op->b), e);
	return r;
}
