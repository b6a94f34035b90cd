#include "base/count.h"
#include "change/scan/change_marks.h"

#define ONE_OF(...) ((const char *const[]){ __VA_ARGS__, NULL })

/*
 * What does something on the host later by being there. HELD is what runs without being called: by
 * entering the folder, by opening it in an editor or an agent, by an ordinary `git status`. RUNS is
 * what its owner calls: a build, a test, an installation. All that is protected in a writable
 * project (src/plan/plan_project.c) is HELD here; tests/unit/change_marks_test.c holds them
 * together.
 */
const struct change_rule change_rules[] = {
	/* git's own folders */
	{ CHANGE_LOCK, CHANGE_BELOW_GIT, true, "a lock of git's: it belongs to one running command",
		ONE_OF("*.lock", "gc.pid") },
	{ CHANGE_HELD, CHANGE_IN_GIT, false, "a git hook: git runs it", ONE_OF("hooks/**") },
	{ CHANGE_HELD, CHANGE_IN_GIT, true, "configuration of git: it can name programs git runs",
		ONE_OF("config", "config.worktree", "worktrees/*/config.worktree",
			"info/attributes") },
	{ CHANGE_HELD, CHANGE_IN_GIT, true, "tells git where the repository is",
		ONE_OF("commondir", "gitdir", "worktrees/*/commondir", "worktrees/*/gitdir",
			"objects/info/alternates", "objects/info/http-alternates") },
	{ CHANGE_HELD, CHANGE_IN_GIT, false, "tells git where to fetch from",
		ONE_OF("remotes/**", "branches/**") },
	{ CHANGE_RUNS, CHANGE_IN_GIT, false,
		"steps of git that are not finished: continuing runs them",
		ONE_OF("rebase-merge/**", "rebase-apply/**", "sequencer/**",
			"worktrees/*/rebase-merge/**", "worktrees/*/rebase-apply/**",
			"worktrees/*/sequencer/**") },
	{ CHANGE_HELD, CHANGE_ANYWHERE, true, "tells git where the repository is", ONE_OF(".git") },
	{ CHANGE_HELD, CHANGE_ANYWHERE, false,
		"configuration of git: it can name programs git runs",
		ONE_OF(".gitmodules", "gitmod~*", "gi7eba~*", ".gitconfig", ".config/git/**",
			".hg/hgrc", ".hg/hgrc-not-shared") },
	{ CHANGE_HELD, CHANGE_ANYWHERE, false, "hooks of git: git runs what they name",
		ONE_OF(".husky/**", ".githooks/**", ".pre-commit-config.yaml",
			".pre-commit-config.yml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml",
			".lefthook.yaml", "lefthook-local.yml", "lefthook-local.yaml",
			".lefthook/**", ".lefthook-local/**") },

	/* run by entering or opening the folder */
	{ CHANGE_HELD, CHANGE_ANYWHERE, false, "runs when a shell enters the folder",
		ONE_OF(".envrc", ".direnv/**", ".direnvrc", "mise.toml", ".mise.toml",
			"mise.local.toml", ".mise.local.toml", ".mise/**", ".autoenv.zsh",
			".autoenv_leave.zsh") },
	{ CHANGE_HELD, CHANGE_ANYWHERE, false, "settings of an editor: it can run what they name",
		ONE_OF(".vscode/**", "*.code-workspace", ".idea/**", ".fleet/**", ".zed/**",
			".vs/**", ".devcontainer/**", ".devcontainer.json", ".nvim.lua", ".nvimrc",
			".exrc", ".vimrc", ".gvimrc", ".lvimrc", ".vim/**", ".config/nvim/**",
			".dir-locals.el", ".dir-locals-2.el", ".emacs", ".emacs.d/**",
			"*.sublime-project") },
	{ CHANGE_HELD, CHANGE_ANYWHERE, false, "settings of an agent: it can run what they name",
		ONE_OF(".claude/**", ".claude.json", ".codex/**", ".gemini/**", ".opencode/**",
			"opencode.json", "opencode.jsonc", ".cursor/**", ".windsurf/**",
			".continue/**", ".roo/**", ".kiro/**", ".amazonq/**", ".aider.conf.yml",
			".mcp.json", ".qwen/**", ".crush.json", ".goose/**") },
	{ CHANGE_HELD, CHANGE_ANYWHERE, false, "bawn's own spec: it says what the next run may do",
		ONE_OF("bawn.yaml") },
	{ CHANGE_HELD, CHANGE_ANYWHERE, false, "runs when a shell or a session starts",
		ONE_OF(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
			".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
			".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc",
			".config/fish/**", ".config/autostart/**", ".config/systemd/**",
			".local/share/systemd/**", ".config/environment.d/**", ".xprofile",
			".xinitrc", ".xsession", ".xsessionrc", ".pam_environment", ".tmux.conf",
			".screenrc") },
	{ CHANGE_HELD, CHANGE_ANYWHERE, false, "keys, and who may enter",
		ONE_OF(".ssh/**", ".gnupg/**", ".netrc") },
	{ CHANGE_HELD, CHANGE_ANYWHERE, false, "runs whenever Python starts",
		ONE_OF("site-packages/*.pth", "dist-packages/*.pth", "sitecustomize.py",
			"usercustomize.py", "sitecustomize/**", "usercustomize/**") },
	{ CHANGE_HELD, CHANGE_ANYWHERE, false, "runs whenever a debugger starts",
		ONE_OF(".gdbinit", ".lldbinit", ".pdbrc") },

	/* run when somebody builds, tests or installs */
	{ CHANGE_RUNS, CHANGE_ANYWHERE, false, "tells agents what to do",
		ONE_OF("agents.md", "claude.md", "claude.local.md", "gemini.md", ".cursorrules",
			".windsurfrules", ".clinerules", ".github/copilot-instructions.md",
			".github/instructions/**") },
	{ CHANGE_RUNS, CHANGE_ANYWHERE, false, "runs on servers when it is pushed",
		ONE_OF(".github/workflows/**", ".github/actions/**", "action.yml", "action.yaml",
			".gitlab-ci.yml", ".gitlab/**", "jenkinsfile", ".circleci/**",
			".travis.yml", ".drone.yml", ".woodpecker.yml", ".woodpecker/**",
			"azure-pipelines.yml", "bitbucket-pipelines.yml", ".buildkite/**",
			".ci/**") },
	{ CHANGE_RUNS, CHANGE_ANYWHERE, true, "runs when it is built",
		ONE_OF("makefile", "gnumakefile", "makefile.*", "*.mk", "cmakelists.txt", "*.cmake",
			"cmakepresets.json", "meson.build", "configure", "configure.ac",
			"autogen.sh", "justfile", ".justfile", "taskfile.yml", "taskfile.yaml",
			"rakefile", "sconstruct", "wscript", "build", "build.bazel", "workspace",
			"workspace.bazel", "module.bazel", ".bazelrc", "build.zig", "build.ninja",
			"flake.nix", "shell.nix", "default.nix") },
	{ CHANGE_RUNS, CHANGE_ANYWHERE, false, "runs when a container or a machine is made of it",
		ONE_OF("dockerfile", "dockerfile.*", "*.dockerfile", "containerfile",
			"docker-compose.yml", "docker-compose.yaml", "docker-compose.*.yml",
			"docker-compose.*.yaml", "compose.yml", "compose.yaml", "vagrantfile") },
	{ CHANGE_RUNS, CHANGE_ANYWHERE, false, "runs when a package manager is called",
		ONE_OF("package.json", ".npmrc", ".yarnrc*", ".yarn/releases/**",
			".yarn/plugins/**", ".pnp.cjs", ".pnpmfile.cjs", "bunfig.toml", "deno.json",
			"deno.jsonc", "binding.gyp", "node_modules/.bin/**", ".tool-versions",
			"composer.json", "gemfile", "*.gemspec", "requirements*.txt", "pipfile",
			"mix.exs", "package.swift") },
	{ CHANGE_RUNS, CHANGE_ANYWHERE, false, "runs when it is built or tested",
		ONE_OF("build.rs", "cargo.toml", ".cargo/**", "rust-toolchain",
			"rust-toolchain.toml", "setup.py", "setup.cfg", "pyproject.toml",
			"conftest.py", "tox.ini", "noxfile.py", "pytest.ini", "manage.py",
			"*.gradle", "*.gradle.kts", "gradlew", "gradlew.bat", "gradle/wrapper/**",
			"gradle.properties", ".mvn/**", "mvnw", "pom.xml", "build.sbt", "*.csproj",
			"directory.build.props", "directory.build.targets", "*.config.js",
			"*.config.cjs", "*.config.mjs", "*.config.ts", "*.config.mts",
			"gruntfile.js", "gulpfile.js", ".babelrc*", ".eslintrc*", ".prettierrc*",
			".mocharc*") },
	{ CHANGE_RUNS, CHANGE_ANYWHERE, false, "runs when the environment is used",
		ONE_OF("pyvenv.cfg", ".venv/bin/**", "venv/bin/**", ".venv/scripts/**",
			"venv/scripts/**") },
	{ CHANGE_RUNS, CHANGE_ANYWHERE, false, "tells git which filters a file goes through",
		ONE_OF(".gitattributes") },
};

const struct change_rule change_rule_gone = { CHANGE_HELD, CHANGE_IN_GIT, true,
	"without it git finds no repository", ONE_OF("head", "worktrees/*/head") };

const struct change_rule change_rule_link = { CHANGE_HELD, CHANGE_BELOW_GIT, false,
	"a link in git's folder: git writes to where it leads", ONE_OF("**") };

const size_t change_rule_count = COUNT_OF(change_rules);
