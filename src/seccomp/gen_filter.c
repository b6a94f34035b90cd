/*
 * gen_filter - turns the readable profiles of data/syscalls into C, when bawn is built.
 *
 *   gen_filter ARCH ALWAYS.txt DEFAULT.txt STRICT.txt GATE.txt DIALER.txt
 *              USHER.txt >filter_tables.c
 *
 * always.txt says how a profile is written. A name that nobody knows ends the build, and so does
 * a line that no call can ever reach; a name of another architecture is passed over.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "seccomp/filter_rules.h"

#define MAX_NUMBERS  32
#define MAX_INCLUDES 4
#define SPACE        " \t\n"

struct reader {
	const struct filter_arch *arch;
	struct filter_rules rules;
	struct {
		char name[32];
		int number;
	} numbers[MAX_NUMBERS];
	size_t number_count;
	/* the line being read */
	const char *file;
	int line, depth;
	size_t first_rule; /* of this file */
	char *words;       /* strtok's */
};

_Noreturn static void gen_filter_fail(const struct reader *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void gen_filter_fail(const struct reader *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "%s:%d: ", r->file, r->line);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static const char *next_word(struct reader *r)
{
	return strtok_r(NULL, SPACE, &r->words);
}

static const char *need_word(struct reader *r, const char *what)
{
	const char *word = next_word(r);

	if (!word)
		gen_filter_fail(r, "%s is missing", what);
	return word;
}

static uint64_t gen_filter_read_number(const struct reader *r, const char *word)
{
	char *end = NULL;
	uint64_t value;

	errno = 0;
	value = strtoull(word, &end, 0);
	if (!str_is_digit(word[0]) || *end || errno)
		gen_filter_fail(r, "'%s' is not a number", word);
	return value;
}

/* number NAME N */
static void read_call_number(struct reader *r)
{
	const char *name = need_word(r, "the name");
	uint64_t number = gen_filter_read_number(r, need_word(r, "the number"));
	int known = filter_find_call(r->arch, name);

	if (known != -ENOENT && known != (int)number)
		gen_filter_fail(r, "libseccomp has %d for '%s'", known, name);
	if (number > 4095 || strlen(name) >= sizeof(r->numbers[0].name) ||
		r->number_count == MAX_NUMBERS)
		gen_filter_fail(r, "no room for '%s'", name);
	snprintf(r->numbers[r->number_count].name, sizeof(r->numbers[0].name), "%s", name);
	r->numbers[r->number_count++].number = (int)number;
}

/* A number, or -ENOTSUP for a call of another architecture. */
static int find_call(const struct reader *r, const char *name)
{
	int number = filter_find_call(r->arch, name);

	for (size_t i = 0; number == -ENOENT && i < r->number_count; i++)
		if (str_eq(r->numbers[i].name, name))
			number = r->numbers[i].number;
	if (number == -ENOENT)
		gen_filter_fail(r,
			"there is no system call '%s'; where it is too new for libseccomp, give its "
			"number",
			name);
	return number;
}

/* ARGUMENT[&MASK] is|not|above VALUE; false at the end of the line. */
static bool gen_filter_read_test(struct reader *r, struct filter_test *ret)
{
	static const char *const words[] = { "is", "not", "above" };
	static const enum filter_op ops[] = { FILTER_EQ, FILTER_NE, FILTER_GT };
	const char *subject = next_word(r), *op;
	size_t i = 0;

	if (!subject)
		return false;
	ret->arg = (unsigned)(subject[0] - '0');
	if (ret->arg >= FILTER_MAX_ARGS || (subject[1] && subject[1] != '&'))
		gen_filter_fail(
			r, "'%s' is not an argument, 0 to 5, with &MASK or without", subject);
	ret->mask = subject[1] ? gen_filter_read_number(r, subject + 2) : FILTER_LOW;
	op = need_word(r, "is, not or above");
	while (i < COUNT_OF(ops) && !str_eq(words[i], op))
		i++;
	if (i == COUNT_OF(ops))
		gen_filter_fail(r, "'%s' is not is, not or above", op);
	ret->op = ops[i];
	ret->value = gen_filter_read_number(r, need_word(r, "the value"));
	if (ret->value & ~ret->mask)
		gen_filter_fail(r, "the value has bits that the mask has not");
	return true;
}

static void gen_filter_add_rule(struct reader *r, struct filter_rule *rule, int number)
{
	if (number < 0)
		return;
	rule->number = (uint32_t)number;
	for (size_t i = r->first_rule; i < r->rules.count; i++)
		if (r->rules.items[i].number == rule->number && !r->rules.items[i].test_count)
			gen_filter_fail(r, "a line above answers this call already, in all cases");
	if (filter_rules_add(&r->rules, rule) < 0)
		gen_filter_fail(r, "too many rules");
}

/* allow NAME…, refuse NAME… */
static void gen_filter_read_names(struct reader *r, uint32_t action)
{
	struct filter_rule rule = { .action = action };
	const char *name = need_word(r, "the name");

	for (; name; name = next_word(r))
		gen_filter_add_rule(r, &rule, find_call(r, name));
}

/* NAME TEST… */
static void read_rule(struct reader *r, uint32_t action, bool must_test)
{
	struct filter_rule rule = { .action = action };
	struct filter_test test;
	int number = find_call(r, need_word(r, "the name"));

	while (gen_filter_read_test(r, &test)) {
		if (rule.test_count == FILTER_MAX_ARGS)
			gen_filter_fail(r, "more than %d tests", FILTER_MAX_ARGS);
		rule.tests[rule.test_count++] = test;
	}
	if (must_test && rule.test_count == 0)
		gen_filter_fail(r, "a test is missing");
	gen_filter_add_rule(r, &rule, number);
}

static uint32_t read_error(struct reader *r)
{
	const char *word = need_word(r, "the error");
	int num = filter_find_errno(word);

	if (num == 0 && !str_eq(word, "0"))
		gen_filter_fail(r, "'%s' is not the name of an error", word);
	return SECCOMP_RET_ERRNO | (uint32_t)num;
}

/* otherwise kill */
static void read_otherwise(struct reader *r)
{
	if (!str_eq(need_word(r, "kill"), "kill"))
		gen_filter_fail(r, "otherwise a call can only kill");
	r->rules.action = SECCOMP_RET_KILL_PROCESS;
}

static void gen_filter_read_file(struct reader *r, const char *path);

static void read_include(struct reader *r)
{
	own_free char *path = NULL;
	const char *slash = strrchr(r->file, '/'), *name = need_word(r, "the file");
	const struct reader saved = *r;

	if (r->depth == MAX_INCLUDES)
		gen_filter_fail(r, "includes that are too deep");
	if (asprintf(&path, "%.*s%s", slash ? (int)(slash - r->file + 1) : 0, r->file, name) < 0)
		gen_filter_fail(r, "out of memory");
	gen_filter_read_file(r, path);
	r->file = saved.file;
	r->line = saved.line;
	r->first_rule = saved.first_rule;
	r->words = saved.words;
}

static void gen_filter_read_line(struct reader *r, char *text)
{
	const char *word;

	text[strcspn(text, "#")] = '\0';
	word = strtok_r(text, SPACE, &r->words);
	if (!word)
		return;
	if (str_eq(word, "allow"))
		gen_filter_read_names(r, SECCOMP_RET_ALLOW);
	else if (str_eq(word, "allow-if"))
		read_rule(r, SECCOMP_RET_ALLOW, true);
	else if (str_eq(word, "refuse"))
		gen_filter_read_names(r, SECCOMP_RET_ERRNO | EPERM);
	else if (str_eq(word, "refuse-as"))
		read_rule(r, read_error(r), false);
	else if (str_eq(word, "number"))
		read_call_number(r);
	else if (str_eq(word, "otherwise"))
		read_otherwise(r);
	else if (str_eq(word, "include"))
		read_include(r);
	else
		gen_filter_fail(r, "a line does not start with '%s'", word);
	if (next_word(r))
		gen_filter_fail(r, "there is more on the line than belongs there");
}

static void gen_filter_read_file(struct reader *r, const char *path)
{
	char text[256];
	FILE *f = fopen(path, "re");

	r->file = path;
	r->line = 0;
	r->first_rule = r->rules.count;
	r->depth++;
	if (!f)
		gen_filter_fail(r, "%s", strerror(errno));
	while (fgets(text, sizeof(text), f)) {
		r->line++;
		if (!strchr(text, '\n'))
			gen_filter_fail(r, "the line is too long, or does not end");
		gen_filter_read_line(r, text);
	}
	fclose(f);
	r->depth--;
}

/* --- C --- */

static void print_program(const char *name, const struct filter *program)
{
	printf("static const struct sock_filter %s_code[] = {\n", name);
	for (unsigned i = 0; i < program->count; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%x },\n", program->code[i].code, program->code[i].jt,
			program->code[i].jf, program->code[i].k);
	printf("};\n\nconst struct filter filter_%s = { %s_code, %u };\n\n", name, name,
		program->count);
}

