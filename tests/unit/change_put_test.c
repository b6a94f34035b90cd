/*
 * What apply does when the host changes something at the worst moment: this program has the calls
 * renameat2, mkdirat and fchown itself, and lets the host act right before or after one of them.
 * And what it removes after an earlier call was killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "change/apply/change_put.h"
#include "change_place.h"

#define RUN       "20261115-224501-1f2e3d4c"
#define TEMPORARY ".bawn-" RUN "-00000001-"

/* --- the moment --- */

static void (*before_rename)(void), (*after_mkdir)(void);
static unsigned chowns;

static void act(void (**what)(void))
{
	void (*now)(void) = *what;

	*what = NULL; /* once */
	if (now)
		now();
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
	act(&before_rename);
	return (int)syscall(SYS_renameat2, from, old, to, new, flags);
}

int mkdirat(int at, const char *name, mode_t mode)
{
	int r = (int)syscall(SYS_mkdirat, at, name, mode);

	act(&after_mkdir);
	return r;
}

int fchown(int fd, uid_t uid, gid_t gid)
{
	chowns++;
	return (int)syscall(SYS_fchown, fd, uid, gid);
}

/* --- a tree, and one effect on its way --- */

static void write_text(const char *path, const char *text)
{
	own_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && file_write_all(fd, text, strlen(text)) == 0);
}

static void check_text(const char *path, const char *wanted)
{
	own_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[64] = "(cannot be read)";

	if (fd >= 0)
		CHECK(file_read_text(fd, text, sizeof(text)) >= 0);
	CHECK_STR(text, wanted);
}

