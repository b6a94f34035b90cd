#include "spec/yaml.h"

#include <libfyaml.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"
#include "spec/diag.h"

/* --- scan --- */

#define MAX_FINDINGS 10 /* a file of tabs is said to be one soon enough */

struct finding {
	const char *text, *hint;
};

static const struct finding not_utf8 = { "the file is not UTF-8", "save it as UTF-8" };
static const struct finding nul = { "NUL byte", NULL };
static const struct finding bom = { "byte order mark", "save the file as UTF-8 without a BOM" };
static const struct finding tab = { "tab character",
	"use spaces; inside a string write it as \"\\t\" in double quotes" };
static const struct finding lone_cr = { "carriage return that does not end a line",
	"end lines with LF or CR LF" };
static const struct finding hidden = { "hidden or direction-changing character",
	"remove it; inside a string write it as an escape, such as \"\\u200b\"" };
static const struct finding control = { "control character",
	"remove it; inside a string write it as an escape, such as \"\\x1b\"" };

static const struct finding *yaml_scan_judge(
	const char *p, size_t left, size_t offset, size_t *ret_width)
{
	uint32_t c = 0;
	size_t width = utf8_decode(p, left, &c);

	*ret_width = width ? width : 1;
	if (width == 0)
		return &not_utf8;
	if (c == 0xfeff && offset == 0)
		return &bom;
	if (c == 0)
		return &nul;
	if (c == '\t')
		return &tab;
	if (c == '\r')
		return left > 1 && p[1] == '\n' ? NULL : &lone_cr;
	if (c < 0x20 && c != '\n')
		return &control;
	if (c >= 0x7f && utf8_is_hidden(c))
		return c < 0xa0 ? &control : &hidden;
	return NULL;
}

/* UTF-16 and UTF-32 in either byte order, by their mark or by their zeros. */
static bool is_wide(const char *bytes, size_t n)
{
	if (n >= 4 && memcmp(bytes, "\0\0\xfe\xff", 4) == 0)
		return true;
	return n >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0 ||
				 (bytes[0] == 0) != (bytes[1] == 0));
}

/*
 * Shapes that no person writes and that cost the parser time or memory out of proportion: they
 * are refused here, before it sees them.
 */
#define MAX_LINE   ((size_t)4096)
#define MAX_BLANK  64  /* lines in a row with nothing but spaces */
#define MAX_SPACES 128 /* in a row */
#define MAX_OPEN   256 /* brackets that are open at once, wherever they stand */

struct shape {
	size_t line_start, blank, spaces, open;
	bool has_text; /* on this line */
};

static const struct finding long_line = { "line of more than 4096 bytes",
	"break it, or use a block of lines after '|'" };
static const struct finding many_blank = { "more than 64 empty lines in a row", NULL };
static const struct finding many_spaces = { "more than 128 spaces in a row", NULL };
static const struct finding many_open = { "more than 32 levels deep", NULL };
static const struct finding directive = { "YAML directives are not allowed",
	"remove the line that starts with %" };

static const struct finding *judge_shape(struct shape *s, const char *bytes, size_t i)
{
	char c = bytes[i];

	if (c == '\n') {
		s->blank = s->has_text ? 0 : s->blank + 1;
		s->has_text = false;
		s->line_start = i + 1;
		s->spaces = 0;
		return s->blank == MAX_BLANK + 1 ? &many_blank : NULL;
	}
	s->spaces = c == ' ' ? s->spaces + 1 : 0;
	if (s->spaces == MAX_SPACES + 1)
		return &many_spaces;
	s->has_text |= c != ' ' && c != '\r';
	if (c == '%' && i == s->line_start)
		return &directive;
	if (i - s->line_start == MAX_LINE)
		return &long_line;
	if (c == '[' || c == '{')
		return ++s->open == MAX_OPEN + 1 ? &many_open : NULL;
	if ((c == ']' || c == '}') && s->open)
		s->open--;
	return NULL;
}

