/* work_put - the verdict on an effect, and the names of its temporary files. */
#include "work/work_put.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void work_put_decide(struct work_put *p, enum work_verdict v, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(p->why, sizeof(p->why), fmt, args);
	va_end(args);
	p->verdict = v;
	p->step = WORK_STEP_NONE;
}

void work_put_fail(struct work_put *p, int error, const char *what)
{
	p->error = error;
	work_put_decide(p, WORK_FAILED, "%s: %s", what, strerror(error));
}

void work_put_fail_layer(struct work_put *p, int error)
{
	if (error == EBADMSG || error == ENOENT || error == ELOOP || error == ENOTDIR)
		work_put_decide(p, WORK_FAILED,
			"the run's layer has changed: it is not what the run left there");
	else
		work_put_fail(p, error, "cannot read what the run left there");
}

void work_put_fail_host(struct work_put *p, int error)
{
	if (error == ESTALE || error == ENOENT || error == ELOOP)
		work_put_decide(p, WORK_CONFLICT, "the host is changing it at this moment");
	else if (error == EXDEV)
		work_put_decide(p, WORK_NOT_TAKEN, "something is mounted on it on the host");
	else
		work_put_fail(p, error, "cannot read what the host has there");
}

void work_put_note(struct work_put *p, const char *what)
{
	size_t n = strlen(p->why);

	snprintf(p->why + n, sizeof(p->why) - n, "%s%s", n ? ", " : "", what);
}

void work_put_conflict(const struct work_job *j, struct work_put *p, const char *why)
{
	if (!j->q->is_forced)
		work_put_decide(p, WORK_CONFLICT, "%s", why);
	else
		p->step = p->seen.st_mode ? WORK_STEP_REPLACE : WORK_STEP_ADD;
}

void work_put_name(
	const struct work_job *j, const struct work_put *p, char ret[static WORK_NAME_SIZE])
{
	/* Among its objects, git takes no offence at files that are named like that. */
	snprintf(ret, WORK_NAME_SIZE, "%s%s%zu%s",
		p->git.kind == WORK_GIT_OBJECT ? WORK_TEMPORARY_OBJECT : "", j->prefix, p->index,
		p->path == p->x->path ? "" : "-old");
}

enum work_type work_put_type(const struct stat *st)
{
	if (st->st_mode == 0)
		return WORK_NOTHING;
	if (S_ISREG(st->st_mode))
		return WORK_FILE;
	if (S_ISDIR(st->st_mode))
		return WORK_FOLDER;
	return S_ISLNK(st->st_mode) ? WORK_LINK : WORK_SPECIAL;
}
