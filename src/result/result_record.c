/*
 * result_record - finds and loads the record that a word means.
 *
 * Runs as:  the operator, or anybody who verifies a record.
 * Reads:    files that words name, which a stranger may have written; the operator's public keys,
 *           and no private key.
 * Must not: call a record valid: verify_judge does that.
 */
#include "result/result_record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/card/card.h"
#include "result/result.h"

#define MOST_TEXTS   ((size_t)4 << 20)
#define LEAST_PREFIX 8 /* of a run's id: a day */

/* --- in a run's folder --- */

void result_record_done(struct result_record *k)
{
	free(k->bytes);
	arena_done(&k->arena);
}

int result_record_load(struct result_record *ret, int folder, struct err *e)
{
	own_fd int fd = file_open_name(folder, RECORD_FILE, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	struct sign_envelope envelope;
	const char *end;
	size_t n = 0;
	int r = fd < 0 ? fd : file_read_all(fd, RESULT_RECORD_MOST, &ret->bytes, &n);

	arena_init(&ret->arena, RECORD_READ_MEMORY + RESULT_RECORD_MOST);
	if (r == -ENOENT) {
		ret->state = result_is_going_on(folder) ? "goes on" : "has no record";
		return 0;
	}
	if (r < 0)
		return err_set(e, ERR_SYS, -r, "%s", strerror(-r));
	end = memchr(ret->bytes, '\n', n);
	r = sign_read_envelope(
		ret->bytes, end ? (size_t)(end - ret->bytes) : n, &ret->arena, &envelope, e);
	return r < 0 ? r
		     : record_read((const char *)envelope.payload, envelope.size, &ret->arena,
			       &ret->statement, &ret->record, e);
}

void result_read_project(int folder, char ret[static PATH_MAX])
{
	ssize_t n = folder < 0 ? -1 : readlinkat(folder, RECORD_PROJECT_LINK, ret, PATH_MAX - 1);

	ret[n > 0 ? n : 0] = '\0';
}

/* --- whose keys --- */

void result_verifier_init(struct result_verifier *x)
{
	*x = (struct result_verifier){ .state = -1, .keys.state = -1 };
	arena_init(&x->arena, MOST_TEXTS);
}

void result_verifier_done(struct result_verifier *x)
{
	if (x->state >= 0)
		close(x->state);
	arena_done(&x->arena);
}

void result_verifier_open(struct result_verifier *x)
{
	struct err missing = { 0 };

	/* Without a state there are no keys; a missing key is reported when it is needed. */
	x->state = record_open_state(run_home(), false, &missing);
	x->keys.state = x->state;
}

/* --- where it is --- */

void result_found_done(struct result_found *f)
{
	free(f->bytes);
	if (f->unpacked[0])
		result_remove_archive(f->folder, f->unpacked);
	if (f->folder >= 0)
		close(f->folder);
}

static int fail_reading(const char *name, int num, struct err *e)
{
	return err_set(e, ERR_REFUSED, num, "cannot read the record '%s': %s", name, strerror(num));
}

static int read_bytes(int fd, const char *name, struct result_found *ret, struct err *e)
{
	int r = fd < 0 ? fd : file_read_all(fd, VERIFY_MAX_FILE, &ret->bytes, &ret->size);

	return r < 0 ? fail_reading(name, -r, e) : 0;
}

/* An archive of record export, into a folder of its own until the end. */
static int unpack(int fd, const char *name, struct result_found *ret, struct err *e)
{
	own_fd int record = -1;

	snprintf(ret->unpacked, sizeof(ret->unpacked), "/tmp/bawn-record-XXXXXX");
	if (!mkdtemp(ret->unpacked)) {
		ret->unpacked[0] = '\0';
		return err_sys(e, errno, "cannot make a folder in /tmp");
	}
	ret->folder = file_open(ret->unpacked, O_RDONLY | O_DIRECTORY);
	if (ret->folder < 0)
		return fail_reading(name, -ret->folder, e);
	if (result_read_archive(fd, ret->folder, e) < 0) {
		err_prefix(e, "cannot read the archive '%s'", name);
		return -EBADMSG;
	}
	record = file_open_name(ret->folder, RECORD_FILE, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	return read_bytes(record, name, ret, e);
}

/* An archive may come through a pipe too. */
static int find_input(struct result_found *ret, struct err *e)
{
	own_fd int copy = memfd_create("record", MFD_CLOEXEC);
	int r = read_bytes(STDIN_FILENO, "standard input", ret, e);

	if (r < 0 || copy < 0 || file_write_all(copy, ret->bytes, ret->size) < 0 ||
		lseek(copy, 0, SEEK_SET) < 0 || !result_is_archive(copy))
		return r;
	free(ret->bytes);
	ret->bytes = NULL;
	return unpack(copy, "standard input", ret, e);
}

static int find_run(const char *word, struct result_found *ret, struct err *e)
{
	char id[RECORD_RUN_SIZE];
	own_fd int fd = -1;
	int r = result_open_run(word, id, &ret->folder, e);

	if (r == 0 && ret->folder < 0)
		return err_set(e, ERR_REFUSED, ENOENT, "cannot verify a run: there is no run yet");
	if (r < 0)
		return r;
	fd = file_open_name(ret->folder, RECORD_FILE, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	if (fd != -ENOENT)
		return read_bytes(fd, id, ret, e);
	return err_set(e, ERR_REFUSED, ENOENT, "cannot verify run %s: %s", id,
		result_is_going_on(ret->folder)
			? "it is still running, and its record is written when it ends"
			: "it has no signed record");
}

/*
 * The folder that a file is in, by its path. -1 where it cannot be opened: then nothing is there.
 */
static int open_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];
	int n = snprintf(
		parent, sizeof(parent), "%.*s.", slash ? (int)(slash - path) + 1 : 0, path);
	int fd = n < (int)sizeof(parent) ? file_open(parent, O_RDONLY | O_DIRECTORY) : -1;

	return fd < 0 ? -1 : fd;
}

/*
 * Opens a file or a pipe for reading. Opening does not wait for a writer, reading does; a pipe
 * without a writer is empty.
 */
static int open_input(const char *path)
{
	own_fd int fd = file_open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	int flags = fd < 0 ? 0 : fcntl(fd, F_GETFL);

	if (fd >= 0 && (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0))
		return -errno;
	return take_fd(&fd);
}

static int find_file(const char *path, struct result_found *ret, struct err *e)
{
	own_fd int fd = open_input(path);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_reading(path, fd < 0 ? -fd : errno, e);
	if (result_is_archive(fd))
		return unpack(fd, path, ret, e);
	if (!S_ISDIR(st.st_mode)) {
		ret->folder = open_parent(path);
		return read_bytes(fd, path, ret, e);
	}
	ret->folder = take_fd(&fd);
	fd = file_open_name(ret->folder, RECORD_FILE, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	return read_bytes(fd, path, ret, e);
}

static int find_record(const char *word, struct result_found *ret, struct err *e)
{
	*ret = (struct result_found){ .folder = -1 };
	if (word && str_eq(word, "-"))
		return find_input(ret, e);
	if (!word || (strlen(word) >= LEAST_PREFIX && record_is_run(word, false)))
		return find_run(word, ret, e);
	return find_file(word, ret, e);
}

int result_load_record(const struct result_verifier *x, const char *word,
	struct result_found *ret_found, struct verify_record *ret, struct verify_report *report,
	struct err *e)
{
	int r = find_record(word, ret_found, e);

	verify_record_init(ret);
	if (r < 0)
		return r;
	ret->folder = ret_found->folder;
	r = verify_load(ret, ret_found->bytes, ret_found->size, &x->keys, report, e);
	if (r < 0)
		err_prefix(e, "cannot verify '%s'", word ? word : "the newest record");
	return r;
}

/* --- the one that is repeated --- */

void result_again_done(struct result_again *a)
{
	run_again_done(&a->run);
	verify_record_done(&a->of);
	result_found_done(&a->found);
	result_verifier_done(&a->verifier);
}

void result_again_init(struct result_again *a)
{
	*a = (struct result_again){ .found.folder = -1, .run.folder = -1 };
	verify_record_init(&a->of);
	result_verifier_init(&a->verifier);
	a->report.arena = &a->verifier.arena;
	a->run.of = &a->of;
	a->run.report = &a->report;
}

int result_find_again(struct result_again *a, const struct run_request *asked, struct err *e)
{
	const char *word = asked->here.again;
	int r = 0;

	for (size_t i = 0; r == 0 && i < asked->here.keys.count; i++)
		r = verify_add_key(
			&a->verifier.keys, asked->here.keys.items[i], &a->verifier.arena, e);
	if (r < 0)
		return r;
	result_verifier_open(&a->verifier);
	r = result_load_record(&a->verifier, word, &a->found, &a->of, &a->report, e);
	if (r < 0)
		return a->found.bytes || e->hint[0]
			       ? r
			       : err_hint(e, r,
					 "bawn record list names the runs that can be repeated");
	a->run.folder = a->found.folder;
	if (a->of.is_signed)
		return 0;
	return err_set(e, ERR_REFUSED, EBADMSG, "cannot repeat the record '%.100s': %s", word,
		a->report.count ? a->report.items[0].text : "it is not signed");
}

/* --- cards --- */

/*
 * A key that counts and has signed it; otherwise one that counts and is named, so that it can be
 * said what is wrong. False: there is none.
 */
static bool find_card_key(const struct result_verifier *x, const struct card_read *c,
	struct arena *arena, struct sign_public *ret)
{
	struct sign_public key;
	const char *whose;
	bool is_found = false;

	for (size_t i = 0; i < c->signature_count; i++) {
		if (!verify_find_key(&x->keys, c->signatures[i].key_id, &key, arena, &whose))
			continue;
		*ret = key;
		is_found = true;
		if (card_find_signature(c, &key) >= 0)
			break;
	}
	return is_found;
}

static void say_card(const struct card_report *from, struct verify_report *report)
{
	static const enum verify_result results[] = {
		[CARD_YES] = VERIFY_YES,
		[CARD_NO] = VERIFY_NO,
		[CARD_ABSENT] = VERIFY_ABSENT,
	};

	for (size_t i = 0; i < from->count; i++)
		verify_say(report, from->items[i].name, results[from->items[i].result], "%s",
			from->items[i].text);
	report->has_failed |= from->has_failed;
}

static int read_card(const char *path, char **ret, size_t *ret_size, struct err *e)
{
	own_fd int fd =
		str_eq(path, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open_input(path);
	int r = fd < 0 ? fd : file_read_all(fd, CARD_MAX_SIZE, ret, ret_size);

	if (r < 0)
		err_set(e, ERR_USE, -r, "cannot read the card '%s': %s", path, strerror(-r));
	return r;
}

int result_judge_card(const struct result_verifier *x, const char *path,
	const struct verify_record *v, struct verify_report *report, struct err *e)
{
	own_free char *bytes = NULL;
	struct card_report said = { 0 };
	struct sign_public key;
	struct card_read card;
	size_t n = 0;
	int r = read_card(path, &bytes, &n, e);

	if (r == 0) {
		r = card_read(bytes, n, &card, e);
		if (r < 0)
			err_prefix(e, "cannot use the card '%s'", path);
		else
			card_verify(&card,
				find_card_key(x, &card, report->arena, &key) ? &key : NULL, &said);
		/* An unsigned record is not compared with anything. */
		if (r == 0 && !said.has_failed && v && v->is_signed)
			card_verify_record(&card, &v->record, v->sha256, v->key.id, &said);
		card_read_done(&card);
	}
	say_card(&said, report);
	return r < 0 ? r : 0;
}
