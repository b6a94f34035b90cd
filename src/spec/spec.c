/* A spec from its first default to what counts: adding layers, holding the project's file to its
 * ceiling, merging, explaining. */
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "spec/spec_grammar.h"
#include "spec/spec_read.h"

/* --- adding --- */

#define ARENA_MAX ((size_t)48 * 1024 * 1024)

void spec_init(struct spec *s)
{
	struct diag_pos at = { 0 };

	memset(s, 0, sizeof(*s));
	arena_init(&s->arena, ARENA_MAX);
	diags_init(&s->diags, &s->arena);
	at.source = diags_add_source(&s->diags, "built-in", NULL, 0);
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		if (spec_keys[k].def)
			spec_value_from_text(
				s, &s->layers[SPEC_LAYER_BUILTIN], k, spec_keys[k].def, at);
}

void spec_done(struct spec *s)
{
	arena_done(&s->arena);
}

/* The tree of a file whose version is said; NULL after an error that leaves nothing to read. */
static const struct yaml_node *read_versioned(
	struct spec *s, const char *name, const char *bytes, size_t n)
{
	unsigned source = diags_add_source(&s->diags, name, bytes, n);
	const struct yaml_node *map = yaml_read(&s->arena, &s->diags, source, bytes, n);
	struct diag_pos top = { .line = 1, .column = 1, .width = 1, .source = source };

	if (map && !yaml_get(map, "version"))
		diags_error(&s->diags, top, "write as its first line: version: 1",
			"the file does not say its version");
	return map;
}

void spec_add_policy(
	struct spec *s, enum spec_layer layer, const char *name, const char *bytes, size_t n)
{
	const struct yaml_node *map = read_versioned(s, name, bytes, n);

	if (map)
		spec_read_policy(s, &s->layers[layer], map);
}

void spec_add_file(struct spec *s, const char *name, const char *bytes, size_t n, bool is_trusted)
{
	const struct yaml_node *map = read_versioned(s, name, bytes, n);

	s->is_file_trusted = is_trusted;
	if (map)
		spec_read_map(s, &s->layers[SPEC_LAYER_FILE], map, "");
}

void spec_add_option(struct spec *s, enum spec_key key, const char *option, const char *text)
{
	struct diag_pos at = { .source = diags_add_source(&s->diags, option, NULL, 0) };

	s->layers[SPEC_LAYER_OPTIONS].v[key].adds = true;
	spec_value_from_text(s, &s->layers[SPEC_LAYER_OPTIONS], key, text, at);
}

void spec_add_option_list(struct spec *s, enum spec_key key, const char *option,
	const char *const *texts, size_t count)
{
	struct diag_pos at = { .source = diags_add_source(&s->diags, option, NULL, 0) };
	struct spec_value *v = &s->layers[SPEC_LAYER_OPTIONS].v[key];

	v->is_set = true;
	v->adds = false;
	v->at = at;
	v->count = 0;
	for (size_t i = 0; i < count; i++)
		spec_value_from_text(s, &s->layers[SPEC_LAYER_OPTIONS], key, texts[i], at);
}

/* --- the ceiling of the project's own file --- */

/* Variables that name no secret and no place; a project may ask for them by itself. */
static const char *const harmless_variables[] = { "CI", "COLORTERM", "LANG", "LC_ALL", "LC_COLLATE",
	"LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME", "NO_COLOR", "TERM", "TZ" };

static const char *spec_layer_name(enum spec_layer layer)
{
	static const char *const names[] = {
		[SPEC_LAYER_BUILTIN] = "the built-in policy",
		[SPEC_LAYER_SYSTEM] = "the system's policy",
		[SPEC_LAYER_USER] = "the user's policy",
		[SPEC_LAYER_FILE] = "the spec file",
		[SPEC_LAYER_OPTIONS] = "the command line",
	};

	return names[layer];
}

/* The last layer up to and including `last` that sets the key; the built-in one if none does. */
static enum spec_layer setter(const struct spec *s, enum spec_key key, enum spec_layer last)
{
	for (; last > SPEC_LAYER_BUILTIN; last--)
		if (s->layers[last].v[key].is_set)
			break;
	return last;
}

