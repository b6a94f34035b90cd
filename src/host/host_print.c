#include <stdio.h>

#include "host/host.h"

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
