/*
 * run_prune - keeps the operator's state within its limits.
 *
 * Runs as:  the operator; the keeper of a run that has ended.
 * Leaves:   whatever goes on, has changes that nobody applied, waits for its signature, or belongs
 *           to a session; and for all else a signed line in the log of all runs.
 * Must not: remove anything that no signed line speaks of; follow a link; wait for anybody.
 *
 * What goes is first named, with its digest, in a line that is on the disk; then renamed to a
 * folder that no reader knows, at once and as a whole; then removed. Whoever prunes next removes
 * what a power cut left there.
 */
#include "run/run_prune.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "proof/log/log.h"
#include "proof/log/log_source.h"
#include "proof/record/record_read.h"
#include "proof/record/record_read_values.h"
#include "proof/sign/sign.h"
#include "run/run_sessions.h"

#define PRUNED_FOLDER    "pruned"
#define PRUNED_PREDICATE "urn:bawn:pruned:v1"
#define PRUNED_EVENT     "pruned"
#define PRUNED_MARK      "\"type\":\"" PRUNED_EVENT "\""
#define BATCH            48                   /* runs that one line speaks of */
#define LOGS_SIZE        (4 * LOG_STATE_SIZE) /* of all files of the log together */

struct run_retention run_find_retention(const struct spec *s)
{
	return (struct run_retention){ .runs = spec_number(s, SPEC_KEEP_RUNS),
		.age_ms = spec_number(s, SPEC_KEEP_AGE),
		.bytes = spec_number(s, SPEC_KEEP_SIZE) };
}

struct prune {
	struct run_prune *x;
	int state, runs, pruned; /* folders; `pruned` is -1 in a dry run */
	struct timespec now;
	struct run_sessions sessions; /* opened when the first run of a session is met */
	bool has_sessions;
};

/* What one line speaks of: runs that are locked until they are gone. */
struct prune_batch {
	struct run_prunable items[BATCH];
	struct record_subject subjects[BATCH];
	char names[BATCH][RECORD_RUN_SIZE + 32];
	int folders[BATCH];
	size_t count;
};

/* --- which --- */

