/* The reduced YAML: what it reads, where it says things stand, and all that it refuses. */
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "spec/yaml.h"

/* One reading, with all that it takes. */
struct reading {
	struct arena arena;
	struct diags diags;
	const struct yaml_node *root;
};

static void reading_done(struct reading *r)
{
	arena_done(&r->arena);
}

static void read_bytes(struct reading *r, const char *bytes, size_t n)
{
	arena_init(&r->arena, (size_t)64 << 20);
	diags_init(&r->diags, &r->arena);
	diags_add_source(&r->diags, "unused", NULL, 0);
	r->root = yaml_read(
		&r->arena, &r->diags, diags_add_source(&r->diags, "f", bytes, n), bytes, n);
}

static void read_text(struct reading *r, const char *text)
{
	read_bytes(r, text, strlen(text));
}

/* --- the tree --- */

static void print_node(const struct yaml_node *n, struct buf *out)
{
	static const char *const types[] = { "t", "n", "b", "i", "f" };

	if (n->key)
		buf_printf(out, "%s=", n->key->text);
	if (n->kind == YAML_SCALAR)
		buf_printf(out, "%s'%s'", types[n->type], n->text);
	else
		buf_puts(out, n->kind == YAML_MAP ? "{" : "[");
	for (const struct yaml_node *c = n->first; c; c = c->next) {
		print_node(c, out);
		buf_puts(out, c->next ? " " : "");
	}
	if (n->kind != YAML_SCALAR)
		buf_printf(out, "%s%zu", n->kind == YAML_MAP ? "}" : "]", n->count);
}

