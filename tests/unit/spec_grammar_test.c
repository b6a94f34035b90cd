/* The grammars of texts: every text of a table becomes its canonical spelling, or its sentence. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "base/own.h"
#include "base/str.h"
#include "grammar_rows.h"
#include "plan/plan_guarantees.h"

/* --- words --- */

static void test_words(void)
{
	static const char sixty_four[] =
		"a234567890123456789012345678901234567890123456789012345678901234";
	static const struct row any[] = {
		{ "x", "x", NULL },
		{ " two words ", " two words ", NULL },
		{ "\x1b", "\x1b", NULL },
		{ "", NULL, "text is empty" },
	};
	static const struct row names[] = {
		{ "a", "a", NULL },
		{ "Stats-Auditor_2.0", "Stats-Auditor_2.0", NULL },
		{ "9lives", "9lives", NULL },
		{ sixty_four + 1, sixty_four + 1, NULL },
		{ "", NULL, "a name has 1 to 63 characters, not 0" },
		{ sixty_four, NULL, "a name has 1 to 63 characters, not 64" },
		{ "-x", NULL, "name '-x' must start with a letter or a digit" },
		{ ".x", NULL, "name '.x' must start with a letter or a digit" },
		{ "a b", NULL, "name 'a b' may have letters, digits and . _ - only" },
		{ "a/b", NULL, "name 'a/b' may have letters, digits and . _ - only" },
		{ "na\xc3\xafve", NULL,
			"name 'na\xc3\xafve' may have letters, digits and . _ - only" },
	};
	static const struct row guarantees[] = {
		{ "limits.memory", "limits.memory", NULL },
		{ "", NULL, "'' is not the name of a guarantee: see bawn doctor" },
		{ "Limits", NULL, "'Limits' is not the name of a guarantee: see bawn doctor" },
		{ "a b", NULL, "'a b' is not the name of a guarantee: see bawn doctor" },
	};

	CHECK_ROWS(SPEC_GRAMMAR_ANY, any);
	CHECK_ROWS(SPEC_GRAMMAR_NAME, names);
	CHECK_ROWS(SPEC_GRAMMAR_GUARANTEE, guarantees);
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		const struct row row = { plan_guarantee_defs[g].name, plan_guarantee_defs[g].name,
			NULL };

		check_rows(SPEC_GRAMMAR_GUARANTEE, &row, 1);
	}
}

/* --- paths --- */

static void test_sources(void)
{
	static const struct row rows[] = {
		{ "/srv/data", "/srv/data", NULL },
		{ "/", "/", NULL },
		{ "//srv///data/", "/srv/data", NULL },
		{ "/srv/./data/.", "/srv/data", NULL },
		{ "~", "~", NULL },
		{ "~/", "~", NULL },
		{ "~/.ssh/", "~/.ssh", NULL },
		{ ".", "$PROJECT", NULL },
		{ "./", "$PROJECT", NULL },
		{ "lib", "$PROJECT/lib", NULL },
		{ "./lib//x", "$PROJECT/lib/x", NULL },
		{ "..", "$PROJECT/..", NULL },
		{ "../lib", "$PROJECT/../lib", NULL },
		{ "../../lib", "$PROJECT/../../lib", NULL },
		{ "./../lib", "$PROJECT/../lib", NULL },
		{ "../..", "$PROJECT/../..", NULL },
		{ "..lib/x..", "$PROJECT/..lib/x..", NULL },
		{ "/a b/\xc3\xa9", "/a b/\xc3\xa9", NULL },
		/* What is spelled as a place in the project stays one. */
		{ "./~/x", "$PROJECT/~/x", NULL },
		{ "./~x", "$PROJECT/~x", NULL },
		{ "", NULL, "a path is empty" },
		{ "/a/../b", NULL, "path '/a/../b' has '..' after a name: write it without" },
		{ "/..", NULL, "path '/..' has '..' after a name: write it without" },
		{ "/../etc", NULL, "path '/../etc' has '..' after a name: write it without" },
		{ "~/..", NULL, "path '~/..' has '..' after a name: write it without" },
		{ "~/../x", NULL, "path '~/../x' has '..' after a name: write it without" },
		{ "a/..", NULL, "path 'a/..' has '..' after a name: write it without" },
		{ "a/../../b", NULL, "path 'a/../../b' has '..' after a name: write it without" },
		{ "../a/..", NULL, "path '../a/..' has '..' after a name: write it without" },
		{ "../a/../b", NULL, "path '../a/../b' has '..' after a name: write it without" },
		{ "~root", NULL, "path '~root': ~ is your own home only; write the whole path" },
		{ "$HOME/x", NULL,
			"path '$HOME/x': variables are not replaced here; write ~ or a path" },
	};

	CHECK_ROWS(SPEC_GRAMMAR_SOURCE, rows);
}