static bool is_there(const char *path)
{
	return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

struct moment {
	struct change_apply q;
	struct change_job job;
	struct change_effect x;
	struct change_folder folder;
	struct change_put put;
	char temporary[CHANGE_NAME_SIZE];
};

/* An effect on "x" of the folder "top", which is made here. */
static void begin(struct moment *m)
{
	*m = (struct moment){ .x = { .path = "x" } };
	CHECK(mkdir("top", 0755) == 0);
	m->q.below = open("top", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	m->q.run = RUN;
	m->job.q = &m->q;
	m->job.uid = geteuid();
	m->job.gid = getegid();
	snprintf(m->job.prefix, sizeof(m->job.prefix), TEMPORARY);
	change_folder_open(&m->folder, m->q.below, NULL, m->x.path);
	m->put = (struct change_put){ .x = &m->x,
		.path = m->x.path,
		.name = m->x.path,
		.folder = &m->folder,
		.git = change_git_place_of(m->x.path),
		.host = -1,
		.verdict = CHANGE_UNDECIDED };
	change_put_name(&m->job, &m->put, m->temporary);
}

static void end(struct moment *m)
{
	CHECK(!before_rename && !after_mkdir); /* it came to that */
	close(m->folder.fd);
	close(m->q.below);
	work_place_remove("top");
}

/* --- exchanging --- */

static void put_precious(void)
{
	write_text("precious", "precious");
	CHECK(rename("precious", "top/x") == 0);
}

static void put_folder(void)
{
	CHECK(unlink("top/x") == 0 && mkdir("top/x", 0755) == 0);
	write_text("top/x/inside", "precious");
}

static void fill_folder(void)
{
	write_text("top/x/inside", "precious");
}

static void empty_place(void)
{
	CHECK(unlink("top/x") == 0);
}

/* A folder of the run takes the place of a file: that of what was seen, and of nothing else. */
static void test_exchange(void)
{
	static const struct {
		void (*host)(void);
		int result;
		const char *stays, *text;
	} rows[] = {
		{ NULL, 0, NULL, NULL },
		{ put_precious, -ESTALE, "top/x", "precious" },
		{ put_folder, -ESTALE, "top/x/inside", "precious" },
		{ empty_place, -ENOENT, NULL, NULL },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct moment m;
		struct stat st = { 0 };

		begin(&m);
		write_text("top/x", "before");
		CHECK(change_put_see(&m.put));
		CHECK(mkdirat(m.folder.fd, m.temporary, 0700) == 0);
		before_rename = rows[i].host;
		CHECK(change_put_exchange(&m.put, m.temporary) == rows[i].result);
		if (rows[i].stays)
			check_text(rows[i].stays, rows[i].text);
		/* Ours is in its place, or under its own name again. */
		CHECK(fstatat(m.folder.fd, rows[i].result ? m.temporary : "x", &st, 0) == 0 &&
			S_ISDIR(st.st_mode));
		CHECK(rows[i].result || fstatat(m.folder.fd, m.temporary, &st, 0) < 0);
		end(&m);
	}
}

/* A file of the run takes the place of an empty folder. */
static void settle_over_folder(void (*host)(void), enum change_verdict verdict)
{
	char path[sizeof("top/") + CHANGE_NAME_SIZE];
	struct moment m;

	begin(&m);
	CHECK(mkdir("top/x", 0755) == 0 && change_put_see(&m.put));
	snprintf(path, sizeof(path), "top/%s", m.temporary);
	write_text(path, "of the run");
	m.put.has_temporary = true;
	m.put.step = CHANGE_STEP_REPLACE;
	before_rename = host;
	change_put_settle(&m.job, &m.put);
	CHECK(m.put.verdict == verdict && !is_there(path));
	check_text(host ? "top/x/inside" : "top/x", host ? "precious" : "of the run");
	end(&m);
}

static void swap_folder(void)
{
	CHECK(rename("top/x", "top/aside") == 0 && mkdir("top/x", 0755) == 0);
	write_text("top/x/inside", "precious");
}

static void test_settle_folder(void)
{
	settle_over_folder(NULL, CHANGE_APPLIED);
	settle_over_folder(fill_folder, CHANGE_CONFLICT);
	settle_over_folder(swap_folder, CHANGE_CONFLICT);
}

/* Where nothing was, what appears stays. */
static void test_settle_new(void)
{
	for (int appears = 0; appears < 2; appears++) {
		char path[sizeof("top/") + CHANGE_NAME_SIZE];
		struct moment m;

		begin(&m);
		CHECK(change_put_see(&m.put) && m.put.seen.st_mode == 0);
		snprintf(path, sizeof(path), "top/%s", m.temporary);
		write_text(path, "of the run");
		m.put.has_temporary = true;
		m.put.step = CHANGE_STEP_ADD;
		before_rename = appears ? put_precious : NULL;
		change_put_settle(&m.job, &m.put);
		CHECK(m.put.verdict == (appears ? CHANGE_CONFLICT : CHANGE_APPLIED));
		check_text("top/x", appears ? "precious" : "of the run");
		CHECK(!is_there(path));
		end(&m);
	}
}

/* --- is it still what was seen? --- */

/* Changes a file as little as can be, until the clock of its file system has gone on. */
static void edit_until_later(const struct stat *was, mode_t mode)
{
	const struct timespec times[] = { was->st_atim, was->st_mtim };
	struct stat st = *was;

	while (st.st_ctim.tv_sec == was->st_ctim.tv_sec &&
		st.st_ctim.tv_nsec == was->st_ctim.tv_nsec) {
		own_fd int fd = open("top/x", O_WRONLY | O_CLOEXEC);

		CHECK(fd >= 0 && pwrite(fd, "B", 1, 0) == 1 && fchmod(fd, mode) == 0);
		CHECK(futimens(fd, times) == 0 && fstat(fd, &st) == 0);
		if (check_failed)
			return;
	}
}

/* Content of the same size, and the time put back as some editors and every attacker do. */
static void test_still_by_ctime(void)
{
	struct moment m;

	begin(&m);
	write_text("top/x", "before");
	CHECK(change_put_see(&m.put) && change_put_is_still(&m.put));
	edit_until_later(&m.put.seen, m.put.seen.st_mode & 0777);
	CHECK(!change_put_is_still(&m.put));
	m.put.old = m.put.seen;
	CHECK(change_put_open_old(&m.job, &m.put) == -ESTALE);
	close(m.put.host);
	/* It has this name: by what a renaming leaves as it is. */
	CHECK(change_put_is_under(&m.put, "x"));
	m.put.has_temporary = true;
	m.put.step = CHANGE_STEP_REPLACE;
	change_put_settle(&m.job, &m.put);
	CHECK(m.put.verdict == CHANGE_CONFLICT);
	check_text("top/x", "Before");
	end(&m);
}

/* Each value alone: what was seen, with one changed. */
static void test_still(void)
{
	struct moment m;
	struct change_put other;

	begin(&m);
	write_text("top/x", "before");
	CHECK(change_put_see(&m.put));
#define DIFFERS(member, change)                                                                    \
	do {                                                                                       \
		other = m.put;                                                                     \
		other.seen.member change;                                                          \
		CHECK(!change_put_is_still(&other));                                               \
	} while (0)
	DIFFERS(st_dev, ++);
	DIFFERS(st_ino, ++);
	DIFFERS(st_size, ++);
	DIFFERS(st_mode, ^= 0100);
	DIFFERS(st_mode, = S_IFLNK | 0777);
	DIFFERS(st_mtim.tv_sec, --);
	DIFFERS(st_mtim.tv_nsec, ^= 1);
	DIFFERS(st_ctim.tv_sec, --);
	DIFFERS(st_ctim.tv_nsec, ^= 1);
	DIFFERS(st_mode, = 0);
#undef DIFFERS
	/* Another name of it is gone, which changed its last time. */
	other = m.put;
	other.seen.st_nlink++;
	other.seen.st_ctim.tv_sec--;
	CHECK(change_put_is_still(&other));
	CHECK(unlink("top/x") == 0 && !change_put_is_still(&m.put));
	end(&m);
}

/* --- folders --- */

static char swapped_path[sizeof("top/") + CHANGE_NAME_SIZE];
static struct stat swapped;

/* The host, which owns what is around, puts one of its folders in the place of the one made. */
static void swap_new_folder(mode_t mode, uid_t owner)
{
	char inside[sizeof(swapped_path) + sizeof("/inside")];

	snprintf(inside, sizeof(inside), "%s/inside", swapped_path);
	CHECK(rmdir(swapped_path) == 0 && mkdir(swapped_path, 0700) == 0);
	write_text(inside, "precious");
	CHECK(chmod(swapped_path, mode) == 0 && chown(swapped_path, owner, (gid_t)-1) == 0);
	CHECK(lstat(swapped_path, &swapped) == 0);
}

static void swap_open_folder(void)
{
	swap_new_folder(0755, (uid_t)-1);
}

static void swap_others_folder(void)
{
	swap_new_folder(0700, geteuid() == 0 ? WORK_PLACE_USER : (uid_t)-1);
}

static void make_folder(void (*host)(void), uid_t uid, enum change_verdict verdict)
{
	struct moment m;
	struct stat st = { 0 };

	begin(&m);
	if (geteuid() == 0) {
		/* Root gives what it makes to whoever owns the folder around. */
		CHECK(chown("top", WORK_PLACE_USER + 1, WORK_PLACE_USER + 1) == 0);
		m.folder.uid = m.folder.gid = WORK_PLACE_USER + 1;
	}
	m.job.uid = uid;
	m.x.after.type = CHANGE_FOLDER;
	m.x.after.mode = 0750;
	snprintf(swapped_path, sizeof(swapped_path), "top/%s", m.temporary);
	after_mkdir = host;
	chowns = 0;
	change_put_make_folder(&m.job, &m.put);
	CHECK(m.put.verdict == verdict && is_there("top/x") == (verdict == CHANGE_APPLIED));
	if (verdict == CHANGE_APPLIED) {
		CHECK(lstat("top/x", &st) == 0 && (st.st_mode & 07777) == 0750);
		CHECK(st.st_uid == m.folder.uid);
	} else {
		CHECK(chowns == 0);
	}
	if (host)
		CHECK(lstat(swapped_path, &st) == 0 && st.st_ino == swapped.st_ino &&
			st.st_uid == swapped.st_uid && st.st_mode == swapped.st_mode);
	end(&m);
}

/* What was swapped in is neither given away nor changed. */
static void test_folder(void)
{
	uid_t us = geteuid();

	make_folder(NULL, us, CHANGE_APPLIED);
	make_folder(swap_open_folder, us, CHANGE_CONFLICT);
	if (us == 0)
		make_folder(swap_others_folder, us, CHANGE_CONFLICT);
	else /* nobody but root can give folders away: so we are somebody else */
		make_folder(NULL, us + 1, CHANGE_CONFLICT);
}

/* --- what a killed one left --- */

#define OURS TEMPORARY "0"

/* One line of the journal, as text and as long as it is. */
#define ENTRY(path, lock) path "\0" lock "\0", sizeof(path "\0" lock)

static void clean(const char *journal, size_t n)
{
	own_fd int folder = open("run", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	own_fd int top = open("top", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	own_fd int fd = open("run/apply.journal", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct err e = { 0 };

	CHECK(file_write_all(fd, journal, n) == 0);
	CHECK(change_apply_clean(folder, top, NULL, RUN, &e) == 0);
	CHECK_STR(e.text, "");
	CHECK(!is_there("run/apply.journal"));
}

/* git's own lock stays: it is a file by itself, and git is at work. */
static void test_locks(void)
{
	CHECK(mkdir("top", 0755) == 0 && mkdir("top/.git", 0755) == 0 && mkdir("run", 0700) == 0);
	/* git's, beside what we left */
	write_text("top/.git/" OURS, "ours");
	write_text("top/.git/index", "index");
	write_text("top/.git/index.lock", "git's");
	clean(ENTRY(".git/" OURS, "index.lock"));
	CHECK(!is_there("top/.git/" OURS));
	check_text("top/.git/index.lock", "git's");
	check_text("top/.git/index", "index");
	/* the same, and nothing of ours is there */
	clean(ENTRY(".git/" OURS, "index.lock"));
	check_text("top/.git/index.lock", "git's");
	/* ours: another name of the temporary file */
	CHECK(unlink("top/.git/index.lock") == 0);
	write_text("top/.git/" OURS, "ours");
	CHECK(link("top/.git/" OURS, "top/.git/index.lock") == 0);
	clean(ENTRY(".git/" OURS, "index.lock"));
	CHECK(!is_there("top/.git/" OURS) && !is_there("top/.git/index.lock"));
	check_text("top/.git/index", "index");
	/* ours: of what the temporary file has become */
	CHECK(link("top/.git/index", "top/.git/index.lock") == 0);
	clean(ENTRY(".git/" OURS, "index.lock"));
	CHECK(!is_there("top/.git/index.lock"));
	check_text("top/.git/index", "index");
	/* a link to it is not it */
	write_text("top/.git/" OURS, "ours");
	CHECK(symlink(OURS, "top/.git/index.lock") == 0);
	clean(ENTRY(".git/" OURS, "index.lock"));
	CHECK(is_there("top/.git/index.lock"));
	work_place_remove("top");
	work_place_remove("run");
}

/* Whatever a journal says, only names of this run's go, and only locks that are named so. */
static void test_names(void)
{
	static const char *const stay[] = { "index", ".bawn-" RUN, ".bawn-" RUN "x-1",
		".bawn-x" RUN "-1", "x" OURS, ".bawn-", "tmp_obj_x", "tmp_obj_x" OURS,
		"xtmp_obj_" OURS, "tmp_obj_.bawn-" RUN "x-1", ".Bawn-" RUN "-1",
		".bawn-20261115-224501-1f2e3d4-1" };
	static const char *const no_locks[] = { "index.locked", "indexlock", "../outside.lock" };
	static const char *const go[] = { OURS, "tmp_obj_" OURS };
	char path[300];

	CHECK(mkdir("top", 0755) == 0 && mkdir("top/sub", 0755) == 0 && mkdir("run", 0700) == 0);
	for (size_t i = 0; i < COUNT_OF(stay); i++) {
		char entry[302];
		int n = snprintf(entry, sizeof(entry), "sub/%s%cx.lock", stay[i], 0);

		snprintf(path, sizeof(path), "top/sub/%s", stay[i]);
		write_text(path, "stays");
		CHECK(link(path, "top/sub/x.lock") == 0);
		clean(entry, (size_t)n + 1);
		check_text(path, "stays");
		CHECK(is_there("top/sub/x.lock") && unlink("top/sub/x.lock") == 0);
	}
	for (size_t i = 0; i < COUNT_OF(go); i++) {
		char entry[302];
		int n = snprintf(entry, sizeof(entry), "sub/%s%c", go[i], 0);

		snprintf(path, sizeof(path), "top/sub/%s", go[i]);
		write_text(path, "goes");
		clean(entry, (size_t)n + 1);
		CHECK(!is_there(path));
	}
	/* Locks that are none, or elsewhere, though they are the same file. */
	for (size_t i = 0; i < COUNT_OF(no_locks); i++) {
		char entry[302];
		int n = snprintf(entry, sizeof(entry), "sub/" OURS "%c%s", 0, no_locks[i]);

		write_text("top/sub/" OURS, "ours");
		snprintf(path, sizeof(path), "top/sub/%s", no_locks[i]);
		CHECK(link("top/sub/" OURS, path) == 0);
		clean(entry, (size_t)n + 1);
		check_text(path, "ours");
		CHECK(!is_there("top/sub/" OURS));
	}
	work_place_remove("top");
	work_place_remove("run");
}

static void tests(void)
{
	umask(022);
	test_exchange();
	test_settle_folder();
	test_settle_new();
	test_still();
	test_still_by_ctime();
	test_folder();
	test_locks();
	test_names();
}

int main(void)
{
	return work_place_run(tests);
}