static void test_trees(void)
{
	static const char *const rows[][2] = {
		{ "a: 1\n", "{a=i'1'}1" },
		{ "a: 1", "{a=i'1'}1" },
		{ "{a: 1, b: [x, y]}", "{a=i'1' b=[t'x' t'y']2}2" },
		{ "a:\n  - x\n  - y: z\n    w: 2\n", "{a=[t'x' {y=t'z' w=i'2'}2]2}1" },
		{ "a:\n- x\n- [b, {c: d}]\n", "{a=[t'x' [t'b' {c=t'd'}1]2]2}1" },
		{ "a: {}\nb: []\n", "{a={}0 b=[]0}2" },
		{ "{}", "{}0" },
		{ "a:\nb:\n", "{a=n'' b=n''}2" },
		{ "a: \"\"\nb: ''\n", "{a=t'' b=t''}2" },
		{ "a: \"x\\ty\\u00e9\"\n", "{a=t'x\ty\xc3\xa9'}1" },
		{ "a: 'it''s'\n", "{a=t'it's'}1" },
		{ "a: |\n  one\n  two\n", "{a=t'one\ntwo\n'}1" },
		{ "# head\na: 1 # tail\n\n# end\n", "{a=i'1'}1" },
		{ "a: x#y\n", "{a=t'x#y'}1" },
		{ "---\na: 1\n...\n", "{a=i'1'}1" },
		{ "? a\n: 1\n", "{a=i'1'}1" },
		{ "\"a b\": 1\n'c': 2\n", "{a b=i'1' c=i'2'}2" },
		{ "a: 1\r\nb:\r\n  - x\r\n", "{a=i'1' b=[t'x']1}2" },
		{ "a: [~/x:/y:ro, $PROJECT/**]\n", "{a=[t'~/x:/y:ro' t'$PROJECT/**']2}1" },
		{ "1: a\ntrue: b\n", "{1=t'a' true=t'b'}2" },
		{ "a: \xe2\x9d\xa4\xef\xb8\x8f\n", "{a=t'\xe2\x9d\xa4\xef\xb8\x8f'}1" },
		{ "{\"json\": [1, \"two\", null, true]}",
			"{json=[i'1' t'two' n'null' b'true']4}1" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own(reading) struct reading r;
		own(buf) struct buf out = { .max = 1000 };

		read_text(&r, rows[i][0]);
		if (r.root)
			print_node(r.root, &out);
		CHECK_STR(buf_text(&out), rows[i][1]);
		CHECK(r.diags.errors == 0 && r.diags.warnings == 0);
	}
}

static void test_types(void)
{
	static const struct {
		const char *text;
		enum yaml_type type;
	} rows[] = {
		{ "no", YAML_TEXT },
		{ "off", YAML_TEXT },
		{ "yes", YAML_TEXT },
		{ "on", YAML_TEXT },
		{ "y", YAML_TEXT },
		{ "0777", YAML_TEXT },
		{ "0o777", YAML_TEXT },
		{ "00", YAML_TEXT },
		{ "-01", YAML_TEXT },
		{ "1_000", YAML_TEXT },
		{ "22:22", YAML_TEXT },
		{ "0x1F", YAML_TEXT },
		{ "0b1", YAML_TEXT },
		{ "+1", YAML_TEXT },
		{ ".inf", YAML_TEXT },
		{ "-.inf", YAML_TEXT },
		{ ".nan", YAML_TEXT },
		{ ".5", YAML_TEXT },
		{ "1.", YAML_TEXT },
		{ "1e", YAML_TEXT },
		{ "1e+", YAML_TEXT },
		{ "1.5.2", YAML_TEXT },
		{ "2024-01-01", YAML_TEXT },
		{ "True", YAML_TEXT },
		{ "FALSE", YAML_TEXT },
		{ "nULL", YAML_TEXT },
		{ "\"1\"", YAML_TEXT },
		{ "'true'", YAML_TEXT },
		{ "\"~\"", YAML_TEXT },
		{ "\"\"", YAML_TEXT },
		{ "512M", YAML_TEXT },
		{ "~", YAML_NULL },
		{ "null", YAML_NULL },
		{ "Null", YAML_NULL },
		{ "NULL", YAML_NULL },
		{ "", YAML_NULL },
		{ "true", YAML_BOOL },
		{ "false", YAML_BOOL },
		{ "0", YAML_INT },
		{ "-0", YAML_INT },
		{ "42", YAML_INT },
		{ "-42", YAML_INT },
		{ "123456789012345678901234567890", YAML_INT },
		{ "1.5", YAML_FLOAT },
		{ "-0.0", YAML_FLOAT },
		{ "1e3", YAML_FLOAT },
		{ "1E-3", YAML_FLOAT },
		{ "1.5e+10", YAML_FLOAT },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own(reading) struct reading r;
		char line[80];

		snprintf(line, sizeof(line), "a: %s\n", rows[i].text);
		read_text(&r, line);
		check_that(r.root && r.root->first->kind == YAML_SCALAR &&
				   r.root->first->type == rows[i].type,
			rows[i].text, __FILE__, __LINE__);
	}
}

static void test_describe(void)
{
	own(reading) struct reading r;

	read_text(&r, "t: x\nn: ~\nb: true\ni: 1\nf: 1.5\nl: []\nm: {}\n");
	if (!r.root)
		return;
	CHECK_STR(yaml_describe(yaml_get(r.root, "t")), "text");
	CHECK_STR(yaml_describe(yaml_get(r.root, "n")), "nothing");
	CHECK_STR(yaml_describe(yaml_get(r.root, "b")), "true or false");
	CHECK_STR(yaml_describe(yaml_get(r.root, "i")), "a number");
	CHECK_STR(yaml_describe(yaml_get(r.root, "f")), "a number with a point");
	CHECK_STR(yaml_describe(yaml_get(r.root, "l")), "a list");
	CHECK_STR(yaml_describe(yaml_get(r.root, "m")), "a map");
	CHECK(!yaml_get(r.root, "x") && !yaml_get(r.root, "") && !yaml_get(r.root, "T"));
	CHECK(!yaml_get(yaml_get(r.root, "m"), "t"));
}

/* --- positions --- */

static void check_at(
	struct diag_pos at, uint32_t line, uint32_t column, uint32_t width, int test_line)
{
	char got[64], wanted[64];

	snprintf(got, sizeof(got), "%u:%u+%u in %u", at.line, at.column, at.width, at.source);
	snprintf(wanted, sizeof(wanted), "%u:%u+%u in 1", line, column, width);
	check_equal(got, wanted, __FILE__, test_line);
}

#define CHECK_AT(at, line, column, width) check_at((at), (line), (column), (width), __LINE__)

static void test_positions(void)
{
	own(reading) struct reading r;
	const struct yaml_node *n;

	read_text(&r, "alpha: one\n"
		      "\xc3\xa9t\xc3\xa9: \xe6\x97\xa5\xe6\x9c\xac # not ASCII\n"
		      "list: [\xc3\xbc, bb, { inner: \"c c\" }]\n"
		      "\n"
		      "deep:\n"
		      "  key:   value\n"
		      "empty:\n");
	if (!r.root) {
		CHECK(r.root);
		return;
	}
	CHECK_AT(r.root->at, 1, 1, 1);
	n = yaml_get(r.root, "alpha");
	CHECK_AT(n->key->at, 1, 1, 5);
	CHECK_AT(n->at, 1, 8, 3);
	n = yaml_get(r.root, "\xc3\xa9t\xc3\xa9"); /* counted in characters, not in bytes */
	CHECK_AT(n->key->at, 2, 1, 3);
	CHECK_AT(n->at, 2, 6, 2);
	n = yaml_get(r.root, "list");
	CHECK_AT(n->at, 3, 7, 1);
	CHECK_AT(n->first->at, 3, 8, 1);
	CHECK_AT(n->first->next->at, 3, 11, 2);
	CHECK_AT(n->first->next->next->at, 3, 15, 1);
	n = n->first->next->next->first;
	CHECK_AT(n->key->at, 3, 17, 5);
	CHECK(n->at.line == 3 && n->at.width == 3);
	n = yaml_get(yaml_get(r.root, "deep"), "key");
	CHECK_AT(n->key->at, 6, 3, 3);
	CHECK_AT(n->at, 6, 10, 5);
	n = yaml_get(r.root, "empty");
	CHECK_AT(n->at, 7, 1, 5); /* nothing is there to point at but its key */
}

/* --- refusals --- */

struct refusal {
	const char *bytes;
	size_t n; /* 0: as long as the text */
	const char *said;
};

/* The first thing said, without the source line and the hint. */
static void check_refusals(const struct refusal *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		own(reading) struct reading r;
		own(buf) struct buf out = { .max = 100000 };
		char *end;

		read_bytes(&r, rows[i].bytes, rows[i].n ? rows[i].n : strlen(rows[i].bytes));
		CHECK(r.diags.errors > 0);
		diags_print(&r.diags, &out, false);
		end = strchr(out.data ? out.data : "", '\n');
		if (end)
			*end = '\0';
		CHECK_STR(buf_text(&out), rows[i].said);
	}
}

