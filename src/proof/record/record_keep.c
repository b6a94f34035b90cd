/*
 * record_keep - signs what is said of a run, and keeps it in the run's folder.
 *
 * Runs as: the keeper, when the run has ended; whoever comes by later, for a keeper that died.
 * Leaves:  RUN/record.intoto.jsonl, whole or not at all.
 *
 * As long as a run has no record there is STATE/unsigned/RUN with the two predicates, a line each,
 * as they were known when it began. Whoever finds one whose run nobody has locked signs that.
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
#include "proof/record/record.h"
#include "proof/record/record_read.h"
#include "proof/sign/sign.h"

/* --- statement --- */

const char *const record_predicate_types[RECORD_CLAIM_COUNT] = {
	[RECORD_CLAIM] = RECORD_PREDICATE_TYPE,
	[RECORD_PROVENANCE] = RECORD_PROVENANCE_TYPE,
};

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

/* The log's end is the last thing to be known, and so the last member of either predicate. */
static void add_log(enum record_claim claim, const struct log_tail *log, struct buf *out)
{
	if (claim == RECORD_CLAIM)
		buf_printf(out, ",\"log\":{\"events\":%llu,\"last\":\"%s\"}}",
			(unsigned long long)log->count, log->last);
	else
		buf_printf(out,
			",\"byproducts\":[{\"name\":\"events.jsonl\",\"annotations\":"
			"{\"events\":%llu,\"last\":\"%s\"}}]}}",
			(unsigned long long)log->count, log->last);
}

/* An in-toto statement: a predicate as it was printed, of subjects, with a log that ends there. */
static void record_print_statement(enum record_claim claim, const char *predicate, size_t n,
	const struct record_subject *subjects, size_t count, const struct log_tail *log,
	struct buf *out)
{
	/* How many braces close behind the log: of the predicate, and of runDetails in it. */
	size_t closing = claim == RECORD_CLAIM ? 1 : 2;
	struct json j;

	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	json_text(&j, "_type", RECORD_STATEMENT_TYPE);
	print_subjects(&j, subjects, count);
	json_text(&j, "predicateType", record_predicate_types[claim]);
	buf_puts(out, ",\"predicate\":");
	buf_add(out, predicate, n - closing);
	add_log(claim, log, out);
	json_close_map(&j);
}

#define UNSIGNED       "unsigned"
#define MOST_AT_ONCE   64 /* interrupted runs */
#define STATEMENT_SIZE (RECORD_MAX_SIZE + ((size_t)1 << 20))
#define ENVELOPE_SIZE  (2 * STATEMENT_SIZE)

static int open_unsigned(int state, bool makes, struct err *e)
{
	int fd = file_open_name(state, UNSIGNED, O_RDONLY | O_DIRECTORY);

	if (fd == -ENOENT && makes && (mkdirat(state, UNSIGNED, 0700) == 0 || errno == EEXIST))
		fd = file_open_name(state, UNSIGNED, O_RDONLY | O_DIRECTORY);
	if (fd < 0 && !(fd == -ENOENT && !makes))
		err_sys(e, -fd, "cannot open the folder of unsigned records");
	return fd;
}

int record_begin(int state, const struct record *r, bool is_synced, struct err *e)
{
	own(buf) struct buf text = { .max = 2 * RECORD_MAX_SIZE };
	own_fd int folder = open_unsigned(state, true, e);
	struct record draft = *r;
	int failure;

	if (folder < 0)
		return folder;
	draft.outcome = RECORD_INTERRUPTED;
	record_print(&draft, &text);
	buf_putc(&text, '\n');
	record_print_provenance(&draft, &text);
	buf_putc(&text, '\n');
	failure = record_write_file(folder, r->run, &text, is_synced, e);
	if (failure < 0)
		err_sys(e, -failure, "cannot write what would be signed of the run");
	return failure;
}

/* --- signing --- */

/* What is signed: two predicates as they were printed, and where the log ends. */
struct statement {
	const char *predicates[RECORD_CLAIM_COUNT];
	size_t sizes[RECORD_CLAIM_COUNT];
	const struct record_subject *subjects;
	size_t count;
	const struct log_tail *log;
	const struct sign_key *key;
	const char *session; /* NULL: none, or not known any more */
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

		record_print_statement(c, own.predicates[c], own.sizes[c], own.subjects, own.count,
			own.log, &statement);
		out->failed |= statement.failed;
		sign_print_envelope(own.key, statement.data, statement.len, out);
	}
	return out->failed ? err_set(e, ERR_SYS, ENOMEM, "cannot write the record: out of memory")
			   : 0;
}

/* The log of all runs says in which order they were signed, and what exactly; or `e` why not. */
static void keep_tell(int state, const char *run, const struct statement *s, bool is_synced,
	const struct buf *text, struct err *e)
{
	char digest[SHA256_HEX_SIZE];
	struct log log;
	struct json *j;

	sha256_hex(text->data, text->len, digest);
	log_init(&log, state, run, s->session);
	log.is_synced = is_synced;
	j = log_begin(&log, "signed");
	json_text(j, "record_sha256", digest);
	json_text(j, "key", s->key->public.id);
	log_end(&log);
	if (log_write(&log) < 0)
		*e = log.failure;
	log_done(&log);
}