/*
 * The first look at a file, byte by byte, before any parser sees it: refuses what makes two
 * readers see two documents. True when nothing was found; what was found is in `diags`.
 */
static bool yaml_scan(struct diags *diags, unsigned source, const char *bytes, size_t n)
{
	struct diag_pos at = { .source = source };
	struct shape shape = { 0 };
	size_t found = 0;

	if (n > YAML_MAX_SIZE) {
		diags_error(diags, at, NULL, "the file is larger than 256 kB");
		return false;
	}
	if (is_wide(bytes, n)) {
		diags_error(diags, at, not_utf8.hint, "the file is UTF-16 or UTF-32, not UTF-8");
		return false;
	}
	at.line = at.column = at.width = 1;
	for (size_t i = 0, width; i < n && found < MAX_FINDINGS; i += width) {
		const struct finding *f = yaml_scan_judge(bytes + i, n - i, i, &width);

		if (!f)
			f = judge_shape(&shape, bytes, i);
		if (f) {
			diags_error(diags, at, f->hint, "%s", f->text);
			found++;
			/* In another encoding every later byte would be a finding. */
			if (f == &not_utf8)
				break;
		}
		at.column++;
		if (bytes[i] == '\n') {
			at.line++;
			at.column = 1;
		}
	}
	return found == 0;
}

/* --- text --- */

/* A second, simpler reading of each scalar: libfyaml misreads corners of YAML, and its result is
 * used only if this reading agrees. */
enum yaml_quote {
	YAML_PLAIN,
	YAML_SINGLE, /* '…' */
	YAML_DOUBLE, /* "…" */
	YAML_BLOCK,  /* | and lines below it */
};

/* A scalar where it stands: bytes[start] to bytes[end], its quotes not counted. */
struct yaml_place {
	enum yaml_quote quote;
	const char *bytes;
	size_t size; /* of the whole file */
	size_t start, end;
	size_t least; /* spaces that a block must be indented by */
};

struct line {
	const char *text;
	size_t size; /* without its end */
};

static struct line line_at(const char *bytes, size_t n, size_t at)
{
	struct line l = { bytes + at, 0 };

	while (at + l.size < n && l.text[l.size] != '\n')
		l.size++;
	if (l.size && l.text[l.size - 1] == '\r')
		l.size--;
	return l;
}

static size_t indent_of(struct line l)
{
	size_t i = 0;

	while (i < l.size && l.text[i] == ' ')
		i++;
	return i;
}

/* True if the line before the block ends with `|`. Sets whether the last newline is kept. */
static bool yaml_text_read_mark(const char *bytes, size_t start, bool *ret_keeps_end)
{
	size_t end = start;

	while (end && (bytes[end - 1] == '\n' || bytes[end - 1] == '\r'))
		end--;
	/* One line's end only: an empty line in between is one of the corners. */
	if (start - end > 2 || (start - end == 2 && bytes[end] != '\r'))
		return false;
	*ret_keeps_end = end && bytes[end - 1] == '|';
	if (end && bytes[end - 1] == '-')
		end--;
	return end >= 2 && bytes[end - 1] == '|' && bytes[end - 2] == ' ';
}

static bool yaml_text_read_block(
	const char *bytes, size_t n, size_t start, size_t least, struct buf *out)
{
	struct line l = line_at(bytes, n, start);
	size_t indent = indent_of(l), blank = 0;
	bool keeps_end = false;

	if (!yaml_text_read_mark(bytes, start, &keeps_end) || indent == l.size || indent < least)
		return false;
	for (size_t at = start; at < n; at = (size_t)(l.text - bytes) + strcspn(l.text, "\n") + 1) {
		l = line_at(bytes, n, at);
		if (indent_of(l) ==
			l.size) { /* empty, and only part of the block if more follows */
			if (l.size > indent)
				return false;
			blank++;
			continue;
		}
		if (indent_of(l) < indent)
			break;
		buf_repeat(out, '\n', blank + (at > start ? 1 : 0));
		buf_add(out, l.text + indent, l.size - indent);
		blank = 0;
	}
	if (keeps_end)
		buf_putc(out, '\n');
	return true;
}

