#include "toolchain/toolchain.h"

/* Managers of tools, as their installers leave them. */
const struct toolchain_def toolchain_defs[] = {
	{
		.name = "bun",
		.program = "bun",
		.root_variable = "BUN_INSTALL",
		.root = ".bun",
		.parts = { { "BUN_INSTALL", ".bun", "bin", "bun/bin" },
			{ "BUN_INSTALL", ".bun", "install/global", "bun/install/global" } },
		.paths = { "bun/bin" },
	},
	{
		/* Not .cargo itself, which has credentials.toml. CARGO_HOME is the cage's own. */
		.name = "cargo",
		.program = "cargo",
		.root_variable = "CARGO_HOME",
		.root = ".cargo",
		.parts = { { "CARGO_HOME", ".cargo", "bin", "cargo/bin" },
			{ "RUSTUP_HOME", ".rustup", "toolchains", "rustup/toolchains" },
			{ "RUSTUP_HOME", ".rustup", "settings.toml", "rustup/settings.toml" } },
		.variable = "RUSTUP_HOME",
		.value = TOOLCHAIN_PLACE "/rustup",
		.paths = { "cargo/bin" },
	},
	{
		/* It finds what it needs by where it is. */
		.name = "go",
		.program = "go",
		.parts = { { NULL, NULL, "bin", "go/bin" }, { NULL, NULL, "pkg", "go/pkg" },
			{ NULL, NULL, "src", "go/src" }, { NULL, NULL, "lib", "go/lib" },
			{ NULL, NULL, "go.env", "go/go.env" },
			{ NULL, NULL, "VERSION", "go/VERSION" } },
		.paths = { "go/bin" },
	},
	{
		/* Not the whole version, which has etc/npmrc. */
		.name = "nvm",
		.program = "node",
		.root_variable = "NVM_DIR",
		.root = ".nvm",
		.parts = { { NULL, NULL, "bin", "nvm/bin" }, { NULL, NULL, "lib", "nvm/lib" },
			{ NULL, NULL, "include", "nvm/include" } },
		.paths = { "nvm/bin" },
	},
	{
		.name = "pnpm",
		.program = "pnpm",
		.root_variable = "PNPM_HOME",
		.root = ".local/share/pnpm",
		.parts = { { "PNPM_HOME", ".local/share/pnpm", "", "pnpm" } },
		/* Programs are in bin since version 11, and beside it before. */
		.paths = { "pnpm/bin", "pnpm" },
	},
	{
		/* Its scripts begin with its own path. */
		.name = "pyenv",
		.program = "python3",
		.root_variable = "PYENV_ROOT",
		.root = ".pyenv",
		.parts = { { "PYENV_ROOT", ".pyenv", "bin", NULL },
			{ "PYENV_ROOT", ".pyenv", "libexec", NULL },
			{ "PYENV_ROOT", ".pyenv", "shims", NULL },
			{ "PYENV_ROOT", ".pyenv", "versions", NULL },
			{ "PYENV_ROOT", ".pyenv", "plugins", NULL },
			{ "PYENV_ROOT", ".pyenv", "version", NULL } },
		.variable = "PYENV_ROOT",
		.paths = { "~shims", "~bin" },
	},
	{
		/* Environments that it made lead to its Pythons by their own path. */
		.name = "uv",
		.program = "uv",
		.parts = { { NULL, NULL, "bin/uv", "uv/bin/uv" },
			{ NULL, NULL, "bin/uvx", "uv/bin/uvx" },
			{ "UV_PYTHON_INSTALL_DIR", ".local/share/uv/python", "", NULL } },
		.variable = "UV_PYTHON_INSTALL_DIR",
		.paths = { "uv/bin" },
	},
	{ 0 },
};
