/* Which paths do something on the host by themselves, under all their names. */
#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/str.h"
#include "change/scan/change_marks.h"
#include "check.h"

static void check_mark(const char *path, enum change_mark wanted)
{
	enum change_mark got = change_mark_of(path, NULL, 0);

	if (got != wanted)
		printf("%s is %s, not %s\n", path, change_mark_word(got), change_mark_word(wanted));
	CHECK(got == wanted);
	CHECK((change_mark_reason(path) != NULL) == (wanted != CHANGE_PLAIN));
}

static void test_paths(void)
{
	static const struct {
		enum change_mark mark;
		const char *paths[24];
	} rows[] = {
		{ CHANGE_HELD,
			{ ".git", ".git/hooks", ".git/hooks/pre-commit", ".git/hooks/a/b",
				".git/config", ".git/config.worktree", ".git/info/attributes",
				".git/objects/info/alternates", ".git/commondir", ".git/gitdir",
				".git/modules/a/config", ".git/modules/a/b/hooks/x",
				".git/modules/a/modules/b/config", ".git/worktrees/w/gitdir",
				".git/worktrees/w/commondir", ".git/worktrees/w/config.worktree",
				"deep/in/.git/hooks/x", "sub/.git", ".gitmodules", "a/.gitmodules",
				"x/.git/modules/y/info/attributes" } },
		{ CHANGE_HELD,
			{ ".envrc", "a/.envrc", ".direnv", ".vscode", ".vscode/tasks.json",
				"a/.vscode/b/c", ".idea/x.xml", ".claude/settings.json",
				".codex/config.toml", ".gemini/x", ".opencode/x",
				".cursor/mcp.json", ".mcp.json", ".devcontainer/devcontainer.json",
				"bawn.yaml", ".bashrc", ".zshenv", ".profile",
				".config/fish/config.fish", ".husky/pre-commit",
				".pre-commit-config.yaml", ".ssh/authorized_keys" } },
		{ CHANGE_HELD, { "v/lib/python3/site-packages/x.pth", "sitecustomize.py",
				       "a/sitecustomize.py", ".gdbinit", ".dir-locals.el",
				       "x.code-workspace" } },
		{ CHANGE_RUNS,
			{ "package.json", "web/package.json", "Makefile", "src/GNUmakefile",
				"CMakeLists.txt", "build.rs", "Cargo.toml", "setup.py",
				"pyproject.toml", "tests/conftest.py", ".github/workflows/ci.yml",
				".gitlab-ci.yml", "Jenkinsfile", "Dockerfile", "Dockerfile.dev",
				"docker-compose.yml", "node_modules/.bin/eslint", ".npmrc",
				".yarnrc.yml", "Justfile", "Taskfile.yml", ".gitattributes",
				".git/rebase-merge/git-rebase-todo", "AGENTS.md" } },
		{ CHANGE_LOCK, { ".git/index.lock", ".git/HEAD.lock", ".git/refs/heads/a/b.lock",
				       ".git/packed-refs.lock", ".git/shallow.lock", ".git/gc.pid",
				       ".git/config.lock", "a/.git/modules/b/index.lock" } },
		{ CHANGE_PLAIN,
			{ "README.md", "src/main.c", ".git/index", ".git/HEAD",
				".git/refs/heads/config", ".git/objects/ab/cdef", ".git/logs/HEAD",
				".git/refs/heads/hooks", "hooks/pre-commit", "config", "yarn.lock",
				"Cargo.lock", "x.pth", "a/index.lock", ".gitignore", ".github/x",
				".vscod", ".vscodes/x", "my.envrc", "package.json/x", "git",
				"gits~1", ".config/other" } },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (size_t k = 0; k < 24 && rows[i].paths[k]; k++)
			check_mark(rows[i].paths[k], rows[i].mark);
}

/* Other spellings that some file system takes for the same name. */
static void test_disguises(void)
{
	static const char *const held[] = { ".GIT/config", ".Git/Hooks/x", "git~1/config",
		"GIT~1/hooks/x", "git~1", ".g\u200cit/config", ".git\ufeff/hooks/x",
		"\u200d.git\u202e/config", ".git /config", ".git./config", ".git. ./config",
		".git::$INDEX_ALLOCATION/config", ".git/config::$DATA", ".EnvRC",
		".v\u017fcode/tasks.json", ".hus\u212ay/x", "GITMOD~1", ".envrc.", ".MCP.json " };

	for (size_t i = 0; i < COUNT_OF(held); i++)
		check_mark(held[i], CHANGE_HELD);
	check_mark("MAKEFILE", CHANGE_RUNS);
	check_mark(".Git/Index.LOCK", CHANGE_LOCK);
	check_mark("\xff\xfe.git", CHANGE_PLAIN); /* bytes that are no text stay what they are */
	check_mark("\xff/.git", CHANGE_HELD);
	check_mark("...", CHANGE_PLAIN);
	check_mark(":", CHANGE_PLAIN);
	check_mark("\u200c", CHANGE_PLAIN);
	check_mark(".git\n/config", CHANGE_HELD);
}

static void test_operators(void)
{
	static const char *const held[] = { "secret", "Deep/Folder" };

	CHECK(change_mark_of("secret", held, 2) == CHANGE_HELD);
	CHECK(change_mark_of("SECRET/x", held, 2) == CHANGE_HELD);
	CHECK(change_mark_of("deep/folder/x/y", held, 2) == CHANGE_HELD);
	CHECK(change_mark_of("secrets", held, 2) == CHANGE_PLAIN);
	CHECK(change_mark_of("deep", held, 2) == CHANGE_PLAIN);
	CHECK(change_mark_of("a/secret", held, 2) == CHANGE_PLAIN);
	CHECK(change_mark_of("secret/.git/index.lock", held, 2) == CHANGE_LOCK);
	CHECK(change_mark_of("secret/Makefile", held, 2) == CHANGE_HELD);
}

static enum change_mark effect(
	const char *path, const char *from, enum change_type before, enum change_type after)
{
	struct change_effect x = {
		.path = path, .from = from, .before.type = before, .after.type = after
	};

	return change_mark_effect(&x, NULL, 0);
}

/* .git as a file or a link says where the repository is; as a folder it is one. */
static void test_effects(void)
{
	CHECK(effect(".git", NULL, CHANGE_NOTHING, CHANGE_FILE) == CHANGE_HELD);
	CHECK(effect(".git", NULL, CHANGE_NOTHING, CHANGE_LINK) == CHANGE_HELD);
	CHECK(effect("a/.git", NULL, CHANGE_FOLDER, CHANGE_FILE) == CHANGE_HELD);
	CHECK(effect("a/.git", NULL, CHANGE_FILE, CHANGE_FOLDER) == CHANGE_HELD);
	CHECK(effect("a/.git", NULL, CHANGE_FILE, CHANGE_NOTHING) == CHANGE_HELD);
	CHECK(effect(".git", NULL, CHANGE_NOTHING, CHANGE_FOLDER) == CHANGE_PLAIN);
	CHECK(effect(".git", NULL, CHANGE_FOLDER, CHANGE_FOLDER) == CHANGE_PLAIN);
	CHECK(effect(".git/refs/x.lock", NULL, CHANGE_NOTHING, CHANGE_FOLDER) == CHANGE_PLAIN);
	CHECK(effect(".git/refs/x.lock", NULL, CHANGE_NOTHING, CHANGE_FILE) == CHANGE_LOCK);
	CHECK(effect(".vscode", NULL, CHANGE_NOTHING, CHANGE_FOLDER) == CHANGE_HELD);
	CHECK(effect("build", NULL, CHANGE_NOTHING, CHANGE_FOLDER) == CHANGE_PLAIN);
	CHECK(effect("plain", ".envrc", CHANGE_FILE, CHANGE_FILE) == CHANGE_HELD);
	CHECK(effect(".envrc", "plain", CHANGE_FILE, CHANGE_FILE) == CHANGE_HELD);
	CHECK(effect("a", "b", CHANGE_FILE, CHANGE_FILE) == CHANGE_PLAIN);
}

/* What writes or reads below a link does it where that leads. */
static void test_links(void)
{
	static const char *const held[] = { "conf/secret.yml" };
	static const struct {
		enum change_mark link, file;
		const char *path;
	} rows[] = {
		{ CHANGE_HELD, CHANGE_PLAIN, ".git/logs/HEAD" },
		{ CHANGE_HELD, CHANGE_PLAIN, ".git/FETCH_HEAD" },
		{ CHANGE_HELD, CHANGE_PLAIN, "a/.GIT/modules/b/COMMIT_EDITMSG" },
		{ CHANGE_HELD, CHANGE_PLAIN, ".git/info" },
		{ CHANGE_LOCK, CHANGE_LOCK, ".git/x.lock" },
		{ CHANGE_HELD, CHANGE_PLAIN, ".hg" },
		{ CHANGE_HELD, CHANGE_PLAIN, "a/.Config" },
		{ CHANGE_HELD, CHANGE_PLAIN, ".local/share" },
		{ CHANGE_HELD, CHANGE_PLAIN, "lib/site-packages" },
		{ CHANGE_RUNS, CHANGE_PLAIN, ".github" },
		{ CHANGE_HELD, CHANGE_PLAIN, "Conf" },
		{ CHANGE_HELD, CHANGE_HELD, "conf/secret.yml" },
		{ CHANGE_PLAIN, CHANGE_PLAIN, "a/conf" },
		{ CHANGE_PLAIN, CHANGE_PLAIN, ".hgx" },
		{ CHANGE_PLAIN, CHANGE_PLAIN, ".config/other" },
		{ CHANGE_PLAIN, CHANGE_PLAIN, "a/link" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct change_effect x = { .path = rows[i].path, .after.type = CHANGE_LINK };

		CHECK(change_mark_effect(&x, held, 1) == rows[i].link);
		x.before.type = CHANGE_FILE;
		CHECK(change_mark_effect(&x, held, 1) == rows[i].link);
		x.after.type = CHANGE_FILE;
		CHECK(change_mark_effect(&x, held, 1) == rows[i].file);
	}
	CHECK(change_mark_link_reason(".git/logs/HEAD") && change_mark_link_reason(".hg"));
	CHECK(!change_mark_link_reason(".git/config") && !change_mark_link_reason("a"));
	CHECK(change_mark_in_git("logs/HEAD", CHANGE_LINK) == CHANGE_HELD);
	CHECK(change_mark_in_git("logs/HEAD", CHANGE_FILE) == CHANGE_PLAIN);
}

/* A repository without a HEAD is none: what is in it is lost from sight. */
static void test_gone(void)
{
	static const struct {
		const char *path;
		enum change_mark mark;
	} rows[] = {
		{ ".git/HEAD", CHANGE_HELD },
		{ "a/.git/HEAD", CHANGE_HELD },
		{ ".git/modules/x/HEAD", CHANGE_HELD },
		{ ".git/worktrees/x/HEAD", CHANGE_HELD },
		{ ".git/worktrees/x/ORIG_HEAD", CHANGE_PLAIN },
		{ ".git/refs/remotes/origin/HEAD", CHANGE_PLAIN },
		{ ".git/logs/HEAD", CHANGE_PLAIN },
		{ "HEAD", CHANGE_PLAIN },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct change_effect x = {
			.path = rows[i].path, .change = CHANGE_DELETED, .before.type = CHANGE_FILE
		};

		CHECK(change_mark_effect(&x, NULL, 0) == rows[i].mark);
		x = (struct change_effect){ .path = "plain", .from = rows[i].path };
		CHECK(change_mark_effect(&x, NULL, 0) == rows[i].mark);
		CHECK(effect(rows[i].path, NULL, CHANGE_FILE, CHANGE_FILE) == CHANGE_PLAIN);
	}
}

static void test_bare(void)
{
	CHECK(change_mark_in_git("config", CHANGE_FILE) == CHANGE_HELD);
	CHECK(change_mark_in_git("hooks/x", CHANGE_FILE) == CHANGE_HELD);
	CHECK(change_mark_in_git("HEAD", CHANGE_FILE) == CHANGE_PLAIN);
	CHECK(change_mark_in_git("index.lock", CHANGE_FILE) == CHANGE_LOCK);
	CHECK(change_mark_in_git("refs/heads/config", CHANGE_FILE) == CHANGE_PLAIN);
}

/* What a writable project protects; the list is in src/plan/plan_project.c. */
static void test_as_in_writable_mode(void)
{
	static const char *const protected[] = { ".bash_profile", ".bashrc", ".claude", ".codex",
		".envrc", ".gemini", ".git/commondir", ".git/config", ".git/config.worktree",
		".git/hooks", ".git/info/attributes", ".gitmodules", ".idea", ".mcp.json",
		".opencode", ".profile", ".vscode", ".zshrc", "bawn.yaml" };

	for (size_t i = 0; i < COUNT_OF(protected); i++)
		check_mark(protected[i], CHANGE_HELD);
}

/* Long and adversarial paths: marked, and soon. */
static void test_long(void)
{
	char *path = malloc(CHANGE_MAX_PATH + 2);
	uint64_t began = clock_ns();

	if (!path)
		return;
	for (size_t i = 0; i < CHANGE_MAX_PATH; i++)
		path[i] = ".git/modules/a*/"[i % 16];
	path[CHANGE_MAX_PATH - 1] = 'x';
	path[CHANGE_MAX_PATH] = '\0';
	for (int i = 0; i < 10; i++)
		CHECK(change_mark_of(path, NULL, 0) == CHANGE_PLAIN);
	memcpy(path + CHANGE_MAX_PATH - 7, "/config", 7);
	CHECK(change_mark_of(path, NULL, 0) == CHANGE_HELD);
	path[CHANGE_MAX_PATH] = 'x'; /* longer than any path is */
	path[CHANGE_MAX_PATH + 1] = '\0';
	CHECK(change_mark_of(path, NULL, 0) == CHANGE_LOCK);
	CHECK(clock_ns() - began < 2000000000);
	free(path);
}

/* Every pattern of the table is reached by the path that it is. */
static void test_every_pattern(void)
{
	for (size_t i = 0; i < change_rule_count; i++)
		for (const char *const *p = change_rules[i].patterns; *p; p++) {
			char path[128];

			snprintf(path, sizeof(path), "%s%s",
				change_rules[i].place == CHANGE_ANYWHERE ? "in/" : "in/.git/", *p);
			CHECK(change_mark_of(path, NULL, 0) >= change_rules[i].mark);
			CHECK(**p != '*' || !strchr(*p, '/'));
			for (const char *c = *p; *c; c++) /* else it would never match */
				CHECK(*c == str_lower(*c));
		}
}

int main(void)
{
	test_paths();
	test_disguises();
	test_operators();
	test_effects();
	test_links();
	test_gone();
	test_bare();
	test_as_in_writable_mode();
	test_long();
	test_every_pattern();
	return check_report();
}
