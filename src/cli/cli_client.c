#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "client/client.h"

void cli_add_clients(struct spec *s, const struct cli_place *place, struct spec_value *allow)
{
	char here[PATH_MAX], git[PATH_MAX + 8];
	struct agent_search where = { .path = getenv("PATH"),
		.home = place->home,
		.only_path = true,
		.project = place->project,
		.here = getcwd(here, sizeof(here)) };

	/* Without an allow-list nobody is reached; then the names say nothing. */
	if (allow == &s->settled.v[SPEC_NETWORK_ALLOW] &&
		spec_choice(s, SPEC_NETWORK_MODE) != SPEC_NET_ALLOWLIST)
		return;
	if (place->repository.folder[0])
		snprintf(git, sizeof(git), "%s", place->repository.folder);
	else
		snprintf(git, sizeof(git), "%s/.git", place->project);
	client_apply(s, allow, &where, git);
}
