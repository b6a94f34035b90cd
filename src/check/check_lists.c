#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "check/check_lints.h"
#include "spec/spec_layers.h"

/*
 * Every list is sorted once and looked through once, so that ten thousand entries cost little
 * more than reading them.
 */

const struct spec_item **check_list_items(struct spec *s, enum spec_key key)
{
	const struct spec_value *v = spec_list(s, key);
	const struct spec_item **items =
		arena_array(&s->arena, v->count, sizeof(const struct spec_item *));

	if (!items)
		diags_error(&s->diags, v->at, NULL, "%s: not enough memory to check it",
			spec_keys[key].path);
	for (size_t i = 0; items && i < v->count; i++)
		items[i] = &v->items[i];
	return items;
}

/* --- entries that stand for the same thing --- */

typedef int compare_entries(const struct spec_item *x, const struct spec_item *y);

static int lists_compare_texts(const struct spec_item *x, const struct spec_item *y)
{
	return strcmp(x->text, y->text);
}

static int lists_compare_names(const struct spec_item *x, const struct spec_item *y)
{
	return strcmp(x->var.name, y->var.name);
}

static int compare_opened(const struct spec_item *x, const struct spec_item *y)
{
	int order = strcmp(x->publish.address, y->publish.address);

	return order ? order : (int)x->publish.host_port - (int)y->publish.host_port;
}

/* Names before networks, each with its port; the protocol does not count. */
static int compare_destinations(const struct spec_item *x, const struct spec_item *y)
{
	const struct spec_egress *a = &x->egress, *b = &y->egress;
	int order;

	if (a->port != b->port)
		return (int)a->port - (int)b->port;
	if (!a->port)
		return strcmp(a->client, b->client);
	if (!a->host != !b->host)
		return a->host ? -1 : 1;
	if (a->is_wildcard != b->is_wildcard)
		return a->is_wildcard ? 1 : -1;
	if (a->host)
		return strcmp(a->host, b->host);
	order = memcmp(a->address, b->address, sizeof(a->address));
	return order ? order : (int)a->prefix - (int)b->prefix;
}

/* Keys whose entries can contradict each other without being the same text. */
static const struct clash {
	enum spec_key key;
	compare_entries *compare;
	enum diag_level level;
	const char *text;
} clashes[] = {
	{ SPEC_ENV_SET, lists_compare_names, DIAG_WARNING, "is set to something else at" },
	{ SPEC_NETWORK_ALLOW, compare_destinations, DIAG_WARNING,
		"has another protocol than the same destination at" },
	{ SPEC_NETWORK_PUBLISH, compare_opened, DIAG_ERROR,
		"opens the same port of the host as the entry at" },
};

static const struct clash same_text = { .compare = lists_compare_texts };

/* By what they stand for, then by where they are written. */
static int lists_compare_items(const void *a, const void *b, void *clash)
{
	const struct spec_item *x = *(const struct spec_item *const *)a;
	const struct spec_item *y = *(const struct spec_item *const *)b;
	int order = ((const struct clash *)clash)->compare(x, y);

	if (order)
		return order;
	if (x->at.source != y->at.source)
		return x->at.source < y->at.source ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void say_twin(struct spec *s, enum spec_key key, const struct clash *clash,
	const struct spec_item *first, const struct spec_item *item)
{
	/* A variable's value may be a secret. */
	const char *text = key == SPEC_ENV_SET ? item->var.name : item->text;
	const char *path = spec_keys[key].path, *where = diags_where(&s->diags, first->at);

	if (str_eq(item->text, first->text))
		diags_warn(&s->diags, item->at, "remove one of them",
			"%s: '%.200s' stands here a second time; the first is at %s", path, text,
			where);
	else
		diags_say(&s->diags, clash->level, item->at, "keep one of them",
			"%s: '%.200s' %s %s", path, text, clash->text, where);
}

static void check_twins(struct spec *s, enum spec_key key)
{
	size_t count = spec_list(s, key)->count, first = 0;
	const struct spec_item **items = check_list_items(s, key);
	const struct clash *clash = &same_text;
	struct clash copy;

	for (size_t i = 0; i < COUNT_OF(clashes); i++)
		if (clashes[i].key == key)
			clash = &clashes[i];
	if (!items)
		return;
	copy = *clash;
	qsort_r(items, count, sizeof(items[0]), lists_compare_items, &copy);
	for (size_t i = 1; i < count; i++) {
		/* Where the layers add up, two of them may well say the same. */
		bool is_apart = spec_keys[key].tighten == SPEC_ADD &&
				items[i]->at.source != items[first]->at.source;

		if (is_apart || clash->compare(items[first], items[i]) != 0)
			first = i;
		else
			say_twin(s, key, clash, items[first], items[i]);
	}
}

/* --- destinations that a wider one covers --- */

/* Sorted by what must be equal, then so that a network stands before those inside it. */
static int compare_covers(const void *a, const void *b)
{
	const struct spec_item *x = *(const struct spec_item *const *)a;
	const struct spec_item *y = *(const struct spec_item *const *)b;

	if (x->egress.protocol != y->egress.protocol)
		return x->egress.protocol < y->egress.protocol ? -1 : 1;
	return compare_destinations(x, y);
}

/* The entry "*.domain" for a domain that the name is below; NULL where there is none. */
static const struct spec_item *find_wildcard(
	const struct spec_item **items, size_t count, const struct spec_item *name)
{
	struct spec_item wanted = *name;
	const struct spec_item *key = &wanted, **found = NULL;
	const char *point = name->egress.host;

	wanted.egress.is_wildcard = true;
	while (!found && (point = strchr(point, '.')) != NULL) {
		wanted.egress.host = ++point;
		found = bsearch(&key, items, count, sizeof(items[0]), compare_covers);
	}
	return found ? *found : NULL;
}

/* The network that holds this one. Networks are nested or apart: only the last wide one can. */
static const struct spec_item *find_network(
	const struct spec_item **wide, const struct spec_item *network)
{
	const struct spec_item *w = *wide;

	if (w && w->egress.protocol == network->egress.protocol &&
		spec_covers(SPEC_NETWORK_ALLOW, w, network))
		return w->egress.prefix < network->egress.prefix ? w : NULL;
	*wide = network;
	return NULL;
}

static void check_covered(struct spec *s)
{
	size_t count = spec_list(s, SPEC_NETWORK_ALLOW)->count;
	const struct spec_item **items = check_list_items(s, SPEC_NETWORK_ALLOW);
	const struct spec_item *wide = NULL;

	if (!items)
		return;
	qsort(items, count, sizeof(items[0]), compare_covers);
	for (size_t i = 0; i < count; i++) {
		const struct spec_item *cover = items[i]->egress.host
							? find_wildcard(items, count, items[i])
							: find_network(&wide, items[i]);

		if (cover)
			diags_warn(&s->diags, items[i]->at, "remove it, or the wider one",
				"network.allow: '%.200s' is already allowed by '%.200s' at %s",
				items[i]->text, cover->text, diags_where(&s->diags, cover->at));
	}
}

void check_lists(struct spec *s)
{
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		enum spec_type type = spec_keys[k].type;

		/* Two binds for one target are refused where the plan is made. */
		if (spec_is_list(type) && type != SPEC_TYPE_LIST && type != SPEC_TYPE_BINDS)
			check_twins(s, k);
	}
	check_covered(s);
}
