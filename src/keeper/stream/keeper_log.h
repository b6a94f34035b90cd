#pragma once

#include "keeper/keeper.h"
#include "proof/record/record.h"

/* What is said of a run while it lasts: lines for whoever runs bawn, and events of the log. */
struct keeper;

/* --- keeper_events.c --- */

void keeper_say_started(const struct keeper_request *q, const struct record *record, pid_t pid);

/* As keeper_say_decided, of a system call. */
void keeper_say_denied(
	const struct keeper_request *q, const struct record *record, const struct record_denial *d);

/* --- keeper_log.c: what happens, for the log --- */

/* Writes what was said. */
void keeper_log_write(struct keeper *k);

/* The cage was looked at: its guarantees, and what is missing. With the preflight, if one comes. */
void keeper_log_look(struct keeper *k);

/* The preflight has been run. */
void keeper_log_preflight(struct keeper *k);

/* A decision of the gate's that is new, or has another count. */
void keeper_log_decision(struct keeper *k, uint32_t row, bool is_new);

/* The network is closed from here on, as the record says. */
void keeper_log_closed(struct keeper *k);

/* What of the effects is held back. */
void keeper_log_held(struct keeper *k, const struct change_effects *x);

/* The run has ended, with `e`: says the rest, and writes it. */
void keeper_log_end(struct keeper *k, const struct err *e);
