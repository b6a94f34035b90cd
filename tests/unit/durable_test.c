/*
 * What is promised to be on the disk is not claimed when the disk says no: this program has fsync,
 * fdatasync and syncfs itself, counts the calls, and lets the n-th of them fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/syscall.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/tree.h"
#include "change/apply/change_put.h"
#include "change/overlay/change_overlay.h"
#include "change_place.h"
#include "keeper/keeper_inside.h"
#include "proof/log/log.h"
#include "proof/record/record.h"
#include "proof/sign/sign.h"

#define RUN "20261115-224501-1f2e3d4c"

/* --- a disk --- */

static unsigned calls, first_bad, last_bad; /* counted from 1 */

static int answer(void)
{
	calls++;
	if (calls < first_bad || calls > last_bad)
		return 0; /* the real one takes long, and says nothing more */
	errno = EIO;
	return -1;
}

int fsync(int fd)
{
	CHECK(fcntl(fd, F_GETFD) >= 0);
	return answer();
}

int fdatasync(int fd)
{
	return fsync(fd);
}

int syncfs(int fd)
{
	return fsync(fd);
}

static void fail_calls(unsigned first, unsigned last)
{
	calls = 0;
	first_bad = first;
	last_bad = last;
}

/* --- what must be durable --- */

static int folder; /* where it is made; new for each try */
static struct err said;

static int write_record(void)
{
	own(buf) struct buf text = { .max = 100 };

	buf_puts(&text, "a record\n");
	return record_write_file(folder, "a", &text, true, &said);
}

static int make_key(void)
{
	own(sign_key) struct sign_key key = { 0 };

	return sign_make_key(folder, false, &key, &said);
}

static int replace_key(void)
{
	own(sign_key) struct sign_key key = { 0 };
	unsigned first = first_bad, last = last_bad;
	int r;

	fail_calls(0, 0);
	r = make_key();
	CHECK(r == 0);
	fail_calls(first, last);
	return sign_make_key(folder, true, &key, &said);
}

static int write_log_of(int state, int chain)
{
	struct log l;
	int r = 0;

	log_init(&l, state, "r", NULL);
	l.is_synced = true;
	if (chain >= 0)
		r = log_open_chain(&l, chain, &said);
	json_int(log_begin(&l, "test"), "i", 1);
	log_end(&l);
	r = r < 0 ? r : log_write(&l);
	if (r < 0)
		said = l.failure;
	log_done(&l);
	return r;
}

static int write_chain(void)
{
	return write_log_of(-1, folder);
}

static int write_state_log(void)
{
	return write_log_of(folder, -1);
}

static int begin_journal(void)
{
	struct change_journal w = { .fd = -1 };
	bool was_there = false;
	int r = change_journal_open(&w, folder, folder, NULL, RUN, &was_there, &said);

	CHECK(r == 0 && !was_there);
	change_journal_add(&w, "a/b", ".bawn-" RUN "-1-0", true);
	r = change_journal_begin(&w, folder, &said);
	change_journal_done(&w);
	return r;
}

static int note_overlay(void)
{
	struct change_overlay o = { .path = "o", .folder = folder, .size = 1 };

	return change_overlay_note(&o, &said);
}

static int save_overlay(void)
{
	own(change_overlay) struct change_overlay o;
	const struct change_progress progress = { 0 };
	unsigned first = first_bad, last = last_bad;
	own_fd int from = -1;
	uint64_t skipped = 0;

	fail_calls(0, 0);
	change_overlay_init(&o);
	CHECK(mkdirat(folder, "from", 0700) == 0);
	from = tree_open_folder(folder, "from");
	CHECK(change_overlay_find(&o, "tree/o", &said) == 0);
	CHECK(change_overlay_create(&o, 1 << 20, &said) == 0);
	CHECK(change_overlay_take(&o, "run " RUN, &said) == 0);
	fail_calls(first, last);
	return change_overlay_save(&o, from, &progress, &skipped, &said);
}

static int list_copy(void)
{
	static struct keeper k; /* too large for a stack */

	CHECK(mkdirat(folder, "copy", 0700) == 0);
	k.layer.trees[0].is_copied = true;
	k.layer.trees[0].top = folder;
	return keeper_copy_list(&k, &said);
}

