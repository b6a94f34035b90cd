#pragma once

/* Rows of spec_table.c: the network, limits, and what is watched. */

/* clang-format off */
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
		.grammar = spec_grammar_egress,
		.example = "[\"api.anthropic.com:443\", \"*.npmjs.org:443\"]",
		.doc = "Destinations, as HOST:PORT[/tls|/http|/tcp]. HOST is a name, *.NAME for every name "
		       "below NAME but not NAME itself, an address, or a network such as 10.0.0.0/8. The "
		       "protocol is tls for port 443, http for 80 and tcp otherwise and for addresses, if "
		       "not said; the TLS server name or the Host of a request must then be HOST. A name "
		       "that leads to an address that is not public is refused unless the address is "
		       "declared too. An empty list allows nothing.",
	},
	[SPEC_NETWORK_HOST_PORTS] = {
		.path = "network.host_ports",
		.type = SPEC_TYPE_PORTS,
		.tighten = SPEC_SUBSET,
		.grammar = spec_grammar_port,
		.example = "[7878]",
		.doc = "Ports of the host's loopback that are reached as bawn-host:PORT, and nothing else "
		       "of it.",
	},
	[SPEC_NETWORK_PUBLISH] = {
		.path = "network.publish",
		.type = SPEC_TYPE_SET,
		.tighten = SPEC_SUBSET,
		.grammar = spec_grammar_publish,
		.example = "[\"127.0.0.1:3000:3000\"]",
		.doc = "Ports of the cage opened on the host: [ADDRESS:]HOST_PORT:CAGE_PORT. The address is "
		       "127.0.0.1 if not said.",
	},
	[SPEC_SECRETS] = {
		.path = "secrets",
		.type = SPEC_TYPE_SECRETS,
		.tighten = SPEC_SUBSET,
		.grammar = spec_grammar_secret,
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
		.doc = "What the captured project, the root and the temporary directories may take "
		       "together. If it is declared, the captured project is in memory while the run "
		       "lasts, and the kernel holds the limit; if not, it is on disk, and the keeper "
		       "ends who takes more. A writable project, writable binds and an overlay that is "
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
		.grammar = spec_grammar_syscalls,
		.example = "default",
		.doc = "The system calls allowed: default, strict, or the path of a profile in the "
		       "containers' JSON format.",
	},
	[SPEC_PREFLIGHT_ALLOW] = {
		.path = "preflight_allow",
		.type = SPEC_TYPE_SET,
		.tighten = SPEC_SUBSET,
		.makes_custom = true,
		.grammar = spec_grammar_source,
		.example = "[~/.gitconfig]",
		.doc = "Paths of the host whose binding would be refused as credentials, acknowledged one "
		       "by one.",
	},
	[SPEC_ALLOW_DEGRADED] = {
		.path = "allow_degraded",
		.type = SPEC_TYPE_SET,
		.tighten = SPEC_SUBSET,
		.makes_custom = true,
		.grammar = spec_grammar_guarantee,
		.example = "[limits.memory]",
		.doc = "Guarantees that may be missing, by name; the record says which were.",
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