static int sign(int state, int folder, const char *run, const struct statement *s, bool is_synced,
	struct buf *out, struct err *e)
{
	own_fd int drafts = -1;
	int r = print_envelopes(folder, s, out, e);

	/* What the record speaks of reaches the disk before it does. */
	if (r == 0 && is_synced && syncfs(folder) < 0)
		r = err_sys(e, errno, "cannot sync the run's folder");
	if (r == 0)
		r = record_write_file(folder, RECORD_FILE, out, is_synced, e);
	if (r < 0)
		return r;
	keep_tell(state, run, s, is_synced, out, e);
	drafts = open_unsigned(state, false, NULL);
	if (drafts >= 0)
		unlinkat(drafts, run, 0);
	return 0;
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

int record_sign(int state, int folder, const struct record *r, const struct record_end *end,
	struct buf *ret_text, struct err *e)
{
	own(buf) struct buf claim = { .max = RECORD_MAX_SIZE };
	own(buf) struct buf provenance = { .max = RECORD_MAX_SIZE };
	own(buf) struct buf text = { .max = ENVELOPE_SIZE };
	own(sign_key) struct sign_key key = { 0 };
	struct statement s = { .subjects = end->subjects,
		.count = end->count,
		.log = end->log,
		.key = &key,
		.session = r->session };
	int failure;

	record_print(r, &claim);
	record_print_provenance(r, &provenance);
	if (claim.failed || provenance.failed)
		return err_set(e, ERR_SYS, ENOMEM, "cannot write the record: out of memory");
	s.predicates[RECORD_CLAIM] = claim.data;
	s.sizes[RECORD_CLAIM] = claim.len;
	s.predicates[RECORD_PROVENANCE] = provenance.data;
	s.sizes[RECORD_PROVENANCE] = provenance.len;
	failure = load_key(state, &key, e);
	if (failure == 0)
		return sign(
			state, folder, r->run, &s, end->is_synced, ret_text ? ret_text : &text, e);
	/* Whoever reads only that no key was found cannot know that the command has run. */
	err_prefix(e, "cannot sign the run's record");
	return failure;
}

/* --- what keepers left that died --- */

/* Two lines, each an object; a power cut may have left less. */
static bool cut_draft(const char *bytes, size_t n, struct statement *ret)
{
	for (enum record_claim c = 0; c < RECORD_CLAIM_COUNT; c++) {
		const char *end = memchr(bytes, '\n', n);

		if (!end || end - bytes < 4 || bytes[0] != '{' || end[-1] != '}')
			return false;
		ret->predicates[c] = bytes;
		ret->sizes[c] = (size_t)(end - bytes);
		n -= ret->sizes[c] + 1;
		bytes = end + 1;
	}
	return n == 0;
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

static int sign_draft(
	int state, int folder, const char *run, const char *bytes, size_t n, struct err *e)
{
	own(buf) struct buf text = { .max = ENVELOPE_SIZE };
	own(sign_key) struct sign_key key = { 0 };
	struct statement s = { .key = &key };
	bool is_whole = cut_draft(bytes, n, &s);
	struct log log;
	/* Without one the log would get the same event from whoever comes by. */
	int r = load_key(state, &key, e);

	if (r < 0)
		return r;
	log_init(&log, state, run, NULL);
	r = log_open_chain(&log, folder, e);
	if (r == 0)
		r = say_interrupted(&log, is_whole, e);
	s.log = &log.tail;
	if (r == 0 && !is_whole)
		r = -ENOENT;
	if (r == 0)
		r = sign(state, folder, run, &s, false, &text, e);
	log_done(&log);
	return r;
}

static void keep_forget(int drafts, const char *run)
{
	char half[RECORD_RUN_SIZE + 8];

	snprintf(half, sizeof(half), "%s.new", run);
	unlinkat(drafts, half, 0);
	unlinkat(drafts, run, 0);
}

/* One draft: 1 when its run was signed, 0 where nothing is to be done about it, or not by us. */
static int look_at_draft(int state, int runs, int drafts, const char *run, struct err *e)
{
	own_fd int fd = -1, folder = file_open_name(runs, run, O_RDONLY | O_DIRECTORY);
	own_free char *bytes = NULL;
	size_t n = 0;
	int r;

	if (folder < 0)
		return folder == -ENOENT ? (keep_forget(drafts, run), 0) : 0;
	/* Its keeper lives. */
	if (flock(folder, LOCK_EX | LOCK_NB) < 0)
		return 0;
	fd = file_open_name(drafts, run, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	r = fd < 0 ? fd : file_read_all(fd, 2 * RECORD_MAX_SIZE, &bytes, &n);
	/* Somebody else has done it, or the keeper came as far as this. */
	if (r == 0 && faccessat(folder, RECORD_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		r = -ENOENT;
	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "cannot read what is to be signed");
	if (r == 0)
		r = sign_draft(state, folder, run, bytes, n, e);
	if (r == 0 || r == -ENOENT)
		keep_forget(drafts, run);
	return r == 0 ? 1 : r == -ENOENT ? 0 : r;
}

int record_sign_interrupted(int state, struct err *e)
{
	own_fd int drafts = open_unsigned(state, false, e), runs = -1;
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

		/* One may not have come as far as to its name. */
		snprintf(run, sizeof(run), "%.*s", RECORD_RUN_LENGTH, entry->name);
		if (!record_is_run(run, true))
			continue;
		r = look_at_draft(state, runs, drafts, run, &why);
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
