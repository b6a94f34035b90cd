/*
 * Shapes of YAML that no person writes, and the limit next to each that a person may reach; and
 * what is read on after an error that leaves the tree whole.
 */
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "spec/yaml.h"

static struct arena arena;
static struct diags diags;

static const struct yaml_node *read_text(const char *text)
{
	size_t n = strlen(text);

	arena_done(&arena);
	arena_init(&arena, (size_t)64 << 20);
	diags_init(&diags, &arena);
	return yaml_read(&arena, &diags, diags_add_source(&diags, "f", text, n), text, n);
}

static void check_read(const char *text, bool is_good, const char *said, int line)
{
	const struct yaml_node *root = read_text(text);
	char start[60];

	snprintf(start, sizeof(start), "%s", text);
	check_that((root && diags.errors == 0) == is_good, start, __FILE__, line);
	if (!is_good && diags.count)
		check_equal(diags.items[0].text, said, __FILE__, line);
}

#define CHECK_GOOD(text)      check_read((text), true, NULL, __LINE__)
#define CHECK_BAD(text, said) check_read((text), false, (said), __LINE__)

/* "a: " and n times a piece, and an end. */
static const char *repeat(const char *start, const char *piece, size_t n, const char *end)
{
	static struct buf b;

	buf_done(&b);
	buf_init(&b, YAML_MAX_SIZE);
	buf_puts(&b, start);
	for (size_t i = 0; i < n; i++)
		buf_puts(&b, piece);
	buf_puts(&b, end);
	if (b.failed)
		abort();
	return buf_text(&b);
}

static void test_lengths(void)
{
	static const char line[] = "line of more than 4096 bytes";
	static const char blank[] = "more than 64 empty lines in a row";
	static const char spaces[] = "more than 128 spaces in a row";

	CHECK_GOOD(repeat("a: ", "x", 4093, "\n"));
	CHECK_BAD(repeat("a: ", "x", 4094, "\n"), line);
	CHECK_BAD(repeat("#", "x", 4096, "\na: 1\n"), line);
	CHECK_GOOD(repeat("a: x\n", "\n", 64, "b: y\n"));
	CHECK_BAD(repeat("a: x\n", "\n", 65, "b: y\n"), blank);
	CHECK_BAD(repeat("a: x\n", "  \r\n", 65, "b: y\n"), blank);
	CHECK_GOOD(repeat("a: x\n", "\n#\n", 200, "b: y\n"));
	CHECK_GOOD(repeat("a:", " ", 128, "y\n"));
	CHECK_BAD(repeat("a:", " ", 129, "y\n"), spaces);
	CHECK_GOOD(repeat("a: \"", " ", 128, "\"\n"));
}

static void test_brackets(void)
{
	static const char deep[] = "more than 32 levels deep";

	CHECK_GOOD(repeat("a: [", "[],", 1000, "]\n"));
	CHECK_GOOD(repeat("a: \"", "[", 200, "\"\n"));
	CHECK_BAD(repeat("a: ", "[", 40, "\n"), deep);
	CHECK_BAD(repeat("a: ", "{b: ", 40, "\n"), deep);
	CHECK_BAD(repeat("a: ", "[", 1000, "\n"), deep);
	CHECK_BAD(repeat("", "- ", 1000, "x\n"), deep);
}

/* In block style a value stands further right than its key, an entry than its dash. */
static void test_indents(void)
{
	static const char value[] = "a value must stand further right than its key";
	static const char entry[] = "an entry must stand further right than its dash";

	CHECK_GOOD("a:\n  x\n");
	CHECK_GOOD("a:\n x\n");
	CHECK_GOOD("a:\n  b:\n    c\n");
	CHECK_GOOD("a: [\n x\n ]\n");
	CHECK_GOOD("a:\n- x\n-\n  y\n");
	CHECK_GOOD("a: |\n  text\n");
	CHECK_GOOD("a:\nb: 1\n");
	CHECK_BAD("a:\nx\n", value);
	CHECK_BAD("a:\n\"x\"\n", value);
	CHECK_BAD("a:\n  b:\n  'x'\n", value);
	CHECK_BAD("a:\n[x]\n", value);
	CHECK_BAD("a:\n-\nx\n", entry);
	CHECK_BAD("a:\n-\n\"x\"\n", entry);
}

