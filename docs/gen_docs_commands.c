/* bawn-COMMAND(1): a page for each command, from the table of commands and the pages' own texts. */
#include "gen_docs.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"

static const struct gen_page *const page_lists[] = { gen_pages_runs, gen_pages_results,
	gen_pages_sessions };

static const struct gen_page *find_page(const char *command)
{
	for (size_t i = 0; i < COUNT_OF(page_lists); i++)
		for (const struct gen_page *p = page_lists[i]; p->command; p++)
			if (str_eq(p->command, command))
				return p;
	return NULL;
}

/* Paragraphs and sections of a text. */
static void print_text(const char *text)
{
	while (*text) {
		const char *end = strstr(text, "\n\n");
		size_t n = end ? (size_t)(end - text) : strlen(text);
		char part[4096];

		snprintf(part, sizeof(part), "%.*s", (int)n, text);
		if (str_starts(part, "# "))
			printf(".SH %s\n", part + 2);
		else
			gen_paragraph(part);
		text += end ? n + 2 : n;
	}
}

static void print_synopsis(const struct cli_command *c)
{
	if (c->subcommands) {
		for (const struct cli_command *s = c->subcommands; s->name; s++)
			print_synopsis(s);
		return;
	}
	printf(".B bawn %s\n", c->name);
	gen_roff(c->usage);
	puts("\n.br");
}

static void print_no_json(const struct cli_command *c)
{
	char text[512];

	if (!c->no_json)
		return;
	snprintf(text, sizeof(text), "bawn %s has no --json: %s.", c->name, c->no_json);
	gen_paragraph(text);
}

static void print_options(const struct cli_command *c)
{
	for (const struct cli_command *s = c->subcommands; s && s->name; s++) {
		printf(".SS bawn %s\n", s->name);
		gen_roff(s->help);
		puts(".");
		if (s->options)
			gen_options(s->options);
		print_no_json(s);
	}
	if (c->options) {
		puts(".SH OPTIONS");
		gen_options(c->options);
	}
	puts(".SH COMMON OPTIONS");
	gen_options(cli_common_options);
	print_no_json(c);
	if (!c->takes_spec)
		return;
	puts(".SH OPTIONS THAT OVERRIDE THE SPEC");
	gen_paragraph(
		"Each overrides one key of the spec, see bawn.yaml(5); those of a list add to it.");
	gen_options(cli_spec_options);
}

static void print_examples(const struct gen_page *p)
{
	puts(".SH EXAMPLES");
	for (const struct gen_example *x = p->examples; x->line; x++) {
		puts(".TP");
		gen_roff(x->what);
		puts("\n.EX");
		gen_roff(x->line);
		puts("\n.EE");
	}
}

static void print_see(const char *see)
{
	puts(".SH SEE ALSO\n.BR bawn (1)");
	while (*see) {
		size_t n = strcspn(see, "("), all = strcspn(see, " ");

		printf(".br\n.BR %.*s %.*s\n", (int)n, see, (int)(all - n), see + n);
		see += all + strspn(see + all, " ");
	}
}

bool gen_print_command_1(const char *command)
{
	for (const struct cli_command *c = cli_commands; c->name; c++) {
		const struct gen_page *p = find_page(c->name);
		char title[64], name[256];

		if (!str_eq(c->name, command) || !p)
			continue;
		snprintf(title, sizeof(title), "BAWN-%s", command);
		for (char *t = title; *t; t++)
			*t = *t >= 'a' && *t <= 'z' ? (char)(*t - 'a' + 'A') : *t;
		snprintf(name, sizeof(name), "bawn-%s - %s", c->name, c->help);
		gen_title(title, "1", name);
		puts(".SH SYNOPSIS");
		print_synopsis(c);
		puts(".SH DESCRIPTION");
		print_text(p->text);
		if (p->print_more)
			p->print_more();
		print_options(c);
		print_examples(p);
		print_see(p->see);
		return true;
	}
	return false;
}

bool gen_print_names(void)
{
	bool is_whole = true;

	for (const struct cli_command *c = cli_commands; c->name; c++) {
		const struct gen_page *p = find_page(c->name);

		if (!p || !p->examples[0].line)
			fprintf(stderr,
				"bawn %s has no text with examples in docs/gen_docs_pages_*.c\n",
				c->name);
		is_whole = is_whole && p && p->examples[0].line;
		printf("bawn-%s.1\n", c->name);
	}
	return is_whole;
}

void gen_print_examples(void)
{
	for (size_t i = 0; i < COUNT_OF(page_lists); i++) {
		for (const struct gen_page *p = page_lists[i]; p->command; p++) {
			printf("# bawn-%s(1)\n\n", p->command);
			if (p->before)
				printf("```sh\n%s\n```\n\n", p->before);
			for (const struct gen_example *x = p->examples; x->line; x++) {
				if (x->not_run)
					printf("<!-- not run: %s -->\n", x->not_run);
				printf("```console\n$ %s\n```\n\n", x->line);
			}
		}
	}
}