#define CHECK_REFUSALS(rows) check_refusals((rows), COUNT_OF(rows))

static void test_refused_syntax(void)
{
	static const struct refusal rows[] = {
		{ "a: &x 1\n", 0, "f:1:5: error: anchors are not allowed" },
		{ "a: &x [1]\n", 0, "f:1:5: error: anchors are not allowed" },
		{ "a: &x {b: 1}\n", 0, "f:1:5: error: anchors are not allowed" },
		{ "&k a: 1\n", 0, "f:1:2: error: anchors are not allowed" },
		{ "a: 1\nb: *a\n", 0, "f:2:5: error: aliases are not allowed" },
		{ "*a : 1\n", 0, "f:1:2: error: aliases are not allowed" },
		{ "a: !!str 1\n", 0, "f:1:4: error: tags are not allowed" },
		{ "a: !x {}\n", 0, "f:1:4: error: tags are not allowed" },
		{ "a: ! 1\n", 0, "f:1:4: error: tags are not allowed" },
		{ "<<: {a: 1}\n", 0, "f:1:1: error: merge keys are not allowed" },
		{ "\"<<\": 1\n", 0, "f:1:2: error: merge keys are not allowed" },
		{ "a:\n  <<: 1\n", 0, "f:2:3: error: merge keys are not allowed" },
		{ "? [a]\n: 1\n", 0, "f:1:3: error: a key must be text" },
		{ "{{a: 1}: 2}\n", 0, "f:1:2: error: a key must be text" },
		{ ": 1\n", 0, "f:1:3: error: a key is empty" },
		{ "\"\": 1\n", 0, "f:1:2: error: a key is empty" },
		{ "%YAML 1.2\n---\na: 1\n", 0, "f:1:1: error: YAML directives are not allowed" },
		{ "%YAML 1.1\n---\na: 1\n", 0, "f:1:1: error: YAML directives are not allowed" },
		{ "%TAG ! tag:x.org,2000:\n---\na: 1\n", 0,
			"f:1:1: error: YAML directives are not allowed" },
		{ "%ANY thing\n---\na: 1\n", 0, "f:1:1: error: YAML directives are not allowed" },
		{ "a: 1\n---\nb: 2\n", 0, "f:2:1: error: a second document starts here" },
		{ "a: 1\n...\nb: 2\n", 0, "f:3:1: error: a second document starts here" },
		{ "a: \"x\\0y\"\n", 0, "f:1:5: error: text with a NUL character is not allowed" },
		{ "a: b: c\n", 0,
			"f:1:5: error: not valid YAML: invalid nested block mapping on the same "
			"line" },
		{ "x: 1\ny: \"abc\n", 0,
			"f:2:5: error: not valid YAML: double-quoted scalar without closing "
			"quote" },
		{ "a: - b\n", 0,
			"f:1:4: error: not valid YAML: block sequence on the same line as a "
			"mapping key" },
		{ "", 0, "f: error: the file is empty" },
		{ "# nothing\n", 0, "f: error: the file is empty" },
		{ "---\n", 0, "f: error: the file is empty" },
		{ "~\n", 0, "f: error: the file is empty" },
		{ "text\n", 0, "f:1:1: error: the file must be a map, not text" },
		{ "- a\n", 0, "f:1:1: error: the file must be a map, not a list" },
		{ "42\n", 0, "f:1:1: error: the file must be a map, not a number" },
	};

	CHECK_REFUSALS(rows);
}

