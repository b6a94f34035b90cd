/*
 * run_names - which of a few names a folder may have, by one listing instead of a question for
 * each.
 *
 * Runs as:  the operator.
 * Must not: be believed where a protection depends on it: a name that may be there is asked for,
 * and what is said not to be there costs a warning at most.
 */
#include <dirent.h>
#include <fcntl.h>
#include <strings.h>

#include "base/file.h"
#include "base/own.h"
#include "run/run_spec.h"

#define MOST_ENTRIES 512 /* in a larger folder, asking for each name is cheaper */

static const char *const names[RUN_NAME_COUNT] = {
	[RUN_NAME_SPEC] = "bawn.yaml",
	[RUN_NAME_YML] = "bawn.yml",
	[RUN_NAME_HIDDEN_YAML] = ".bawn.yaml",
	[RUN_NAME_HIDDEN_YML] = ".bawn.yml",
	[RUN_NAME_CAPITAL] = "Bawn.yaml",
	[RUN_NAME_JSON] = "bawn.json",
	[RUN_NAME_TOML] = "bawn.toml",
	[RUN_NAME_FILE] = "bawnfile",
	[RUN_NAME_CAPITAL_FILE] = "Bawnfile",
	[RUN_NAME_GIT_FILE] = ".git",
	[RUN_NAME_DOT_VENV] = ".venv",
	[RUN_NAME_VENV] = "venv",
	[RUN_NAME_ENV] = "env",
	[RUN_NAME_CMAKE] = "CMakeCache.txt",
	[RUN_NAME_BUILD] = "build",
	[RUN_NAME_BUILDDIR] = "builddir",
};

const char *run_name(enum run_name name)
{
	return names[name];
}

/* Some file systems do not tell capital letters from small ones: either may be what is meant. */
static uint32_t find_names(const struct file_entry *entry)
{
	uint32_t found = 0;

	for (enum run_name i = 0; i < RUN_NAME_COUNT; i++)
		if (strcasecmp(entry->name, names[i]) == 0 &&
			!(i == RUN_NAME_GIT_FILE && entry->type == DT_DIR))
			found |= 1U << i;
	return found;
}

uint32_t run_list_names(const char *folder)
{
	own_fd int fd = file_open(folder, O_RDONLY | O_DIRECTORY);
	struct file_entries entries = { .fd = fd };
	const struct file_entry *entry;
	uint32_t found = 0;
	size_t n = 0;

	while (fd >= 0 && n < MOST_ENTRIES && (entry = file_next_entry(&entries))) {
		found |= find_names(entry);
		n++;
	}
	return fd < 0 || n == MOST_ENTRIES || entries.failure ? RUN_NAMES_UNKNOWN : found;
}