static const struct spec_value *spec_ceiling(
	const struct spec *s, enum spec_key key, const char **ret_where)
{
	enum spec_layer layer = setter(s, key, SPEC_LAYER_USER);
	const struct spec_value *v = &s->layers[layer].v[key];

	if (s->may.v[key].is_set)
		v = &s->may.v[key];
	*ret_where = v->is_set && v->at.line ? diags_where(&s->diags, v->at)
					     : spec_layer_name(SPEC_LAYER_BUILTIN);
	return v;
}

/* --- what covers what --- */

static bool egress_covers(const struct spec_egress *above, const struct spec_egress *below)
{
	/* A client covers only itself: its hosts are not known yet. */
	if (!above->port || !below->port)
		return above->port == below->port && str_eq(above->client, below->client);
	/* Another protocol is another check of the name, so it is never the same destination. */
	if (above->port != below->port || above->protocol != below->protocol ||
		!above->host != !below->host)
		return false;
	if (!above->host)
		return spec_network_holds(above, below);
	if (!above->is_wildcard)
		return !below->is_wildcard && str_eq(above->host, below->host);
	if (below->is_wildcard && str_eq(above->host, below->host))
		return true;
	return strlen(below->host) > strlen(above->host) + 1 &&
	       str_ends(below->host, above->host) &&
	       below->host[strlen(below->host) - strlen(above->host) - 1] == '.';
}

static bool pattern_covers(const char *above, const char *below)
{
	size_t n = strlen(above);

	if (!str_ends(above, "/**"))
		return str_eq(above, below);
	n -= 3;
	return strncmp(above, below, n) == 0 && (below[n] == '\0' || below[n] == '/');
}

bool spec_covers(enum spec_key key, const struct spec_item *above, const struct spec_item *below)
{
	if (key == SPEC_NETWORK_ALLOW)
		return egress_covers(&above->egress, &below->egress);
	if (key == SPEC_PROJECT_READ || key == SPEC_PROJECT_WRITE)
		return pattern_covers(above->text, below->text);
	if (key == SPEC_BINDS)
		return str_path_within(below->bind.from, above->bind.from) &&
		       !spec_climbs(below->bind.from + strlen(above->bind.from)) &&
		       (above->bind.is_writable || !below->bind.is_writable);
	return str_eq(above->text, below->text);
}

/* --- holding the project's file to its ceiling --- */

/* Entries a project's file may have by itself, whatever stands above. */
static bool layers_is_harmless(
	const struct spec *s, enum spec_key key, const struct spec_item *item)
{
	if (key == SPEC_ENV_PASS) {
		for (size_t i = 0; i < COUNT_OF(harmless_variables); i++)
			if (str_eq(item->text, harmless_variables[i]))
				return true;
	}
	/*
	 * A path of the project read at another place shows nothing new, if it may be read at all.
	 */
	if (key == SPEC_BINDS && !item->bind.is_writable &&
		spec_is_inside_project(item->bind.from)) {
		const char *where;
		struct spec_item seen = { .text = item->bind.from };
		const struct spec_value *readable = spec_ceiling(s, SPEC_PROJECT_READ, &where);

		for (size_t i = 0; i < readable->count; i++)
			if (spec_covers(SPEC_PROJECT_READ, &readable->items[i], &seen))
				return true;
	}
	return false;
}

/* Sorted by port, protocol and name: what name_is_covered searches. */
static int compare_egress(const void *a, const void *b)
{
	const struct spec_egress *x = &(*(const struct spec_item *const *)a)->egress;
	const struct spec_egress *y = &(*(const struct spec_item *const *)b)->egress;

	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	if (x->protocol != y->protocol)
		return x->protocol < y->protocol ? -1 : 1;
	if (x->is_wildcard != y->is_wildcard)
		return x->is_wildcard ? 1 : -1;
	if (!x->host || !y->host)
		return (x->host != NULL) - (y->host != NULL);
	return strcmp(x->host, y->host);
}

static int layers_compare_texts(const void *a, const void *b)
{
	const struct spec_item *x = *(const struct spec_item *const *)a;
	const struct spec_item *y = *(const struct spec_item *const *)b;

	return strcmp(x->text, y->text);
}