static void test_refused_bytes(void)
{
	static const struct refusal rows[] = {
		{ "a:\tb\n", 0, "f:1:3: error: tab character" },
		{ "a:\n\tb: 1\n", 0, "f:2:1: error: tab character" },
		{ "a: x # \t\n", 0, "f:1:8: error: tab character" },
		{ "\xc3\xa9\xc3\xa9: \t1\n", 0, "f:1:5: error: tab character" },
		{ "a: b\0c\n", 7, "f:1:5: error: NUL byte" },
		{ "a: 1\n\0", 6, "f:2:1: error: NUL byte" },
		{ "a: \xff\n", 0, "f:1:4: error: the file is not UTF-8" },
		{ "a: \xc0\xaf\n", 0, "f:1:4: error: the file is not UTF-8" },
		{ "a: \xed\xa0\x80\n", 0, "f:1:4: error: the file is not UTF-8" },
		{ "a: \xe2\x82", 0, "f:1:4: error: the file is not UTF-8" },
		{ "# caf\xe9\n", 0, "f:1:6: error: the file is not UTF-8" },
		{ "\xef\xbb\xbf"
		  "a: 1\n",
			0, "f:1:1: error: byte order mark" },
		{ "\xff\xfe"
		  "a\0:\0",
			6, "f: error: the file is UTF-16 or UTF-32, not UTF-8" },
		{ "\xfe\xff\0a", 4, "f: error: the file is UTF-16 or UTF-32, not UTF-8" },
		{ "a\0:\0", 4, "f: error: the file is UTF-16 or UTF-32, not UTF-8" },
		{ "\0a\0:", 4, "f: error: the file is UTF-16 or UTF-32, not UTF-8" },
		{ "a: 1\rb: 2\r", 0, "f:1:5: error: carriage return that does not end a line" },
		{ "a: \x1b[1m\n", 0, "f:1:4: error: control character" },
		{ "a: \x7f\n", 0, "f:1:4: error: control character" },
		{ "a: \xc2\x85\n", 0, "f:1:4: error: control character" },
		{ "a\xe2\x80\x8b: 1\n", 0, "f:1:2: error: hidden or direction-changing character" },
		{ "a: \xe2\x80\xae"
		  "b\n",
			0, "f:1:4: error: hidden or direction-changing character" },
		{ "# \xe2\x81\xa6\n", 0, "f:1:3: error: hidden or direction-changing character" },
		{ "a: 1\xe2\x80\xa8"
		  "b: 2\n",
			0, "f:1:5: error: hidden or direction-changing character" },
		{ "a: \xc2\xad\n", 0, "f:1:4: error: hidden or direction-changing character" },
		{ "a: b\xef\xbb\xbf\n", 0, "f:1:5: error: hidden or direction-changing character" },
	};

	CHECK_REFUSALS(rows);
}

