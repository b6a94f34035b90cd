/*
 * run_own_path - a project whose files name where it is on the host.
 *
 * Runs as:  the operator.
 * Reads:    a few files of the project, below its folder and through no link.
 * Must not: believe them: what they say leads to a warning and to nothing else.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "run/run_spec.h"
#include "spec/spec_grammar.h"

#define MAX_LOOK ((size_t)64 << 10)

/* What programs write absolute paths into, where they are usually kept. */
static const struct {
	const char *path, *what;
	const char *settings; /* of a virtual environment: what says whose Python it has */
} files[] = {
	{ ".venv/bin/activate", "the virtual environment .venv", ".venv/pyvenv.cfg" },
	{ "venv/bin/activate", "the virtual environment venv", "venv/pyvenv.cfg" },
	{ "env/bin/activate", "the virtual environment env", "env/pyvenv.cfg" },
	{ "CMakeCache.txt", "CMakeCache.txt" },
	{ "build/CMakeCache.txt", "build/CMakeCache.txt" },
	{ "build/meson-info/meson-info.json", "Meson's folder build" },
	{ "builddir/meson-info/meson-info.json", "Meson's folder builddir" },
};

bool run_settle_place(struct spec *s, const struct run_place *place)
{
	struct spec_value *at = &s->settled.v[SPEC_PROJECT_AT];
	struct spec_item item = { 0 };
	struct err e = { 0 };

	if (!at->text || !str_eq(at->text, "own"))
		return true;
	/* The path tells whose the project is. */
	if (s->set_by[SPEC_PROJECT_AT] == SPEC_LAYER_FILE && !s->is_file_trusted) {
		diags_error(&s->diags, at->at, "say it yourself: --own-path, or --trust",
			"project.at: a project's own file cannot ask for its path on the host");
		return false;
	}
	if (spec_grammar_target(&s->arena, place->project, &item, &e) < 0) {
		diags_error(&s->diags, at->at, NULL, "project.at: %s", e.text);
		return false;
	}
	at->text = item.text;
	s->is_at_own_path = true;
	return true;
}

/* Does the path stand there as a whole, and not as the beginning of another name? */
static bool names(const char *bytes, size_t n, const char *path)
{
	size_t size = strlen(path);

	for (const char *at = bytes; (at = memmem(at, n - (size_t)(at - bytes), path, size));
		at++) {
		char next = at + size < bytes + n ? at[size] : '\0';

		if (!str_is_letter(next) && !str_is_digit(next) && !strchr("._-", next))
			return true;
	}
	return false;
}

/* The beginning of a file of the project's; 0 where it cannot be read. */
static size_t own_path_look_into(int folder, const char *file, char ret[static MAX_LOOK])
{
	own_fd int fd = file_open_beneath(folder, file, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	n = file_read_up_to(fd, ret, MAX_LOOK - 1);
	ret[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* The toolchain whose Python an environment has, where the cage does not; or NULL. */
static const char *missing_python(
	const struct spec *s, const struct run_place *place, int folder, const char *settings)
{
	static const char key[] = "home = /";
	char bytes[MAX_LOOK], *home, *rest;

	if (!settings || !own_path_look_into(folder, settings, bytes))
		return NULL;
	for (home = strtok_r(bytes, "\n", &rest); home; home = strtok_r(NULL, "\n", &rest))
		if (str_starts(home, key))
			return run_missing_toolchain(s, place, home + strlen(key) - 1);
	return NULL;
}

void run_check_own_paths(struct spec *s, const struct run_place *place)
{
	const char *at = spec_text(s, SPEC_PROJECT_AT);
	own_fd int folder = file_open(place->project, O_PATH | O_DIRECTORY);
	bool is_own = str_eq(at, place->project) ||
		      spec_choice(s, SPEC_PROJECT_CAGE) == SPEC_CAGE_PROJECT;

	for (size_t i = 0; folder >= 0 && i < COUNT_OF(files); i++) {
		struct diag_pos where = { 0 };
		char bytes[MAX_LOOK];
		size_t n = own_path_look_into(folder, files[i].path, bytes);
		const char *missing;

		/* One that was made in a cage is right there as it is. */
		if (!n || !names(bytes, n, place->project))
			continue;
		missing = missing_python(s, place, folder, files[i].settings);
		if (is_own && !missing)
			continue;
		where.source = diags_add_source(&s->diags, files[i].path, NULL, 0);
		diags_warn(&s->diags, where,
			arena_printf(&s->arena, "add%s%s%s", is_own ? "" : " --own-path",
				missing ? " --toolchain " : "", missing ? missing : ""),
			"%s was made for %s, and the cage has %s%s", files[i].what, place->project,
			is_own ? "no Python of " : "the project at ", is_own ? missing : at);
		return;
	}
}
