/* What the wall said to a command, for the model that asked for it: what, and why it is no use to
 * try again. */
#include <string.h>

#include "base/own.h"
#include "cli/cli_mcp.h"
#include "proof/record/record.h"

#define MOST_TOLD 5

void mcp_add_note(const char *sentence, struct buf *out)
{
	buf_puts(out, "[bawn: ");
	buf_add_visible(out, sentence, strlen(sentence));
	buf_puts(out, "]\n");
}

void mcp_add_error(const struct err *e, struct buf *out)
{
	struct err whole = *e;

	err_join_hint(&whole);
	mcp_add_note(whole.text, out);
}

static void add_more(struct buf *out, size_t count)
{
	if (count > MOST_TOLD)
		buf_printf(out, "[bawn: and %zu more of this kind]\n", count - MOST_TOLD);
}

static void mcp_notes_add_limits(const struct record *r, struct buf *out)
{
	for (enum plan_guarantee g = 0; r->plan && g < PLAN_GUARANTEE_COUNT; g++) {
		own(buf) struct buf text = { .max = 512 };

		record_print_reached(r, g, &text);
		if (text.len)
			mcp_add_note(buf_text(&text), out);
	}
}

static void add_net(const struct record *r, struct buf *out)
{
	size_t count = 0;

	for (size_t i = 0; i < r->decision_count; i++) {
		const struct wire_decision *d = &r->decisions[i];
		char sentence[1024];

		if (d->kind != WIRE_NET_DENIED && d->kind != WIRE_NAME_DENIED &&
			d->kind != WIRE_NET_FAILED)
			continue;
		wire_print_decision(d, sentence, sizeof(sentence));
		if (count++ < MOST_TOLD)
			buf_printf(out, "[bawn: network: %s]\n", sentence);
	}
	add_more(out, count);
	if (r->gate.kind != ERR_NONE)
		mcp_add_error(&r->gate, out);
}

static void add_denials(const struct record *r, struct buf *out)
{
	size_t count = 0;

	for (size_t i = 0; i < r->denial_count; i++) {
		char sentence[RECORD_PATH_SIZE + 512];

		if (record_is_tried_only(&r->denials[i]))
			continue;
		record_say_denial(&r->denials[i], sentence, sizeof(sentence));
		if (count++ < MOST_TOLD)
			mcp_add_note(sentence, out);
	}
	add_more(out, count);
}

void mcp_add_notes(const struct record *r, struct buf *out)
{
	if (r->outcome == RECORD_REFUSED)
		mcp_add_note("the command was not run", out);
	if (r->error.kind != ERR_NONE)
		mcp_add_error(&r->error, out);
	mcp_notes_add_limits(r, out);
	add_net(r, out);
	add_denials(r, out);
}
