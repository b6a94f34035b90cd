#include "client/client.h"

/*
 * One row per client. Nothing here names a host: what a client uses where nothing is set up is for
 * the client to say.
 */
const struct client_def client_defs[] = {
	{
		.name = "apt",
		.questions = { { .words = { "apt-get", "indextargets", "--format",
					 "$(REPO_URI)" } } },
		.nothing = "it has no source on the network",
		.hint = "name its sources in /etc/apt",
	},
	{
		.name = "cargo",
		.questions = { { .variable = "CARGO_HOME",
				       .folder = ".cargo",
				       .file = "config.toml",
				       .answer = CLIENT_TOML },
			{ .variable = "CARGO_HOME",
				.folder = ".cargo",
				.file = "config",
				.answer = CLIENT_TOML } },
		.file = "/home/agent/.cargo/config.toml",
		.head = "",
		.between = "",
		.nothing = "its configuration names none, and it does not print its default",
		.hint = "run cargo with --network allowlist once: bawn log --denials names the hosts, "
			"for --allow HOST:PORT; or name a registry below [source] in "
			"~/.cargo/config.toml",
	},
	{
		.name = "git",
		.questions = { { .file = "config", .answer = CLIENT_REMOTES } },
		.nothing = "the project is no repository with a remote on the network",
		.hint = "add a remote, or name the host: --allow HOST:PORT",
	},
	{
		.name = "go",
		.questions = { { .words = { "go", "env", "-json", "GOPROXY", "GOSUMDB" },
			.answer = CLIENT_PAIRS } },
		.says_variables = true,
		.nothing = "it uses no proxy and no checksum database",
		.hint = "name the hosts: --allow HOST:PORT",
	},
	{
		.name = "npm",
		.questions = { { .words = { "npm", "config", "ls", "--json" },
			.answer = CLIENT_PAIRS,
			.key = "registry" } },
		.file = "/home/agent/.npmrc",
		.head = "",
		.between = "=",
		.nothing = "its configuration names none",
		.hint = "npm config set registry URL",
	},
	{
		.name = "pip",
		.questions = { { .words = { "pip", "config", "list" },
				       .answer = CLIENT_PAIRS,
				       .key = "index-url" },
			/* pip has no command that prints its default, and names the files' host in
			 * one place only. The first entry of the path would be the current folder.
			 */
			{ .words = { "python3", "-c",
				  "import sys; sys.path[:] = filter(None, sys.path); "
				  "from pip._internal.models.index import PyPI; "
				  "print(PyPI.simple_url, 'https://' + PyPI.file_storage_domain)" },
				.answer = CLIENT_DEFAULT,
				.key = "index-url" } },
		.file = "/home/agent/.config/pip/pip.conf",
		.head = "[global]\n",
		.between = " = ",
		.nothing = "its configuration names none",
		.hint = "pip config set global.index-url URL",
	},
	{ 0 },
};