/* Two quotes stand for one. */
static bool read_single(const char *p, const char *end, struct buf *out)
{
	for (; p < end; p++) {
		if (*p == '\'' && (++p == end || *p != '\''))
			return false;
		buf_putc(out, *p);
	}
	return true;
}

/* The number behind \x, \u or \U; false where it has not as many digits. */
static bool read_code(const char **p, const char *end, int digits, uint32_t *ret)
{
	uint32_t c = 0;

	for (int i = 0; i < digits; i++, ++*p) {
		const char *hex = "0123456789abcdef", *at;

		at = *p < end && **p ? strchr(hex, str_lower(**p)) : NULL;
		if (!at)
			return false;
		c = c << 4 | (uint32_t)(at - hex);
	}
	*ret = c;
	return true;
}

static const struct {
	char letter;
	uint32_t code;
} escapes[] = {
	{ 'a', 7 },
	{ 'b', 8 },
	{ 't', 9 },
	{ 'n', 10 },
	{ 'v', 11 },
	{ 'f', 12 },
	{ 'r', 13 },
	{ 'e', 27 },
	{ ' ', ' ' },
	{ '"', '"' },
	{ '/', '/' },
	{ '\\', '\\' },
	{ 'N', 0x85 },
	{ '_', 0xa0 },
	{ 'L', 0x2028 },
	{ 'P', 0x2029 },
};

static bool yaml_text_read_escape(const char **p, const char *end, uint32_t *ret)
{
	char letter = *p < end ? *(*p)++ : '\0';

	if (letter == 'x' || letter == 'u' || letter == 'U')
		return read_code(p, end, letter == 'x' ? 2 : letter == 'u' ? 4 : 8, ret);
	for (size_t i = 0; i < COUNT_OF(escapes); i++) {
		if (escapes[i].letter == letter) {
			*ret = escapes[i].code;
			return true;
		}
	}
	return false;
}

static bool read_double(const char *p, const char *end, struct buf *out)
{
	while (p < end) {
		char character[4];
		uint32_t c = 0;

		if (*p == '"')
			return false;
		if (*p != '\\') {
			buf_putc(out, *p++);
			continue;
		}
		p++;
		if (!yaml_text_read_escape(&p, end, &c) || utf8_encode(c, character) == 0)
			return false;
		buf_add(out, character, utf8_encode(c, character));
	}
	return true;
}

/*
 * Does the scalar there say `text`? Of a block only the start counts: it is plain where the line
 * before ends with '|' or '|-', its first line is not empty and has at least `least` spaces, and
 * what follows is indented as far.
 */
static bool yaml_text_is_sure(const struct yaml_place *p, const char *text, size_t len)
{
	own(buf) struct buf sure = { .max = p->size + 1 };
	const char *start = p->bytes + p->start, *end = p->bytes + p->end;
	bool is_read = true;

	if (p->start > p->end || p->end > p->size)
		return false;
	if (p->quote == YAML_BLOCK)
		is_read = yaml_text_read_block(p->bytes, p->size, p->start, p->least, &sure);
	else if (p->quote == YAML_SINGLE)
		is_read = read_single(start, end, &sure);
	else if (p->quote == YAML_DOUBLE)
		is_read = read_double(start, end, &sure);
	else
		buf_add(&sure, start, p->end - p->start);
	return is_read && !sure.failed && sure.len == len &&
	       memcmp(buf_text(&sure), text, len) == 0;
}

/* The tree under construction, while the events of a document come in. */
struct reader {
	struct arena *arena;
	struct diags *diags;
	unsigned source;
	const char *bytes;
	size_t size;
	unsigned documents;
	bool is_key_empty; /* said when its value shows where it stands */
	int depth;
	struct {
		struct yaml_node *node, *last;
		const struct yaml_node *key; /* read, its value still to come */
		bool is_flow;                /* here, or anywhere above */
	} open[YAML_MAX_DEPTH];
	struct yaml_node *root;
};

