#include "tool/tool_regex.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "tool/tool_glob.h"

/* libc's compiler calls itself for each group. */
#define MAX_GROUPS 200

struct translation {
	const char *at;
	struct buf *out;
	unsigned groups; /* open ones */
	bool can_repeat; /* something stands before that * may follow */
	struct err *e;
};

static int refuse(struct translation *t, const char *what)
{
	return err_set(t->e, ERR_USE, EINVAL, "%s", what);
}

/* --- classes --- */

struct bytes {
	bool has[256];
};

static void add_range(struct bytes *set, unsigned low, unsigned high)
{
	for (unsigned c = low; c <= high; c++)
		set->has[c] = true;
}

static unsigned count_bytes(const struct bytes *set)
{
	unsigned count = 0;

	for (unsigned c = 0; c < 256; c++)
		count += set->has[c];
	return count;
}

static void add_class(struct bytes *set, char letter)
{
	struct bytes class = { 0 };
	char lower = str_lower(letter);

	if (lower == 'd' || lower == 'w')
		add_range(&class, '0', '9');
	if (lower == 'w') {
		add_range(&class, 'a', 'z');
		add_range(&class, 'A', 'Z');
		class.has['_'] = true;
	}
	if (lower == 's') {
		add_range(&class, '\t', '\r');
		class.has[' '] = true;
	}
	for (unsigned c = 0; c < 256; c++)
		if (class.has[c] == (letter == lower))
			set->has[c] = true;
}

/* [:alpha:] and the like; false: it is none. */
static bool take_posix_class(struct translation *t, struct bytes *set)
{
	static const struct {
		const char *name;
		const char *ranges; /* pairs */
	} classes[] = {
		{ "[:alpha:]", "azAZ" },
		{ "[:digit:]", "09" },
		{ "[:alnum:]", "azAZ09" },
		{ "[:upper:]", "AZ" },
		{ "[:lower:]", "az" },
		{ "[:space:]", "\t\r  " },
		{ "[:blank:]", "\t\t  " },
		{ "[:punct:]", "!/:@[`{~" },
		{ "[:xdigit:]", "09afAF" },
		{ "[:print:]", " ~" },
		{ "[:graph:]", "!~" },
		{ "[:cntrl:]", "\1\37\177\177" },
		{ "[:word:]", "azAZ09__" },
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (!str_starts(t->at, classes[i].name))
			continue;
		for (const char *r = classes[i].ranges; *r; r += 2)
			add_range(set, (unsigned char)r[0], (unsigned char)r[1]);
		t->at += strlen(classes[i].name);
		return true;
	}
	return false;
}

static int hex_value(const char *at, size_t digits, unsigned *ret)
{
	*ret = 0;
	for (size_t i = 0; i < digits; i++) {
		int digit = str_hex_digit(str_lower(at[i]));

		if (digit < 0)
			return -EINVAL;
		*ret = *ret << 4 | (unsigned)digit;
	}
	return 0;
}

/* One byte that an escape stands for, behind the backslash; -1: it stands for none. */
static int take_escaped_byte(struct translation *t)
{
	static const char names[] = "tnrfve", meant[] = "\t\n\r\f\v\033";
	const char *name = *t->at ? strchr(names, *t->at) : NULL;
	unsigned value;

	if (*t->at == 'x' && hex_value(t->at + 1, 2, &value) == 0 && value) {
		t->at += 3;
		return (int)value;
	}
	if (!name && (str_is_letter(*t->at) || str_is_digit(*t->at) || !*t->at))
		return -1;
	t->at++;
	return name ? meant[name - names] : (unsigned char)t->at[-1];
}

/* One member of a bracket: a byte, or -1 where it was a class that has been added. -2: wrong. */
static int take_member(struct translation *t, struct bytes *set)
{
	int c;

	if (*t->at == '[' && take_posix_class(t, set))
		return -1;
	if (*t->at != '\\')
		return (unsigned char)*t->at++;
	t->at++;
	if (*t->at && strchr("dDwWsS", *t->at)) {
		add_class(set, *t->at++);
		return -1;
	}
	if (*t->at == 'b') {
		t->at++;
		return '\b';
	}
	c = take_escaped_byte(t);
	return c < 0 ? -2 : c;
}

/*
 * The same set, as libc reads it: ']' first, '-' last, '^' not first, ranges between. What a
 * negative one leaves out is written down, and not what it has: of that, case is to be ignored.
 */
static void put_set(struct buf *out, struct bytes *set, bool is_negative)
{
	bool has_dash = set->has['-'], has_caret = set->has['^'];
	size_t start;

	if (has_caret && !is_negative && count_bytes(set) == 1) {
		buf_puts(out, "\\^");
		return;
	}
	buf_puts(out, is_negative ? "[^" : "[");
	start = out->len;
	if (set->has[']'])
		buf_putc(out, ']');
	set->has[']'] = set->has['-'] = set->has['^'] = false;
	for (unsigned c = 1; c < 256; c++) {
		unsigned last = c;

		if (!set->has[c])
			continue;
		while (last < 255 && set->has[last + 1])
			last++;
		buf_putc(out, (char)c);
		if (last > c + 1)
			buf_putc(out, '-');
		if (last > c)
			buf_putc(out, (char)last);
		c = last;
	}
	if (has_caret && has_dash && out->len == start) {
		buf_puts(out, "-^");
		has_dash = false;
	} else if (has_caret)
		buf_putc(out, '^');
	if (has_dash)
		buf_putc(out, '-');
	buf_putc(out, ']');
}