/* The entries of a list in an order that can be searched; NULL without memory. */
static const struct spec_item **layers_sort_items(
	struct arena *arena, const struct spec_value *v, int (*compare)(const void *, const void *))
{
	const struct spec_item **sorted =
		arena_array(arena, v->count + 1, sizeof(const struct spec_item *));

	for (size_t i = 0; sorted && i < v->count; i++)
		sorted[i] = &v->items[i];
	if (sorted)
		qsort(sorted, v->count, sizeof(const struct spec_item *), compare);
	return sorted;
}

static bool layers_is_among(const struct spec_item **sorted, size_t count,
	const struct spec_item *item, int (*compare)(const void *, const void *))
{
	return bsearch(&item, sorted, count, sizeof(const struct spec_item *), compare) != NULL;
}

/*
 * Is a name covered by one of the sorted names above? Looks up the name itself, then every
 * domain it is below: a handful of searches, so that ten thousand entries cost no more than that.
 */
static bool name_is_covered(
	const struct spec_item **above, size_t count, const struct spec_item *below)
{
	struct spec_item wanted = *below;
	const char *point = below->egress.host;

	if (layers_is_among(above, count, &wanted, compare_egress))
		return true;
	wanted.egress.is_wildcard = true;
	while ((point = strchr(point, '.')) != NULL) {
		wanted.egress.host = ++point;
		if (layers_is_among(above, count, &wanted, compare_egress))
			return true;
	}
	return false;
}

/* Whether an entry can cover others than itself, so that each has to be asked. */
static bool has_patterns(enum spec_key key)
{
	return key == SPEC_NETWORK_ALLOW || key == SPEC_PROJECT_READ || key == SPEC_PROJECT_WRITE ||
	       key == SPEC_BINDS;
}

static bool any_covers(
	enum spec_key key, const struct spec_value *above, const struct spec_item *below)
{
	for (size_t i = 0; has_patterns(key) && i < above->count; i++)
		if (spec_covers(key, &above->items[i], below))
			return true;
	return false;
}

const char spec_loosen_hint[] =
	"if you wrote the file, say --trust, or keep it outside of the project and name it with "
	"-f; else allow it below project_may: in your own policy.yaml";

#define NARROW_HINT "what a session allows is fixed; see: bawn session create"

static const struct diag_list looser_list = {
	"this file asks for more than a project's own file may", spec_loosen_hint
};
static const struct diag_list wider_list = { "this asks for more than the session was created with",
	NARROW_HINT };

static void say_looser(struct spec *s, enum spec_key key, struct diag_pos at, const char *value)
{
	const char *path = spec_keys[key].path, *where;
	struct diag *said;

	spec_ceiling(s, key, &where);
	if (s->is_narrowing)
		said = diags_error(&s->diags, at, NARROW_HINT,
			"%s: '%s' is more than the session was created with", path, value);
	else
		said = diags_error(&s->diags, at,
			key == SPEC_AGENT
				? "name it yourself: --agent, or project_may: in your policy.yaml"
				: spec_loosen_hint,
			"%s: '%s' is more than %s lets a project's own file ask for", path, value,
			where);
	if (!said)
		return;
	said->brief = s->is_narrowing || str_eq(where, spec_layer_name(SPEC_LAYER_BUILTIN))
			      ? arena_printf(&s->arena, "%s: '%s'", path, value)
			      : arena_printf(&s->arena, "%s: '%s' (limit: %s)", path, value, where);
	/* Without memory for it, it is said by itself. */
	said->list = !said->brief ? NULL : s->is_narrowing ? &wider_list : &looser_list;
}

static void check_subset(struct spec *s, enum spec_key key, const struct spec_value *below)
{
	const char *where;
	const struct spec_value *above = spec_ceiling(s, key, &where);
	const struct spec_item **texts = layers_sort_items(&s->arena, above, layers_compare_texts);
	const struct spec_item **names =
		key == SPEC_NETWORK_ALLOW ? layers_sort_items(&s->arena, above, compare_egress)
					  : NULL;

	/* Diagnostics that will not be shown are not worth finding. */
	for (size_t i = 0; i < below->count && !diags_are_full(&s->diags); i++) {
		const struct spec_item *item = &below->items[i];
		bool is_covered =
			texts && layers_is_among(texts, above->count, item, layers_compare_texts);

		if (!is_covered && names && item->egress.host)
			is_covered = name_is_covered(names, above->count, item);
		else if (!is_covered)
			is_covered = any_covers(key, above, item);
		if (!is_covered && !layers_is_harmless(s, key, item))
			say_looser(s, key, item->at, item->text);
	}
}