static void own_parser_(struct fy_parser **p)
{
	if (*p)
		fy_parser_destroy(*p);
}

static void own_fy_diag_(struct fy_diag **p)
{
	if (*p)
		fy_diag_destroy(*p);
}

static struct diag_pos pos_of(const struct reader *r, struct fy_token *token)
{
	const struct fy_mark *start = token ? fy_token_start_mark(token) : NULL;
	const struct fy_mark *end = token ? fy_token_end_mark(token) : NULL;
	struct diag_pos at = { .source = r->source, .line = 1, .column = 1, .width = 1 };

	if (!start)
		return at;
	at.line = (uint32_t)start->line + 1;
	at.column = (uint32_t)start->column + 1;
	if (end && end->line == start->line && end->column > start->column)
		at.width = (uint32_t)(end->column - start->column);
	return at;
}

#define REFUSE(r, token, hint, ...)                                                                \
	(diags_error((r)->diags, pos_of((r), (token)), (hint), __VA_ARGS__), false)

static bool out_of_memory(struct reader *r)
{
	struct diag_pos at = { .source = r->source };

	diags_error(r->diags, at, NULL, "not enough memory to read the file");
	return false;
}

/* Hangs a finished or just opened value where it belongs. */
static bool attach(struct reader *r, struct yaml_node *node)
{
	int i = r->depth - 1;
	struct yaml_node *parent = i >= 0 ? r->open[i].node : NULL;

	if (!parent) {
		r->root = node;
		return true;
	}
	if (parent->kind == YAML_MAP) {
		node->key = r->open[i].key;
		r->open[i].key = NULL;
	}
	if (r->open[i].last)
		r->open[i].last->next = node;
	else
		parent->first = node;
	r->open[i].last = node;
	parent->count++;
	return true;
}

static bool expects_key(const struct reader *r)
{
	return r->depth > 0 && r->open[r->depth - 1].node->kind == YAML_MAP &&
	       !r->open[r->depth - 1].key;
}

/* Anchors and tags change nothing of the tree, so the reading goes on and finds more. */
static void refuse_marks(struct reader *r, struct fy_token *anchor, struct fy_token *tag)
{
	if (anchor)
		diags_error(r->diags, pos_of(r, anchor), "write the value where it is used",
			"anchors are not allowed");
	if (tag)
		diags_error(r->diags, pos_of(r, tag), "remove it", "tags are not allowed");
}

/*
 * In block style a value stands further right than its key, and an entry than its dash. The
 * parser is more lenient; others are not, and read another document.
 */
static bool check_indent(struct reader *r, const struct yaml_node *node, bool is_quoted)
{
	const struct yaml_node *parent = r->depth ? r->open[r->depth - 1].node : NULL;
	const struct yaml_node *key = r->depth ? r->open[r->depth - 1].key : NULL;
	uint32_t column = node->at.column - is_quoted; /* of the quote, not of the text */

	if (!parent || r->open[r->depth - 1].is_flow || node->type == YAML_NULL)
		return true;
	if (key && node->at.line > key->at.line && column <= parent->at.column) {
		diags_error(
			r->diags, node->at, NULL, "a value must stand further right than its key");
		return false;
	}
	if (!key && parent->kind == YAML_LIST && column <= parent->at.column) {
		diags_error(r->diags, node->at, NULL,
			"an entry must stand further right than its dash");
		return false;
	}
	return true;
}

/* A key without a word has no place of its own; its value's will do, or its map's. */
static bool check_empty_key(struct reader *r, struct fy_token *token)
{
	struct diag_pos at = pos_of(r, token);

	if (!r->is_key_empty)
		return true;
	if (!token && r->depth)
		at = r->open[r->depth - 1].node->at;
	diags_error(r->diags, at, "write the key before the colon", "a key is empty");
	return false;
}

