/*
 * dialer_answer - the end of a call: its answer, which goes when who asked listens.
 *
 * Runs as:  the dialer, confined.
 * Must not: wait for who asked; let one of them wait because the other does not listen.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "gate/dialer/dialer.h"
#include "wire/wire.h"

static void free_place(struct dialer *c, struct dialer_call *call)
{
	if (call->passed >= 0)
		close(take_fd(&call->passed));
	call->state = CALLER_FREE;
	c->channels[call->asker].count--;
	c->count--;
	while (c->end && c->calls[c->end - 1].state == CALLER_FREE)
		c->end--;
}

/* True: it has gone, and the call's place is free. */
static bool dialer_answer_send_answer(struct dialer *c, struct dialer_call *call)
{
	int channel = c->channels[call->asker].fd;
	int r = channel < 0 ? -EPIPE
			    : wire_send_message(
				      channel, &call->answer, sizeof(call->answer), call->passed);

	if (r == -EAGAIN)
		return false;
	/* As where too many descriptors are on their way: the answer can still be told. */
	if (r < 0 && r != -EPIPE && call->passed >= 0) {
		close(take_fd(&call->passed));
		call->answer.kind = WIRE_NET_FAILED;
		call->answer.reason = WIRE_BECAUSE_UNREACHABLE;
		snprintf(call->answer.other, sizeof(call->answer.other),
			"the connection could not be handed over: %s", strerror(-r));
		return dialer_answer_send_answer(c, call);
	}
	free_place(c, call);
	return true;
}

void dialer_answer(struct dialer *c, struct dialer_call *call, enum wire_decision_kind kind,
	enum wire_reason reason, const char *other, int passed)
{
	struct dialer_channel *channel = &c->channels[call->asker];

	dialer_stop(call);
	call->answer = (struct wire_called){
		.id = call->asked.id, .kind = (uint8_t)kind, .reason = (uint8_t)reason
	};
	snprintf(call->answer.other, sizeof(call->answer.other), "%s", other);
	call->passed = passed;
	call->state = CALLER_ANSWERED;
	if (channel->unsent || !dialer_answer_send_answer(c, call))
		channel->unsent++;
}

void dialer_send_answers(struct dialer *c, enum dialer_asker asker)
{
	struct dialer_channel *channel = &c->channels[asker];

	for (unsigned i = 0; i < c->end && channel->unsent; i++) {
		struct dialer_call *call = &c->calls[i];

		if (call->state != CALLER_ANSWERED || call->asker != asker)
			continue;
		if (!dialer_answer_send_answer(c, call))
			return;
		channel->unsent--;
	}
}

void dialer_cancel(struct dialer *c, enum dialer_asker asker, uint32_t id)
{
	for (unsigned i = 0; i < c->end; i++) {
		struct dialer_call *call = &c->calls[i];

		if (call->state == CALLER_FREE || call->asker != asker || call->asked.id != id)
			continue;
		c->channels[asker].unsent -= call->state == CALLER_ANSWERED;
		dialer_stop(call);
		free_place(c, call);
		return;
	}
}
