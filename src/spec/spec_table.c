#include "spec/spec_table.h"

#include <string.h>

#include "base/str.h"

/* The words of the choices, and the patterns that rows share. */

static const char *const engines[] = { "auto", "native", "bwrap", "container", "microvm",
	"landlock", "logical", NULL };
static const char *const project_modes[] = { "read_only", "captured", "writable", NULL };
static const char *const project_cages[] = { "full", "project", NULL };
static const char *const project_gits[] = { "none", "auto", NULL };
static const char *const output_ends[] = { "end", "cut", NULL };
static const char *const record_outputs[] = { "keep", "digest", "no", NULL };
static const char *const network_modes[] = { "none", "allowlist", "host", NULL };
static const char *const environments[] = { "dev", "prod", NULL };

#define NAME_PATTERN   "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
#define TARGET_PATTERN "^/[^/]"
#define SIZE_PATTERN   "^[1-9][0-9]*(K|KB|M|MB|G|GB|T|TB)?$"

const struct spec_key_def spec_keys[SPEC_KEY_COUNT] = {
	[SPEC_VERSION] = {
		.path = "version",
		.type = SPEC_TYPE_VERSION,
		.example = "1",
		.doc = "The version of this format. Required, and always 1.",
	},
	[SPEC_ENVIRONMENT] = {
		.path = "environment",
		.type = SPEC_TYPE_CHOICE,
		.tighten = SPEC_OPERATOR_ONLY,
		.def = "dev",
		.choices = environments,
		.example = "prod",
		.doc = "Where this machine stands. With prod, the engine logical, which enforces nothing, "
		       "is refused. A prod in the system's policy cannot be undone by the user's.",
	},
	[SPEC_TRUSTED_PROJECTS] = {
		.path = "trusted_projects",
		.type = SPEC_TYPE_SET,
		.tighten = SPEC_OPERATOR_ONLY,
		.grammar = SPEC_GRAMMAR_TRUSTED,
		.example = "[~/src/mine]",
		.doc = "Directories. The spec file of a project at or below one of them counts as the "
		       "operator's own word, as if --trust were given.",
	},
	[SPEC_SELF_GOVERNANCE] = {
		.path = "self_governance",
		.type = SPEC_TYPE_TEXT,
		.tighten = SPEC_OPERATOR_ONLY,
		.grammar = SPEC_GRAMMAR_TRUSTED,
		.example = "~/src/framework",
		.doc = "One directory whose agents look after what governs them. A run of exactly this "
		       "project has it writable, and may change its hooks, settings and spec; what is in "
		       "project.protect stays. Where project.mode is declared otherwise, it is as in any "
		       "project, and so is everything else. The level is custom.",
	},
	[SPEC_KEEP_RUNS] = {
		.path = "keep_runs",
		.type = SPEC_TYPE_INT,
		.tighten = SPEC_OPERATOR_ONLY,
		.def = "10000",
		.example = "1000",
		.doc = "How many runs are kept. bawn prune, and once in a while a run that has ended, removes "
		       "the oldest beyond it: never those with changes that were neither applied nor "
		       "discarded, those that go on, and those of a session.",
	},
	[SPEC_KEEP_AGE] = {
		.path = "keep_age",
		.type = SPEC_TYPE_DURATION,
		.tighten = SPEC_OPERATOR_ONLY,
		.def = "365d",
		.example = "90d",
		.doc = "How long runs, and old files of the log of all runs, are kept.",
	},
	[SPEC_KEEP_SIZE] = {
		.path = "keep_size",
		.type = SPEC_TYPE_SIZE,
		.tighten = SPEC_OPERATOR_ONLY,
		.def = "10G",
		.pattern = SIZE_PATTERN,
		.example = "2G",
		.doc = "How much the newest runs may take together; older ones are removed.",
	},
	[SPEC_NAME] = {
		.path = "name",
		.type = SPEC_TYPE_TEXT,
		.grammar = SPEC_GRAMMAR_NAME,
		.pattern = NAME_PATTERN,
		.example = "stats-auditor",
		.doc = "A name for the records and cards.",
	},
	[SPEC_AGENT] = {
		.path = "agent",
		.type = SPEC_TYPE_TEXT,
		.grammar = SPEC_GRAMMAR_NAME,
		.pattern = NAME_PATTERN,
		.example = "claude",
		.tighten = SPEC_SAME,
		.doc = "The profile of an agent: its command, settings, state and hosts, which are added to "
		       "what the spec says; see bawn agent list. What follows -- on the command line is "
		       "for the agent.",
	},
	[SPEC_COMMAND] = {
		.path = "command",
		.type = SPEC_TYPE_LIST,
		.grammar = SPEC_GRAMMAR_WORD,
		.example = "[claude, -p, audit]",
		.doc = "The program and its arguments. What follows -- on the command line replaces it.",
	},
	[SPEC_STARTUP_COMMANDS] = {
		.path = "startup_commands",
		.type = SPEC_TYPE_LIST,
		.grammar = SPEC_GRAMMAR_ANY,
		.example = "[npm ci]",
		.doc = "Shell commands run in the cage, in order, before the command. One that fails ends "
		       "the run.",
	},
	[SPEC_STARTUP_PROMPTS] = {
		.path = "startup_prompts",
		.type = SPEC_TYPE_LIST,
		.grammar = SPEC_GRAMMAR_ANY,
		.example = "[Read AUDIT.md first.]",
		.tighten = SPEC_ADD,
		.doc = "Prompts handed to the agent before yours. Those of a project's file come after the "
		       "operator's, and are said to be the project's.",
	},
	[SPEC_WORKDIR] = {
		.path = "workdir",
		.type = SPEC_TYPE_TEXT,
		.grammar = SPEC_GRAMMAR_TARGET,
		.pattern = TARGET_PATTERN,
		.example = "/work/src",
		.doc = "The directory in the cage where the command starts; the project's if not said.",
	},
	[SPEC_FILES] = {
		.path = "files",
		.type = SPEC_TYPE_VARS,
		.grammar = SPEC_GRAMMAR_FILE,
		.example = "{ /etc/npmrc: \"fund=false\" }",
		.doc = "Files of the cage, as a map of path to text: in the private home, /etc, /opt or "
		       "/run. They are written anew at each start. What begins with #! can be run.",
	},
	[SPEC_INITIAL_FILES] = {
		.path = "initial_files",
		.type = SPEC_TYPE_VARS,
		.grammar = SPEC_GRAMMAR_FILE,
		.example = "{ /home/agent/.config/agent.json: \"{}\" }",
		.doc = "The same, but only where there is no such file yet: in what is kept, by state or "
		       "in a session, they are there when it begins, and what becomes of them stays.",
	},
	[SPEC_STATE] = {
		.path = "state",
		.type = SPEC_TYPE_SET,
		.tighten = SPEC_SUBSET,
		.grammar = SPEC_GRAMMAR_KEPT,
		.pattern = "^/home/agent/[A-Za-z0-9._-]",
		.example = "[/home/agent/.claude]",
		.doc = "Folders of the private home that are kept from one run of this project to the next, "
		       "in the operator's own state. In a session, all of the home is kept already.",
	},
	[SPEC_ENGINE] = {
		.path = "engine",
		.type = SPEC_TYPE_CHOICE,
		.tighten = SPEC_HARDENED,
		.def = "auto",
		.choices = engines,
		.hardened_choices = SPEC_ENGINE_LANDLOCK,
		.example = "auto",
		.doc = "What carries the plan out. This version runs native only, and auto means native; "
		       "a plan for another engine can be shown, and a run with it is refused.",
	},
	[SPEC_ENGINE_ARGS] = {
		.path = "engine_args",
		.type = SPEC_TYPE_LIST,
		.tighten = SPEC_SUBSET,
		.makes_custom = true,
		.grammar = SPEC_GRAMMAR_ANY,
		.example = "[--nested]",
		.doc = "Arguments for the engine as they are. They make the level custom. The engine native "
		       "takes none, and a run with some is refused.",
	},
	[SPEC_RELAXED] = {
		.path = "relaxed",
		.type = SPEC_TYPE_BOOL,
		.tighten = SPEC_ONLY_FALSE,
		.def = "false",
		.makes_custom = true,
		.example = "false",
		.doc = "The one opt-out: guarantees this host cannot give no longer stop the run. The "
		       "record says so and is outside the chain of verification.",
	},
	[SPEC_FAKEROOT] = {
		.path = "fakeroot",
		.type = SPEC_TYPE_BOOL,
		.tighten = SPEC_ONLY_FALSE,
		.def = "false",
		.makes_custom = true,
		.example = "false",
		.doc = "Makes the agent uid 0 in the cage; outside it stays an unprivileged user.",
	},
	[SPEC_TOOLS] = {
		.path = "tools",
		.type = SPEC_TYPE_BOOL,
		.def = "false",
		.example = "true",
		.doc = "Puts bawn's own program into the cage, read-only, as /run/bawn/bawn, for hooks "
		       "of agents and for tools that work on files, and a description of the cage, "
		       "/etc/bawn/cage.json. It opens nothing: what they refuse, the cage refuses "
		       "as well.",
	},
	[SPEC_TOOLCHAINS] = {
		.path = "toolchains",
		.type = SPEC_TYPE_SET,
		.tighten = SPEC_SUBSET,
		.grammar = SPEC_GRAMMAR_TOOLCHAIN,
		.is_later = true,
		.example = "[auto]",
		.doc = "Tools that are installed in the operator's home, shown read-only without the "
		       "credentials beside them: bun, cargo (with rustup), go, nvm, pnpm, pyenv, uv, or "
		       "auto for those whose programs are first on the operator's PATH. They are added "
		       "to binds and env.set, below /opt/toolchains; what names its own path is there.",
	},
	[SPEC_ROOT_IMAGE] = {
		.path = "root.image",
		.type = SPEC_TYPE_TEXT,
		.tighten = SPEC_SAME,
		.def = "host",
		.grammar = SPEC_GRAMMAR_IMAGE,
		.example = "host",
		.doc = "What the cage's root is made of, read-only: host (the system's own /usr and what "
		       "belongs to it), dir:PATH, oci:PATH, sif:PATH, or the name of a stored image.",
	},
	[SPEC_ROOT_OVERLAY] = {
		.path = "root.overlay",
		.type = SPEC_TYPE_TEXT,
		.tighten = SPEC_SAME,
		.def = "ephemeral",
		.grammar = SPEC_GRAMMAR_OVERLAY,
		.example = "ephemeral",
		.doc = "Where writes to the root go: ephemeral (they vanish with the run), or the path of "
		       "an overlay that is kept. It is in memory while the run lasts, and saved when the "
		       "run ends, however it ends.",
	},
	[SPEC_ROOT_OVERLAY_SIZE] = {
		.path = "root.overlay_size",
		.type = SPEC_TYPE_SIZE,
		.tighten = SPEC_AT_MOST,
		.pattern = "^[1-9][0-9]*(M|MB|G|GB)$",
		.example = "5G",
		.doc = "What an overlay at a path may take, in M, MB, G or GB: the kernel lets no more be "
		       "written. Without it, an overlay keeps the size it has.",
	},
	[SPEC_ROOT_OVERLAY_CREATE] = {
		.path = "root.overlay_create_if_missing",
		.type = SPEC_TYPE_BOOL,
		.def = "true",
		.example = "true",
		.doc = "Whether an overlay that is missing is created; it needs overlay_size.",
	},
	[SPEC_PROJECT_PATH] = {
		.path = "project.path",
		.type = SPEC_TYPE_TEXT,
		.tighten = SPEC_SAME,
		.def = ".",
		.grammar = SPEC_GRAMMAR_PROJECT,
		.example = ".",
		.doc = "The project on the host. A relative path starts at the current directory.",
	},
	[SPEC_PROJECT_AT] = {
		.path = "project.at",
		.type = SPEC_TYPE_TEXT,
		.def = "/work",
		.grammar = SPEC_GRAMMAR_AT,
		.pattern = "^(/[^/]|own$)",
		.example = "/work",
		.doc = "Where the project is in the cage. With own it is at its real path on the host, and the "
		       "rest of the host is still hidden: virtual environments and build folders, which "
		       "name that path, then work. With cage: project it always is.",
	},
	[SPEC_PROJECT_MODE] = {
		.path = "project.mode",
		.type = SPEC_TYPE_CHOICE,
		.tighten = SPEC_RANK,
		.def = "captured",
		.choices = project_modes,
		.hardened_choices = SPEC_MODE_WRITABLE,
		.example = "captured",
		.doc = "What writing to the project does: captured keeps the changes aside to be looked at "
		       "and applied, read_only refuses them, writable lets them through except on the "
		       "protected paths.",
	},
	[SPEC_PROJECT_CAGE] = {
		.path = "project.cage",
		.type = SPEC_TYPE_CHOICE,
		.tighten = SPEC_RANK,
		.def = "full",
		.choices = project_cages,
		.hardened_choices = SPEC_CAGE_PROJECT,
		.example = "full",
		.doc = "With full, what is not declared cannot be named. With project, the project is "
		       "mounted over its real path, and read_allowlist says what else of the host is seen.",
	},
	[SPEC_PROJECT_GIT] = {
		.path = "project.git",
		.type = SPEC_TYPE_CHOICE,
		.tighten = SPEC_RANK,
		.def = "auto",
		.choices = project_gits,
		.example = "auto",
		.doc = "For a project that is a linked worktree or a submodule, whose repository is "
		       "outside of it: with auto, git's folder is shown at its own path, with the rights of "
		       "the project, if it points back to the project and belongs to the operator. In mode "
		       "writable its hooks, its configuration and other worktrees are protected. With none "
		       "it is not shown. In every project, git in the cage knows user.name and user.email of "
		       "the operator's configuration, and nothing else of it; with none it does not.",
	},
	[SPEC_PROJECT_READ] = {
		.path = "project.read_allowlist",
		.type = SPEC_TYPE_SET,
		.tighten = SPEC_SUBSET,
		.def = "$PROJECT/**",
		.grammar = SPEC_GRAMMAR_PATTERN,
		.example = "[$PROJECT/**]",
		.doc = "What can be read: paths, or paths that end with /** for all below. Below the "
		       "project, except with cage: project.",
	},
	[SPEC_PROJECT_WRITE] = {
		.path = "project.write_allowlist",
		.type = SPEC_TYPE_SET,
		.tighten = SPEC_SUBSET,
		.def = "$PROJECT/**",
		.grammar = SPEC_GRAMMAR_PATTERN,
		.example = "[$PROJECT/src/**]",
		.doc = "What can be written, in the same form; all below the project. What can be written can "
		       "be read.",
	},
	[SPEC_PROJECT_PROTECT] = {
		.path = "project.protect",
		.type = SPEC_TYPE_SET,
		.tighten = SPEC_ADD,
		.grammar = SPEC_GRAMMAR_INSIDE,
		.example = "[.git/hooks, .git/config]",
		.doc = "Paths below the project that stay as they are even in mode writable, also if they "
		       "are missing; added to the built-in list. Entries of all layers add up.",
	},
	[SPEC_BINDS] = {
		.path = "binds",
		.type = SPEC_TYPE_BINDS,
		.tighten = SPEC_SUBSET,
		.grammar = SPEC_GRAMMAR_BIND,
		.example = "[~/proj/lib:/home/agent/lib:ro, { from: /srv/data, to: /data, mode: ro }]",
		.doc = "Paths of the host that are seen in the cage: SOURCE:TARGET[:ro|:rw], or a map with "
		       "from, to and mode. Read-only if not said. ~ is the operator's home; a relative "
		       "source starts at the project. With a target at or below /srv/sources, the cage "
		       "has the variable BAWN_WORKDIR=/srv/sources.",
	},
	[SPEC_ENV_PASS] = {
		.path = "env.pass",
		.type = SPEC_TYPE_SET,
		.tighten = SPEC_SUBSET,
		.grammar = SPEC_GRAMMAR_VARIABLE,
		.pattern = "^[A-Za-z_][A-Za-z0-9_]*$",
		.example = "[LANG]",
		.doc = "Names of the operator's environment variables that pass into the cage.",
	},
	[SPEC_ENV_SET] = {
		.path = "env.set",
		.type = SPEC_TYPE_VARS,
		.grammar = SPEC_GRAMMAR_SETTING,
		.example = "{ CI: \"1\" }",
		.doc = "Variables set in the cage.",
	},
	[SPEC_NETWORK_MODE] = {
		.path = "network.mode",
		.type = SPEC_TYPE_CHOICE,
		.tighten = SPEC_RANK,
		.def = "none",
		.choices = network_modes,
		.hardened_choices = SPEC_NET_HOST,
		.example = "allowlist",
		.doc = "With none there is no network. With allowlist the hosts of network.allow are "
		       "reached, by name. With host the host's network is shared: an opt-out.",
	},
	[SPEC_NETWORK_ALLOW] = {
		.path = "network.allow",
		.type = SPEC_TYPE_SET,
		.tighten = SPEC_SUBSET,
		.grammar = SPEC_GRAMMAR_ALLOW,
		.example = "[\"api.anthropic.com:443\", npm]",
		.doc = "Destinations, as HOST:PORT[/tls|/http|/tcp]. HOST is a name, *.NAME for every name "
		       "below NAME but not NAME itself, an address, or a network such as 10.0.0.0/8. The "
		       "protocol is tls for port 443, http for 80 and tcp otherwise and for addresses, if "
		       "not said; the TLS server name or the Host of a request must then be HOST. A name "
		       "that leads to an address that is not public is refused unless the address is "
		       "declared too. apt, cargo, go, npm and pip stand for the hosts that the operator's own "
		       "client is set up to use, asked outside of the project; git for those of the "
		       "project's remotes. The plan and the record show what they became. An empty list "
		       "allows nothing.",
	},
	[SPEC_NETWORK_HOST_PORTS] = {
		.path = "network.host_ports",
		.type = SPEC_TYPE_PORTS,
		.tighten = SPEC_SUBSET,
		.grammar = SPEC_GRAMMAR_PORT,
		.example = "[7878]",
		.doc = "Ports of the host's loopback that are reached as bawn-host:PORT, and nothing else "
		       "of it.",
	},
	[SPEC_NETWORK_PUBLISH] = {
		.path = "network.publish",
		.type = SPEC_TYPE_SET,
		.tighten = SPEC_SUBSET,
		.grammar = SPEC_GRAMMAR_PUBLISH,
		.example = "[\"127.0.0.1:3000:3000\"]",
		.doc = "Ports of the cage opened on the host: [ADDRESS:]HOST_PORT:CAGE_PORT. The address is "
		       "127.0.0.1 if not said.",
	},
	[SPEC_SECRETS] = {
		.path = "secrets",
		.type = SPEC_TYPE_SECRETS,
		.tighten = SPEC_SUBSET,
		.grammar = SPEC_GRAMMAR_SECRET,
		.example = "[{ name: anthropic, host: \"api.anthropic.com:443\", header: x-api-key, "
			   "from: \"env:ANTHROPIC_API_KEY\" }]",
		.doc = "Keys that never enter the cage. A request to http://bawn-host/NAME/PATH is sent to "
		       "https://HOST/PATH by a process outside of it, which adds the header: the key, or "
		       "the scheme (such as Bearer), a space and the key. from says where the key is kept: "
		       "env:NAME, a variable of the operator's, or file:PATH. The host's certificate is "
		       "checked against the system's CAs, or those of the file ca. The host need not be in "
		       "network.allow; network.mode must be allowlist.",
	},
	[SPEC_LIMITS_MEMORY] = {
		.path = "limits.memory",
		.type = SPEC_TYPE_SIZE,
		.tighten = SPEC_AT_MOST,
		.def = "8G",
		.pattern = SIZE_PATTERN,
		.example = "2G",
		.doc = "Memory of all processes together.",
	},
	[SPEC_LIMITS_CPU] = {
		.path = "limits.cpu",
		.type = SPEC_TYPE_CPUS,
		.tighten = SPEC_AT_MOST,
		.example = "1.5",
		.doc = "Processors, as a number such as 2 or 1.5.",
	},
	[SPEC_LIMITS_PIDS] = {
		.path = "limits.pids",
		.type = SPEC_TYPE_INT,
		.tighten = SPEC_AT_MOST,
		.def = "4096",
		.example = "256",
		.doc = "Processes and threads at the same time.",
	},
	[SPEC_LIMITS_DISK] = {
		.path = "limits.disk",
		.type = SPEC_TYPE_SIZE,
		.tighten = SPEC_AT_MOST,
		.def = "8G",
		.pattern = SIZE_PATTERN,
		.example = "4G",
		.doc = "What the captured project, the root, the temporary directories and what a run "
		       "adds to its state may take together. If it is declared, and since Linux 6.6, the "
		       "captured project is in memory while the run lasts, and the kernel holds the "
		       "limit; else it is on disk, as state always is, and the keeper ends the command "
		       "that takes more. A writable project, writable binds and an overlay that is "
		       "kept, which has a size of its own, are not counted.",
	},
	[SPEC_LIMITS_TIME] = {
		.path = "limits.time",
		.type = SPEC_TYPE_DURATION,
		.tighten = SPEC_AT_MOST,
		.example = "30m",
		.doc = "How long the run may take.",
	},
	[SPEC_LIMITS_OUTPUT] = {
		.path = "limits.output",
		.type = SPEC_TYPE_SIZE,
		.tighten = SPEC_AT_MOST,
		.pattern = SIZE_PATTERN,
		.example = "64M",
		.doc = "What the command may print.",
	},
	[SPEC_LIMITS_OUTPUT_THEN] = {
		.path = "limits.output_then",
		.type = SPEC_TYPE_CHOICE,
		.tighten = SPEC_RANK,
		.def = "cut",
		.choices = output_ends,
		.hardened_choices = 2,
		.example = "end",
		.doc = "What follows when limits.output is reached: cut shows nothing more, of which the "
		       "command is told by SIGPIPE, on a terminal by SIGHUP; end asks the command to end, "
		       "and ends it a while later.",
	},
	[SPEC_LIMITS_FILES] = {
		.path = "limits.files",
		.type = SPEC_TYPE_INT,
		.tighten = SPEC_AT_MOST,
		.example = "1024",
		.doc = "Files open at the same time in one process.",
	},
	[SPEC_SYSCALLS] = {
		.path = "syscalls",
		.type = SPEC_TYPE_TEXT,
		.tighten = SPEC_SAME,
		.def = "default",
		.grammar = SPEC_GRAMMAR_SYSCALLS,
		.example = "default",
		.doc = "The system calls allowed: default, strict, or the path of a profile in the "
		       "containers' JSON format.",
	},
	[SPEC_PREFLIGHT_ALLOW] = {
		.path = "preflight_allow",
		.type = SPEC_TYPE_SET,
		.tighten = SPEC_SUBSET,
		.makes_custom = true,
		.grammar = SPEC_GRAMMAR_SOURCE,
		.example = "[~/.gitconfig]",
		.doc = "Paths of the host whose binding would be refused as credentials, acknowledged one "
		       "by one.",
	},
	[SPEC_ALLOW_DEGRADED] = {
		.path = "allow_degraded",
		.type = SPEC_TYPE_SET,
		.tighten = SPEC_SUBSET,
		.makes_custom = true,
		.grammar = SPEC_GRAMMAR_GUARANTEE,
		.example = "[limits.memory]",
		.doc = "Guarantees that may be missing, by name; the record says which were. One that is "
		       "never required (groups, limits that nobody declared) can be named too: the "
		       "level stays, and a run no longer says that it is missing.",
	},
	[SPEC_SESSION_TTL] = {
		.path = "session.ttl",
		.type = SPEC_TYPE_DURATION,
		.tighten = SPEC_AT_MOST,
		.def = "1h",
		.example = "1h",
		.doc = "How long a session is kept after its last use.",
	},
	[SPEC_SESSION_BACKGROUND] = {
		.path = "session.background",
		.type = SPEC_TYPE_BOOL,
		.tighten = SPEC_ONLY_FALSE,
		.def = "false",
		.example = "true",
		.doc = "Processes that a command leaves behind in a session go on until the session is "
		       "stopped. The commands of the session then share their processes, their network "
		       "and their shared memory; without it, each has its own.",
	},
	[SPEC_AUDIT_STRICT_BINDS] = {
		.path = "audit.strict_binds",
		.type = SPEC_TYPE_BOOL,
		.tighten = SPEC_ONLY_TRUE,
		.def = "false",
		.example = "false",
		.doc = "Makes the warning about bind targets that mirror a host an error.",
	},
	[SPEC_AUDIT_DIGEST_PROJECT] = {
		.path = "audit.digest_project",
		.type = SPEC_TYPE_BOOL,
		.tighten = SPEC_ONLY_TRUE,
		.def = "false",
		.example = "true",
		.doc = "Puts a digest of the whole project as it was before the run on record, by which "
		       "bawn run --again sees that it repeats the same.",
	},
	[SPEC_AUDIT_WATCH_PROTECTED] = {
		.path = "audit.watch_protected",
		.type = SPEC_TYPE_BOOL,
		.tighten = SPEC_ONLY_TRUE,
		.def = "false",
		.example = "true",
		.doc = "Tells which writes to protected paths were refused, where the project is "
		       "writable. Every call that writes by name, or opens for writing, then waits "
		       "until bawn has looked at its path. It is a hint, which a hostile program "
		       "can evade: what is protected is so without it.",
	},
	[SPEC_RECORD_OUTPUT] = {
		.path = "record.output",
		.type = SPEC_TYPE_CHOICE,
		.tighten = SPEC_RANK,
		.def = "digest",
		.choices = record_outputs,
		.hardened_choices = 3,
		.is_later = true,
		.example = "keep",
		.doc = "What the record has of standard output and error: digest, the SHA-256 and the size "
		       "of each; keep, the same, and the bytes in files beside the record, the first "
		       "16 MiB of each; no, nothing.",
	},
};

/* --- finding a key --- */

enum spec_key spec_key_find(const char *path)
{
	enum spec_key key = 0;

	while (key < SPEC_KEY_COUNT && !str_eq(spec_keys[key].path, path))
		key++;
	return key;
}

bool spec_key_section(enum spec_key key, char *ret, size_t size)
{
	const char *path = spec_keys[key].path;
	size_t n = strcspn(path, ".");

	if (!path[n] || n >= size)
		return false;
	memcpy(ret, path, n);
	ret[n] = '\0';
	return true;
}

const char *spec_key_leaf(enum spec_key key)
{
	const char *point = strchr(spec_keys[key].path, '.');

	return point ? point + 1 : spec_keys[key].path;
}

bool spec_is_list(enum spec_type type)
{
	return type == SPEC_TYPE_LIST || type == SPEC_TYPE_SET || type == SPEC_TYPE_PORTS ||
	       type == SPEC_TYPE_BINDS || type == SPEC_TYPE_VARS || type == SPEC_TYPE_SECRETS;
}
