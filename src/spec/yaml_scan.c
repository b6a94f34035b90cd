#include "spec/yaml_scan.h"

#include <string.h>

#include "base/utf8.h"
#include "spec/yaml.h"

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

bool yaml_scan(struct diags *diags, unsigned source, const char *bytes, size_t n)
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
			/* Once the encoding is another, every byte after it is a finding. */
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
