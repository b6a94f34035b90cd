#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/num.h"
#include "base/str.h"
#include "host/host.h"

/* --- out --- */

static void print_abilities(const struct host *h, struct json *j)
{
	json_open_map(j, "abilities");
	for (enum host_ability i = 0; i < HOST_ABILITY_COUNT; i++) {
		json_open_map(j, host_ability_defs[i].name);
		json_bool(j, "can", host_can(h, i));
		if (!host_can(h, i)) {
			json_text(j, "cause", host_cause_defs[h->abilities[i].cause].name);
			json_int(j, "errno", h->abilities[i].num);
		}
		json_close_map(j);
	}
	json_close_map(j);
}

static void print_system(const struct host *h, struct json *j)
{
	static const char *const words[] = {
		[HOST_PATH_ABSENT] = "absent",
		[HOST_PATH_DIR] = "dir",
		[HOST_PATH_FILE] = "file",
		[HOST_PATH_LINK] = "link:",
	};

	json_open_map(j, "system");
	for (int i = 0; i < HOST_SYSTEM_COUNT; i++) {
		char text[sizeof(h->system[i].target) + sizeof("link:")];

		snprintf(text, sizeof(text), "%s%s", words[h->system[i].kind], h->system[i].target);
		json_text(j, host_system_paths[i], text);
	}
	json_close_map(j);
}

void host_print_json(const struct host *h, struct json *j)
{
	json_text(j, "kernel", h->kernel);
	json_text(j, "arch", h->arch);
	json_bool(j, "is_root", h->is_root);
	json_bool(j, "has_bash", h->has_bash);
	json_int(j, "landlock_abi", h->landlock_abi);
	json_int(j, "cgroup_version", h->cgroup_version);
	json_int(j, "groups", h->groups);
	json_text(j, "container", h->container);
	print_abilities(h, j);
	print_system(h, j);
}

/* --- in --- */

/* A description being read: functions report an error and go on, so all errors come at once. */
struct reader {
	struct host h;
	struct diags *diags;
};

static const char *const top_keys[] = { "kernel", "arch", "is_root", "has_bash", "landlock_abi",
	"cgroup_version", "groups", "container", "abilities", "system" };

static const char *const ability_keys[] = { "can", "cause", "errno" };

static void read_say_unknown(struct reader *r, const struct yaml_node *word, const char *what,
	const char *const *known, size_t count)
{
	const char *nearest = str_nearest(word->text, known, count);
	char hint[96];

	snprintf(hint, sizeof(hint), "did you mean '%s'?", nearest ? nearest : "");
	diags_error(r->diags, word->at, nearest ? hint : NULL, "unknown %s '%s'", what, word->text);
}

/* True for a map with exactly these keys. */
static bool check_map(struct reader *r, const struct yaml_node *map, const char *what,
	const char *const *known, size_t count)
{
	if (map->kind != YAML_MAP) {
		diags_error(
			r->diags, map->at, NULL, "this must be a map, not %s", yaml_describe(map));
		return false;
	}
	for (const struct yaml_node *n = map->first; n; n = n->next) {
		size_t i = 0;

		while (i < count && !str_eq(known[i], n->key->text))
			i++;
		if (i == count)
			read_say_unknown(r, n->key, what, known, count);
	}
	return true;
}

static const struct yaml_node *need(
	struct reader *r, const struct yaml_node *map, const char *what, const char *key)
{
	const struct yaml_node *n = yaml_get(map, key);

	if (!n)
		diags_error(r->diags, map->at, NULL, "the %s '%s' is missing", what, key);
	return n;
}

static bool read_check_scalar(struct reader *r, const struct yaml_node *n, enum yaml_type type)
{
	struct yaml_node wanted = { .kind = YAML_SCALAR, .type = type, .text = "" };

	if (n->kind == YAML_SCALAR && n->type == type)
		return true;
	diags_error(r->diags, n->at, NULL, "this must be %s, not %s", yaml_describe(&wanted),
		yaml_describe(n));
	return false;
}

static bool read_bool(struct reader *r, const struct yaml_node *n)
{
	return n && read_check_scalar(r, n, YAML_BOOL) && str_eq(n->text, "true");
}

static int read_int(struct reader *r, const struct yaml_node *n, int max)
{
	struct err e = { 0 };
	int64_t value = 0;

	if (n && read_check_scalar(r, n, YAML_INT) &&
		num_parse_int(n->text, 0, max, &value, &e) < 0)
		diags_error(r->diags, n->at, NULL, "%s", e.text);
	return (int)value;
}

static void host_read_read_text(struct reader *r, const struct yaml_node *n, char *ret, size_t size)
{
	if (!n || !read_check_scalar(r, n, YAML_TEXT))
		return;
	if (strlen(n->text) >= size) {
		diags_error(r->diags, n->at, NULL, "this is longer than %zu characters", size - 1);
		return;
	}
	memcpy(ret, n->text, strlen(n->text));
}

static enum host_cause read_cause(struct reader *r, const struct yaml_node *n)
{
	const char *names[HOST_CAUSE_COUNT - 1];

