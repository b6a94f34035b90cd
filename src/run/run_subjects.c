/*
 * run_subjects - files that the operator named: as the run left them, subjects of its record.
 *
 * Runs as:  the operator, when the run has ended.
 * Must not: follow a link of the project's, or leave it; take the host's file for one that the run
 *           changed or took away.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"
#include "change/project/change_project.h"
#include "run/run.h"

#define MOST_EFFECTS ((size_t)1 << 30) /* bytes of effects.json */

/* --- which --- */

/* What else a record has as subject, and what lies beside it: nobody must take one for the other.
 */
static const char *const reserved[] = { "effects", RECORD_EFFECTS_FILE, LOG_RUN_FILE,
	RECORD_SPEC_FILE, RECORD_PLAN_FILE, CHANGE_PROJECT_FILE, RECORD_FILE };

static bool subjects_is_utf8(const char *text)
{
	size_t n = strlen(text), width = 1;
	uint32_t unused;

	for (; n && width; text += width, n -= width)
		width = utf8_decode(text, n, &unused);
	return width != 0;
}

/* Names and slashes between them, and nothing that leads elsewhere. */
static bool is_plain_path(const char *path)
{
	for (const char *part = path;; part += strcspn(part, "/") + 1) {
		size_t n = strcspn(part, "/");

		if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && memcmp(part, "..", 2) == 0))
			return false;
		if (!part[n])
			return subjects_is_utf8(path);
	}
}

static int check_name(const char *name, struct err *e)
{
	if (!is_plain_path(name))
		return err_hint(e,
			err_set(e, ERR_USE, EINVAL,
				"cannot use --subject '%s': it is not a path below the project",
				name),
			"such as: --subject dist/app.tar");
	for (size_t i = 0; i < COUNT_OF(reserved); i++)
		if (str_eq(name, reserved[i]))
			return err_hint(e,
				err_set(e, ERR_USE, EINVAL,
					"cannot use --subject '%s': a record has something else of "
					"that name",
					name),
				"give the file another name");
	return 0;
}

static bool subjects_is_among(const struct run_subjects *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (str_eq(s->names[i], name))
			return true;
	return false;
}

int run_take_subjects(struct run *r, struct err *e)
{
	struct run_subjects *s = &r->subjects;

	for (size_t i = 0; i < r->asked->subjects.count; i++) {
		const char *name = r->asked->subjects.items[i];
		int ret;

		name += str_starts(name, "./") ? 2 : 0;
		ret = check_name(name, e);
		if (ret < 0)
			return ret;
		if (subjects_is_among(s, name))
			continue;
		if (s->count == RUN_MOST_SUBJECTS)
			return err_set(e, ERR_USE, E2BIG, "cannot use --subject more than %d times",
				RUN_MOST_SUBJECTS);
		s->names[s->count++] = name;
	}
	return 0;
}

/* --- what they are --- */

int run_read_effects(const struct run *r, struct change_effects *ret, struct err *e)
{
	own_free char *bytes = NULL;
	own_fd int fd = -1;
	size_t n = 0;
	int failure;

	if (!r->record.effects.file[0])
		return 0;
	fd = file_open_name(r->folder, RECORD_EFFECTS_FILE, O_RDONLY);
	failure = fd < 0 ? fd : file_read_all(fd, MOST_EFFECTS, &bytes, &n);
	if (failure < 0)
		return err_sys(e, -failure, "cannot read effects.json");
	return change_effects_read(bytes, n, ret, e);
}

/* Why a file that the run touched is no file; NULL: it is one. */
static const char *objection(const struct change_effect *x)
{
	if (x->change == CHANGE_DELETED || x->after.type == CHANGE_NOTHING)
		return "the run deleted it";
	if (x->after.type != CHANGE_FILE)
		return "it is not a file";
	return x->after.has_hash ? NULL : "it could not be read as a whole";
}

/* 1: it is as the run left it, or *ret_why says why not; 0: the run did not touch it. */
static int find_among_effects(const struct change_effects *effects, const char *name,
	struct record_subject *ret, const char **ret_why)
{
	bool is_gone = false;

	for (size_t i = 0; i < effects->count; i++) {
		const struct change_effect *x = &effects->items[i];

		if (str_eq(x->path, name)) {
			*ret_why = objection(x);
			sha256_print(x->after.hash, ret->sha256);
			return 1;
		}
		is_gone |= x->from && str_eq(x->from, name);
		is_gone |= x->after.type != CHANGE_FOLDER && str_path_within(name, x->path);
	}
	*ret_why = is_gone ? "the run took it away" : NULL;
	return is_gone;
}

static const char *find_on_host(const struct run *r, const char *name, struct record_subject *ret)
{
	own_fd int project = file_open_real(r->place.project, O_PATH | O_DIRECTORY), fd = -1;
	uint8_t digest[SHA256_SIZE];
	struct stat st;
	int failure;

	fd = project < 0 ? project
			 : file_open_beneath(project, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return "it is not there";
	if (fd == -ELOOP)
		return "it is a link, or a link leads there";
	if (fd < 0)
		return strerror(-fd);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return "it is not a file";
	failure = sha256_file(fd, digest, NULL);
	sha256_print(digest, ret->sha256);
	return failure < 0 ? strerror(-failure) : NULL;
}

size_t run_find_subjects(struct run *r, struct record_subject *ret)
{
	own(change_effects) struct change_effects effects;
	const struct record_effects *x = &r->record.effects;
	struct err e = x->error;
	size_t found = 0;

	change_effects_init(&effects);
	if (r->subjects.count == 0 || r->record.outcome == RECORD_REFUSED)
		return 0;
	if (e.kind == ERR_NONE)
		(void)run_read_effects(r, &effects, &e);
	for (size_t i = 0; i < r->subjects.count; i++) {
		const char *name = r->subjects.names[i], *why = e.text;

		ret[found].name = name;
		if (e.kind == ERR_NONE && !find_among_effects(&effects, name, &ret[found], &why))
			why = find_on_host(r, name, &ret[found]);
		if (!why) {
			found++;
			continue;
		}
		run_tell(r, "the record has no subject '%s': %s", name, why);
		r->is_unrecorded = true;
	}
	return found;
}
