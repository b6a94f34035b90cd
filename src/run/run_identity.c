/*
 * run_identity - who commits in a cage: name and e-mail of the operator's git configuration.
 *
 * Runs as:  the operator.
 * Must not: take anything else from that configuration: it names programs, and may have keys.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "check/check_git.h"
#include "run/run_spec.h"

#define MOST_CONFIG ((size_t)1 << 20)
#define MOST_VALUE  256

struct identity {
	char name[MOST_VALUE], email[MOST_VALUE];
};

/* Later files and lines win, as with git. A file that is not there, or cannot be read, says none.
 */
static void identity_read_config(const char *path, struct identity *ret)
{
	own_fd int fd = file_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	own_free char *bytes = NULL;
	struct check_git_values values;
	char value[MOST_VALUE];
	size_t n = 0;

	if (fd < 0 || file_read_all(fd, MOST_CONFIG, &bytes, &n) < 0)
		return;
	check_git_values_init(&values, bytes, n);
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

const char *run_git_identity(struct spec *s, const char *home)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	own(buf) struct buf out = { .max = (size_t)4 * MOST_VALUE };
	struct identity found = { 0 };
	char path[PATH_MAX];

	if (!home)
		return NULL;
	if (config && config[0] == '/')
		snprintf(path, sizeof(path), "%s/git/config", config);
	else
		snprintf(path, sizeof(path), "%s/.config/git/config", home);
	identity_read_config("/etc/gitconfig", &found);
	identity_read_config(path, &found);
	snprintf(path, sizeof(path), "%s/.gitconfig", home);
	identity_read_config(path, &found);
	if (!found.name[0] && !found.email[0])
		return NULL;
	buf_puts(&out, "[user]\n");
	add_setting(&out, "name", found.name);
	add_setting(&out, "email", found.email);
	return out.failed ? NULL : arena_copy(&s->arena, buf_text(&out), out.len);
}