/* Texts that need no leave: the built-in value, a tighter one, or a path inside the project. */
static bool stays_inside(enum spec_key key, const char *text)
{
	const char *def = spec_keys[key].def;

	if ((def && str_eq(text, def)) || (key == SPEC_SYSCALLS && str_eq(text, "strict")))
		return true;
	return key == SPEC_PROJECT_PATH && spec_is_inside_project(text);
}

static void check_same(struct spec *s, enum spec_key key, const struct spec_value *below)
{
	const char *where;
	const struct spec_value *above = spec_ceiling(s, key, &where);
	enum spec_layer layer = setter(s, key, SPEC_LAYER_USER);
	bool is_chosen = layer != SPEC_LAYER_BUILTIN || s->may.v[key].is_set;

	if (above->text && str_eq(above->text, below->text))
		return;
	/* The file may name an agent that the operator names on the command line too. */
	if (key == SPEC_AGENT && s->layers[SPEC_LAYER_OPTIONS].v[key].is_set)
		return;
	/* strict tightens whatever the operator chose; the rest only what nobody chose. */
	if (key == SPEC_SYSCALLS ? str_eq(below->text, "strict") || !is_chosen : !is_chosen)
		if (stays_inside(key, below->text))
			return;
	say_looser(s, key, below->at, below->text);
}

static bool is_looser(const struct spec *s, enum spec_key key, const struct spec_value *below)
{
	const struct spec_key_def *def = &spec_keys[key];
	const char *where;
	const struct spec_value *above = spec_ceiling(s, key, &where);

	switch (def->tighten) {
	case SPEC_ONLY_FALSE:
		return below->yes && !above->yes;
	case SPEC_ONLY_TRUE:
		return !below->yes && above->yes;
	case SPEC_RANK:
		return below->choice > above->choice;
	case SPEC_HARDENED:
		if (above->at.line)
			return below->choice != above->choice;
		return below->choice >= def->hardened_choices;
	case SPEC_AT_MOST:
		return above->is_set && below->number > above->number;
	case SPEC_FREE:
	case SPEC_SUBSET:
	case SPEC_ADD:
	case SPEC_SAME:
	case SPEC_OPERATOR_ONLY:
		break;
	}
	return false;
}

static void layers_check_file(struct spec *s)
{
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		const struct spec_value *below = &s->layers[SPEC_LAYER_FILE].v[k];

		if (!below->is_set)
			continue;
		if (spec_keys[k].tighten == SPEC_SUBSET) {
			check_subset(s, k, below);
		} else if (spec_keys[k].tighten == SPEC_SAME) {
			check_same(s, k, below);
		} else if (is_looser(s, k, below)) {
			struct buf value = { .max = 256 };

			spec_print_value(k, below, &value);
			say_looser(s, k, below->at, buf_text(&value));
			buf_done(&value);
		}
	}
}

/* --- merging --- */

/* Returns the key of an entry in its list; NULL: entries have no key. */
static const char *entry_name(enum spec_key key, const struct spec_item *item)
{
	if (spec_keys[key].type == SPEC_TYPE_VARS)
		return item->var.name;
	if (key == SPEC_BINDS)
		return item->bind.to;
	return key == SPEC_SECRETS ? item->secret.name : NULL;
}

/* True if a higher layer has an entry with the same key, such as a variable or a bind target. */
static bool is_replaced(
	enum spec_key key, const struct spec_item *item, const struct spec_value *above)
{
	const char *name = entry_name(key, item);

	for (size_t i = 0; name && i < above->count; i++)
		if (str_eq(name, entry_name(key, &above->items[i])))
			return !str_eq(item->text, above->items[i].text);
	return false;
}

/*
 * Puts the entries of `above` behind those that are settled already. What was said before is who
 * said it first: nobody takes an operator's word over by repeating it.
 */
