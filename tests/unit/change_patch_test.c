/* Effects as a diff and as a table: which lines come out, without a terminal. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "change/patch/change_patch.h"
#include "check.h"

static struct buf said;

static void add_line(void *of, enum change_line kind, const char *bytes, size_t n)
{
	(void)of;
	(void)kind;
	buf_add(&said, bytes, n);
	buf_putc(&said, '\n');
}

static void add_bytes(void *of, const char *bytes, size_t n)
{
	(void)of;
	buf_add(&said, bytes, n);
}

static struct change_patch make(struct change_effects *x)
{
	said.len = 0;
	return (struct change_patch){ .effects = x,
		.layer = -1,
		.below = -1,
		.base = -1,
		.to = { .line = add_line, .hunks = add_bytes, .raw = add_bytes } };
}

static void put(int folder, const char *name, const char *text)
{
	own_fd int fd = openat(folder, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && file_write_all(fd, text, strlen(text)) == 0);
}

static void test_quoted(void)
{
	own(buf) struct buf out = { .max = 1000 };

	change_add_quoted(&out, "a/", "plain b");
	CHECK_STR(buf_text(&out), "a/plain b");
	out.len = 0;
	change_add_quoted(&out, "a/", "line\nend\x1b[m\"\\\x80");
	CHECK_STR(buf_text(&out), "\"a/line\\nend\\033[m\\\"\\\\\\200\"");
}

/* What git would take for a part of its own folder is a comment, with its hunks. */
static void test_aside(int layer)
{
	struct change_effect one = { .path = "sub/.git/config",
		.change = CHANGE_ADDED,
		.after = { .type = CHANGE_FILE, .mode = 0644, .size = 5 },
		.is_text = true };
	struct change_effects x = { .items = &one, .count = 1 };
	struct change_patch p = make(&x);

	p.layer = layer;
	change_patch_show(&p, &one);
	CHECK_STR(buf_text(&said), "# diff --git a/sub/.git/config b/sub/.git/config\n"
				   "# new file mode 100644\n"
				   "# --- /dev/null\n"
				   "# +++ b/sub/.git/config\n"
				   "# @@ -0,0 +1 @@\n"
				   "# +evil\n");
	one.path = "config";
	p = make(&x);
	p.layer = layer;
	change_patch_show(&p, &one);
	CHECK_STR(buf_text(&said), "diff --git a/config b/config\n"
				   "new file mode 100644\n"
				   "--- /dev/null\n"
				   "+++ b/config\n"
				   "@@ -0,0 +1 @@\n"
				   "+evil\n");
}

/* A side that is not what the effects speak of is not shown as if it were. */
static void test_changed_since(int below)
{
	struct change_effect one = { .path = "old",
		.change = CHANGE_DELETED,
		.before = { .type = CHANGE_FILE, .mode = 0644, .size = 4 },
		.below = { .inode = 1, .size = 4 } };
	struct change_effects x = { .items = &one, .count = 1 };
	struct change_patch p = make(&x);

	p.below = below;
	change_patch_show(&p, &one);
	CHECK_STR(buf_text(&said),
		"# old has changed on the host since, and what it was is not kept\n"
		"#   before: 4 bytes\n");
}

static void test_bookkeeping(void)
{
	struct change_effect all[] = {
		{ .path = ".git",
			.change = CHANGE_CHANGED,
			.is_implied = true,
			.before.type = CHANGE_FOLDER,
			.after.type = CHANGE_FOLDER },
		{ .path = ".git/COMMIT_EDITMSG", .after.type = CHANGE_FILE },
		{ .path = ".git/logs/HEAD", .after.type = CHANGE_FILE },
		{ .path = ".git/objects/ab/cd", .after.type = CHANGE_FILE },
		{ .path = ".github", .after.type = CHANGE_FILE },
	};
	struct change_effects x = { .items = all, .count = 5 };
	struct change_patch p = make(&x);

	CHECK(change_is_bookkeeping(&all[0]) && change_is_bookkeeping(&all[1]));
	CHECK(!change_is_bookkeeping(&all[4]));
	CHECK(change_patch_bookkeeping(&p, 0) == 4);
	CHECK_STR(buf_text(&said), "# git: .git: objects added: 1\n"
				   "# git: .git: logs of refs: 1\n"
				   "# git: .git: COMMIT_EDITMSG\n");
	/* A hook is no bookkeeping. */
	all[1].mark = CHANGE_HELD;
	CHECK(!change_is_bookkeeping(&all[1]));
}

static void test_stat(void)
{
	struct change_effect all[] = {
		{ .path = "a",
			.change = CHANGE_CHANGED,
			.is_text = true,
			.lines_added = 2,
			.lines_removed = 1,
			.before.type = CHANGE_FILE,
			.after.type = CHANGE_FILE },
		{ .path = "hook",
			.change = CHANGE_ADDED,
			.mark = CHANGE_HELD,
			.after = { .type = CHANGE_LINK } },
	};
	struct change_effects x = { .items = all, .count = 2 };
	const char *const only[] = { "a" };
	struct change_patch p = make(&x);

	change_stat_show(&p, 80);
	CHECK_STR(buf_text(&said),
		"!hook (new +l) | link\n"
		" a             | 3 ++-\n"
		" 2 files changed, 2 insertions(+), 1 deletion(-)\n"
		" ! runs on the host without being called: bawn apply takes it by name, or with --all\n");
	p = make(&x);
	p.paths = only;
	p.path_count = 1;
	change_stat_show(&p, 80);
	CHECK(strstr(buf_text(&said), " a | 3 ++-\n 1 file changed") == buf_text(&said));
}

int main(void)
{
	char place[] = "/tmp/bawn-patch-XXXXXX";
	own_fd int folder = -1;

	buf_init(&said, (size_t)1 << 20);
	CHECK(mkdtemp(place) != NULL);
	folder = file_open(place, O_RDONLY | O_DIRECTORY);
	CHECK(folder >= 0 && mkdirat(folder, "sub", 0700) == 0 &&
		mkdirat(folder, "sub/.git", 0700) == 0);
	put(folder, "sub/.git/config", "evil\n");
	put(folder, "config", "evil\n");
	put(folder, "old", "new\n");
	test_quoted();
	test_aside(folder);
	test_changed_since(folder);
	test_bookkeeping();
	test_stat();
	unlinkat(folder, "sub/.git/config", 0);
	unlinkat(folder, "sub/.git", AT_REMOVEDIR);
	unlinkat(folder, "sub", AT_REMOVEDIR);
	unlinkat(folder, "config", 0);
	unlinkat(folder, "old", 0);
	CHECK(rmdir(place) == 0);
	buf_done(&said);
	return check_report();
}
