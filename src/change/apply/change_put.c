/* change_put - the verdict on an effect, and the names of its temporary files. */
#include "change/apply/change_put.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void change_put_decide(struct change_put *p, enum change_verdict v, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(p->why, sizeof(p->why), fmt, args);
	va_end(args);
	p->verdict = v;
	p->step = CHANGE_STEP_NONE;
}

void change_put_fail(struct change_put *p, int error, const char *what)
{
	p->error = error;
	change_put_decide(p, CHANGE_FAILED, "%s: %s", what, strerror(error));
}

void change_put_fail_layer(struct change_put *p, int error)
{
	if (error == EBADMSG || error == ENOENT || error == ELOOP || error == ENOTDIR)
		change_put_decide(p, CHANGE_FAILED,
			"the run's layer has changed: it is not what the run left there");
	else
		change_put_fail(p, error, "cannot read what the run left there");
}

void change_put_fail_host(struct change_put *p, int error)
{
	if (error == ESTALE || error == ENOENT || error == ELOOP)
		change_put_decide(p, CHANGE_CONFLICT, "the host is changing it at this moment");
	else if (error == EXDEV)
		change_put_decide(p, CHANGE_NOT_TAKEN, "something is mounted on it on the host");
	else
		change_put_fail(p, error, "cannot read what the host has there");
}

void change_put_note(struct change_put *p, const char *what)
{
	size_t n = strlen(p->why);

	snprintf(p->why + n, sizeof(p->why) - n, "%s%s", n ? ", " : "", what);
}

void change_put_conflict(const struct change_job *j, struct change_put *p, const char *why)
{
	if (!j->q->is_forced)
		change_put_decide(p, CHANGE_CONFLICT, "%s", why);
	else
		p->step = p->seen.st_mode ? CHANGE_STEP_REPLACE : CHANGE_STEP_ADD;
}

void change_put_name(
	const struct change_job *j, const struct change_put *p, char ret[static CHANGE_NAME_SIZE])
{
	/* Among its objects, git takes no offence at files that are named like that. */
	snprintf(ret, CHANGE_NAME_SIZE, "%s%s%zu%s",
		p->git.kind == CHANGE_GIT_OBJECT ? CHANGE_TEMPORARY_OBJECT : "", j->prefix,
		p->index, p->path == p->x->path ? "" : "-old");
}

enum change_type change_put_type(const struct stat *st)
{
	if (st->st_mode == 0)
		return CHANGE_NOTHING;
	if (S_ISREG(st->st_mode))
		return CHANGE_FILE;
	if (S_ISDIR(st->st_mode))
		return CHANGE_FOLDER;
	return S_ISLNK(st->st_mode) ? CHANGE_LINK : CHANGE_SPECIAL;
}