/* A block of lines behind '|' or '>' starts where its first line does, whatever its indent. */
static bool is_block(struct fy_token *token)
{
	enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;

	return style == FYSS_LITERAL || style == FYSS_FOLDED;
}

static bool is_quoted(struct fy_token *token)
{
	enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;

	return style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
}

/*
 * Text over several lines is where readers of YAML disagree: only a block behind '|' is taken. And
 * all text is taken only where a second reading sees the same in it as the parser.
 */
static bool check_text(struct reader *r, struct fy_token *token, const char *text, size_t n)
{
	static const enum yaml_quote quotes[] = {
		[FYSS_PLAIN] = YAML_PLAIN,
		[FYSS_SINGLE_QUOTED] = YAML_SINGLE,
		[FYSS_DOUBLE_QUOTED] = YAML_DOUBLE,
		[FYSS_LITERAL] = YAML_BLOCK,
	};
	const struct fy_mark *start = token ? fy_token_start_mark(token) : NULL;
	const struct fy_mark *end = token ? fy_token_end_mark(token) : NULL;
	enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;
	const struct yaml_node *parent = r->depth ? r->open[r->depth - 1].node : NULL;
	struct yaml_place place = { .bytes = r->bytes, .size = r->size, .least = 1 };

	if (!token)
		return true;
	if (style == FYSS_FOLDED)
		return REFUSE(r, token, "write | instead of >", "folded text is not allowed");
	if (style != FYSS_LITERAL && start && end && start->line != end->line)
		return REFUSE(r, token, "use a block of lines after '|'",
			"text goes on over several lines");
	if (parent)
		place.least = parent->at.column;
	if (start && end && style >= FYSS_PLAIN && style <= FYSS_LITERAL) {
		place.quote = quotes[style];
		place.start = start->input_pos;
		place.end = end->input_pos;
		if (yaml_text_is_sure(&place, text, n))
			return true;
	}
	return REFUSE(r, token,
		"write it in a plainer way; a block has its '|' at the end of a line",
		"this text can be read in several ways");
}

static bool on_scalar(struct reader *r, const struct fy_event *event)
{
	struct fy_token *token = event->scalar.value;
	struct yaml_node *node = arena_alloc(r->arena, sizeof(*node));
	const char *text;
	size_t n = 0;

	refuse_marks(r, event->scalar.anchor, event->scalar.tag);
	if (!check_empty_key(r, token))
		return false;
	text = token ? fy_token_get_text(token, &n) : "";
	if (!node || !text)
		return out_of_memory(r);
	if (memchr(text, '\0', n))
		return REFUSE(r, token, NULL, "text with a NUL character is not allowed");
	if (!check_text(r, token, text, n))
		return false;
	node->kind = YAML_SCALAR;
	node->at = !token && r->depth && r->open[r->depth - 1].key ? r->open[r->depth - 1].key->at
								   : pos_of(r, token);
	node->text = arena_copy(r->arena, text, n);
	if (!node->text)
		return out_of_memory(r);
	if (!token || fy_token_scalar_style(token) == FYSS_PLAIN)
		node->type = yaml_type_of(node->text);
	if (!expects_key(r))
		return (is_block(token) || check_indent(r, node, is_quoted(token))) &&
		       attach(r, node);
	if (str_eq(node->text, "<<"))
		return REFUSE(r, token, "write the keys out", "merge keys are not allowed");
	r->is_key_empty = n == 0;
	if (r->is_key_empty && token)
		return REFUSE(r, token, NULL, "a key is empty");
	r->open[r->depth - 1].key = node;
	return true;
}

static bool starts_flow(const struct reader *r, struct fy_token *token)
{
	const struct fy_mark *start = token ? fy_token_start_mark(token) : NULL;

	return start && r->bytes &&
	       (r->bytes[start->input_pos] == '{' || r->bytes[start->input_pos] == '[');
}

