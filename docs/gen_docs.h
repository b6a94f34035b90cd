#pragma once

#include <stddef.h>

#include "cli/cli.h"

/* What the pages share; all of it goes to standard output. */

/* Text for roff: a backslash, a hyphen and a leading point or quote mean something there. */
void gen_roff(const char *text);
void gen_paragraph(const char *text);
void gen_title(const char *page, const char *section, const char *name);
void gen_options(const struct cli_option *o);

/* What bawn-COMMAND(1) says beside what the tables of commands and options do. */
struct gen_example {
	const char *what; /* in a few words, without a point */
	const char *line;
	const char *not_run; /* why the tests do not run it; NULL: they do */
};

#define GEN_EXAMPLES 12

struct gen_page {
	const char *command;
	const char *text;         /* paragraphs apart by an empty line; "# " begins a section */
	void (*print_more)(void); /* what comes from other tables; or NULL */
	const char *before;       /* what the examples take for granted, for the tests; or NULL */
	struct gen_example examples[GEN_EXAMPLES + 1];
	const char *see; /* other pages, apart by spaces: "bawn-diff(1) bawn.yaml(5)" */
};

/* Each ended with a NULL command. */
extern const struct gen_page gen_pages_runs[], gen_pages_results[], gen_pages_sessions[];

/* bawn(1), the overview. gen_docs_bawn.c */
void gen_print_bawn_1(void);

/* bawn-COMMAND(1); returns false where there is no such command. gen_docs_commands.c */
bool gen_print_command_1(const char *command);
/* The names of all pages of commands, a line each; false: one of them has no text or no example. */
bool gen_print_names(void);
/* All examples as Markdown, for tests/docs/lines.py. */
void gen_print_examples(void);

/* Tables that stand in pages. gen_docs_tables.c */
void gen_print_events(void);
void gen_print_demands(void);
