/*
 * Three texts, parted by bytes 0xff. The hunks of two, applied by a reader that knows nothing of
 * how they were found, make one of the other; what only one side changed, or both in the same way,
 * is what a merge gives; and it makes no difference which side is which.
 */
#include <stdbool.h>
#include <stdio.h>

#include "base/own.h"
#include "change/text/change_text.h"
#include "fuzz.h"

#define MOST ((size_t)1 << 24)

static void demand(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "not so: %s\n", what);
	abort();
}

/* --- an applier --- */

/* Cuts a line with its newline off the front. */
static struct change_text next_line(struct change_text *from)
{
	const char *newline = from->size ? memchr(from->bytes, '\n', from->size) : NULL;
	struct change_text line = { from->bytes,
		newline ? (size_t)(newline - from->bytes) + 1 : from->size };

	if (line.size)
		from->bytes += line.size;
	from->size -= line.size;
	return line;
}

static bool take(struct change_text *from, const char *wanted)
{
	size_t n = strlen(wanted);

	if (from->size < n || memcmp(from->bytes, wanted, n) != 0)
		return false;
	from->bytes += n;
	from->size -= n;
	return true;
}

static size_t take_number(struct change_text *from)
{
	size_t n = 0;

	demand(from->size && *from->bytes >= '0' && *from->bytes <= '9', "a number");
	for (; from->size && *from->bytes >= '0' && *from->bytes <= '9'; from->size--)
		n = n * 10 + (size_t)(*from->bytes++ - '0');
	return n;
}

/* "12,3": how many lines stand before, and how many there are. */
static void take_range(struct change_text *from, size_t *ret_before, size_t *ret_count)
{
	*ret_before = take_number(from);
	*ret_count = take(from, ",") ? take_number(from) : 1;
	demand(*ret_count == 0 || *ret_before > 0, "lines count from 1");
	*ret_before -= *ret_count > 0;
}

struct applier {
	struct change_text a, hunks;
	size_t read, written, added, removed; /* lines */
	struct buf out;
};

static void keep_line(struct applier *p)
{
	struct change_text line = next_line(&p->a);

	buf_add(&p->out, line.bytes, line.size);
	p->read++;
	p->written++;
}

/* Takes one line of a hunk; what it has to be like in `a` is there. */
static char apply_line(struct applier *p)
{
	struct change_text line = next_line(&p->hunks), old;
	char sign = line.size ? *line.bytes : '?';

	demand(line.size > 1 && line.bytes[line.size - 1] == '\n', "a line of a hunk ends");
	line.bytes++;
	line.size--;
	if (take(&p->hunks, "\\ No newline at end of file\n"))
		line.size--;
	if (sign != '+') {
		old = p->a;
		old = next_line(&old);
		demand(old.size == line.size && memcmp(old.bytes, line.bytes, old.size) == 0,
			"a line is as it was");
	}
	if (sign == '+') {
		buf_add(&p->out, line.bytes, line.size);
		p->written++;
		p->added++;
	} else if (sign == '-') {
		next_line(&p->a);
		p->read++;
		p->removed++;
	} else {
		demand(sign == ' ', "a sign");
		keep_line(p);
	}
	return sign;
}

static void apply_hunk(struct applier *p)
{
	size_t a_before, a_count, b_before, b_count, first, last, around = 0, changed = 0;

	demand(take(&p->hunks, "@@ -"), "a hunk begins");
	take_range(&p->hunks, &a_before, &a_count);
	demand(take(&p->hunks, " +"), "a second range");
	take_range(&p->hunks, &b_before, &b_count);
	demand(take(&p->hunks, " @@\n"), "a hunk has a head");
	while (p->read < a_before && p->a.size)
		keep_line(p);
	demand(p->read == a_before && p->written == b_before, "a hunk begins where it says");
	first = p->read;
	last = p->written;
	while (p->read < first + a_count || p->written < last + b_count) {
		bool is_around = apply_line(p) == ' ';

		changed += !is_around;
		around = is_around ? around + 1 : 0;
		demand(around <= (changed ? 6 : 3), "no more lines around than needed");
	}
	demand(changed > 0 && around <= 3, "three lines around");
	demand(p->read == first + a_count && p->written == last + b_count, "counts are right");
}

static void check_diff(const struct change_text *a, const struct change_text *b)
{
	own(buf) struct buf hunks = { .max = MOST };
	struct applier p = { .a = *a, .out = { .max = MOST } };
	uint32_t added = 0, removed = 0;

	demand(change_text_diff(a, b, &hunks) == 0 && !hunks.failed, "there is room");
	p.hunks = (struct change_text){ hunks.data, hunks.len };
	while (p.hunks.size)
		apply_hunk(&p);
	buf_add(&p.out, p.a.bytes, p.a.size);
	demand(p.out.len == b->size && memcmp(buf_text(&p.out), b->bytes, b->size) == 0,
		"a becomes b");
	demand(change_text_count(a, b, &added, &removed) == 0, "there is memory");
	demand(added == p.added && removed == p.removed, "what is counted is what is shown");
	buf_done(&p.out);
}

/* --- merges --- */

static size_t merge(const struct change_text *base, const struct change_text *ours,
	const struct change_text *theirs, struct buf *out)
{
	size_t conflicts = 0;

	*out = (struct buf){ .max = MOST };
	demand(change_text_merge(base, ours, theirs, "o", "t", out, &conflicts) == 0, "it merges");
	demand(!out->failed, "there is room");
	return conflicts;
}

static void check_simple(const struct change_text *base, const struct change_text *ours,
	const struct change_text *theirs, const struct change_text *wanted)
{
	own(buf) struct buf out = { 0 };

	demand(merge(base, ours, theirs, &out) == 0, "one side is no conflict");
	demand(out.len == wanted->size && memcmp(buf_text(&out), wanted->bytes, out.len) == 0,
		"what one side made is there");
}

static void check_merge(
	const struct change_text *base, const struct change_text *x, const struct change_text *y)
{
	own(buf) struct buf out = { 0 }, turned = { 0 };
	size_t conflicts = merge(base, x, y, &out);

	demand(conflicts == merge(base, y, x, &turned), "conflicts have no side");
	demand(conflicts || (out.len == turned.len &&
				    memcmp(buf_text(&out), buf_text(&turned), out.len) == 0),
		"it makes no difference which side is which");
	check_simple(base, base, x, x);
	check_simple(base, x, base, x);
	check_simple(base, x, x, x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copies[3];
	struct change_text t[3];

	for (size_t i = 0; i < 3; i++) {
		const uint8_t *end = i < 2 && size ? memchr(data, 0xff, size) : NULL;
		size_t n = end ? (size_t)(end - data) : size;

		t[i] = (struct change_text){ copies[i] = fuzz_text(data, n), n };
		data += n + (end != NULL);
		size -= n + (end != NULL);
	}
	check_diff(&t[0], &t[1]);
	check_diff(&t[1], &t[2]);
	check_merge(&t[0], &t[1], &t[2]);
	for (size_t i = 0; i < 3; i++)
		free(copies[i]);
	return 0;
}