static bool on_open(struct reader *r, enum yaml_kind kind, struct fy_token *token,
	struct fy_token *anchor, struct fy_token *tag)
{
	struct yaml_node *node = arena_alloc(r->arena, sizeof(*node));

	refuse_marks(r, anchor, tag);
	if (!check_empty_key(r, token))
		return false;
	if (expects_key(r))
		return REFUSE(r, token, "write it as plain text", "a key must be text");
	if (r->depth == YAML_MAX_DEPTH)
		return REFUSE(r, token, NULL, "more than %d levels deep", YAML_MAX_DEPTH);
	if (!node)
		return out_of_memory(r);
	node->kind = kind;
	node->at = pos_of(r, token);
	if (node->at.width > 1)
		node->at.width = 1;
	if ((starts_flow(r, token) && !check_indent(r, node, false)) || !attach(r, node))
		return false;
	r->open[r->depth].node = node;
	r->open[r->depth].last = NULL;
	r->open[r->depth].key = NULL;
	r->open[r->depth].is_flow =
		starts_flow(r, token) || (r->depth && r->open[r->depth - 1].is_flow);
	r->depth++;
	return true;
}

static int yaml_compare_keys(const void *a, const void *b)
{
	const struct yaml_node *x = *(const struct yaml_node *const *)a;
	const struct yaml_node *y = *(const struct yaml_node *const *)b;
	int order = strcmp(x->text, y->text);

	if (order == 0)
		order = x->at.line != y->at.line ? (x->at.line < y->at.line ? -1 : 1)
						 : (x->at.column < y->at.column ? -1 : 1);
	return order;
}

/* Reports every duplicate key of a map; the map is still read, so that more errors are found. */
static bool check_duplicates(struct reader *r, const struct yaml_node *map)
{
	const struct yaml_node **keys;
	size_t n = 0;

	if (map->count < 2)
		return true;
	keys = arena_array(r->arena, map->count, sizeof(const struct yaml_node *));
	if (!keys)
		return out_of_memory(r);
	for (const struct yaml_node *v = map->first; v; v = v->next)
		keys[n++] = v->key;
	qsort(keys, n, sizeof(keys[0]), yaml_compare_keys);
	for (size_t i = 1, first = 0; i < n; i++) {
		if (!str_eq(keys[first]->text, keys[i]->text))
			first = i;
		else
			diags_error(r->diags, keys[i]->at, NULL,
				"key '%s' stands here a second time; the first is on line %u",
				keys[i]->text, keys[first]->at.line);
	}
	return true;
}

static bool on_close(struct reader *r)
{
	struct yaml_node *node = r->open[--r->depth].node;

	return !node || node->kind != YAML_MAP || check_duplicates(r, node);
}

static bool refuse_document(struct reader *r, const struct fy_event *event)
{
	struct fy_document_state *state = event->document_start.document_state;
	const struct fy_mark *start = state ? fy_document_state_start_mark(state) : NULL;
	struct diag_pos at = pos_of(r, event->document_start.document_start);

	if (!event->document_start.document_start && start) {
		at.line = (uint32_t)start->line + 1;
		at.column = (uint32_t)start->column + 1;
	}
	diags_error(r->diags, at, "keep one document in a file", "a second document starts here");
	return false;
}

/* An alias stands for nothing, so that what follows it can be read. */
static bool on_alias(struct reader *r, const struct fy_event *event)
{
	struct yaml_node *node = arena_alloc(r->arena, sizeof(*node));

	diags_error(r->diags, pos_of(r, event->alias.anchor),
		"write the value out; a pattern goes in quotes, as \"*.example.org:443\"",
		"aliases are not allowed");
	if (!node || expects_key(r))
		return false;
	node->kind = YAML_SCALAR;
	node->type = YAML_TEXT;
	node->text = "alias";
	node->at = pos_of(r, event->alias.anchor);
	return attach(r, node);
}

