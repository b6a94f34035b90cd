#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/log/log_event.h"

/* Letters, digits and what else means nothing in a URI. */
static bool cloudevents_is_plain(char c)
{
	return str_is_letter(c) || str_is_digit(c) || (c && strchr("-._~", c));
}

static bool cloudevents_is_plain_text(const char *text)
{
	for (; *text; text++)
		if (!cloudevents_is_plain(*text))
			return false;
	return true;
}

/* //HOST/bawn; whatever a host is called, it is a URI. */
static void add_source(const char *host, struct buf *out)
{
	buf_puts(out, "//");
	for (; *host; host++)
		if (cloudevents_is_plain(*host))
			buf_putc(out, *host);
		else
			buf_printf(out, "%%%02X", (unsigned char)*host);
	buf_puts(out, "/bawn");
}

void log_print_cloudevent(const struct log_event *x, const struct log_origin *from, struct buf *out)
{
	own(buf) struct buf text = { .max = 4 * LOG_LINE_SIZE },
			    event = { .max = 8 * LOG_LINE_SIZE };
	char time[CLOCK_TEXT_SIZE];
	struct timespec at;
	struct json j;

	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	json_text(&j, "specversion", "1.0");
	buf_printf(&text, "%s/%" PRId64, from->chain, log_find_number(x, "seq"));
	json_text(&j, "id", buf_text(&text));
	text.len = 0;
	add_source(from->host, &text);
	json_text(&j, "source", buf_text(&text));
	text.len = 0;
	buf_printf(&text, "bawn.%s.v1", cloudevents_is_plain_text(x->type) ? x->type : "event");
	json_text(&j, "type", buf_text(&text));
	/* What is not as it has to be is left out: the event itself says it. */
	if (x->run[0] && cloudevents_is_plain_text(x->run))
		json_text(&j, "subject", x->run);
	if (clock_parse(x->time, &at) == 0) {
		clock_print(&at, time);
		json_text(&j, "time", time);
	}
	json_text(&j, "datacontenttype", "application/json");
	log_add_harmless(&event, x->line, x->size, true);
	json_raw(&j, "data", buf_text(&event));
	json_close_map(&j);
	buf_putc(out, '\n');
	out->failed |= text.failed || event.failed;
}
