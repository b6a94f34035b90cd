/*
 * gen_docs - writes the pages that come from the program's own tables, so that no key, option or
 * guarantee can exist undocumented.
 *
 *   gen_docs bawn.1 | bawn-COMMAND.1 | bawn.yaml.5 | guarantees.md      to standard output
 *   gen_docs names | examples.md       the pages of commands; their examples, for the tests
 */
#include "gen_docs.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"

void gen_roff(const char *text)
{
	bool is_start = true;

	for (const char *p = text; *p; p++) {
		if (is_start && (*p == '.' || *p == '\''))
			fputs("\\&", stdout);
		if (*p == '\\')
			fputs("\\e", stdout);
		else if (str_starts(p, "…")) { /* a terminal without UTF-8 would lose it */
			fputs("...", stdout);
			p += sizeof("…") - 2;
		} else if (*p == '-')
			fputs("\\-", stdout);
		else
			putchar(*p);
		is_start = *p == '\n';
	}
}

void gen_paragraph(const char *text)
{
	puts(".PP");
	gen_roff(text);
	putchar('\n');
}

void gen_title(const char *page, const char *section, const char *name)
{
	printf(".TH %s %s \"\" \"bawn %s\" \"bawn\"\n.SH NAME\n", page, section, BAWN_VERSION);
	gen_roff(name);
	putchar('\n');
}

/* --- bawn.yaml(5) --- */

static const char *type_name(const struct spec_key_def *def)
{
	static const char *const names[] = {
		[SPEC_TYPE_VERSION] = "the number 1",
		[SPEC_TYPE_BOOL] = "true or false",
		[SPEC_TYPE_CHOICE] = "one of",
		[SPEC_TYPE_INT] = "a whole number",
		[SPEC_TYPE_SIZE] = "a size",
		[SPEC_TYPE_DURATION] = "a duration",
		[SPEC_TYPE_CPUS] = "a number",
		[SPEC_TYPE_TEXT] = "text",
		[SPEC_TYPE_LIST] = "a list of texts, in order",
		[SPEC_TYPE_SET] = "a list of texts",
		[SPEC_TYPE_PORTS] = "a list of port numbers",
		[SPEC_TYPE_BINDS] = "a list of texts or maps",
		[SPEC_TYPE_SECRETS] = "a list of maps",
		[SPEC_TYPE_VARS] = "a map of names to texts",
	};

	return names[def->type];
}

static const char *tighten_name(const struct spec_key_def *def)
{
	static const char *const names[] = {
		[SPEC_FREE] = "set it freely",
		[SPEC_ONLY_FALSE] = "set it to false",
		[SPEC_ONLY_TRUE] = "set it to true",
		[SPEC_RANK] = "choose the operator's value or one before it",
		[SPEC_HARDENED] = "choose a value that keeps it hardened, or the operator's",
		[SPEC_AT_MOST] = "lower it",
		[SPEC_SUBSET] = "use entries that the operator's cover",
		[SPEC_ADD] = "add entries",
		[SPEC_SAME] = "keep the operator's value, or stay inside the project",
		[SPEC_OPERATOR_ONLY] = "not use it",
	};

	return names[def->tighten];
}

static void key_entry(const struct spec_key_def *def)
{
	puts(".TP");
	printf(".B %s\n", def->path);
	gen_roff(type_name(def));
	for (const char *const *c = def->choices; c && *c; c++) {
		fputs(c == def->choices ? " " : ", ", stdout);
		gen_roff(*c);
	}
	if (def->def) {
		fputs("; default ", stdout);
		gen_roff(def->def);
	}
	puts("\n.br");
	gen_roff(def->doc);
	puts("\n.br");
	fputs("A project's own file may ", stdout);
	gen_roff(tighten_name(def));
	puts(".\n.br");
	fputs("Example: ", stdout);
	gen_roff(def->example);
	putchar('\n');
}

static void print_grammar(void)
{
	puts(".SH NUMBERS");
	gen_paragraph(
		"A size is digits and K, KB, M, MB, G, GB, T or TB, in multiples of 1024; "
		"digits alone are bytes. A duration is one or more of digits and d, h, m, s or "
		"ms, the largest first: 30m, 1h30m. No sign, space, fraction or underscore.");
	puts(".SH WHAT IS NOT YAML HERE");
	gen_paragraph(
		"One UTF-8 document of maps, lists and scalars of at most 256 kB and 32 levels. "
		"Anchors, aliases, tags, merge keys, directives, duplicate keys, tabs, NULs, "
		"hidden and direction-changing characters and a second document are errors. "
		"Only true and false are booleans; no, off, 0777, 1_000 and 22:22 are text. Text "
		"over several lines is a block behind | or |-. An unknown key is always an error.");
}

