#pragma once

/* Tables of texts for one grammar: what each becomes, or the sentence that refuses it. */
#include "base/count.h"
#include "check.h"
#include "spec/spec_grammar.h"

static struct arena arena;

struct row {
	const char *text;
	const char *canonical; /* or NULL … */
	const char *error;     /* … then this */
};

static void check_rows(enum spec_grammar grammar, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct spec_item item = { 0 };
		struct err e = { 0 };
		int r = spec_parse(grammar, &arena, rows[i].text, &item, &e);

		check_that(
			(r == 0) == (rows[i].canonical != NULL), rows[i].text, __FILE__, __LINE__);
		if (r == 0 && rows[i].canonical)
			CHECK_STR(item.text, rows[i].canonical);
		else if (r < 0 && rows[i].error)
			CHECK_STR(e.text, rows[i].error);
	}
}

#define CHECK_ROWS(grammar, rows) check_rows((grammar), (rows), COUNT_OF(rows))