	if (!read_check_scalar(r, n, YAML_TEXT))
		return HOST_CAUSE_NONE;
	for (enum host_cause i = HOST_CAUSE_NONE + 1; i < HOST_CAUSE_COUNT; i++) {
		if (str_eq(host_cause_defs[i].name, n->text))
			return i;
		names[i - 1] = host_cause_defs[i].name;
	}
	read_say_unknown(r, n, "cause", names, COUNT_OF(names));
	return HOST_CAUSE_NONE;
}

static void read_ability(struct reader *r, enum host_ability ability, const struct yaml_node *map)
{
	const struct yaml_node *can, *cause, *num;

	if (!check_map(r, map, "key", ability_keys, COUNT_OF(ability_keys)))
		return;
	can = need(r, map, "key", "can");
	if (!can || !read_check_scalar(r, can, YAML_BOOL))
		return;
	if (str_eq(can->text, "true")) {
		if (map->count != 1)
			diags_error(r->diags, map->at, NULL,
				"what it can do has no cause and no errno");
		return;
	}
	cause = need(r, map, "key", "cause");
	num = need(r, map, "key", "errno");
	if (cause)
		r->h.abilities[ability].cause = read_cause(r, cause);
	r->h.abilities[ability].num = read_int(r, num, 4095);
}

static void read_abilities(struct reader *r, const struct yaml_node *map)
{
	const char *names[HOST_ABILITY_COUNT];

	for (enum host_ability i = 0; i < HOST_ABILITY_COUNT; i++)
		names[i] = host_ability_defs[i].name;
	if (!map || !check_map(r, map, "ability", names, COUNT_OF(names)))
		return;
	for (enum host_ability i = 0; i < HOST_ABILITY_COUNT; i++) {
		const struct yaml_node *n = need(r, map, "ability", names[i]);

		if (n)
			read_ability(r, i, n);
	}
}

static void host_read_read_path(struct reader *r, int i, const struct yaml_node *n)
{
	static const char *const words[] = { "absent", "dir", "file" };
	static const enum host_path_kind kinds[] = { HOST_PATH_ABSENT, HOST_PATH_DIR,
		HOST_PATH_FILE };
	size_t prefix = strlen("link:");

	if (!read_check_scalar(r, n, YAML_TEXT))
		return;
	for (size_t k = 0; k < COUNT_OF(words); k++) {
		if (str_eq(words[k], n->text)) {
			r->h.system[i].kind = kinds[k];
			return;
		}
	}
	if (!str_starts(n->text, "link:") || n->text[prefix] == '\0') {
		diags_error(r->diags, n->at, NULL,
			"'%s' is none of absent, dir, file and link:TARGET", n->text);
	} else if (strlen(n->text + prefix) >= sizeof(r->h.system[i].target)) {
		diags_error(r->diags, n->at, NULL,
			"the link's target is longer than %zu characters",
			sizeof(r->h.system[i].target) - 1);
	} else {
		r->h.system[i].kind = HOST_PATH_LINK;
		memcpy(r->h.system[i].target, n->text + prefix, strlen(n->text + prefix));
	}
}

static void host_read_read_system(struct reader *r, const struct yaml_node *map)
{
	if (!map || !check_map(r, map, "system path", host_system_paths, HOST_SYSTEM_COUNT))
		return;
	for (int i = 0; i < HOST_SYSTEM_COUNT; i++) {
		const struct yaml_node *n = need(r, map, "system path", host_system_paths[i]);

		if (n)
			host_read_read_path(r, i, n);
	}
}

int host_from_yaml(struct host *ret, const struct yaml_node *map, struct diags *diags)
{
	struct reader r;
	struct host *h = &r.h;
	size_t errors_before = diags->errors;

	memset(&r, 0, sizeof(r));
	r.diags = diags;
	if (!check_map(&r, map, "key", top_keys, COUNT_OF(top_keys)))
		return -EINVAL;
	host_read_read_text(&r, need(&r, map, "key", "kernel"), h->kernel, sizeof(h->kernel));
	host_read_read_text(&r, need(&r, map, "key", "arch"), h->arch, sizeof(h->arch));
	h->is_root = read_bool(&r, need(&r, map, "key", "is_root"));
	h->has_bash = read_bool(&r, need(&r, map, "key", "has_bash"));
	h->landlock_abi = read_int(&r, need(&r, map, "key", "landlock_abi"), 1000);
	h->cgroup_version = read_int(&r, need(&r, map, "key", "cgroup_version"), 2);
	h->groups = read_int(&r, need(&r, map, "key", "groups"), 65536);
	host_read_read_text(
		&r, need(&r, map, "key", "container"), h->container, sizeof(h->container));
	read_abilities(&r, need(&r, map, "key", "abilities"));
	host_read_read_system(&r, need(&r, map, "key", "system"));
	if (diags->errors == errors_before && (h->landlock_abi > 0) != host_can(h, HOST_LANDLOCK))
		diags_error(diags, yaml_get(map, "landlock_abi")->at, NULL,
			"landlock_abi is 0 exactly where the ability 'landlock' is missing");
	if (diags->errors != errors_before)
		return -EINVAL;
	memcpy(ret, h, sizeof(*h));
	return 0;
}