static void print_layers(void)
{
	puts(".SH LAYERS");
	gen_paragraph(
		"Values come from the built-in defaults, /etc/bawn/policy.yaml, "
		"~/.config/bawn/policy.yaml, the spec file and the command line; a later layer "
		"replaces the value of an earlier one. A spec file is the project's word, and may "
		"only tighten, unless it is the operator's: with --trust, through standard input, "
		"where it really lies in ~/.config/bawn, /etc/bawn or below trusted_projects, or where -f "
		"names a file outside of the project and its repository that belongs to the operator or "
		"root and that nobody else can write.");
	gen_paragraph(
		"A policy is a file with version: 1 and the keys environment, trusted_projects, "
		"self_governance, keep_runs, keep_age, keep_size, defaults (a map of spec keys: what every cage starts from) and project_may (a "
		"map of spec keys: the most that a project's own file may ask for; where it "
		"says nothing, the defaults are the most).");
	gen_paragraph("bawn check --explain KEY says which layer set a value.");
}

static void print_yaml_5(void)
{
	gen_title("BAWN.YAML", "5", "bawn.yaml - the spec of a cage");
	puts(".SH DESCRIPTION");
	gen_roff(
		"A spec declares what a cage contains and what it must guarantee. What it does not "
		"say has a hardened default. ~ is the operator's home, $PROJECT the project's "
		"directory.\n");
	puts(".SH KEYS");
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		if (spec_keys[k].tighten != SPEC_OPERATOR_ONLY)
			key_entry(&spec_keys[k]);
	puts(".SH KEYS OF A POLICY");
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		if (spec_keys[k].tighten == SPEC_OPERATOR_ONLY)
			key_entry(&spec_keys[k]);
	print_layers();
	print_grammar();
	puts(".SH GUARANTEES");
	gen_paragraph("A plan gives these, each required unless allow_degraded names it:");
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		printf(".TP\n.B %s\n", plan_guarantee_defs[g].name);
		gen_roff(plan_guarantee_defs[g].meaning);
		putchar('\n');
	}
	puts(".SH SEE ALSO\n.BR bawn (1),\n.BR bawn\\-run (1),\n.BR bawn\\-check (1)");
}

/* --- guarantees.md --- */

static void print_guarantees_md(void)
{
	puts("# Guarantees\n");
	puts("The vocabulary of plans, doctor, cards and records. This page is printed from the "
	     "table in");
	puts("`src/plan/plan_guarantees.c`; a test compares the two. The last column is what is said of "
	     "one that");
	puts("holds where the log of a run says nothing else.\n");
	puts("| name | what it means | how it is seen from outside | what is seen in most runs "
	     "|\n|---|---|---|---|");
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		printf("| `%s` | %s | %s | %s |\n", plan_guarantee_defs[g].name,
			plan_guarantee_defs[g].meaning, plan_guarantee_defs[g].observed,
			plan_guarantee_defs[g].usual ? plan_guarantee_defs[g].usual : "");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} pages[] = {
		{ "bawn.1", gen_print_bawn_1 },
		{ "bawn.yaml.5", print_yaml_5 },
		{ "guarantees.md", print_guarantees_md },
		{ "examples.md", gen_print_examples },
	};

	if (argc == 2 && str_eq(argv[1], "names"))
		return gen_print_names() && fflush(stdout) == 0 ? 0 : 1;
	if (argc == 2 && str_starts(argv[1], "bawn-") && str_ends(argv[1], ".1")) {
		char command[64];

		snprintf(command, sizeof(command), "%.*s", (int)strlen(argv[1]) - 7, argv[1] + 5);
		return gen_print_command_1(command) && fflush(stdout) == 0 ? 0 : 1;
	}
	for (size_t i = 0; argc == 2 && i < COUNT_OF(pages); i++) {
		if (str_eq(argv[1], pages[i].name)) {
			pages[i].print();
			return fflush(stdout) == 0 ? 0 : 1;
		}
	}
	fputs("gen_docs: cannot print: name one page, such as bawn-run.1 or guarantees.md\n",
		stderr);
	return 2;
}
