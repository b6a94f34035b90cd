/* The parts of manual pages that are printed from tables of the program. */
#include <stdio.h>

#include "gen_docs.h"
#include "proof/log/log_event.h"
#include "proof/verify/verify_policy.h"
#include "wire/wire_gate.h"

void gen_print_events(void)
{
	puts(".SH EVENT TYPES");
	for (size_t i = 0; log_type_name(i); i++) {
		fputs(i ? ", " : "", stdout);
		gen_roff(log_type_name(i));
	}
	puts(".\n.SH REASONS OF THE NETWORK");
	for (size_t i = 0; i < WIRE_REASON_COUNT; i++) {
		struct wire_decision d = {
			.reason = (uint8_t)i, .port = 443, .name = "HOST", .other = "OTHER"
		};
		char text[1024];

		wire_print_decision(&d, text, sizeof(text));
		printf(".TP\n.B %s\n", wire_reason_names[i]);
		gen_roff(text);
		putchar('\n');
	}
}

void gen_print_demands(void)
{
	puts(".SH KEYS OF A POLICY");
	gen_paragraph("A policy has version: 1 and any of these; most take a list as well:");
	for (size_t i = 0; i < VERIFY_DEMAND_COUNT; i++) {
		const struct verify_demand_def *d = &verify_demand_defs[i];

		puts(".TP");
		fputs("\\fB", stdout);
		gen_roff(d->key);
		fputs("\\fR", stdout);
		if (d->example) {
			fputs(", such as ", stdout);
			gen_roff(d->example);
		}
		putchar('\n');
		gen_roff(d->help);
		putchar('\n');
	}
}
