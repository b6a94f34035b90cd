/*
 * run_identity - who commits in a cage: name and e-mail of the operator's git configuration.
 *
 * Runs as:  the operator.
 * Must not: take anything else from that configuration: it names programs, and may have keys.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check/check_git.h"
#include "run/run_spec.h"

#define MOST_VALUE 256

struct identity {
	char name[MOST_VALUE], email[MOST_VALUE];
};

/* Later files and lines win, as with git. */
static void identity_take_config(const char *text, size_t n, struct identity *ret)
{
	struct check_git_values values;
	char value[MOST_VALUE];

	check_git_values_init(&values, text, n);
	while (check_git_values_any(&values, value, sizeof(value))) {
		if (values.has_subsection || !str_eq(values.section, "user"))
			continue;
		if (str_eq(values.key, "name"))
			memcpy(ret->name, value, sizeof(value));
		if (str_eq(values.key, "email"))
			memcpy(ret->email, value, sizeof(value));
	}
}

/* As git reads it back. */
static void add_setting(struct buf *out, const char *key, const char *value)
{
	if (!*value)
		return;
	buf_printf(out, "\t%s = \"", key);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			buf_putc(out, '\\');
		if ((unsigned char)*value >= ' ' && *value != 0x7f)
			buf_putc(out, *value);
	}
	buf_puts(out, "\"\n");
}

const char *run_git_identity(struct spec *s, struct run_place *place)
{
	own(buf) struct buf out = { .max = (size_t)4 * MOST_VALUE };
	struct check_own_config *config = &place->git_config;
	struct identity found = { 0 };

	if (!place->home)
		return NULL;
	check_read_own_config(config, place->home, &s->arena);
	for (size_t i = 0; i < COUNT_OF(config->files); i++)
		if (config->files[i].text)
			identity_take_config(config->files[i].text, config->files[i].size, &found);
	if (!found.name[0] && !found.email[0])
		return NULL;
	buf_puts(&out, "[user]\n");
	add_setting(&out, "name", found.name);
	add_setting(&out, "email", found.email);
	return out.failed ? NULL : arena_copy(&s->arena, buf_text(&out), out.len);
}
