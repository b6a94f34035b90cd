/*
 * keeper_copy - what the project is before the run: its digest for the record, and its copy where
 * no overlay can be. An overlay that cannot change what belongs to others has these files copied
 * into its layer.
 *
 * Runs as:  the keeper; the copying itself is done by a process that has the rights of the
 *           project's owner and no other: started by root, it hands the cage nothing that the
 *           owner could not read.
 * Leaves:   `copy` in the layer, and in the place of the project among the sources; before the
 *           command runs also `list`, as change_copy.h says. Or `upper` with what is others', and
 *           `list` if there is anything.
 * Must not: write to the project; let the command start on a copy that is not complete, or before
 *           the digest is taken: afterwards it would be of something else.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "change/copy/change_copy.h"
#include "change/project/change_tree.h"
#include "keeper/inspect/keeper_mounts.h"
#include "keeper/keeper_inside.h"

#define TELL_NS ((uint64_t)100 * 1000 * 1000)

/* What the process that copies says: how far it is and, in the end, how that went. */
struct said {
	uint64_t done;
	bool is_over;
	int result;
	struct tree_counts counts;
	struct err e;
};

static_assert(sizeof(struct said) <= 4096, "a pipe takes it whole");

struct copier {
	pid_t keeper;
	int from, to;
	int pipe;
	struct stat owner; /* of what is copied */
	bool others_only;  /* and only what is not the user's and of the group: */
	gid_t group;
	uint64_t next_ns; /* when to tell again */
	struct said said;
};

/* --- the process that copies --- */

static int become_owner(const struct stat *owner)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	if (geteuid() == 0 && (syscall(SYS_setgroups, 0, NULL) < 0 ||
				      setresgid(owner->st_gid, owner->st_gid, owner->st_gid) < 0 ||
				      setresuid(owner->st_uid, owner->st_uid, owner->st_uid) < 0))
		return -errno;
	if (syscall(SYS_capset, &head, none) < 0)
		return -errno;
	/* It has the operator's memory, and is now somebody else's process. */
	return prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : 0;
}

static int keeper_copy_tell(void *of)
{
	struct copier *c = of;
	uint64_t now = clock_ns();

	c->said.done++;
	if (now < c->next_ns)
		return 0;
	c->next_ns = now + TELL_NS;
	return file_write_all(c->pipe, &c->said, sizeof(c->said));
}

static int copy_as_owner(struct copier *c, struct err *e)
{
	struct tree_options options = { .is_plain = true,
		.drops_ids = true,
		.others_only = c->others_only,
		.group = c->group,
		.counts = &c->said.counts,
		.step = keeper_copy_tell,
		.of = c };
	int r = become_owner(&c->owner);

	if (r < 0)
		return err_sys(e, -r, "cannot become its owner");
	/* Nobody would have been told of its end. */
	if (getppid() != c->keeper)
		return -ESRCH;
	return tree_copy(c->from, c->to, &options, e);
}

static _Noreturn void be_copier(struct copier *c)
{
	c->said.result = copy_as_owner(c, &c->said.e);
	c->said.is_over = true;
	_exit(file_write_all(c->pipe, &c->said, sizeof(c->said)) < 0 ? 1 : 0);
}

/* --- the keeper meanwhile --- */

static int hear_copier(struct keeper *k, int pipe, struct tree_counts *ret_counts, struct err *e)
{
	struct said said;
	ssize_t n = read(pipe, &said, sizeof(said));

	if (n < 0 && errno == EINTR)
		return 1;
	if (n != (ssize_t)sizeof(said))
		return err_set(e, ERR_REFUSED, ECHILD,
			"cannot finish: the process that copies was ended from outside");
	*ret_counts = said.counts;
	if (said.is_over && said.result < 0)
		*e = said.e;
	if (said.is_over)
		return said.result;
	if (k->q->progress.tell)
		k->q->progress.tell(k->q->progress.of, "copying the project", said.done, 0);
	return 1;
}

/* Until it is done, or a signal ends us. */
static int await_copier(struct keeper *k, int pipe, struct tree_counts *ret_counts, struct err *e)
{
	struct pollfd fds[] = { { .fd = pipe, .events = POLLIN },
		{ .fd = k->signals, .events = POLLIN } };
	int r = 1;

	while (r > 0) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return err_sys(e, errno, "cannot wait for the project's copy");
		if (fds[1].revents && keeper_hear_signal(k, e) < 0)
			return -EINTR;
		if (fds[0].revents)
			r = hear_copier(k, pipe, ret_counts, e);
	}
	return r;
}

