#include "seccomp/filter.h"

#include <stdlib.h>

#include "base/str.h"
#include "seccomp/filter_rules.h"

const struct filter *filter_named(const char *name)
{
	if (str_eq(name, "default"))
		return &filter_default;
	return str_eq(name, "strict") ? &filter_strict : NULL;
}

void filter_made_done(struct filter_made *made)
{
	free(made->code);
	*made = (struct filter_made){ 0 };
}
