#pragma once

#include "seccomp/filter_rules.h"
#include "spec/yaml.h"

/* A profile being read. The first error ends it: every function returns 0 or what went wrong. */
struct filter_reader {
	struct arena arena;
	struct diags *diags;
	struct err *e;
	const struct filter_arch *arch;
	struct filter_rules rules;
};