static int run_copier(struct keeper *k, struct copier *c, struct err *e)
{
	own_fd int ours = -1, theirs = -1;
	int ends[2], r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "cannot make a pipe");
	ours = ends[0];
	theirs = c->pipe = ends[1];
	pid = fork();
	if (pid == 0)
		be_copier(c);
	if (pid < 0)
		return err_sys(e, errno, "cannot start a process");
	/* From here on the pipe ends with it. */
	close(take_fd(&theirs));
	r = await_copier(k, ours, &c->said.counts, e);
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	change_progress_end(&k->q->progress);
	return r;
}

/* --- before and after --- */

static const struct tree {
	enum plan_op_kind kind;
	const char *what; /* for sentences */
} trees[CAGE_LAYER_COUNT] = {
	[CAGE_LAYER_PROJECT] = { PLAN_PROJECT, "the project" },
	[CAGE_LAYER_GIT] = { PLAN_GIT, "git's folder" },
};

/* Refused: no other plan would mend it. */
static int copy_refuse(const char *what, const struct err *why, const char *hint, struct err *e)
{
	return err_hint(e,
		err_set(e, ERR_REFUSED, why->num, "cannot capture %s by copying it: %.300s", what,
			why->text),
		"%s", hint);
}

static int copy_explain(const char *what, int r, struct err *e)
{
	const struct err why = *e;
	const char *hint = why.hint;

	if (r == 0 || why.kind == ERR_SIGNAL)
		return r;
	if (why.num == ENOSPC || why.num == EDQUOT)
		hint = "set XDG_STATE_HOME to a place with more room";
	if (why.num == EACCES)
		hint = geteuid() == 0 ? "its owner must be able to read all of it"
				      : "you must be able to read all of it";
	return copy_refuse(what, &why, hint, e);
}

/* What a run takes away is marked by devices and attributes, in the end: too late to fail. */
static int try_marks(int copy, struct err *e)
{
	const char *missing = NULL;

	if (fsetxattr(copy, "user.bawn", "", 0, 0) < 0 || fremovexattr(copy, "user.bawn") < 0)
		missing = "attributes";
	else if (mknodat(copy, "gone", S_IFCHR, 0) < 0 || unlinkat(copy, "gone", 0) < 0)
		missing = "whiteouts";
	if (!missing)
		return 0;
	return err_hint(e,
		err_sys(e, errno, "the file system of the run's folder has no %s", missing),
		"set XDG_STATE_HOME to another place");
}

/* Nothing is copied that an overlay would not show; nor does a copy hold itself. */
static int copy_check_source(const struct keeper *k, const char *source, struct err *e)
{
	struct arena arena;
	struct keeper_snapshot host;
	char link[64], folder[4096];
	ssize_t n;
	int r;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", k->layer.folder);
	n = readlink(link, folder, sizeof(folder) - 1);
	if (n < 0)
		return err_sys(e, errno, "the run's folder");
	folder[n] = '\0';
	if (str_path_within(folder, source))
		return err_hint(e, err_set(e, ERR_SYS, ELOOP, "the run's folder is in it"),
			"set XDG_STATE_HOME to another place");
	arena_init(&arena, KEEPER_MAX_VIEW);
	r = keeper_snapshot_read_own(&host, k->own.filter_count, &arena, e);
	if (r == 0)
		r = keeper_refuse_nested(&host, source, e);
	arena_done(&arena);
	return r;
}

static bool has_any(const struct tree_counts *n)
{
	return n->files + n->folders + n->links + n->others > 0;
}

const struct tree_counts *keeper_copied(
	const struct keeper *k, enum cage_layer which, const char **ret_what)
{
	const struct tree_counts *counts = &k->layer.trees[which].copied;

	*ret_what = trees[which].what;
	return has_any(counts) ? counts : NULL;
}

