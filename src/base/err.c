#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	int exit_status;
	const char *word;
} kinds[ERR_KIND_COUNT] = {
	[ERR_NONE] = { 0, "none" },
	[ERR_USE] = { 2, "use" },
	[ERR_SPEC] = { 125, "spec" },
	[ERR_REFUSED] = { 125, "refused" },
	[ERR_SYS] = { 125, "system" },
	[ERR_NOT_FOUND] = { 127, "not_found" },
	[ERR_NOT_EXEC] = { 126, "not_executable" },
	[ERR_SIGNAL] = { 125, "signal" },
};

int err_set(struct err *e, enum err_kind kind, int num, const char *fmt, ...)
{
	if (e) {
		va_list args;

		e->kind = kind;
		e->num = num;
		e->hint[0] = '\0';
		va_start(args, fmt);
		vsnprintf(e->text, sizeof(e->text), fmt, args);
		va_end(args);
	}
	return num > 0 ? -num : -EINVAL;
}

int err_sys(struct err *e, int num, const char *fmt, ...)
{
	const char *reason = strerror(num);
	va_list args;
	int n, most;

	if (!e)
		return num > 0 ? -num : -EINVAL;
	*e = (struct err){ .kind = ERR_SYS, .num = num };
	va_start(args, fmt);
	n = vsnprintf(e->text, sizeof(e->text), fmt, args);
	va_end(args);
	/* A path may be longer than the text: what is cut is the path, never the reason. */
	most = (int)(sizeof(e->text) - strlen(": ") - strlen(reason) - 1);
	snprintf(e->text + (n < most ? n : most), sizeof(e->text) - (size_t)(n < most ? n : most),
		": %s", reason);
	return num > 0 ? -num : -EINVAL;
}

int err_hint(struct err *e, int r, const char *fmt, ...)
{
	va_list args;

	if (!e)
		return r;
	va_start(args, fmt);
	vsnprintf(e->hint, sizeof(e->hint), fmt, args);
	va_end(args);
	return r;
}

void err_join_hint(struct err *e)
{
	size_t n = strlen(e->text);

	if (e->hint[0])
		snprintf(e->text + n, sizeof(e->text) - n, "; %s", e->hint);
	e->hint[0] = '\0';
}

void err_end_texts(struct err *e)
{
	e->text[sizeof(e->text) - 1] = e->hint[sizeof(e->hint) - 1] = '\0';
}

void err_prefix(struct err *e, const char *fmt, ...)
{
	char old[ERR_TEXT_SIZE];
	va_list args;
	int n;

	if (!e)
		return;
	memcpy(old, e->text, sizeof(old));
	va_start(args, fmt);
	n = vsnprintf(e->text, sizeof(e->text), fmt, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof(e->text))
		snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", old);
}

int err_exit_status(enum err_kind kind)
{
	return kinds[kind].exit_status;
}

const char *err_kind_word(enum err_kind kind)
{
	return kinds[kind].word;
}