static void test_long_paths(void)
{
	static char path[4100];
	struct spec_item item = { 0 };
	struct err e = { 0 };

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[4095] = '\0';
	CHECK(spec_parse(SPEC_GRAMMAR_SOURCE, &arena, path, &item, &e) == 0);
	CHECK(spec_parse(SPEC_GRAMMAR_TARGET, &arena, path, &item, &e) == 0);
	path[4095] = 'a';
	path[4096] = '\0';
	CHECK(spec_parse(SPEC_GRAMMAR_SOURCE, &arena, path, &item, &e) < 0);
	CHECK(str_ends(e.text, "\xe2\x80\xa6' is longer than 4095 bytes"));
	CHECK(spec_parse(SPEC_GRAMMAR_TARGET, &arena, path, &item, NULL) < 0);
	CHECK(spec_parse(SPEC_GRAMMAR_INSIDE, &arena, path + 1, &item, NULL) == 0);
	CHECK(spec_parse(SPEC_GRAMMAR_PATTERN, &arena, path, &item, NULL) < 0);
	CHECK(spec_parse(SPEC_GRAMMAR_PROJECT, &arena, path, &item, NULL) < 0);
}

static void test_projects(void)
{
	static const struct row rows[] = {
		{ ".", ".", NULL },
		{ "./", ".", NULL },
		{ "sub/dir/", "sub/dir", NULL },
		{ "..", "..", NULL },
		{ "/srv/x", "/srv/x", NULL },
		{ "~/x", "~/x", NULL },
		{ "", NULL, "a path is empty" },
		{ "a/..", NULL, "path 'a/..' has '..' after a name: write it without" },
		{ "$PROJECT", NULL,
			"path '$PROJECT': variables are not replaced here; write ~ or a path" },
	};

	CHECK_ROWS(SPEC_GRAMMAR_PROJECT, rows);
}

static void test_targets(void)
{
	static const struct row rows[] = {
		{ "/data", "/data", NULL },
		{ "//data//x/./", "/data/x", NULL },
		{ "/..data/a..", "/..data/a..", NULL },
		{ "", NULL, "a path is empty" },
		{ "data", NULL, "path 'data' in the cage must start with /" },
		{ "./data", NULL, "path './data' in the cage must start with /" },
		{ "~/x", NULL, "path '~/x' in the cage: write /home/agent for ~" },
		{ "/", NULL, "path '/' in the cage is the root itself; choose one below it" },
		{ "/./", NULL, "path '/./' in the cage is the root itself; choose one below it" },
		{ "/a/../b", NULL, "path '/a/../b' in the cage has '..': write it without" },
		{ "/..", NULL, "path '/..' in the cage has '..': write it without" },
		{ "/a\nb", NULL, "a path in the cage has a control character" },
		{ "/a\x7f", NULL, "a path in the cage has a control character" },
	};

	CHECK_ROWS(SPEC_GRAMMAR_TARGET, rows);
}

static void test_insides(void)
{
	static const struct row rows[] = {
		{ ".git/hooks", ".git/hooks", NULL },
		{ "./.git//hooks/", ".git/hooks", NULL },
		{ "$PROJECT/.git", ".git", NULL },
		{ "a..b", "a..b", NULL },
		{ "", NULL, "a path is empty" },
		{ ".", NULL, "path '.' is the whole project; use mode: read_only for that" },
		{ "/etc", NULL, "path '/etc' must be relative to the project" },
		{ "~/x", NULL, "path '~/x' must be relative to the project" },
		{ "$HOME", NULL, "path '$HOME' must be relative to the project" },
		{ "$PROJECT//etc", NULL, NULL },
		{ "..", NULL, "path '..' leaves the project" },
		{ "a/../..", NULL, "path 'a/../..' leaves the project" },
		{ "$PROJECT/../x", NULL, "path '../x' leaves the project" },
	};

	CHECK_ROWS(SPEC_GRAMMAR_INSIDE, rows);
}

