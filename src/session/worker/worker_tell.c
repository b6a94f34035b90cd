/*
 * worker_tell - what a worker says: to people, to the log, and by numbers.
 *
 * Runs as: the coordinator.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "session/worker/worker_inside.h"

#define NS_PER_MS  ((uint64_t)1000000)
#define METRICS_MS 1000 /* between two files of metrics */

void worker_tell(struct worker *w, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	w->settings->tell(text, true);
}

void worker_warn(struct worker *w, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	w->settings->tell(text, false);
}

void worker_note_count(struct worker *w)
{
	if (w->settings->metrics && !w->metrics_ns)
		w->metrics_ns = w->written_ns + METRICS_MS * NS_PER_MS;
}

void worker_write_metrics(struct worker *w)
{
	struct err e = { 0 };

	w->metrics_ns = 0;
	w->written_ns = clock_ns();
	if (w->settings->metrics && metrics_write(&w->metrics, w->settings->metrics, &e) < 0)
		worker_warn(w, "%s", e.text);
}

void worker_note_failure(struct worker *w, const char *attempt, int r, const struct err *e)
{
	if (!w->is_cut && e->kind != ERR_NONE)
		worker_warn(w, "%s; trying again", e->text);
	else if (!w->is_cut)
		worker_warn(w, "cannot %s: %s; trying again", attempt, strerror(-r));
	w->is_cut = w->is_deaf = true;
	if (w->renew_ns > clock_ns() + worker_retry_ns(w))
		w->renew_ns = clock_ns() + worker_retry_ns(w);
}

void worker_log(struct worker *w, const char *type, const struct worker_slot *slot,
	const struct store_session *x, const char *text)
{
	own(log) struct log l;
	struct json *j;

	log_init(&l, w->settings->state, slot ? slot->taken.run.id : NULL, x->id);
	j = log_begin(&l, type);
	json_text(j, "worker", w->self.name);
	json_int(j, "token", (int64_t)x->token);
	json_text(j, "text", text);
	log_end(&l);
	if (log_write(&l) < 0)
		worker_warn(w, "%s", l.failure.text);
}
