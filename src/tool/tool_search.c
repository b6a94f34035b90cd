#include "tool/tool_search.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "tool/tool_lines.h"

/* A text that is being searched. */
struct text {
	struct tool_search *s;
	const char *path;
	const char *start, *end;
	const char *lowered; /* the same without capitals; or `start` */
	const char *printed; /* up to here it was printed, or need not be; begins a line */
	uint64_t number;     /* of that line */
	uint64_t wanted;     /* lines behind `printed` that are still to be printed */
	bool has_printed;
};

struct line {
	const char *at, *end; /* without the newline */
};

void tool_search_done(struct tool_search *s)
{
	buf_done(&s->lowered);
}

/* --- finding --- */

static const char *end_of_line(const struct text *t, const char *at)
{
	const char *newline = memchr(at, '\n', (size_t)(t->end - at));

	return newline ? newline : t->end;
}

static const char *start_of_line(const struct text *t, const char *at)
{
	const char *newline = memrchr(t->start, '\n', (size_t)(at - t->start));

	return newline ? newline + 1 : t->start;
}

/* Behind the newline; the end where there is none. */
static const char *next_line(const struct text *t, const char *end)
{
	return end < t->end ? end + 1 : t->end;
}

static bool line_matches(const struct text *t, const struct line *line)
{
	size_t n = (size_t)(line->end - line->at);

	n -= n && line->end[-1] == '\r';
	return tool_regex_matches(t->s->regex, line->at, n);
}

/* The first line at or behind `at`, which begins a line, that may match. */
static bool find_candidate(const struct text *t, const char *at, struct line *ret)
{
	const struct buf *literal = &t->s->regex->literal;

	if (at == t->end)
		return false;
	if (literal->len) {
		const char *in = t->lowered + (at - t->start);
		const char *found = memmem(in, (size_t)(t->end - at), literal->data, literal->len);

		if (!found)
			return false;
		at = start_of_line(t, t->start + (found - t->lowered));
	}
	*ret = (struct line){ at, end_of_line(t, at) };
	return true;
}

static bool find_line(const struct text *t, const char *at, struct line *ret)
{
	for (; find_candidate(t, at, ret); at = next_line(t, ret->end))
		if (t->s->regex->is_literal || line_matches(t, ret))
			return true;
	return false;
}

/* --- printing --- */

static bool is_done(const struct tool_search *s)
{
	return s->is_cut || s->is_full;
}

/* Is there room for one line more, of so many bytes? */
static bool may_print(struct tool_search *s, size_t bytes)
{
	if (s->limit && s->printed == s->limit)
		s->is_cut = true;
	else if (s->out->len + bytes > TOOL_MAX_OUTPUT)
		s->is_full = true;
	if (is_done(s))
		return false;
	s->printed++;
	return true;
}

static void put_path(struct text *t, char behind)
{
	buf_add_visible(t->s->out, t->path, strlen(t->path));
	buf_putc(t->s->out, behind);
}

static void print_line(struct text *t, const struct line *line, char mark)
{
	size_t n = (size_t)(line->end - line->at), path_size = strlen(t->path) * 4;
	struct tool_search *s = t->s;

	n -= n && line->end[-1] == '\r';
	/* A byte that is not UTF-8 becomes three. */
	if (!may_print(s, path_size + (n < TOOL_LINE_SIZE ? n : TOOL_LINE_SIZE) * 3 + 128))
		return;
	put_path(t, mark);
	if (s->has_numbers)
		buf_printf(s->out, "%" PRIu64 "%c", t->number, mark);
	tool_put_line(s->out, line->at, n);
	buf_putc(s->out, '\n');
	t->has_printed = true;
}

/* Goes on to the line that begins at `to`, which counts those between. */
static void go_to(struct text *t, const char *to)
{
	while (t->printed < to) {
		t->printed = next_line(t, end_of_line(t, t->printed));
		t->number++;
	}
}

/* Lines from where we are, as long as they are before `to`, at most `count`. */
static void print_around(struct text *t, const char *to, uint64_t count)
{
	for (; count && t->printed < to && !is_done(t->s); count--) {
		struct line line = { t->printed, end_of_line(t, t->printed) };

		print_line(t, &line, '-');
		go_to(t, next_line(t, line.end));
	}
}

/* Where the lines before a match begin; not before what was printed. */
static const char *lines_before(const struct text *t, const char *at)
{
	for (uint64_t i = 0; i < t->s->before && at > t->printed; i++)
		at = start_of_line(t, at - 1);
	return at;
}

static void print_match(struct text *t, const struct line *line)
{
	bool has_context = t->s->before || t->s->after;
	const char *from;

	print_around(t, line->at, t->wanted);
	from = lines_before(t, line->at);
	if (has_context && (t->has_printed ? from > t->printed : t->s->printed > 0) &&
		!is_done(t->s))
		buf_puts(t->s->out, "--\n");
	go_to(t, from);
	print_around(t, line->at, UINT64_MAX);
	print_line(t, line, ':');
	go_to(t, next_line(t, line->end));
	t->wanted = t->s->after;
}

static void print_content(struct text *t)
{
	struct line line;
	const char *at = t->start;

	while (!is_done(t->s) && find_line(t, at, &line)) {
		print_match(t, &line);
		at = next_line(t, line.end);
	}
	print_around(t, t->end, t->wanted);
}

static void print_count(struct text *t)
{
	struct tool_search *s = t->s;
	const char *at = t->start;
	uint64_t count = 0;
	struct line line;

	for (; find_line(t, at, &line); at = next_line(t, line.end))
		count++;
	if (count == 0 || !may_print(s, strlen(t->path) * 4 + 32))
		return;
	put_path(t, ':');
	buf_printf(s->out, "%" PRIu64 "\n", count);
}

static void print_file(struct text *t)
{
	struct line line;

	if (find_line(t, t->start, &line) && may_print(t->s, strlen(t->path) * 4 + 1))
		put_path(t, '\n');
}

/* --- a text --- */

/* Byte for byte, so that what is found in one is at the same place in the other. */
static const char *lower_text(struct tool_search *s, const char *text, size_t n)
{
	s->lowered.len = 0;
	buf_add(&s->lowered, text, n);
	if (s->lowered.failed)
		return NULL;
	for (size_t i = 0; i < n; i++)
		s->lowered.data[i] = str_lower(s->lowered.data[i]);
	return buf_text(&s->lowered);
}

bool tool_search_text(struct tool_search *s, const char *path, const char *text, size_t n)
{
	static void (*const print[])(struct text *) = {
		[TOOL_MODE_FILES] = print_file,
		[TOOL_MODE_CONTENT] = print_content,
		[TOOL_MODE_COUNT] = print_count,
	};
	struct text t = { .s = s,
		.path = path,
		.start = text,
		.end = text + n,
		.lowered = text,
		.printed = text,
		.number = 1 };

	if (s->regex->ignores_case && s->regex->literal.len)
		t.lowered = lower_text(s, text, n);
	if (t.lowered && n)
		print[s->mode](&t);
	return !is_done(s);
}
