/*
 * Text in each of the grammars of a spec. A canonical spelling is read again as itself; $PROJECT,
 * which stands for the directory a relative path starts at, is written as that: ".".
 */
#include <stdio.h>

#include "base/count.h"
#include "base/str.h"
#include "fuzz.h"
#include "spec/spec_grammar.h"

static const struct {
	enum spec_grammar grammar;
	bool is_relative; /* to the project, where it does not say otherwise */
} grammars[] = {
	{ SPEC_GRAMMAR_EGRESS, false },
	{ SPEC_GRAMMAR_PUBLISH, false },
	{ SPEC_GRAMMAR_PORT, false },
	{ SPEC_GRAMMAR_BIND, true },
	{ SPEC_GRAMMAR_SOURCE, true },
	{ SPEC_GRAMMAR_IMAGE, true },
	{ SPEC_GRAMMAR_OVERLAY, true },
	{ SPEC_GRAMMAR_SYSCALLS, true },
	{ SPEC_GRAMMAR_PROJECT, false },
	{ SPEC_GRAMMAR_TARGET, false },
	{ SPEC_GRAMMAR_INSIDE, false },
	{ SPEC_GRAMMAR_PATTERN, false },
	{ SPEC_GRAMMAR_NAME, false },
	{ SPEC_GRAMMAR_VARIABLE, false },
	{ SPEC_GRAMMAR_SETTING, false },
};

/* $PROJECT stands at the front, or behind the "dir:" of an image. */
static const char *respell(struct arena *arena, const char *text)
{
	const char *colon = strchr(text, ':');

	if (str_starts(text, "$PROJECT"))
		return arena_printf(arena, "./%s", text + strlen("$PROJECT"));
	if (str_is_letter(text[0]) && colon == text + 3 && str_starts(colon + 1, "$PROJECT"))
		return arena_printf(arena, "%.4s./%s", text, text + 4 + strlen("$PROJECT"));
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size < 4000 ? size : 4000);
	struct arena arena;

	arena_init(&arena, (size_t)1 << 20);
	for (size_t i = 0; i < COUNT_OF(grammars); i++) {
		struct spec_item item = { 0 }, again = { 0 };
		struct err e = { 0 };
		const char *canonical;

		if (spec_parse(grammars[i].grammar, &arena, text, &item, &e) < 0)
			continue;
		canonical = grammars[i].is_relative ? respell(&arena, item.text) : item.text;
		if (spec_parse(grammars[i].grammar, &arena, canonical, &again, &e) < 0 ||
			!str_eq(item.text, again.text)) {
			fprintf(stderr, "grammar %zu: '%s' is '%s', which is '%s'\n", i, text,
				item.text, again.text ? again.text : e.text);
			abort();
		}
	}
	arena_done(&arena);
	free(text);
	return 0;
}
