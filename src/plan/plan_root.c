#include "plan/plan_root.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"

const struct plan_root_def plan_roots[PLAN_ROOT_COUNT] = {
	[PLAN_ROOT_NONE] = { "", PLAN_OWNER_OPERATOR },
	[PLAN_ROOT_HOME] = { "~", PLAN_OWNER_OPERATOR },
	[PLAN_ROOT_PROJECT] = { "$PROJECT", PLAN_OWNER_OPERATOR },
	[PLAN_ROOT_GIT] = { "$GIT", PLAN_OWNER_OPERATOR },
	[PLAN_ROOT_SESSION_HOME] = { "$SESSION/home", PLAN_OWNER_CAGE },
	[PLAN_ROOT_SESSION_TMP] = { "$SESSION/tmp", PLAN_OWNER_CAGE },
	[PLAN_ROOT_STATE] = { "$STATE", PLAN_OWNER_CAGE },
	[PLAN_ROOT_BAWN] = { "$BAWN", PLAN_OWNER_BAWN },
	[PLAN_ROOT_TOLD] = { "$TOLD", PLAN_OWNER_BAWN },
	[PLAN_ROOT_RUN] = { "$RUN", PLAN_OWNER_BAWN },
};

enum plan_root plan_root_of(const char *text, const char **ret_path)
{
	static const enum plan_root of_specs[] = { PLAN_ROOT_HOME, PLAN_ROOT_PROJECT };

	for (size_t i = 0; i < COUNT_OF(of_specs); i++) {
		const char *name = plan_roots[of_specs[i]].name;

		if (str_path_within(text, name)) {
			*ret_path = text + strlen(name);
			return of_specs[i];
		}
	}
	*ret_path = text;
	return PLAN_ROOT_NONE;
}

const char *plan_path_in_project(const char *text)
{
	const char *path;

	if (plan_root_of(text, &path) != PLAN_ROOT_PROJECT)
		return NULL;
	return *path ? path + 1 : path;
}

const char *plan_root_text(enum plan_root root, const char *path, char ret[static PLAN_TEXT_SIZE])
{
	if (root == PLAN_ROOT_NONE)
		return path;
	snprintf(ret, PLAN_TEXT_SIZE, "%s%s", plan_roots[root].name, path);
	return ret;
}
