#include "agent/tool/tool_search.h"

#include <inttypes.h>
#include <string.h>

#include "agent/tool/tool_lines.h"
#include "base/str.h"

/* A text that is being searched. */
struct text {
	struct tool_search *s;
	const char *path;
	const char *start, *end;
	const char *lowered;                 /* the same without capitals; or `start` */
	const char *next[TOOL_MAX_LITERALS]; /* where each is found there; the end: no more */
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

static const char *search_end_of_line(const struct text *t, const char *at)
{
	const char *newline = memchr(at, '\n', (size_t)(t->end - at));

	return newline ? newline : t->end;
}

static const char *start_of_line(const struct text *t, const char *at)
{
	const char *newline = memrchr(t->start, '\n', (size_t)(at - t->start));

	return newline ? newline + 1 : t->start;
}

/* Returns the start of the next line, or the end of the text. */
static const char *search_next_line(const struct text *t, const char *end)
{
	return end < t->end ? end + 1 : t->end;
}

static bool line_matches(const struct text *t, const struct line *line)
{
	size_t n = (size_t)(line->end - line->at);
	int r;

	n -= n && line->end[-1] == '\r';
	r = tool_regex_matches(t->s->regex, line->at, n);
	t->s->has_failed |= r < 0;
	return r > 0;
}

/* Returns the first literal at or behind `at`, or the end of the text. */
static const char *search_find_literal(struct text *t, const char *at)
{
	const struct tool_literals *literals = &t->s->regex->literals;
	size_t n = (size_t)(t->end - t->start), from = (size_t)(at - t->start);
	const char *first = t->lowered + n;

	for (size_t i = 0; i < literals->count; i++) {
		const struct buf *literal = &literals->texts[i];

		if (!t->next[i] || t->next[i] < t->lowered + from)
			t->next[i] =
				memmem(t->lowered + from, n - from, literal->data, literal->len);
		if (!t->next[i])
			t->next[i] = t->lowered + n;
		if (t->next[i] < first)
			first = t->next[i];
	}
	return t->start + (first - t->lowered);
}

/* The first line at or behind `at`, which begins a line, that may match. */
static bool find_candidate(struct text *t, const char *at, struct line *ret)
{
	if (at < t->end && t->s->regex->literals.count) {
		at = search_find_literal(t, at);
		if (at < t->end)
			at = start_of_line(t, at);
	}
	if (at == t->end)
		return false;
	*ret = (struct line){ at, search_end_of_line(t, at) };
	return true;
}

static bool search_find_line(struct text *t, const char *at, struct line *ret)
{
	for (; !t->s->has_failed && find_candidate(t, at, ret); at = search_next_line(t, ret->end))
		if (t->s->regex->literals.is_all || line_matches(t, ret))
			return true;
	return false;
}

/* --- printing --- */

static bool is_done(const struct tool_search *s)
{
	return s->is_cut || s->is_full;
}

/* True if there is room for one more line of that size. */
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

static void search_print_line(struct text *t, const struct line *line, char mark)
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
static void search_go_to(struct text *t, const char *to)
{
	while (t->printed < to) {
		t->printed = search_next_line(t, search_end_of_line(t, t->printed));
		t->number++;
	}
}

/* Lines from where we are, as long as they are before `to`, at most `count`. */
static void print_around(struct text *t, const char *to, uint64_t count)
{
	for (; count && t->printed < to && !is_done(t->s); count--) {
		struct line line = { t->printed, search_end_of_line(t, t->printed) };

		search_print_line(t, &line, '-');
		search_go_to(t, search_next_line(t, line.end));
	}
}

/* Returns the start of the context before a match, but not before what was printed. */
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
	search_go_to(t, from);
	print_around(t, line->at, UINT64_MAX);
	search_print_line(t, line, ':');
	search_go_to(t, search_next_line(t, line->end));
	t->wanted = t->s->after;
}

static void print_content(struct text *t)
{
	struct line line;
	const char *at = t->start;

	while (!is_done(t->s) && search_find_line(t, at, &line)) {
		print_match(t, &line);
		at = search_next_line(t, line.end);
	}
	print_around(t, t->end, t->wanted);
}

static void search_print_count(struct text *t)
{
	struct tool_search *s = t->s;
	const char *at = t->start;
	uint64_t count = 0;
	struct line line;

	for (; search_find_line(t, at, &line); at = search_next_line(t, line.end))
		count++;
	/* Fewer than there are would be no answer. */
	if (count == 0 || s->has_failed || !may_print(s, strlen(t->path) * 4 + 32))
		return;
	put_path(t, ':');
	buf_printf(s->out, "%" PRIu64 "\n", count);
}

static void search_print_file(struct text *t)
{
	struct line line;

	if (search_find_line(t, t->start, &line) && may_print(t->s, strlen(t->path) * 4 + 1))
		put_path(t, '\n');
}

/* --- a text --- */

/* Eight bytes at once: adds 0x20 to those from 'A' to 'Z'. */
static uint64_t lower_eight(uint64_t x)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t low = x & 0x7f * ones;
	uint64_t from_a = low + (0x80 - 'A') * ones, behind_z = low + (0x7f - 'Z') * ones;

	return x + ((from_a & ~behind_z & ~x & 0x80 * ones) >> 2);
}

/* Byte for byte, so that what is found in one is at the same place in the other. */
static const char *lower_text(struct tool_search *s, const char *text, size_t n)
{
	size_t i = 0;
	uint64_t eight;

	/* The next text may fit even if this one did not. */
	s->lowered.len = 0;
	s->lowered.failed = false;
	buf_add(&s->lowered, text, n);
	s->has_failed = s->lowered.failed;
	if (s->has_failed)
		return NULL;
	for (; i + sizeof(eight) <= n; i += sizeof(eight)) {
		memcpy(&eight, text + i, sizeof(eight));
		eight = lower_eight(eight);
		memcpy(s->lowered.data + i, &eight, sizeof(eight));
	}
	for (; i < n; i++)
		s->lowered.data[i] = str_lower(text[i]);
	return buf_text(&s->lowered);
}

bool tool_search_text(struct tool_search *s, const char *path, const char *text, size_t n)
{
	static void (*const print[])(struct text *) = {
		[TOOL_MODE_FILES] = search_print_file,
		[TOOL_MODE_CONTENT] = print_content,
		[TOOL_MODE_COUNT] = search_print_count,
	};
	struct text t = { .s = s,
		.path = path,
		.start = text,
		.end = text + n,
		.lowered = text,
		.printed = text,
		.number = 1 };

	s->has_failed = false;
	if (s->regex->ignores_case && s->regex->literals.count)
		t.lowered = lower_text(s, text, n);
	if (t.lowered && n)
		print[s->mode](&t);
	return !is_done(s);
}
