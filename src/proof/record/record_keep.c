/*
 * record_keep - signs what is said of a run, and keeps it in the run's folder.
 *
 * Runs as: the keeper, when the run has ended; whoever comes by later, for a keeper that died.
 * Leaves:  RUN/record.intoto.jsonl, whole or not at all.
 *
 * As long as a run has no record there is STATE/unsigned/RUN, another name of its log. Whoever
 * finds one whose run nobody has locked signs what that says. Before November 2026 it was a file
 * with two predicates, a line each, which are signed as they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/record/record_inside.h"
#include "proof/record/record_read.h"
#include "proof/sign/sign.h"

/* --- statement --- */

static void print_subjects(struct json *j, const struct record_subject *subjects, size_t count)
{
	json_open_list(j, "subject");
	for (size_t i = 0; i < count; i++) {
		json_open_map(j, NULL);
		json_text(j, "name", subjects[i].name);
		json_open_map(j, "digest");
		json_text(j, "sha256", subjects[i].sha256);
		json_close_map(j);
		json_close_map(j);
	}
	json_close_list(j);
}

/* An in-toto statement: a predicate as it was printed, of subjects. */
static void record_print_statement(const char *type, const char *predicate, size_t n,
	const struct record_subject *subjects, size_t count, const struct log_tail *log,
	struct buf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	json_text(&j, "_type", RECORD_STATEMENT_TYPE);
	print_subjects(&j, subjects, count);
	json_text(&j, "predicateType", type);
	buf_puts(out, ",\"predicate\":");
	/* The log's end is the last thing to be known, and so the record's last member. */
	buf_add(out, predicate, log ? n - 1 : n);
	if (log)
		buf_printf(out, ",\"log\":{\"events\":%llu,\"last\":\"%s\"}}",
			(unsigned long long)log->count, log->last);
	json_close_map(&j);
}

#define UNSIGNED       "unsigned"
#define MOST_AT_ONCE   64 /* interrupted runs */
#define STATEMENT_SIZE (RECORD_MAX_SIZE + ((size_t)1 << 20))
#define ENVELOPE_SIZE  (2 * STATEMENT_SIZE)

static int open_unsigned(int state, struct err *e)
{
	int fd = file_open_name(state, UNSIGNED, O_RDONLY | O_DIRECTORY);

	if (fd < 0 && fd != -ENOENT)
		err_sys(e, -fd, "cannot open the folder of unsigned records");
	return fd;
}

