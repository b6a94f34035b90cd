#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "proof/verify/verify.h"

#define MOST_PATHS 20 /* that differ, and are named */

/* --- one thing --- */

struct comparing {
	struct verify_report *report;
	bool is_same; /* all that decides, so far */
};

/* Unknown is not the same, not even as unknown. */
static void same_compare(
	struct comparing *c, const char *what, const char *a, const char *b, bool decides)
{
	bool is_known = a && b, is_same = is_known && str_eq(a, b);

	if (!is_known)
		verify_say(c->report, what, VERIFY_ABSENT, "not known of %s",
			a   ? "the second run"
			: b ? "the first run"
			    : "either run");
	else if (is_same)
		verify_say(c->report, what, VERIFY_YES, "%s", a);
	else
		verify_say(c->report, what, VERIFY_NO, "%s, and %s", a, b);
	c->is_same &= is_same || !decides;
}

/* The system's own has no digest, but what it is called is the same. */
static const char *same_image_of(const struct record_read *r)
{
	if (r->image.sha256)
		return r->image.sha256;
	return r->image.name && str_eq(r->image.name, "host") ? "host" : NULL;
}

static const char *print_outcome(const struct record_read *r, char ret[static 64])
{
	int64_t n = r->status >= 0 ? r->status : r->signal;

	snprintf(ret, 64, "%s", record_outcome_words[r->outcome]);
	if (n >= 0)
		snprintf(ret, 64, "%s %" PRId64, record_outcome_words[r->outcome], n);
	return ret;
}

/* Output on a terminal, or with both streams merged, cannot be compared with another kind. */
static const char *output_of(const struct record_read *r, const struct record_read *other, int i)
{
	bool is_alike = r->has_terminal == other->has_terminal &&
			r->output.is_together == other->output.is_together;

	return is_alike ? r->output.streams[i].sha256 : NULL;
}

/* --- effects, one by one --- */

static bool are_same_states(const struct change_state *a, const struct change_state *b)
{
	return a->type == b->type && a->mode == b->mode && a->size == b->size &&
	       a->has_hash == b->has_hash && memcmp(a->hash, b->hash, sizeof(a->hash)) == 0;
}

static bool are_same_effects(const struct change_effect *a, const struct change_effect *b)
{
	bool is_from = a->from && b->from ? str_eq(a->from, b->from) : a->from == b->from;

	if (a->change != b->change || !is_from || !are_same_states(&a->after, &b->after) ||
		a->attribute_count != b->attribute_count)
		return false;
	for (size_t i = 0; i < a->attribute_count; i++)
		if (!str_eq(a->attributes[i].name, b->attributes[i].name) ||
			a->attributes[i].change != b->attributes[i].change ||
			memcmp(a->attributes[i].hash, b->attributes[i].hash, SHA256_SIZE) != 0)
			return false;
	return true;
}

/* Both are sorted by path: where one is ahead, the other does not have it. */
void verify_name_differences(const struct change_effects *a, const struct change_effects *b,
	struct verify_report *report)
{
	size_t i = 0, k = 0, count = 0;

	for (;;) {
		const struct change_effect *x = i < a->count ? &a->items[i] : NULL;
		const struct change_effect *y = k < b->count ? &b->items[k] : NULL;
		int order = x && y ? strcmp(x->path, y->path) : x ? -1 : 1;

		if (!x && !y)
			break;
		i += order <= 0;
		k += order >= 0;
		if (order == 0 && are_same_effects(x, y))
			continue;
		if (count++ < MOST_PATHS)
			verify_say(report, "effect", VERIFY_NO, "'%s' %s",
				x && order <= 0 ? x->path : y->path,
				order < 0   ? "only in the first run"
				: order > 0 ? "only in the second run"
					    : "is another");
	}
	if (count > MOST_PATHS)
		verify_say(report, "effect", VERIFY_NO, "… and %zu more", count - MOST_PATHS);
}

static void compare_effects(
	const struct verify_record *a, const struct verify_record *b, struct verify_report *report)
{
	own(change_effects) struct change_effects x, y;
	char file[SHA256_HEX_SIZE];
	struct err e = { 0 };
	int one, other;

	change_effects_init(&x);
	change_effects_init(&y);
	one = verify_read_effects(a->folder, &x, file, &e);
	other = verify_read_effects(b->folder, &y, file, &e);
	if (one < 0 || other < 0)
		verify_say(report, "effect", VERIFY_ABSENT, "%s", e.text);
	/* The effects must be those that were signed. */
	else if (!(one && str_eq(x.digest, a->record.effects.sha256)) ||
		 !(other && str_eq(y.digest, b->record.effects.sha256)))
		verify_say(report, "effect", VERIFY_ABSENT,
			"effects.json of both runs would say which");
	else
		verify_name_differences(&x, &y, report);
}

bool verify_compare(
	const struct verify_record *a, const struct verify_record *b, struct verify_report *report)
{
	const struct record_read *x = &a->record, *y = &b->record;
	struct comparing c = { .report = report, .is_same = true };
	char one[64], other[64];

	same_compare(&c, "spec", x->spec_sha256, y->spec_sha256, true);
	same_compare(&c, "plan", x->plan_sha256, y->plan_sha256, true);
	same_compare(&c, "filter", x->filter_sha256, y->filter_sha256, false);
	same_compare(&c, "image", same_image_of(x), same_image_of(y), true);
	same_compare(&c, "project", x->project.sha256, y->project.sha256, false);
	same_compare(&c, "effects", x->effects.sha256, y->effects.sha256, true);
	same_compare(&c, "outcome", print_outcome(x, one), print_outcome(y, other), false);
	for (int i = 0; i < 2; i++)
		same_compare(
			&c, record_stream_names[i], output_of(x, y, i), output_of(y, x, i), false);
	if (x->effects.sha256 && y->effects.sha256 && !str_eq(x->effects.sha256, y->effects.sha256))
		compare_effects(a, b, report);
	return c.is_same;
}