static void add_to_settled(struct spec *s, enum spec_key key, const struct spec_value *above)
{
	struct spec_value *sum = &s->settled.v[key];
	struct spec_item *items = arena_array(&s->arena, sum->count + above->count, sizeof(*items));
	const struct spec_item **texts = layers_sort_items(&s->arena, sum, layers_compare_texts);
	size_t n = 0;

	if (!items || !texts) {
		diags_error(&s->diags, above->at, NULL, "not enough memory to merge the lists");
		return;
	}
	for (size_t i = 0; i < sum->count; i++)
		if (!is_replaced(key, &sum->items[i], above))
			items[n++] = sum->items[i];
	for (size_t i = 0; i < above->count; i++)
		if (!layers_is_among(texts, sum->count, &above->items[i], layers_compare_texts))
			items[n++] = above->items[i];
	sum->items = items;
	sum->count = n;
}

/* True if a layer's list is added to that of the layers below, and does not replace it. */
static bool layers_is_added(enum spec_key key, const struct spec_value *v)
{
	enum spec_type type = spec_keys[key].type;

	/* Each entry of a map is merged by itself. */
	return spec_is_list(type) &&
	       (v->adds || spec_keys[key].tighten == SPEC_ADD || type == SPEC_TYPE_VARS);
}

/* Merges the layers for one key. */
static void merge(struct spec *s, enum spec_key key)
{
	for (enum spec_layer i = SPEC_LAYER_BUILTIN; i < SPEC_LAYER_COUNT; i++) {
		const struct spec_value *v = &s->layers[i].v[key];

		if (i > SPEC_LAYER_BUILTIN && !v->is_set)
			continue;
		s->set_by[key] = i;
		if (i > SPEC_LAYER_BUILTIN && layers_is_added(key, v)) {
			add_to_settled(s, key, v);
			s->settled.v[key].is_set = true;
			s->settled.v[key].at = v->at;
		} else {
			s->settled.v[key] = *v;
		}
	}
}

static void check_policy(struct spec *s)
{
	const struct spec_value *engine = &s->settled.v[SPEC_ENGINE];
	const struct spec_value *place = &s->layers[SPEC_LAYER_SYSTEM].v[SPEC_ENVIRONMENT];

	/* A machine that its administrator calls prod is prod for everyone on it. */
	if (place->is_set && place->choice == SPEC_PROD) {
		s->settled.v[SPEC_ENVIRONMENT] = *place;
		s->set_by[SPEC_ENVIRONMENT] = SPEC_LAYER_SYSTEM;
	}
	place = &s->settled.v[SPEC_ENVIRONMENT];
	if (place->choice == SPEC_PROD && engine->choice == SPEC_ENGINE_LOGICAL)
		diags_error(&s->diags, engine->at, "use engine: auto",
			"engine: 'logical' enforces nothing, and %s says environment: prod",
			diags_where(&s->diags, place->at));
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		if (s->may.v[k].is_set &&
			(spec_keys[k].tighten == SPEC_FREE || spec_keys[k].tighten == SPEC_ADD))
			diags_error(&s->diags, s->may.v[k].at, "remove it",
				"project_may.%s: a project may set this freely", spec_keys[k].path);
}

void spec_let_govern(struct spec *s, const char *path)
{
	struct spec_value *mode = &s->settled.v[SPEC_PROJECT_MODE];
	struct spec_value *of = &s->settled.v[SPEC_SELF_GOVERNANCE];

	if (!spec_is_declared(s, SPEC_PROJECT_MODE)) {
		*mode = (struct spec_value){
			.is_set = true, .choice = SPEC_MODE_WRITABLE, .at = of->at
		};
		s->set_by[SPEC_PROJECT_MODE] = s->set_by[SPEC_SELF_GOVERNANCE];
	}
	s->is_self_governed = mode->choice == SPEC_MODE_WRITABLE;
	of->is_set = true;
	of->text = path;
}

bool spec_settle(struct spec *s)
{
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		merge(s, k);
	if (!s->is_file_trusted)
		layers_check_file(s);
	check_policy(s);
	return s->diags.errors == 0;
}

/* --- values that count --- */

bool spec_bool(const struct spec *s, enum spec_key key)
{
	return s->settled.v[key].yes;
}

