/*
 * verify_trees - is the image, is the overlay, still what the record tells of?
 *
 * Runs as:  whoever wants to know.
 * Must not: follow a link below their tops, change anything, or take what could not be read as
 * good.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "change/overlay/change_overlay.h"
#include "proof/verify/verify_inside.h"

struct hashing {
	const struct change_progress *progress;
	const char *what;
	struct tree_counts counts;
};

static int trees_tell(void *of)
{
	struct hashing *h = of;

	if (h->progress->tell)
		h->progress->tell(h->progress->of, h->what, h->counts.bytes >> 20, 0);
	return 0;
}

static int digest_tree(int fd, const char *what, const struct change_progress *progress,
	char ret[static SHA256_HEX_SIZE], struct err *e)
{
	struct hashing h = { .progress = progress, .what = what };
	struct tree_options o = { .counts = &h.counts, .step = trees_tell, .of = &h };
	int r = tree_digest_with(fd, &o, ret, e);

	change_progress_end(progress);
	return r;
}

/* Where a path leads that is written as plans have it; false: that cannot be known. */
static bool trees_resolve(
	const char *path, const struct verify_options *o, char ret[static PATH_MAX])
{
	const struct {
		const char *prefix, *stands_for;
	} parts[] = { { "~", o->home }, { "$PROJECT", o->project }, { "", "" } };

	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		size_t n = strlen(parts[i].prefix);
		int len;

		if (!str_starts(path, parts[i].prefix) || (path[n] && path[n] != '/'))
			continue;
		len = snprintf(ret, PATH_MAX, "%s%s",
			parts[i].stands_for ? parts[i].stands_for : "", path + n);
		return parts[i].stands_for && ret[0] == '/' && len < PATH_MAX;
	}
	return false;
}

/* --- the image --- */

static void compare_image(const struct record_artifact *image, const char *path,
	const struct change_progress *progress, struct verify_report *report)
{
	own_fd int fd = file_open(path, O_RDONLY | O_DIRECTORY);
	char digest[SHA256_HEX_SIZE];
	struct err e = { 0 };

	if (fd < 0)
		verify_say(report, "image", VERIFY_ABSENT, "'%s' cannot be opened: %s", path,
			strerror(-fd));
	else if (digest_tree(fd, "hashing the image, MiB", progress, digest, &e) < 0)
		verify_say(
			report, "image", VERIFY_ABSENT, "'%s' cannot be hashed: %s", path, e.text);
	else if (!str_eq(digest, image->sha256))
		verify_say(report, "image", VERIFY_NO, "'%s' is not what it was: its digest is %s",
			path, digest);
	else
		verify_say(report, "image", VERIFY_YES, "'%s': %s", path, digest);
}

void verify_image(
	const struct verify_record *v, const struct verify_options *o, struct verify_report *report)
{
	const struct record_artifact *image = &v->record.image;
	const char *name = image->name ? image->name : "";
	char path[PATH_MAX];

	if (!image->sha256)
		verify_say(
			report, "image", VERIFY_ABSENT, "the record has no digest of '%s'", name);
	else if (o->is_quick)
		verify_say(report, "image", VERIFY_UNASKED, "%s was not hashed again", name);
	else if (!str_starts(name, "dir:") || !trees_resolve(name + strlen("dir:"), o, path))
		verify_say(report, "image", VERIFY_ABSENT,
			"'%s' cannot be hashed again: only dir: with a path that is known can",
			name);
	else
		compare_image(image, path, &o->progress, report);
}

/* --- the overlay --- */

/* Opens it, and sees what the last run left; false where that was said. */
static bool open_overlay(const char *path, const char *after, struct change_overlay *ret,
	struct verify_report *report)
{
	struct err e = { 0 };
	int r = change_overlay_find(ret, path, &e);

	if (r == 0 && ret->folder < 0)
		r = err_set(&e, ERR_SYS, ENOENT, "'%s' is not there", path);
	if (r == 0)
		r = change_overlay_open(ret, &e);
	if (r < 0)
		verify_say(report, "overlay", VERIFY_ABSENT, "%s", e.text);
	else if (!str_eq(ret->digest, after))
		verify_say(report, "overlay", VERIFY_ABSENT,
			"another run has written to '%s' since", path);
	else
		return true;
	return false;
}

static void compare_overlay(const char *path, const char *after,
	const struct change_progress *progress, struct verify_report *report)
{
	own(change_overlay) struct change_overlay x, again;
	char digest[SHA256_HEX_SIZE];
	struct err e = { 0 };
	own_fd int tree = -1;

	change_overlay_init(&x);
	change_overlay_init(&again);
	if (!open_overlay(path, after, &x, report))
		return;
	tree = change_overlay_tree(&x, &e);
	if (tree < 0 || digest_tree(tree, "hashing the overlay, MiB", progress, digest, &e) < 0)
		verify_say(report, "overlay", VERIFY_ABSENT, "'%s' cannot be hashed: %s", path,
			e.text);
	else if (str_eq(digest, after))
		verify_say(report, "overlay", VERIFY_YES, "'%s': %s", path, digest);
	/* A run may have ended meanwhile, and replaced it. */
	else if (open_overlay(path, after, &again, report))
		verify_say(report, "overlay", VERIFY_NO,
			"'%s' is not what the run left: its digest is %s", path, digest);
}

void verify_overlay(
	const struct verify_record *v, const struct verify_options *o, struct verify_report *report)
{
	const char *name = v->record.overlay.path, *after = v->record.overlay.sha256_after;
	char path[PATH_MAX];

	if (!name)
		return;
	if (!v->record.overlay.is_saved || !after)
		verify_say(report, "overlay", VERIFY_ABSENT,
			"what the run wrote to '%s' was not saved", name);
	else if (o->is_quick)
		verify_say(report, "overlay", VERIFY_UNASKED, "'%s' was not hashed again", name);
	else if (!trees_resolve(name, o, path))
		verify_say(report, "overlay", VERIFY_ABSENT, "nobody knows where '%s' leads", name);
	else
		compare_overlay(path, after, &o->progress, report);
}