/* One event; false ends the reading. */
static bool on_event(struct reader *r, const struct fy_event *event)
{
	switch (event->type) {
	case FYET_DOCUMENT_START:
		return ++r->documents == 1 || refuse_document(r, event);
	case FYET_ALIAS:
		return on_alias(r, event);
	case FYET_SCALAR:
		return on_scalar(r, event);
	case FYET_SEQUENCE_START:
		return on_open(r, YAML_LIST, event->sequence_start.sequence_start,
			event->sequence_start.anchor, event->sequence_start.tag);
	case FYET_MAPPING_START:
		return on_open(r, YAML_MAP, event->mapping_start.mapping_start,
			event->mapping_start.anchor, event->mapping_start.tag);
	case FYET_SEQUENCE_END:
	case FYET_MAPPING_END:
		return on_close(r);
	case FYET_NONE:
	case FYET_STREAM_START:
	case FYET_STREAM_END:
	case FYET_DOCUMENT_END:
	default:
		return true;
	}
}

/* Passes on what the parser itself found wrong: its first complaint, the rest follow from it. */
static void report_syntax(struct reader *r, struct fy_diag *complaints)
{
	void *iterator = NULL;
	const struct fy_diag_error *first = fy_diag_errors_iterate(complaints, &iterator);
	struct diag_pos at = { .source = r->source, .line = 1, .column = 1, .width = 1 };

	if (first && first->line > 0) {
		at.line = (uint32_t)first->line;
		at.column = first->column > 0 ? (uint32_t)first->column : 1;
	}
	diags_error(r->diags, at, NULL, "not valid YAML: %s",
		first && first->msg ? first->msg : "the parser gave up");
}

static void yaml_read_events(struct reader *r, const char *bytes, size_t n)
{
	__attribute__((cleanup(own_fy_diag_))) struct fy_diag *complaints = NULL;
	__attribute__((cleanup(own_parser_))) struct fy_parser *parser = NULL;
	struct fy_diag_cfg diag_cfg;
	struct fy_parse_cfg cfg = { .flags = FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE };
	struct fy_event *event;
	bool go_on = true;

	fy_diag_cfg_default(&diag_cfg);
	diag_cfg.fp = NULL;
	complaints = fy_diag_create(&diag_cfg);
	if (complaints)
		fy_diag_set_collect_errors(complaints, true);
	cfg.diag = complaints;
	parser = complaints ? fy_parser_create(&cfg) : NULL;
	if (!parser || fy_parser_set_string(parser, bytes, n) != 0) {
		out_of_memory(r);
		return;
	}
	while (go_on && !diags_are_full(r->diags) && (event = fy_parser_parse(parser)) != NULL) {
		go_on = on_event(r, event);
		fy_parser_event_free(parser, event);
	}
	if (go_on && fy_parser_get_stream_error(parser)) {
		report_syntax(r, complaints);
		go_on = false;
	}
	/* Half a tree is none. */
	if (!go_on || r->depth)
		r->root = NULL;
}

const struct yaml_node *yaml_read(
	struct arena *arena, struct diags *diags, unsigned source, const char *bytes, size_t n)
{
	struct reader r = {
		.arena = arena, .diags = diags, .source = source, .bytes = bytes, .size = n
	};
	struct diag_pos whole = { .source = source };
	size_t errors = diags->errors;

	if (!yaml_scan(diags, source, bytes, n))
		return NULL;
	yaml_read_events(&r, bytes, n);
	if (!r.root && diags->errors != errors)
		return NULL;
	if (!r.root || (r.root->kind == YAML_SCALAR && r.root->type == YAML_NULL)) {
		diags_error(diags, whole, "write at least: version: 1", "the file is empty");
		return NULL;
	}
	if (r.root->kind != YAML_MAP) {
		diags_error(diags, r.root->at, "write key: value lines, such as: version: 1",
			"the file must be a map, not %s", yaml_describe(r.root));
		return NULL;
	}
	return r.root;
}

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
	for (const struct yaml_node *v = map->first; v; v = v->next)
		if (v->key && str_eq(v->key->text, key))
			return v;
	return NULL;
}