static void test_patterns(void)
{
	static const struct row rows[] = {
		{ "$PROJECT/**", "$PROJECT/**", NULL },
		{ "$PROJECT", "$PROJECT", NULL },
		{ "$PROJECT/", "$PROJECT", NULL },
		{ "$PROJECT//src/./**", "$PROJECT/src/**", NULL },
		{ "$PROJECT/src/a.c", "$PROJECT/src/a.c", NULL },
		{ "/opt/**", "/opt/**", NULL },
		{ "/**", "/**", NULL },
		{ "", NULL, "a path is empty" },
		{ "src/**", NULL, "pattern 'src/**' must start with $PROJECT/ or /" },
		{ "**", NULL, "pattern '**' must start with $PROJECT/ or /" },
		{ "~/**", NULL, "pattern '~/**' must start with $PROJECT/ or /" },
		{ "$PROJECTX/**", NULL, "pattern '$PROJECTX/**' must start with $PROJECT/ or /" },
		{ "$PROJECT/*.c", NULL,
			"pattern '$PROJECT/*.c': only /** at the end is understood; name the "
			"directory" },
		{ "/a/**/b", NULL,
			"pattern '/a/**/b': only /** at the end is understood; name the "
			"directory" },
		{ "/a?/**", NULL,
			"pattern '/a?/**': only /** at the end is understood; name the directory" },
		{ "/[ab]", NULL,
			"pattern '/[ab]': only /** at the end is understood; name the directory" },
		{ "$PROJECT/../x/**", NULL,
			"pattern '$PROJECT/../x/**' has '..': write it without" },
		{ "/a/..", NULL, "pattern '/a/..' has '..': write it without" },
	};

	CHECK_ROWS(SPEC_GRAMMAR_PATTERN, rows);
}

static void test_inside_project(void)
{
	CHECK(spec_is_inside_project("$PROJECT") && spec_is_inside_project("$PROJECT/a"));
	CHECK(spec_is_inside_project("sub") && spec_is_inside_project("."));
	CHECK(!spec_is_inside_project("$PROJECT/..") && !spec_is_inside_project("../x"));
	CHECK(!spec_is_inside_project("/") && !spec_is_inside_project("~/x"));
}

/* --- binds and variables --- */

static void test_binds(void)
{
	static const struct row rows[] = {
		{ "/srv:/data", "/srv:/data:ro", NULL },
		{ "/srv:/data:ro", "/srv:/data:ro", NULL },
		{ "~/lib/:/x//y:rw", "~/lib:/x/y:rw", NULL },
		{ "lib:/x", "$PROJECT/lib:/x:ro", NULL },
		{ "", NULL, "bind '' must be SOURCE:TARGET[:ro|:rw]" },
		{ "/srv", NULL, "bind '/srv' must be SOURCE:TARGET[:ro|:rw]" },
		{ ":/x", NULL, "bind ':/x' must be SOURCE:TARGET[:ro|:rw]" },
		{ "/x:", NULL, "bind '/x:' must be SOURCE:TARGET[:ro|:rw]" },
		{ "/a:/b:", NULL,
			"bind '/a:/b:' ends with ':': only :ro or :rw may follow the target" },
		{ "/a:/b:z", NULL,
			"bind '/a:/b:z' ends with ':z': only :ro or :rw may follow the target" },
		{ "/a:/b:ro,Z", NULL,
			"bind '/a:/b:ro,Z' ends with ':ro,Z': only :ro or :rw may follow the "
			"target" },
		{ "/a:/b:/c:ro", NULL,
			"bind '/a:/b:/c:ro' ends with ':/c:ro': only :ro or :rw may follow the "
			"target" },
		{ "/a:b", NULL, "path 'b' in the cage must start with /" },
		{ "/a:ro", NULL, "path 'ro' in the cage must start with /" },
		{ "$HOME:/b", NULL,
			"path '$HOME': variables are not replaced here; write ~ or a path" },
		{ "C:\\data:/x", NULL,
			"bind 'C:\\data:/x' has a Windows path: write a path of this machine" },
		{ "/a:/..", NULL, "path '/..' in the cage has '..': write it without" },
	};
	struct spec_item item = { 0 };

	CHECK_ROWS(SPEC_GRAMMAR_BIND, rows);
	CHECK(spec_parse(SPEC_GRAMMAR_BIND, &arena, "~/a:/b:rw", &item, NULL) == 0);
	CHECK_STR(item.bind.from, "~/a");
	CHECK_STR(item.bind.to, "/b");
	CHECK(item.bind.is_writable);
}