/* The sizes of the files in a run's folder. A layer is not counted: what has one stays. */
static uint64_t prune_measure(int folder)
{
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;
	uint64_t sum = 0;
	struct stat st;

	while ((entry = file_next_entry(&entries)))
		if (fstatat(folder, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
	lseek(folder, 0, SEEK_SET);
	return sum;
}

static bool prune_has(int folder, const char *name)
{
	struct stat st;

	/* What cannot be looked at may be there. */
	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* Does the session of a run exist? What cannot be found out is kept. */
static bool prune_is_of_session(struct prune *p, const char *run)
{
	own(store_session) struct store_session s = { 0 };
	char id[64];
	struct err e = { 0 };

	if (!record_find_session(p->runs, run, id))
		return false;
	if (!p->has_sessions) {
		p->has_sessions = true;
		if (run_sessions_open(&p->sessions, false, &e) < 0)
			return true;
	}
	return p->sessions.store && store_find_session(p->sessions.store, id, &s, &e) != -ENOENT;
}

/* Why a run that is locked stays; NULL: it goes. */
static const char *prune_judge(struct prune *p, int folder, const char *run)
{
	if (prune_has(folder, RECORD_LAYER) || prune_has(folder, "git-layer"))
		return "it has changes that were neither applied nor discarded";
	if (!prune_has(folder, RECORD_FILE) && prune_has(folder, LOG_RUN_FILE))
		return "its record is not signed yet";
	return prune_is_of_session(p, run) ? "its session is kept" : NULL;
}

/* The limit that a run is above, which is the nth newest, with `bytes` in it and all newer ones. */
static const char *prune_find_limit(
	const struct prune *p, size_t nth, const struct timespec *began, uint64_t bytes)
{
	const struct run_retention *keep = &p->x->keep;
	int64_t age_ms = (p->now.tv_sec - began->tv_sec) * 1000 +
			 (p->now.tv_nsec - began->tv_nsec) / 1000000;

	if (keep->runs && nth >= keep->runs)
		return "keep_runs";
	if (keep->age_ms && age_ms > 0 && (uint64_t)age_ms > keep->age_ms)
		return "keep_age";
	return keep->bytes && bytes > keep->bytes ? "keep_size" : NULL;
}

/* --- the signed line --- */

/* Where the chain ends that is in a file of the log, which goes. */
struct prune_log {
	uint64_t next;
	char last[SHA256_HEX_SIZE];
};

static void print_statement(const struct record_subject *subjects, size_t count,
	const struct prune_log *log, const struct timespec *now, struct buf *out)
{
	char time[CLOCK_TEXT_SIZE];
	struct json j;

	clock_print(now, time);
	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	json_text(&j, "_type", RECORD_STATEMENT_TYPE);
	json_open_list(&j, "subject");
	for (size_t i = 0; i < count; i++) {
		json_open_map(&j, NULL);
		json_text(&j, "name", subjects[i].name);
		json_open_map(&j, "digest");
		json_text(&j, "sha256", subjects[i].sha256);
		json_close_map(&j);
		json_close_map(&j);
	}
	json_close_list(&j);
	json_text(&j, "predicateType", PRUNED_PREDICATE);
	json_open_map(&j, "predicate");
	json_int(&j, "version", 1);
	json_text(&j, "time", time);
	if (log) {
		json_open_map(&j, "log");
		json_int(&j, "next", (int64_t)log->next);
		json_text(&j, "last", log->last);
		json_close_map(&j);
	}
	json_close_map(&j);
	json_close_map(&j);
}

/* Writes the line, and waits until it is on the disk: only then may anything be removed. */
static int prune_write_line(const struct prune *p, const struct record_subject *subjects,
	size_t count, const struct prune_log *log, struct err *e)
{
	own(buf) struct buf statement = { .max = LOG_LINE_SIZE }, text = { .max = LOG_LINE_SIZE };
	own(sign_key) struct sign_key key = { 0 };
	struct log line;
	struct json *j;
	int r = sign_load_key(p->state, &key, e);

	if (r == -ENOENT)
		return err_hint(e,
			err_set(e, ERR_REFUSED, ENOKEY,
				"cannot sign what is pruned: there is no signing key"),
			"bawn key init creates one");
	if (r < 0)
		return r;
	print_statement(subjects, count, log, &p->now, &statement);
	if (!statement.failed)
		sign_print_envelope(&key, statement.data, statement.len, &text);
	if (statement.failed || text.failed)
		return err_set(e, ERR_SYS, ENOMEM, "cannot sign what is pruned: out of memory");
	text.data[text.len - 1] = '\0'; /* its newline */
	log_init(&line, p->state, NULL, NULL);
	line.is_synced = true;
	j = log_begin(&line, PRUNED_EVENT);
	if (log)
		json_text(j, "file", subjects[0].name);
	else
		json_int(j, "runs", (int64_t)count);
	json_text(j, "signed", text.data);
	log_end(&line);
	r = log_write(&line);
	if (r < 0)
		*e = line.failure;
	log_done(&line);
	return r;
}

/* --- runs --- */

/* The digest that is left of a run: that of its record, or of its log where it has none. */
static int prune_digest(struct prune_batch *b, size_t i, struct err *e)
{
	static const char *const names[] = { RECORD_FILE, LOG_RUN_FILE };
	struct record_subject *subject = &b->subjects[i];
	char run[RECORD_RUN_SIZE];
	uint8_t digest[SHA256_SIZE];

	memcpy(run, b->items[i].name, sizeof(run));
	subject->name = b->names[i];
	for (size_t n = 0; n < COUNT_OF(names); n++) {
		own_fd int fd =
			file_open_name(b->folders[i], names[n], O_RDONLY | O_NONBLOCK | O_NOCTTY);
		int r = fd < 0 ? fd : sha256_file(fd, digest, NULL);

		if (r == -ENOENT)
			continue;
		if (r < 0)
			return err_sys(e, -r, "cannot read '%s' of run %s", names[n], run);
		snprintf(b->names[i], sizeof(b->names[i]), "%s/%s", run, names[n]);
		sha256_print(digest, subject->sha256);
		return 0;
	}
	/* Nothing ever happened in it. */
	snprintf(b->names[i], sizeof(b->names[i]), "%s", run);
	sha256_hex("", 0, subject->sha256);
	return 0;
}

static int prune_remove_run(const struct prune *p, const char *run, struct err *e)
{
	if (renameat(p->runs, run, p->pruned, run) < 0)
		return err_sys(e, errno, "cannot remove run %s", run);
	return tree_remove(p->pruned, run, e);
}

static void prune_tell(struct prune *p, const struct run_prunable *item, const struct err *e)
{
	if (e->kind != ERR_NONE)
		p->x->failed++;
	else if (item->spared)
		p->x->spared++;
	else if (item->is_log)
		p->x->logs++;
	else
		p->x->runs++;
	if (e->kind == ERR_NONE && !item->spared)
		p->x->bytes += item->bytes;
	if (p->x->see)
		p->x->see(p->x->of, item, e);
}

/* Signs and removes the runs of a batch, and unlocks them. */
static int prune_finish_batch(struct prune *p, struct prune_batch *b, struct err *e)
{
	int r = 0;

	if (b->count && !p->x->is_dry)
		r = prune_write_line(p, b->subjects, b->count, NULL, e);
	for (size_t i = 0; i < b->count; i++) {
		struct err why = { 0 };

		if (r == 0 && !p->x->is_dry)
			prune_remove_run(p, b->items[i].name, &why);
		if (r == 0)
			prune_tell(p, &b->items[i], &why);
		close(b->folders[i]);
	}
	b->count = 0;
	return r;
}

/* Adds a run that is above a limit to the batch, or tells why it stays. */
static int prune_add(struct prune *p, struct prune_batch *b, const struct run_prunable *item,
	int folder, struct err *e)
{
	own_fd int fd = folder;
	struct err none = { 0 }, why = { 0 };
	struct run_prunable told = *item;

	told.spared =
		flock(fd, LOCK_EX | LOCK_NB) < 0 ? "it goes on" : prune_judge(p, fd, item->name);
	if (told.spared) {
		prune_tell(p, &told, &none);
		return 0;
	}
	b->items[b->count] = told;
	b->folders[b->count] = fd;
	if (prune_digest(b, b->count, &why) < 0) {
		prune_tell(p, &told, &why);
		return 0;
	}
	(void)take_fd(&fd);
	b->count++;
	return b->count == BATCH ? prune_finish_batch(p, b, e) : 0;
}

/* The runs from the newest on are counted; those above a limit go, the oldest first. */
static int prune_runs(struct prune *p, struct err *e)
{
	own_free struct record_run *found = NULL;
	own_free struct run_prunable *above = NULL;
	struct prune_batch batch = { .count = 0 };
	size_t count = 0, above_count = 0;
	uint64_t bytes = 0;
	int r = record_list_runs(p->runs, NULL, &found, &count);

	if (r < 0)
		return err_sys(e, -r, "cannot list the runs");
	above = calloc(count + 1, sizeof(*above));
	if (!above)
		return err_sys(e, ENOMEM, "cannot list the runs");
	for (size_t i = 0; i < count; i++) {
		own_fd int folder = file_open_name(p->runs, found[i].id, O_RDONLY | O_DIRECTORY);
		uint64_t size = folder >= 0 ? prune_measure(folder) : 0;
		const char *limit;

		bytes += size;
		limit = prune_find_limit(p, i, &found[i].began, bytes);
		if (!limit)
			continue;
		above[above_count] = (struct run_prunable){
			.began = found[i].began, .bytes = size, .limit = limit
		};
		snprintf(above[above_count].name, sizeof(above->name), "%s", found[i].id);
		above_count++;
	}
	while (r == 0 && above_count--) {
		int folder =
			file_open_name(p->runs, above[above_count].name, O_RDONLY | O_DIRECTORY);

		/* One that is gone by now was removed by somebody else. */
		if (folder >= 0)
			r = prune_add(p, &batch, &above[above_count], folder, e);
	}
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): own_free frees it */
	if (r == 0)
		return prune_finish_batch(p, &batch, e);
	for (size_t i = 0; i < batch.count; i++)
		close(batch.folders[i]);
	return r; /* cppcheck-suppress memleak */
}

/* --- the log of all runs --- */

/* Signs and removes one file of the log, in which the chain ends as `log` says. */
static int prune_log(struct prune *p, int folder, const struct log_former *file,
	struct run_prunable *item, struct err *e)
{
	own_fd int fd = file_open_name(folder, file->name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct prune_log log = { .next = file->tail.count };
	struct record_subject subject = { .name = file->name };
	struct err none = { 0 };
	uint8_t digest[SHA256_SIZE];
	int r = fd < 0 ? fd : p->x->is_dry ? 0 : sha256_file(fd, digest, NULL);

	if (r < 0)
		return err_sys(e, -r, "cannot read '%s' of the log of all runs", file->name);
	if (!p->x->is_dry) {
		sha256_print(digest, subject.sha256);
		memcpy(log.last, file->tail.last, sizeof(log.last));
		r = prune_write_line(p, &subject, 1, &log, e);
		if (r == 0 && unlinkat(folder, file->name, 0) < 0)
			r = err_sys(e, errno, "cannot remove '%s'", file->name);
		if (r < 0)
			return r;
	}
	prune_tell(p, item, &none);
	return 0;
}

/* The oldest files, until the others are few and young enough. The one that grows stays. */
static int prune_logs(struct prune *p, struct err *e)
{
	own_fd int folder = file_open_name(p->state, LOG_STATE_DIR, O_RDONLY | O_DIRECTORY);
	own_free struct log_former *files = NULL;
	uint64_t bytes = LOG_STATE_SIZE;
	size_t count = 0;
	int r = folder == -ENOENT ? 0
		: folder < 0      ? folder
				  : log_list_former(folder, &files, &count);

	if (r < 0)
		return err_sys(e, -r, "cannot read the log of all runs");
	for (size_t i = 0; i < count; i++)
		bytes += files[i].tail.size;
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct run_prunable item = { .is_log = true,
			.began = files[i].changed,
			.bytes = files[i].tail.size,
			.limit = prune_find_limit(p, 0, &files[i].changed, 0) };

		if (!item.limit && bytes > LOGS_SIZE)
			item.limit = "the size of the log";
		if (!item.limit)
			break;
		snprintf(item.name, sizeof(item.name), "%s", files[i].name);
		bytes -= files[i].tail.size;
		r = prune_log(p, folder, &files[i], &item, e);
	}
	return r;
}

/* --- all of it --- */

/* What an earlier one renamed and did not live to remove. */
static int prune_open_pruned(int state, struct err *e)
{
	struct tree_removal rest = { .goes_on = true };
	own_fd int fd = -1;

	if (mkdirat(state, PRUNED_FOLDER, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "cannot make the folder of pruned runs");
	fd = file_open_name(state, PRUNED_FOLDER, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return err_sys(e, -fd, "cannot open the folder of pruned runs");
	return tree_empty(fd, &rest, e) < 0 ? -e->num : take_fd(&fd);
}

int run_prune(int state, struct run_prune *x, struct err *e)
{
	own_fd int runs = file_open_name(state, "runs", O_RDONLY | O_DIRECTORY), pruned = -1;
	struct prune p = { .x = x, .state = state, .runs = runs, .pruned = -1 };
	int r = runs == -ENOENT ? 0 : runs;

	if (runs < 0)
		return r < 0 ? err_sys(e, -r, "cannot open the folder of all runs") : 0;
	if (flock(runs, LOCK_EX | LOCK_NB) < 0) {
		x->is_other = true;
		return 0;
	}
	p.sessions = (struct run_sessions){ .state = -1, .root = -1 };
	clock_gettime(CLOCK_REALTIME, &p.now);
	if (!x->is_dry)
		p.pruned = pruned = prune_open_pruned(state, e);
	r = x->is_dry || pruned >= 0 ? prune_runs(&p, e) : pruned;
	if (r == 0 && x->runs && !x->is_dry) {
		r = record_prune_parts(state, runs);
		if (r < 0)
			err_sys(e, -r, "cannot remove the specs and plans of pruned runs");
	}
	if (r == 0)
		r = prune_logs(&p, e);
	if (r == 0 && x->store && !x->is_dry)
		r = store_prune_runs(x->store, x->keep.age_ms, x->keep.runs, &x->rows, e);
	if (p.has_sessions)
		run_sessions_done(&p.sessions);
	if (pruned >= 0)
		unlinkat(state, PRUNED_FOLDER, AT_REMOVEDIR);
	return r;
}

/*
 * The last digits of a run's name are as good as random: one run in 128 looks after the state, and
 * of a state that keeps few runs more of them.
 */
static bool prune_is_due(const char *run, uint64_t keep)
{
	uint64_t number = strtoul(run + RECORD_RUN_LENGTH - 4, NULL, 16) >> 2;
	uint64_t every = keep && keep / 8 < 128 ? keep / 8 : 128;

	return every < 2 || number % every == 0;
}

void run_prune_sometimes(int state, const char *run, const struct spec *s, struct err *e)
{
	struct run_prune x = { .keep = run_find_retention(s) };

	if (prune_is_due(run, x.keep.runs))
		run_prune(state, &x, e);
}

/* --- the beginning of a log --- */

struct pruned_event {
	const char *type, *envelope;
};

/* With which line, and which `prev` in it, the log goes on. */
struct pruned_log {
	int64_t next;
	const char *last;
};

static bool read_log(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "next", record_read_count, offsetof(struct pruned_log, next), true },
		{ "last", record_read_sha256, offsetof(struct pruned_log, last), true },
	};

	return JSON_READ_FIELDS(reader, fields, into);
}

/* Reads one object by its table; the texts are the arena's. */
static bool prune_read(const char *bytes, size_t n, struct arena *arena,
	const struct json_field *fields, size_t count, void *ret)
{
	own(record_reader) struct record_reader r;
	struct err e = { 0 };

	record_reader_begin(&r, bytes, n, arena);
	json_read_fields(&r, fields, count, ret);
	return record_reader_end(&r, "what was pruned", &e) == 0;
}

/* Is the line a signed one that says so of these lines? 1, 0, or -EKEYREJECTED. */
static int prune_check_line(
	int state, const struct log_line *line, uint64_t first, const char *prev)
{
	static const struct json_field event_fields[] = {
		{ "type", record_read_text, offsetof(struct pruned_event, type), true },
		{ "signed", record_read_text, offsetof(struct pruned_event, envelope), true },
	};
	static const struct json_field predicate_fields[] = { { "log", read_log, 0, true } };
	own(arena) struct arena arena;
	struct pruned_event found = { NULL, NULL };
	struct pruned_log log = { -1, NULL };
	struct record_statement statement;
	struct sign_envelope envelope;
	struct sign_public key;
	struct err e = { 0 };

	arena_init(&arena, 16 * LOG_LINE_SIZE);
	if (!prune_read(
		    line->text, line->size, &arena, event_fields, COUNT_OF(event_fields), &found) ||
		!str_eq(found.type, PRUNED_EVENT) ||
		sign_read_envelope(found.envelope, strlen(found.envelope), &arena, &envelope, &e) <
			0 ||
		record_read_statement((const char *)envelope.payload, envelope.size, &arena,
			&statement, &e) < 0 ||
		!str_eq(statement.type, PRUNED_PREDICATE) ||
		!prune_read(statement.predicate, statement.predicate_size, &arena, predicate_fields,
			COUNT_OF(predicate_fields), &log) ||
		log.next != (int64_t)first || !str_eq(log.last, prev))
		return 0;
	for (size_t i = 0; i < envelope.count; i++)
		if (sign_find_own(state, envelope.signatures[i].key_id, &key, &e) == 0 &&
			sign_is_by(&envelope, &key))
			return 1;
	return -EKEYREJECTED;
}

int run_check_log_start(int state, const struct log_line *first, struct err *e)
{
	struct log_source source = { .notice = NULL };
	struct log_line line;
	char prev[SHA256_HEX_SIZE] = "";
	uint64_t number = first->seq;
	int folder = file_open_name(state, LOG_STATE_DIR, O_RDONLY | O_DIRECTORY);
	int ret = -ENOENT;

	if (folder < 0)
		return err_sys(e, -folder, "cannot open the log of all runs");
	/* The reader has checked its form: it ends with 64 digits, a quote and a brace. */
	if (first->size > SHA256_HEX_SIZE + 1)
		memcpy(prev, first->text + first->size - SHA256_HEX_SIZE - 1, SHA256_HEX_SIZE - 1);
	log_source_init(&source, folder, true, "all runs");
	while (ret != 0 && log_source_next(&source, &line) > 0) {
		int r = memmem(line.text, line.size, PRUNED_MARK, strlen(PRUNED_MARK))
				? prune_check_line(state, &line, number, prev)
				: 0;

		ret = r == 1 ? 0 : r < 0 ? r : ret;
	}
	log_source_done(&source);
	if (ret == -EKEYREJECTED)
		return err_set(e, ERR_REFUSED, EKEYREJECTED,
			"cannot check where the log begins: the line that says so is not signed "
			"by you");
	return ret < 0 ? err_set(e, ERR_REFUSED, ENOENT,
				 "cannot check where the log begins: no line says that those "
				 "before line %" PRIu64 " were pruned",
				 number)
		       : 0;
}