unsigned spec_choice(const struct spec *s, enum spec_key key)
{
	return s->settled.v[key].choice;
}

uint64_t spec_number(const struct spec *s, enum spec_key key)
{
	return s->settled.v[key].number;
}

const char *spec_text(const struct spec *s, enum spec_key key)
{
	return s->settled.v[key].text;
}

const struct spec_value *spec_list(const struct spec *s, enum spec_key key)
{
	return &s->settled.v[key];
}

bool spec_is_declared(const struct spec *s, enum spec_key key)
{
	return s->settled.v[key].is_set && s->set_by[key] != SPEC_LAYER_BUILTIN;
}

struct diag_pos spec_where(const struct spec *s, enum spec_key key)
{
	return s->settled.v[key].at;
}

/* --- explaining --- */

static void print_account_line(
	const char *what, const char *value, const char *where, struct buf *out)
{
	buf_printf(out, "  %-11s ", what);
	buf_add_visible(out, value, strlen(value));
	if (where) {
		buf_puts(out, "  (");
		buf_add_visible(out, where, strlen(where));
		buf_putc(out, ')');
	}
	buf_putc(out, '\n');
}

static const char *where_set(
	const struct spec *s, enum spec_layer layer, const struct spec_value *v)
{
	if (layer == SPEC_LAYER_BUILTIN)
		return "built-in default";
	return arena_printf(
		s->diags.arena, "%s, %s", spec_layer_name(layer), diags_where(&s->diags, v->at));
}

/* Do the layers' lists add up? */
static bool is_summed(const struct spec *s, enum spec_key key)
{
	return spec_keys[key].tighten == SPEC_ADD || s->layers[s->set_by[key]].v[key].adds;
}

/* One value as text that stays, or NULL without memory. */
static const char *keep_value(const struct spec *s, enum spec_key key, const struct spec_value *v)
{
	struct buf value = { .max = (size_t)1 << 20 };
	const char *kept;

	spec_print_value(key, v, &value);
	kept = value.failed ? NULL : arena_copy(s->diags.arena, buf_text(&value), value.len);
	buf_done(&value);
	return kept;
}

static struct spec_account account_of_project(const struct spec *s, enum spec_key key)
{
	const char *where = NULL;
	const struct spec_value *most = spec_ceiling(s, key, &where);
	enum spec_tighten tighten = spec_keys[key].tighten;

	if (tighten == SPEC_FREE || tighten == SPEC_ADD)
		return (struct spec_account){ "project may", "set it freely", NULL };
	if (tighten == SPEC_OPERATOR_ONLY)
		return (struct spec_account){ "project may", "not set it: it is a key of policies",
			NULL };
	if (tighten == SPEC_AT_MOST && !most->is_set)
		return (struct spec_account){ "project may", "any", where };
	return (struct spec_account){ "project may", keep_value(s, key, most), where };
}

size_t spec_account(
	const struct spec *s, enum spec_key key, struct spec_account ret[static SPEC_ACCOUNT_MAX])
{
	size_t n = 0;

	for (int i = SPEC_LAYER_OPTIONS; i >= SPEC_LAYER_BUILTIN; i--) {
		enum spec_layer layer = (enum spec_layer)i;
		const struct spec_value *v = &s->layers[layer].v[key];
		bool is_it = layer == s->set_by[key];

		if (!v->is_set && !is_it)
			continue;
		/* It followed from another key of that layer. */
		if (!v->is_set && layer != SPEC_LAYER_BUILTIN)
			v = &s->settled.v[key];
		ret[n++] = (struct spec_account){ is_it               ? "value"
						  : is_summed(s, key) ? "and"
								      : "overrides",
			keep_value(s, key, v), where_set(s, layer, v) };
	}
	ret[n++] = account_of_project(s, key);
	return n;
}

void spec_explain(const struct spec *s, enum spec_key key, struct buf *out)
{
	struct spec_account rows[SPEC_ACCOUNT_MAX];
	size_t n = spec_account(s, key, rows);

	buf_printf(out, "%s\n", spec_keys[key].path);
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].value)
			out->failed = true;
		else
			print_account_line(rows[i].role, rows[i].value, rows[i].where, out);
	}
}