static int make_copy(struct keeper *k, enum cage_layer which, uint32_t index, struct err *e)
{
	own_fd int copy = file_open_name(k->layer.trees[which].top, "copy", O_RDONLY | O_DIRECTORY);
	struct copier c = { .keeper = getpid(), .from = k->layer.trees[which].below, .to = copy };
	int r;

	if (copy < 0 || fstat(c.from, &c.owner) < 0)
		return err_set(e, ERR_SYS, copy < 0 ? -copy : errno, "%s",
			strerror(copy < 0 ? -copy : errno));
	r = copy_check_source(k, k->sources.items[index].path, e);
	if (r == 0)
		r = try_marks(copy, e);
	if (r == 0)
		r = run_copier(k, &c, e);
	if (r == 0)
		k->layer.trees[which].copied = c.said.counts;
	return r == 0 ? keeper_sources_replace(&k->sources, &k->start, index, take_fd(&copy), e)
		      : r;
}

/* May there be something in it that an overlay cannot change? */
static bool has_others(const struct keeper *k, enum cage_layer which, const struct plan_op *op)
{
	struct stat st;

	if (!(op->flags & PLAN_CAPTURED) || op->flags & (PLAN_COPIED | PLAN_IN_POOL | PLAN_SHARED))
		return false;
	if (ids_user() == 0 || fstat(k->layer.trees[which].below, &st) < 0)
		return false;
	return k->start.ids.is_team || st.st_uid != ids_user() || st.st_gid != ids_group();
}

/* The layer begins with what an overlay could not copy up; `list.new` says that this goes on. */
static int fill_layer(struct keeper *k, enum cage_layer which, struct err *e)
{
	int top = k->layer.trees[which].top;
	own_fd int upper = file_open_name(top, "upper", O_RDONLY | O_DIRECTORY);
	struct copier c = { .keeper = getpid(),
		.from = k->layer.trees[which].below,
		.to = upper,
		.others_only = true,
		.group = k->start.ids.gid };
	int r;

	if (upper < 0 || mknodat(top, "list.new", S_IFREG | 0600, 0) < 0)
		return err_set(e, ERR_SYS, upper < 0 ? -upper : errno, "%s",
			strerror(upper < 0 ? -upper : errno));
	r = run_copier(k, &c, e);
	if (r < 0)
		return r;
	k->layer.trees[which].is_filled = has_any(&c.said.counts);
	k->layer.trees[which].copied = c.said.counts;
	if (!k->layer.trees[which].is_filled && unlinkat(top, "list.new", 0) < 0)
		return err_sys(e, errno, "cannot remove its list");
	return 0;
}

/* Copies the project, if the plan captures it in that way. Signals are heard already. */
static int keeper_copy_make(struct keeper *k, struct err *e)
{
	int r = 0;

	for (enum cage_layer which = 0; r == 0 && which < CAGE_LAYER_COUNT; which++) {
		const struct plan *p = k->start.plan;
		const struct plan_op *op = plan_find(p, trees[which].kind, NULL);

		if (op && op->flags & PLAN_COPIED)
			r = copy_explain(trees[which].what,
				make_copy(k, which, (uint32_t)(op - plan_ops(p)), e), e);
		else if (op && has_others(k, which, op))
			r = copy_explain(trees[which].what, fill_layer(k, which, e), e);
	}
	return r;
}