static void test_variables(void)
{
	static const struct row names[] = {
		{ "LANG", "LANG", NULL },
		{ "_x9", "_x9", NULL },
		{ "PATH", "PATH", NULL },
		{ "", NULL, "'' is not the name of a variable" },
		{ "9X", NULL, "'9X' is not the name of a variable" },
		{ "AWS_*", NULL,
			"'AWS_*' is not the name of a variable; patterns are not understood" },
		{ "A=B", NULL, "'A=B' is not the name of a variable; patterns are not understood" },
		{ "HOME", NULL, "variable HOME is set by bawn and cannot be changed" },
		{ "TMPDIR", NULL, "variable TMPDIR is set by bawn and cannot be changed" },
		{ "BAWN_X", NULL, "variable BAWN_X: names that start with BAWN_ are bawn's own" },
		{ "BAWNX", "BAWNX", NULL },
	};
	static const struct row settings[] = {
		{ "CI=1", "CI=1", NULL },
		{ "A=", "A=", NULL },
		{ "A=b=c\nd", "A=b=c\nd", NULL },
		{ "A", NULL, "'A' must be NAME=VALUE" },
		{ "=x", NULL, "'' is not the name of a variable" },
		{ "USER=x", NULL, "variable USER is set by bawn and cannot be changed" },
	};

	CHECK_ROWS(SPEC_GRAMMAR_VARIABLE, names);
	CHECK_ROWS(SPEC_GRAMMAR_SETTING, settings);
}

/* --- images, overlays, system calls --- */

static void test_resources(void)
{
	static const struct row images[] = {
		{ "host", "host", NULL },
		{ "debian-12", "debian-12", NULL },
		{ "dir:/srv//img/", "dir:/srv/img", NULL },
		{ "oci:img", "oci:$PROJECT/img", NULL },
		{ "sif:~/a.sif", "sif:~/a.sif", NULL },
		{ "", NULL, "a name has 1 to 63 characters, not 0" },
		{ "dir:", NULL, "a path is empty" },
		{ "/srv/img", NULL,
			"image '/srv/img' looks like a path: write dir:, oci: or sif: before it" },
		{ "docker:x", NULL, "name 'docker:x' may have letters, digits and . _ - only" },
		{ "dir:/a/../b", NULL, "path '/a/../b' has '..' after a name: write it without" },
	};
	static const struct row overlays[] = {
		{ "ephemeral", "ephemeral", NULL },
		{ "~/o", "~/o", NULL },
		{ "o.img", "$PROJECT/o.img", NULL },
		{ "", NULL, "a path is empty" },
		{ "$X", NULL, "path '$X': variables are not replaced here; write ~ or a path" },
	};
	static const struct row syscalls[] = {
		{ "default", "default", NULL },
		{ "strict", "strict", NULL },
		{ "/etc/p.json", "/etc/p.json", NULL },
		{ "p.json", "$PROJECT/p.json", NULL },
		{ "sub/profile.json", "$PROJECT/sub/profile.json", NULL },
		{ "Default", NULL,
			"'Default' is not a system-call profile: write default, strict, or the "
			"path of a JSON file" },
		{ "", NULL, NULL },
	};

	CHECK_ROWS(SPEC_GRAMMAR_IMAGE, images);
	CHECK_ROWS(SPEC_GRAMMAR_OVERLAY, overlays);
	CHECK_ROWS(SPEC_GRAMMAR_SYSCALLS, syscalls);
}

int main(void)
{
	arena_init(&arena, 1 << 24);
	test_words();
	test_sources();
	test_long_paths();
	test_projects();
	test_targets();
	test_insides();
	test_patterns();
	test_inside_project();
	test_binds();
	test_variables();
	test_resources();
	arena_done(&arena);
	return check_report();
}