static void test_directives(void)
{
	static const char said[] = "YAML directives are not allowed";

	CHECK_GOOD("a: 100%\n");
	CHECK_GOOD("a: |\n  %x\n");
	CHECK_GOOD("# %x\na: 1\n");
	CHECK_BAD("%x\n---\na: 1\n", said);
	CHECK_BAD("# first\n%YAML 1.1\n---\na: 1\n", said);
	CHECK_BAD("a: 1\n...\n%x\n---\nb: 1\n", said);
}

/* Anchors, tags, aliases and double keys change nothing of the tree: it is read to its end. */
static void test_goes_on(void)
{
	const struct yaml_node *root = read_text("a: &x 1\nb: !!str 2\nc: *x\nd: 3\nd: 4\n");

	CHECK(root && root->count == 5 && diags.errors == 4);
	CHECK_STR(yaml_get(root, "d")->text, "3");
	/* Half a tree is none. */
	CHECK(!read_text("a: &x 1\nb: [1\n") && diags.errors == 2);
	CHECK(!read_text("a: &x 1\n---\nb: 1\n") && diags.errors == 2);
	CHECK(!read_text("*a : 1\nb: 2\n") && diags.errors > 0);
}

/* --- read right, or not at all --- */

static void print_node(const struct yaml_node *n, struct buf *out)
{
	if (n->key)
		buf_printf(out, "%s=", n->key->text);
	if (n->kind == YAML_SCALAR)
		buf_printf(out, "'%s'", n->text);
	else
		buf_puts(out, n->kind == YAML_MAP ? "{" : "[");
	for (const struct yaml_node *c = n->first; c; c = c->next) {
		print_node(c, out);
		buf_puts(out, c->next ? " " : "");
	}
	if (n->kind != YAML_SCALAR)
		buf_puts(out, n->kind == YAML_MAP ? "}" : "]");
}

/*
 * Texts that readers of YAML are known to disagree on, slips of the parser among them, and what
 * they mean. NULL: they mean nothing, so they must be refused.
 */
static void test_never_misread(void)
{
	static const char *const rows[][2] = {
		/* quoted over several lines */
		{ "a: 'x\n  y'\n", "{a='x y'}" },
		{ "a: \"x\n\n  y\"\n", "{a='x\ny'}" },
		{ "a: '''''\n  ?'\n", "{a=''' ?'}" },
		{ "a: '~\n ''''\n    - y\n  #c'\n", "{a='~ '' - y #c'}" },
		{ "a: \"\\\n       \n  \n    it's\n      a: b\"\n", "{a='\n\nit's a: b'}" },
		/* folded */
		{ "a: >-\n e\n\n  5\n", "{a='e\n\n 5'}" },
		{ "a: >\n e\n\n\n  5\n\n", "{a='e\n\n\n 5\n'}" },
		{ "a: >-\n  one\n    - x\n  two\n", "{a='one\n  - x\ntwo'}" },
		/* as it stands */
		{ "a: |\n  x\n\n   y\n", "{a='x\n\n y\n'}" },
		{ "a: |1-\n    \n", "{a='   '}" },
		{ "a: #c\n |\n - \n    {m: n}\n", "{a='- \n   {m: n}\n'}" },
		{ "a:\n  - |\n\n  - \"\"\n", "{a=['' '']}" },
		{ "a:\n  - |+\n  - x\n", "{a=['' 'x']}" },
		{ "k:\n  a: |\n  b: c\n", "{k={a='' b='c'}}" },
		{ "k:\n  a: |\n  text\n", NULL },
		{ "k:\n b: >-\n e\n  5:\n     x\nd:\n", NULL },
		{ "k:\n  x: |-\n  x #c\n     y\n", NULL },
		/* a key without a word */
		{ "a: :\n", NULL },
		{ "a:\n  :\n", NULL },
		{ ":\n", NULL },
		{ "a: [:]\n", NULL },
		{ "a: {b: c, :}\n", NULL },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct yaml_node *root = read_text(rows[i][0]);
		own(buf) struct buf out = { .max = 1000 };

		if (root && diags.errors == 0)
			print_node(root, &out);
		check_that(diags.errors || (rows[i][1] && str_eq(buf_text(&out), rows[i][1])),
			rows[i][0], __FILE__, __LINE__);
	}
}

/* What will not be shown is not looked for, and is an error all the same. */
static void test_full(void)
{
	const struct yaml_node *root = read_text(repeat("", "a: &x 1\n", 300, ""));

	CHECK(!root && diags_are_full(&diags));
}

int main(void)
{
	test_lengths();
	test_brackets();
	test_indents();
	test_directives();
	test_goes_on();
	test_never_misread();
	test_full();
	repeat("", "", 0, "");
	arena_done(&arena);
	return check_report();
}