/* The list is there once it is whole, and the clock has gone on. */
static int write_list(int top, const char *name, struct err *e)
{
	own_fd int copy = file_open_name(top, name, O_RDONLY | O_DIRECTORY);
	own_fd int list = openat(top, "list.new", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (copy < 0 || list < 0)
		return err_set(e, ERR_SYS, copy < 0 ? -copy : errno, "%s",
			strerror(copy < 0 ? -copy : errno));
	r = change_copy_list(copy, list, e);
	if (r == 0 && (fsync(list) < 0 || renameat(top, "list.new", top, "list") < 0))
		r = err_sys(e, errno, "cannot write its list");
	return r == 0 ? change_copy_settle(list, e) : r;
}

int keeper_copy_list(const struct keeper *k, struct err *e)
{
	int r = 0;

	for (enum cage_layer which = 0; r == 0 && which < CAGE_LAYER_COUNT; which++)
		if (k->layer.trees[which].is_copied || k->layer.trees[which].is_filled)
			r = copy_explain(trees[which].what,
				write_list(k->layer.trees[which].top,
					k->layer.trees[which].is_copied ? "copy" : "upper", e),
				e);
	return r;
}

/* --- digests --- */

/*
 * Digests of image and project as they are before the command runs, taken from the descriptors that
 * were opened for the cage. An image that the operator cannot read, as one of root's, has none, and
 * the record says why; a project whose digest was asked for is refused then.
 */

#define STEPS_UNHEARD 64 /* between two looks for signals */

struct listener {
	struct keeper *k;
	unsigned steps;
	struct err e; /* what ended it */
};

static int digest_hear(void *of)
{
	struct listener *l = of;
	struct pollfd signals = { .fd = l->k->signals, .events = POLLIN };

	if (++l->steps % STEPS_UNHEARD || poll(&signals, 1, 0) <= 0)
		return 0;
	return keeper_hear_signal(l->k, &l->e) < 0 ? -EINTR : 0;
}

/* `project`, or NULL: the tree is an image. */
static int digest(struct keeper *k, int top, struct change_project *project,
	struct record_tree *ret, struct err *e)
{
	own_fd int fd = file_open_name(top, ".", O_RDONLY | O_DIRECTORY);
	struct listener l = { .k = k };
	struct change_tree q = { .fd = fd,
		.known = k->q->digests,
		.settled_ms = CHANGE_TREE_SETTLED_MS,
		.project = project,
		.what = project ? "hashing the project, MiB" : "hashing the image, MiB",
		.progress = k->q->progress,
		.step = digest_hear,
		.of = &l };
	struct change_tree_digest found = { 0 };
	int r;

	if (project)
		project->top = fd;
	r = fd < 0 ? err_sys(e, -fd, "cannot open it") : change_tree_digest(&q, &found, e);
	if (l.e.kind != ERR_NONE)
		*e = l.e;
	if (r == 0 && project) {
		sha256_hex(buf_text(&found.list), found.list.len, ret->list);
		buf_add(k->q->project_list, buf_text(&found.list), found.list.len);
	}
	buf_done(&found.list);
	if (r < 0)
		return r;
	memcpy(ret->sha256, found.sha256, sizeof(ret->sha256));
	ret->files = found.files;
	ret->bytes = found.bytes;
	return 0;
}

static int digest_image(struct keeper *k, struct err *e)
{
	const struct plan_op *op = plan_find(k->start.plan, PLAN_IMAGE, NULL);
	int source = op ? k->sources.fds[op - plan_ops(k->start.plan)] : -1;
	struct record_tree *image = &k->record->image;

	/* Another way to make the same cage needs no other digest. */
	if (source < 0 || image->sha256[0])
		return 0;
	image->error = (struct err){ 0 };
	if (digest(k, source, NULL, image, &image->error) == 0)
		return 0;
	if (image->error.kind != ERR_SIGNAL)
		return 0;
	*e = image->error;
	return -EINTR;
}

/* The host's folder of a tree of the cage, also where the cage has a copy; -1: there is none. */
static int host_tree(const struct keeper *k, enum plan_op_kind kind, enum cage_layer which)
{
	const struct plan_op *op = plan_find(k->start.plan, kind, NULL);
	int below = k->layer.trees[which].below;

	if (!op)
		return -1;
	return below >= 0 ? below : k->sources.fds[op - plan_ops(k->start.plan)];
}

static int digest_project(struct keeper *k, struct err *e)
{
	struct change_project project = { .path = k->q->project,
		.git = host_tree(k, PLAN_GIT, CAGE_LAYER_GIT),
		.git_path = k->q->git };
	int top = host_tree(k, PLAN_PROJECT, CAGE_LAYER_PROJECT), r;

	if (!k->q->digests_project || top < 0 || k->record->project.sha256[0])
		return 0;
	r = digest(k, top, &project, &k->record->project, e);
	if (r < 0 && e->kind != ERR_SIGNAL) {
		e->kind = ERR_REFUSED;
		err_prefix(e, "cannot make a digest of the project '%s'", k->q->project);
	}
	return r;
}

/* Digests of the image, and of the project where that was asked for, into the record. */
static int keeper_digest(struct keeper *k, struct err *e)
{
	int r = digest_image(k, e);

	if (r == 0)
		r = digest_project(k, e);
	/* The cage's time is its own. */
	if (r == 0)
		keeper_set_timer(&k->clock, k->clock.ready_ms);
	return r;
}

const struct keeper_part keeper_copy_part = {
	.take = { [KEEPER_PREPARE] = keeper_copy_make, [KEEPER_MEANWHILE] = keeper_digest },
};