static void print_rules(const char *name, const struct filter_rules *rules)
{
	printf("const struct filter_rule filter_%s[] = {\n", name);
	for (size_t i = 0; i < rules->count; i++) {
		const struct filter_rule *rule = &rules->items[i];

		printf("\t{ .number = %u, .action = 0x%x, .test_count = %u", rule->number,
			rule->action, rule->test_count);
		for (unsigned k = 0; k < rule->test_count; k++)
			printf(",\n\t\t.tests[%u] = { %u, %d, 0x%llx, 0x%llx }", k,
				rule->tests[k].arg, (int)rule->tests[k].op,
				(unsigned long long)rule->tests[k].mask,
				(unsigned long long)rule->tests[k].value);
		printf(" },\n");
	}
	printf("};\n\nconst size_t filter_%s_count = %zu;\n", name, rules->count);
}

static void print_numbers(const struct reader *r)
{
	printf("const struct filter_new_call filter_new_calls[] = {\n");
	for (size_t i = 0; i < r->number_count; i++)
		printf("\t{ \"%s\", %d },\n", r->numbers[i].name, r->numbers[i].number);
	printf("};\n\nconst size_t filter_new_call_count = %zu;\n\n", r->number_count);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "always", "default", "strict", "gate", "dialer",
		"usher", "vault" };
	const int count = COUNT_OF(names);
	static struct filter_rule items[FILTER_MAX_RULES];
	const struct filter_arch *arch = argc == count + 2 ? filter_arch_named(argv[1]) : NULL;
	struct arena arena;

	if (!arch) {
		fprintf(stderr,
			"usage: gen_filter x86_64|aarch64 ALWAYS DEFAULT STRICT GATE DIALER USHER VAULT\n");
		return 2;
	}
	printf("/* Made by gen_filter for %s. */\n#include \"seccomp/filter_rules.h\"\n\n",
		arch->name);
	arena_init(&arena, (size_t)1 << 22);
	for (int i = 0; i < count; i++) {
		struct reader r = { .arch = arch,
			.rules = { arch->audit, SECCOMP_RET_ERRNO | ENOSYS, items, 0 } };
		struct filter program;

		gen_filter_read_file(&r, argv[i + 2]);
		/* `default` includes the others' that are for cages. */
		if (str_eq(names[i], "default"))
			print_numbers(&r);
		if (i == 0)
			print_rules(names[i], &r.rules);
		else if (filter_compile(&r.rules, &arena, &program) < 0)
			gen_filter_fail(&r, "the program is too long");
		else
			print_program(names[i], &program);
	}
	arena_done(&arena);
	return fflush(stdout) == 0 ? 0 : 1;
}