static int put_bracket(struct translation *t)
{
	struct bytes set = { 0 };
	bool is_negative = *++t->at == '^', is_first = true;

	for (t->at += is_negative; *t->at && (is_first || *t->at != ']'); is_first = false) {
		int low = take_member(t, &set), high = low;

		if (low >= 0 && t->at[0] == '-' && t->at[1] && t->at[1] != ']') {
			t->at++;
			high = take_member(t, &set);
		}
		if (low == -2 || high == -2 || (low >= 0 && high >= 0 && high < low))
			return refuse(t, "what stands in its brackets is not known");
		if (low >= 0 && high < 0)
			return refuse(t, "a range in its brackets has no end");
		if (low >= 0)
			add_range(&set, (unsigned)low, (unsigned)high);
	}
	if (*t->at++ != ']')
		return refuse(t, "a bracket [ has no end; write \\[ for the character itself");
	set.has[0] = false;
	if (count_bytes(&set) == 0)
		return refuse(t, "its brackets hold nothing that a line can have");
	put_set(t->out, &set, is_negative);
	t->can_repeat = true;
	return 0;
}

/* --- the rest --- */

/* A byte that stands for itself. */
static void put_byte(struct translation *t, char c)
{
	if (strchr(".[]()*+?{}|^$\\", c) && c != ']' && c != '}')
		buf_putc(t->out, '\\');
	buf_putc(t->out, c);
	t->can_repeat = true;
}

static int put_escape(struct translation *t)
{
	struct bytes set = { 0 };
	char c = *++t->at;
	int byte;

	if (!c)
		return refuse(t, "it ends with a backslash");
	if (strchr("dDwWsS", c)) {
		add_class(&set, str_lower(c));
		put_set(t->out, &set, c != str_lower(c));
		t->can_repeat = true;
		t->at++;
		return 0;
	}
	if (strchr("bB<>", c) || (c >= '1' && c <= '9')) {
		buf_putc(t->out, '\\');
		buf_putc(t->out, c);
		t->can_repeat = str_is_digit(c);
		t->at++;
		return 0;
	}
	if (c == 'A' || c == 'z' || c == 'Z') {
		buf_putc(t->out, c == 'A' ? '^' : '$');
		t->at++;
		return 0;
	}
	byte = take_escaped_byte(t);
	if (byte == '\n')
		return refuse(t, "lines are searched one by one, so that it cannot have \\n in it");
	if (byte < 0)
		return err_set(t->e, ERR_USE, EINVAL, "\\%c is not known", c);
	put_byte(t, (char)byte);
	return 0;
}

static int put_group(struct translation *t)
{
	if (++t->groups > MAX_GROUPS)
		return refuse(t, "it has too many groups in each other");
	buf_putc(t->out, '(');
	t->can_repeat = false;
	if (str_starts(++t->at, "?:"))
		t->at += 2;
	else if (*t->at == '?')
		return refuse(t, "look-around, names of groups and flags in a group are not known");
	return 0;
}

/* "{2}", "{2,}" or "{2,3}": its length; 0: the brace stands for itself. */
static size_t interval_size(const char *at)
{
	size_t low = strspn(at + 1, "0123456789"), n = low + 1, high = 0;

	if (at[n] == ',') {
		high = strspn(at + n + 1, "0123456789");
		n += high + 1;
	}
	return low && low <= 4 && high <= 4 && at[n] == '}' ? n + 1 : 0;
}

/*
 * What says how often something is there, with what makes it lazy or greedy: that changes nothing
 * about which lines match. More of them would double the size of the automaton, each.
 */
static int put_repeat(struct translation *t)
{
	size_t n = *t->at == '{' ? interval_size(t->at) : 1;

	if (!t->can_repeat)
		return err_set(t->e, ERR_USE, EINVAL,
			"nothing stands before %c that could be repeated; write \\%c for the character "
			"itself",
			*t->at, *t->at);
	buf_add(t->out, t->at, n);
	t->at += n;
	t->at += *t->at == '?' || *t->at == '+';
	t->can_repeat = false;
	return 0;
}

static int put_next(struct translation *t)
{
	char c = *t->at;

	if (c == '\\')
		return put_escape(t);
	if (c == '[')
		return put_bracket(t);
	if (c == '(')
		return put_group(t);
	if (c == '*' || c == '+' || c == '?' || (c == '{' && interval_size(t->at)))
		return put_repeat(t);
	if (c == '\n')
		return refuse(t, "lines are searched one by one, so that it cannot have a newline");
	if (c == ')' && t->groups == 0)
		return refuse(t, "a ) closes nothing; write \\) for the character itself");
	t->at++;
	if (c == '{') {
		put_byte(t, c);
		return 0;
	}
	t->groups -= c == ')';
	t->can_repeat = c != '|' && c != '^';
	buf_putc(t->out, c);
	return 0;
}

int tool_regex_translate(
	const char *pattern, struct buf *out, bool *ret_ignores_case, struct err *e)
{
	struct translation t = { .at = pattern, .out = out, .e = e };
	int r = 0;

	if (strlen(pattern) > TOOL_MAX_PATTERN)
		return err_set(e, ERR_USE, EINVAL, "it is longer than %d bytes", TOOL_MAX_PATTERN);
	if (str_starts(pattern, "(?i)")) {
		*ret_ignores_case = true;
		t.at += 4;
	}
	while (r == 0 && *t.at)
		r = put_next(&t);
	if (r == 0 && t.groups)
		r = refuse(&t, "a ( is not closed; write \\( for the character itself");
	if (r == 0 && out->failed)
		r = refuse(&t, "it is too long");
	return r;
}