static void test_many_findings(void)
{
	own(reading) struct reading r;

	read_text(&r, "a:\t\x1b\xff\n\t\n"); /* all in one go */
	CHECK(!r.root && r.diags.errors == 3);
	reading_done(&r);
	read_text(&r, "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t"); /* and not without end */
	CHECK(!r.root && r.diags.errors == 10);
}

static void test_duplicates(void)
{
	own(reading) struct reading r;
	own(buf) struct buf out = { .max = 10000 };

	read_text(&r, "b: 1\na: 1\nb: 2\nc: {x: 1, y: 2, \"x\": 3}\n\"\\x61\": 4\nb: 5\n");
	CHECK(r.root && r.diags.errors == 4); /* the tree is whole, so more can be found */
	diags_print(&r.diags, &out, false);
	CHECK(strstr(buf_text(&out),
		"f:3:1: error: key 'b' stands here a second time; the first is on line 1\n"));
	CHECK(strstr(buf_text(&out),
		"f:4:18: error: key 'x' stands here a second time; the first is on line 4\n"));
	CHECK(strstr(buf_text(&out), "f:5:2: error: key 'a' stands here"));
	CHECK(strstr(buf_text(&out), "f:6:1: error: key 'b' stands here"));
	CHECK(strstr(buf_text(&out), "the first is on line 1\n    6 |")); /* not line 3 */
	reading_done(&r);
	read_text(&r, "a: {x: 1}\nb: {x: 1}\nc: [a, a]\n"); /* the same name elsewhere is fine */
	CHECK(r.root && r.diags.errors == 0);
}

/* --- limits --- */

/* A map, then lists in lists, `depth` levels in all. */
static void read_deep(struct reading *r, int depth, bool is_block, char *text, size_t size)
{
	struct buf b = { .max = size };

	if (is_block) {
		for (int i = 0; i < depth; i++) {
			buf_repeat(&b, ' ', (size_t)i);
			buf_puts(&b, i + 1 < depth ? "a:\n" : "a: 1\n");
		}
	} else {
		buf_puts(&b, "a: ");
		buf_repeat(&b, '[', (size_t)depth - 1);
		buf_repeat(&b, ']', (size_t)depth - 1);
	}
	snprintf(text, size, "%s", buf_text(&b));
	buf_done(&b);
	read_text(r, text);
}

static void test_depth(void)
{
	char text[4096];

	for (int is_block = 0; is_block < 2; is_block++) {
		own(reading) struct reading r;

		read_deep(&r, 32, is_block, text, sizeof(text));
		CHECK(r.root && r.diags.errors == 0);
		reading_done(&r);
		read_deep(&r, 33, is_block, text, sizeof(text));
		CHECK(!r.root && r.diags.errors == 1);
		CHECK_STR(r.diags.items[0].text, "more than 32 levels deep");
		CHECK_AT(r.diags.items[0].at, is_block ? 33 : 1, is_block ? 33 : 35, 1);
	}
}

static void test_size(void)
{
	own_free char *text = malloc(YAML_MAX_SIZE + 2);
	own(reading) struct reading r;

	if (!text)
		return;
	for (size_t i = 0; i <= YAML_MAX_SIZE; i++)
		text[i] = i % 100 ? '#' : '\n';
	memcpy(text, "a: 1\n", 5);
	text[YAML_MAX_SIZE] = '\0';
	read_bytes(&r, text, YAML_MAX_SIZE);
	CHECK(r.root && r.diags.errors == 0);
	reading_done(&r);
	text[YAML_MAX_SIZE] = '#';
	text[YAML_MAX_SIZE + 1] = '\0';
	read_bytes(&r, text, YAML_MAX_SIZE + 1);
	CHECK(!r.root && r.diags.errors == 1);
	CHECK_STR(r.diags.items[0].text, "the file is larger than 256 kB");
}

int main(void)
{
	test_trees();
	test_types();
	test_describe();
	test_positions();
	test_refused_syntax();
	test_refused_bytes();
	test_many_findings();
	test_duplicates();
	test_depth();
	test_size();
	return check_report();
}
