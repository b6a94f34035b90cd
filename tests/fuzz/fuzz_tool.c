/*
 * The first byte says what the rest is: arguments of a tool; a pattern and a path, or a text with
 * what to replace, parted by bytes 0xff. A literal that an expression is said to have in it is in
 * every line that matches; an edit of one place can be taken back.
 */
#include <stdbool.h>
#include <stdio.h>

#include "agent/tool/tool_args.h"
#include "agent/tool/tool_cage.h"
#include "agent/tool/tool_edit.h"
#include "agent/tool/tool_glob.h"
#include "agent/tool/tool_lines.h"
#include "agent/tool/tool_regex.h"
#include "base/own.h"
#include "fuzz.h"

static void demand(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "not so: %s\n", what);
	abort();
}

static void check_arguments(enum tool tool, const char *text, size_t n)
{
	struct tool_args args;
	struct tool_cage cage;
	struct err e = { 0 };
	bool is_good = tool_args_read(tool, text, n, &args, &e) == 0;

	demand(is_good || (e.kind == ERR_USE && e.text[0]), "wrong arguments are explained");
	demand(!is_good || args.path || tool == TOOL_GLOB || tool == TOOL_GREP, "there is a path");
	tool_args_done(&args);
	tool_cage_read(text, n, &cage);
	tool_cage_done(&cage);
}

static void check_glob(const char *pattern, const char *path)
{
	struct tool_glob g;
	struct err e = { 0 };
	char *slash, *folder = strdup(path);

	if (!folder)
		abort();
	if (tool_glob_parse(pattern, &g, &e) < 0)
		demand(e.text[0], "a wrong pattern is explained");
	else if (tool_glob_matches(&g, path))
		while ((slash = strrchr(folder, '/'))) {
			*slash = '\0';
			demand(tool_glob_enters(&g, folder), "folders above a match are entered");
		}
	tool_glob_done(&g);
	free(folder);
}

static void check_regex(const char *pattern, const char *line)
{
	struct tool_regex r;
	struct err e = { 0 };

	if (tool_regex_init(&r, pattern, false, &e) < 0)
		demand(e.text[0], "a wrong expression is explained");
	else if (!r.ignores_case) {
		bool is_in = r.literals.count == 0;
		bool is_match = tool_regex_matches(&r, line, strlen(line)) == 1;

		for (size_t i = 0; i < r.literals.count; i++)
			is_in = is_in || strstr(line, buf_text(&r.literals.texts[i]));
		demand(is_in || !is_match, "a match has a literal in it");
		demand(!r.literals.is_all || is_in == is_match,
			"where there is no more, it is a match");
	}
	tool_regex_done(&r);
}

static void check_edit(const char *text, const char *from, const char *to)
{
	own(buf) struct buf there = { .max = 1 << 20 }, back = { .max = 1 << 20 };
	struct tool_edit edit = { text, from, to, strlen(text), false, 0, { 0 } };
	struct err e = { 0 };

	if (!*from)
		return;
	if (tool_edit_apply(&edit, &there, &e) < 0) {
		demand(e.text[0], "what cannot be edited is explained");
		return;
	}
	demand(edit.count == 1, "one place");
	edit = (struct tool_edit){ buf_text(&there), to, from, there.len, false, 0, { 0 } };
	/* Another place may have become the same. */
	if (!*to || strchr(from, '\n') || tool_edit_apply(&edit, &back, &e) < 0)
		return;
	demand(strcmp(buf_text(&back), text) == 0, "it is as it was");
}

static void check_lines(const char *text, size_t n, size_t step)
{
	own(buf) struct buf whole = { .max = 1 << 21 }, pieces = { .max = 1 << 21 };
	struct tool_lines a = { .first = 1, .count = 20, .out = &whole }, b = a;
	size_t at = 0;

	b.out = &pieces;
	tool_lines_feed(&a, text, n);
	tool_lines_end(&a);
	while (at < n && tool_lines_feed(&b, text + at, n - at < step ? n - at : step))
		at += step;
	tool_lines_end(&b);
	if (!a.has_nul && !b.has_nul)
		demand(whole.len == pieces.len &&
				memcmp(buf_text(&whole), buf_text(&pieces), whole.len) == 0,
			"pieces make no difference");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *parts[3];
	uint8_t kind = size ? *data : 0;

	data += size > 0;
	size -= size > 0;
	if (kind < '5') {
		char *text = fuzz_text(data, size);

		check_arguments(kind % TOOL_COUNT, text, size);
		check_lines(text, size, kind % 7 + 1);
		free(text);
		return 0;
	}
	for (size_t i = 0; i < 3; i++) {
		const uint8_t *end = i < 2 && size ? memchr(data, 0xff, size) : NULL;
		size_t n = end ? (size_t)(end - data) : size;

		parts[i] = fuzz_text(data, n);
		data += n + (end != NULL);
		size -= n + (end != NULL);
	}
	check_glob(parts[0], parts[1]);
	check_regex(parts[0], parts[1]);
	check_edit(parts[0], parts[1], parts[2]);
	for (size_t i = 0; i < 3; i++)
		free(parts[i]);
	return 0;
}
