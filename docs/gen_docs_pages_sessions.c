/* Texts of the pages about sessions, workers and tools over MCP. */
#include "gen_docs.h"

const struct gen_page gen_pages_sessions[] = {
	{ "session",
		"A session is a workspace that several commands share: what they write to the project, a home and a /tmp. "
		"create takes the spec and options of bawn run, and fixes them for all commands of the session; it prints the "
		"session's id. SESSION is an id, its beginning, or a name. Each command is a run with its own cage and record.\n\n"
		"diff, apply and discard are about what the session wrote to the project so far. They need the session to be idle.\n\n"
		"After exec, a process stays for BAWN_STAY_SECONDS [10], keeps the workspace mounted and a cage ready, and does the next "
		"command of a process without a terminal that has the same limits and cgroups. show names it.\n\n"
		"A session expires when it is unused for --ttl. sweep removes expired sessions, as bawn worker does; it keeps and names those "
		"with changes of the project that nobody applied or discarded, unless --discard is given. "
		"rm ends what runs in a session, and removes it. Changes that were not applied go with it after a question, or with --yes; rm names them. Records of its runs stay. list and show print the state of a session: "
		"open, stopped, expired, removing, no folder (its files are lost), or elsewhere (its files are in another "
		"root).\n\n"
		"# QUEUED RUNS\n\n"
		"exec --queue leaves a run to a worker that has the same store (BAWN_STORE), and prints the run's id. wait prints "
		"the output of a queued run when it has ended, and returns its status; exec --queue --wait does both. Runs "
		"of one session run one after the other. Arguments and the end of the output are in the store as they are.\n\n"
		"# SESSION COMMANDS",
		NULL, NULL,
		{
			{ "Create a session", "bawn session create --name web --ttl 1h", NULL },
			{ "Keep an environment between commands",
				"bawn session exec web -- sh -c 'echo kept >~/file'", NULL },
			{ "Use it again", "bawn session exec web -- cat /home/agent/file", NULL },
			{ "Review and apply what the session changed", "bawn session diff web",
				NULL },
			{ "List sessions", "bawn session list", NULL },
			{ "Remove it", "bawn session rm web", NULL },
			{ "Clean up expired sessions", "bawn session sweep", NULL },
		},
		"bawn-run(1) bawn-diff(1) bawn-worker(1) bawn-mcp(1) bawn.yaml(5)" },
	{ "worker",
		"bawn worker runs what bawn session exec --queue left in the store, which BAWN_STORE names. Start one or "
		"many, on one machine, or on several with a store in PostgreSQL. A worker leases each session that it works in. A run that "
		"it does not report in time is lost, and never begun again; a report that comes too late is refused. At SIGTERM the "
		"worker takes nothing more, lets runs finish for --drain, and exits.",
		NULL, "bawn session create --name queued; bawn session exec queued --queue -- true",
		{
			{ "Run everything that is queued, and exit", "bawn worker --once", NULL },
			{ "List the workers of the store", "bawn worker --list", NULL },
			{ "Run as a service, with metrics",
				"bawn worker --slots 4 --metrics /var/lib/node_exporter/bawn.prom",
				"does not end" },
			{ "Share a store between machines",
				"BAWN_STORE=postgresql://bawn@db/bawn bawn worker",
				"needs a server" },
		},
		"bawn-session(1)" },
	{ "mcp",
		"bawn mcp is a server of the Model Context Protocol on its standard streams, for an agent that runs on the host "
		"itself. Its tools bash, read, write, edit, glob and grep work in one session: a new one, or that of --session. Each "
		"call is a run with a record, whose id is in the result as bawn/run; the result says what was "
		"denied.\n\n"
		"When its input ends, the server ends what runs. It removes a session of its own making that changed nothing in the "
		"project, and keeps it for bawn session diff and apply otherwise.",
		NULL, NULL,
		{
			{ "Give Claude Code these tools", "claude mcp add bawn -- bawn mcp",
				"needs an agent" },
			{ "Serve an existing session", "bawn mcp --session web", "needs an agent" },
		},
		"bawn-session(1) bawn-tool(1)" },
	{ 0 },
};