static bool is_there(const char *name)
{
	return faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void make_folder(void)
{
	CHECK(mkdir("tree", 0700) == 0);
	folder = open("tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	said = (struct err){ 0 };
}

static void remove_folder(void)
{
	close(folder);
	work_place_remove("tree");
}

/* Each of the calls is made, and each of them decides. */
static void test_each(void)
{
	static const struct {
		const char *what;
		int (*make)(void);
		unsigned calls;
		const char *unless; /* is not there if one of the first `until` calls failed */
		unsigned until;
	} rows[] = {
		{ "a file of a run", write_record, 2, "a", 1 },
		{ "a new key", make_key, 5, "keys/signing.pem", 4 },
		{ "another key", replace_key, 7, NULL, 0 },
		{ "a run's chain", write_chain, 1, NULL, 0 },
		{ "the log of all runs", write_state_log, 1, NULL, 0 },
		{ "the journal of an apply", begin_journal, 2, NULL, 0 },
		{ "what is noted of an overlay", note_overlay, 1, "overlay.json", 1 },
		{ "an overlay", save_overlay, 3, NULL, 0 },
		{ "the list of a copy", list_copy, 1, "list", 1 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		unsigned count;

		make_folder();
		fail_calls(0, 0);
		check_that(rows[i].make() == 0, rows[i].what, __FILE__, __LINE__);
		CHECK_STR(said.text, "");
		CHECK(!rows[i].unless || is_there(rows[i].unless));
		count = calls;
		if (count != rows[i].calls)
			printf("%s: %u calls\n", rows[i].what, count);
		check_that(count == rows[i].calls, rows[i].what, __FILE__, __LINE__);
		remove_folder();
		for (unsigned n = 1; n <= count; n++) {
			make_folder();
			fail_calls(n, n);
			check_that(rows[i].make() == -EIO, rows[i].what, __FILE__, __LINE__);
			CHECK(strstr(said.text, "Input/output error"));
			CHECK(!rows[i].unless || is_there(rows[i].unless) == (n > rows[i].until));
			remove_folder();
		}
	}
}

/* --- apply --- */

static int apply(struct change_applied *ret)
{
	static const char text[] = "of the run";
	struct change_effect items[] = {
		{ .path = "d", .after = { .type = CHANGE_FOLDER, .mode = 0755 } },
		{ .path = "f", .after = { .type = CHANGE_FILE, .mode = 0644, .has_hash = true } },
	};
	struct change_effects x = { .items = items, .count = 2 };
	struct change_apply q = { .run = RUN, .folder = folder };
	struct sha256 s;
	int r;

	CHECK(mkdirat(folder, "layer", 0755) == 0 && mkdirat(folder, "below", 0755) == 0);
	q.layer = tree_open_folder(folder, "layer");
	q.below = tree_open_folder(folder, "below");
	CHECK(mkdirat(q.layer, "d", 0755) == 0);
	r = openat(q.layer, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK(file_write_all(r, text, strlen(text)) == 0);
	close(r);
	items[1].after.size = strlen(text);
	sha256_init(&s);
	sha256_add(&s, text, strlen(text));
	sha256_finish(&s, items[1].after.hash);
	r = change_apply(&q, &x, ret, &said);
	close(q.layer);
	close(q.below);
	return r;
}

/* The journal, a file and the folders around: whatever fails from some call on is said. */
static void test_apply(void)
{
	struct change_applied done;
	unsigned count;

	make_folder();
	fail_calls(0, 0);
	CHECK(apply(&done) == 0 && done.counts[CHANGE_APPLIED] == 2);
	CHECK_STR(said.text, "");
	CHECK(is_there("below/d") && is_there("below/f"));
	count = calls;
	if (count != 5)
		printf("apply: %u calls\n", count);
	CHECK(count ==
		5); /* the journal and its folder, the tree's folder, the file, and it again */
	remove_folder();
	for (unsigned n = 1; n <= count; n++) {
		make_folder();
		fail_calls(n, 1000);
		CHECK(apply(&done) < 0);
		CHECK(strstr(said.text, "Input/output error"));
		/* Without a journal nothing is begun; nothing that is not on the disk takes its
		 * place. */
		CHECK(is_there("below/d") == (n > 2) && is_there("below/f") == (n > 4));
		remove_folder();
	}
	/* One folder that cannot be synced by itself is synced with all. */
	make_folder();
	fail_calls(3, 3);
	CHECK(apply(&done) == 0 && done.counts[CHANGE_APPLIED] == 2 && calls == count + 1);
	remove_folder();
}

static void tests(void)
{
	umask(022);
	test_each();
	test_apply();
}

int main(void)
{
	CHECK(sodium_init() >= 0);
	return work_place_run(tests);
}