int record_begin(int state, int folder, const char *run, struct err *e)
{
	char name[RECORD_RUN_SIZE + sizeof(UNSIGNED "/")];
	own_fd int made = -1;

	snprintf(name, sizeof(name), UNSIGNED "/%s", run);
	if (linkat(folder, LOG_RUN_FILE, state, name, 0) == 0)
		return 0;
	if (errno == ENOENT && mkdirat(state, UNSIGNED, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "cannot make the folder of unsigned runs");
	if (linkat(folder, LOG_RUN_FILE, state, name, 0) == 0)
		return 0;
	/* On a file system without hard links a file of that name does. */
	made = openat(state, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (made < 0)
		return err_sys(e, errno, "cannot note that the run has no record yet");
	return 0; /* cppcheck-suppress resourceLeak */
}

/* --- signing --- */

static void record_claims_init(struct record_claims *x)
{
	x->type = RECORD_PREDICATE_TYPE;
	for (enum record_claim c = 0; c < RECORD_CLAIM_COUNT; c++)
		buf_init(&x->predicates[c], RECORD_MAX_SIZE);
}

static void record_claims_done(struct record_claims *x)
{
	for (enum record_claim c = 0; c < RECORD_CLAIM_COUNT; c++)
		buf_done(&x->predicates[c]);
}

/* What is signed: two predicates as they were printed, and where the log ends. */
struct statement {
	const struct record_claims *claims;
	const struct record_subject *subjects;
	size_t count;
	const struct log_tail *log;
	const struct sign_key *key;
	char sha256[SHA256_HEX_SIZE]; /* of the file, once it is signed */
};

/* The log up to where it ends, as the one subject of what left nothing else. */
static int digest_log(int folder, uint64_t size, struct record_subject *ret, struct err *e)
{
	own_fd int fd = file_open_name(folder, LOG_RUN_FILE, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	uint8_t digest[SHA256_SIZE];
	char bytes[16384];
	struct sha256 sum;
	ssize_t n = 1;

	sha256_init(&sum);
	for (uint64_t at = 0; fd >= 0 && at < size && n > 0; at += (uint64_t)n) {
		uint64_t left = size - at;

		n = pread(fd, bytes, left < sizeof(bytes) ? left : sizeof(bytes), (off_t)at);
		if (n > 0)
			sha256_add(&sum, bytes, (size_t)n);
	}
	if (size && (fd < 0 || n <= 0))
		return err_set(e, ERR_SYS, EIO, "cannot read the run's events again");
	sha256_finish(&sum, digest);
	sha256_print(digest, ret->sha256);
	ret->name = LOG_RUN_FILE;
	return 0;
}

static int print_envelopes(int folder, const struct statement *s, struct buf *out, struct err *e)
{
	const char *const types[RECORD_CLAIM_COUNT] = { s->claims->type, RECORD_PROVENANCE_TYPE };
	struct record_subject log;
	struct statement own = *s;

	if (own.count == 0) {
		int r = digest_log(folder, own.log->size, &log, e);

		if (r < 0)
			return r;
		own.subjects = &log;
		own.count = 1;
	}
	for (enum record_claim c = 0; c < RECORD_CLAIM_COUNT; c++) {
		own(buf) struct buf statement = { .max = STATEMENT_SIZE };

		record_print_statement(types[c], own.claims->predicates[c].data,
			own.claims->predicates[c].len, own.subjects, own.count,
			c == RECORD_CLAIM ? own.log : NULL, &statement);
		out->failed |= statement.failed;
		sign_print_envelope(own.key, statement.data, statement.len, out);
	}
	return out->failed ? err_set(e, ERR_SYS, ENOMEM, "cannot write the record: out of memory")
			   : 0;
}

static int sign(int folder, struct statement *s, bool is_synced, struct buf *out, struct err *e)
{
	int r = print_envelopes(folder, s, out, e);

	/* What the record speaks of reaches the disk before it does. */
	if (r == 0 && is_synced && syncfs(folder) < 0)
		r = err_sys(e, errno, "cannot sync the run's folder");
	if (r == 0)
		r = record_write_file(folder, RECORD_FILE, out, is_synced, e);
	if (r == 0)
		sha256_hex(out->data, out->len, s->sha256);
	return r;
}

static void keep_forget(int state, const char *run)
{
	char name[RECORD_RUN_SIZE + sizeof(UNSIGNED "/")];

	snprintf(name, sizeof(name), UNSIGNED "/%s", run);
	unlinkat(state, name, 0);
}

/* There was one when the run began; somebody may have taken it away. */
static int load_key(int state, struct sign_key *ret, struct err *e)
{
	int r = sign_load_key(state, ret, e);

	return r == -ENOENT ? err_hint(e,
				      err_set(e, ERR_REFUSED, ENOKEY,
					      "cannot sign the record: there is no signing key"),
				      "bawn key init creates one")
			    : r;
}

/*
 * The log of all runs says in which order they ended, how, and what exactly was signed; where
 * nothing was, `s` is NULL.
 */
static void tell_end(const struct record *r, struct log *log, const struct statement *s)
{
	bool has_run = r->outcome != RECORD_REFUSED;
	struct json *j;

	/* A refusal is an event of its own. */
	if (!has_run && !s)
		return;
	j = log_begin(log, has_run ? "run_end" : "signed");
	if (has_run) {
		record_print_outcome(r, &r->error, j);
		record_print_degraded(r, j);
	}
	if (s)
		json_text(j, "record_sha256", s->sha256);
	if (s && !has_run)
		json_text(j, "key", s->key->public.id);
	log_end_of_state(log);
	(void)log_write(log);
}

int record_sign(int state, int folder, const struct record *r, const struct record_end *end,
	struct buf *ret_text, struct err *e)
{
	own(record_claims) struct record_claims claims;
	own(buf) struct buf text = { .max = ENVELOPE_SIZE };
	own(sign_key) struct sign_key key = { 0 };
	struct log_tail tail = end->log->tail;
	struct statement s = { .claims = &claims,
		.subjects = end->subjects,
		.count = end->count,
		.log = &tail,
		.key = &key };
	int failure;

	record_claims_init(&claims);
	record_print(r, &claims.predicates[RECORD_CLAIM]);
	record_print_provenance(r, &claims.predicates[RECORD_PROVENANCE]);
	if (claims.predicates[RECORD_CLAIM].failed || claims.predicates[RECORD_PROVENANCE].failed)
		return err_set(e, ERR_SYS, ENOMEM, "cannot write the record: out of memory");
	failure = load_key(state, &key, e);
	/* Whoever reads only that no key was found cannot know that the command has run. */
	if (failure < 0)
		err_prefix(e, "cannot sign the run's record");
	else
		failure = sign(folder, &s, end->is_synced, ret_text ? ret_text : &text, e);
	tell_end(r, end->log, failure == 0 ? &s : NULL);
	if (failure < 0)
		return failure;
	keep_forget(state, r->run);
	return 0;
}

/* --- what keepers left that died --- */

/* How a file of before November 2026 begins, and no log. */
static const char former_draft[] = "{\"version\":1,";

/* Two lines, each an object; a power cut may have left less. */
static int cut_draft(const char *bytes, size_t n, struct record_claims *ret)
{
	if (!bytes)
		return -ENODATA;
	ret->type = RECORD_PREDICATE_V1;
	for (enum record_claim c = 0; c < RECORD_CLAIM_COUNT; c++) {
		const char *end = memchr(bytes, '\n', n);
		size_t size = end ? (size_t)(end - bytes) : 0;

		if (size < 4 || bytes[0] != '{' || end[-1] != '}')
			return -ENODATA;
		buf_add(&ret->predicates[c], bytes, size);
		n -= size + 1;
		bytes = end + 1;
	}
	return n == 0 ? 0 : -ENODATA;
}

/* The last event of a run that nobody else ended. */
static int say_interrupted(struct log *log, bool is_whole, struct err *e)
{
	struct json *j = log_begin(log, "interrupted");

	json_text(j, "text",
		is_whole ? "the keeper ended before it had signed the run's record"
			 : "the keeper ended before it had signed the run's record, and what was "
			   "known of the run did not survive");
	log_end(log);
	/* As with any run, the log of all may fail: the record is about the run's own. */
	if (log_write(log) == 0 || !log->is_chain_over)
		return 0;
	*e = log->failure;
	return -e->num;
}

static void tell_signed(struct log *log, const struct statement *s)
{
	struct json *j = log_begin(log, "signed");

	json_text(j, "record_sha256", s->sha256);
	json_text(j, "key", s->key->public.id);
	log_end_of_state(log);
	(void)log_write(log);
}

/* What is said of the run: by its draft, if it has one, or by its log. -ENODATA: nothing is. */
static int find_claims(int folder, const char *run, const char *draft, size_t n,
	struct record_claims *ret, struct err *e)
{
	return str_starts(draft, former_draft) ? cut_draft(draft, n, ret)
					       : record_read_claims(folder, run, ret, e);
}

/* -ENODATA: nothing is known that could be signed. */
static int sign_unsigned(
	int state, int folder, const char *run, const char *draft, size_t n, struct err *e)
{
	own(record_claims) struct record_claims claims;
	own(buf) struct buf text = { .max = ENVELOPE_SIZE };
	own(sign_key) struct sign_key key = { 0 };
	struct statement s = { .claims = &claims, .key = &key };
	int r, known = 0;
	struct log log;

	record_claims_init(&claims);
	/* Without one the log would get the same event from whoever comes by. */
	r = load_key(state, &key, e);
	if (r < 0)
		return r;
	log_init(&log, state, run, NULL);
	r = log_open_chain(&log, folder, e);
	if (r == 0) {
		known = find_claims(folder, run, draft, n, &claims, e);
		r = known == -ENODATA ? 0 : known;
	}
	if (r == 0)
		r = say_interrupted(&log, known == 0, e);
	s.log = &log.tail;
	if (r == 0)
		r = known;
	if (r == 0)
		r = sign(folder, &s, false, &text, e);
	if (r == 0)
		tell_signed(&log, &s);
	log_done(&log);
	return r;
}

/* What stands in a draft of before; of what is the run's log, nothing. */
static int read_draft(int fd, char **ret, size_t *ret_size)
{
	char start[sizeof(former_draft)] = "";
	ssize_t n = pread(fd, start, sizeof(start) - 1, 0);

	if (n < 0)
		return -errno;
	if (str_eq(start, former_draft))
		return file_read_all(fd, 2 * RECORD_MAX_SIZE, ret, ret_size);
	*ret = strdup("");
	return *ret ? 0 : -ENOMEM;
}

/* A draft may not have come as far as to its name. */
static void forget_half(int drafts, const char *run)
{
	char half[RECORD_RUN_SIZE + sizeof(".new")];

	snprintf(half, sizeof(half), "%s.new", run);
	unlinkat(drafts, half, 0);
}

/* One run: 1 when it was signed, 0 where nothing is to be done about it, or not by us. */
static int look_at_run(int state, int runs, int drafts, const char *run, struct err *e)
{
	own_fd int fd = -1, folder = file_open_name(runs, run, O_RDONLY | O_DIRECTORY);
	own_free char *draft = NULL;
	size_t n = 0;
	int r;

	if (folder < 0)
		return folder == -ENOENT ? (keep_forget(state, run), 0) : 0;
	/* Its keeper lives. */
	if (flock(folder, LOCK_EX | LOCK_NB) < 0)
		return 0;
	fd = file_open_name(drafts, run, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	r = fd < 0 ? fd : read_draft(fd, &draft, &n);
	/* Somebody else has done it, or the keeper came as far as this. */
	if (r == 0 && faccessat(folder, RECORD_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		r = -ENOENT;
	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "cannot read what is to be signed");
	if (r == 0)
		r = sign_unsigned(state, folder, run, draft, n, e);
	/* Among those that are unsigned it was found; now it is one that has changes to review. */
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): own_free frees the draft */
	if (r == 0 || r == -ENOENT || r == -ENODATA) {
		(void)record_note_pending(runs, run);
		keep_forget(state, run);
	}
	return r == 0 ? 1 : r == -ENOENT || r == -ENODATA ? 0 : r;
}

int record_sign_interrupted(int state, struct err *e)
{
	own_fd int drafts = open_unsigned(state, e), runs = -1;
	struct file_entries entries = { .fd = drafts };
	const struct file_entry *entry;
	char run[RECORD_RUN_SIZE];
	int signed_count = 0, failure = 0;

	if (drafts < 0)
		return drafts == -ENOENT ? 0 : drafts;
	runs = file_open_name(state, "runs", O_RDONLY | O_DIRECTORY);
	while (runs >= 0 && signed_count < MOST_AT_ONCE && (entry = file_next_entry(&entries))) {
		struct err why = { 0 };
		int r;

		snprintf(run, sizeof(run), "%.*s", RECORD_RUN_LENGTH, entry->name);
		if (!record_is_run(run, true))
			continue;
		if (!str_eq(run, entry->name))
			forget_half(drafts, run);
		r = look_at_run(state, runs, drafts, run, &why);
		signed_count += r > 0;
		/* One that cannot be signed keeps no other from it; the first is told. */
		if (r >= 0 || failure < 0)
			continue;
		failure = r;
		err_set(e, why.kind, why.num,
			"cannot sign the record of run %s, which was interrupted: %s", run,
			why.text);
	}
	return failure;
}
