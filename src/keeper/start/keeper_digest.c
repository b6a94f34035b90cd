/*
 * keeper_digest - what image and project are before the command runs: digests for the record.
 *
 * Runs as:  the keeper, while the cage is made.
 * Must not: let the command start before it is done: afterwards they would be of something else.
 *
 * They are taken from the descriptors that were opened for the cage. An image that the operator
 * cannot read, as one of root's, has none, and the record says why; a project whose digest was
 * asked for is refused then.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "change/project/change_tree.h"
#include "keeper/keeper_inside.h"

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

int keeper_digest(struct keeper *k, struct err *e)
{
	int r = digest_image(k, e);

	if (r == 0)
		r = digest_project(k, e);
	/* The cage's time is its own. */
	if (r == 0)
		keeper_set_timer(&k->clock, k->clock.ready_ms);
	return r;
}
