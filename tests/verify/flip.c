/*
 * Changes a record and the files beside it, byte by byte, and sees that each change is noticed.
 *
 *   flip STATE RUN    STATE is the operator's folder, RUN a run's, which is copied
 *
 * One line of JSON for each file: how many changes were tried, how many went unnoticed, and the
 * place of the last of these. It calls what bawn verify calls, so that thousands take seconds.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "proof/verify/verify.h"

/* A bit, another case of a letter, no ASCII any more. */
static const unsigned char masks[] = { 0x01, 0x20, 0x80 };

#define MASK_COUNT 3
#define MOST_TRIES 3000 /* places in a file; of larger ones a part is tried */

static struct verify_keys keys = { .state = -1 };

struct score {
	const char *what;
	size_t tried, missed, last;
};

static void print(const struct score *s)
{
	printf("{\"what\":\"%s\",\"tried\":%zu,\"missed\":%zu,\"last\":%zu}\n", s->what, s->tried,
		s->missed, s->last);
}

static void count(struct score *s, bool is_noticed, size_t at)
{
	s->tried++;
	if (is_noticed)
		return;
	s->missed++;
	s->last = at;
}

static void fail(const char *what)
{
	fprintf(stderr, "flip: %s\n", what);
	exit(1);
}

/* Is it a record that is signed? */
static bool is_record(const char *bytes, size_t n)
{
	own(verify_record) struct verify_record v;
	own(arena) struct arena arena;
	struct verify_report report = { .arena = &arena };
	struct err e = { 0 };

	arena_init(&arena, (size_t)1 << 20);
	verify_record_init(&v);
	return verify_load(&v, bytes, n, &keys, &report, &e) == 0 && v.is_signed;
}

static void flip_envelopes(char *bytes, size_t n)
{
	struct score flips = { .what = "envelope" }, cuts = { .what = "cut" };

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < MASK_COUNT; k++) {
			bytes[i] = (char)(bytes[i] ^ masks[k]);
			count(&flips, !is_record(bytes, n), i);
			bytes[i] = (char)(bytes[i] ^ masks[k]);
		}
	/* The first line by itself is a record without a provenance, and said to be. */
	for (size_t i = 0; i < n; i++)
		if (i == 0 || bytes[i - 1] != '\n')
			count(&cuts, !is_record(bytes, i), i);
	print(&flips);
	print(&cuts);
}

/* Does all that is beside the record belong to it? */
static bool is_good(struct verify_record *v)
{
	own(arena) struct arena arena;
	struct verify_report report = { .arena = &arena };
	struct verify_options o = { .is_quick = true };

	arena_init(&arena, (size_t)1 << 20);
	verify_judge(v, &o, &report);
	return !report.has_failed;
}

static void flip_file(struct verify_record *v, const char *name)
{
	own_fd int fd = openat(v->folder, name, O_RDWR | O_CLOEXEC);
	struct score score = { .what = name };
	struct stat st;
	off_t step;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0)
		fail(name);
	step = st.st_size / MOST_TRIES + 1;
	for (off_t at = 0; at < st.st_size; at += step)
		for (size_t k = 0; k < MASK_COUNT; k++) {
			unsigned char was, is;

			if (pread(fd, &was, 1, at) != 1)
				fail(name);
			is = was ^ masks[k];
			if (pwrite(fd, &is, 1, at) != 1)
				fail(name);
			count(&score, !is_good(v), (size_t)at);
			if (pwrite(fd, &was, 1, at) != 1)
				fail(name);
		}
	/* And shorter by one, and longer. */
	if (ftruncate(fd, st.st_size + 1) < 0)
		fail(name);
	count(&score, !is_good(v) || str_eq(name, "events.jsonl"), (size_t)st.st_size + 1);
	if (ftruncate(fd, st.st_size - 1) < 0)
		fail(name);
	count(&score, !is_good(v), (size_t)st.st_size - 1);
	print(&score);
}

/* A copy of the run's folder, to be changed. */
static int copy(const char *run, char path[static 32])
{
	own_fd int from = file_open(run, O_RDONLY | O_DIRECTORY);
	struct tree_options o = { 0 };
	int to;

	strcpy(path, "/tmp/bawn-flip-XXXXXX");
	if (from < 0 || !mkdtemp(path))
		fail("no folder");
	to = file_open(path, O_RDONLY | O_DIRECTORY);
	if (to < 0 || tree_copy(from, to, &o, NULL) < 0)
		fail("no copy");
	return to;
}

int main(int argc, char **argv)
{
	static const char *const files[] = { "spec.json", "plan.json", "effects.json",
		"events.jsonl" };
	own(verify_record) struct verify_record v;
	own(arena) struct arena arena;
	struct verify_report report = { .arena = &arena };
	own_free char *bytes = NULL;
	own_fd int folder = -1, file = -1;
	char path[32];
	struct err e = { 0 };
	size_t n = 0;

	if (argc != 3)
		fail("flip STATE RUN");
	keys.state = file_open(argv[1], O_RDONLY | O_DIRECTORY);
	folder = copy(argv[2], path);
	file = file_open_name(folder, RECORD_FILE, O_RDONLY);
	if (keys.state < 0 || file < 0 || file_read_all(file, VERIFY_MAX_FILE, &bytes, &n) < 0)
		fail("no record");
	arena_init(&arena, (size_t)1 << 20);
	verify_record_init(&v);
	if (verify_load(&v, bytes, n, &keys, &report, &e) < 0 || !v.is_signed)
		fail("it is not good as it is");
	v.folder = folder;
	for (size_t i = 0; i < COUNT_OF(files); i++) {
		if (!is_good(&v))
			fail("it is not good before anything is changed");
		flip_file(&v, files[i]);
		tree_remove(folder, files[i], NULL); /* what is missing is no failure */
	}
	flip_envelopes(bytes, n);
	return tree_remove(AT_FDCWD, path, NULL) < 0;
}
