/*
 * verify_files - is what lies beside a record what it tells of?
 *
 * Runs as:  whoever wants to know.
 * Must not: follow a link, or wait for anything that only looks like a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/project/change_project.h"
#include "proof/log/log.h"
#include "proof/verify/verify_inside.h"

#define MOST_EFFECTS ((size_t)1 << 30) /* bytes of effects.json */

int verify_open_file(const struct verify_record *v, const char *property, const char *name,
	struct verify_report *report)
{
	own_fd int fd = v->folder < 0 ? -ENOENT
				      : file_open_beneath(v->folder, name,
						O_RDONLY | O_NOCTTY | O_NONBLOCK, 0);
	struct stat st;

	if (fd == -ENOENT || fd == -ENOTDIR || fd == -EXDEV)
		verify_say(report, property, VERIFY_ABSENT, "'%s' is not beside the record", name);
	else if (fd < 0)
		verify_say(report, property, VERIFY_NO, "'%s' cannot be opened: %s", name,
			fd == -ELOOP ? "it is a link" : strerror(-fd));
	else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		verify_say(report, property, VERIFY_NO, "'%s' is no plain file", name);
	else
		return take_fd(&fd);
	return -1;
}

/* Has a file beside the record that digest? */
static void verify_file(const struct verify_record *v, const char *property, const char *name,
	const char *sha256, struct verify_report *report)
{
	own_fd int fd = verify_open_file(v, property, name, report);
	char hex[SHA256_HEX_SIZE];
	uint8_t bytes[SHA256_SIZE];
	uint64_t size = 0;
	int r;

	if (fd < 0)
		return;
	r = sha256_file(fd, bytes, &size);
	sha256_print(bytes, hex);
	if (r < 0)
		verify_say(
			report, property, VERIFY_NO, "'%s' cannot be read: %s", name, strerror(-r));
	else if (!str_eq(hex, sha256))
		verify_say(report, property, VERIFY_NO,
			"'%s' is not that of the record: its digest is %s", name, hex);
	else
		verify_say(report, property, VERIFY_YES, "%s", hex);
}

void verify_plain_files(const struct verify_record *v, struct verify_report *report)
{
	verify_file(v, "spec", RECORD_SPEC_FILE, v->record.spec_sha256, report);
	verify_file(v, "plan", RECORD_PLAN_FILE, v->record.plan_sha256, report);
	if (v->record.project.list_sha256)
		verify_file(
			v, "project", CHANGE_PROJECT_FILE, v->record.project.list_sha256, report);
	for (int i = 0; i < 2; i++)
		if (v->record.output.streams[i].kept_sha256)
			verify_file(v, record_stream_names[i], record_stream_names[i],
				v->record.output.streams[i].kept_sha256, report);
}

/* --- effects --- */

int verify_read_effects(int folder, struct change_effects *ret,
	char ret_sha256[static SHA256_HEX_SIZE], struct err *e)
{
	own_fd int fd = folder < 0 ? -ENOENT
				   : file_open_name(folder, RECORD_EFFECTS_FILE,
					     O_RDONLY | O_NOCTTY | O_NONBLOCK);
	own_free char *bytes = NULL;
	size_t n = 0;
	int r = fd < 0 ? fd : file_read_all(fd, MOST_EFFECTS, &bytes, &n);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_sys(e, -r, "effects.json cannot be read");
	sha256_hex(bytes, n, ret_sha256);
	r = change_effects_read(bytes, n, ret, e);
	return r < 0 ? r : 1;
}

/* A run that did nothing leaves no file. */
static void verify_no_effects(const struct verify_record *v, struct verify_report *report)
{
	own(change_effects) struct change_effects nothing;
	char digest[SHA256_HEX_SIZE];

	change_effects_init(&nothing);
	change_digest(&nothing, digest);
	if (v->folder >= 0 && str_eq(digest, v->record.effects.sha256))
		verify_say(
			report, "effects", VERIFY_YES, "none: the run did nothing to the project");
	else
		verify_say(report, "effects", VERIFY_ABSENT,
			"'effects.json' is not beside the record");
}

static bool are_counted_so(const struct record_read *r, const struct change_effects *x)
{
	struct change_sum sum = { 0 };

	change_sum_up(x, &sum);
	return (int64_t)sum.added == r->effects.added &&
	       (int64_t)sum.changed == r->effects.changed &&
	       (int64_t)sum.deleted == r->effects.deleted &&
	       (int64_t)sum.renamed == r->effects.renamed;
}

void verify_effects(const struct verify_record *v, struct verify_report *report)
{
	const struct record_read *r = &v->record;
	own(change_effects) struct change_effects x;
	char file[SHA256_HEX_SIZE];
	struct err e = { 0 };
	int got;

	change_effects_init(&x);
	got = r->effects.sha256 ? verify_read_effects(v->folder, &x, file, &e) : 0;
	if (!r->effects.sha256)
		verify_say(report, "effects", VERIFY_ABSENT, "%s",
			r->effects.error ? r->effects.error
			: r->capture     ? "what became of the project is not in the record"
					 : "the project was not captured");
	else if (got < 0)
		verify_say(report, "effects", VERIFY_NO, "%s", e.text);
	else if (got == 0)
		verify_no_effects(v, report);
	else if (!str_eq(x.digest, r->effects.sha256))
		verify_say(report, "effects", VERIFY_NO,
			"'effects.json' tells of other effects: their digest is %s", x.digest);
	else if (r->effects.file_sha256 && !str_eq(file, r->effects.file_sha256))
		verify_say(report, "effects", VERIFY_NO,
			"'effects.json' was changed: its digest is %s", file);
	else if (!are_counted_so(r, &x))
		verify_say(report, "effects", VERIFY_NO,
			"'effects.json' has another number of effects than the record");
	else
		verify_say(report, "effects", VERIFY_YES, "%zu, as the record has them", x.count);
}

/* --- what the statement is about --- */

void verify_subjects(const struct verify_record *v, struct verify_report *report)
{
	const struct record_artifacts *subjects = &v->statement.subjects;

	for (size_t i = 0; i < subjects->count; i++) {
		const struct record_artifact *s = &subjects->items[i];
		char name[256];

		if (str_eq(s->name, "effects")) {
			if (!v->record.effects.sha256 ||
				!str_eq(s->sha256, v->record.effects.sha256))
				verify_say(report, "subject", VERIFY_NO,
					"the subject's effects are not those of the record");
			continue;
		}
		/* Of the file as it was then: verify_events knows where that ended. */
		if (str_eq(s->name, LOG_RUN_FILE))
			continue;
		snprintf(name, sizeof(name), "subject %.200s", s->name);
		verify_file(v, name, s->name, s->sha256, report);
	}
}
